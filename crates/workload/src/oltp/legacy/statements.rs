//! The statements of 0.4.12's `oltp`, letter by letter.

use study::{NontrxMode, OltpLegacy, TestMode};

/// A statement on the one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Point,
    PointPad,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
    InsertRandom,
}

use Statement as S;

impl Statement {
    const COUNT: usize = S::InsertRandom as usize + 1;

    /// As reports call it.
    fn name(self) -> &'static str {
        match self {
            S::Point | S::PointPad => "point",
            S::SimpleRange => "simple range",
            S::SumRange => "sum range",
            S::OrderRange => "order range",
            S::DistinctRange => "distinct range",
            S::IndexUpdate => "index update",
            S::NonIndexUpdate => "non-index update",
            S::Delete => "delete",
            S::Insert | S::InsertRandom => "insert",
        }
    }

    fn text(self) -> &'static str {
        match self {
            S::Point => "SELECT c from sbtest where id=?",
            S::PointPad => "SELECT pad from sbtest where id=?",
            S::SimpleRange => "SELECT c from sbtest where id between ? and ?",
            S::SumRange => "SELECT SUM(K) from sbtest where id between ? and ?",
            S::OrderRange => "SELECT c from sbtest where id between ? and ? order by c",
            S::DistinctRange => "SELECT DISTINCT c from sbtest where id between ? and ? order by c",
            S::IndexUpdate => "UPDATE sbtest set k=k+1 where id=?",
            S::NonIndexUpdate => "UPDATE sbtest set c=? where id=?",
            S::Delete => "DELETE from sbtest where id=?",
            S::Insert => {
                "INSERT INTO sbtest values(?,0,' ',\
                 'aaaaaaaaaaffffffffffrrrrrrrrrreeeeeeeeeeyyyyyyyyyy')"
            }
            S::InsertRandom => "INSERT INTO sbtest values(?,?,?,?)",
        }
    }
}

/// Those that a mode uses.
pub(super) struct Statements {
    used: Vec<Statement>,
    /// By `Statement as usize`.
    numbers: [usize; Statement::COUNT],
    lock: Option<&'static str>,
}

const READS: [S; 5] = [S::Point, S::SimpleRange, S::SumRange, S::OrderRange, S::DistinctRange];
const WRITES: [S; 4] = [S::IndexUpdate, S::NonIndexUpdate, S::Delete, S::Insert];

/// Engines for which 0.4.12 locks the table instead of opening a transaction.
const WITHOUT_TRANSACTIONS: [&str; 6] = ["myisam", "heap", "memory", "maria", "aria", "archive"];

impl Statements {
    pub(super) fn of(knobs: &OltpLegacy) -> Statements {
        let used = match (knobs.test_mode, knobs.nontrx_mode) {
            (TestMode::Simple, _) => vec![S::Point],
            (TestMode::Complex, _) if knobs.read_only => READS.to_vec(),
            (TestMode::Complex, _) => [&READS[..], &WRITES].concat(),
            (TestMode::Nontrx, NontrxMode::Select) => vec![S::PointPad],
            (TestMode::Nontrx, NontrxMode::UpdateKey) => vec![S::IndexUpdate],
            (TestMode::Nontrx, NontrxMode::UpdateNokey) => vec![S::NonIndexUpdate],
            (TestMode::Nontrx, NontrxMode::Insert) => vec![S::InsertRandom],
            (TestMode::Nontrx, NontrxMode::Delete) => vec![S::Delete],
        };
        let mut numbers = [usize::MAX; Statement::COUNT];
        for (number, &statement) in used.iter().enumerate() {
            numbers[statement as usize] = number;
        }
        let engine = knobs.mysql_table_engine.to_ascii_lowercase();
        let lock = WITHOUT_TRANSACTIONS.contains(&&*engine).then_some(match knobs.read_only {
            true => "LOCK TABLES sbtest READ",
            false => "LOCK TABLES sbtest WRITE",
        });
        Statements { used, numbers, lock }
    }

    /// What a connection prepares.
    pub(super) fn list(&self) -> Vec<load::Statement> {
        let one = |statement: &Statement| load::Statement {
            text: statement.text().to_owned(),
            name: statement.name().to_owned(),
        };
        self.used.iter().map(one).collect()
    }

    pub(super) fn number(&self, statement: Statement) -> usize {
        self.numbers[statement as usize]
    }

    /// What is sent instead of BEGIN, for an engine without transactions.
    pub(super) fn lock(&self) -> Option<&'static str> {
        self.lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_transactions_are_locked() {
        let with = |engine: &str, read_only| {
            let mysql_table_engine = engine.to_owned();
            let knobs = OltpLegacy { mysql_table_engine, read_only, ..OltpLegacy::default() };
            Statements::of(&knobs).lock()
        };
        assert_eq!(with("InnoDB", false), None);
        assert_eq!(with("MyISAM", false), Some("LOCK TABLES sbtest WRITE"));
        assert_eq!(with("myisam", true), Some("LOCK TABLES sbtest READ"));
    }

    #[test]
    fn every_statement_has_its_number() {
        let statements = Statements::of(&OltpLegacy::default());
        let list = statements.list();
        assert_eq!(list.len(), 9);
        for statement in READS.iter().chain(&WRITES) {
            assert_eq!(list[statements.number(*statement)].text, statement.text());
        }
        assert!(statements.number(S::InsertRandom) >= list.len());
    }
}
