//! From what was counted to what is told: a line a second, and the parts of the report.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::error::DriveError;
use crate::histogram::{latency_ms, serialize};
use crate::recorder::{Kind, Recorded};
use crate::register::{PROTOCOL, Register};
use crate::report::{Fairness, KindReport, Second, StatementReport, ThreadUse};
use crate::schedule::Interval;
use crate::times::Fine;

/// The name under which losses are counted that no answer told.
const LOST: &str = "lost";

/// Committed transactions of all kinds.
pub(crate) fn transactions(recorded: &Recorded) -> u64 {
    recorded.kinds.iter().map(|kind| kind.transactions).sum()
}

/// Repeated attempts of all kinds.
pub(crate) fn retries(recorded: &Recorded) -> u64 {
    recorded.kinds.iter().map(|kind| kind.retries).sum()
}

/// Errors of all statements by their codes, and lost connections.
pub(crate) fn errors(recorded: &Recorded) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for statement in &recorded.statements {
        for (code, count) in statement.errors.iter() {
            *sum.entry(code.to_string()).or_default() += count;
        }
    }
    if recorded.counts.lost > 0 {
        sum.insert(LOST.to_owned(), recorded.counts.lost);
    }
    sum
}

/// The times of all kinds.
pub(crate) fn all_kinds(
    recorded: &Recorded,
    times: impl Fn(&Kind) -> &Fine,
) -> Result<Histogram<u64>, DriveError> {
    let mut sum = Fine::new();
    for kind in &recorded.kinds {
        sum.add(times(kind));
    }
    sum.histogram()
}

/// A line.
pub(crate) fn second(
    interval: Interval,
    connections: u32,
    sum: &Recorded,
    threads: Vec<ThreadUse>,
) -> Result<Second, DriveError> {
    Ok(Second {
        at_s: interval.at_s(),
        end_s: interval.end_s(),
        length_s: interval.length_s(),
        measured: interval.measured,
        connections,
        transactions: transactions(sum),
        reads: sum.counts.reads,
        writes: sum.counts.writes,
        other: sum.counts.other,
        errors: errors(sum),
        retries: retries(sum),
        queued: None,
        late_ms_max: None,
        response: latency_ms(&all_kinds(sum, |kind| &kind.response)?),
        threads,
    })
}

/// Each kind of transaction, over all targets.
pub(crate) fn kinds(register: &Register, total: &Recorded) -> Result<Vec<KindReport>, DriveError> {
    let report = |(index, name): (usize, &String)| {
        let slots = total.kinds.iter().skip(index).step_by(register.kinds.len());
        kind_report(name, slots)
    };
    register.kinds.iter().enumerate().map(report).collect()
}

/// Each target, over all kinds, where there are several.
pub(crate) fn targets(
    register: &Register,
    total: &Recorded,
) -> Result<Vec<KindReport>, DriveError> {
    if register.targets < 2 {
        return Ok(Vec::new());
    }
    let slots = total.kinds.chunks(register.kinds.len().max(1)).enumerate();
    slots.map(|(index, slots)| kind_report(&index.to_string(), slots.iter())).collect()
}

/// What several slots hold together.
fn kind_report<'a>(
    name: &str,
    slots: impl Iterator<Item = &'a Kind>,
) -> Result<KindReport, DriveError> {
    let (mut transactions, mut retries) = (0, 0);
    let (mut response, mut service) = (Fine::new(), Fine::new());
    for slot in slots {
        transactions += slot.transactions;
        retries += slot.retries;
        response.add(&slot.response);
        service.add(&slot.service);
    }
    let (response, service) = (response.histogram()?, service.histogram()?);
    Ok(KindReport {
        name: name.to_owned(),
        transactions,
        retries,
        response: latency_ms(&response),
        service: latency_ms(&service),
        response_hdr_base64: serialize(&response)?,
    })
}

/// Each name of statements; those of the protocol only where the workload uses them.
pub(crate) fn statements(
    register: &Register,
    total: &Recorded,
) -> Result<Vec<StatementReport>, DriveError> {
    let mut reports = Vec::new();
    for (index, (name, statement)) in register.names.iter().zip(&total.statements).enumerate() {
        let errors = statement.errors.iter().map(|(code, count)| (code.to_string(), count));
        let latency = statement.latency.histogram()?;
        let report = StatementReport {
            name: name.clone(),
            executions: latency.len(),
            errors: errors.collect(),
            latency: latency_ms(&latency),
        };
        if index >= PROTOCOL.len() || report.executions > 0 || !report.errors.is_empty() {
            reports.push(report);
        }
    }
    Ok(reports)
}

/// How evenly connections committed.
pub(crate) fn fairness(commits: &[u64]) -> Fairness {
    let connections = commits.len().max(1) as f64;
    let mean = commits.iter().sum::<u64>() as f64 / connections;
    let squares = commits.iter().map(|&count| (count as f64 - mean).powi(2)).sum::<f64>();
    Fairness {
        mean,
        stddev: (squares / connections).sqrt(),
        min: commits.iter().copied().min().unwrap_or(0),
        max: commits.iter().copied().max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_over_connections() {
        let fair = fairness(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(fair, Fairness { mean: 5.0, stddev: 2.0, min: 2, max: 9 });
        assert_eq!(fairness(&[]), Fairness::default());
    }
}
