//! What one run leaves behind, as plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the file knows before the first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The study's title.
    pub title: String,
    /// The study file as given.
    pub study_text: String,
    /// `--set path=value` in order.
    pub overrides: Vec<String>,
    /// Seed of order and data.
    pub seed: u64,
    /// The plan as JSON (`study::Plan`).
    pub plan_json: String,
    /// `study::Published` figures as JSON array.
    pub published_json: String,
    /// Version of ceteris that made the file.
    pub ceteris_version: String,
    /// Creation time, nanoseconds since the Unix epoch.
    pub created_unix_ns: i64,
}

/// Identity of a run: one cell in one block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// Name of the question.
    pub question: String,
    /// Name of the level.
    pub level: String,
    /// Sweep point as canonical JSON (`{}` without a sweep).
    pub at: String,
    /// Block, from 0.
    pub block: u32,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Measured to its end.
    Finished,
    /// Broke off; the text is the error with its causes.
    Failed(String),
}

/// Everything one run leaves behind. Series and latencies are of the measured window.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Which cell, which block.
    pub key: RunKey,
    /// Begin of the phase `place`, nanoseconds since the Unix epoch.
    pub started_unix_ns: i64,
    /// End of the phase `stop`.
    pub finished_unix_ns: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// Absent when the run failed before it measured.
    pub summary: Option<Summary>,
    /// Series, seconds relative to the start of the measured window (warm-up is negative).
    pub series: Vec<Series>,
    /// Histograms of the measured window.
    pub histograms: Vec<Histogram>,
    /// Observed before the run.
    pub before: Fingerprint,
    /// Observed after the run.
    pub after: Fingerprint,
    /// Every external command and phase, in order.
    pub commands: Vec<CommandRecord>,
    /// What happened when.
    pub events: Vec<Event>,
    /// Server error logs.
    pub logs: Vec<LogText>,
}

/// The figures of a run's measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Length of the measured window, seconds.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub measured_s: f64,
    /// Committed transactions.
    pub transactions: u64,
    /// Committed transactions per second.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub tps: f64,
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements (BEGIN, COMMIT, those that touched nothing).
    pub other: u64,
    /// Errors by server or client code, e.g. `"1213" -> 4`.
    pub errors: BTreeMap<String, u64>,
    /// Attempts repeated after a deadlock or lock timeout.
    pub retries: u64,
    /// From the intended start.
    pub response: Latency,
    /// From the actual start; the same as `response` in a closed loop.
    pub service: Latency,
    /// User-space CPU seconds of the generator in the measured window.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub generator_user_s: f64,
    /// System CPU seconds of the generator in the measured window.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub generator_sys_s: f64,
    /// Threads of the generator.
    pub generator_threads: u32,
    /// Largest share of one second that a generator thread was on CPU, 0 to 1.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub generator_peak: f64,
    /// Some generator thread was above 85 % for a second.
    pub generator_bound: bool,
    /// The measured series was level.
    pub steady: bool,
    /// Why not, or anything else worth a line.
    pub notes: Vec<String>,
    /// Each of several instances, in their order; empty where there is one.
    #[serde(default)]
    pub instances: Vec<InstanceSummary>,
}

/// What one of several instances did in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceSummary {
    /// Committed transactions.
    pub transactions: u64,
    /// Committed transactions per second.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub tps: f64,
    /// From the intended start.
    pub response: Latency,
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub mean_ms: f64,
    /// Median.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub p50_ms: f64,
    /// 95th percentile.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub p95_ms: f64,
    /// 99th percentile.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub p99_ms: f64,
    /// Largest.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub max_ms: f64,
}

/// One measured series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Dotted name: `load.tps`, `host.cpu.user`, `server.status.Innodb_data_fsyncs`.
    pub name: String,
    /// Unit: `1/s`, `ms`, `bytes`, `fraction`, ...
    pub unit: String,
    /// Seconds relative to the start of the measured window.
    pub at_s: Vec<f64>,
    /// One value for each of `at_s`.
    pub values: Vec<f64>,
}

/// One latency histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// `response` or `service`.
    pub name: String,
    /// Unit of the recorded values.
    pub unit: String,
    /// HdrHistogram V2 encoding, uncompressed.
    pub hdr_v2: Vec<u8>,
}

/// All that was observed of a run's conditions: dotted name to value.
pub type Fingerprint = BTreeMap<String, String>;

/// One external command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Start, nanoseconds since the Unix epoch.
    pub at_unix_ns: i64,
    /// As one would type it in a shell; never with a password.
    pub command: String,
    /// Milliseconds until it ended; `None` for one that went on running.
    pub took_ms: Option<f64>,
    /// Exit status as text, e.g. `0` or `signal 9`.
    pub status: Option<String>,
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: i64,
    /// `phase`, `warning`, `error`, ...
    pub kind: String,
    /// One line.
    pub text: String,
}

/// The text of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogText {
    /// `instance-0/error.log` and the like.
    pub name: String,
    /// The text, its middle cut where it is very long.
    pub text: String,
}

/// A run as listed: everything but series, histograms, fingerprints and logs.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// Row id.
    pub id: i64,
    /// Which cell, which block.
    pub key: RunKey,
    /// Begin, nanoseconds since the Unix epoch.
    pub started_unix_ns: i64,
    /// End.
    pub finished_unix_ns: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// The figures.
    pub summary: Option<Summary>,
}
