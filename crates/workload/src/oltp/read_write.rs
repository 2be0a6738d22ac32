//! sysbench 1.x `oltp_read_write`: 14 reads and 4 writes in a transaction.

use load::{Rng, Session, TransactionError, Workload};
use study::Oltp;

use super::statements::{Blocks, READS, WRITES};

pub(super) struct ReadWrite(Blocks);

impl ReadWrite {
    pub(super) fn new(oltp: &Oltp) -> ReadWrite {
        ReadWrite(Blocks::new(oltp, &[&READS[..], &WRITES].concat()))
    }
}

impl Workload for ReadWrite {
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
        self.0.points(s, &mut rng, 10).await?;
        self.0.ranges(s, &mut rng).await?;
        self.0.index_update(s, &mut rng).await?;
        self.0.non_index_update(s, &mut rng).await?;
        self.0.delete_insert(s, &mut rng).await?;
        s.commit().await?;
        Ok(())
    }
}
