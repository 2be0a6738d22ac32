//! Student's t distribution, through the regularised incomplete beta function.

use crate::gamma::{incomplete_beta, ln_beta};

/// Cumulative distribution function of Student's t with `df` degrees of freedom (any positive
/// number, whole or not).
///
/// F(t) = 1 - I_x(df/2, 1/2) / 2 with x = df / (df + t²) for t >= 0 (Abramowitz and Stegun 26.7.1
/// with 26.5.27), and by symmetry below. NaN for a `df` that is not positive.
pub fn t_cdf(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    let tail = 0.5 * two_sided_p(t, df);
    if t < 0.0 { tail } else { 0.5 + 0.5 * central(t, df) }
}

/// Inverse of [`t_cdf`] for `p` in (0, 1): minus infinity at 0, infinity at 1, NaN beyond, and NaN
/// for a `df` that is not positive.
///
/// Newton's method on the nearer of tail and centre, kept inside a bracket by bisection.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if p == 0.5 {
        return 0.0;
    }
    let tail = p.min(1.0 - p);
    let magnitude = if tail == 0.0 { f64::INFINITY } else { upper_quantile(p, tail, df) };
    if p < 0.5 { -magnitude } else { magnitude }
}

/// Probability of a t at least as far from 0 as this one.
pub(crate) fn two_sided_p(t: f64, df: f64) -> f64 {
    let (x, rest) = beta_argument(t, df);
    incomplete_beta(0.5 * df, 0.5, x, rest)
}

/// Probability of a t nearer to 0 than this one.
fn central(t: f64, df: f64) -> f64 {
    let (x, rest) = beta_argument(t, df);
    incomplete_beta(0.5, 0.5 * df, rest, x)
}

/// `df / (df + t²)` and one minus it, neither by subtraction nor by a square that overflows.
fn beta_argument(t: f64, df: f64) -> (f64, f64) {
    let scaled = t.abs() / df.sqrt();
    if scaled > 1.0 {
        let inverse = (1.0 / scaled).powi(2);
        (inverse / (1.0 + inverse), 1.0 / (1.0 + inverse))
    } else {
        let square = scaled * scaled;
        (1.0 / (1.0 + square), square / (1.0 + square))
    }
}

/// Density, Abramowitz and Stegun 26.7.1 differentiated.
fn density(t: f64, df: f64) -> f64 {
    let ln_kernel = -0.5 * (df + 1.0) * (t * t / df).ln_1p();
    (ln_kernel - ln_beta(0.5, 0.5 * df)).exp() / df.sqrt()
}

/// The t > 0 beyond which `tail` < 1/2 lies. Near the centre the equation is that of the centre's
/// probability, because there `p - 1/2` carries digits that the tail has lost.
fn upper_quantile(p: f64, tail: f64, df: f64) -> f64 {
    let near_centre = tail > 0.25;
    let centre = 2.0 * (p - 0.5).abs();
    // Positive above the root, zero on it, negative below it; relative to what is solved for.
    let beyond = |t: f64| {
        if near_centre {
            (central(t, df) - centre) / centre
        } else {
            (2.0 * tail - two_sided_p(t, df)) / (2.0 * tail)
        }
    };
    let mut low = 0.0;
    let mut high = 1.0;
    while beyond(high) < 0.0 && high < f64::MAX / 4.0 {
        low = high;
        high *= 2.0;
    }
    let scale = if near_centre { centre } else { 2.0 * tail };
    let mut t = 0.5 * (low + high);
    for _ in 0..200 {
        let error = beyond(t);
        if error == 0.0 {
            break;
        }
        if error < 0.0 {
            low = t;
        } else {
            high = t;
        }
        let newton = t - error * scale / (2.0 * density(t, df));
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - t).abs() <= 1e-16 * t {
            return next;
        }
        t = next;
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::PI;

    /// A(t | df) = P(|T| < t) for whole df as a finite trigonometric sum, Abramowitz and Stegun
    /// 26.7.3 (odd) and 26.7.4 (even): a second way that shares nothing with the first.
    fn central_by_finite_sum(t: f64, df: u32) -> f64 {
        let n = f64::from(df);
        let theta = (t / n.sqrt()).atan();
        let (sin, cos) = theta.sin_cos();
        let mut sum = 0.0;
        if df % 2 == 1 {
            let mut term = cos;
            let mut k = 1.0;
            while k <= n - 2.0 {
                sum += term;
                term *= (k + 1.0) / (k + 2.0) * cos * cos;
                k += 2.0;
            }
            2.0 / PI * (theta + sin * sum)
        } else {
            let mut term = 1.0;
            let mut k = 0.0;
            while k <= n - 2.0 {
                sum += term;
                term *= (k + 1.0) / (k + 2.0) * cos * cos;
                k += 2.0;
            }
            sin * sum
        }
    }

    fn relative(found: f64, wanted: f64) -> f64 {
        (found - wanted).abs() / wanted.abs()
    }

    #[test]
    fn cdf_equals_the_finite_sums_for_every_df_to_1000() {
        for df in 1..=1000 {
            for t in [0.001, 0.1, 0.7, 1.0, 1.96, 2.6, 4.0, 9.0] {
                let wanted = 0.5 + 0.5 * central_by_finite_sum(t, df);
                let found = t_cdf(t, f64::from(df));
                assert!(relative(found, wanted) < 2e-13, "df {df}, t {t}: {found} {wanted}");
                let below = t_cdf(-t, f64::from(df));
                assert!((below + found - 1.0).abs() < 2e-13, "df {df}, t {t}");
            }
        }
    }

    #[test]
    fn quantile_inverts_the_finite_sums_for_every_df_to_1000() {
        for df in 1..=1000 {
            for p in [0.5001, 0.6, 0.75, 0.9, 0.975, 0.995, 0.9995] {
                let t = t_quantile(p, f64::from(df));
                let found = 0.5 + 0.5 * central_by_finite_sum(t, df);
                assert!(relative(found, p) < 2e-13, "df {df}, p {p}: t {t} gives {found}");
                assert!((t_quantile(1.0 - p, f64::from(df)) + t).abs() < 1e-11 * t.max(1.0));
            }
        }
    }

    /// The table of percentage points that every textbook prints (Student 1908, Fisher 1925;
    /// Abramowitz and Stegun table 26.10), rounded to three decimals.
    #[test]
    fn quantiles_are_those_of_the_published_table() {
        const LEVELS: [f64; 5] = [0.95, 0.975, 0.99, 0.995, 0.9995];
        const TABLE: [(f64, [f64; 5]); 13] = [
            (1.0, [6.314, 12.706, 31.821, 63.657, 636.619]),
            (2.0, [2.920, 4.303, 6.965, 9.925, 31.599]),
            (3.0, [2.353, 3.182, 4.541, 5.841, 12.924]),
            (4.0, [2.132, 2.776, 3.747, 4.604, 8.610]),
            (5.0, [2.015, 2.571, 3.365, 4.032, 6.869]),
            (6.0, [1.943, 2.447, 3.143, 3.707, 5.959]),
            (8.0, [1.860, 2.306, 2.896, 3.355, 5.041]),
            (10.0, [1.812, 2.228, 2.764, 3.169, 4.587]),
            (20.0, [1.725, 2.086, 2.528, 2.845, 3.850]),
            (30.0, [1.697, 2.042, 2.457, 2.750, 3.646]),
            (60.0, [1.671, 2.000, 2.390, 2.660, 3.460]),
            (120.0, [1.658, 1.980, 2.358, 2.617, 3.373]),
            (1e9, [1.645, 1.960, 2.326, 2.576, 3.291]),
        ];
        for (df, row) in TABLE {
            for (p, wanted) in LEVELS.into_iter().zip(row) {
                let found = t_quantile(p, df);
                assert!((found - wanted).abs() <= 0.0005001, "df {df}, p {p}: {found}");
            }
        }
    }

    /// df 1, 2 and 4 have closed forms (Cauchy; p = 1/2 + t / (2 sqrt(2 + t²)); Shaw 2006).
    #[test]
    fn quantiles_have_their_closed_forms_far_into_the_tails() {
        for p in [1e-12, 1e-6, 0.001, 0.025, 0.3, 0.499_999_9, 0.7, 0.99, 0.999_999] {
            let cauchy = -1.0 / (PI * p).tan();
            assert!(relative(t_quantile(p, 1.0), cauchy) < 1e-9, "df 1, p {p}");
            let alpha = 4.0 * p * (1.0 - p);
            let two = 2.0 * (p - 0.5) * (2.0 / alpha).sqrt();
            assert!(relative(t_quantile(p, 2.0), two) < 1e-9, "df 2, p {p}");
            let q = ((alpha.sqrt().acos() / 3.0).cos() / alpha.sqrt()).abs();
            let four = (p - 0.5).signum() * 2.0 * (q - 1.0).sqrt();
            if (p - 0.5_f64).abs() > 0.01 {
                assert!(relative(t_quantile(p, 4.0), four) < 1e-9, "df 4, p {p}");
            }
        }
    }

    #[test]
    fn edges_are_values_and_nonsense_is_nan() {
        assert_eq!(t_quantile(0.0, 5.0), f64::NEG_INFINITY);
        assert_eq!(t_quantile(1.0, 5.0), f64::INFINITY);
        assert_eq!(t_quantile(0.5, 5.0), 0.0);
        assert_eq!(t_cdf(f64::INFINITY, 5.0), 1.0);
        assert_eq!(t_cdf(f64::NEG_INFINITY, 5.0), 0.0);
        assert_eq!(t_cdf(0.0, 5.0), 0.5);
        for nonsense in [
            t_cdf(1.0, 0.0),
            t_cdf(1.0, -1.0),
            t_cdf(f64::NAN, 1.0),
            t_quantile(1.5, 3.0),
            t_quantile(-0.1, 3.0),
            t_quantile(f64::NAN, 3.0),
            t_quantile(0.9, f64::NAN),
        ] {
            assert!(nonsense.is_nan());
        }
    }

    proptest! {
        #[test]
        fn quantile_and_cdf_are_inverse(p in 1e-10_f64..1.0, df in 0.3_f64..5000.0) {
            let back = t_cdf(t_quantile(p, df), df);
            prop_assert!((back - p).abs() <= 1e-10 * p, "{} for {}", back, p);
        }

        #[test]
        fn cdf_rises(t in -50.0_f64..50.0, step in 1e-3_f64..5.0, df in 0.5_f64..2000.0) {
            prop_assert!(t_cdf(t, df) <= t_cdf(t + step, df));
        }
    }
}
