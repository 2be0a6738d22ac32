//! What a drive tells: a line a second, and the whole at its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Told while driving.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriveEvent {
    /// All connections stand and have prepared their statements.
    Connected {
        /// Connections.
        connections: u32,
        /// Threads chosen.
        threads: u32,
        /// CPUs the threads are pinned to; empty when not pinned.
        pinned: Vec<usize>,
        /// `io_uring`, `epoll`, or `epoll (io_uring: why it is not to be had)`.
        reactor: String,
        /// Milliseconds from the first connect to the last prepared statement.
        took_ms: f64,
        /// CLOCK_MONOTONIC nanoseconds at which the first transaction starts.
        start_monotonic_ns: u64,
    },
    /// One second of the drive.
    Second(Second),
    /// The drive ended before its time, by an error or because it was asked to stop, which it
    /// returns next: what had been measured until then, as if the window had been that short.
    /// Told only if something had.
    EndedEarly(Box<DriveReport>),
}

/// One second, all threads together; also those of the warm-up. Two may share an `at_s` where the
/// end of the warm-up cuts a second in two; `end_s` tells them apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// End of the second, in whole seconds since the first transaction started (1, 2, 3 ...),
    /// rounded up; for people.
    pub at_s: u32,
    /// End of the interval in seconds since the first transaction started, exact; for time axes.
    #[serde(default)]
    pub end_s: f64,
    /// Length of this interval in seconds (the last may be shorter than 1).
    pub length_s: f64,
    /// It lies in the measured window.
    pub measured: bool,
    /// Connections at work when the second ended; without those that were lost and had not been
    /// made again.
    pub connections: u32,
    /// Committed transactions.
    pub transactions: u64,
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements.
    pub other: u64,
    /// Errors by code.
    pub errors: BTreeMap<String, u64>,
    /// Attempts repeated after a deadlock or lock timeout.
    pub retries: u64,
    /// Open loop: transactions that were due and had not started when the second ended.
    #[serde(default)]
    pub queued: Option<u64>,
    /// Open loop: the longest that a transaction which started in this second had been due,
    /// milliseconds; `None` where none did.
    #[serde(default)]
    pub late_ms_max: Option<f64>,
    /// Response times of transactions that ended in this second.
    pub response: LatencyMs,
    /// CPU used by each generator thread.
    pub threads: Vec<ThreadUse>,
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyMs {
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    #[serde(default)]
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    #[serde(default)]
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(default)]
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// CPU seconds that one generator thread used, and was kept waiting for, in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// In user space.
    pub user_s: f64,
    /// In the kernel.
    pub sys_s: f64,
    /// Seconds in which it was runnable but not running; 0 where the kernel does not tell.
    #[serde(default)]
    pub wait_s: f64,
}

/// The measured window as a whole.
///
/// Latencies are those of the transactions that were committed in the window, and those of the
/// `stalled_at_end` that were not but had already lasted longer than every committed one: these are
/// recorded with their age at the window's end, which is what they took at least. Without them a
/// server that stops answering before the end would look as fast as it was before. Other
/// transactions in flight at the end, whose ages say nothing new, are left out of the latencies.
///
/// In an open loop the same goes for transactions that were due and had not started: the
/// `overdue_at_end` that were due for longer than every committed one took are among the response
/// times with their age, and have no service time. The younger ones are counted in `never_started`
/// alone. So a server that stalls shows in the response times however its stall ends; and where
/// the load is more than the server can do, the percentiles are lower bounds that grow with the
/// length of the window, and `never_started` says so.
///
/// A transaction that is lost with its connection is counted in `failed`; the next one of that
/// connection stands in for it and keeps its intended start. A connection of a closed loop that is
/// lost between two transactions keeps the start that it would have made. So an outage is part of
/// the response times, and not of the service times; one that lasts until the window ends is among
/// `never_started` and `overdue_at_end`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveReport {
    /// Length of the measured window in seconds.
    pub measured_s: f64,
    /// CLOCK_MONOTONIC nanoseconds at which the measured window began.
    pub measure_start_monotonic_ns: u64,
    /// Committed transactions.
    pub transactions: u64,
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements.
    pub other: u64,
    /// Errors by code.
    pub errors: BTreeMap<String, u64>,
    /// Attempts repeated after a deadlock or lock timeout.
    pub retries: u64,
    /// From the intended start.
    pub response: LatencyMs,
    /// From the actual start; the same in a closed loop without think time.
    pub service: LatencyMs,
    /// HdrHistogram V2 encoding of response times in nanoseconds, base64.
    pub response_hdr_base64: String,
    /// HdrHistogram V2 encoding of service times in nanoseconds, base64.
    pub service_hdr_base64: String,
    /// User-space CPU seconds of all generator threads.
    pub user_s: f64,
    /// System CPU seconds of all generator threads.
    pub sys_s: f64,
    /// Generator threads.
    pub threads: u32,
    /// Largest share of a second that one thread was on CPU, 0 to 1. Intervals of half a second or
    /// less do not count; if the window has no longer one, its mean.
    pub peak_thread_share: f64,
    /// Largest share of a second that one thread was runnable but not running, because others used
    /// its CPU, 0 to 1; over the same intervals. 0 where the kernel does not tell.
    #[serde(default)]
    pub peak_thread_wait: f64,
    /// Largest share of a second that one thread was either, and so had no time to be idle in; over
    /// the same intervals.
    #[serde(default)]
    pub peak_thread_occupied: f64,
    /// Transactions that had begun but not ended when the window ended.
    #[serde(default)]
    pub in_flight_at_end: u64,
    /// Age of the oldest of them at the window's end, from its intended start, milliseconds.
    #[serde(default)]
    pub oldest_in_flight_ms: f64,
    /// Those of them that were older than the longest response time of the window; they are in the
    /// latencies with their age, and not in `transactions`.
    #[serde(default)]
    pub stalled_at_end: u64,
    /// Each kind of transaction, in the workload's order.
    #[serde(default)]
    pub kinds: Vec<KindReport>,
    /// Each target, named by its number from 0, over all kinds; empty where there is only one.
    #[serde(default)]
    pub targets: Vec<KindReport>,
    /// Each statement by its name, those of the protocol (`BEGIN` and so on) first.
    #[serde(default)]
    pub statements: Vec<StatementReport>,
    /// How evenly the connections were served; `None` where stages change how many are at work, as
    /// those that came late had less time, and where the drive ended early in one of its threads.
    #[serde(default)]
    pub fairness: Option<Fairness>,
    /// Transactions that failed because their connection was lost.
    #[serde(default)]
    pub failed: u64,
    /// Connections that were made again.
    #[serde(default)]
    pub reconnects: u64,
    /// Transactions that were due before the window ended and had not started then: of an open
    /// loop, and of connections that were lost and had not been made again.
    #[serde(default)]
    pub never_started: u64,
    /// Those of them that had been due for longer than the longest response time of the window;
    /// they are in the response times with their age, and not in `transactions`.
    #[serde(default)]
    pub overdue_at_end: u64,
    /// Open loop or think time: how much later than intended transactions started although a
    /// connection was free, milliseconds; the generator's own fault. Two significant digits.
    #[serde(default)]
    pub schedule_error: LatencyMs,
    /// What the generator was.
    #[serde(default)]
    pub generator: GeneratorReport,
}

/// One kind of transaction in the measured window; latencies as in [`DriveReport`], without what
/// was stalled at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindReport {
    /// As the workload calls it.
    pub name: String,
    /// Committed.
    pub transactions: u64,
    /// Attempts repeated.
    pub retries: u64,
    /// From the intended start.
    pub response: LatencyMs,
    /// From the actual start.
    pub service: LatencyMs,
    /// HdrHistogram V2 encoding of response times in nanoseconds, base64.
    pub response_hdr_base64: String,
}

/// One statement in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementReport {
    /// As the workload calls it.
    pub name: String,
    /// Answered without an error.
    pub executions: u64,
    /// Errors by code.
    pub errors: BTreeMap<String, u64>,
    /// From sending the statement to the end of its answer; two significant digits. Of `connect`:
    /// how long it took to make a lost connection again, once the server let us.
    pub latency: LatencyMs,
}

/// Transactions that each connection committed in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation over the connections.
    pub stddev: f64,
    /// Of the connection that had the fewest.
    pub min: u64,
    /// Of the connection that had the most.
    pub max: u64,
}

/// What the generator was, and what it added to the times that it measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorReport {
    /// `io_uring`, `epoll`, or `epoll (io_uring: why it is not to be had)`.
    pub reactor: String,
    /// `normal` or `batch`, as the kernel granted it.
    pub scheduling: String,
    /// Most that an answer waited for company, milliseconds: the bound in force when it came, which
    /// many waited less than. Zeros where nothing was kept waiting.
    pub batch_delay: LatencyMs,
    /// Most that the instant ascribed to an answer lay before the instant at which its bytes were
    /// looked at, milliseconds. A response time may be too short by that, and the next one of the
    /// same connection is too long by the same.
    pub clock_error: LatencyMs,
}
