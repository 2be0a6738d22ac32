//! sysbench 1.x `oltp_update_non_index`: changes of `c`, which is not indexed; each commits itself.

use load::{Rng, Session, TransactionError, Workload};
use study::OltpUpdateNonIndex;

use super::statements::{Blocks, Statement};

pub(super) struct UpdateNonIndex {
    blocks: Blocks,
    updates: u32,
}

impl UpdateNonIndex {
    pub(super) fn new(oltp: &OltpUpdateNonIndex) -> UpdateNonIndex {
        let blocks = Blocks::new(&oltp.oltp(), &[Statement::NonIndexUpdate]);
        UpdateNonIndex { blocks, updates: oltp.non_index_updates }
    }
}

impl Workload for UpdateNonIndex {
    fn statements(&self) -> Vec<load::Statement> {
        self.blocks.statements()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        self.blocks.non_index_updates(s, &mut rng, self.updates).await
    }
}
