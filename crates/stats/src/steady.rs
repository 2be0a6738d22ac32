//! Is a measured series level?
//!
//! Called by the conductor on the transactions of each measured second. A trend counts only if it
//! is both large enough to matter (Theil-Sen slope) and unlikely to be chance (Mann-Kendall test,
//! corrected for the autocorrelation that every throughput series has). Both are made of ranks and
//! medians, because one checkpoint must not decide.

use crate::normal::two_sided_p;

/// Series with fewer points than this are judged weakly: only the crudest trend can be significant,
/// and autocorrelation cannot be estimated and is not corrected for.
pub const WEAK_BELOW: usize = 8;

/// Longer series are averaged into at most this many equal groups first: all pairs are compared,
/// and a day of seconds has 3.7 billion of them.
const POINTS_MAX: usize = 1800;

/// Significance level of the trend test and of the autocorrelations that enter its correction.
const ALPHA: f64 = 0.05;

/// What can be said of a series of equally spaced measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// The series is level: no trend that is both significant and larger than the tolerance.
    pub steady: bool,
    /// Change over the whole series by the Theil-Sen slope, relative to its median; infinite when
    /// the median is 0 and the slope is not.
    pub relative_change: f64,
    /// Two-sided p-value of the Mann-Kendall trend test, corrected for autocorrelation.
    pub p: f64,
    /// Fewer than [`WEAK_BELOW`] points: `steady` then means that nothing speaks against it, which
    /// with fewer than five points nothing can.
    pub weak: bool,
}

/// Judges a series (e.g. transactions in each measured second).
/// `tolerance` is the relative change over the series that is let pass, e.g. `0.05`.
///
/// - Slope: the median of the slopes of all pairs (Theil 1950, Sen 1968).
/// - Trend: Mann (1945) and Kendall (1975) with the variance for ties, and the variance's
///   correction for autocorrelation of Hamed and Rao (1998): the significant autocorrelations of
///   the ranks of the detrended series; here it may widen the variance but never narrow it.
/// - Values that are not finite are left out; the others keep their places in time.
/// - An empty or constant series is steady with a change of 0 and a p of 1.
pub fn steadiness(series: &[f64], tolerance: f64) -> Steadiness {
    let points = group(series);
    let n = points.len();
    let weak = n < WEAK_BELOW;
    if n < 2 {
        return Steadiness { steady: true, relative_change: 0.0, p: 1.0, weak };
    }
    let slope = theil_sen(&points);
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let change = slope * (points[n - 1].0 - points[0].0);
    let middle = median(&mut values.clone());
    let relative_change = if change == 0.0 { 0.0 } else { change / middle.abs() };
    let p = mann_kendall_p(&points, slope);
    let steady = !(p < ALPHA && relative_change.abs() > tolerance);
    Steadiness { steady, relative_change, p, weak }
}

/// The finite values with their times, long series averaged in equal groups.
fn group(series: &[f64]) -> Vec<(f64, f64)> {
    let size = series.len().div_ceil(POINTS_MAX).max(1);
    let mut points = Vec::with_capacity(series.len() / size + 1);
    for (index, chunk) in series.chunks(size).enumerate() {
        let finite: Vec<f64> = chunk.iter().copied().filter(|value| value.is_finite()).collect();
        if !finite.is_empty() {
            let mean = finite.iter().map(|value| value / finite.len() as f64).sum();
            points.push((index as f64, mean));
        }
    }
    points
}

/// Median slope of all pairs.
fn theil_sen(points: &[(f64, f64)]) -> f64 {
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (i, early) in points.iter().enumerate() {
        for late in &points[i + 1..] {
            slopes.push((late.1 - early.1) / (late.0 - early.0));
        }
    }
    median(&mut slopes)
}

/// Median of a non-empty slice, which is reordered.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if even {
        let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        lower + 0.5 * (upper - lower)
    } else {
        upper
    }
}

/// Two-sided p of Mann-Kendall's S with the corrected variance and the continuity correction.
fn mann_kendall_p(points: &[(f64, f64)], slope: f64) -> f64 {
    let n = points.len();
    let mut s = 0.0;
    for (i, early) in points.iter().enumerate() {
        for late in &points[i + 1..] {
            s += sign(late.1 - early.1);
        }
    }
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let pairs_weight = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let ties: f64 = ranks(&values).1.into_iter().map(|run| pairs_weight(run as f64)).sum();
    let mut variance = (pairs_weight(n as f64) - ties) / 18.0;
    if n >= WEAK_BELOW {
        let detrended: Vec<f64> = points.iter().map(|point| point.1 - slope * point.0).collect();
        variance *= autocorrelation_factor(&detrended);
    }
    if variance <= 0.0 || s == 0.0 {
        return 1.0;
    }
    two_sided_p((s - sign(s)) / variance.sqrt())
}

/// -1, 0 or 1, unlike `f64::signum`, which has no 0.
fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// n / n* of Hamed and Rao (1998): by how much autocorrelation widens the variance of S.
fn autocorrelation_factor(detrended: &[f64]) -> f64 {
    let n = detrended.len() as f64;
    let ranks = ranks(detrended).0;
    let mean = ranks.iter().sum::<f64>() / n;
    let centred: Vec<f64> = ranks.iter().map(|rank| rank - mean).collect();
    let total: f64 = centred.iter().map(|value| value * value).sum();
    if total == 0.0 {
        return 1.0;
    }
    let significant = 1.959_963_984_540_054 / n.sqrt();
    let mut sum = 0.0;
    for lag in 1..centred.len() - 1 {
        let products: f64 = centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum();
        let correlation = products / total;
        if correlation.abs() > significant {
            let left = n - lag as f64;
            sum += left * (left - 1.0) * (left - 2.0) * correlation;
        }
    }
    let factor = 1.0 + 2.0 / (n * (n - 1.0) * (n - 2.0)) * sum;
    // Hamed and Rao let negative autocorrelation tighten the test too. Estimated from the same data
    // that made false alarms twice as frequent as stated, so here it never does.
    factor.max(1.0)
}

/// Ranks from 1, ties sharing their mean; and the lengths of the runs of ties.
fn ranks(values: &[f64]) -> (Vec<f64>, Vec<usize>) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut runs = Vec::new();
    let mut start = 0;
    for run in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let shared = start as f64 + (run.len() as f64 + 1.0) / 2.0;
        for &index in run {
            ranks[index] = shared;
        }
        start += run.len();
        runs.push(run.len());
    }
    (ranks, runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn degenerate_series_are_steady_and_say_how_weak_that_is() {
        for series in [vec![], vec![5.0], vec![0.0; 20], vec![7.0; 3], vec![f64::NAN; 9]] {
            let found = steadiness(&series, 0.05);
            assert!(found.steady);
            assert_eq!((found.relative_change, found.p), (0.0, 1.0));
            assert_eq!(found.weak, series.len() != 20);
        }
    }

    #[test]
    fn a_straight_line_is_its_own_slope() {
        let series: Vec<f64> = (0..101).map(|i| 1000.0 + f64::from(i)).collect();
        let found = steadiness(&series, 0.05);
        assert!(!found.steady);
        assert!((found.relative_change - 100.0 / 1050.0).abs() < 1e-12);
        assert!(found.p < 1e-6);
        // Significant, and let pass.
        assert!(steadiness(&series, 0.10).steady);
        let falling: Vec<f64> = series.iter().rev().copied().collect();
        assert!((steadiness(&falling, 0.05).relative_change + 100.0 / 1050.0).abs() < 1e-12);
    }

    /// Worked by hand: 1 3 2 5 4 6 has S = 15 - 2 - 2 = 11 and variance 6 5 17 / 18 = 28.333,
    /// Z = 10 / 5.3229 = 1.87867 and p = 0.060289 (normal tables).
    #[test]
    fn mann_kendall_of_six_points() {
        let found = steadiness(&[1.0, 3.0, 2.0, 5.0, 4.0, 6.0], 0.05);
        assert!((found.p - 0.060_29).abs() < 1e-4, "{}", found.p);
        assert!(found.weak && found.steady);
    }

    /// Gilbert 1987, example 16.4.3's way with ties: 10 pairs of equal values lose their variance.
    #[test]
    fn ties_take_variance_away() {
        assert_eq!(ranks(&[2.0, 1.0, 2.0, 3.0]), (vec![2.5, 1.0, 2.5, 4.0], vec![1, 2, 1]));
        let found = steadiness(&[1.0, 1.0, 2.0, 2.0], 0.05);
        // S = 4, variance (4 3 13 - 2 (2 1 9)) / 18 = 6.6667, Z = 3 / 2.582 = 1.1619, p = 0.2453.
        assert!((found.p - 0.245_27).abs() < 1e-4, "{}", found.p);
    }

    #[test]
    fn one_burst_is_not_a_trend() {
        let mut series: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i * 7 % 5)).collect();
        for value in &mut series[50..55] {
            *value = 500.0;
        }
        let found = steadiness(&series, 0.05);
        assert!(found.steady && found.relative_change.abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_zero_median_has_no_finite_relative_change() {
        let rising: Vec<f64> = (-10..=10).map(f64::from).collect();
        let found = steadiness(&rising, 0.05);
        assert!(!found.steady);
        assert_eq!(found.relative_change, f64::INFINITY);
        let mut rare = vec![0.0; 30];
        rare[3] = 9.0;
        assert!(steadiness(&rare, 0.05).steady);
    }

    #[test]
    fn gaps_keep_their_place_in_time() {
        let mut series: Vec<f64> = (0..100).map(|i| 1000.0 + f64::from(i)).collect();
        let whole = steadiness(&series, 0.05);
        for value in &mut series[40..60] {
            *value = f64::NAN;
        }
        let gapped = steadiness(&series, 0.05);
        assert!((gapped.relative_change - whole.relative_change).abs() < 1e-3);
    }

    #[test]
    fn long_series_are_averaged_and_judged_alike() {
        let day: Vec<f64> =
            (0..86_400).map(|i| 1000.0 + f64::from(i) / 864.0 + f64::from(i % 7)).collect();
        let found = steadiness(&day, 0.05);
        assert!(!found.steady);
        assert!((found.relative_change - 100.0 / 1053.0).abs() < 1e-3, "{found:?}");
    }

    proptest! {
        #[test]
        fn never_panics_and_ignores_scale(
            series in prop::collection::vec(1.0_f64..1e6, 0..60),
            power in -3_i32..4,
        ) {
            let scaled: Vec<f64> = series.iter().map(|v| v * 2.0_f64.powi(power)).collect();
            prop_assert_eq!(steadiness(&series, 0.05), steadiness(&scaled, 0.05));
        }

        #[test]
        fn reversing_turns_the_sign(series in prop::collection::vec(1.0_f64..1e6, 2..40)) {
            let mut reversed = series.clone();
            reversed.reverse();
            let (forth, back) = (steadiness(&series, 0.05), steadiness(&reversed, 0.05));
            prop_assert!((forth.relative_change + back.relative_change).abs() < 1e-9);
        }
    }
}
