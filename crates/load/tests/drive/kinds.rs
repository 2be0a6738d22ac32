//! Kinds of transactions, statements and connections are counted and timed apart.

use std::time::Duration;

use ceteris_load::{
    Fairness, Operation, Rng, Session, Statement, StatementReport, TransactionError, Workload,
};

use super::scripted::{Act, Scripted};
use super::{SELECT, UPDATE, run, spec, statement};

/// Every third transaction of a connection writes in a transaction of the server, others read.
struct Two;

impl Workload for Two {
    fn statements(&self) -> Vec<Statement> {
        // The same on two tables.
        let named = |text: &str| Statement { text: text.into(), name: "point".into() };
        vec![named(SELECT), statement(UPDATE), named("SELECT d")]
    }

    fn kinds(&self) -> Vec<String> {
        vec!["read".into(), "write".into()]
    }

    fn kind(&self, operation: Operation) -> usize {
        usize::from(operation.sequence % 3 == 2)
    }

    async fn transaction(
        &self,
        s: &mut Session,
        kind: usize,
        _: Rng,
    ) -> Result<(), TransactionError> {
        if kind == 0 {
            s.execute(0, &[wire::Param::Int(1)]).await?;
            return s.execute(2, &[]).await.map(|_| ());
        }
        s.begin().await?;
        s.execute(1, &[wire::Param::Int(1)]).await?;
        s.commit().await.map(|_| ())
    }
}

pub fn find<'a>(statements: &'a [StatementReport], name: &str) -> &'a StatementReport {
    statements.iter().find(|statement| statement.name == name).unwrap()
}

#[test]
fn what_has_a_name_is_counted_and_timed_apart() {
    // Statements 0 to 6 of a connection are read, read, write; 7 to 9 read and begin to read; the
    // write (4 BEGIN, 5 UPDATE, 6 COMMIT) takes long, of which most is the UPDATE's.
    let late = Duration::from_millis(300);
    let server = Scripted::start(usize::MAX, move |n, _| match n {
        5 => Act::Late(late),
        10.. => Act::Silence,
        _ => Act::Answer,
    });
    let (report, _) = run(&Two, &spec(&[&server], 4, 1500)).unwrap();
    let kinds: Vec<_> = report.kinds.iter().map(|k| (k.name.as_str(), k.transactions)).collect();
    assert_eq!(kinds, [("read", 12), ("write", 4)]);
    assert_eq!(report.transactions, 16);
    let (read, write) = (&report.kinds[0], &report.kinds[1]);
    assert!(write.response.min >= 0.999 * 300.0, "{write:?}");
    assert!(write.response.max >= write.service.max);
    assert!(read.response.min < write.response.min, "{read:?}");
    assert!(read.response_hdr_base64 != write.response_hdr_base64);
    let names: Vec<_> = report.statements.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["BEGIN", "COMMIT", "point", UPDATE]);
    let executions: Vec<_> = report.statements.iter().map(|s| s.executions).collect();
    assert_eq!(executions, [4, 4, 28, 4]);
    let update = find(&report.statements, UPDATE);
    assert!(update.latency.min >= 0.99 * 300.0, "{update:?}");
    assert!(update.latency.max <= write.service.max * 1.01, "{update:?}");
    assert!(find(&report.statements, "point").latency.min < 300.0);
    assert_eq!(report.fairness, Some(Fairness { mean: 4.0, stddev: 0.0, min: 4, max: 4 }));
}

#[test]
fn errors_are_told_by_statement() {
    let server = Scripted::start(usize::MAX, move |n, text| match text {
        _ if n >= 12 => Act::Silence,
        "COMMIT" if n == 6 => Act::Error(1213, "Deadlock found when trying to get lock"),
        UPDATE if n == 9 => Act::Error(1205, "Lock wait timeout exceeded"),
        _ => Act::Answer,
    });
    let (report, _) = run(&Two, &spec(&[&server], 3, 1000)).unwrap();
    // Two reads, then a write that fails at COMMIT (6) after which the server thinks that it is
    // still open, a ROLLBACK (7), BEGIN (8), an UPDATE that fails (9), ROLLBACK (10), BEGIN (11).
    assert_eq!(find(&report.statements, "COMMIT").errors, [("1213".to_owned(), 3)].into());
    assert_eq!(find(&report.statements, UPDATE).errors, [("1205".to_owned(), 3)].into());
    assert_eq!(find(&report.statements, UPDATE).executions, 3);
    assert_eq!(find(&report.statements, "ROLLBACK").executions, 6);
    assert_eq!(report.errors, [("1205".to_owned(), 3), ("1213".to_owned(), 3)].into());
    let kinds: Vec<_> = report.kinds.iter().map(|k| (k.transactions, k.retries)).collect();
    assert_eq!(kinds, [(6, 0), (0, 6)]);
    assert_eq!(report.retries, 6);
}

/// Says of its transactions what is not so.
struct Wrong;

impl Workload for Wrong {
    fn statements(&self) -> Vec<Statement> {
        vec![statement(SELECT)]
    }

    fn kind(&self, _: Operation) -> usize {
        1
    }

    async fn transaction(&self, s: &mut Session, _: usize, _: Rng) -> Result<(), TransactionError> {
        s.execute(0, &[]).await.map(|_| ())
    }
}

#[test]
fn a_kind_that_is_none_is_an_error() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let error = run(&Wrong, &spec(&[&server], 2, 600_000)).unwrap_err();
    assert!(error.to_string().contains("there is no kind 1"), "{error}");
}

#[test]
fn several_servers_are_driven_at_once_and_counted_apart() {
    // Of four connections each server has two. One falls silent after four transactions of each.
    let lively = Scripted::start(usize::MAX, |n, _| match n {
        40.. => Act::Silence,
        _ => Act::Answer,
    });
    let tired = Scripted::start(usize::MAX, |n, _| match n {
        10.. => Act::Silence,
        _ => Act::Answer,
    });
    let (report, _) = run(&Two, &spec(&[&lively, &tired], 4, 1200)).unwrap();
    // Read, read, write take 2, 2 and 3 statements.
    let each = |statements: u64| 3 * (statements / 7) + (statements % 7).min(4) / 2;
    let targets: Vec<_> =
        report.targets.iter().map(|t| (t.name.as_str(), t.transactions)).collect();
    assert_eq!(targets, [("0", 2 * each(40)), ("1", 2 * each(10))]);
    assert_eq!(report.transactions, 2 * (each(40) + each(10)));
    let kinds: u64 = report.kinds.iter().map(|kind| kind.transactions).sum();
    assert_eq!(kinds, report.transactions);
    assert!(report.targets[1].response.max > 0.0);
    // One server alone is no matter of several.
    let server = Scripted::start(usize::MAX, |n, _| if n < 4 { Act::Answer } else { Act::Silence });
    let (report, _) = run(&Two, &spec(&[&server], 1, 1000)).unwrap();
    assert_eq!(report.targets, []);
}
