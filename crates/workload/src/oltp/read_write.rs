//! sysbench 1.x `oltp_read_write`: 14 reads and 4 writes in a transaction.

use load::{Rng, Session, TransactionError, Workload};
use study::OltpReadWrite;

use super::statements::{Blocks, READS, Statement as S, WRITES};

pub(super) struct ReadWrite {
    blocks: Blocks,
    knobs: OltpReadWrite,
}

impl ReadWrite {
    pub(super) fn new(knobs: &OltpReadWrite) -> ReadWrite {
        let reads = if knobs.range_selects { &READS[..] } else { &[S::Point] };
        let blocks = Blocks::new(&knobs.oltp(), &[reads, &WRITES].concat());
        ReadWrite { blocks, knobs: knobs.clone() }
    }
}

impl Workload for ReadWrite {
    fn statements(&self) -> Vec<load::Statement> {
        self.blocks.statements()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let ReadWrite { blocks, knobs: k } = self;
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
        blocks.index_updates(s, &mut rng, k.index_updates).await?;
        blocks.non_index_updates(s, &mut rng, k.non_index_updates).await?;
        blocks.delete_inserts(s, &mut rng, k.delete_inserts).await?;
        if !k.skip_trx {
            s.commit().await?;
        }
        Ok(())
    }
}
