//! The conductor's end of the worker: starts it, asks, hears, and is never left waiting by one
//! that died.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::worker::protocol::{Reply, Request};

/// How long a worker may take to end after it was told to.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A running worker.
pub struct WorkerProcess {
    child: Child,
    input: Option<ChildStdin>,
    heard: Receiver<Heard>,
    complaints: Receiver<String>,
}

/// What came out of a worker.
enum Heard {
    Reply(Box<Reply>),
    Nonsense(String),
}

/// Why nothing was heard from a worker.
pub enum Silence {
    /// Nothing yet.
    NotYet,
    /// It ended without a last word; the text says how.
    Ended(String),
}

impl WorkerProcess {
    /// Starts a worker and hands it its request. `prefix` are the words of a command that runs it
    /// elsewhere, where this program's name is among them; empty: it runs here. The environment
    /// variable lets `ceteris doctor` recognise it.
    pub fn start(
        request: &Request,
        prefix: &[String],
        (variable, marker): (String, String),
    ) -> std::io::Result<WorkerProcess> {
        use std::os::unix::process::CommandExt;
        let mut command = match prefix {
            [] => Command::new(std::env::current_exe()?),
            [program, words @ ..] => {
                let mut command = Command::new(program);
                command.args(words);
                command
            }
        };
        let mut child = command
            .arg("worker")
            .env(variable, marker)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C at the terminal is the conductor's to handle.
            .process_group(0)
            .spawn()?;
        let (heard_in, heard) = channel();
        let (complaints_in, complaints) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || hear(output, &heard_in));
        }
        if let Some(errors) = child.stderr.take() {
            std::thread::spawn(move || hear_complaints(errors, &complaints_in));
        }
        let mut input = child.stdin.take();
        if let Some(pipe) = input.as_mut() {
            let mut line = serde_json::to_vec(request).map_err(std::io::Error::other)?;
            line.push(b'\n');
            // A worker that is already dead is noticed when it is listened to.
            let _ = pipe.write_all(&line).and_then(|()| pipe.flush());
        }
        Ok(WorkerProcess { child, input, heard, complaints })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next thing it says, waiting no longer than `limit`.
    pub fn listen(&mut self, limit: Duration) -> Result<Reply, Silence> {
        match self.heard.recv_timeout(limit) {
            Ok(Heard::Reply(reply)) => Ok(*reply),
            Ok(Heard::Nonsense(line)) => {
                Err(Silence::Ended(format!("the worker said what is no reply: {line}")))
            }
            Err(RecvTimeoutError::Timeout) => Err(Silence::NotYet),
            Err(RecvTimeoutError::Disconnected) => {
                let how = match self.shut_down() {
                    Some(status) => describe(status),
                    None => "for no known reason".to_owned(),
                };
                let complaint: Vec<String> = self.complaints.try_iter().collect();
                let mut text = format!("the worker ended early ({how})");
                if !complaint.is_empty() {
                    text = format!("{text}: {}", complaint.join("; "));
                }
                Err(Silence::Ended(text))
            }
        }
    }

    /// Tells it to end, and after a limit ends it.
    pub fn end(mut self) {
        let _ = self.shut_down();
    }

    fn shut_down(&mut self) -> Option<ExitStatus> {
        drop(self.input.take());
        let limit = Instant::now() + END_LIMIT;
        while Instant::now() < limit {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Ok(ended) => return ended,
                Err(_) => return None,
            }
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.shut_down();
    }
}

fn hear(output: ChildStdout, heard: &Sender<Heard>) {
    // Bytes, not text: a line that is no UTF-8 is nonsense to be told of, not an end.
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let said = match serde_json::from_slice(&line) {
            Ok(reply) => Heard::Reply(Box::new(reply)),
            Err(_) => Heard::Nonsense(String::from_utf8_lossy(&line).chars().take(200).collect()),
        };
        if heard.send(said).is_err() {
            return;
        }
    }
}

fn hear_complaints(errors: ChildStderr, complaints: &Sender<String>) {
    for line in BufReader::new(errors).lines().map_while(Result::ok).take(100) {
        if complaints.send(line).is_err() {
            return;
        }
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "for no known reason".to_owned(),
    }
}
