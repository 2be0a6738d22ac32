//! sysbench 1.x `select_random_points`: rows by several values of `k`, from one table.
//!
//! Each connection draws from its own segment of the values, of which there are as many as
//! connections; a segment begins where the one before ends, with the same value.

use load::{Rng, Session, TransactionError, Workload};
use study::SelectRandomPoints;
use wire::Param;

use super::scratch;
use crate::distribution::{Ids, Law};

pub(super) struct RandomPoints {
    points: u32,
    segments: Vec<Ids>,
}

impl RandomPoints {
    pub(super) fn new(knobs: &SelectRandomPoints, connections: u32) -> RandomPoints {
        let segments = segments(knobs.rows, Law::of(&knobs.oltp()), connections);
        RandomPoints { points: knobs.random_points, segments }
    }
}

/// The values that each of `connections` draws from.
pub(super) fn segments(rows: u64, law: Law, connections: u32) -> Vec<Ids> {
    let length = rows as f64 / f64::from(connections);
    (0..connections)
        .map(|connection| {
            let from = length * f64::from(connection);
            Ids::between(from as u64, (from + length) as u64, law)
        })
        .collect()
}

impl Workload for RandomPoints {
    fn statements(&self) -> Vec<load::Statement> {
        let points = vec!["?"; self.points as usize].join(", ");
        // The white space is sysbench's: it is part of what the server digests.
        let text = format!(
            "        SELECT id, k, c, pad\n          FROM sbtest1\n          WHERE k IN ({points})\n        "
        );
        vec![load::Statement { text, name: "random points".to_owned() }]
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let segment = &self.segments[s.operation().connection as usize % self.segments.len()];
        scratch::execute(s, 0, |params| {
            for _ in 0..self.points {
                params.push(Param::Int(segment.draw(&mut rng) as i64));
            }
        })
        .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_cover_the_values_in_turn() {
        // 10,000 / 3: 0 to 3333, 3333 to 6666, 6666 to 10,000.
        let segments = segments(10_000, Law::Uniform, 3);
        for (segment, (from, to)) in segments.iter().zip([(0, 3333), (3333, 6666), (6666, 10_000)])
        {
            let mut rng = Rng::new(1, 0, 0, 0);
            let drawn: Vec<u64> = (0..50_000).map(|_| segment.draw(&mut rng)).collect();
            assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&from), Some(&to)));
        }
    }
}
