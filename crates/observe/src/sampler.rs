//! The sampler: once a second, on one clock (CLOCK_MONOTONIC), while a run is driven.
//!
//! One thread reads the machine and the processes; one more for each target asks
//! `SHOW GLOBAL STATUS` on the same ticks, because a server that stalls must not blind us to what
//! the machine does meanwhile. Every tick stands on a whole second of the clock. Nothing here can
//! fail a run: what could not be read is told, once, as a line.

mod database;
mod inside;
mod system;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::Remote;

pub(crate) use inside::{Reading, Watching};

/// One instance to be watched.
#[derive(Clone, Debug)]
pub struct SamplerTarget {
    /// Prefix of its series: `server` for the only instance, `server.1` for the second.
    pub name: String,
    /// Process, where visible from here.
    pub pid: Option<u32>,
    /// Directory whose block device is watched.
    pub data_dir: Option<PathBuf>,
    /// How to ask `SHOW GLOBAL STATUS`.
    pub connection: Option<mysql::Opts>,
    /// An observer where the server is, if that is a machine of its own.
    pub inside: Option<Remote>,
}

/// One sampled series on the monotonic clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Dotted name: `host.cpu.user`, `server.cpu.user`, `server.status.Innodb_data_fsyncs`.
    pub name: String,
    /// `fraction` (of the time, or of all processors), `cores`, `bytes`, `bytes/s`, `1/s`, `count`,
    /// `pages`, `ms`.
    pub unit: String,
    /// CLOCK_MONOTONIC seconds. A rate belongs to the time since the sample before.
    pub at_monotonic_s: Vec<f64>,
    /// One value for each time.
    pub values: Vec<f64>,
}

/// A running sampler.
///
/// Series, by name; a rate needs two ticks, so that the first value comes with the second:
///
/// - `host.cpu.{user,system,iowait,steal,idle}`: fraction of all processors.
/// - `host.memory.{available,cached,dirty,writeback}`: bytes.
/// - `host.pressure.{cpu,io,memory}.{some,full}`: fraction of time.
/// - `host.context_switches`: 1/s.
/// - `host.disk.{read,write}_bytes`, `.reads`, `.writes`, `.flushes`, `.busy`: of the disk below
///   the first target's data directory; further disks are `host.disk.NAME.` and the same.
/// - `generator.` and `TARGET.`: `cpu.user`, `cpu.system` (cores: 1 is one core busy),
///   `memory.resident`, `threads`; targets also `io.read_bytes`, `io.write_bytes`.
/// - `TARGET.cgroup.throttled` (fraction of time, may exceed 1 with several threads) and
///   `TARGET.cgroup.throttled_periods` (1/s), where the server has a control group of its own.
/// - `TARGET.status.NAME`: counters per second, levels as they are. A status series that was 0
///   from beginning to end is left out; absent means 0.
/// - `guest.host.*` and `guest.server.*` (`guest.1.` for `server.1`): the same as `host.*` and
///   `server.*`, seen inside of the guest.
pub struct Sampler {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling this machine, the targets and the generator (`generator_pid`).
    pub fn start(targets: Vec<SamplerTarget>, generator_pid: Option<u32>) -> Sampler {
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::new();
        for target in &targets {
            if let Some(opts) = target.connection.clone() {
                let name = target.name.clone();
                let shared = Arc::clone(&shared);
                threads.push(spawn(&shared.clone(), move || database::watch(&name, opts, &shared)));
            }
            if let Some(remote) = target.inside.clone() {
                let name = target.name.clone();
                let shared = Arc::clone(&shared);
                threads
                    .push(spawn(&shared.clone(), move || inside::watch(&name, &remote, &shared)));
            }
        }
        let for_system = Arc::clone(&shared);
        threads.push(spawn(&shared, move || system::watch(&targets, generator_pid, &for_system)));
        Sampler { shared, threads: threads.into_iter().flatten().collect() }
    }

    /// Ends sampling; gives the series and what went wrong, a line each.
    ///
    /// Does not wait for a server that does not answer: its thread is left to its time limit.
    pub fn stop(self) -> (Vec<Sampled>, Vec<String>) {
        self.shared.end();
        // Threads wake at once and are not waited for longer than this, each finishing at most a
        // read of a few small files; only an unanswered query takes longer.
        let patience = Instant::now() + Duration::from_millis(80);
        while Instant::now() < patience && self.threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let Record { series, problems } = std::mem::take(&mut *self.shared.record());
        (telling(series), problems)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.end();
    }
}

fn spawn(shared: &Shared, body: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    match std::thread::Builder::new().name("sampler".to_owned()).spawn(body) {
        Ok(thread) => Some(thread),
        Err(error) => {
            shared.problem(format!("cannot start a sampler thread: {error}"));
            None
        }
    }
}

/// Nanoseconds on CLOCK_MONOTONIC, the clock of every series.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// What the threads share: the word to end and the record.
#[derive(Default)]
struct Shared {
    ended: Mutex<bool>,
    wake: Condvar,
    record: Mutex<Record>,
}

impl Shared {
    fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    /// Waits for the next whole second of the clock; `None` when sampling ends, else the time now
    /// in seconds.
    fn next_tick(&self) -> Option<f64> {
        let into_second = monotonic_ns() % 1_000_000_000;
        let deadline = Instant::now() + Duration::from_nanos(1_000_000_000 - into_second);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if *ended {
                return None;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(monotonic_ns() as f64 / 1e9);
            }
            let waited = self.wake.wait_timeout(ended, left);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of a problem, once however often it comes.
    fn problem(&self, line: String) {
        let mut record = self.record();
        if !record.problems.contains(&line) {
            record.problems.push(line);
        }
    }
}

/// All samples so far.
#[derive(Default)]
struct Record {
    series: BTreeMap<String, Sampled>,
    problems: Vec<String>,
}

impl Record {
    fn push(&mut self, at_s: f64, name: &str, unit: &str, value: f64) {
        if !value.is_finite() {
            return;
        }
        if !self.series.contains_key(name) {
            let empty = Sampled {
                name: name.to_owned(),
                unit: unit.to_owned(),
                at_monotonic_s: Vec::new(),
                values: Vec::new(),
            };
            self.series.insert(name.to_owned(), empty);
        }
        if let Some(series) = self.series.get_mut(name) {
            series.at_monotonic_s.push(at_s);
            series.values.push(value);
        }
    }
}

/// In order of names, without the status series that were always 0: hundreds of them say nothing
/// and would be most of the result file.
fn telling(series: BTreeMap<String, Sampled>) -> Vec<Sampled> {
    let silent = |series: &Sampled| {
        series.name.contains(".status.") && series.values.iter().all(|value| *value == 0.0)
    };
    series.into_values().filter(|series| !silent(series)).collect()
}

/// The last value of each counter, to make rates of.
#[derive(Default)]
struct Counters {
    last: BTreeMap<String, (f64, f64)>,
}

impl Counters {
    /// Change per second since the last call for this counter; `None` the first time and when the
    /// counter went back (the server was restarted, its status flushed).
    fn rate(&mut self, name: &str, at_s: f64, value: f64) -> Option<f64> {
        let before = match self.last.get_mut(name) {
            Some(last) => std::mem::replace(last, (at_s, value)),
            None => {
                self.last.insert(name.to_owned(), (at_s, value));
                return None;
            }
        };
        let (elapsed, change) = (at_s - before.0, value - before.1);
        (elapsed > 0.0 && change >= 0.0).then(|| change / elapsed)
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
