//! One server process: started on a prepared directory, awaited until it answers, stopped.
//!
//! Both the preparation of data directories and the host placement go through here. Dropping a
//! [`Server`] kills it, so that no error path leaves one behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use rustix::process::{Pid, Signal};

use crate::command::{CommandLog, Invocation, full_disk, last_lines, missing_library, status_text};
use crate::error::PlaceError;
use crate::instance::{Endpoint, WRITE_LIMIT};
use crate::journal::{Journal, VARIABLE};
use crate::package::Package;
use crate::user::ServerUser;

/// How long a server may take until it answers.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// How long a server may take to shut down before it is killed.
pub(crate) const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Longest Unix socket path that the kernel takes, without its final zero.
const SOCKET_PATH_BYTES: usize = 107;

/// A server process and its private directory.
pub(crate) struct Server {
    dir: PathBuf,
    child: Child,
    ended: Option<ExitStatus>,
}

/// The private directory's socket.
pub(crate) fn socket_of(dir: &Path) -> PathBuf {
    dir.join("s")
}

/// Checks that a socket in `dir` can be named.
pub(crate) fn check_socket(dir: &Path) -> Result<(), PlaceError> {
    let path = socket_of(dir);
    if path.as_os_str().len() > SOCKET_PATH_BYTES {
        return Err(PlaceError::SocketPath { path });
    }
    Ok(())
}

/// The environment of everything that a package's programs are started with.
pub(crate) fn environment(
    package: &Package,
    journal: &Journal,
) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let mut env = package.env.clone();
    env.push((VARIABLE.into(), journal.marker().into()));
    env
}

impl Server {
    /// Starts the server on `dir/my.cnf`.
    pub fn start(
        package: &Package,
        dir: &Path,
        user: &ServerUser,
        journal: &Journal,
        log: &CommandLog,
    ) -> Result<Server, PlaceError> {
        check_socket(dir)?;
        let log_path = dir.join("error.log");
        // One file for what the loader, the option parser and the running server say. It is made
        // here because the server's own user must be able to open it again.
        let output = fs::File::options()
            .create(true)
            .append(true)
            .open(&log_path)
            .map_err(PlaceError::io("make", &log_path))?;
        user.own(&log_path)?;
        let invocation = Invocation::of(&package.mysqld)
            .path_option("defaults-file", &dir.join("my.cnf"))
            .bare()
            .env(&environment(package, journal))
            .user(user)
            .output(output)
            .server();
        let child = log.start(invocation)?;
        Ok(Server { dir: dir.to_owned(), child, ended: None })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a query is answered through the socket.
    pub fn await_ready(&mut self, endpoint: &Endpoint) -> Result<mysql::Conn, PlaceError> {
        let start = Instant::now();
        let mut nap = Duration::from_millis(5);
        let mut last = String::new();
        loop {
            if let Some(status) = self.poll() {
                return Err(self.refused(status));
            }
            if socket_of(&self.dir).exists() {
                match connect(endpoint) {
                    Ok(connection) => return Ok(connection),
                    // A wrong password never becomes right by waiting.
                    Err(mysql::Error::MySqlError(error)) if error.code == 1045 => {
                        return Err(PlaceError::sql("cannot log in to the new server")(
                            mysql::Error::MySqlError(error),
                        ));
                    }
                    Err(error) => last = error.to_string(),
                }
            }
            if start.elapsed() > READY_LIMIT {
                let mut lines = error_lines(&self.error_log());
                if !last.is_empty() {
                    lines.push(last);
                }
                return Err(PlaceError::NotReady { seconds: READY_LIMIT.as_secs(), lines });
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(100));
        }
    }

    /// How it ended, if it did.
    pub fn poll(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            // An error here would mean that somebody else reaped our child; then it has ended, but
            // nobody knows how, and the next query says so.
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// The error for a server that ended by itself.
    pub fn refused(&self, status: ExitStatus) -> PlaceError {
        let text = self.error_log();
        if let Some((program, library)) = missing_library(&text) {
            return PlaceError::MissingLibrary { program, library };
        }
        if full_disk(&text) {
            return PlaceError::DiskFull { path: self.dir.clone() };
        }
        PlaceError::Refused {
            status: status_text(status),
            lines: error_lines(&text),
            setting: None,
        }
    }

    /// Everything that the server has said.
    pub fn error_log(&self) -> String {
        let bytes = fs::read(self.dir.join("error.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Asks it to end, which every version understands as a complete shutdown, and kills it when
    /// it has not after `limit`. Tells how it ended.
    pub fn stop(&mut self, limit: Duration) -> ExitStatusOrNone {
        if self.poll().is_none() {
            self.signal(Signal::TERM);
        }
        let start = Instant::now();
        while self.poll().is_none() && start.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.poll().is_none() {
            self.kill();
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

    fn signal(&self, signal: Signal) {
        // The process is our child and not reaped, so that its id cannot be another's.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// `None` only where the system did not say how a process ended.
type ExitStatusOrNone = Option<ExitStatus>;

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A connection that has answered a query, with limits short enough for a server that hangs.
pub(crate) fn connect(endpoint: &Endpoint) -> Result<mysql::Conn, mysql::Error> {
    let mut connection = mysql::Conn::new(endpoint.opts_within(Duration::from_secs(10)))?;
    connection.query_drop("SELECT 1")?;
    drop(connection);
    mysql::Conn::new(endpoint.opts_within(WRITE_LIMIT))
}

/// The server's error lines, the last twenty; without one its last ten lines.
pub(crate) fn error_lines(log: &str) -> Vec<String> {
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("[ERROR]")).collect();
    if errors.is_empty() {
        return last_lines(log, 10);
    }
    errors[errors.len().saturating_sub(20)..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_own_error_lines_are_kept_and_its_chatter_is_not() {
        let log = "2026-01-01 0 [Note] Starting\n\
                   2026-01-01 0 [ERROR] mysqld: unknown variable 'nonsense=1'\n\
                   2026-01-01 0 [ERROR] Aborting\n\
                   2026-01-01 0 [Note] done\n";
        assert_eq!(error_lines(log).len(), 2);
        assert!(error_lines(log)[0].contains("nonsense"));
        assert_eq!(error_lines("a\n\nb\n"), ["a", "b"]);
    }

    #[test]
    fn a_socket_path_that_the_kernel_would_cut_is_refused() {
        assert!(check_socket(Path::new("/var/cache/ceteris/instances/0123abcd")).is_ok());
        let long = PathBuf::from("/").join("x".repeat(104));
        assert!(check_socket(&long).is_ok(), "exactly 108 with the final zero is not too long");
        let longer = PathBuf::from("/").join("x".repeat(105));
        let error = check_socket(&longer);
        assert!(
            matches!(&error, Err(error) if error.to_string().contains("108 bytes")),
            "{error:?}"
        );
    }
}
