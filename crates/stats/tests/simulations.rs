//! Simulations with known truth: how often the method is right.
//!
//! Every figure in `docs/verdicts.md` is printed by
//! `cargo test -p ceteris-stats --test simulations -- --nocapture`. All randomness is seeded, so
//! that the figures are the same everywhere; each assertion allows four Monte Carlo standard
//! errors around its claim.

#![allow(clippy::unwrap_used)]

use ceteris_stats::{Effect, Verdict, effects, enough, steadiness, verdict};

/// SplitMix64 (Steele, Lea, Flood 2014): one small, seeded stream per simulation.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In (0, 1).
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller (1958).
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A run of true mean `mean` with log-normal noise of `noise` (0.02 is 2 %).
    fn run(&mut self, mean: f64, noise: f64) -> f64 {
        mean * (noise * self.normal()).exp()
    }

    /// A block: baseline and a level of true ratio `ratio`.
    fn block(&mut self, ratio: f64, noise: f64) -> (f64, f64) {
        (self.run(1000.0, noise), self.run(1000.0 * ratio, noise))
    }

    fn blocks(&mut self, count: usize, ratio: f64, noise: f64) -> Vec<(f64, f64)> {
        (0..count).map(|_| self.block(ratio, noise)).collect()
    }
}

const TRIALS: usize = 20_000;

/// Share of `trials` in which `event` happened.
fn share(trials: usize, mut event: impl FnMut() -> bool) -> f64 {
    (0..trials).filter(|_| event()).count() as f64 / trials as f64
}

/// Four Monte Carlo standard errors of a share whose truth is `truth`.
fn four_errors(truth: f64, trials: usize) -> f64 {
    4.0 * (truth * (1.0 - truth) / trials as f64).sqrt()
}

fn say(what: &str, value: f64) {
    println!("figure: {what}: {:.2} %", 100.0 * value);
}

fn covers(effect: &Effect, ratio: f64) -> bool {
    effect.low <= ratio && ratio <= effect.high
}

fn excludes_one(effect: &Effect) -> bool {
    effect.low > 1.0 || effect.high < 1.0
}

#[test]
fn the_interval_covers_the_truth_as_often_as_it_says() {
    let mut random = Random(1);
    for blocks in [2, 3, 6, 12] {
        let covered =
            share(TRIALS, || covers(&effects(&[random.blocks(blocks, 1.07, 0.02)], 0.95)[0], 1.07));
        say(&format!("coverage of the 95 % interval, {blocks} blocks"), covered);
        assert!((covered - 0.95).abs() < four_errors(0.95, TRIALS), "{blocks}: {covered}");
    }
}

/// The machine gets faster or slower by 10 % over the study. Random order within blocks holds the
/// error at what it says; "all of A, then all of B" calls the drift an effect nearly always.
#[test]
fn drift_is_no_effect_in_blocks_and_one_without_them() {
    let (blocks, noise, drift) = (6_usize, 0.01, 0.10);
    let mut random = Random(2);
    // Slot 0..12 of the study; the machine's true speed there.
    let speed = |slot: usize| 1000.0 * (1.0 + drift * slot as f64 / (2 * blocks - 1) as f64);
    let in_blocks = share(TRIALS, || {
        let family = (0..blocks).map(|block| {
            let baseline_first = random.next() & 1 == 0;
            let (a, b) = if baseline_first { (0, 1) } else { (1, 0) };
            let baseline = random.run(speed(2 * block + a), noise);
            (baseline, random.run(speed(2 * block + b), noise))
        });
        excludes_one(&effects(&[family.collect()], 0.95)[0])
    });
    let one_after_the_other = share(TRIALS, || {
        let a: Vec<f64> = (0..blocks).map(|slot| random.run(speed(slot), noise)).collect();
        let b = (blocks..2 * blocks).map(|slot| random.run(speed(slot), noise));
        excludes_one(&effects(&[a.into_iter().zip(b).collect()], 0.95)[0])
    });
    say("false positives under 10 % drift, random order in blocks", in_blocks);
    say("false positives under 10 % drift, first A then B", one_after_the_other);
    assert!(in_blocks < 0.05 + four_errors(0.05, TRIALS), "{in_blocks}");
    assert!(one_after_the_other > 0.95, "{one_after_the_other}");
}

/// A sweep of five points without any effect: how often at least one is called one.
#[test]
fn holm_holds_the_family_wise_error() {
    let mut random = Random(3);
    let mut alone = 0;
    let together = share(TRIALS, || {
        let family: Vec<_> = (0..5).map(|_| random.blocks(6, 1.0, 0.02)).collect();
        let uncorrected = family
            .iter()
            .any(|sample| excludes_one(&effects(std::slice::from_ref(sample), 0.95)[0]));
        alone += usize::from(uncorrected);
        effects(&family, 0.95).iter().any(excludes_one)
    });
    let alone = alone as f64 / TRIALS as f64;
    say("family-wise error over a sweep of 5, Holm", together);
    say("family-wise error over a sweep of 5, uncorrected", alone);
    assert!(together < 0.05 + four_errors(0.05, TRIALS), "{together}");
    assert!(alone > 0.20, "{alone}");
}

/// Three points with an effect, two without: an error is to call one of the two.
#[test]
fn holm_holds_the_error_beside_true_effects() {
    let mut random = Random(4);
    let truths = [1.10, 1.0, 0.90, 1.0, 1.10];
    let (mut errors, mut all_covered) = (0, 0);
    for _ in 0..TRIALS {
        let family: Vec<_> = truths.iter().map(|ratio| random.blocks(6, *ratio, 0.02)).collect();
        let found = effects(&family, 0.95);
        let both = || found.iter().zip(truths);
        errors += usize::from(both().any(|(effect, t)| t == 1.0 && excludes_one(effect)));
        all_covered += usize::from(both().all(|(effect, t)| covers(effect, t)));
    }
    let (errors, all_covered) = (errors as f64 / TRIALS as f64, all_covered as f64 / TRIALS as f64);
    say("family-wise error with 3 true effects among 5, Holm", errors);
    say("all five intervals cover at once, 3 true effects among 5", all_covered);
    assert!(errors < 0.05 + four_errors(0.05, TRIALS), "{errors}");
    // Step-down intervals of rejected hypotheses promise 95 % each, not all at once.
    assert!(all_covered > 0.85, "{all_covered}");
}

/// Blocks are added until the interval is narrow enough. Looking repeatedly at a width shortens
/// intervals that are narrow by luck; this measures by how much coverage suffers.
#[test]
fn the_stopping_rule_costs_little_coverage() {
    const FEWER: usize = 10_000;
    let mut random = Random(5);
    let mut worst: f64 = 1.0;
    for (precision, first, max) in [
        (0.01, 6, 20),
        (0.015, 6, 20),
        (0.02, 6, 20),
        (0.025, 6, 20),
        (0.03, 6, 20),
        (0.02, 4, 20),
        (0.02, 3, 20),
    ] {
        let (mut covered, mut blocks, mut false_positives) = (0, 0, 0);
        for _ in 0..FEWER {
            let mut sample = random.blocks(first, 1.0, 0.02);
            let mut found = effects(&[sample.clone()], 0.95);
            while !enough(&found, precision) && sample.len() < max {
                sample.push(random.block(1.0, 0.02));
                found = effects(&[sample.clone()], 0.95);
            }
            blocks += sample.len();
            covered += usize::from(covers(&found[0], 1.0));
            false_positives += usize::from(excludes_one(&found[0]));
        }
        let covered = covered as f64 / FEWER as f64;
        println!(
            "figure: stopping rule, precision {:.1} %, {first} to {max} blocks, noise 2 %: coverage \
             {:.2} %, false positives {:.2} %, {:.1} blocks on average",
            100.0 * precision,
            100.0 * covered,
            100.0 * false_positives as f64 / FEWER as f64,
            blocks as f64 / FEWER as f64,
        );
        if first >= 6 {
            worst = worst.min(covered);
        }
    }
    assert!(worst > 0.93 - four_errors(0.93, FEWER), "{worst}");
}

#[test]
fn an_effect_of_five_percent_is_found() {
    let mut random = Random(6);
    let mut found_at = |blocks: usize, ratio: f64| {
        share(TRIALS, || {
            let found = effects(&[random.blocks(blocks, ratio, 0.02)], 0.95)[0];
            verdict(&found, 0.01) == if ratio > 1.0 { Verdict::Higher } else { Verdict::Lower }
        })
    };
    let power = found_at(6, 1.05);
    say("power, effect +5 %, noise 2 % per run, 6 blocks", power);
    assert!(power > 0.90, "{power}");
    let power = found_at(6, 0.95);
    say("power, effect -5 %, noise 2 % per run, 6 blocks", power);
    assert!(power > 0.90, "{power}");
    for (blocks, ratio) in [(6, 1.02), (12, 1.02), (20, 1.02)] {
        let power = found_at(blocks, ratio);
        say(&format!("power, effect +2 %, noise 2 % per run, {blocks} blocks"), power);
        assert!(power < 0.99);
    }
}

/// "Equivalent" is a claim too: how often it is made for an effect at the margin, where it would
/// be wrong, and for none at all.
#[test]
fn equivalence_is_claimed_rarely_where_it_is_false() {
    let mut random = Random(7);
    let mut equivalent = |blocks: usize, ratio: f64| {
        share(TRIALS, || {
            let found = effects(&[random.blocks(blocks, ratio, 0.01)], 0.95)[0];
            verdict(&found, 0.02) == Verdict::Equivalent
        })
    };
    let wrong = equivalent(6, 1.02);
    say("equivalent (margin 2 %) at a true effect of 2 %, noise 1 %, 6 blocks", wrong);
    assert!(wrong < 0.025 + four_errors(0.025, TRIALS), "{wrong}");
    let right = equivalent(6, 1.0);
    say("equivalent (margin 2 %) at no effect, noise 1 %, 6 blocks", right);
    assert!(right > 0.5, "{right}");
}

/// An autoregressive series of first order around 1000 with a trend of `change` over its length.
fn series(random: &mut Random, length: usize, phi: f64, noise: f64, change: f64) -> Vec<f64> {
    let mut state = random.normal();
    let innovation = (1.0 - phi * phi).sqrt();
    (0..length)
        .map(|i| {
            state = phi * state + innovation * random.normal();
            let trend = change * (i as f64 / (length - 1) as f64 - 0.5);
            1000.0 * (1.0 + trend) * (1.0 + noise * state)
        })
        .collect()
}

/// The two halves of the steadiness rule, each on level series: how often the corrected test alone
/// calls a trend, and how often the whole rule does.
#[test]
fn level_series_are_called_steady() {
    const SERIES: usize = 1_500;
    let mut random = Random(8);
    for (phi, tested_bound) in [(-0.3, 0.06), (0.0, 0.08), (0.3, 0.15), (0.6, 0.20), (0.8, 0.35)] {
        let (mut tested, mut whole) = (0, 0);
        for _ in 0..SERIES {
            let found = steadiness(&series(&mut random, 60, phi, 0.05, 0.0), 0.05);
            tested += usize::from(found.p < 0.05);
            whole += usize::from(!found.steady);
        }
        let (tested, whole) = (tested as f64 / SERIES as f64, whole as f64 / SERIES as f64);
        say(&format!("level series of 60 s, noise 5 %, autocorrelation {phi}: p < 0.05"), tested);
        say(&format!("level series of 60 s, noise 5 %, autocorrelation {phi}: not steady"), whole);
        assert!(tested < tested_bound, "phi {phi}: {tested}");
        assert!(whole <= tested, "phi {phi}: {whole}");
    }
}

#[test]
fn trends_are_found() {
    const SERIES: usize = 1_500;
    let mut random = Random(9);
    for (phi, change) in [(0.0, 0.15), (0.3, 0.15), (0.6, 0.15), (0.6, 0.30)] {
        let found =
            share(SERIES, || !steadiness(&series(&mut random, 60, phi, 0.05, change), 0.05).steady);
        say(
            &format!(
                "trend of {:.0} % over 60 s, noise 5 %, autocorrelation {phi}: not steady",
                100.0 * change
            ),
            found,
        );
        assert!(found > 0.5, "phi {phi}: {found}");
    }
}
