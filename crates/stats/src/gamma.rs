//! Gamma and beta functions, as far as Student's t needs them.
//!
//! Called by `student`. Written from the formulas of the NIST Digital Library of Mathematical
//! Functions (DLMF), with no constants taken from anybody's implementation.

/// From here on, eight terms of Stirling's series are exact to the last bits of an `f64`.
const STIRLING_FROM: f64 = 20.0;

/// What Stirling's series adds to `(x - 1/2) ln x - x + ln(2 pi) / 2`, DLMF 5.11.1.
fn stirling_tail(x: f64) -> f64 {
    /// B(2k) / (2k (2k - 1)) for k = 1..8, from the Bernoulli numbers.
    const SERIES: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
        -3617.0 / 122_400.0,
    ];
    SERIES.iter().rev().fold(0.0, |sum, term| sum / (x * x) + term) / x
}

/// Natural logarithm of the gamma function for `x > 0`: DLMF 5.11.1, after DLMF 5.5.1 has moved a
/// small argument up.
fn ln_gamma(x: f64) -> f64 {
    let mut moved = x;
    let mut product = 1.0;
    while moved < STIRLING_FROM {
        product *= moved;
        moved += 1.0;
    }
    let half_ln_two_pi = 0.5 * std::f64::consts::TAU.ln();
    (moved - 0.5) * moved.ln() - moved + half_ln_two_pi + stirling_tail(moved) - f64::ln(product)
}

/// Natural logarithm of the beta function, DLMF 5.12.1.
pub(crate) fn ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if large < STIRLING_FROM {
        return ln_gamma(small) + ln_gamma(large) - ln_gamma(small + large);
    }
    // The two large terms differ by little; subtracted as series, they keep the digits which the
    // subtraction of two logarithms around 1000 would lose.
    let sum = small + large;
    let difference = (large - 0.5) * (small / large).ln_1p() + small * sum.ln() - small
        + stirling_tail(sum)
        - stirling_tail(large);
    ln_gamma(small) - difference
}

/// Regularised incomplete beta function I_x(a, b), DLMF 8.17.2, for `a, b > 0`.
///
/// Takes `x` and `1 - x` apart: near 1 the difference would lose the digits that a tail is made of.
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64, one_minus_x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if one_minus_x <= 0.0 {
        return 1.0;
    }
    // DLMF 8.17.4; the continued fraction converges fast below the distribution's mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta_fraction(b, a, one_minus_x, x);
    }
    incomplete_beta_fraction(a, b, x, one_minus_x)
}

/// DLMF 8.17.22, evaluated by the modified Lentz method (DLMF 3.10(iii)).
fn incomplete_beta_fraction(a: f64, b: f64, x: f64, one_minus_x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let front = (a * x.ln() + b * one_minus_x.ln() - ln_beta(a, b)).exp() / a;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    // The number of terms grows as the square root of the larger parameter.
    for m in 1..100_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        let even_step = c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let odd_step = c * d;
        fraction *= even_step * odd_step;
        if (even_step - 1.0).abs() < 3e-16 && (odd_step - 1.0).abs() < 3e-16 {
            break;
        }
    }
    front * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_gamma_agrees_with_factorials_and_halves() {
        let mut factorial = 1.0_f64;
        for n in 1..=100_u32 {
            let n = f64::from(n);
            factorial *= n;
            let exact = factorial.ln();
            assert!((ln_gamma(n + 1.0) - exact).abs() <= 4e-15 * exact.max(1.0), "n = {n}");
        }
        // DLMF 5.4.6: gamma(1/2) is the square root of pi.
        let half = 0.5 * std::f64::consts::PI.ln();
        assert!((ln_gamma(0.5) - half).abs() < 1e-14);
    }

    #[test]
    fn incomplete_beta_has_its_closed_forms() {
        for x in [1e-9_f64, 0.1, 0.3, 0.5, 0.75, 0.999] {
            // DLMF 8.17.7 with b = 1 and the arcsine law for a = b = 1/2.
            let cube = x.powi(3);
            assert!((incomplete_beta(3.0, 1.0, x, 1.0 - x) - cube).abs() < 1e-13 * cube);
            let arcsine = 2.0 / std::f64::consts::PI * x.sqrt().asin();
            assert!((incomplete_beta(0.5, 0.5, x, 1.0 - x) - arcsine).abs() < 1e-14);
        }
        assert_eq!(incomplete_beta(2.0, 3.0, 0.0, 1.0), 0.0);
        assert_eq!(incomplete_beta(2.0, 3.0, 1.0, 0.0), 1.0);
    }
}
