//! sysbench 1.x `oltp_point_select`: one row by its id, outside of any transaction.

use load::{Rng, Session, TransactionError, Workload};
use study::Oltp;

use super::statements::{Blocks, Statement};

pub(super) struct PointSelect(Blocks);

impl PointSelect {
    pub(super) fn new(oltp: &Oltp) -> PointSelect {
        PointSelect(Blocks::new(oltp, &[Statement::Point]))
    }
}

impl Workload for PointSelect {
    fn statements(&self) -> Vec<load::Statement> {
        self.0.statements()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        self.0.points(s, &mut rng, 1).await
    }
}
