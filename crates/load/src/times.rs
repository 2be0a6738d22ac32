//! Durations, counted in the buckets of an HDR histogram.
//!
//! What a thread records goes here: two constants, a shift and an addition, a fifth of what a
//! histogram of `hdrhistogram` costs, which finds its bounds in itself and keeps a sum, a least and
//! a largest with every record. Whoever reads makes such a histogram of it; its figures are the
//! same as if it had been recorded into, for all of them depend on the buckets alone.

use hdrhistogram::Histogram;

use crate::error::DriveError;
use crate::histogram::{LATENCY_NS_MAX, coarse_histogram, latency_histogram};

/// Three significant digits from 1 ns on, some 200 KiB.
pub(crate) type Fine = Times<10, 0>;
/// Two significant digits from 64 ns on, some 25 KiB.
pub(crate) type Coarse = Times<7, 6>;

/// Up to [`LATENCY_NS_MAX`], in units of 2^`UNIT` nanoseconds. The first bucket has 2^(`HALF` + 1)
/// counts of a unit each; every further one 2^`HALF` counts, each twice as wide as those before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times<const HALF: u32, const UNIT: u32>(Box<[u64]>);

/// What has a histogram of `hdrhistogram` with the same buckets.
pub(crate) trait Buckets {
    /// An empty one.
    fn empty() -> Result<Histogram<u64>, DriveError>;
}

impl Buckets for Fine {
    fn empty() -> Result<Histogram<u64>, DriveError> {
        latency_histogram()
    }
}

impl Buckets for Coarse {
    fn empty() -> Result<Histogram<u64>, DriveError> {
        coarse_histogram()
    }
}

impl<const HALF: u32, const UNIT: u32> Times<HALF, UNIT> {
    /// None yet.
    pub(crate) fn new() -> Self {
        let buckets = Self::bucket(LATENCY_NS_MAX) as usize + 2;
        Times(vec![0; buckets << HALF].into_boxed_slice())
    }

    /// From 0.
    #[inline]
    fn bucket(ns: u64) -> u32 {
        let first = (1u64 << (HALF + 1 + UNIT)) - 1;
        first.leading_zeros() - (ns | first).leading_zeros()
    }

    #[inline]
    fn index(ns: u64) -> usize {
        let bucket = Self::bucket(ns);
        // The second half of a bucket's counts is where those of the next begin.
        ((bucket as usize) << HALF) + (ns >> (bucket + UNIT)) as usize
    }

    /// The longest time that is counted at `index`.
    fn longest_ns(index: usize) -> u64 {
        let bucket = (index >> HALF).saturating_sub(1);
        let next = (index - (bucket << HALF)) as u64 + 1;
        (next << (bucket as u32 + UNIT)) - 1
    }

    /// Counts a time; one that is too long as the longest.
    #[inline]
    pub(crate) fn saturating_record(&mut self, ns: u64) {
        match self.0.get_mut(Self::index(ns)) {
            Some(count) => *count += 1,
            None => self.record_longest(),
        }
    }

    #[cold]
    fn record_longest(&mut self) {
        if let Some(count) = self.0.get_mut(Self::index(LATENCY_NS_MAX)) {
            *count += 1;
        }
    }

    /// Counts what another has counted, too.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum += count;
        }
    }

    /// Forgets all; writes every page.
    pub(crate) fn reset(&mut self) {
        self.0.fill(0);
    }

    /// The longest time that counts as the `quantile` (0 to 1) does; `None` if none was counted.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let wanted = ((quantile * self.0.iter().sum::<u64>() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.0
            .iter()
            .position(|count| {
                seen += count;
                seen >= wanted
            })
            .map(Self::longest_ns)
    }

    /// The sum of all times, within the width of their buckets.
    pub(crate) fn total_ns(&self) -> f64 {
        let counted = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(index, count)| Self::longest_ns(index) as f64 * *count as f64).sum()
    }

    /// As a histogram.
    ///
    /// # Errors
    /// None that can happen: the bounds are constants.
    pub(crate) fn histogram(&self) -> Result<Histogram<u64>, DriveError>
    where
        Self: Buckets,
    {
        let mut histogram = Self::empty()?;
        for (index, &count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(Self::longest_ns(index), count);
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::histogram::latency_ms;
    use crate::rng::Rng;

    /// Times of all magnitudes, and those at the edges of buckets.
    fn examples() -> Vec<u64> {
        let mut rng = Rng::new(1, 2, 3, 0);
        let edges = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, (1 << bit) + 1]);
        let longest = [LATENCY_NS_MAX, LATENCY_NS_MAX + 1, u64::MAX];
        edges.chain(longest).chain((0..10_000).map(|i| rng.next_u64() >> (i % 64))).collect()
    }

    fn agrees<const HALF: u32, const UNIT: u32>()
    where
        Times<HALF, UNIT>: Buckets,
    {
        let mut times = Times::<HALF, UNIT>::new();
        let mut histogram = Times::<HALF, UNIT>::empty().unwrap();
        assert_eq!(times.0.len(), histogram.distinct_values());
        assert_eq!(times.histogram().unwrap(), histogram);
        for (i, ns) in examples().into_iter().enumerate() {
            times.saturating_record(ns);
            histogram.saturating_record(ns);
            if i % 100 == 0 {
                assert_eq!(times.histogram().unwrap(), histogram, "with {ns}");
            }
        }
        let converted = times.histogram().unwrap();
        assert_eq!(converted, histogram);
        for quantile in [0.01, 0.5, 0.99, 1.0] {
            assert_eq!(times.quantile_ns(quantile), Some(histogram.value_at_quantile(quantile)));
        }
        let sum_ns = histogram.mean() * histogram.len() as f64;
        assert!((times.total_ns() / sum_ns - 1.0).abs() < 0.01, "{} {sum_ns}", times.total_ns());
        assert_eq!(latency_ms(&converted), latency_ms(&histogram));
        let mut twice = times.clone();
        twice.add(&times);
        histogram.add(converted).unwrap();
        assert_eq!(twice.histogram().unwrap(), histogram);
        twice.reset();
        assert_eq!(twice, Times::new());
    }

    #[test]
    fn counts_are_those_of_a_histogram() {
        agrees::<10, 0>();
        agrees::<7, 6>();
    }
}
