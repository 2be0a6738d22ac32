//! The normal distribution's tail, for the trend test of `steady`.

use std::f64::consts::{PI, SQRT_2};

/// Two-sided p-value of a standard normal deviate: the probability of one at least as far from 0.
pub(crate) fn two_sided_p(z: f64) -> f64 {
    erfc(z.abs() / SQRT_2)
}

/// Complementary error function for `x >= 0`.
fn erfc(x: f64) -> f64 {
    if x < 2.0 {
        // DLMF 7.6.2: all terms are positive, so nothing cancels before the last subtraction.
        let mut term = x;
        let mut sum = x;
        let mut n = 0.0;
        while term > 1e-17 * sum {
            n += 1.0;
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
        }
        return 1.0 - 2.0 / PI.sqrt() * (-x * x).exp() * sum;
    }
    // DLMF 7.9.1, from the inside out; 120 terms are more than enough from 2 on.
    let square = x * x;
    let mut fraction = 0.0;
    for k in (1..=120).rev() {
        let k = f64::from(k);
        fraction = k / 2.0 / if k % 2.0 == 1.0 { 1.0 + fraction } else { square + fraction };
    }
    (-square).exp() * x / (PI.sqrt() * (square + fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two-sided tail areas from the tables in Abramowitz and Stegun, 26.1 and 26.2.
    #[test]
    fn agrees_with_published_tails() {
        for (z, p) in [
            (0.0, 1.0),
            (0.674_489_750_196_081_7, 0.5),
            (1.0, 0.317_310_507_862_914_1),
            (1.959_963_984_540_054, 0.05),
            (2.0, 0.045_500_263_896_358_4),
            (2.575_829_303_548_901, 0.01),
            (3.0, 0.002_699_796_063_260_19),
            (3.290_526_731_491_926, 0.001),
            (5.0, 5.733_031_437_583_88e-7),
            (6.0, 1.973_175_290_075_4e-9),
        ] {
            let found = two_sided_p(z);
            assert!((found - p).abs() <= 1e-11 * p, "z = {z}: {found} instead of {p}");
            assert_eq!(found, two_sided_p(-z));
        }
    }

    #[test]
    fn both_formulas_meet() {
        let (below, above) = (erfc(2.0 - 1e-9), erfc(2.0));
        // The density between them accounts for the difference.
        let density = 2.0 / PI.sqrt() * (-4.0_f64).exp();
        assert!((below - above - density * 1e-9).abs() < 1e-15);
    }
}
