//! Latency by percentile: the runs' histograms of one cell merged, and the curve and figures of it.

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::Deserializer;
use serde::Serialize;
use store::Histogram;

use super::thin::Num;

/// The figures of the latency table: percentile and how it is written.
pub const PERCENTILES: [(f64, &str); 6] = [
    (0.50, "p50"),
    (0.90, "p90"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

/// Histograms of one cell and one clock, merged.
pub struct Merged {
    hdr: Hdr<u64>,
    ms_per_unit: f64,
}

/// The percentile curve: `[nines, ms]`, where nines is `-log10(1 - percentile)`, so that 1 is p90,
/// 2 is p99, 3 is p99.9.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Transactions behind it.
    pub n: u64,
    /// Points of the curve.
    pub points: Vec<[Num; 2]>,
}

impl Merged {
    /// Nothing yet.
    pub fn of_first(histogram: &Histogram) -> Result<Merged, String> {
        Ok(Merged { hdr: decode(histogram)?, ms_per_unit: ms_per_unit(&histogram.unit)? })
    }

    /// Adds another run's.
    pub fn add(&mut self, histogram: &Histogram) -> Result<(), String> {
        if ms_per_unit(&histogram.unit)? != self.ms_per_unit {
            return Err(format!("histograms of different units ({})", histogram.unit));
        }
        self.hdr.add(decode(histogram)?).map_err(|e| e.to_string())
    }

    /// Recorded values.
    pub fn len(&self) -> u64 {
        self.hdr.len()
    }

    /// Largest value, ms.
    pub fn max_ms(&self) -> f64 {
        self.hdr.max() as f64 * self.ms_per_unit
    }

    /// A quantile in ms; `None` where fewer than ten values lie beyond it, since it would be a
    /// figure of a handful of transactions.
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        (self.len() as f64 * (1.0 - quantile) >= 9.999)
            .then(|| self.hdr.value_at_quantile(quantile) as f64 * self.ms_per_unit)
    }

    /// The curve up to the last percentile that has a value of its own.
    pub fn curve(&self) -> Curve {
        let n = self.len();
        let mut points = Vec::new();
        if n > 0 {
            let last = (n as f64).log10();
            let steps = (last / 0.04).floor() as usize;
            for step in 0..=steps {
                let nines = step as f64 * 0.04;
                let value = self.hdr.value_at_quantile(1.0 - 10f64.powf(-nines));
                points.push([Num(nines), Num(value as f64 * self.ms_per_unit)]);
            }
            points.push([Num(last), Num(self.max_ms())]);
        }
        Curve { n, points }
    }
}

fn decode(histogram: &Histogram) -> Result<Hdr<u64>, String> {
    let mut decoded: Hdr<u64> = Deserializer::new()
        .deserialize(&mut histogram.hdr_v2.as_slice())
        .map_err(|e| format!("{}: {e}", histogram.name))?;
    decoded.auto(true);
    Ok(decoded)
}

fn ms_per_unit(unit: &str) -> Result<f64, String> {
    match unit {
        "ns" => Ok(1e-6),
        "us" | "µs" => Ok(1e-3),
        "ms" => Ok(1.0),
        "s" => Ok(1e3),
        other => Err(format!("a histogram in {other:?}, which is no unit of time")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use hdrhistogram::serialization::{Serializer, V2Serializer};

    use super::*;

    fn recorded(values: impl Iterator<Item = u64>, unit: &str) -> Histogram {
        let mut hdr = Hdr::<u64>::new(3).unwrap();
        for value in values {
            hdr.record(value).unwrap();
        }
        let mut hdr_v2 = Vec::new();
        V2Serializer::new().serialize(&hdr, &mut hdr_v2).unwrap();
        Histogram { name: "response".into(), unit: unit.into(), hdr_v2 }
    }

    #[test]
    fn merges_runs_and_counts_in_milliseconds() {
        let mut merged =
            Merged::of_first(&recorded((1..=500).map(|v| v * 1_000_000), "ns")).unwrap();
        merged.add(&recorded((501..=1000).map(|v| v * 1_000_000), "ns")).unwrap();
        assert_eq!(merged.len(), 1000);
        let p50 = merged.quantile_ms(0.5).unwrap();
        assert!((p50 - 500.0).abs() < 1.0, "{p50}");
        assert!((merged.max_ms() - 1000.0).abs() < 1.0);
        assert!(merged.quantile_ms(0.99).is_some());
        assert_eq!(merged.quantile_ms(0.999), None, "one value beyond it is no percentile");
        let curve = merged.curve();
        assert_eq!(curve.n, 1000);
        let [nines, ms] = *curve.points.last().unwrap();
        assert_eq!((nines.0 * 1e6).round() / 1e6, 3.0);
        assert!((ms.0 - 1000.0).abs() < 1.0);
        assert!(curve.points.windows(2).all(|w| w[0][1].0 <= w[1][1].0), "never falls");
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        let broken =
            Histogram { name: "response".into(), unit: "ns".into(), hdr_v2: vec![1, 2, 3] };
        assert!(Merged::of_first(&broken).is_err());
        let mut merged = Merged::of_first(&recorded(1..=3, "ns")).unwrap();
        assert!(merged.add(&recorded(1..=3, "ms")).is_err());
        assert!(Merged::of_first(&recorded(1..=3, "bytes")).is_err());
    }
}
