//! sysbench 1.x `oltp_write_only`: 4 writes in a transaction.

use load::{Rng, Session, TransactionError, Workload};
use study::Oltp;

use super::statements::{Blocks, WRITES};

pub(super) struct WriteOnly(Blocks);

impl WriteOnly {
    pub(super) fn new(oltp: &Oltp) -> WriteOnly {
        WriteOnly(Blocks::new(oltp, &WRITES))
    }
}

impl Workload for WriteOnly {
    fn statements(&self) -> Vec<load::Statement> {
        self.0.statements()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        s.begin().await?;
        self.0.index_update(s, &mut rng).await?;
        self.0.non_index_update(s, &mut rng).await?;
        self.0.delete_insert(s, &mut rng).await?;
        s.commit().await?;
        Ok(())
    }
}
