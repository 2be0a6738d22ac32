//! How row ids are drawn: sysbench's distributions over `first..=last`.
//!
//! With u uniform in [0, 1), n = last − first + 1, t = n − 1, and m the mean of `iter` uniforms
//! (12 unless told otherwise); offsets are from `first`, and ⌊⌋ is where sysbench makes a whole
//! number of a fraction:
//!
//! - uniform: ⌊u·n⌋
//! - gaussian: ⌊m·n⌋
//! - special (1.0): r = u·t·100/(100 − res). Where r < t: ⌊m·t⌋. Else the same u again:
//!   ⌊u·(t·pct/100 + 1) + t/2 − t·pct/200⌋, so that with the defaults the hot set is the upper three
//!   quarters of the centre one percent.
//! - special (0.4.12), in whole numbers: one of n·⌊100/(100 − res)⌋ slots, from 1. Up to n: the mean
//!   of `iter` draws of 1..=n, rounded down, is the id. Else slot mod ⌊n·pct/100⌋ + ⌊n/2⌋ −
//!   ⌊n·pct/200⌋ is.
//! - gaussian (0.4.12): the mean of `iter` draws of 1..=n, rounded down, is the id.
//! - pareto: ⌊n·u^(ln h / ln(1 − h))⌋; h = 0.2 puts 80 % of the draws on the lowest 20 % of the ids.
//! - zipfian (1.1): the id of rank k with probability proportional to k^−exp; see [`Zipf`].

mod zipf;

use load::Rng;
use study::{Distribution, LegacyDistribution, Oltp, OltpLegacy};

use zipf::Zipf;

/// How ids are drawn, whatever their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Law {
    Uniform,
    Gaussian { iterations: u32 },
    Special(Special),
    Gaussian04 { iterations: u32 },
    Special04(Special),
    Pareto { h: f64 },
    Zipfian { exponent: f64 },
}

/// Parameters of both `special`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Special {
    /// Draws that the mean is taken of.
    pub iterations: u32,
    /// Percent of the rows that are hot.
    pub hot_percent: u32,
    /// Percent of the draws that go to them; below 100.
    pub hot_draws_percent: u32,
}

impl Law {
    /// Of a workload on the sysbench 1.x tables.
    pub(crate) fn of(oltp: &Oltp) -> Law {
        let special = Special {
            iterations: oltp.rand_spec_iter.max(1),
            hot_percent: oltp.rand_spec_pct,
            hot_draws_percent: oltp.rand_spec_res.min(99),
        };
        match oltp.distribution {
            Distribution::Uniform => Law::Uniform,
            Distribution::Gaussian => Law::Gaussian { iterations: special.iterations },
            Distribution::Special => Law::Special(special),
            Distribution::Special04 => Law::Special04(special),
            Distribution::Pareto => Law::Pareto { h: oltp.rand_pareto_h },
            Distribution::Zipfian => Law::Zipfian { exponent: oltp.rand_zipfian_exp },
        }
    }

    /// Of sysbench 0.4.12.
    pub(crate) fn of_legacy(legacy: &OltpLegacy) -> Law {
        let special = Special {
            iterations: legacy.dist_iter.max(1),
            hot_percent: legacy.dist_pct,
            hot_draws_percent: legacy.dist_res.min(99),
        };
        match legacy.dist_type {
            LegacyDistribution::Uniform => Law::Uniform,
            LegacyDistribution::Gaussian => Law::Gaussian04 { iterations: special.iterations },
            LegacyDistribution::Special => Law::Special04(special),
        }
    }

    /// Its name and the parameters that matter to it: equal text, equal draws.
    pub(crate) fn describe(&self) -> String {
        match *self {
            Law::Uniform => "uniform".to_owned(),
            Law::Gaussian { iterations } => format!("gaussian of {iterations}"),
            Law::Gaussian04 { iterations } => format!("gaussian 0.4 of {iterations}"),
            Law::Special(special) => format!("special {}", special.describe()),
            Law::Special04(special) => format!("special 0.4 {}", special.describe()),
            Law::Pareto { h } => format!("pareto {h}"),
            Law::Zipfian { exponent } => format!("zipfian {exponent}"),
        }
    }
}

impl Special {
    fn describe(self) -> String {
        format!("{}/{}/{}", self.iterations, self.hot_percent, self.hot_draws_percent)
    }
}

/// Draws ids of `first..=last` by a law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    first: u64,
    /// How many; at least 1.
    count: u64,
    shape: Shape,
}

/// A law with what it needs for the range at hand.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Uniform,
    Gaussian { iterations: u32 },
    Special { iterations: u32, range_factor: f64, share: f64 },
    Gaussian04 { iterations: u32 },
    Special04 { iterations: u32, slots: u64, hot: u64, hot_first: u64 },
    Pareto { power: f64 },
    Zipfian(Zipf),
}

impl Ids {
    /// Of `1..=rows`.
    pub(crate) fn new(rows: u64, law: Law) -> Ids {
        Ids::between(1, rows.max(1), law)
    }

    /// Of `first..=last`.
    pub(crate) fn between(first: u64, last: u64, law: Law) -> Ids {
        let count = last.saturating_sub(first) + 1;
        let shape = match law {
            Law::Uniform => Shape::Uniform,
            Law::Gaussian { iterations } => Shape::Gaussian { iterations },
            Law::Special(special) => Shape::Special {
                iterations: special.iterations,
                range_factor: 100.0 / (100.0 - f64::from(special.hot_draws_percent)),
                share: f64::from(special.hot_percent) / 100.0,
            },
            Law::Gaussian04 { iterations } => Shape::Gaussian04 { iterations },
            Law::Special04(special) => {
                let hot = count * u64::from(special.hot_percent);
                Shape::Special04 {
                    iterations: special.iterations,
                    slots: count * u64::from(100 / (100 - special.hot_draws_percent.min(99))),
                    hot: (hot / 100).max(1),
                    hot_first: count / 2 - (hot / 200).min(count / 2),
                }
            }
            Law::Pareto { h } => Shape::Pareto { power: h.ln() / (1.0 - h).ln() },
            Law::Zipfian { exponent } => Shape::Zipfian(Zipf::new(count, exponent)),
        };
        Ids { first, count, shape }
    }

    /// An id of the range.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        self.map_uniforms(|| rng.unit())
    }

    #[inline]
    fn map_uniforms(&self, mut uniform: impl FnMut() -> f64) -> u64 {
        let n = self.count as f64;
        let offset = match self.shape {
            Shape::Uniform => (uniform() * n) as u64,
            Shape::Gaussian { iterations } => (mean(iterations, &mut uniform) * n) as u64,
            Shape::Special { iterations, range_factor, share } => {
                let (t, u) = (n - 1.0, uniform());
                if u * t * range_factor < t {
                    (mean(iterations, &mut uniform) * t) as u64
                } else {
                    (u * (t * share + 1.0) + t / 2.0 - t * share / 2.0) as u64
                }
            }
            Shape::Gaussian04 { iterations } => self.mean_id(iterations, &mut uniform) - 1,
            Shape::Special04 { iterations, slots, hot, hot_first } => {
                let slot = 1 + (uniform() * slots as f64) as u64;
                if slot <= self.count {
                    self.mean_id(iterations, &mut uniform) - 1
                } else {
                    // A table of one row has 0 here in 0.4.12, which asked for a row that is not.
                    (slot % hot + hot_first).saturating_sub(1)
                }
            }
            Shape::Pareto { power } => (uniform().powf(power) * n) as u64,
            Shape::Zipfian(zipf) => zipf.rank(&mut uniform) - 1,
        };
        // Rounding could reach n where u is within 2^-53 of 1.
        self.first + offset.min(self.count - 1)
    }

    /// Mean of whole numbers of `1..=count`, rounded down.
    #[inline]
    fn mean_id(&self, iterations: u32, uniform: &mut impl FnMut() -> f64) -> u64 {
        let n = self.count as f64;
        let sum: u64 = (0..iterations).map(|_| 1 + (uniform() * n) as u64).sum();
        sum / u64::from(iterations)
    }
}

fn mean(iterations: u32, uniform: &mut impl FnMut() -> f64) -> f64 {
    (0..iterations).map(|_| uniform()).sum::<f64>() / f64::from(iterations)
}

#[cfg(test)]
mod tests;
