//! The statements of the family, and the blocks that transactions are put together from.

use load::{Rng, Session, TransactionError};
use study::Oltp;
use wire::Param;

use crate::digits::{C_BYTES, PAD_BYTES, digit_groups};
use crate::distribution::{Ids, Law};

/// A statement of the family; there is one for each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Point,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
}

use Statement as S;

/// The five that read.
pub(super) const READS: [Statement; 5] =
    [S::Point, S::SimpleRange, S::SumRange, S::OrderRange, S::DistinctRange];
/// The four that write.
pub(super) const WRITES: [Statement; 4] = [S::IndexUpdate, S::NonIndexUpdate, S::Delete, S::Insert];

impl Statement {
    const COUNT: usize = READS.len() + WRITES.len();

    /// As reports call it.
    fn name(self) -> &'static str {
        match self {
            S::Point => "point",
            S::SimpleRange => "simple range",
            S::SumRange => "sum range",
            S::OrderRange => "order range",
            S::DistinctRange => "distinct range",
            S::IndexUpdate => "index update",
            S::NonIndexUpdate => "non-index update",
            S::Delete => "delete",
            S::Insert => "insert",
        }
    }

    fn text(self, table: u32) -> String {
        match self {
            S::Point => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            S::SimpleRange => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            S::SumRange => format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            S::OrderRange => {
                format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            S::DistinctRange => {
                format!("SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            S::IndexUpdate => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            S::NonIndexUpdate => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            S::Delete => format!("DELETE FROM sbtest{table} WHERE id=?"),
            S::Insert => format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
        }
    }
}

/// Result of a block.
type Done = Result<(), TransactionError>;

/// What the variants share: the tables and how rows are drawn.
#[derive(Debug)]
pub(super) struct Blocks {
    tables: u32,
    ids: Ids,
    used: Vec<Statement>,
    /// Number of each statement's first table, by `Statement as usize`.
    first: [usize; Statement::COUNT],
}

impl Blocks {
    /// For a variant that uses the statements `used`.
    pub(super) fn new(oltp: &Oltp, used: &[Statement]) -> Blocks {
        let mut first = [usize::MAX; Statement::COUNT];
        for (i, &statement) in used.iter().enumerate() {
            first[statement as usize] = i * oltp.tables as usize;
        }
        let ids = Ids::new(oltp.rows, Law::of(oltp));
        Blocks { tables: oltp.tables, ids, used: used.to_vec(), first }
    }

    /// What a connection prepares.
    pub(super) fn statements(&self) -> Vec<load::Statement> {
        let mut statements = Vec::new();
        for &statement in &self.used {
            statements.extend((1..=self.tables).map(|table| load::Statement {
                text: statement.text(table),
                name: statement.name().to_owned(),
            }));
        }
        statements
    }

    /// Draws the table of a block, from 0.
    fn table(&self, rng: &mut Rng) -> usize {
        rng.below(u64::from(self.tables)) as usize
    }

    fn id(&self, rng: &mut Rng) -> i64 {
        self.ids.draw(rng) as i64
    }

    fn number(&self, statement: Statement, table: usize) -> usize {
        self.first[statement as usize].saturating_add(table)
    }

    /// `count` rows of one table by their ids.
    pub(super) async fn points(&self, session: &mut Session, rng: &mut Rng, count: u32) -> Done {
        let statement = self.number(S::Point, self.table(rng));
        for _ in 0..count {
            session.execute(statement, &[Param::Int(self.id(rng))]).await?;
        }
        Ok(())
    }

    /// `count` ranges of `size` ids of one table; they may reach past its end.
    pub(super) async fn ranges(
        &self,
        session: &mut Session,
        rng: &mut Rng,
        kind: S,
        count: u32,
        size: u32,
    ) -> Done {
        let statement = self.number(kind, self.table(rng));
        for _ in 0..count {
            let from = self.id(rng);
            let to = from + i64::from(size) - 1;
            session.execute(statement, &[Param::Int(from), Param::Int(to)]).await?;
        }
        Ok(())
    }

    /// Changes `k`, which is indexed, of `count` rows of one table.
    pub(super) async fn index_updates(
        &self,
        session: &mut Session,
        rng: &mut Rng,
        count: u32,
    ) -> Done {
        let statement = self.number(S::IndexUpdate, self.table(rng));
        for _ in 0..count {
            session.execute(statement, &[Param::Int(self.id(rng))]).await?;
        }
        Ok(())
    }

    /// Changes `c`, which is not indexed, of `count` rows of one table.
    pub(super) async fn non_index_updates(
        &self,
        session: &mut Session,
        rng: &mut Rng,
        count: u32,
    ) -> Done {
        let statement = self.number(S::NonIndexUpdate, self.table(rng));
        for _ in 0..count {
            let c: [u8; C_BYTES] = digit_groups(rng);
            session.execute(statement, &[Param::Bytes(&c), Param::Int(self.id(rng))]).await?;
        }
        Ok(())
    }

    /// Takes a row away.
    pub(super) async fn delete(&self, session: &mut Session, rng: &mut Rng) -> Done {
        let statement = self.number(S::Delete, self.table(rng));
        session.execute(statement, &[Param::Int(self.id(rng))]).await?;
        Ok(())
    }

    /// `count` times in one table: takes a row away and puts another with the same id in its place.
    pub(super) async fn delete_inserts(
        &self,
        session: &mut Session,
        rng: &mut Rng,
        count: u32,
    ) -> Done {
        let table = self.table(rng);
        for _ in 0..count {
            let (id, k) = (Param::Int(self.id(rng)), Param::Int(self.id(rng)));
            session.execute(self.number(S::Delete, table), &[id]).await?;
            let c: [u8; C_BYTES] = digit_groups(rng);
            let pad: [u8; PAD_BYTES] = digit_groups(rng);
            let row = [id, k, Param::Bytes(&c), Param::Bytes(&pad)];
            session.execute(self.number(S::Insert, table), &row).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_of_every_table_has_its_number() {
        let oltp = Oltp { tables: 3, ..Oltp::default() };
        let used = [&READS[..], &WRITES].concat();
        let blocks = Blocks::new(&oltp, &used);
        let texts = blocks.statements();
        assert_eq!(texts.len(), 27);
        for statement in used {
            for table in 0..3 {
                let found = &texts[blocks.number(statement, table as usize)];
                assert_eq!(found.text, statement.text(table + 1));
            }
        }
    }

    #[test]
    fn a_statement_that_a_variant_does_not_use_is_refused_and_not_mixed_up() {
        let oltp = Oltp { tables: 3, ..Oltp::default() };
        let blocks = Blocks::new(&oltp, &[S::Point]);
        assert!(blocks.number(S::Insert, 2) >= blocks.statements().len());
    }
}
