//! sysbench 1.x `select_random_ranges`: counts the rows in several ranges of `k`, in one table.
//!
//! Ranges begin in the connection's own segment of the values, as in `select_random_points`.

use load::{Rng, Session, TransactionError, Workload};
use study::SelectRandomRanges;
use wire::Param;

use super::random_points::segments;
use super::scratch;
use crate::distribution::{Ids, Law};

pub(super) struct RandomRanges {
    ranges: u32,
    delta: u32,
    segments: Vec<Ids>,
}

impl RandomRanges {
    pub(super) fn new(knobs: &SelectRandomRanges, connections: u32) -> RandomRanges {
        let segments = segments(knobs.rows, Law::of(&knobs.oltp()), connections);
        RandomRanges { ranges: knobs.number_of_ranges, delta: knobs.delta, segments }
    }
}

impl Workload for RandomRanges {
    fn statements(&self) -> Vec<load::Statement> {
        let ranges = vec!["k BETWEEN ? AND ?"; self.ranges as usize].join(" OR ");
        // The white space is sysbench's: it is part of what the server digests.
        let text =
            format!("        SELECT count(k)\n          FROM sbtest1\n          WHERE {ranges}");
        vec![load::Statement { text, name: "random ranges".to_owned() }]
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let segment = &self.segments[s.operation().connection as usize % self.segments.len()];
        scratch::execute(s, 0, |params| {
            for _ in 0..self.ranges {
                let from = segment.draw(&mut rng) as i64;
                params.push(Param::Int(from));
                params.push(Param::Int(from + i64::from(self.delta)));
            }
        })
        .await?;
        Ok(())
    }
}
