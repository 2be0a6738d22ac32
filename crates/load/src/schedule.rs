//! When intervals end: whole seconds from the start, and the ends of warm-up and measurement.

use std::time::Duration;

/// One interval of a drive, relative to the start of its first transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// Begin in nanoseconds; what happens at this instant belongs to it.
    pub begin_ns: u64,
    /// End in nanoseconds; what happens at this instant belongs to the next.
    pub end_ns: u64,
    /// Lies in the measured window.
    pub measured: bool,
}

/// All intervals, without gaps. An interval is a second long, or shorter where a second is cut by
/// the end of warm-up or measurement.
pub(crate) fn intervals(warmup: Duration, measure: Duration) -> Vec<Interval> {
    let second = 1_000_000_000;
    let warmup_ns = u64::try_from(warmup.as_nanos()).unwrap_or(u64::MAX);
    let end_ns = warmup_ns.saturating_add(u64::try_from(measure.as_nanos()).unwrap_or(u64::MAX));
    let mut intervals = Vec::new();
    let mut begin_ns = 0;
    while begin_ns < end_ns {
        let next = (begin_ns / second + 1) * second;
        let measured = begin_ns >= warmup_ns;
        let limit = if measured { end_ns } else { warmup_ns };
        intervals.push(Interval { begin_ns, end_ns: next.min(limit), measured });
        begin_ns = next.min(limit);
    }
    intervals
}

impl Interval {
    /// Its length in seconds.
    pub(crate) fn length_s(&self) -> f64 {
        (self.end_ns - self.begin_ns) as f64 / 1e9
    }

    /// Its end in seconds.
    pub(crate) fn end_s(&self) -> f64 {
        self.end_ns as f64 / 1e9
    }

    /// Its end in seconds, rounded up.
    pub(crate) fn at_s(&self) -> u32 {
        self.end_ns.div_ceil(1_000_000_000).try_into().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(warmup_ms: u64, measure_ms: u64) -> Vec<(u64, bool, u32)> {
        intervals(Duration::from_millis(warmup_ms), Duration::from_millis(measure_ms))
            .iter()
            .map(|interval| (interval.end_ns / 1_000_000, interval.measured, interval.at_s()))
            .collect()
    }

    #[test]
    fn seconds_are_whole_except_at_the_ends() {
        assert_eq!(ends(1000, 2000), [(1000, false, 1), (2000, true, 2), (3000, true, 3)]);
        assert_eq!(ends(0, 1500), [(1000, true, 1), (1500, true, 2)]);
        assert_eq!(
            ends(1500, 1000),
            [(1000, false, 1), (1500, false, 2), (2000, true, 2), (2500, true, 3)]
        );
        assert_eq!(ends(500, 0), [(500, false, 1)]);
    }

    #[test]
    fn the_exact_end_tells_intervals_apart_that_share_a_second() {
        let all = intervals(Duration::from_millis(1500), Duration::from_millis(1000));
        let ends: Vec<f64> = all.iter().map(Interval::end_s).collect();
        assert_eq!(ends, [1.0, 1.5, 2.0, 2.5]);
    }

    #[test]
    fn there_are_no_gaps() {
        let all = intervals(Duration::from_millis(2300), Duration::from_millis(4450));
        assert!(all.windows(2).all(|pair| pair[0].end_ns == pair[1].begin_ns));
        let measured: f64 =
            all.iter().filter(|interval| interval.measured).map(Interval::length_s).sum();
        assert!((measured - 4.45).abs() < 1e-9);
    }
}
