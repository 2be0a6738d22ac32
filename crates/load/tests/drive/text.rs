//! Statements that travel as text.

use ceteris_load::{
    DriveSpec, Rng, Session, Statement, StatementProtocol, TransactionError, Workload,
};
use wire::Param;

use super::scripted::{Act, Scripted};
use super::{run, spec, statement};

/// One statement with values of every kind, and one with too few.
struct Values {
    enough: bool,
}

impl Workload for Values {
    fn statements(&self) -> Vec<Statement> {
        vec![statement("UPDATE t SET c=?, d=? WHERE id=? AND e='?'")]
    }

    async fn transaction(&self, s: &mut Session, _: usize, _: Rng) -> Result<(), TransactionError> {
        let params = [Param::Bytes(b"it's"), Param::Null, Param::Int(-7)];
        let outcome = s.execute(0, if self.enough { &params } else { &params[1..] }).await?;
        assert_eq!(outcome.affected_rows, 1);
        Ok(())
    }
}

fn text(server: &Scripted) -> DriveSpec {
    DriveSpec { protocol: StatementProtocol::Text, ..spec(&[server], 3, 1000) }
}

#[test]
fn nothing_is_prepared_and_values_stand_in_the_text() {
    let server = Scripted::start(usize::MAX, |n, _| match n {
        10.. => Act::Silence,
        _ => Act::Answer,
    });
    let (report, _) = run(&Values { enough: true }, &text(&server)).unwrap();
    assert_eq!(server.answered("UPDATE t SET c='it''s', d=NULL WHERE id=-7 AND e='?'"), 30);
    assert_eq!(server.prepared(), 0);
    assert_eq!((report.transactions, report.writes), (30, 30));
    assert_eq!(report.statements.len(), 1);
    assert_eq!(report.statements[0].name, "UPDATE t SET c=?, d=? WHERE id=? AND e='?'");
}

#[test]
fn a_value_too_few_is_an_error() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let error = run(&Values { enough: false }, &text(&server)).unwrap_err();
    assert!(error.to_string().contains("statement 0 takes 3 values, got 2"), "{error}");
}
