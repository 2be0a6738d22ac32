//! The distribution of response times, drawn as sysbench draws it, from our finer histogram.

use hdrhistogram::Histogram;

/// sysbench's buckets: 1024 between a microsecond and a hundred seconds, equal on a log scale.
const BUCKETS: usize = 1024;
const MIN_MS: f64 = 0.001;
const MAX_MS: f64 = 100_000.0;
/// Width of the longest bar.
const WIDTH: usize = 40;

/// One line for each bucket that holds anything.
pub fn draw(histogram: &Histogram<u64>) -> String {
    let mut counts = vec![0_u64; BUCKETS];
    for step in histogram.iter_recorded() {
        counts[bucket(step.value_iterated_to() as f64 / 1e6)] += step.count_since_last_iteration();
    }
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let mut text = "Latency histogram (values are in milliseconds)\n".to_owned();
    text.push_str("       value  ------------- distribution ------------- count\n");
    for (index, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let bar = "*".repeat((count as f64 / most as f64 * WIDTH as f64).round() as usize);
        text.push_str(&format!("{:>12.3} |{bar:<WIDTH$} {count}\n", value_ms(index)));
    }
    text
}

/// Buckets for each unit of the logarithm.
fn density() -> f64 {
    (BUCKETS - 1) as f64 / (MAX_MS.ln() - MIN_MS.ln())
}

fn bucket(ms: f64) -> usize {
    let index = ((ms.max(MIN_MS).ln() - MIN_MS.ln()) * density() + 0.5).floor();
    (index as usize).min(BUCKETS - 1)
}

fn value_ms(bucket: usize) -> f64 {
    (bucket as f64 / density() + MIN_MS.ln()).exp()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn buckets_are_those_of_sysbench() {
        for (ms, index, shown) in [(1.0, 384, "1.01"), (10.0, 512, "10.09"), (100.0, 639, "99.33")]
        {
            assert_eq!(bucket(ms), index);
            assert_eq!(format!("{:.2}", value_ms(index)), shown);
        }
        assert_eq!((bucket(0.0), bucket(1e9)), (0, 1023));
    }

    #[test]
    fn the_longest_bar_is_the_fullest_bucket() {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        histogram.record_n(1_000_000, 100).unwrap();
        histogram.record_n(10_000_000, 50).unwrap();
        let text = draw(&histogram);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with(" 100") && lines[0].matches('*').count() == 40, "{text}");
        assert!(lines[1].ends_with(" 50") && lines[1].matches('*').count() == 20, "{text}");
    }
}
