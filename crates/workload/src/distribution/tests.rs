//! Vectors worked out by hand from the formulas, and chi-square tests against probabilities that
//! are computed another way than the draws are.

use super::*;

const SPECIAL: Special = Special { iterations: 12, hot_percent: 1, hot_draws_percent: 75 };
const ALL: [Law; 7] = [
    Law::Uniform,
    Law::Gaussian { iterations: 12 },
    Law::Special(SPECIAL),
    Law::Gaussian04 { iterations: 12 },
    Law::Special04(SPECIAL),
    Law::Pareto { h: 0.2 },
    Law::Zipfian { exponent: 0.8 },
];
const ALMOST_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// The id that `uniforms` lead to; those that are missing are 0.5.
fn vector(law: Law, rows: u64, uniforms: &[f64]) -> u64 {
    let mut uniforms = uniforms.iter().copied();
    Ids::new(rows, law).map_uniforms(|| uniforms.next().unwrap_or(0.5))
}

#[test]
fn follow_their_formulas() {
    let gaussian = Law::Gaussian { iterations: 12 };
    let pareto = Law::Pareto { h: 0.2 };
    for (law, rows, uniforms, id) in [
        (Law::Uniform, 10_000, &[0.0][..], 1),
        (Law::Uniform, 10_000, &[0.123_45], 1235),
        (Law::Uniform, 10_000, &[ALMOST_ONE], 10_000),
        (gaussian, 10_000, &[0.0; 12], 1),
        (gaussian, 10_000, &[0.5; 12], 5001),
        (gaussian, 10_000, &[ALMOST_ONE; 12], 10_000),
        (Law::Gaussian { iterations: 2 }, 10_000, &[0.1, 0.2], 1501),
        // t = 9999: below u = 1/4 the draws go on to twelve more uniforms: ⌊0.5·9999⌋.
        (Law::Special(SPECIAL), 10_000, &[0.1], 5000),
        (Law::Special(SPECIAL), 10_000, &[0.249, 0.0], 1 + 4582),
        // u·(99.99 + 1) + 4999.5 − 49.995: 25.2475 + 4949.505 at 1/4.
        (Law::Special(SPECIAL), 10_000, &[0.25], 4975),
        (Law::Special(SPECIAL), 10_000, &[0.51], 5002),
        (Law::Special(SPECIAL), 10_000, &[0.999_9], 5051),
        // Half of the draws to the centre ten percent: 0.6·(999.9 + 1) + 4999.5 − 499.95.
        (
            Law::Special(Special { hot_percent: 10, hot_draws_percent: 50, ..SPECIAL }),
            10_000,
            &[0.6],
            5101,
        ),
        // 40,000 slots. Slot 1 of the first 10,000: the mean of twelve times 5001.
        (Law::Special04(SPECIAL), 10_000, &[0.0], 5001),
        (Law::Special04(SPECIAL), 10_000, &[0.249_98, 0.0], 4584),
        // Slot 10,001 mod 100 = 1, on 5000 − 50.
        (Law::Special04(SPECIAL), 10_000, &[0.25], 4951),
        // Slot 20,001, and 40,000, which is 0 mod 100.
        (Law::Special04(SPECIAL), 10_000, &[0.5], 4951),
        (Law::Special04(SPECIAL), 10_000, &[ALMOST_ONE], 4950),
        // Slot 39,999.
        (Law::Special04(SPECIAL), 10_000, &[0.999_97], 5049),
        // ⌊100/30⌋ = 3 times 1000 slots, ⌊15·10⌋ hot ones: slot 1501 mod 150 = 1, on 500 − 75.
        (
            Law::Special04(Special { hot_percent: 15, hot_draws_percent: 70, ..SPECIAL }),
            1000,
            &[0.500_1],
            426,
        ),
        (Law::Gaussian04 { iterations: 2 }, 10, &[0.0, 0.1], 1),
        (Law::Gaussian04 { iterations: 2 }, 10, &[0.2, 0.1], 2),
        (Law::Gaussian04 { iterations: 2 }, 10, &[ALMOST_ONE; 2], 10),
        (pareto, 10_000, &[0.0], 1),
        (pareto, 10_000, &[0.5], 68),
        (pareto, 10_000, &[0.79], 1827),
        (pareto, 10_000, &[ALMOST_ONE], 10_000),
        // ln 0.5 / ln 0.5 = 1: no skew.
        (Law::Pareto { h: 0.5 }, 10_000, &[0.25], 2501),
        // H is inverted from its upper end: a small u is a cold id. For e = 0, H(x) = x − 1, the
        // strip is (−0.5, n − 0.5], and x = 1 + 9999.5 − u·10,000.
        (Law::Zipfian { exponent: 0.0 }, 10_000, &[0.0], 10_000),
        (Law::Zipfian { exponent: 0.0 }, 10_000, &[0.250_01], 7500),
        (Law::Zipfian { exponent: 0.0 }, 10_000, &[ALMOST_ONE], 1),
        // For e = 1, H = ln: from ln 10.5 down to ln 1.5 − 1; exp(2.3514 − 0.5·2.9459) = 2.407.
        (Law::Zipfian { exponent: 1.0 }, 10, &[0.5], 2),
        // exp(2.3514 − 0.25·2.9459) = 5.027.
        (Law::Zipfian { exponent: 1.0 }, 10, &[0.25], 5),
    ] {
        assert_eq!(vector(law, rows, uniforms), id, "{law:?} of {rows}, {uniforms:?}");
    }
}

#[test]
fn stay_in_their_range() {
    for law in ALL {
        let mut rng = Rng::new(1, 0, 0, 0);
        assert!((0..100).all(|_| Ids::new(1, law).draw(&mut rng) == 1), "{law:?}");
        for (first, last) in [(0, 1), (7, 9), (100, 350)] {
            let ids = Ids::between(first, last, law);
            for _ in 0..2000 {
                let id = ids.draw(&mut rng);
                assert!((first..=last).contains(&id), "{law:?} {first} {id} {last}");
            }
        }
    }
}

#[test]
fn descriptions_tell_laws_apart() {
    let oltp = Oltp::default();
    let mut seen = std::collections::HashSet::new();
    for law in ALL {
        assert!(seen.insert(law.describe()));
    }
    for (distribution, changed) in [
        (Distribution::Uniform, false),
        (Distribution::Gaussian, true),
        (Distribution::Special, true),
        (Distribution::Special04, true),
        (Distribution::Pareto, false),
        (Distribution::Zipfian, false),
    ] {
        let one = Oltp { distribution, ..oltp.clone() };
        let other = Oltp { rand_spec_iter: 11, ..one.clone() };
        assert_eq!(Law::of(&one).describe() != Law::of(&other).describe(), changed);
    }
}

/// Draws for a chi-square test.
const DRAWS: usize = 400_000;

/// How often each id was drawn.
fn counts(law: Law, rows: usize) -> Vec<u32> {
    let ids = Ids::new(rows as u64, law);
    let mut rng = Rng::new(42, 7, 0, 0);
    let mut counts = vec![0; rows];
    for _ in 0..DRAWS {
        counts[ids.draw(&mut rng) as usize - 1] += 1;
    }
    counts
}

/// Pearson's statistic of counts against the probability of each id, and its degrees of freedom.
/// Neighbours are pooled until enough draws are expected of them.
fn chi_square(counts: &[u32], probabilities: &[f64]) -> (f64, f64) {
    let total: f64 = probabilities.iter().sum();
    assert!((total - 1.0).abs() < 1e-9, "probabilities add up to {total}");
    let (mut statistic, mut cells) = (0.0, 0.0);
    let (mut expected, mut seen, mut left) = (0.0, 0.0, total);
    for (probability, count) in probabilities.iter().zip(counts) {
        expected += probability * DRAWS as f64;
        seen += f64::from(*count);
        left -= probability;
        if expected >= 20.0 && left * DRAWS as f64 >= 20.0 {
            statistic += (seen - expected).powi(2) / expected;
            (expected, seen) = (0.0, 0.0);
            cells += 1.0;
        }
    }
    statistic += (seen - expected).powi(2) / expected.max(1e-9);
    (statistic, cells)
}

/// The value that chi-square with `freedom` degrees exceeds once in a thousand times, by Wilson and
/// Hilferty's cube.
fn limit(freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    freedom * (1.0 - spread + 3.090_23 * spread.sqrt()).powi(3)
}

fn passes(law: Law, probabilities: &[f64]) -> bool {
    agree(&counts(law, probabilities.len()), probabilities)
}

fn agree(counts: &[u32], probabilities: &[f64]) -> bool {
    let (statistic, freedom) = chi_square(counts, probabilities);
    assert!(freedom >= 20.0, "only {freedom} degrees of freedom");
    statistic < limit(freedom)
}

#[test]
fn limits_are_those_of_the_tables() {
    for (freedom, tabled) in [(20.0, 45.315), (50.0, 86.661), (100.0, 149.449)] {
        assert!((limit(freedom) - tabled).abs() < 0.2, "{freedom}");
    }
}

const ROWS: usize = 2000;

/// Distribution of the sum of `iterations` draws of `0..values`, by convolution.
fn sums(iterations: usize, values: usize) -> Vec<f64> {
    let mut sums = vec![1.0];
    for _ in 0..iterations {
        let mut next = vec![0.0; sums.len() + values - 1];
        // A window that slides over the sums: each is reached from the `values` before it.
        let mut window = 0.0;
        for (i, slot) in next.iter_mut().enumerate() {
            window += sums.get(i).copied().unwrap_or(0.0);
            if let Some(gone) = i.checked_sub(values) {
                window -= sums.get(gone).copied().unwrap_or(0.0);
            }
            *slot = window / values as f64;
        }
        sums = next;
    }
    sums
}

/// P(m ≤ x) of the mean m of 12 uniforms (Irwin and Hall).
fn irwin_hall(x: f64) -> f64 {
    if x > 0.5 {
        // By symmetry: the sum below loses digits as x grows.
        return 1.0 - irwin_hall(1.0 - x);
    }
    let (mut sum, mut choose) = (0.0, 1.0);
    for k in 0..12 {
        let rest = 12.0 * x - f64::from(k);
        if rest > 0.0 {
            sum += choose * rest.powi(12);
        }
        choose *= -f64::from(12 - k) / f64::from(k + 1);
    }
    sum / (1..=12).map(f64::from).product::<f64>()
}

/// Probability of ⌊m·scale⌋ for each of `0..ROWS`, m being the mean of 12 uniforms.
fn gaussian(scale: f64) -> Vec<f64> {
    let below = |offset: usize| irwin_hall((offset as f64 / scale).min(1.0));
    (0..ROWS).map(|offset| below(offset + 1) - below(offset)).collect()
}

#[test]
fn uniform_passes_chi_square() {
    assert!(passes(Law::Uniform, &vec![1.0 / ROWS as f64; ROWS]));
}

#[test]
fn gaussian_passes_chi_square() {
    let probabilities = gaussian(ROWS as f64);
    let law = Law::Gaussian { iterations: 12 };
    assert!(passes(law, &probabilities));
    assert!(!passes(law, &vec![1.0 / ROWS as f64; ROWS]), "the test can fail");
    assert!(!passes(Law::Gaussian { iterations: 11 }, &probabilities), "the test can fail");
}

/// 0.4.12's mean is of whole numbers, and so are its probabilities.
fn gaussian_04() -> Vec<f64> {
    let mut probabilities = vec![0.0; ROWS];
    for (sum, probability) in sums(12, ROWS).into_iter().enumerate() {
        probabilities[(sum + 12) / 12 - 1] += probability;
    }
    probabilities
}

#[test]
fn gaussian_0_4_passes_chi_square() {
    assert!(passes(Law::Gaussian04 { iterations: 12 }, &gaussian_04()));
}

/// t = 1999: a quarter is the mean over t; the rest is uniform over an interval of reals, each id
/// having the part of it that is between the id's offset and the next.
fn special() -> Vec<f64> {
    let t = (ROWS - 1) as f64;
    let (width, base) = (t * 0.01 + 1.0, t / 2.0 - t * 0.005);
    let (from, to) = (base + 0.25 * width, base + width);
    let mut probabilities = gaussian(t);
    for (offset, probability) in probabilities.iter_mut().enumerate() {
        let offset = offset as f64;
        let part = (to.min(offset + 1.0) - from.max(offset)).max(0.0);
        *probability = 0.25 * *probability + 0.75 * part / (to - from);
    }
    probabilities
}

#[test]
fn special_passes_chi_square() {
    assert!(passes(Law::Special(SPECIAL), &special()));
    assert!(!passes(Law::Special04(SPECIAL), &special()), "they are not the same");
}

#[test]
fn special_0_4_passes_chi_square() {
    // Slots counted one by one: 8000, of which the first 2000 go to the mean.
    let mut probabilities: Vec<f64> = gaussian_04().iter().map(|p| p * 0.25).collect();
    for slot in ROWS + 1..=4 * ROWS {
        let id = slot % 20 + 1000 - 10;
        probabilities[id - 1] += 1.0 / (4 * ROWS) as f64;
    }
    assert!(passes(Law::Special04(SPECIAL), &probabilities));
    // 19 % of the draws on the first quarter of the hot ids, which 1.0 leaves out.
    let first: f64 = probabilities[989..994].iter().sum();
    assert!((first - 0.19).abs() < 0.01, "{first}");
}

/// P(id ≤ k) = (k/n)^(1/power).
fn pareto(h: f64) -> Vec<f64> {
    let power = (1.0_f64 - h).ln() / f64::ln(h);
    let below = |k: usize| (k as f64 / ROWS as f64).powf(power);
    (0..ROWS).map(|k| below(k + 1) - below(k)).collect()
}

#[test]
fn pareto_passes_chi_square() {
    for h in [0.2, 0.35] {
        assert!(passes(Law::Pareto { h }, &pareto(h)), "{h}");
    }
    let hottest: f64 = pareto(0.2)[..ROWS / 5].iter().sum();
    assert!((hottest - 0.8).abs() < 1e-9, "80 % on the lowest 20 %");
}

#[test]
fn zipfian_passes_chi_square() {
    for exponent in [0.0, 0.5, 0.8, 0.999_999_999_9, 1.0, 1.2] {
        let weights: Vec<f64> = (1..=ROWS).map(|k| (k as f64).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let probabilities: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
        assert!(passes(Law::Zipfian { exponent }, &probabilities), "{exponent}");
    }
}

/// The definitions above are sysbench 1.0's own, where it is there to be asked.
#[test]
fn sysbench_draws_by_the_same_definitions() {
    for (name, probabilities) in [
        ("uniform", vec![1.0 / ROWS as f64; ROWS]),
        ("gaussian", gaussian(ROWS as f64)),
        ("special", special()),
        ("pareto", pareto(0.2)),
    ] {
        let Some(counts) = drawn_by_sysbench(name) else {
            eprintln!("SKIPPED sysbench_draws_by_the_same_definitions: no sysbench here");
            return;
        };
        assert_eq!(counts.iter().sum::<u32>() as usize, DRAWS);
        assert!(agree(&counts, &probabilities), "{name}");
    }
}

fn drawn_by_sysbench(name: &str) -> Option<Vec<u32>> {
    let script = format!(
        "function event()\n local c = {{}}\n for i = 1, {ROWS} do c[i] = 0 end\n \
         for i = 1, {DRAWS} do local v = sysbench.rand.{name}(1, {ROWS}); c[v] = c[v] + 1 end\n \
         print('drawn ' .. table.concat(c, ' '))\nend\n"
    );
    let file = tempfile::Builder::new().suffix(".lua").tempfile().ok()?;
    std::fs::write(file.path(), script).ok()?;
    let output = std::process::Command::new("sysbench")
        .arg(file.path())
        .args(["--rand-seed=42", "--events=1", "--time=0", "run"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("drawn "));
    let counts = line.map(|line| line.split(' ').filter_map(|n| n.parse().ok()).collect());
    assert!(counts.is_some(), "{text}");
    counts
}
