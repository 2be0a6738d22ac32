//! The same of a script's tables, of which only the columns are known: each is looked at whole,
//! and a checksum tells something where all columns are whole numbers or strings.

use std::sync::Mutex;

use load::Target;
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::data::fill::Sent;
use crate::data::schema::Schema;
use crate::data::{DataFacts, LoadError, server};

/// Types whose values the server gives back as they were sent.
const EXACT: [&str; 11] = [
    "tinyint",
    "smallint",
    "mediumint",
    "int",
    "bigint",
    "char",
    "varchar",
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
];

pub(in crate::data) fn verify(
    target: &Target,
    schema: &Schema,
    sent: &[Sent],
    threads: u32,
) -> Result<DataFacts, LoadError> {
    let facts = Mutex::new(DataFacts::new());
    let tables: Vec<(u32, &Sent)> = (1..).zip(sent).collect();
    server::in_parallel(target, &tables, threads, |connection, (table, sent)| {
        let name = schema.name(*table);
        let sum = checksum(connection, target, schema, *table)?;
        let checked = sum.is_some();
        let sum = sum.unwrap_or_else(|| "0".to_owned());
        let statement = format!("SELECT COUNT(*), CAST({sum} AS UNSIGNED) FROM {name}");
        let row: Option<(u64, u64)> = connection
            .query_first(&statement)
            .map_err(|error| LoadError::statement(&statement, error))?;
        let (found_rows, found_checksum) = row.unwrap_or_default();
        let sent_rows = sent.rows();
        let sent_checksum = if checked { sent.checksum() } else { 0 };
        if (found_rows, found_checksum) != (sent_rows, sent_checksum) {
            let table = name;
            return Err(LoadError::Mismatch {
                table,
                found_rows,
                found_checksum,
                sent_rows,
                sent_checksum,
            });
        }
        let mut facts = match facts.lock() {
            Ok(facts) => facts,
            Err(poisoned) => poisoned.into_inner(),
        };
        facts.insert(format!("{name}.rows"), found_rows.to_string());
        if checked {
            facts.insert(format!("{name}.checksum"), found_checksum.to_string());
        }
        Ok(())
    })?;
    Ok(facts.into_inner().unwrap_or_default())
}

/// What sums a table up, if that is as the rows were sent.
fn checksum(
    connection: &mut Conn,
    target: &Target,
    schema: &Schema,
    table: u32,
) -> Result<Option<String>, LoadError> {
    let Some(columns) = schema.exact_columns(table) else { return Ok(None) };
    let text = "SELECT LOWER(column_name), LOWER(data_type) FROM information_schema.columns \
                WHERE table_schema = ? AND table_name = ?";
    let types: Vec<(String, String)> = connection
        .exec(text, (server::database(target), schema.name(table)))
        .map_err(|error| LoadError::statement(text, error))?;
    let exact = |column: &&str| {
        let kind = types.iter().find(|(name, _)| name.eq_ignore_ascii_case(column));
        kind.is_some_and(|(_, kind)| EXACT.contains(&kind.as_str()))
    };
    Ok(columns.iter().all(exact).then(|| {
        let columns: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
        format!("COALESCE(SUM(CRC32(CONCAT_WS('#', {}))), 0)", columns.join(", "))
    }))
}
