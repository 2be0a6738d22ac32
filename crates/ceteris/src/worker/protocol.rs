//! What conductor and worker say to each other: one JSON value per line.
//!
//! The conductor writes one [`Request`] to the worker's standard input; the worker answers with
//! [`Reply`] lines on its standard output, the last of which is `Loaded`, `Driven` or `Failed`.
//! Closing the worker's standard input ends what it does. Passwords travel here and never in
//! arguments. The same lines work over `ssh`, `docker exec -i` and `kubectl exec -i`.

use load::{DriveEvent, DriveReport, DriveSpec, Target};
use serde::{Deserialize, Serialize};
use workload::{DataFacts, LoadProgress};

/// What the worker is asked to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Create and fill the tables of a workload, and verify them.
    Load {
        /// Whose tables.
        workload: study::Workload,
        /// Where.
        target: Target,
        /// Seed of the rows.
        seed: u64,
        /// Connections that load at once.
        threads: u32,
        /// The server stands already and stays, with tables that are others'.
        standing: bool,
    },
    /// Drive a workload.
    Drive {
        /// What.
        workload: study::Workload,
        /// How.
        spec: DriveSpec,
    },
}

/// What the worker tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// How far a load is.
    Loading(LoadProgress),
    /// The load is done and verified.
    Loaded(DataFacts),
    /// From a drive that goes on.
    Driving(DriveEvent),
    /// The drive is done.
    Driven(Box<DriveReport>),
    /// It could not be done; the text is the error with its causes.
    Failed(String),
}
