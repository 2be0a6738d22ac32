//! sysbench 1.x `oltp_write_only`: 4 writes in a transaction.

use load::{Rng, Session, TransactionError, Workload};
use study::OltpWriteOnly;

use super::statements::{Blocks, WRITES};

pub(super) struct WriteOnly {
    blocks: Blocks,
    knobs: OltpWriteOnly,
}

impl WriteOnly {
    pub(super) fn new(knobs: &OltpWriteOnly) -> WriteOnly {
        WriteOnly { blocks: Blocks::new(&knobs.oltp(), &WRITES), knobs: knobs.clone() }
    }
}

impl Workload for WriteOnly {
    fn statements(&self) -> Vec<load::Statement> {
        self.blocks.statements()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let WriteOnly { blocks, knobs: k } = self;
        if !k.skip_trx {
            s.begin().await?;
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
