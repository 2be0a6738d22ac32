//! Thinning: what a screen can show of a series that may hold an hour of seconds.
//!
//! Two ways, because the two uses differ. [`extremes`] keeps the lowest and the highest value of
//! each bucket, so that no stall and no spike of a run is lost; LTTB was rejected because it may
//! drop the one second that matters. A [`Grid`] averages each bucket, which is what comparing
//! levels needs.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::SerializeMap;

use super::markup::median;

/// One run's thinned series.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Seconds relative to the start of the measured window.
    pub at_s: Vec<f64>,
    /// One value for each time.
    pub values: Vec<f64>,
}

/// Lowest and highest of each bucket, in their order of time; at most `limit` points. A series that
/// already is short enough stays as it is.
pub fn extremes(at_s: &[f64], values: &[f64], limit: usize) -> Track {
    let n = at_s.len().min(values.len());
    if n <= limit {
        return Track { at_s: at_s[..n].to_vec(), values: values[..n].to_vec() };
    }
    let buckets = (limit / 2).max(1);
    let mut track = Track { at_s: Vec::new(), values: Vec::new() };
    for bucket in 0..buckets {
        let range = bucket * n / buckets..(bucket + 1) * n / buckets;
        let least = range.clone().min_by(|&a, &b| values[a].total_cmp(&values[b]));
        let most = range.max_by(|&a, &b| values[a].total_cmp(&values[b]));
        let (Some(least), Some(most)) = (least, most) else { continue };
        let (first, second) = (least.min(most), least.max(most));
        track.at_s.push(at_s[first]);
        track.values.push(values[first]);
        if second != first {
            track.at_s.push(at_s[second]);
            track.values.push(values[second]);
        }
    }
    track
}

/// A grid of buckets that lie alike in all runs: bucket `i` holds the times in `((i - 1) w, i w]`,
/// since a second is known by its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Whole seconds.
    width_s: f64,
}

impl Grid {
    /// Fine enough for `limit` buckets in a span, never finer than a second.
    pub fn of(span_s: f64, limit: usize) -> Grid {
        let width_s = (span_s / limit.max(1) as f64).ceil();
        Grid { width_s: if width_s.is_finite() { width_s.max(1.0) } else { 1.0 } }
    }

    /// The mean of each bucket that has values.
    pub fn means(self, at_s: &[f64], values: &[f64]) -> BTreeMap<i64, f64> {
        let mut sums: BTreeMap<i64, (f64, u32)> = BTreeMap::new();
        // Times run forward, so the map is touched once a bucket and not once a value: a report of
        // long runs has ten million values.
        let mut current = (i64::MIN, 0.0, 0);
        let mut close = |(bucket, sum, n): (i64, f64, u32)| {
            if n > 0 {
                let (sums, counts) = sums.entry(bucket).or_default();
                *sums += sum;
                *counts += n;
            }
        };
        for (at, value) in at_s.iter().zip(values).filter(|(_, v)| v.is_finite()) {
            // A hundredth of slack, so that the jitter of a clock does not cross a border.
            let bucket = (at / self.width_s - 0.01).ceil() as i64;
            if bucket != current.0 {
                close(std::mem::replace(&mut current, (bucket, 0.0, 0)));
            }
            current.1 += value;
            current.2 += 1;
        }
        close(current);
        sums.into_iter().map(|(bucket, (sum, n))| (bucket, sum / f64::from(n))).collect()
    }

    /// Buckets as a track, each at the middle of its seconds' ends.
    pub fn track(self, buckets: &BTreeMap<i64, f64>) -> Track {
        let middle = (self.width_s - 1.0) / 2.0;
        Track {
            at_s: buckets.keys().map(|&i| i as f64 * self.width_s - middle).collect(),
            values: buckets.values().copied().collect(),
        }
    }

    /// The median over runs, bucket by bucket.
    pub fn median_track<'a>(
        self,
        runs: impl Iterator<Item = &'a BTreeMap<i64, f64>>,
    ) -> Option<Track> {
        let mut by_bucket: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for run in runs {
            for (&bucket, &mean) in run {
                by_bucket.entry(bucket).or_default().push(mean);
            }
        }
        let medians: BTreeMap<i64, f64> =
            by_bucket.into_iter().filter_map(|(bucket, v)| Some((bucket, median(&v)?))).collect();
        (!medians.is_empty()).then(|| self.track(&medians))
    }
}

/// A number in few characters: four significant digits, whole numbers without a fraction, `null`
/// where it is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Num(pub f64);

impl Serialize for Num {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = round(self.0, 4);
        if !rounded.is_finite() {
            serializer.serialize_none()
        } else if rounded.fract() == 0.0 && rounded.abs() < 9e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

/// Rounded to `digits` significant digits, by way of the decimal text, so that the result prints
/// as short as it looks. Whole numbers below a million keep all theirs.
fn round(value: f64, digits: usize) -> f64 {
    if !value.is_finite() || (value.fract() == 0.0 && value.abs() < 1e6) {
        return value;
    }
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

/// `{"g":[first, step],"v":[...]}` on an even grid, else `{"t":[...],"v":[...]}`. Times are rounded
/// to a hundredth of a second; a grid may be off by a twentieth of its step, as samplers are.
impl Serialize for Track {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values: Vec<Num> = self.values.iter().copied().map(Num).collect();
        let cents = |t: f64| Num((t * 100.0).round() / 100.0);
        let mut map = serializer.serialize_map(Some(2))?;
        match even_grid(&self.at_s) {
            Some((first, step)) => {
                map.serialize_entry("g", &[Fine(first), Fine(step)])?;
            }
            None => {
                let at: Vec<Num> = self.at_s.iter().copied().map(cents).collect();
                map.serialize_entry("t", &at)?;
            }
        }
        map.serialize_entry("v", &values)?;
        map.end()
    }
}

/// A grid's numbers need more digits than a value's: an error of the step adds up.
struct Fine(f64);

impl Serialize for Fine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(round(self.0, 7))
    }
}

fn even_grid(at_s: &[f64]) -> Option<(f64, f64)> {
    let (&first, &last) = (at_s.first()?, at_s.last()?);
    if at_s.len() < 3 {
        return None;
    }
    let step = (last - first) / (at_s.len() - 1) as f64;
    let even = at_s
        .iter()
        .enumerate()
        .all(|(i, t)| (t - (first + step * i as f64)).abs() <= step.abs() * 0.05);
    (step > 0.0 && even).then_some((first, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: usize) -> Vec<f64> {
        (0..n).map(|i| i as f64).collect()
    }

    #[test]
    fn short_series_stay_as_they_are() {
        let track = extremes(&seconds(10), &seconds(10), 10);
        assert_eq!(track.values, seconds(10));
    }

    #[test]
    fn no_stall_and_no_spike_is_lost() {
        let mut values = vec![100.0; 1800];
        values[777] = 0.0;
        values[1234] = 900.0;
        let track = extremes(&seconds(1800), &values, 300);
        assert!(track.values.len() <= 300);
        let at = |v: f64| track.values.iter().position(|&x| x == v).map(|i| track.at_s[i]);
        assert_eq!(at(0.0), Some(777.0));
        assert_eq!(at(900.0), Some(1234.0));
        assert!(track.at_s.windows(2).all(|w| w[0] < w[1]), "time runs forward");
    }

    #[test]
    fn grids_keep_the_mean() {
        let values: Vec<f64> = (0..1800).map(|i| (i % 7) as f64).collect();
        let ends: Vec<f64> = (1..=1800).map(|i| i as f64).collect();
        let grid = Grid::of(1800.0, 120);
        let track = grid.track(&grid.means(&ends, &values));
        assert_eq!(track.values.len(), 120);
        let of = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        assert!((of(&track.values) - of(&values)).abs() < 1e-9);
        assert_eq!(track.at_s[..2], [8.0, 23.0], "mean of 1..=15, of 16..=30");
    }

    #[test]
    fn medians_are_of_the_runs_that_have_the_bucket() {
        let grid = Grid::of(3.0, 300);
        let runs = [
            grid.means(&[1.001, 1.999, 3.002], &[10.0, 20.0, 30.0]),
            grid.means(&[1.0, 2.0], &[30.0, f64::NAN]),
            grid.means(&[1.0], &[12.0]),
        ];
        let track = grid.median_track(runs.iter()).expect("there are runs");
        assert_eq!(track, Track { at_s: vec![1.0, 2.0, 3.0], values: vec![12.0, 20.0, 30.0] });
        assert_eq!(grid.median_track([].into_iter()), None);
    }

    #[test]
    fn tracks_are_written_short() {
        let even =
            Track { at_s: vec![-2.0, -1.003, 0.0, 1.0], values: vec![1.0, 2.34567, 3e9, 4.0] };
        assert_eq!(
            serde_json::to_string(&even).expect("JSON"),
            r#"{"g":[-2.0,1.0],"v":[1,2.346,3000000000,4]}"#
        );
        let uneven =
            Track { at_s: vec![0.0, 1.0, 5.126], values: vec![f64::NAN, 0.1 + 0.2, 123456.0] };
        assert_eq!(
            serde_json::to_string(&uneven).expect("JSON"),
            r#"{"t":[0,1,5.13],"v":[null,0.3,123456]}"#
        );
    }
}
