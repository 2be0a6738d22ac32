//! When the transactions of an open loop are due.
//!
//! The whole drive's arrivals are one sequence, a function of its seed and its pace alone, that
//! every thread walks: of arrival `i`, due when `n` connections are at work, that thread takes
//! notice which owns connection `i mod n`. So the same transactions are due at the same instants
//! whatever the number of threads, no thread gets work that has no connection for it, and what is
//! due and has not started needs no memory: it lies between this cursor and the clock. Walking past
//! other threads' arrivals costs some 20 ns each.

use std::sync::Arc;

use crate::rng::Rng;
use crate::spec;
use crate::timeline::{Timeline, nanoseconds};

/// The random stream of arrivals; no connection's ordinal comes near it.
const STREAM: u64 = u64::MAX;

/// See the module; a clone goes on from where its original stood.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    timeline: Arc<Timeline>,
    thread: u32,
    threads: u32,
    rng: Rng,
    /// The next arrival of the whole drive.
    index: u64,
    /// Area under the rate at which it is due.
    area: f64,
    /// Piece of the rate in which the latest was due.
    piece: usize,
    /// When the next of this thread is due, nanoseconds from the start.
    due_ns: u64,
}

impl Arrivals {
    /// Before the first of `thread`; `None` in a closed loop.
    pub(crate) fn new(timeline: &Arc<Timeline>, thread: u32, threads: u32) -> Option<Arrivals> {
        timeline.rate.as_ref()?;
        let mut arrivals = Arrivals {
            timeline: Arc::clone(timeline),
            thread,
            threads,
            rng: Rng::new(timeline.seed, STREAM, 0, 0),
            index: 0,
            area: 0.0,
            piece: 0,
            due_ns: 0,
        };
        arrivals.advance();
        Some(arrivals)
    }

    /// When the next is due, nanoseconds from the start; `u64::MAX` where there is none before the
    /// end of the drive.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Goes on to the one after it.
    #[inline]
    pub(crate) fn advance(&mut self) {
        loop {
            self.area = match self.timeline.arrivals {
                spec::Arrivals::Poisson => self.area - (1.0 - self.rng.unit()).ln(),
                // Half a gap from the start, so that no rounding decides whether the last one
                // still belongs to the drive.
                spec::Arrivals::Uniform => self.index as f64 + 0.5,
            };
            let rate = self.timeline.rate.as_ref();
            let due_ns = rate
                .and_then(|rate| rate.reaches(self.area, &mut self.piece))
                .map_or(u64::MAX, nanoseconds);
            if due_ns >= self.timeline.end_ns {
                self.due_ns = u64::MAX;
                return;
            }
            let owner = self.index % u64::from(self.timeline.connections(due_ns).max(1));
            self.index += 1;
            if owner % u64::from(self.threads) == u64::from(self.thread) {
                self.due_ns = due_ns;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;
    use crate::spec::{DriveSpec, Pacing, Stage};

    fn timeline(arrivals: spec::Arrivals, stages: Vec<Stage>) -> Arc<Timeline> {
        let rate_per_second = Some(1000.0);
        let pacing = Pacing { rate_per_second, arrivals, stages, ..Pacing::default() };
        let measure = Duration::from_secs(20);
        let spec = DriveSpec { connections: 5, measure, seed: 3, pacing, ..DriveSpec::default() };
        Arc::new(Timeline::new(&spec).unwrap())
    }

    fn all(timeline: &Arc<Timeline>, thread: u32, threads: u32) -> Vec<u64> {
        let mut arrivals = Arrivals::new(timeline, thread, threads).unwrap();
        let mut all = Vec::new();
        while arrivals.due_ns() < u64::MAX {
            all.push(arrivals.due_ns());
            arrivals.advance();
        }
        all
    }

    #[test]
    fn threads_share_one_sequence_by_their_connections() {
        let fewer = Stage { at: Duration::from_secs(10), connections: Some(2), ..Stage::default() };
        for kind in [spec::Arrivals::Poisson, spec::Arrivals::Uniform] {
            let timeline = timeline(kind, vec![fewer]);
            let whole = all(&timeline, 0, 1);
            let shares: Vec<Vec<u64>> = (0..3).map(|thread| all(&timeline, thread, 3)).collect();
            let mut together = shares.concat();
            together.sort_unstable();
            assert_eq!(together, whole);
            // Of 5 connections the third thread has 1, of 2 it has none.
            assert!(shares[2].iter().all(|&due_ns| due_ns < 10_000_000_000));
            let first_half = shares[2].len() as f64
                / whole.iter().filter(|&&due_ns| due_ns < 10_000_000_000).count() as f64;
            assert!((first_half - 0.2).abs() < 0.001, "{first_half}");
        }
    }

    #[test]
    fn uniform_gaps_are_equal_and_poisson_gaps_exponential() {
        let uniform = all(&timeline(spec::Arrivals::Uniform, Vec::new()), 0, 1);
        assert_eq!(uniform.len(), 20_000);
        assert!(uniform.windows(2).all(|two| (two[1] - two[0]).abs_diff(1_000_000) <= 1));

        let poisson = all(&timeline(spec::Arrivals::Poisson, Vec::new()), 0, 1);
        // Four standard deviations of a Poisson count.
        assert!((poisson.len() as f64 - 20_000.0).abs() < 4.0 * 20_000f64.sqrt());
        let gaps: Vec<f64> = poisson.windows(2).map(|two| (two[1] - two[0]) as f64 / 1e6).collect();
        // Kolmogorov-Smirnov against the exponential distribution, p = 0.001.
        let mut sorted = gaps.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let distance = sorted.iter().enumerate().fold(0.0f64, |distance, (i, gap)| {
            let wanted = 1.0 - (-gap).exp();
            distance.max((wanted - i as f64 / count).abs())
        });
        assert!(distance < 1.95 / count.sqrt(), "{distance}");
    }

    #[test]
    fn the_rate_follows_its_stages() {
        let ramp = Stage {
            at: Duration::from_secs(5),
            ramp: Duration::from_secs(5),
            rate_per_second: Some(3000.0),
            ..Stage::default()
        };
        let stop = Stage { at: Duration::from_secs(15), rate_per_second: Some(0.0), ..ramp };
        let stop = Stage { ramp: Duration::ZERO, ..stop };
        let due = all(&timeline(spec::Arrivals::Uniform, vec![ramp, stop]), 0, 1);
        let within = |from: u64, to: u64| {
            due.iter().filter(|&&ns| (from..to).contains(&(ns / 1_000_000_000))).count()
        };
        // The ramp covers (1000 + 3000) / 2 on average.
        assert_eq!([within(0, 5), within(5, 10), within(10, 15)], [5_000, 10_000, 15_000]);
        assert_eq!(within(15, 20), 0);
    }
}
