//! Schema and rows, generated from a seed, loaded in parallel and verified.
//!
//! Called by the worker when a dataset is made. Tables and rows are those of sysbench 1.x
//! `prepare`: `sbtest1..N`, `k` from the workload's distribution, `c` and `pad` random digits, the
//! index on `k` built after the rows. A row is a function of (seed, table, id), so that threads may
//! fill one table together and a checksum of what the server holds can be computed without it.

mod error;
mod fill;
mod ownership;
mod row;
mod server;
mod verify;

use std::collections::BTreeMap;
use std::ops::Range;

use load::Target;
use mysql::prelude::Queryable;
use serde::{Deserialize, Serialize};
use study::{Oltp, Workload};

use row::{GENERATOR, Generator};

pub use error::LoadError;
pub use ownership::{
    Cleaned, FoundTable, OWNERSHIP_TABLE, Prepared, Survey, TableState, drop_named, drop_own,
    prepare, survey,
};

/// Database that holds the tables, where the target names none.
pub const DATABASE: &str = "sbtest";

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadProgress {
    /// Rows that the server has acknowledged.
    pub rows: u64,
    /// Rows in all.
    pub total: u64,
}

/// What was verified after a load: `sbtest1.rows`, `sbtest1.checksum`.
pub type DataFacts = BTreeMap<String, String>;

/// Describes the data that a workload needs, for a dataset's key: equal text, equal rows.
pub fn describe_data(workload: &Workload) -> String {
    let oltp = tables_of(workload);
    format!(
        "{GENERATOR}, {} tables of {} rows, k {}",
        oltp.tables,
        oltp.rows,
        format!("{:?}", oltp.distribution).to_lowercase()
    )
}

/// Creates the database and tables and fills them, `threads` connections at once, also within one
/// table; then counts and checksums every table against what was generated.
///
/// # Errors
/// The server's, or that what the server holds is not what was sent. A database that already has
/// tables is refused. Whatever was made until then stays for the caller to look at or remove.
pub fn load_data(
    workload: &Workload,
    target: &Target,
    seed: u64,
    threads: u32,
    on_progress: &mut dyn FnMut(LoadProgress),
) -> Result<DataFacts, LoadError> {
    server::create_database(target)?;
    fill_database(workload, target, seed, threads, None, on_progress)
}

/// The same in a database that exists and may hold other tables. Each table's comment is `mark`.
fn fill_database(
    workload: &Workload,
    target: &Target,
    seed: u64,
    threads: u32,
    mark: Option<&str>,
    on_progress: &mut dyn FnMut(LoadProgress),
) -> Result<DataFacts, LoadError> {
    let oltp = tables_of(workload);
    // The column is a signed 32-bit INTEGER, as in sysbench.
    if oltp.tables == 0 || oltp.rows == 0 || oltp.rows > i32::MAX as u64 {
        return Err(LoadError::Size { tables: oltp.tables, rows: oltp.rows });
    }
    let threads = threads.max(1);
    let generator = Generator::new(seed, oltp);
    let tables: Vec<u32> = (1..=oltp.tables).collect();
    for table in &tables {
        server::run(&mut server::connect(target)?, &marked(create_table(*table), mark))?;
    }
    let chunks = chunks(oltp);
    let sent = fill::fill(&generator, target, &chunks, oltp, threads, on_progress)?;
    server::in_parallel(target, &tables, threads, |connection, table| {
        server::run(connection, &format!("CREATE INDEX k_{table} ON sbtest{table}(k)"))?;
        // Fixes the statistics that plans are made from; otherwise the server gathers them some
        // time later, in each clone of the data anew.
        let text = format!("ANALYZE TABLE sbtest{table}");
        connection
            .query_drop(&text)
            .map_err(|source| LoadError::Statement { statement: text, source: Box::new(source) })
    })?;
    verify::verify(target, &chunks, &sent, threads)
}

/// Names of the tables that a workload uses.
pub fn table_names(workload: &Workload) -> Vec<String> {
    (1..=tables_of(workload).tables).map(|table| format!("sbtest{table}")).collect()
}

/// Rows that a workload expects in each of its tables.
pub fn rows_per_table(workload: &Workload) -> u64 {
    tables_of(workload).rows
}

/// A statement of the schema; one that creates a table also gives it its comment, so that there
/// is no moment at which the table is nobody's.
fn marked(statement: String, mark: Option<&str>) -> String {
    match mark {
        Some(mark) if statement.starts_with("CREATE TABLE ") => {
            format!("{statement} COMMENT = '{mark}'")
        }
        _ => statement,
    }
}

fn tables_of(workload: &Workload) -> &Oltp {
    let (Workload::OltpPointSelect(oltp)
    | Workload::OltpReadOnly(oltp)
    | Workload::OltpReadWrite(oltp)
    | Workload::OltpWriteOnly(oltp)) = workload;
    oltp
}

fn create_table(table: u32) -> String {
    format!(
        "CREATE TABLE sbtest{table} (id INTEGER NOT NULL AUTO_INCREMENT, \
         k INTEGER NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
         pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id)) ENGINE = InnoDB"
    )
}

/// A piece of work: some rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk {
    /// From 1.
    table: u32,
    /// Row ids.
    ids: Range<u64>,
}

/// Rows of a chunk: enough for its statements to be long, few enough for threads to end together.
const CHUNK_ROWS: u64 = 25_000;

/// All rows of all tables, in pieces.
fn chunks(oltp: &Oltp) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for table in 1..=oltp.tables {
        let mut from = 1;
        while from <= oltp.rows {
            let to = (from + CHUNK_ROWS).min(oltp.rows + 1);
            chunks.push(Chunk { table, ids: from..to });
            from = to;
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use study::Distribution;

    use super::*;

    #[test]
    fn chunks_cover_every_row_once() {
        for rows in [1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 3 * CHUNK_ROWS + 7] {
            let chunks = chunks(&Oltp { tables: 2, rows, ..Oltp::default() });
            for table in 1..=2 {
                let mut next = 1;
                for chunk in chunks.iter().filter(|chunk| chunk.table == table) {
                    assert_eq!(chunk.ids.start, next);
                    next = chunk.ids.end;
                }
                assert_eq!(next, rows + 1);
            }
        }
    }

    #[test]
    fn what_changes_the_rows_changes_the_description() {
        let oltp = Oltp { tables: 2, rows: 30, ..Oltp::default() };
        let text = describe_data(&Workload::OltpReadOnly(oltp.clone()));
        assert_eq!(text, "oltp rows 1, 2 tables of 30 rows, k uniform");
        assert_eq!(text, describe_data(&Workload::OltpWriteOnly(oltp.clone())));
        for other in [
            Oltp { tables: 3, ..oltp.clone() },
            Oltp { rows: 31, ..oltp.clone() },
            Oltp { distribution: Distribution::Pareto, ..oltp.clone() },
        ] {
            assert_ne!(text, describe_data(&Workload::OltpReadOnly(other)));
        }
        let ranges = Oltp { range_size: 7, ..oltp };
        assert_eq!(text, describe_data(&Workload::OltpReadOnly(ranges)), "rows stay the same");
    }
}
