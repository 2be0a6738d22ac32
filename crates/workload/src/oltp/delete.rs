//! sysbench 1.x `oltp_delete`: one row by its id, outside of any transaction. Rows are not put back,
//! so that the longer it runs the more ids find nothing.

use load::{Rng, Session, TransactionError, Workload};
use study::Oltp;

use super::statements::{Blocks, Statement};

pub(super) struct Delete(Blocks);

impl Delete {
    pub(super) fn new(oltp: &Oltp) -> Delete {
        Delete(Blocks::new(oltp, &[Statement::Delete]))
    }
}

impl Workload for Delete {
    fn statements(&self) -> Vec<load::Statement> {
        self.0.statements()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        self.0.delete(s, &mut rng).await
    }
}
