//! Why a drive could not be done.

use std::io;

use rustix::io::Errno;
use wire::{DecodeError, ServerError};

use crate::descriptors::{RanOut, ran_out};
use crate::spec::Address;
use crate::tls::TlsError;

/// Why a drive could not be done. No message holds a password.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// What was asked makes no sense.
    #[error("cannot drive: {0}")]
    Spec(&'static str),
    /// The server cannot be reached.
    #[error("cannot connect to {address}")]
    Connect {
        /// Where.
        address: Address,
        /// Why.
        source: io::Error,
    },
    /// File descriptors have run out.
    #[error("no file descriptor is left for another connection")]
    Descriptors {
        /// How many the whole process needs for this drive.
        needed: u64,
        /// How many it may have; `None` without a limit.
        limit: Option<u64>,
        /// EMFILE, or ENFILE where it is the machine that has no more.
        source: io::Error,
    },
    /// The server turned the connection down.
    #[error("{address} refused the connection of user {user:?}")]
    Refused {
        /// Where.
        address: Address,
        /// Who.
        user: String,
        /// In the server's words.
        source: ServerError,
    },
    /// The server asks for an authentication that is not possible here.
    #[error("cannot log in to {address} as {user:?} by {plugin}: {reason}")]
    Authentication {
        /// Where.
        address: Address,
        /// Who.
        user: String,
        /// Authentication plug-in that the server asked for.
        plugin: String,
        /// Why not.
        reason: String,
    },
    /// The connection cannot be encrypted as asked.
    #[error("cannot encrypt the connection to {address}")]
    Tls {
        /// Where.
        address: Address,
        /// Why.
        source: TlsError,
    },
    /// The server does not accept a statement of the workload.
    #[error("{address} cannot prepare {statement:?}")]
    Prepare {
        /// Where.
        address: Address,
        /// Its text.
        statement: String,
        /// In the server's words.
        source: ServerError,
    },
    /// A statement failed with an error that is not retried.
    #[error("a statement failed on {address}")]
    Statement {
        /// Where.
        address: Address,
        /// In the server's words.
        source: ServerError,
    },
    /// A connection broke off.
    #[error("lost connection {connection} to {address}")]
    Lost {
        /// Where.
        address: Address,
        /// Ordinal of the connection.
        connection: u32,
        /// How.
        source: io::Error,
    },
    /// What came from the server is not its protocol.
    #[error("cannot understand {address}")]
    Protocol {
        /// Where.
        address: Address,
        /// What.
        source: DecodeError,
    },
    /// The workload asked for something that does not exist.
    #[error("the workload is wrong: {0}")]
    Workload(String),
    /// The operating system refused something to a generator thread.
    #[error("a generator thread cannot {what}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// io_uring was asked for and is not to be had.
    #[error("cannot use io_uring here")]
    IoUring {
        /// Why.
        source: io::Error,
    },
    /// The `stop` flag was raised.
    #[error("stopped")]
    Stopped,
    /// Ours: a thread died, or its counters contradict each other.
    #[error("internal error: {0}")]
    Internal(String),
}

impl DriveError {
    /// The number under which a failed attempt to connect is counted: the server's, or that of
    /// MySQL's own client library where the server has said none (2002 and 2003: nobody answers at
    /// the socket or port, 2013: broken off, 2026: TLS, 2027: no such protocol, 2059: no such
    /// plug-in, 2000: anything else).
    pub(crate) fn code(&self) -> u16 {
        let broken_off = |source: &io::Error| {
            use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
            [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&source.kind())
        };
        match self {
            DriveError::Refused { source, .. }
            | DriveError::Prepare { source, .. }
            | DriveError::Statement { source, .. } => source.code,
            DriveError::Connect { source, .. } if broken_off(source) => 2013,
            DriveError::Connect { address: Address::Socket(_), .. } => 2002,
            DriveError::Connect { address: Address::Tcp(..), .. } => 2003,
            DriveError::Lost { .. } => 2013,
            DriveError::Tls { .. } => 2026,
            DriveError::Protocol { .. } => 2027,
            DriveError::Authentication { .. } => 2059,
            DriveError::Spec(_)
            | DriveError::Descriptors { .. }
            | DriveError::Workload(_)
            | DriveError::System { .. }
            | DriveError::IoUring { .. }
            | DriveError::Stopped
            | DriveError::Internal(_) => 2000,
        }
    }

    /// The next step for the reader, shown as a `hint:` line.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            DriveError::Connect { .. } => "is the server up, and does it listen there?",
            DriveError::Refused { source, .. } => match source.code {
                1040 | 1203 => "raise max_connections of the server, or drive fewer connections",
                1044 | 1045 => "check user, password and grants",
                1049 => "the data has not been loaded on this server",
                _ => return None,
            },
            DriveError::Authentication { plugin, .. } if plugin == "mysql_clear_password" => {
                "use TLS (verify_identity), or is this the server that you meant?"
            }
            DriveError::Authentication { .. } => {
                "give the user mysql_native_password, caching_sha2_password or ed25519"
            }
            DriveError::Tls { source, .. } => source.hint(),
            DriveError::Prepare { source, .. } => match source.code {
                1461 => {
                    "raise max_prepared_stmt_count of the server, or drive fewer connections or \
                     tables"
                }
                1146 => "the data has not been loaded on this server",
                _ => return None,
            },
            DriveError::Lost { .. } => "the server's error log says whether it crashed or stopped",
            DriveError::Protocol { .. } => "is this a MySQL or MariaDB server?",
            DriveError::Descriptors { needed, limit, source } => {
                return Some(match (ran_out(source), limit) {
                    (Some(RanOut::Machine), _) => format!(
                        "this drive needs {needed} open files, and the machine has no more: raise \
                         fs.file-max (`sysctl fs.file-max`)"
                    ),
                    (_, Some(limit)) => format!(
                        "this drive needs {needed} open files, and this process may have {limit}: \
                         raise its hard limit (`ulimit -Hn`, LimitNOFILE of a service)"
                    ),
                    (_, None) => format!("this drive needs {needed} open files"),
                });
            }
            DriveError::System { source, .. } => match Errno::from_io_error(source) {
                Some(Errno::AGAIN) => "raise the limit of threads (`ulimit -u`, TasksMax)",
                Some(Errno::NOSPC) => "raise fs.epoll.max_user_watches",
                _ => return None,
            },
            DriveError::IoUring { source } => match Errno::from_io_error(source) {
                Some(Errno::PERM | Errno::ACCESS) => {
                    "allow it (`sysctl kernel.io_uring_disabled=0`, the container's seccomp \
                     profile), or choose epoll"
                }
                _ => "it needs Linux 6.1 or later; choose epoll, or let ceteris choose",
            },
            DriveError::Internal(_) => "please report this",
            DriveError::Statement { .. }
            | DriveError::Spec(_)
            | DriveError::Workload(_)
            | DriveError::Stopped => return None,
        };
        Some(hint.to_owned())
    }
}
