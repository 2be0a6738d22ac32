//! A workload under its name, which is what its one kind of transaction is called in reports.

use load::{Operation, Rng, Session, Statement, TransactionError, Workload};

pub(super) struct Named<W> {
    pub name: &'static str,
    pub workload: W,
}

impl<W: Workload> Workload for Named<W> {
    fn statements(&self) -> Vec<Statement> {
        self.workload.statements()
    }

    fn kinds(&self) -> Vec<String> {
        vec![self.name.to_owned()]
    }

    fn kind(&self, operation: Operation) -> usize {
        self.workload.kind(operation)
    }

    fn redraws(&self) -> bool {
        self.workload.redraws()
    }

    fn transaction(
        &self,
        session: &mut Session,
        kind: usize,
        rng: Rng,
    ) -> impl Future<Output = Result<(), TransactionError>> {
        self.workload.transaction(session, kind, rng)
    }
}

#[cfg(test)]
mod tests {
    use study::{Oltp, OltpLegacy};

    use super::*;
    use crate::oltp::legacy::Legacy;
    use crate::oltp::point_select::PointSelect;

    #[test]
    fn a_named_workload_is_what_it_names() {
        let selects = Named { name: "one", workload: PointSelect::new(&Oltp::default()) };
        assert_eq!(selects.kinds(), ["one"]);
        assert_eq!(selects.statements(), PointSelect::new(&Oltp::default()).statements());
        assert!(selects.redraws());
        let legacy = Named { name: "two", workload: Legacy::new(&OltpLegacy::default(), 1) };
        assert!(!legacy.redraws(), "0.4.12 sends the same again after a deadlock");
    }
}
