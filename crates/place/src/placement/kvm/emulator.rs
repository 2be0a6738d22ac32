//! A QEMU process: started in a private directory, watched by what it says, ended.
//!
//! What a guest says on its console is the only word about a boot that failed, so every end of a
//! guest is told with it. Dropping an [`Emulator`] kills it.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use crate::command::{CommandLog, Invocation, full_disk, last_lines, status_text};
use crate::error::PlaceError;
use crate::journal::{Journal, VARIABLE};
use crate::server::error_lines;
use crate::user::ServerUser;

/// How long QEMU may take until its sockets are there: it makes them before the guest runs.
const SOCKET_LIMIT: Duration = Duration::from_secs(30);
/// What a guest's own lines begin with.
const MARK: &str = "ceteris: ";
/// What a kernel says when it gives up.
const PANIC: &str = "Kernel panic";
/// Lines of a console that are told.
const CONSOLE_LINES: usize = 10;

/// A running QEMU.
pub(super) struct Emulator {
    dir: PathBuf,
    child: Child,
    ended: Option<ExitStatus>,
}

/// How a guest ended, by its console.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its server, or what was run instead, ended with this status.
    Server(String),
    /// It could not start the server at all.
    CannotStart(String),
    /// Its kernel gave up.
    Panic,
    /// It never said.
    Silent,
}

impl Emulator {
    /// Starts QEMU in `dir`, as `user` or as ourselves.
    pub fn start(
        command: Invocation,
        dir: &Path,
        user: Option<&ServerUser>,
        journal: &Journal,
        log: &CommandLog,
    ) -> Result<Emulator, PlaceError> {
        let words = dir.join("qemu.log");
        let output = fs::File::create(&words).map_err(PlaceError::io("make", &words))?;
        let marker = [(VARIABLE.into(), journal.marker().into())];
        let mut command = command.bare().env(&marker).output(output).server();
        if let Some(user) = user {
            command = command.user(user);
        }
        let child = log.start(command)?;
        Ok(Emulator { dir: dir.to_owned(), child, ended: None })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub fn poll(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Waits until it has ended by itself.
    pub fn await_end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while self.poll().is_none() && start.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.ended
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        if self.poll().is_none() {
            // Both can only fail for a child that is gone.
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
    }

    /// Connects to one of its sockets.
    pub fn connect(&mut self, name: &str) -> Result<UnixStream, PlaceError> {
        let path = self.dir.join(name);
        let start = Instant::now();
        loop {
            if let Some(status) = self.poll() {
                return Err(self.failure(status));
            }
            match UnixStream::connect(&path) {
                Ok(stream) => return Ok(stream),
                Err(error) if start.elapsed() > SOCKET_LIMIT => {
                    return Err(PlaceError::io("connect to", &path)(error));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Whether the guest has come as far as starting the server.
    pub fn booted(&self) -> bool {
        self.console().lines().any(|line| line.contains("ceteris: starting the "))
    }

    /// Whether a guest without a server has come to its end.
    pub fn tried(&self) -> bool {
        self.console().lines().any(|line| line.ends_with("ceteris: booted"))
    }

    /// What the guest said on its console.
    fn console(&self) -> String {
        self.read("console.log")
    }

    /// The last lines of the console; without any, that there was none.
    pub fn last_words(&self) -> Vec<String> {
        let lines = last_lines(&self.console().replace('\r', ""), CONSOLE_LINES);
        match lines.is_empty() {
            true => vec!["it said nothing on its console".to_owned()],
            false => lines,
        }
    }

    /// The server's error log, as far as it was sent.
    pub fn error_log(&self) -> String {
        self.read("error.log")
    }

    /// The error for a guest that ended by itself, with this status of QEMU.
    pub fn failure(&self, status: ExitStatus) -> PlaceError {
        let text = self.error_log();
        match end_of(&self.console()) {
            End::Server(_) if full_disk(&text) => PlaceError::Engine {
                what: "the guest's data disk is full".to_owned(),
                lines: error_lines(&text),
                next: None,
            },
            End::Server(status) => {
                PlaceError::Refused { status, lines: error_lines(&text), setting: None }
            }
            End::CannotStart(why) => PlaceError::Engine {
                what: format!("the guest cannot start the server: {why}"),
                lines: Vec::new(),
                next: None,
            },
            End::Panic => PlaceError::Engine {
                what: "the guest's kernel panicked".to_owned(),
                lines: panic_lines(&self.console()),
                next: Some("give the guest more memory, or another placement.kvm.machine".into()),
            },
            End::Silent => {
                let words = last_lines(&self.read("qemu.log"), CONSOLE_LINES);
                let lines = if words.is_empty() { self.last_words() } else { words };
                let what = format!("QEMU ended ({})", status_text(status));
                // By itself and without an error: the guest has turned itself off.
                let next =
                    status.success().then(|| "does the guest have enough memory?".to_owned());
                PlaceError::Engine { what, lines, next }
            }
        }
    }

    /// How the server inside ended, if it was the server that ended the guest.
    pub fn server_status(&self) -> Option<String> {
        match end_of(&self.console()) {
            End::Server(status) => Some(status),
            _ => None,
        }
    }

    fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.dir.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The kernel's panic and what it said just before.
fn panic_lines(console: &str) -> Vec<String> {
    let lines: Vec<&str> = console.lines().map(str::trim_end).collect();
    let at = lines.iter().position(|line| line.contains(PANIC)).unwrap_or(0);
    let told = lines.get(at.saturating_sub(4)..=at).unwrap_or_default();
    told.iter().filter(|line| !line.is_empty()).map(|line| (*line).to_owned()).collect()
}

/// The end that a console tells of.
pub(super) fn end_of(console: &str) -> End {
    for line in console.lines().map(str::trim_end) {
        let Some((_, said)) = line.split_once(MARK) else { continue };
        if let Some((_, status)) = said.split_once(" ended with status ") {
            // A shell adds 128 to the number of a signal.
            let signal = status.parse::<u32>().ok().and_then(|status| status.checked_sub(128));
            return End::Server(match signal {
                Some(signal) if signal > 0 => format!("signal {signal}"),
                _ => status.to_owned(),
            });
        }
        if let Some(why) = said.strip_prefix("cannot start: ") {
            return End::CannotStart(why.to_owned());
        }
    }
    match console.contains(PANIC) {
        true => End::Panic,
        false => End::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_tells_how_the_guest_ended() {
        let server = |status: &str| {
            end_of(&format!(
                "[ 1.0] x\r\nceteris: the server ended with status {status}\r\nbye\r\n"
            ))
        };
        assert_eq!(server("0"), End::Server("0".to_owned()));
        assert_eq!(server("137"), End::Server("signal 9".to_owned()));
        let disk = "ceteris: cannot start: no data disk: \r\n";
        assert_eq!(end_of(disk), End::CannotStart("no data disk:".to_owned()));
        assert_eq!(end_of("[ 0.1] Kernel panic - not syncing: VFS\n"), End::Panic);
        assert_eq!(end_of("ceteris: starting the server\n"), End::Silent);
        assert_eq!(panic_lines("a\r\nKernel panic - x\r\nb\r\n"), ["a", "Kernel panic - x"]);
    }
}
