//! sysbench 1.x `oltp_read_only`: 14 reads in a transaction.

use load::{Rng, Session, TransactionError, Workload};
use study::Oltp;

use super::statements::{Blocks, READS};

pub(super) struct ReadOnly(Blocks);

impl ReadOnly {
    pub(super) fn new(oltp: &Oltp) -> ReadOnly {
        ReadOnly(Blocks::new(oltp, &READS))
    }
}

impl Workload for ReadOnly {
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
        s.commit().await?;
        Ok(())
    }
}
