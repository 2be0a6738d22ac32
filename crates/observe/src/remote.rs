//! The observer that stands where a server does, when that is a machine of its own (a guest): the
//! serving side runs there as `ceteris observe`, the client here.
//!
//! One JSON object a line each way over any two-way channel; the client asks, the other side answers
//! in order. `{"fingerprint":{...}}` and `{"watch":{...}}` name the server's data directory and the
//! file in which its process id stands; `{"sample":{}}` takes one sample of what is watched. The
//! names are the ones of this machine's own observers; the client puts `guest` before them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sampler::{Reading, Watching};
use crate::{Fingerprint, SamplerTarget, host_fingerprint};

/// How long an answer may take: much longer than reading a few small files on a busy machine does.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// What stands before the names of everything that is seen inside.
const PREFIX: &str = "guest";

/// Where the server is, over there.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Place {
    data_dir: PathBuf,
    pid_file: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Fingerprint(Place),
    Watch(Place),
    Sample {},
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Fingerprint(Fingerprint),
    Watching {},
    Sample { readings: Vec<Reading>, problems: Vec<String> },
    Error(String),
}

impl Place {
    fn pid(&self) -> Option<u32> {
        std::fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok()
    }
}

/// Answers requests until the channel ends.
///
/// # Errors
/// The channel's.
pub fn serve(reader: impl Read, mut writer: impl Write) -> io::Result<()> {
    let mut watched: Option<Watching> = None;
    for line in BufReader::new(reader).lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(request) => answer(request, &mut watched),
            Err(error) => Answer::Error(format!("not a request: {error}")),
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        writer.write_all(text.as_bytes())?;
        writer.flush()?;
    }
    Ok(())
}

fn answer(request: Request, watched: &mut Option<Watching>) -> Answer {
    match request {
        Request::Fingerprint(place) => {
            Answer::Fingerprint(host_fingerprint(&place.data_dir, place.pid()))
        }
        Request::Watch(place) => {
            let target = SamplerTarget {
                name: "server".to_owned(),
                pid: place.pid(),
                data_dir: Some(place.data_dir),
                connection: None,
                inside: None,
            };
            *watched = Some(Watching::start(target));
            Answer::Watching {}
        }
        Request::Sample {} => match watched {
            Some(watching) => {
                let (readings, problems) = watching.sample();
                Answer::Sample { readings, problems }
            }
            None => Answer::Error("nothing is watched yet".to_owned()),
        },
    }
}

/// The client: asks an observer that runs elsewhere. Clones share one channel.
///
/// Nothing waits longer than a limit: a channel that has failed once is not used again, because what
/// comes over it later could answer an earlier question.
#[derive(Clone)]
pub struct Remote {
    place: Place,
    line: Arc<Mutex<Line>>,
}

/// The two ends of the thread that owns the channel, until it fails.
struct Line {
    requests: Sender<String>,
    answers: Receiver<io::Result<String>>,
    failed: Option<String>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Remote {
    /// An observer at the other end of `channel`, beside a server whose private directory is
    /// `instance_dir` over there: its `data`, and its process id in `pid`.
    ///
    /// # Errors
    /// When no thread can be started for it.
    pub fn new(
        channel: impl Read + Write + Send + 'static,
        instance_dir: &Path,
    ) -> io::Result<Remote> {
        let place =
            Place { data_dir: instance_dir.join("data"), pid_file: instance_dir.join("pid") };
        Ok(Remote { place, line: Arc::new(Mutex::new(Line::over(channel)?)) })
    }

    /// As [`host_fingerprint`] there, every name below `guest.`.
    ///
    /// # Errors
    /// One line: what the other side said, or that it said nothing in time.
    pub fn fingerprint(&self) -> Result<Fingerprint, String> {
        match self.ask(&Request::Fingerprint(self.place.clone()))? {
            Answer::Fingerprint(facts) => {
                Ok(facts.into_iter().map(|(name, v)| (format!("{PREFIX}.{name}"), v)).collect())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Begins to watch: rates count from here.
    pub(crate) fn watch(&self) -> Result<(), String> {
        match self.ask(&Request::Watch(self.place.clone()))? {
            Answer::Watching {} => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// One sample of what is watched, and what went wrong there.
    pub(crate) fn sample(&self) -> Result<(Vec<Reading>, Vec<String>), String> {
        match self.ask(&Request::Sample {})? {
            Answer::Sample { readings, problems } => Ok((readings, problems)),
            other => Err(unexpected(&other)),
        }
    }

    /// What stands before the series of the target `name`: `guest` for `server`, `guest.1` for
    /// `server.1`.
    pub(crate) fn prefix(name: &str) -> String {
        match name.strip_prefix("server") {
            Some(ordinal) => format!("{PREFIX}{ordinal}"),
            None => format!("{PREFIX}.{name}"),
        }
    }

    fn ask(&self, request: &Request) -> Result<Answer, String> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).ask(request, ANSWER_LIMIT)
    }
}

fn unexpected(answer: &Answer) -> String {
    match answer {
        Answer::Error(message) => format!("the observer inside said: {message}"),
        _ => "the observer inside answered something else than was asked".to_owned(),
    }
}

impl Line {
    /// Leaves the channel to a thread of its own, because a read of it may never return; the thread
    /// ends when the channel does, or with its client.
    fn over(stream: impl Read + Write + Send + 'static) -> io::Result<Line> {
        let (requests, to_send) = channel::<String>();
        let (heard, answers) = channel();
        std::thread::Builder::new().name("observer".to_owned()).spawn(move || {
            let mut stream = BufReader::new(stream);
            while let Ok(request) = to_send.recv() {
                let answer = exchange(&mut stream, &request);
                let failed = answer.is_err();
                if heard.send(answer).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Line { requests, answers, failed: None })
    }

    fn ask(&mut self, request: &Request, limit: Duration) -> Result<Answer, String> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let line = serde_json::to_string(request).map_err(|error| error.to_string())?;
        let gone = || "the observer inside is gone".to_owned();
        let answer = match self.requests.send(line + "\n") {
            Err(_) => Err(gone()),
            Ok(()) => match self.answers.recv_timeout(limit) {
                Ok(Ok(line)) => serde_json::from_str(&line)
                    .map_err(|error| format!("the observer inside does not make sense: {error}")),
                Ok(Err(error)) => Err(format!("the observer inside is gone: {error}")),
                Err(RecvTimeoutError::Disconnected) => Err(gone()),
                Err(RecvTimeoutError::Timeout) => {
                    Err(format!("the observer inside did not answer within {} s", limit.as_secs()))
                }
            },
        };
        if let Err(why) = &answer {
            self.failed = Some(why.clone());
        }
        answer
    }
}

fn exchange(stream: &mut BufReader<impl Read + Write>, request: &str) -> io::Result<String> {
    stream.get_mut().write_all(request.as_bytes())?;
    stream.get_mut().flush()?;
    let mut answer = String::new();
    match stream.read_line(&mut answer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::net::UnixStream;

    /// An observer of this machine at the other end of a socket, and the server's directory.
    fn observed() -> (Remote, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        std::fs::write(dir.path().join("pid"), format!("{}\n", std::process::id())).unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        std::thread::spawn(move || serve(there.try_clone().unwrap(), there));
        (Remote::new(here, dir.path()).unwrap(), dir)
    }

    #[test]
    fn what_is_seen_inside_is_what_is_seen_here_under_another_name() {
        let (remote, dir) = observed();
        let inside = remote.fingerprint().unwrap();
        let here = host_fingerprint(&dir.path().join("data"), Some(std::process::id()));
        let expected: Fingerprint =
            here.into_iter().map(|(name, v)| (format!("guest.{name}"), v)).collect();
        assert!(expected.contains_key("guest.host.kernel.release"));
        assert!(expected.contains_key("guest.host.process.nice"));
        assert_eq!(inside, expected);
    }

    #[test]
    fn samples_need_a_watch_and_carry_rates_from_the_second_on() {
        let (remote, _dir) = observed();
        let refused = remote.sample().unwrap_err();
        assert_eq!(refused, "the observer inside said: nothing is watched yet");
        remote.watch().unwrap();
        let names = || -> Vec<String> {
            remote.sample().unwrap().0.into_iter().map(|reading| reading.name).collect()
        };
        let first = names();
        assert!(first.contains(&"server.memory.resident".to_owned()), "{first:?}");
        assert!(!first.contains(&"server.cpu.user".to_owned()), "{first:?}");
        assert!(names().contains(&"server.cpu.user".to_owned()));
    }

    #[test]
    fn one_that_is_silent_or_gone_or_babbles_is_an_error_and_stays_one() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut line = Line::over(here).unwrap();
        let error = line.ask(&Request::Sample {}, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error, "the observer inside did not answer within 0 s");
        drop(there);
        assert_eq!(line.ask(&Request::Sample {}, Duration::from_secs(9)).unwrap_err(), error);

        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        let mut line = Line::over(here).unwrap();
        let error = line.ask(&Request::Sample {}, Duration::from_secs(9)).unwrap_err();
        assert!(error.starts_with("the observer inside is gone"), "{error}");

        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"Kernel panic\n").unwrap();
        let mut line = Line::over(here).unwrap();
        let error = line.ask(&Request::Sample {}, Duration::from_secs(9)).unwrap_err();
        assert!(error.starts_with("the observer inside does not make sense"), "{error}");
    }

    #[test]
    fn a_line_that_is_no_request_is_answered_and_the_next_is_heard() {
        let mut said = Vec::new();
        serve(&b"hello\n{\"sample\":{}}\n"[..], &mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("{\"error\":\"not a request"), "{said}");
        assert_eq!(lines[1], "{\"error\":\"nothing is watched yet\"}");
    }

    #[test]
    fn series_of_several_guests_keep_their_numbers() {
        assert_eq!(Remote::prefix("server"), "guest");
        assert_eq!(Remote::prefix("server.1"), "guest.1");
    }
}
