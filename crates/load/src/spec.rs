//! What is asked of a drive.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One drive: who is driven, by how much, for how long.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct DriveSpec {
    /// At least one; connection `i` belongs to target `i % targets.len()`.
    pub targets: Vec<Target>,
    /// Connections over all targets, until a stage says otherwise.
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
    /// When transactions are due.
    pub pacing: Pacing,
    /// How the generator itself works; changes what it costs, not what it asks.
    pub engine: Engine,
    /// Prepared statements, or text with the values in it.
    pub protocol: StatementProtocol,
    /// What a lost connection means.
    pub on_lost: OnLost,
    /// Codes of server errors after which a transaction is tried again.
    pub retried_errors: Vec<u16>,
}

/// When transactions are due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pacing {
    /// Transactions per second over all connections (open loop); `None`: each connection begins
    /// its next when the one before has ended (closed loop).
    pub rate_per_second: Option<f64>,
    /// How the starts of an open loop are spread.
    pub arrivals: Arrivals,
    /// Closed loop: pause between the end of a transaction and the start of the next.
    pub think: Duration,
    /// Changes of rate and connections while driving, in the order of their times.
    pub stages: Vec<Stage>,
}

/// How the starts of an open loop are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent of each other: exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// From `at` on, rate or connections go to new values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stage {
    /// Since the first transaction, so warm-up counts.
    pub at: Duration,
    /// How long the way to the new values takes, in a straight line; zero: a step.
    pub ramp: Duration,
    /// New rate; only in an open loop.
    pub rate_per_second: Option<f64>,
    /// New number of connections at work. All that the drive will ever need are opened before its
    /// start; those that are not at work stay idle.
    pub connections: Option<u32>,
}

/// How the generator itself works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Engine {
    /// What waits for answers.
    pub reactor: ReactorChoice,
    /// Whether answers may wait for company.
    pub batching: Batching,
    /// Scheduling class of the generator's threads.
    pub scheduling: Scheduling,
}

/// What waits for answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReactorChoice {
    /// io_uring where this kernel lets us, else epoll.
    #[default]
    Auto,
    /// epoll.
    Epoll,
    /// io_uring; an error where it is not to be had.
    IoUring,
}

/// Whether answers may wait for company, so that one visit to the kernel serves several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Batching {
    /// Whatever is ready is handled at once.
    #[default]
    Off,
    /// The answers to the statements of one transaction wait together at most this share of the
    /// median response time of the second before; the wait is part of the response time and told
    /// apart in the report. Nothing waits before the first second has passed.
    Share(f64),
}

/// Scheduling class of the generator's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// SCHED_OTHER: a thread that wakes may displace another at once.
    Normal,
    /// SCHED_BATCH: it does not, which saves switches where the server shares our CPUs.
    #[default]
    Batch,
}

/// How statements travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementProtocol {
    /// Prepared once per connection, then executed by number with binary values.
    #[default]
    Prepared,
    /// As text with the values in it.
    Text,
}

/// What a lost connection means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// The drive ends with an error.
    #[default]
    Fail,
    /// The transaction is counted as failed, the connection is made again, and its next transaction
    /// keeps the intended start of the one that failed.
    Reconnect,
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
    /// Encryption.
    #[serde(default)]
    pub tls: Tls,
}

/// Whether a connection is encrypted, and whom it trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tls {
    /// What is demanded.
    pub mode: TlsMode,
    /// PEM file of the certificate authorities to trust; `None`: those of this machine.
    pub ca: Option<PathBuf>,
}

/// What is demanded of a connection; the names are those of MySQL's `--ssl-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsMode {
    /// No encryption.
    #[default]
    Disabled,
    /// Encrypted, whoever the server is.
    Required,
    /// Encrypted, and an authority that we trust vouches for the server.
    VerifyCa,
    /// And its certificate is for the host that we asked for.
    VerifyIdentity,
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

/// Deadlock, lock wait timeout, record changed since last read: what sysbench repeats.
pub const RETRIED_ERRORS: [u16; 3] = [1213, 1205, 1020];

impl Default for DriveSpec {
    /// A closed loop of 8 connections for 10 s to nobody.
    fn default() -> DriveSpec {
        DriveSpec {
            targets: Vec::new(),
            connections: 8,
            threads: None,
            pin: None,
            warmup: Duration::ZERO,
            measure: Duration::from_secs(10),
            seed: 0,
            pacing: Pacing::default(),
            engine: Engine::default(),
            protocol: StatementProtocol::default(),
            on_lost: OnLost::default(),
            retried_errors: RETRIED_ERRORS.to_vec(),
        }
    }
}

impl DriveSpec {
    /// Most connections that are ever at work: so many are opened.
    pub fn connections_max(&self) -> u32 {
        let stages = self.pacing.stages.iter().filter_map(|stage| stage.connections);
        stages.fold(self.connections, u32::max)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("address", &self.address)
            .field("user", &self.user)
            .field("database", &self.database)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}
