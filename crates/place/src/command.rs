//! Every external command, run in one place and recorded as a person would type it.
//!
//! `invocation` says what a command is and starts it; here it is awaited, its words are collected
//! and its failure becomes an error. Passwords never come through here: they travel over private
//! sockets only.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::PlaceError;
pub(crate) use crate::invocation::{Invocation, Writing};

/// One command as it was run.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedCommand {
    /// Start, nanoseconds since the Unix epoch.
    pub at_unix_ns: i64,
    /// Quoted for a shell; never holds a password.
    pub command: String,
    /// Milliseconds until it ended; `None` for one that goes on running.
    pub took_ms: Option<f64>,
    /// Exit status, `0` or `signal 9`.
    pub status: Option<String>,
}

/// A shared list of commands.
#[derive(Clone, Debug, Default)]
pub struct CommandLog {
    entries: Arc<Mutex<Vec<LoggedCommand>>>,
}

/// What a command that ended said.
pub(crate) struct Said {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// As it was logged.
    pub command: String,
}

impl CommandLog {
    /// Takes what has been recorded since the last call.
    pub fn drain(&self) -> Vec<LoggedCommand> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<LoggedCommand>> {
        match self.entries.lock() {
            Ok(entries) => entries,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Starts a command that goes on running.
    pub(crate) fn start(&self, mut invocation: Invocation) -> Result<Child, PlaceError> {
        let command = invocation.quoted();
        let at_unix_ns = unix_ns();
        let spawned = invocation.spawn();
        let status = spawned.as_ref().err().map(|error| error.to_string());
        self.lock().push(LoggedCommand { at_unix_ns, command, took_ms: None, status });
        spawned.map_err(PlaceError::io("run", invocation.program()))
    }

    /// Does by itself what `command` would do, and records it as that.
    pub(crate) fn did(
        &self,
        command: String,
        work: impl FnOnce() -> Result<(), PlaceError>,
    ) -> Result<(), PlaceError> {
        let at_unix_ns = unix_ns();
        let start = Instant::now();
        let done = work();
        let took_ms = Some(start.elapsed().as_secs_f64() * 1e3);
        let status = done.as_ref().map_or_else(ToString::to_string, |()| "0".to_owned());
        self.lock().push(LoggedCommand { at_unix_ns, command, took_ms, status: Some(status) });
        done
    }

    /// Runs a command to its end, whatever that is. `tick` is called several times a second.
    pub(crate) fn run_watched(
        &self,
        mut invocation: Invocation,
        mut tick: impl FnMut(),
    ) -> Result<Said, PlaceError> {
        let command = invocation.quoted();
        let at_unix_ns = unix_ns();
        let start = Instant::now();
        let ended = invocation.spawn().and_then(|mut child| {
            let stdout = child.stdout.take().map(collect);
            let stderr = child.stderr.take().map(collect);
            let feeder = invocation.take_feed().zip(child.stdin.take()).map(feed);
            let mut nap = Duration::from_millis(1);
            let status = loop {
                if let Some(status) = child.try_wait()? {
                    break status;
                }
                std::thread::sleep(nap);
                nap = (nap * 2).min(Duration::from_millis(100));
                tick();
            };
            // A command that failed has the better story than the pipe that it closed.
            let fed = feeder.map_or(Ok(()), |feeder| feeder.join().unwrap_or(Ok(())));
            if status.success() {
                fed?;
            }
            Ok((status, joined(stdout), joined(stderr)))
        });
        let status = match &ended {
            Ok((status, ..)) => status_text(*status),
            Err(error) => error.to_string(),
        };
        let took_ms = Some(start.elapsed().as_secs_f64() * 1e3);
        let entry = LoggedCommand { at_unix_ns, command, took_ms, status: Some(status) };
        let command = entry.command.clone();
        self.lock().push(entry);
        let (status, stdout, stderr) =
            ended.map_err(PlaceError::io("run", invocation.program()))?;
        Ok(Said { status, stdout, stderr, command })
    }

    /// Runs a command that must succeed. `writes` is where it writes, named if the disk is full.
    pub(crate) fn run(&self, invocation: Invocation, writes: &Path) -> Result<Said, PlaceError> {
        self.run_watched(invocation, || ())?.success(writes)
    }
}

impl Said {
    /// Whether the command succeeded.
    pub fn fine(&self) -> bool {
        self.status.success()
    }

    /// Itself if the command succeeded.
    pub fn success(self, writes: &Path) -> Result<Said, PlaceError> {
        if self.status.success() {
            return Ok(self);
        }
        let words = format!("{}\n{}", self.stdout, self.stderr);
        if full_disk(&words) {
            return Err(PlaceError::DiskFull { path: writes.to_owned() });
        }
        if let Some((program, library)) = missing_library(&words) {
            return Err(PlaceError::MissingLibrary { program, library });
        }
        Err(PlaceError::Command {
            command: self.command,
            status: status_text(self.status),
            lines: last_lines(&words, 10),
        })
    }
}

/// Writes standard input on a thread of its own, so that a command may talk before it has heard all.
fn feed((write, mut pipe): (Writing, ChildStdin)) -> std::thread::JoinHandle<std::io::Result<()>> {
    std::thread::spawn(move || write(&mut pipe))
}

/// Reads a pipe to its end on a thread of its own, so that a talkative child never blocks.
fn collect(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

fn joined(reader: Option<std::thread::JoinHandle<Vec<u8>>>) -> String {
    let bytes = reader.and_then(|handle| handle.join().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `program` and `library` of the dynamic loader's complaint.
pub(crate) fn missing_library(words: &str) -> Option<(String, String)> {
    const COMPLAINT: &str = ": error while loading shared libraries: ";
    let line = words.lines().find(|line| line.contains(COMPLAINT))?;
    let (program, rest) = line.split_once(COMPLAINT)?;
    let library = rest.split(':').next()?.trim();
    Some((program.trim().to_owned(), library.to_owned()))
}

/// Whether a program or a server complains of a full disk.
pub(crate) fn full_disk(words: &str) -> bool {
    ["No space left on device", "Disk quota exceeded", "OS errno 28", "failed with error 28"]
        .iter()
        .any(|complaint| words.contains(complaint))
}

/// The last `count` lines that say something.
pub(crate) fn last_lines(words: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].iter().map(|line| (*line).to_owned()).collect()
}

/// `0`, `1` or `signal 9`.
pub(crate) fn status_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// Where a program is, by `PATH` and the system directories that a user's `PATH` often lacks.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut directories: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect();
    if directories.is_empty() {
        return None;
    }
    directories.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    directories.into_iter().map(|directory| directory.join(name)).find(|path| executable(path))
}

/// A file that somebody may execute.
pub(crate) fn executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::ffi::OsString;
    use std::process::Command;

    #[test]
    fn a_logged_command_can_be_pasted_into_a_shell() {
        let log = CommandLog::default();
        let words = ["a b", "it's", "$HOME", "", "plain-word=/x"];
        let said =
            log.run(Invocation::new("printf").arg("<%s>").args(words), Path::new("/")).unwrap();
        assert_eq!(said.stdout, "<a b><it's><$HOME><><plain-word=/x>");
        let logged = log.drain();
        assert_eq!(logged.len(), 1);
        assert_eq!(logged[0].status.as_deref(), Some("0"));
        assert!(logged[0].took_ms.is_some());
        let again = Command::new("sh").arg("-c").arg(&logged[0].command).output().unwrap();
        assert_eq!(String::from_utf8(again.stdout).unwrap(), said.stdout);
        assert!(log.drain().is_empty());
    }

    #[test]
    fn a_failed_command_carries_its_words_and_a_full_disk_its_own_error() {
        let log = CommandLog::default();
        let sh = |script: &str| Invocation::new("sh").arg("-c").arg(script);
        let error = log.run(sh("echo oh dear >&2; exit 3"), Path::new("/")).err().unwrap();
        assert_eq!(error.to_string(), "`sh -c 'echo oh dear >&2; exit 3'` failed (3): oh dear");
        let full = "echo 'cp: x: No space left on device' >&2; exit 1";
        let error = log.run(sh(full), Path::new("/there")).err().unwrap();
        assert!(matches!(error, PlaceError::DiskFull { path } if path == Path::new("/there")));
        let loader = "echo 'm: error while loading shared libraries: libaio.so.1: cannot open' \
                      >&2; exit 127";
        let error = log.run(sh(loader), Path::new("/")).err().unwrap();
        assert!(
            matches!(error, PlaceError::MissingLibrary { library, .. } if library == "libaio.so.1")
        );
        let statuses: Vec<_> = log.drain().into_iter().filter_map(|entry| entry.status).collect();
        assert_eq!(statuses, ["3", "1", "127"]);
    }

    #[test]
    fn a_command_is_fed_while_it_talks() {
        let log = CommandLog::default();
        let many = "x".repeat(3 << 20);
        let sent = many.clone();
        let cat = Invocation::new("cat").fed("yes x", move |pipe| pipe.write_all(sent.as_bytes()));
        assert_eq!(log.run(cat, Path::new("/")).unwrap().stdout, many);
        assert_eq!(log.drain()[0].command, "yes x | cat");
        let broken = Invocation::new("cat").fed("nothing", |_| Err(std::io::Error::other("oh")));
        let error = log.run(broken, Path::new("/")).err().unwrap();
        assert!(error.to_string().contains("oh"), "{error}");
        let deaf = Invocation::new("false").fed("nothing", |_| Err(std::io::Error::other("oh")));
        let error = log.run(deaf, Path::new("/")).err().unwrap();
        assert!(matches!(error, PlaceError::Command { .. }), "{error}");
    }

    #[test]
    fn a_bare_command_sees_nothing_of_our_environment() {
        let log = CommandLog::default();
        let env = [(OsString::from("CETERIS_TEST"), OsString::from("1"))];
        let said = log.run(Invocation::new("env").bare().env(&env), Path::new("/")).unwrap();
        let mut names: Vec<_> =
            said.stdout.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["CETERIS_TEST", "PATH"]);
    }
}
