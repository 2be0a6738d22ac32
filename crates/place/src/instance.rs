//! The seam between the conductor and every placement.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use study::Setup;

use crate::allowance::Allowance;
use crate::dataset::Dataset;
use crate::error::PlaceError;
use crate::package::Package;

/// How long an administrative statement may take to answer: longer than any that only reads
/// variables or status takes on the busiest machine.
pub const STATEMENT_LIMIT: Duration = Duration::from_secs(30);
/// The same for statements that write a data directory: creating users, preparing a shutdown.
pub(crate) const WRITE_LIMIT: Duration = Duration::from_secs(600);

/// What a placement needs to bring one instance up.
#[derive(Clone)]
pub struct InstanceSpec {
    /// The condition.
    pub setup: Setup,
    /// The server program.
    pub package: Arc<Package>,
    /// Data to start on; `None` starts on an empty, initialised data directory.
    pub dataset: Option<Arc<Dataset>>,
    /// Ordinal among the instances of this run, from 0.
    pub ordinal: u32,
}

/// How a client reaches an instance. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Unix socket, where reachable from here.
    pub socket: Option<PathBuf>,
    /// Host and port, where it listens on TCP.
    pub tcp: Option<(String, u16)>,
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
}

/// A way to speak with a program inside of a placement, in lines.
pub trait Channel: Read + Write + Send {}

impl<T: Read + Write + Send> Channel for T {}

/// One running server.
pub trait Instance: Send {
    /// How to reach it.
    fn endpoint(&self) -> Endpoint;
    /// Process id on this machine, where there is one.
    fn pid(&self) -> Option<u32>;
    /// Data directory on this machine, where there is one.
    fn data_dir(&self) -> Option<&Path>;
    /// The instance's own private directory, which holds data, socket and logs.
    fn dir(&self) -> &Path;
    /// What the placement knows of the condition: package hash, dataset hash and the like, under
    /// `place.`.
    fn fingerprint(&self) -> std::collections::BTreeMap<String, String>;
    /// What it may use.
    fn allowance(&self) -> Allowance;
    /// A path on this machine whose disk holds the data in the end: the data directory, or the image
    /// file of a guest's disk.
    fn storage(&self) -> Option<&Path> {
        self.data_dir()
    }
    /// A channel to an observer (`ceteris observe`) that runs where the server does, if that is a
    /// machine of its own. Asked for once.
    ///
    /// # Errors
    /// When there should be one and it does not answer.
    fn observer(&mut self) -> Result<Option<Box<dyn Channel>>, PlaceError> {
        Ok(None)
    }
    /// Counters that only the placement can read, by name; they only grow, so that their change
    /// between two calls is what happened meanwhile.
    fn figures(&mut self) -> Vec<(String, f64)> {
        Vec::new()
    }
    /// How the worker reaches it, where that is another way than ours: it may run beside the server.
    fn worker_endpoint(&self) -> Endpoint {
        self.endpoint()
    }
    /// The words before `worker` that run ceteris beside the server; empty: it runs here.
    fn worker_prefix(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether it still runs; else how it ended.
    fn alive(&mut self) -> Result<(), String>;
    /// Its error log so far.
    fn error_log(&self) -> String;
    /// Shuts the server down completely and keeps what it is made of, for [`Dataset::save`]. Only
    /// [`stop`](Instance::stop) may follow.
    ///
    /// # Errors
    /// When it did not end as a clean shutdown ends, or the placement cannot do this.
    fn halt(&mut self) -> Result<(), PlaceError> {
        Err(PlaceError::Other("this placement cannot keep a server's files".to_owned()))
    }
    /// Stops it, gracefully and after a limit by force, and removes what it was made of, whatever
    /// way it ended.
    ///
    /// # Errors
    /// [`PlaceError::NotStopped`] when it crashed on its way down, had ended before, or had to be
    /// killed: everything is removed all the same, and what was measured before is what it was. Any
    /// other error means that files are left.
    fn stop(self: Box<Self>) -> Result<(), PlaceError>;
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("socket", &self.socket)
            .field("tcp", &self.tcp)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Options for an administrative connection, by socket where there is one. Connecting is limited
    /// to ten seconds and a statement to [`STATEMENT_LIMIT`], so that a server that hangs is an error
    /// and not a wait without end.
    pub fn opts(&self) -> mysql::Opts {
        self.opts_within(STATEMENT_LIMIT)
    }

    /// As [`opts`](Endpoint::opts), for statements that may take longer.
    pub fn opts_within(&self, statement: Duration) -> mysql::Opts {
        let mut opts = mysql::OptsBuilder::new()
            .user(Some(&self.user))
            .pass(Some(&self.password))
            // Otherwise the client would move from TCP to whatever socket the server names.
            .prefer_socket(false)
            .tcp_connect_timeout(Some(Duration::from_secs(10)))
            .read_timeout(Some(statement))
            .write_timeout(Some(statement))
            .compress(None);
        if let Some(socket) = &self.socket {
            opts = opts.socket(Some(socket.display().to_string()));
        } else if let Some((host, port)) = &self.tcp {
            opts = opts.ip_or_hostname(Some(host)).tcp_port(*port);
        }
        opts.into()
    }
}
