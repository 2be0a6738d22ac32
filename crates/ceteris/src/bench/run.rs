//! Driving: a line now and then while it goes, the result at its end.

use std::time::Duration;

use load::{DriveError, DriveEvent, Second};

use super::outcome::{Circumstances, Outcome, Start};
use super::{Request, histogram, place, tables, text};
use crate::cli::BenchFormat;
use crate::commands::{json, print};
use crate::failure::{EXIT_INTERRUPTED, EXIT_OK, Ended, Failure, chain};
use crate::seconds;
use crate::talk::{Talk, span};

/// Drives the workload and prints what came of it.
pub fn run(request: &Request, talk: &Talk) -> Ended {
    let interrupt = tables::listen()?;
    let target = request.target()?;
    let survey = tables::look(request, talk)?;
    talk.say(&headline(request)?);
    let (mut start, mut told) = (Start::default(), Vec::new());
    let mut waiting = Vec::new();
    let ended = {
        let mut on_event = |event| match event {
            DriveEvent::Connected { connections, threads, pinned, reactor, took_ms, .. } => {
                talk.say(&format!(
                    "{connections} connections in {took_ms:.0} ms, {threads} generator threads, \
                     {reactor}"
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
        };
        workload::drive(&request.workload, &request.spec, interrupt.flag(), &mut on_event)
    };
    let about = Circumstances {
        workload: &request.workload,
        spec: &request.spec,
        target,
        survey: &survey,
        start,
    };
    let (outcome, code) = match ended {
        Ok(report) => (Outcome::whole(about, report, told), EXIT_OK),
        Err(DriveError::Stopped) if interrupt.raised() => {
            let Some(outcome) = Outcome::interrupted(about, told) else {
                return Err(
                    Failure::new("stopped before a second was measured").code(EXIT_INTERRUPTED)
                );
            };
            talk.say("stopped; this was measured until then:");
            (outcome, EXIT_INTERRUPTED)
        }
        Err(error) => return Err(drive_failure(&error)),
    };
    match request.format {
        BenchFormat::Json => print(&json(&outcome)?)?,
        BenchFormat::Text => {
            if let Some(response) = outcome.response.as_ref().filter(|_| request.histogram) {
                print(&format!("{}\n", histogram::draw(response)))?;
            }
            print(&text::render(&outcome, request.percentile))?;
        }
    }
    Ok(code)
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
        "{}: {} connections{loop_} for {}{warmup} to {}; seed {}",
        request.workload.called(),
        spec.connections,
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
        for (code, count) in second.errors {
            *whole.errors.entry(code).or_default() += count;
        }
    }
    Some(whole)
}

fn drive_failure(error: &DriveError) -> Failure {
    Failure { hint: error.hint(), ..Failure::new(chain(error)) }
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
            second
        };
        let mut waiting = vec![second(1, 7.0)];
        assert!(due(&mut waiting, 2).is_none());
        waiting.push(second(2, 3.0));
        let whole = due(&mut waiting, 2).unwrap();
        assert_eq!((whole.at_s, whole.length_s, whole.transactions), (2, 2.0, 10));
        assert_eq!(whole.response.p95, 7.0);
        assert!(waiting.is_empty());
        waiting.push(second(3, 1.0));
        assert!(due(&mut waiting, 0).is_none() && waiting.is_empty());
    }
}
