//! Sampling a machine that is not this one, through the observer that stands there: what the
//! observer does for a request, and the thread that asks once a second.
//!
//! Rates are made there, on that machine's own clock; here every value gets the time of the tick on
//! this machine's clock, so that all series of a run share one axis.

use serde::{Deserialize, Serialize};

use super::system::System;
use super::{Record, SamplerTarget, Shared, monotonic_ns};
use crate::Remote;
use crate::facts::Root;

/// One value of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub name: String,
    pub unit: String,
    pub value: f64,
}

/// What the observer inside watches.
pub(crate) struct Watching {
    system: System,
    problems: Vec<String>,
}

impl Watching {
    /// Watches this machine and one server on it.
    pub(crate) fn start(target: SamplerTarget) -> Watching {
        let shared = Shared::default();
        let system = System::new(Root::machine(), &[target], None, &shared);
        let problems = std::mem::take(&mut shared.record().problems);
        Watching { system, problems }
    }

    /// One sample, and what went wrong, a line each.
    pub(crate) fn sample(&mut self) -> (Vec<Reading>, Vec<String>) {
        let mut record = Record::default();
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(self.system.sample(monotonic_ns() as f64 / 1e9, &mut record));
        let last = |series: super::Sampled| {
            let value = series.values.last().copied()?;
            Some(Reading { name: series.name, unit: series.unit, value })
        };
        (record.series.into_values().filter_map(last).collect(), problems)
    }
}

/// Asks once a second until told to end; a machine that does not answer is told of once.
pub(super) fn watch(target: &str, remote: &Remote, shared: &Shared) {
    let prefix = Remote::prefix(target);
    let mut asked = remote.watch().map(|()| (Vec::new(), Vec::new()));
    loop {
        match asked {
            Ok((readings, problems)) => {
                let at_s = monotonic_ns() as f64 / 1e9;
                let mut record = shared.record();
                for Reading { name, unit, value } in readings {
                    record.push(at_s, &format!("{prefix}.{name}"), &unit, value);
                }
                drop(record);
                for line in problems {
                    shared.problem(format!("{prefix}.{line}"));
                }
            }
            // A channel that failed stays so.
            Err(why) => return shared.problem(format!("{prefix}: not sampled: {why}")),
        }
        if shared.next_tick().is_none() {
            return;
        }
        asked = remote.sample();
    }
}
