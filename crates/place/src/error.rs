//! What can go wrong while a target is brought up, as values with a next step.
//!
//! Every message is one lower-case line; the server's own words follow it line by line. No variant
//! ever carries a password: commands are quoted by `command`, which has none to quote.

use std::io;
use std::path::{Path, PathBuf};

/// An error with, where there is one, the next step.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The study names a package that nobody knows.
    #[error("there is no server package `{name}`")]
    UnknownPackage {
        /// As given.
        name: String,
        /// Names that would do.
        known: Vec<String>,
    },
    /// The package is real but another placement's.
    #[error("`{name}` needs a Docker or Kubernetes placement, not the host")]
    NeedsContainer {
        /// As given.
        name: String,
    },
    /// A package cannot be used on this machine.
    #[error("package `{name}` cannot be used here: {why}")]
    Unusable {
        /// As given.
        name: String,
        /// One line.
        why: String,
        /// The next step.
        next: Option<String>,
    },
    /// An external program is not installed.
    #[error("`{program}` is needed to {purpose} and was not found")]
    NoProgram {
        /// The program's name.
        program: String,
        /// What it would have done.
        purpose: String,
        /// Debian package that brings it.
        debian: String,
    },
    /// What was fetched is not what the catalogue pins.
    #[error("{what} has SHA-256 {found}, the catalogue expects {expected}; nothing was kept")]
    WrongHash {
        /// File name.
        what: String,
        /// Pinned, hexadecimal.
        expected: String,
        /// Found, hexadecimal.
        found: String,
    },
    /// The file system is full.
    #[error("no space left on the file system of {}", .path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// An external command failed.
    #[error("`{command}` failed ({status}){}", said(.lines))]
    Command {
        /// Quoted for a shell.
        command: String,
        /// Exit status.
        status: String,
        /// Its last words.
        lines: Vec<String>,
    },
    /// A program lacks a shared library.
    #[error("{program} cannot start: shared library {library} is missing")]
    MissingLibrary {
        /// The program.
        program: String,
        /// The library's file name.
        library: String,
    },
    /// The server ended instead of starting.
    #[error("the server refused to start ({status}){}", said(.lines))]
    Refused {
        /// How it ended.
        status: String,
        /// Its own error lines.
        lines: Vec<String>,
        /// The study's setting that these lines name, where recognisable.
        setting: Option<String>,
    },
    /// The server runs and does not answer.
    #[error("the server did not answer a query within {seconds} s{}", said(.lines))]
    NotReady {
        /// The limit.
        seconds: u64,
        /// Its own error lines, or the client's error.
        lines: Vec<String>,
    },
    /// The server did not end as a clean shutdown ends.
    #[error("the server did not shut down cleanly ({status}){}", said(.lines))]
    NotStopped {
        /// How it ended.
        status: String,
        /// Its own error lines.
        lines: Vec<String>,
    },
    /// A setting that ceteris itself must decide.
    #[error("server.config.{name} cannot be set: {why}")]
    Setting {
        /// The setting.
        name: String,
        /// One line.
        why: String,
    },
    /// A Unix socket's path would not fit into the kernel's structure.
    #[error("the socket path {} has {} bytes, the kernel allows 107", .path.display(), .path.as_os_str().len())]
    SocketPath {
        /// The path.
        path: PathBuf,
    },
    /// The unprivileged server user cannot reach a file.
    #[error("user `{user}`, which runs the server, cannot reach {}: {} is closed to it", .path.display(), .closed.display())]
    Unreachable {
        /// The user.
        user: String,
        /// What it must reach.
        path: PathBuf,
        /// The directory or file that stops it.
        closed: PathBuf,
    },
    /// A clone does not hold the bytes of its snapshot.
    #[error("the clone's hash {clone} differs from its snapshot's {snapshot}")]
    CloneDiffers {
        /// Hash of the clone.
        clone: String,
        /// Hash of the snapshot.
        snapshot: String,
        /// Directory of the snapshot.
        path: PathBuf,
    },
    /// A statement of ceteris's own failed.
    #[error("{what}: {source}")]
    Sql {
        /// What was being done; never the statement, which may hold a password.
        what: String,
        /// The client's error.
        source: Box<mysql::Error>,
    },
    /// The operating system refused something.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// A verb.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A container engine, an emulator or a cluster would not, in its own words.
    #[error("{what}{}", said(.lines))]
    Engine {
        /// What could not be done.
        what: String,
        /// The engine's own words.
        lines: Vec<String>,
        /// The next step.
        next: Option<String>,
    },
    /// A limit or setting of the study that this machine cannot give; without it the level would be
    /// another condition.
    #[error("cannot set {what}: {why}")]
    Limit {
        /// What the study asks for.
        what: String,
        /// One line.
        why: String,
        /// The next step.
        next: Option<String>,
    },
    /// One of several instances did not come up.
    #[error("instance {ordinal} of {count}: {error}")]
    Instance {
        /// Which, from 0.
        ordinal: u32,
        /// Of how many.
        count: u32,
        /// Why.
        error: Box<PlaceError>,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// `: line` for one line, an indented list for several.
fn said(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        [line] => format!(": {line}"),
        lines => lines.iter().map(|line| format!("\n  {line}")).collect(),
    }
}

/// Debian packages of libraries that server builds often want and small machines often lack.
const LIBRARIES: [(&str, &str); 7] = [
    ("libaio.so", "libaio1 (or libaio1t64)"),
    ("libnuma.so", "libnuma1"),
    ("libncurses.so.5", "libncurses5"),
    ("libtinfo.so.5", "libtinfo5"),
    ("libncurses.so.6", "libncurses6"),
    ("libcrypt.so.1", "libcrypt1"),
    ("liburing.so", "liburing2"),
];

impl PlaceError {
    /// The next step for the reader, shown as a `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            PlaceError::UnknownPackage { known, .. } => Some(format!(
                "known are {}, a directory (/opt/mysql-8.4.3) or an archive (./mysql.tar.xz)",
                known.join(", ")
            )),
            PlaceError::NeedsContainer { .. } => {
                Some("name a catalogue package, `installed`, a directory or an archive".into())
            }
            PlaceError::Unusable { next, .. } => next.clone(),
            PlaceError::NoProgram { debian, .. } => Some(format!("apt-get install {debian}")),
            PlaceError::WrongHash { .. } => Some(
                "the download was damaged or altered; remove it from the client's own cache and \
                 fetch again"
                    .into(),
            ),
            PlaceError::DiskFull { .. } => {
                Some("free some space, or set CETERIS_CACHE to a directory on a larger disk".into())
            }
            PlaceError::Command { .. } | PlaceError::NotReady { .. } => None,
            PlaceError::MissingLibrary { library, .. } => {
                Some(match LIBRARIES.iter().find(|(prefix, _)| library.starts_with(prefix)) {
                    Some((_, debian)) => format!("apt-get install {debian}"),
                    None => format!("find its Debian package with `apt-file search {library}`"),
                })
            }
            PlaceError::Refused { setting, .. } => {
                setting.as_ref().map(|name| format!("look at server.config.{name} in the study"))
            }
            PlaceError::NotStopped { .. } => None,
            PlaceError::Setting { .. } => Some("remove it from server.config".into()),
            PlaceError::SocketPath { .. } => {
                Some("set CETERIS_CACHE to a directory with a shorter path".into())
            }
            PlaceError::Unreachable { closed, .. } => Some(format!(
                "chmod o+rx {}, or use a place that other users may enter",
                closed.display()
            )),
            PlaceError::CloneDiffers { path, .. } => {
                Some(format!("the snapshot is damaged; remove {} and run again", path.display()))
            }
            PlaceError::Sql { .. } => None,
            PlaceError::Io { source, .. } => (source.kind() == io::ErrorKind::PermissionDenied)
                .then(|| "run as root, or set CETERIS_CACHE to a directory of your own".into()),
            PlaceError::Engine { next, .. } | PlaceError::Limit { next, .. } => next.clone(),
            PlaceError::Instance { error, .. } => error.hint(),
            PlaceError::Other(_) => None,
        }
    }

    /// Wraps an operating system error; a full disk gets its own variant.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PlaceError {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                PlaceError::DiskFull { path }
            }
            _ => PlaceError::Io { what, path, source },
        }
    }

    /// Wraps a client error; `what` must not hold the statement.
    pub(crate) fn sql(what: impl Into<String>) -> impl FnOnce(mysql::Error) -> PlaceError {
        let what = what.into();
        move |source| PlaceError::Sql { what, source: Box::new(source) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_from_other_refusals() {
        let full = io::Error::from_raw_os_error(28);
        let error = PlaceError::io("write", Path::new("/somewhere"))(full);
        assert_eq!(error.to_string(), "no space left on the file system of /somewhere");
        assert!(error.hint().unwrap().contains("CETERIS_CACHE"));
        let denied = io::Error::from_raw_os_error(13);
        let error = PlaceError::io("write", Path::new("/somewhere"))(denied);
        assert!(matches!(error, PlaceError::Io { .. }));
    }

    #[test]
    fn a_missing_library_names_its_debian_package() {
        let error =
            PlaceError::MissingLibrary { program: "mysqld".into(), library: "libaio.so.1".into() };
        assert_eq!(error.hint().unwrap(), "apt-get install libaio1 (or libaio1t64)");
    }
}
