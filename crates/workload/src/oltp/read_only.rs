//! sysbench 1.x `oltp_read_only`: 14 reads in a transaction.

use load::{Rng, Session, TransactionError, Workload};
use study::OltpReadOnly;

use super::statements::{Blocks, READS, Statement as S};

pub(super) struct ReadOnly {
    blocks: Blocks,
    knobs: OltpReadOnly,
}

impl ReadOnly {
    pub(super) fn new(knobs: &OltpReadOnly) -> ReadOnly {
        let used = if knobs.range_selects { &READS[..] } else { &[S::Point] };
        ReadOnly { blocks: Blocks::new(&knobs.oltp(), used), knobs: knobs.clone() }
    }
}

impl Workload for ReadOnly {
    fn statements(&self) -> Vec<load::Statement> {
        self.blocks.statements()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let ReadOnly { blocks, knobs: k } = self;
        if !k.skip_trx {
            s.begin().await?;
        }
        blocks.points(s, &mut rng, k.point_selects).await?;
        if k.range_selects {
            blocks.ranges(s, &mut rng, S::SimpleRange, k.simple_ranges, k.range_size).await?;
            blocks.ranges(s, &mut rng, S::SumRange, k.sum_ranges, k.range_size).await?;
            blocks.ranges(s, &mut rng, S::OrderRange, k.order_ranges, k.range_size).await?;
            blocks.ranges(s, &mut rng, S::DistinctRange, k.distinct_ranges, k.range_size).await?;
        }
        if !k.skip_trx {
            s.commit().await?;
        }
        Ok(())
    }
}
