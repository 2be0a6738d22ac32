//! Rate and connections over the time of a drive: what the stages of a [`Pacing`] come to.
//!
//! A [`Line`] goes in straight pieces and steps. Arrivals of an open loop need its area: the n-th
//! arrival of a process of rate 1 happens at the instant at which the area under the rate reaches
//! what that arrival was drawn to be, which is exact for steps and ramps alike.

use crate::error::DriveError;
use crate::spec::{Arrivals, DriveSpec, Pacing};

/// Largest rate, transactions per second: no generator comes near it, and beyond it instants would
/// fall together.
pub const RATE_MAX: f64 = 1e8;

/// What every thread knows of the whole drive's pace.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// Transactions per second over all threads; `None` in a closed loop.
    pub rate: Option<Line>,
    /// How its arrivals are spread.
    pub arrivals: Arrivals,
    /// Pause of a closed loop, nanoseconds.
    pub think_ns: u64,
    /// Connections at work, before rounding.
    connections: Line,
    /// Seed of the arrivals.
    pub seed: u64,
    /// End of the drive, nanoseconds from its start.
    pub end_ns: u64,
}

impl Timeline {
    /// Of what is asked.
    ///
    /// # Errors
    /// What is asked makes no sense.
    pub(crate) fn new(spec: &DriveSpec) -> Result<Timeline, DriveError> {
        let Pacing { rate_per_second, arrivals, think, stages } = &spec.pacing;
        let refuse = |what| Err(DriveError::Spec(what));
        let is_rate = |rate: f64| (0.0..=RATE_MAX).contains(&rate);
        if rate_per_second.is_some_and(|rate| !is_rate(rate) || rate == 0.0) {
            return refuse("the rate must be above 0, and no more than 100 million a second");
        }
        if rate_per_second.is_some() && !think.is_zero() {
            return refuse("think time is a closed loop's, which has no rate");
        }
        if stages.windows(2).any(|pair| pair[1].at < pair[0].at) {
            return refuse("stages must stand in the order of their times");
        }
        for rate in stages.iter().filter_map(|stage| stage.rate_per_second) {
            if rate_per_second.is_none() {
                return refuse("a stage changes the rate, but a closed loop has none");
            }
            if !is_rate(rate) {
                return refuse("a stage's rate must be 0 to 100 million a second");
            }
        }
        if stages.iter().any(|stage| stage.connections == Some(0)) {
            return refuse("a stage needs a connection");
        }
        let line = |first: f64, value: &dyn Fn(&crate::spec::Stage) -> Option<f64>| {
            let changes = stages.iter().filter_map(|stage| {
                Some((stage.at.as_secs_f64(), stage.ramp.as_secs_f64(), value(stage)?))
            });
            Line::new(first, changes)
        };
        let end = spec.warmup.saturating_add(spec.measure);
        Ok(Timeline {
            rate: rate_per_second.map(|rate| line(rate, &|stage| stage.rate_per_second)),
            arrivals: *arrivals,
            think_ns: think.as_nanos().try_into().unwrap_or(u64::MAX),
            connections: line(f64::from(spec.connections), &|stage| {
                stage.connections.map(f64::from)
            }),
            seed: spec.seed,
            end_ns: end.as_nanos().try_into().unwrap_or(u64::MAX),
        })
    }

    /// Connections at work `ns` after the start: those of the lowest ordinals.
    pub(crate) fn connections(&self, ns: u64) -> u32 {
        self.connections.value(seconds(ns)).round() as u32
    }

    /// When they may be others next, nanoseconds from the start; always later than `ns`.
    pub(crate) fn connections_change(&self, ns: u64) -> Option<u64> {
        let change = self.connections.change(seconds(ns))?;
        Some(nanoseconds(change).max(ns.saturating_add(1_000)))
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Nanoseconds of a time in seconds.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// At least one, the first from 0; each ends where the next begins.
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    begin_s: f64,
    /// At the begin.
    value: f64,
    /// Per second.
    slope: f64,
    /// Under the line up to the begin.
    area: f64,
}

impl Line {
    /// From `first` by `changes` in the order of their times: when, how long the way takes, whereto.
    /// A change that comes while another is under way sets out from where that one has got to.
    fn new(first: f64, changes: impl Iterator<Item = (f64, f64, f64)>) -> Line {
        let piece = |begin_s, value, slope| Piece { begin_s, value, slope, area: 0.0 };
        let mut line = Line { pieces: vec![piece(0.0, first, 0.0)] };
        for (at_s, ramp_s, target) in changes {
            let value = line.value(at_s);
            line.pieces.retain(|piece| piece.begin_s < at_s);
            if ramp_s > 0.0 {
                line.pieces.push(piece(at_s, value, (target - value) / ramp_s));
            }
            line.pieces.push(piece(at_s + ramp_s, target, 0.0));
        }
        for next in 1..line.pieces.len() {
            let before = line.pieces[next - 1];
            let length_s = line.pieces[next].begin_s - before.begin_s;
            line.pieces[next].area = before.area + before.gained(length_s);
        }
        line
    }

    fn piece(&self, at_s: f64) -> usize {
        self.pieces.partition_point(|piece| piece.begin_s <= at_s).saturating_sub(1)
    }

    fn value(&self, at_s: f64) -> f64 {
        let piece = self.pieces[self.piece(at_s)];
        (piece.value + piece.slope * (at_s - piece.begin_s)).max(0.0)
    }

    /// When the rounded value may be another next; `None` for never.
    fn change(&self, at_s: f64) -> Option<f64> {
        let index = self.piece(at_s);
        let piece = self.pieces[index];
        let end_s = self.pieces.get(index + 1).map(|next| next.begin_s);
        if piece.slope == 0.0 {
            return end_s;
        }
        let value = self.value(at_s);
        let crossed = value.round() + 0.5 * piece.slope.signum();
        let crossing_s = at_s + (crossed - value) / piece.slope;
        Some(end_s.map_or(crossing_s, |end_s| end_s.min(crossing_s)))
    }

    /// When the area reaches `area`, in seconds; `None` for never. `hint` is the piece of an
    /// earlier answer to a smaller area, and becomes that of this one.
    pub(crate) fn reaches(&self, area: f64, hint: &mut usize) -> Option<f64> {
        // A piece of value 0 is passed over, as its area is that of the next.
        while self.pieces.get(*hint + 1).is_some_and(|next| next.area <= area) {
            *hint += 1;
        }
        let piece = self.pieces.get(*hint)?;
        piece.gains(area - piece.area).map(|after_s| piece.begin_s + after_s)
    }
}

impl Piece {
    /// Area within `length_s` of the begin.
    fn gained(&self, length_s: f64) -> f64 {
        (self.value + 0.5 * self.slope * length_s) * length_s
    }

    /// How long after the begin the area is `area`.
    fn gains(&self, area: f64) -> Option<f64> {
        // The root of slope/2 t² + value t = area, in the form that cancels nothing.
        let square = self.value * self.value + 2.0 * self.slope * area;
        let sum = self.value + square.max(0.0).sqrt();
        (sum > 0.0).then(|| 2.0 * area.max(0.0) / sum)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;
    use crate::spec::Stage;

    fn line() -> Line {
        // 10 until 2 s, up to 30 by 4 s, cut at 3 s (at 20) by a step to 0, from 5 s on 40.
        Line::new(10.0, [(2.0, 2.0, 30.0), (3.0, 0.0, 0.0), (5.0, 0.0, 40.0)].into_iter())
    }

    #[test]
    fn values_and_areas_follow_steps_and_ramps() {
        let line = line();
        let values = [0.0, 1.9, 2.0, 2.5, 2.999, 3.0, 4.9, 5.0, 100.0].map(|s| line.value(s));
        let wanted = [10.0, 10.0, 10.0, 15.0, 19.99, 0.0, 0.0, 40.0, 40.0];
        assert!(values.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{values:?}");
        // 20 by 2 s, 15 more by 3 s, nothing until 5 s, then 40 a second.
        let mut hint = 0;
        for (area, at_s) in [(5.0, 0.5), (20.0, 2.0), (26.25, 2.5), (35.0, 5.0), (75.0, 6.0)] {
            let got = line.reaches(area, &mut hint).unwrap();
            assert!((got - at_s).abs() < 1e-9, "{area}: {got}");
        }
        let ends = Line::new(10.0, [(1.0, 1.0, 0.0)].into_iter());
        assert!((ends.reaches(15.0 - 1e-12, &mut 0).unwrap() - 2.0).abs() < 1e-5);
        assert_eq!(ends.reaches(15.1, &mut 0), None);
    }

    #[test]
    fn connections_change_one_by_one_on_a_ramp() {
        let stage = |at, ramp, connections| Stage {
            at: Duration::from_secs(at),
            ramp: Duration::from_secs(ramp),
            connections: Some(connections),
            ..Stage::default()
        };
        let pacing = Pacing { stages: vec![stage(1, 4, 5), stage(6, 0, 2)], ..Pacing::default() };
        let spec = DriveSpec { connections: 1, pacing, ..DriveSpec::default() };
        let timeline = Timeline::new(&spec).unwrap();
        let (mut at_ns, mut seen) = (0, vec![(0, 1)]);
        while let Some(next_ns) = timeline.connections_change(at_ns) {
            at_ns = next_ns;
            seen.push((at_ns / 1_000_000, timeline.connections(at_ns)));
        }
        seen.dedup_by_key(|(_, connections)| *connections);
        let wanted = [(0, 1), (1500, 2), (2500, 3), (3500, 4), (4500, 5), (6000, 2)];
        assert_eq!(seen, wanted);
        assert_eq!(spec.connections_max(), 5);
    }

    #[test]
    fn nonsense_is_refused() {
        let secs = Duration::from_secs;
        let stage = Stage { at: secs(2), connections: Some(3), ..Stage::default() };
        let rated = Stage { rate_per_second: Some(3.0), ..stage };
        let closed = |stages| Pacing { stages, ..Pacing::default() };
        let open = |rate, stages| Pacing { rate_per_second: Some(rate), stages, ..closed(vec![]) };
        for (pacing, fragment) in [
            (open(0.0, vec![]), "above 0"),
            (open(f64::NAN, vec![]), "above 0"),
            (Pacing { think: secs(1), ..open(1.0, vec![]) }, "think time"),
            (closed(vec![stage, Stage { at: secs(1), ..stage }]), "order"),
            (closed(vec![rated]), "closed loop has none"),
            (open(1.0, vec![Stage { rate_per_second: Some(-1.0), ..stage }]), "stage's rate"),
            (closed(vec![Stage { connections: Some(0), ..stage }]), "needs a connection"),
        ] {
            let spec = DriveSpec { pacing, ..DriveSpec::default() };
            let error = Timeline::new(&spec).unwrap_err().to_string();
            assert!(error.contains(fragment), "{error}");
        }
        let spec = DriveSpec { pacing: open(1.0, vec![rated]), ..DriveSpec::default() };
        assert!(Timeline::new(&spec).is_ok());
    }
}
