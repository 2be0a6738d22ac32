//! How row ids are drawn: sysbench's distributions over `1..=rows`.
//!
//! With u uniform in [0, 1), n = rows and t = n − 1:
//!
//! - uniform: 1 + ⌊u·n⌋
//! - gaussian: 1 + ⌊m·n⌋, m the mean of 12 uniforms
//! - special (sysbench 1.0): r = 4·t·u. Where r < t (a quarter of the draws): 1 + ⌊m·t⌋. Else the
//!   same u again, which is in [0.25, 1): 1 + ⌊u·(⌊t/100⌋ + 1)⌋ + ⌊⌊t/2⌋ − t/200⌋, so that the hot
//!   set is the upper three quarters of the centre one percent.
//! - pareto: 1 + ⌊n·u^7.2126⌋, the exponent being ln 0.2 / ln 0.8: 80 % of the draws fall on the
//!   lowest 20 % of the ids.

use load::Rng;
use study::Distribution;

const GAUSSIAN_ITERATIONS: u32 = 12;
const SPECIAL_RANGE_FACTOR: f64 = 100.0 / (100.0 - 75.0);
const SPECIAL_SHARE: f64 = 0.01;
const PARETO_H: f64 = 0.2;

/// Draws row ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    rows: u64,
    distribution: Distribution,
    pareto_power: f64,
}

impl Ids {
    pub(crate) fn new(rows: u64, distribution: Distribution) -> Ids {
        Ids { rows, distribution, pareto_power: PARETO_H.ln() / (1.0 - PARETO_H).ln() }
    }

    /// An id in `1..=rows`.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        self.map_uniforms(|| rng.unit())
    }

    #[inline]
    fn map_uniforms(&self, mut uniform: impl FnMut() -> f64) -> u64 {
        let n = self.rows as f64;
        let offset = match self.distribution {
            Distribution::Uniform => uniform() * n,
            Distribution::Gaussian => mean(&mut uniform) * n,
            Distribution::Special => special(n - 1.0, &mut uniform),
            Distribution::Pareto => uniform().powf(self.pareto_power) * n,
        };
        // Rounding could reach n where u is within 2^-53 of 1.
        1 + (offset as u64).min(self.rows.saturating_sub(1))
    }
}

fn mean(uniform: &mut impl FnMut() -> f64) -> f64 {
    (0..GAUSSIAN_ITERATIONS).map(|_| uniform()).sum::<f64>() / f64::from(GAUSSIAN_ITERATIONS)
}

fn special(t: f64, uniform: &mut impl FnMut() -> f64) -> f64 {
    let u = uniform();
    if (u * t * SPECIAL_RANGE_FACTOR).floor() < t {
        return mean(uniform) * t;
    }
    let hot = (t * SPECIAL_SHARE).floor() + 1.0;
    (u * hot).floor() + ((t / 2.0).floor() - t * SPECIAL_SHARE / 2.0).floor()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(distribution: Distribution, rows: u64, uniforms: &[f64]) -> u64 {
        let mut uniforms = uniforms.iter().copied();
        Ids::new(rows, distribution).map_uniforms(|| uniforms.next().unwrap_or(0.5))
    }

    #[test]
    fn follow_their_formulas() {
        let almost_one = 1.0 - f64::EPSILON / 2.0;
        for (distribution, rows, uniforms, id) in [
            (Distribution::Uniform, 10_000, &[0.0][..], 1),
            (Distribution::Uniform, 10_000, &[0.123_45], 1235),
            (Distribution::Uniform, 10_000, &[almost_one], 10_000),
            (Distribution::Gaussian, 10_000, &[0.0; 12], 1),
            (Distribution::Gaussian, 10_000, &[0.5; 12], 5001),
            (Distribution::Gaussian, 10_000, &[almost_one; 12], 10_000),
            // t = 9999: a quarter of the draws go on to twelve more uniforms.
            (Distribution::Special, 10_000, &[0.1], 5000),
            (Distribution::Special, 10_000, &[0.249], 5000),
            // ⌊9999/100⌋ + 1 = 100 hot ids; they begin at 1 + ⌊4999 − 49.995⌋ = 4950.
            (Distribution::Special, 10_000, &[0.25], 4975),
            (Distribution::Special, 10_000, &[0.5], 5000),
            (Distribution::Special, 10_000, &[0.999_9], 5049),
            (Distribution::Pareto, 10_000, &[0.0], 1),
            (Distribution::Pareto, 10_000, &[0.5], 68),
            (Distribution::Pareto, 10_000, &[0.79], 1827),
            (Distribution::Pareto, 10_000, &[almost_one], 10_000),
        ] {
            assert_eq!(
                vector(distribution, rows, uniforms),
                id,
                "{distribution:?} of {rows}, {uniforms:?}"
            );
        }
    }

    #[test]
    fn a_table_of_one_row_has_one_id() {
        for distribution in [
            Distribution::Uniform,
            Distribution::Gaussian,
            Distribution::Special,
            Distribution::Pareto,
        ] {
            let mut rng = Rng::new(1, 0, 0, 0);
            assert!((0..100).all(|_| Ids::new(1, distribution).draw(&mut rng) == 1));
        }
    }

    /// Chi-square of draws against the probability that an id is at most `x · rows`.
    fn chi_square(distribution: Distribution, edges: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
        let (rows, draws) = (1_000_000, 200_000);
        let ids = Ids::new(rows, distribution);
        let mut rng = Rng::new(42, 7, 0, 0);
        let mut counts = vec![0.0; edges.len() + 1];
        for _ in 0..draws {
            let x = (ids.draw(&mut rng) as f64 - 0.5) / rows as f64;
            counts[edges.iter().filter(|&&edge| x > edge).count()] += 1.0;
        }
        let mut below = 0.0;
        let ends = edges.iter().map(|&edge| cdf(edge)).chain([1.0]);
        ends.zip(counts)
            .map(|(end, count)| {
                let expected = f64::from(draws) * (end - below);
                below = end;
                assert!(expected > 20.0, "too few to be expected for a chi-square test");
                (count - expected).powi(2) / expected
            })
            .sum()
    }

    /// CDF of the mean of twelve uniforms (Irwin-Hall).
    fn irwin_hall(x: f64) -> f64 {
        let (mut sum, mut choose, mut factorial) = (0.0, 1.0, 1.0);
        for k in 0..=12 {
            let k = f64::from(k);
            if 12.0 * x > k {
                sum += choose * (12.0 * x - k).powi(12);
            }
            choose *= -(12.0 - k) / (k + 1.0);
            factorial *= if k > 0.0 { k } else { 1.0 };
        }
        sum / factorial
    }

    const TENTHS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
    /// p = 0.001 with nine degrees of freedom.
    const LIMIT_9: f64 = 27.88;

    #[test]
    fn uniform_passes_chi_square() {
        assert!(chi_square(Distribution::Uniform, &TENTHS, |x| x) < LIMIT_9);
    }

    #[test]
    fn pareto_passes_chi_square() {
        let power = (1.0_f64 - 0.2).ln() / 0.2_f64.ln();
        assert!(chi_square(Distribution::Pareto, &TENTHS, |x| x.powf(power)) < LIMIT_9);
        assert!((0.2_f64.powf(power) - 0.8).abs() < 1e-12, "80 % on the lowest 20 %");
    }

    #[test]
    fn gaussian_passes_chi_square() {
        assert!((irwin_hall(0.5) - 0.5).abs() < 1e-9 && (irwin_hall(1.0) - 1.0).abs() < 1e-6);
        let edges = [0.3, 0.36, 0.42, 0.46, 0.5, 0.54, 0.58, 0.64, 0.7];
        assert!(chi_square(Distribution::Gaussian, &edges, irwin_hall) < LIMIT_9);
        assert!(chi_square(Distribution::Gaussian, &edges, |x| x) > 1000.0, "the test can fail");
    }

    #[test]
    fn special_passes_chi_square() {
        // The hot set is [0.4975, 0.505]: u in [0.25, 1) over one percent from 0.495 on.
        let hot = |x: f64| ((x - 0.4975) / 0.0075).clamp(0.0, 1.0);
        let cdf = |x: f64| 0.25 * irwin_hall(x) + 0.75 * hot(x);
        let edges = [0.36, 0.42, 0.46, 0.4975, 0.499, 0.501, 0.503, 0.505, 0.58];
        assert!(chi_square(Distribution::Special, &edges, cdf) < LIMIT_9);
    }
}
