//! Does the server hold what was sent?

pub(super) mod script;

use std::sync::Mutex;

use mysql::Conn;
use mysql::prelude::Queryable;

use super::fill::Sent;
use super::schema::Schema;
use super::{Chunk, DataFacts, LoadError};

/// What the server holds, table by table.
#[derive(Debug)]
pub(super) struct Held(Vec<Mutex<(u64, u64)>>);

impl Held {
    /// Nothing is known of so many tables.
    pub(super) fn unknown(tables: u32) -> Held {
        Held((0..tables).map(|_| Mutex::default()).collect())
    }

    /// Counts and checksums the rows of one of all `chunks`.
    pub(super) fn look(
        &self,
        connection: &mut Conn,
        schema: &Schema,
        chunks: &[Chunk],
        chunk: &Chunk,
    ) -> Result<(), LoadError> {
        // The ends of a table are left open, so that rows which should not be there are found.
        let table = chunk.table;
        let from = if chunk.ids.start == 1 { i64::from(i32::MIN) } else { chunk.ids.start as i64 };
        let last = !chunks.iter().any(|c| c.table == table && c.ids.start == chunk.ids.end);
        let to = if last { i64::from(i32::MAX) } else { chunk.ids.end as i64 - 1 };
        let statement = format!(
            "SELECT COUNT(*), CAST(COALESCE(SUM(CRC32(CONCAT_WS('#', id, k, c, pad))), 0) AS \
             UNSIGNED) FROM {} WHERE id BETWEEN {from} AND {to}",
            schema.name(table)
        );
        let row: Option<(u64, u64)> = connection
            .query_first(&statement)
            .map_err(|error| LoadError::statement(&statement, error))?;
        let (rows, checksum) = row.unwrap_or_default();
        let mut sum = match self.0[table as usize - 1].lock() {
            Ok(sum) => sum,
            Err(poisoned) => poisoned.into_inner(),
        };
        sum.0 += rows;
        sum.1 = sum.1.wrapping_add(checksum);
        Ok(())
    }

    /// Compares with what was sent.
    pub(super) fn compare(self, schema: &Schema, sent: &[Sent]) -> Result<DataFacts, LoadError> {
        let mut facts = DataFacts::new();
        for ((table, sent), found) in (1..).zip(sent).zip(self.0) {
            let (found_rows, found_checksum) = found.into_inner().unwrap_or_default();
            let (sent_rows, sent_checksum) = (sent.rows(), sent.checksum());
            let table = schema.name(table);
            if (found_rows, found_checksum) != (sent_rows, sent_checksum) {
                return Err(LoadError::Mismatch {
                    table,
                    found_rows,
                    found_checksum,
                    sent_rows,
                    sent_checksum,
                });
            }
            facts.insert(format!("{table}.rows"), found_rows.to_string());
            facts.insert(format!("{table}.checksum"), found_checksum.to_string());
        }
        Ok(facts)
    }
}
