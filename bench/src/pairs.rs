//! Interleaving and medians.

use crate::Failed;
use crate::sample::Sample;

/// Runs of peer and ceteris, pair by pair.
pub struct Pairs(pub Vec<(Sample, Sample)>);

/// A ratio over pairs.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// Runs `pairs` pairs, the order of the two turned round from pair to pair.
pub fn interleave(
    pairs: u32,
    mut peer: impl FnMut() -> Result<Sample, Failed>,
    mut ours: impl FnMut() -> Result<Sample, Failed>,
) -> Result<Pairs, Failed> {
    let mut all = Vec::new();
    for pair in 0..pairs {
        all.push(if pair % 2 == 0 {
            let peer = peer()?;
            (peer, ours()?)
        } else {
            let ours = ours()?;
            (peer()?, ours)
        });
    }
    Ok(Pairs(all))
}

impl Pairs {
    /// Ours over the peer's, of some figure.
    pub fn ratio(&self, figure: impl Fn(&Sample) -> f64) -> Ratio {
        let ratios = self.0.iter().map(|(peer, ours)| figure(ours) / figure(peer)).collect();
        spread(ratios)
    }

    /// Medians of a figure: the peer's, ours.
    pub fn medians(&self, figure: impl Fn(&Sample) -> f64) -> (f64, f64) {
        let peer = self.0.iter().map(|(peer, _)| figure(peer)).collect();
        let ours = self.0.iter().map(|(_, ours)| figure(ours)).collect();
        (spread(peer).median, spread(ours).median)
    }
}

/// Median and range.
pub fn spread(mut values: Vec<f64>) -> Ratio {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[0], values[values.len() - 1]);
    let middle = values.len() / 2;
    let median = match values.len() % 2 {
        1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    };
    Ratio { median, low, high }
}
