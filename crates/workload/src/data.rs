//! Schema and rows, generated from a seed, loaded in parallel and verified.
//!
//! Called by the worker when a dataset is made. Tables and rows are those of sysbench's `prepare`.
//! Those of 1.x: `sbtest1..N`, `k` from the workload's distribution, `c` and `pad` random digits,
//! the index on `k` built after the rows. A row is a function of (seed, table, id), so that threads may
//! fill one table together and a checksum of what the server holds can be computed without it.

mod error;
mod fill;
mod ownership;
mod redo;
mod row;
mod schema;
mod server;
mod standing;
mod verify;

use std::collections::BTreeMap;
use std::ops::Range;

use load::Target;
use serde::{Deserialize, Serialize};
use study::Workload;

use schema::Schema;
use verify::Held;

pub use error::LoadError;
pub use ownership::{
    Cleaned, FoundTable, OWNERSHIP_TABLE, Prepared, Survey, TableState, drop_named, drop_own,
    prepare, survey,
};
pub use standing::load_standing;

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
///
/// # Errors
/// A script that cannot be read.
pub fn describe_data(workload: &Workload) -> Result<String, LoadError> {
    Ok(Schema::of(workload)?.describe())
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

/// [`load_data`] on a server that was started for this alone and whose files are thrown away if the load
/// fails: the redo log, for which nothing would be left to recover, is off meanwhile where the
/// server can do without it. The facts say so.
///
/// # Errors
/// As [`load_data`], and that the redo log could not be switched on again.
pub fn load_private(
    workload: &Workload,
    target: &Target,
    seed: u64,
    threads: u32,
    on_progress: &mut dyn FnMut(LoadProgress),
) -> Result<DataFacts, LoadError> {
    let redo = redo::switch_off(target)?;
    let mut facts = load_data(workload, target, seed, threads, on_progress)?;
    if let redo::Redo::Off = redo {
        redo::switch_on(target)?;
    }
    facts.insert("redo_log".to_owned(), redo.fact().to_owned());
    Ok(facts)
}

/// [`load_data`] in a database that exists and may hold other tables. Each table's comment is `mark`.
fn fill_database(
    workload: &Workload,
    target: &Target,
    seed: u64,
    threads: u32,
    mark: Option<&str>,
    on_progress: &mut dyn FnMut(LoadProgress),
) -> Result<DataFacts, LoadError> {
    let schema = Schema::of(workload)?;
    // The column is a signed 32-bit INTEGER, as in sysbench.
    let rows = schema.rows(1);
    if schema.tables == 0 || (rows > i32::MAX as u64 && !schema.is_script()) {
        return Err(LoadError::Size { tables: schema.tables, rows });
    }
    let threads = threads.max(1);
    let generator = schema.generator(seed);
    let tables: Vec<u32> = (1..=schema.tables).collect();
    let mut connection = server::connect(target)?;
    // A server that lacks the engine is to say so and not to take another.
    server::run(&mut connection, "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'")?;
    for table in &tables {
        for statement in schema.create(*table) {
            let own = mark.filter(|_| !schema.is_script());
            server::run(&mut connection, &marked(statement, own))?;
        }
        // Where a comment could stand in a statement of a script, only its writer knows.
        if let Some(mark) = mark.filter(|_| schema.is_script()) {
            let statement = format!("ALTER TABLE {} COMMENT = '{mark}'", schema.name(*table));
            server::run(&mut connection, &statement)?;
        }
    }
    drop(connection);
    let chunks = chunks(&schema);
    let sent = fill::fill(&generator, target, &chunks, &schema, threads, on_progress)?;
    // Looking at the rows needs no index, so both go on at once, the longer work first.
    let held = Held::unknown(schema.tables);
    let mut steps: Vec<Step<'_>> = tables.into_iter().map(Step::Complete).collect();
    if !schema.is_script() {
        steps.extend(chunks.iter().map(Step::Look));
    }
    server::in_parallel(target, &steps, threads, |connection, step| match step {
        Step::Complete(table) => {
            for statement in schema.complete(*table) {
                server::run(connection, &statement)?;
            }
            // Fixes the statistics that plans are made from; otherwise the server gathers them
            // some time later, in each clone of the data anew.
            server::run(connection, &format!("ANALYZE TABLE {}", schema.name(*table)))
        }
        Step::Look(chunk) => held.look(connection, &schema, &chunks, chunk),
    })?;
    match schema.is_script() {
        true => verify::script::verify(target, &schema, &sent, threads),
        false => held.compare(&schema, &sent),
    }
}

/// A table that a workload uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// Rows that it begins with.
    pub rows: u64,
}

/// The tables that a workload uses.
///
/// # Errors
/// A script that cannot be read.
pub fn tables(workload: &Workload) -> Result<Vec<Planned>, LoadError> {
    let schema = Schema::of(workload)?;
    let planned = |table| Planned { name: schema.name(table), rows: schema.rows(table) };
    Ok((1..=schema.tables).map(planned).collect())
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

/// What is left to do when the rows are there.
enum Step<'a> {
    /// Build a table's indexes and fix its statistics.
    Complete(u32),
    /// Look whether the rows are those that were sent.
    Look(&'a Chunk),
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
fn chunks(schema: &Schema) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let chunk_rows = schema.chunk_rows(CHUNK_ROWS);
    for table in 1..=schema.tables {
        let (mut from, rows) = (1, schema.rows(table));
        while from <= rows {
            let to = chunk_rows.saturating_add(from).min(rows + 1);
            chunks.push(Chunk { table, ids: from..to });
            from = to;
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use study::{Oltp, OltpLegacy};

    use super::*;

    #[test]
    fn chunks_cover_every_row_once() {
        for rows in [1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 3 * CHUNK_ROWS + 7] {
            let oltp = Oltp { tables: 2, rows, ..Oltp::default() };
            let chunks = chunks(&Schema::of(&Workload::OltpDelete(oltp)).unwrap());
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
    fn the_table_of_0_4_12_is_filled_in_order() {
        let legacy = OltpLegacy { rows: 3 * CHUNK_ROWS, ..OltpLegacy::default() };
        let chunks = chunks(&Schema::of(&Workload::OltpLegacy(legacy)).unwrap());
        assert_eq!(chunks, [Chunk { table: 1, ids: 1..3 * CHUNK_ROWS + 1 }]);
    }
}
