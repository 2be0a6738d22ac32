//! What casts doubt on a drive: throughput that was not level, a generator that was the
//! bottleneck, transactions that never came back. Told beside the figures by `ceteris run` and
//! `ceteris bench` alike.

use load::{DriveReport, Pacing, Second};

/// A generator thread busier than this for a second was the bottleneck of that second.
const GENERATOR_BOUND_SHARE: f64 = 0.85;
/// Change over the measured window that still counts as level.
const STEADY_TOLERANCE: f64 = 0.10;
/// Fewer measured seconds than this have no trend that could be told from chance.
const SECONDS_MIN: usize = 5;
/// From this many transactions a second on, one in which none ends is no chance: with arrivals at
/// random it happens once in e^20 seconds.
const NEVER_SILENT_FROM: f64 = 20.0;

/// See the module.
pub struct Doubts {
    /// Throughput was level over the measured window; `None` where nobody can say, because the
    /// window is short or because stages change the pace within it.
    pub steady: Option<bool>,
    /// A generator thread was busy, or waited for a CPU, so long that it set the pace.
    pub generator_bound: bool,
    /// A sentence for each doubt.
    pub notes: Vec<String>,
}

/// Doubts of the drive that `report` and its `seconds` tell of, which was paced so.
pub fn doubts(report: &DriveReport, seconds: &[Second], pacing: &Pacing) -> Doubts {
    let whole = seconds.iter().filter(|s| s.measured && s.length_s > 0.5);
    let rates: Vec<f64> = whole.map(|s| s.transactions as f64 / s.length_s).collect();
    let steadiness = stats::steadiness(&rates, STEADY_TOLERANCE);
    // A thread that waits for a CPU drives as little as one that is busy, and one that does now
    // this and now that has no time left either.
    let busiest = report.peak_thread_occupied;
    let generator_bound = busiest > GENERATOR_BOUND_SHARE;
    let silent = silent_seconds(&rates);
    let staged = !pacing.stages.is_empty();
    let tellable = rates.len() >= SECONDS_MIN && !staged;
    let mut notes = Vec::new();
    if silent > 0 && !staged {
        notes.push(format!(
            "not steady: no transaction ended in {silent} of {} measured seconds",
            rates.len()
        ));
    }
    if tellable && !steadiness.steady {
        notes.push(format!(
            "not steady: throughput changed by {:+.1} % over the measured window",
            100.0 * steadiness.relative_change
        ));
    }
    if generator_bound {
        notes.push(format!(
            "generator bound: a generator thread was busy or waiting for a CPU {:.0} % of a second",
            100.0 * busiest
        ));
    }
    if report.stalled_at_end > 0 {
        notes.push(format!(
            "{} transactions were stalled when the measured window ended, the oldest for {:.0} ms",
            report.stalled_at_end, report.oldest_in_flight_ms
        ));
    }
    if report.never_started > 0 {
        let why = match pacing.rate_per_second {
            Some(_) => "the server did not keep up with the rate",
            None => "their connections were lost and had not been made again",
        };
        notes.push(format!(
            "{} transactions were due and had not started when the measured window ended: {why}",
            report.never_started
        ));
    }
    if report.failed > 0 {
        notes.push(format!(
            "{} transactions failed with their connections; {} connections were made again",
            report.failed, report.reconnects
        ));
    }
    let steady = match (staged, silent > 0) {
        (true, _) => None,
        (false, true) => Some(false),
        (false, false) => tellable.then_some(steadiness.steady),
    };
    Doubts { steady, generator_bound, notes }
}

/// Seconds in which nothing ended although much did in the others. A gap in the middle is no
/// trend, so the test for steadiness does not see it; a server that was away or stood still leaves
/// one.
fn silent_seconds(rates: &[f64]) -> usize {
    let mut busy: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 0.0).collect();
    busy.sort_by(f64::total_cmp);
    match busy.get(busy.len() / 2) {
        Some(usual) if *usual >= NEVER_SILENT_FROM => rates.len() - busy.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_for_a_cpu_bounds_as_one_that_is_busy() {
        let report =
            |occupied| DriveReport { peak_thread_occupied: occupied, ..DriveReport::default() };
        let told = |occupied| doubts(&report(occupied), &[], &Pacing::default());
        assert!(!told(0.85).generator_bound);
        let told = told(0.9);
        assert!(told.generator_bound && told.notes[0].contains("90 %"), "{:?}", told.notes);
    }

    #[test]
    fn a_server_that_was_away_is_not_steady() {
        let paced = |transactions: &[u64], pacing: Pacing| {
            let second = |n: &u64| Second {
                length_s: 1.0,
                measured: true,
                transactions: *n,
                ..Second::default()
            };
            let seconds: Vec<Second> = transactions.iter().map(second).collect();
            doubts(&DriveReport::default(), &seconds, &pacing)
        };
        let told = |transactions: &[u64]| paced(transactions, Pacing::default());
        let away = told(&[800, 370, 0, 23, 460, 380, 500]);
        assert!(away.steady == Some(false) && away.notes[0].contains("1 of 7"), "{:?}", away.notes);
        assert!(told(&[110, 170, 0, 0, 0]).notes[0].contains("3 of 5"), "it never came back");
        let slow = told(&[1, 0, 2, 0, 0, 1, 1]);
        assert_eq!(slow.steady, Some(true), "a slow load leaves seconds empty");
        for short in [&[][..], &[0, 0], &[100, 200, 300, 400]] {
            let told = told(short);
            assert!(told.steady.is_none() && told.notes.is_empty(), "{short:?}: {:?}", told.notes);
        }
        let stages = vec![load::Stage::default()];
        let staged = paced(&[800, 0, 0, 0, 100, 900], Pacing { stages, ..Pacing::default() });
        assert!(staged.steady.is_none() && staged.notes.is_empty(), "{:?}", staged.notes);
    }
}
