//! sysbench 0.4.12 `oltp`: one table, ranges that stay inside it, and writes of its own kind.
//!
//! In the mode `complex` 14 reads, 5 writes, BEGIN and COMMIT. The row that is deleted and inserted
//! again is first updated, which 0.4.12 did to please PostgreSQL, whatever `index_updates` says. Of
//! the ranges, only the one with DISTINCT spans a row more than `range_size`. After a deadlock the
//! same values are sent again.

mod statements;

use load::{Operation, Rng, Session, TransactionError, Workload};
use study::{NontrxMode, OltpLegacy, TestMode};
use wire::Param;

use crate::digits::Numbers;
use crate::distribution::{Ids, Law};
use statements::{Statement as S, Statements};

pub(super) struct Legacy {
    knobs: OltpLegacy,
    ids: Ids,
    statements: Statements,
    connections: u32,
}

/// Steps between the ids of the mode `delete`: a large prime, so that every row comes once before
/// any comes twice.
const DELETE_STEP: u64 = 2_147_483_647;

type Done = Result<(), TransactionError>;

impl Legacy {
    pub(super) fn new(knobs: &OltpLegacy, connections: u32) -> Legacy {
        let ids = Ids::new(knobs.rows, Law::of_legacy(knobs));
        Legacy { knobs: knobs.clone(), ids, statements: Statements::of(knobs), connections }
    }

    fn id(&self, rng: &mut Rng) -> Param<'static> {
        Param::Int(self.ids.draw(rng) as i64)
    }

    /// Start of a range, moved so that the range ends inside the table.
    fn range_start(&self, rng: &mut Rng) -> i64 {
        let (rows, size) = (self.knobs.rows as i64, i64::from(self.knobs.range_size));
        let start = self.ids.draw(rng) as i64;
        if start + size > rows { (rows - size).max(1) } else { start }
    }

    /// The id that an operation deletes; 0.4.12 counts over all threads.
    fn deleted(&self, operation: Operation) -> i64 {
        let Operation { connection, sequence, .. } = operation;
        let nth = sequence.wrapping_mul(u64::from(self.connections)).wrapping_add(connection);
        let sum = u128::from(nth.wrapping_add(1)) * u128::from(DELETE_STEP);
        (sum % u128::from(self.knobs.rows)) as i64 + 1
    }

    async fn ranges(&self, s: &mut Session, rng: &mut Rng, kind: S, count: u32) -> Done {
        let more = if kind == S::DistinctRange { 0 } else { -1 };
        for _ in 0..count {
            let from = self.range_start(rng);
            let to = from + i64::from(self.knobs.range_size) + more;
            s.execute(self.statements.number(kind), &[Param::Int(from), Param::Int(to)]).await?;
        }
        Ok(())
    }

    async fn one(&self, s: &mut Session, statement: S, id: Param<'static>) -> Done {
        s.execute(self.statements.number(statement), &[id]).await?;
        Ok(())
    }

    async fn non_index_update(&self, s: &mut Session, rng: &mut Rng) -> Done {
        let (id, c) = (self.id(rng), Numbers::<10>::draw(rng));
        let statement = self.statements.number(S::NonIndexUpdate);
        s.execute(statement, &[Param::Bytes(c.as_bytes()), id]).await?;
        Ok(())
    }

    async fn complex(&self, s: &mut Session, rng: &mut Rng) -> Done {
        let k = &self.knobs;
        if !k.skip_trx {
            match self.statements.lock() {
                Some(lock) => s.query(lock).await?,
                None => s.begin().await?,
            };
        }
        for _ in 0..k.point_selects {
            self.one(s, S::Point, self.id(rng)).await?;
        }
        self.ranges(s, rng, S::SimpleRange, k.simple_ranges).await?;
        self.ranges(s, rng, S::SumRange, k.sum_ranges).await?;
        self.ranges(s, rng, S::OrderRange, k.order_ranges).await?;
        self.ranges(s, rng, S::DistinctRange, k.distinct_ranges).await?;
        if !k.read_only {
            for _ in 0..k.index_updates {
                self.one(s, S::IndexUpdate, self.id(rng)).await?;
            }
            for _ in 0..k.non_index_updates {
                self.non_index_update(s, rng).await?;
            }
            let id = self.id(rng);
            self.one(s, S::IndexUpdate, id).await?;
            self.one(s, S::Delete, id).await?;
            self.one(s, S::Insert, id).await?;
        }
        if !k.skip_trx {
            match self.statements.lock() {
                Some(_) => s.query("UNLOCK TABLES").await?,
                None => s.commit().await?,
            };
        }
        Ok(())
    }

    async fn nontrx(&self, s: &mut Session, rng: &mut Rng) -> Done {
        match self.knobs.nontrx_mode {
            NontrxMode::Select => self.one(s, S::PointPad, self.id(rng)).await,
            NontrxMode::UpdateKey => self.one(s, S::IndexUpdate, self.id(rng)).await,
            NontrxMode::UpdateNokey => self.non_index_update(s, rng).await,
            NontrxMode::Delete => {
                let id = Param::Int(self.deleted(s.operation()));
                self.one(s, S::Delete, id).await
            }
            NontrxMode::Insert => {
                let k = self.id(rng);
                let (c, pad) = (Numbers::<10>::draw(rng), Numbers::<5>::draw(rng));
                let row =
                    [Param::Null, k, Param::Bytes(c.as_bytes()), Param::Bytes(pad.as_bytes())];
                s.execute(self.statements.number(S::InsertRandom), &row).await?;
                Ok(())
            }
        }
    }
}

impl Workload for Legacy {
    fn statements(&self) -> Vec<load::Statement> {
        self.statements.list()
    }

    fn redraws(&self) -> bool {
        false
    }

    async fn transaction(&self, s: &mut Session, _: usize, mut rng: Rng) -> Done {
        match self.knobs.test_mode {
            TestMode::Simple => self.one(s, S::Point, self.id(&mut rng)).await,
            TestMode::Complex => self.complex(s, &mut rng).await,
            TestMode::Nontrx => self.nontrx(s, &mut rng).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use study::LegacyDistribution;

    use super::*;

    fn legacy(rows: u64, range_size: u32) -> Legacy {
        let dist_type = LegacyDistribution::Uniform;
        Legacy::new(&OltpLegacy { rows, range_size, dist_type, ..OltpLegacy::default() }, 3)
    }

    #[test]
    fn ranges_stay_inside_the_table() {
        let mut rng = Rng::new(1, 2, 3, 0);
        let ten = legacy(10, 4);
        let mut starts: Vec<i64> = (0..1000).map(|_| ten.range_start(&mut rng)).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts, [1, 2, 3, 4, 5, 6]);
        for (rows, size) in [(4, 4), (3, 4), (1, 1000)] {
            let small = legacy(rows, size);
            assert!((0..50).all(|_| small.range_start(&mut rng) == 1));
        }
    }

    #[test]
    fn each_row_is_deleted_once_before_any_is_twice() {
        let ten = legacy(10, 4);
        let mut ids = Vec::new();
        for sequence in 0..4 {
            for connection in 0..3 {
                ids.push(ten.deleted(Operation { seed: 1, connection, sequence }));
            }
        }
        // 2147483647 mod 10 = 7: 8, 5, 2, 9 ...
        assert_eq!(ids, [8, 5, 2, 9, 6, 3, 10, 7, 4, 1, 8, 5]);
    }
}
