//! Effects within blocks: ratio, interval, verdict, and whether enough is known.

use serde::{Deserialize, Serialize};

use crate::student::{t_quantile, two_sided_p};

/// Confidence level of a family of intervals, e.g. `0.95`.
pub type Confidence = f64;

/// Level over baseline as a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Geometric mean over blocks of level / baseline; NaN when no block has both.
    pub ratio: f64,
    /// Lower end of the interval; `0` with fewer than two blocks.
    pub low: f64,
    /// Upper end of the interval; infinite with fewer than two blocks.
    pub high: f64,
    /// Blocks in which both were measured.
    pub blocks: u32,
    /// Two-sided p-value of "no effect", before Holm's correction.
    pub p: f64,
}

/// What may be said of an effect. `confounded` is the audit's word, not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval lies above 1 and not wholly inside the margin.
    Higher,
    /// The interval lies below 1 and not wholly inside the margin.
    Lower,
    /// The interval lies wholly inside `1/(1+margin) .. 1+margin`.
    Equivalent,
    /// None of these.
    Undecided,
}

/// The effects of one family (all non-baseline levels and sweep points of one question, one
/// metric): `family[i]` holds one `(baseline, level)` pair of positive measurements per block.
///
/// Intervals are Student's on the log ratios, at the step-down confidence of Holm's procedure
/// (Holm 1979), so that an interval excludes 1 exactly if Holm rejects "no effect" at
/// `1 - confidence`: in the order of their p-values, the i-th effect of m (from 0) gets level
/// `1 - alpha / (m - i)` as long as all before it were rejected; from the first that is not, all
/// get that one's.
///
/// - A pair with a value that is not finite or not positive has no log ratio and is left out;
///   `blocks` counts the pairs that were used.
/// - Fewer than two usable pairs say nothing: the interval is `0 .. inf` and p is 1. Such an effect
///   still counts in m, because it was asked.
/// - Identical ratios in all blocks have no variance to judge by: the interval is the point itself,
///   p is 1 if that point is exactly 1 and 0 otherwise.
/// - A confidence outside 0 to 1 is taken as the nearer end, NaN as 1 (unbounded intervals).
pub fn effects(family: &[Vec<(f64, f64)>], confidence: Confidence) -> Vec<Effect> {
    let confidence = if confidence.is_nan() { 1.0 } else { confidence.clamp(0.0, 1.0) };
    let alpha = 1.0 - confidence;
    let samples: Vec<LogRatios> = family.iter().map(|pairs| LogRatios::of(pairs)).collect();
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|&a, &b| samples[a].p().total_cmp(&samples[b].p()));

    let mut found: Vec<Option<Effect>> = vec![None; samples.len()];
    let mut level = alpha;
    let mut all_rejected = true;
    for (rank, &index) in order.iter().enumerate() {
        if all_rejected {
            level = alpha / (samples.len() - rank) as f64;
        }
        let effect = samples[index].effect(level);
        // Rejection is read off the interval itself, so that the two cannot disagree by a rounding.
        all_rejected &= effect.low > 1.0 || effect.high < 1.0;
        found[index] = Some(effect);
    }
    found.into_iter().flatten().collect()
}

/// The verdict on one effect. `margin` is a fraction: `0.01` for one percent.
///
/// `Equivalent` goes first: an interval that excludes 1 and lies wholly inside the margin is
/// significant and of no interest.
pub fn verdict(effect: &Effect, margin: f64) -> Verdict {
    let Effect { low, high, .. } = *effect;
    // Without an interval (or with one that is no interval) nothing may be said.
    if low.is_nan() || high.is_nan() {
        Verdict::Undecided
    } else if margin > 0.0 && low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin {
        Verdict::Equivalent
    } else if low > 1.0 {
        Verdict::Higher
    } else if high < 1.0 {
        Verdict::Lower
    } else {
        Verdict::Undecided
    }
}

/// The stopping rule: every interval's half width, relative to its ratio, is at most `precision`
/// (a fraction): `sqrt(high / low) - 1 <= precision`. An unbounded interval is never enough; a
/// family without effects has nothing left to learn.
pub fn enough(effects: &[Effect], precision: f64) -> bool {
    effects
        .iter()
        .all(|effect| effect.low > 0.0 && (effect.high / effect.low).sqrt() - 1.0 <= precision)
}

/// What the log ratios of the blocks say before a confidence level is chosen.
struct LogRatios {
    blocks: u32,
    /// Mean of the log ratios; NaN without any.
    mean: f64,
    /// Standard error of the mean; NaN with fewer than two.
    standard_error: f64,
}

impl LogRatios {
    fn of(pairs: &[(f64, f64)]) -> LogRatios {
        let usable = |value: f64| value.is_finite() && value > 0.0;
        let logs: Vec<f64> = pairs
            .iter()
            .filter(|(baseline, level)| usable(*baseline) && usable(*level))
            // The difference of logs, because a quotient may overflow.
            .map(|(baseline, level)| {
                let ratio = level / baseline;
                if usable(ratio) { ratio.ln() } else { level.ln() - baseline.ln() }
            })
            .collect();
        let n = logs.len() as f64;
        // Around the first value, so that identical ratios have a variance of exactly 0.
        let origin = logs.first().copied().unwrap_or(f64::NAN);
        let mean = origin + logs.iter().map(|log| log - origin).sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let standard_error =
            if logs.len() < 2 { f64::NAN } else { (squares / (n - 1.0) / n).sqrt() };
        LogRatios { blocks: u32::try_from(logs.len()).unwrap_or(u32::MAX), mean, standard_error }
    }

    fn df(&self) -> f64 {
        f64::from(self.blocks) - 1.0
    }

    fn p(&self) -> f64 {
        if self.blocks < 2 {
            1.0
        } else if self.standard_error == 0.0 {
            if self.mean == 0.0 { 1.0 } else { 0.0 }
        } else {
            two_sided_p(self.mean / self.standard_error, self.df())
        }
    }

    /// The effect with the two-sided interval that leaves `alpha` outside.
    fn effect(&self, alpha: f64) -> Effect {
        let half_width = if self.blocks < 2 {
            f64::INFINITY
        } else if self.standard_error == 0.0 {
            0.0
        } else {
            // From the lower tail: 1 - alpha / 2 would round a small alpha away.
            -t_quantile(alpha / 2.0, self.df()) * self.standard_error
        };
        let ratio = self.mean.exp();
        let (low, high) = if half_width.is_infinite() {
            (0.0, f64::INFINITY)
        } else {
            ((self.mean - half_width).exp(), (self.mean + half_width).exp())
        };
        Effect { ratio, low, high, blocks: self.blocks, p: self.p() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(ratios: &[f64]) -> Vec<(f64, f64)> {
        ratios.iter().map(|ratio| (100.0, 100.0 * ratio)).collect()
    }

    fn close(found: f64, wanted: f64) {
        assert!((found - wanted).abs() <= 1e-12 * wanted.abs(), "{found} instead of {wanted}");
    }

    /// Worked by hand: logs 0.1, 0.2, 0.3 have mean 0.2, standard deviation 0.1, standard error
    /// 0.1 / sqrt(3); t(0.975, 2) is sqrt(2) 0.95 / sqrt(0.0975 ...) = 4.302652729749464.
    #[test]
    fn one_effect_is_the_textbook_interval() {
        let logs: [f64; 3] = [0.1, 0.2, 0.3];
        let found = effects(&[pairs(&logs.map(f64::exp))], 0.95);
        let half = 4.302_652_729_749_464 * 0.1 / 3.0_f64.sqrt();
        close(found[0].ratio, 0.2_f64.exp());
        close(found[0].low, (0.2 - half).exp());
        close(found[0].high, (0.2 + half).exp());
        assert_eq!(found[0].blocks, 3);
        // For df 2, P(|T| > t) = 1 - t / sqrt(2 + t²); here t² = 12.
        close(found[0].p, 1.0 - (12.0_f64 / 14.0).sqrt());
    }

    #[test]
    fn holm_steps_down_and_stops_at_the_first_that_is_not_rejected() {
        let strong = pairs(&[1.50, 1.51, 1.49, 1.50, 1.52, 1.48]);
        let weak = pairs(&[1.00, 1.08, 0.97, 1.10, 1.05, 1.01]);
        let none = pairs(&[1.00, 1.08, 0.93, 1.02, 0.98, 1.01]);
        let found = effects(&[none.clone(), strong.clone(), weak.clone()], 0.95);
        // alpha/3 for the strongest; the next is not rejected at alpha/2, so that both get alpha/2.
        let alone = |sample: &Vec<(f64, f64)>, alpha: f64| {
            effects(std::slice::from_ref(sample), 1.0 - alpha)[0]
        };
        for (effect, sample, alpha) in
            [(found[1], &strong, 0.05 / 3.0), (found[2], &weak, 0.025), (found[0], &none, 0.025)]
        {
            close(effect.low, alone(sample, alpha).low);
            close(effect.high, alone(sample, alpha).high);
        }
        // Alone, at 95 %, the weak one would have been called an effect or not by its own p only.
        assert!(found[2].p > 0.025 && found[2].low < 1.0);
    }

    #[test]
    fn too_few_blocks_say_nothing() {
        for (sample, ratio) in [(vec![], f64::NAN), (pairs(&[2.0]), 2.0)] {
            let found = effects(std::slice::from_ref(&sample), 0.95)[0];
            assert_eq!((found.low, found.high, found.p), (0.0, f64::INFINITY, 1.0));
            assert_eq!(found.blocks as usize, sample.len());
            assert!(found.ratio == ratio || found.ratio.is_nan() && ratio.is_nan());
            assert_eq!(verdict(&found, 0.01), Verdict::Undecided);
            assert!(!enough(&[found], 10.0));
        }
    }

    #[test]
    fn no_variance_is_a_point() {
        let same = effects(&[pairs(&[1.0; 4])], 0.95)[0];
        assert_eq!((same.ratio, same.low, same.high, same.p), (1.0, 1.0, 1.0, 1.0));
        assert_eq!(verdict(&same, 0.01), Verdict::Equivalent);
        assert_eq!(verdict(&same, 0.0), Verdict::Undecided);
        let shifted = effects(&[pairs(&[1.25; 4])], 0.95)[0];
        assert_eq!((shifted.low, shifted.high, shifted.p), (shifted.ratio, shifted.ratio, 0.0));
        assert_eq!(verdict(&shifted, 0.01), Verdict::Higher);
        assert!(enough(&[same, shifted], 0.0));
    }

    #[test]
    fn unusable_pairs_are_left_out() {
        let mut sample = pairs(&[1.1, 1.2, 1.3]);
        let clean = effects(std::slice::from_ref(&sample), 0.95);
        for bad in [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            sample.insert(1, bad);
        }
        assert_eq!(effects(&[sample], 0.95), clean);
        // Quotients beyond an f64 still have a log.
        let wide = effects(&[vec![(1e-300, 1e300), (1e-300, 2e300)]], 0.95)[0];
        assert_eq!(wide.blocks, 2);
    }

    #[test]
    fn verdicts_at_their_borders() {
        let of = |low: f64, high: f64| {
            let ratio = (low * high).sqrt();
            verdict(&Effect { ratio, low, high, blocks: 6, p: 0.5 }, 0.02)
        };
        assert_eq!(of(1.03, 1.05), Verdict::Higher);
        assert_eq!(of(1.01, 1.05), Verdict::Higher);
        assert_eq!(of(0.90, 0.99), Verdict::Lower);
        assert_eq!(of(0.99, 1.05), Verdict::Undecided);
        assert_eq!(of(1.0, 1.05), Verdict::Undecided);
        // Significant, and of no interest.
        assert_eq!(of(1.005, 1.015), Verdict::Equivalent);
        assert_eq!(of(1.0 / 1.02, 1.02), Verdict::Equivalent);
        assert_eq!(of(0.98, 1.01), Verdict::Undecided);
        assert_eq!(of(f64::NAN, f64::NAN), Verdict::Undecided);
    }

    #[test]
    fn enough_asks_every_interval() {
        let of = |low: f64, high: f64| Effect { ratio: 1.0, low, high, blocks: 6, p: 0.5 };
        assert!(enough(&[], 0.01));
        assert!(enough(&[of(0.99, 1.01)], 0.0102));
        assert!(!enough(&[of(0.99, 1.01), of(0.9, 1.1)], 0.0102));
        assert!(!enough(&[of(0.0, f64::INFINITY)], f64::INFINITY));
        assert!(!enough(&[of(f64::NAN, f64::NAN)], 1.0));
    }

    #[test]
    fn nonsensical_confidences_are_taken_as_the_nearer_end() {
        let sample = [pairs(&[1.1, 1.2, 1.3])];
        for confidence in [1.0, 2.0, f64::NAN] {
            let found = effects(&sample, confidence)[0];
            assert_eq!((found.low, found.high), (0.0, f64::INFINITY));
        }
        let found = effects(&sample, -1.0)[0];
        close(found.low, found.ratio);
    }

    proptest! {
        /// The defining property, against Holm's procedure written down a second time on p-values.
        #[test]
        fn an_interval_excludes_one_exactly_if_holm_rejects(
            family in prop::collection::vec(
                prop::collection::vec((50.0_f64..150.0, 50.0_f64..150.0), 0..8), 1..6),
        ) {
            let found = effects(&family, 0.95);
            prop_assert_eq!(found.len(), family.len());
            let mut by_p: Vec<&Effect> = found.iter().collect();
            by_p.sort_by(|a, b| a.p.total_cmp(&b.p));
            let mut rejecting = true;
            for (rank, effect) in by_p.iter().enumerate() {
                rejecting &= effect.p <= 0.05 / (found.len() - rank) as f64;
                prop_assert_eq!(rejecting, effect.low > 1.0 || effect.high < 1.0);
                prop_assert!(effect.ratio.is_nan()
                    || effect.low <= effect.ratio && effect.ratio <= effect.high);
            }
        }

        /// Exchanging the sides inverts ratio and interval.
        #[test]
        fn sides_are_symmetric(
            sample in prop::collection::vec((50.0_f64..150.0, 50.0_f64..150.0), 2..8),
        ) {
            let forth = effects(std::slice::from_ref(&sample), 0.9)[0];
            let swapped = sample.iter().map(|(a, b)| (*b, *a)).collect::<Vec<_>>();
            let back = effects(&[swapped], 0.9)[0];
            prop_assert!((forth.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert!((forth.low * back.high - 1.0).abs() < 1e-6);
        }
    }
}
