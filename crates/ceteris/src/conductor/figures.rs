//! Counters that only a placement can read (QEMU's block statistics), read once a second while a run is
//! driven and kept as series of rates, as the sampler keeps its own.

use std::collections::BTreeMap;

use store::Series;

use super::target::Target;

/// What was read so far: by name, at which seconds of the monotonic clock which counts.
#[derive(Default)]
pub struct Figures {
    read: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Figures {
    /// Reads once more.
    pub fn read(&mut self, target: &mut Target) {
        let at_s = observe::monotonic_ns() as f64 / 1e9;
        for (name, count) in target.figures() {
            self.read.entry(name).or_default().push((at_s, count));
        }
    }

    /// The rates between two readings each, at the later one; seconds count from `zero_s`.
    pub fn series(self, zero_s: f64) -> Vec<Series> {
        let rates = |counts: &[(f64, f64)]| -> (Vec<f64>, Vec<f64>) {
            let pairs = counts.windows(2).filter(|pair| pair[1].0 > pair[0].0);
            pairs
                .map(|pair| {
                    let (before, after) = (pair[0], pair[1]);
                    (after.0 - zero_s, (after.1 - before.1).max(0.0) / (after.0 - before.0))
                })
                .unzip()
        };
        let series = self.read.into_iter().map(|(name, counts)| {
            let (at_s, values) = rates(&counts);
            let unit = if name.ends_with("bytes") { "bytes/s" } else { "1/s" };
            Series { name, unit: unit.to_owned(), at_s, values }
        });
        series.filter(|series| !series.values.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_rates() {
        let mut figures = Figures::default();
        let counts = vec![(10.0, 100.0), (11.0, 150.0), (13.0, 150.0), (14.0, 151.0)];
        figures.read.insert("server.placement.rd_bytes".to_owned(), counts);
        figures.read.insert("server.placement.once".to_owned(), vec![(10.0, 1.0)]);
        let series = figures.series(10.0);
        assert_eq!(series.len(), 1);
        assert_eq!(series[0].unit, "bytes/s");
        assert_eq!(series[0].at_s, [1.0, 3.0, 4.0]);
        assert_eq!(series[0].values, [50.0, 0.0, 1.0]);
    }
}
