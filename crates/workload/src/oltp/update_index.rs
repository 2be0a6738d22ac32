//! sysbench 1.x `oltp_update_index`: changes of `k`, which is indexed; each commits itself.

use load::{Rng, Session, TransactionError, Workload};
use study::OltpUpdateIndex;

use super::statements::{Blocks, Statement};

pub(super) struct UpdateIndex {
    blocks: Blocks,
    updates: u32,
}

impl UpdateIndex {
    pub(super) fn new(oltp: &OltpUpdateIndex) -> UpdateIndex {
        let blocks = Blocks::new(&oltp.oltp(), &[Statement::IndexUpdate]);
        UpdateIndex { blocks, updates: oltp.index_updates }
    }
}

impl Workload for UpdateIndex {
    fn statements(&self) -> Vec<load::Statement> {
        self.blocks.statements()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        self.blocks.index_updates(s, &mut rng, self.updates).await
    }
}
