//! Driving: a line now and then while it goes, the result at its end.

use std::time::Duration;

use load::{DriveError, DriveEvent, Second};

use super::outcome::{Circumstances, End, Outcome, Start};
use super::{Request, histogram, place, tables, text};
use crate::cli::BenchFormat;
use crate::commands::{json, print};
use crate::failure::{EXIT_INTERRUPTED, EXIT_OK, Ended, Failure, chain};
use crate::interrupt::Interrupt;
use crate::seconds;
use crate::talk::{Talk, span};

/// Drives the workload and prints what came of it.
pub fn run(request: &Request, talk: &Talk) -> Ended {
    let interrupt = tables::listen()?;
    let target = request.target()?;
    let survey = tables::look(request, talk)?;
    talk.say(&headline(request)?);
    let (mut start, mut told) = (Start::default(), Vec::new());
    let (mut waiting, mut early) = (Vec::new(), None);
    let ended = {
        let mut on_event = |event| match event {
            DriveEvent::Connected { connections, threads, pinned, reactor, took_ms, .. } => {
                talk.say(&format!(
                    "{} in {took_ms:.0} ms, {}, {reactor}",
                    counted(connections, "connection"),
                    counted(threads, "generator thread")
                ));
                start = Start { connect_ms: took_ms, threads, pinned, reactor };
            }
            DriveEvent::Second(second) => {
                waiting.push(second.clone());
                told.push(second);
                if let Some(interval) = due(&mut waiting, request.report_interval) {
                    talk.say(&seconds::line(&interval));
                }
            }
            DriveEvent::EndedEarly(report) => early = Some(*report),
        };
        workload::drive(&request.workload, &request.spec, interrupt.flag(), &mut on_event)
    };
    // A drive that ended early is an error, and none of what it had measured is lost.
    let (report, end, last) = match (ended, early) {
        (Ok(report), _) => (report, End::Whole, Ok(EXIT_OK)),
        (Err(error), early) => {
            let (end, failure) = ended_early(&error, request, &interrupt);
            let Some(report) = early else { return Err(failure) };
            (report, end, Err(failure))
        }
    };
    let about = Circumstances {
        workload: &request.workload,
        spec: &request.spec,
        target,
        survey: &survey,
        start,
        end,
    };
    let outcome = Outcome::new(about, report, told);
    match request.format {
        BenchFormat::Json => print(&json(&outcome)?)?,
        BenchFormat::Text => {
            if let Some(response) = outcome.response.as_ref().filter(|_| request.histogram) {
                print(&format!("{}\n", histogram::draw(response)))?;
            }
            print(&text::render(&outcome, request.percentile))?;
        }
    }
    last
}

/// How a drive ended that ended early: for its result, and for the person.
fn ended_early(error: &DriveError, request: &Request, interrupt: &Interrupt) -> (End, Failure) {
    if matches!(error, DriveError::Stopped) && interrupt.raised() {
        return (End::Interrupted, Failure::new("stopped").code(EXIT_INTERRUPTED));
    }
    let hint = wrong_tables(error, request).or_else(|| error.hint());
    let failure = Failure { hint, ..Failure::new(chain(error)) };
    (End::Failed(failure.message.clone()), failure)
}

/// The hint where an error is one of tables that are not what the workload takes them for.
fn wrong_tables(error: &DriveError, request: &Request) -> Option<String> {
    let (DriveError::Statement { source, .. } | DriveError::Prepare { source, .. }) = error else {
        return None;
    };
    let what = match source.code {
        // No such column, no such table.
        1054 | 1146 => "are these the tables of another workload?",
        // The user may not do that to a table, or to a column of it.
        1142 | 1143 => "and this user needs the right to use them",
        _ => return None,
    };
    let called = request.workload.called();
    let tables = tables::expected(request).ok()?;
    Some(format!("{called} needs {tables} as `ceteris bench {called} prepare` makes them; {what}"))
}

/// What is going to happen, in a line.
fn headline(request: &Request) -> Result<String, Failure> {
    let spec = &request.spec;
    let loop_ = match spec.pacing.rate_per_second {
        Some(rate) => format!(" at {rate} transactions/s"),
        None => String::new(),
    };
    let warmup = match spec.warmup {
        Duration::ZERO => String::new(),
        warmup => format!(" after {} of warm-up", span(warmup)),
    };
    Ok(format!(
        "{}: {}{loop_} for {}{warmup} to {}; seed {}",
        request.workload.called(),
        counted(spec.connections, "connection"),
        span(spec.measure),
        place(request.target()?),
        spec.seed
    ))
}

/// The seconds that have gathered, as one, once there are enough. Of latencies the worst second's
/// is shown: percentiles cannot be added up.
fn due(waiting: &mut Vec<Second>, every_s: u32) -> Option<Second> {
    let at_s = waiting.last()?.at_s;
    if every_s == 0 || !at_s.is_multiple_of(every_s) {
        if every_s == 0 {
            waiting.clear();
        }
        return None;
    }
    let mut whole = waiting.pop()?;
    for second in waiting.drain(..) {
        whole.length_s += second.length_s;
        whole.measured &= second.measured;
        whole.transactions += second.transactions;
        whole.reads += second.reads;
        whole.writes += second.writes;
        whole.other += second.other;
        whole.retries += second.retries;
        whole.response.p95 = whole.response.p95.max(second.response.p95);
        whole.late_ms_max = match (whole.late_ms_max, second.late_ms_max) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        for (code, count) in second.errors {
            *whole.errors.entry(code).or_default() += count;
        }
    }
    Some(whole)
}

/// `1 connection`, `2 connections`.
fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_interval_is_the_sum_of_its_seconds_and_the_worst_of_their_percentiles() {
        let second = |at_s: u32, p95: f64| {
            let mut second = Second { at_s, length_s: 1.0, transactions: 5, ..Second::default() };
            second.response.p95 = p95;
            (second.queued, second.late_ms_max) = (Some(at_s.into()), Some(p95));
            second
        };
        let mut waiting = vec![second(1, 7.0)];
        assert!(due(&mut waiting, 2).is_none());
        waiting.push(second(2, 3.0));
        let whole = due(&mut waiting, 2).unwrap();
        assert_eq!((whole.at_s, whole.length_s, whole.transactions), (2, 2.0, 10));
        assert_eq!(whole.response.p95, 7.0);
        assert_eq!((whole.queued, whole.late_ms_max), (Some(2), Some(7.0)), "last, and worst");
        assert!(waiting.is_empty());
        waiting.push(second(3, 1.0));
        assert!(due(&mut waiting, 0).is_none() && waiting.is_empty());
    }

    #[test]
    fn one_is_one() {
        assert_eq!(counted(1, "connection"), "1 connection");
        assert_eq!(counted(2, "generator thread"), "2 generator threads");
    }
}
