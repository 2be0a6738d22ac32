//! What is asked of a drive.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One drive: who is driven, by how much, for how long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriveSpec {
    /// At least one; connection `i` belongs to target `i % targets.len()`.
    pub targets: Vec<Target>,
    /// Connections over all targets.
    pub connections: u32,
    /// Worker threads; `None` chooses.
    pub threads: Option<u32>,
    /// CPUs that the threads are pinned to, one each in turn; `None` chooses, an empty list leaves
    /// the threads to the scheduler.
    pub pin: Option<Vec<usize>>,
    /// Driven before measuring.
    pub warmup: Duration,
    /// Measured.
    pub measure: Duration,
    /// Seed of all random streams.
    pub seed: u64,
}

/// One server to be driven. `Debug` does not show the password.
#[derive(Clone, Serialize, Deserialize)]
pub struct Target {
    /// Where.
    pub address: Address,
    /// User.
    pub user: String,
    /// Password; travels over the worker's standard input, never in an argument.
    pub password: String,
    /// Default database.
    pub database: String,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// A Unix socket.
    Socket(PathBuf),
    /// Host and port.
    Tcp(String, u16),
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("address", &self.address)
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}
