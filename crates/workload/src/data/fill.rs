//! Filling the tables over several connections, also within one table: by LOAD DATA LOCAL where the
//! server allows it, which spares it from parsing, else, and for scripts, whose values may hold
//! anything, by long INSERTs.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use load::Target;
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};

use super::row::{Form, Generator};
use super::schema::Schema;
use super::{Chunk, LoadError, LoadProgress, server};

/// Length of an INSERT, as in sysbench.
const INSERT_BYTES: usize = 512 * 1024;
/// What a statement may exceed that by: its last row.
const ROW_BYTES_MAX: usize = 1024;
/// Rows of a file are gathered to pieces of this size.
const FILE_PIECE_BYTES: usize = 64 * 1024;
/// How often progress is told.
const TELL: Duration = Duration::from_millis(100);

/// What was sent to one table.
#[derive(Debug, Default)]
pub(super) struct Sent {
    rows: AtomicU64,
    checksum: AtomicU64,
}

impl Sent {
    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
    /// Sum of the rows' checksums.
    pub(super) fn checksum(&self) -> u64 {
        self.checksum.load(Ordering::Relaxed)
    }
}

/// Sends all chunks; returns what was sent to each table, from table 1 on.
pub(super) fn fill(
    generator: &Generator,
    target: &Target,
    chunks: &[Chunk],
    schema: &Schema,
    threads: u32,
    on_progress: &mut dyn FnMut(LoadProgress),
) -> Result<Vec<Sent>, LoadError> {
    let sent: Vec<Sent> = (0..schema.tables).map(|_| Sent::default()).collect();
    let total = (1..=schema.tables).map(|table| schema.rows(table)).sum();
    on_progress(LoadProgress { rows: 0, total });
    std::thread::scope(|scope| {
        let (say, hear) = channel();
        let filled = scope.spawn(|| {
            let say = say;
            server::in_parallel(target, chunks, threads, |connection, chunk| {
                fill_chunk(connection, generator, schema, chunk, &sent, &say)
            })
        });
        let (mut rows, mut told) = (0, 0);
        loop {
            let heard = hear.recv_timeout(TELL);
            if let Ok(more) = heard {
                rows += more;
                rows += hear.try_iter().sum::<u64>();
            }
            let ended = heard == Err(RecvTimeoutError::Disconnected);
            if rows > told {
                told = rows;
                on_progress(LoadProgress { rows, total });
            }
            if ended {
                break;
            }
        }
        filled.join().unwrap_or(Err(LoadError::Internal))
    })?;
    Ok(sent)
}

fn fill_chunk(
    connection: &mut Conn,
    generator: &Generator,
    schema: &Schema,
    chunk: &Chunk,
    sent: &[Sent],
    say: &Sender<u64>,
) -> Result<(), LoadError> {
    prepare_session(connection)?;
    let checksum = if !schema.is_script() && takes_files(connection)? {
        send_as_file(connection, generator, &schema.name(chunk.table), chunk, say)?
    } else {
        insert(connection, generator, &schema.insert(chunk.table), chunk, say)?
    };
    let sent = &sent[chunk.table as usize - 1];
    sent.rows.fetch_add(chunk.ids.end - chunk.ids.start, Ordering::Relaxed);
    sent.checksum.fetch_add(checksum, Ordering::Relaxed);
    Ok(())
}

/// Whether the server takes files from its clients. MySQL from 8.0 on does not unless it is told
/// to; `ceteris run` tells the server that it loads with.
fn takes_files(connection: &mut Conn) -> Result<bool, LoadError> {
    let statement = "SELECT @@local_infile";
    let allowed: Option<u8> = connection
        .query_first(statement)
        .map_err(|error| LoadError::statement(statement, error))?;
    Ok(allowed == Some(1))
}

/// Sends the rows as the file that the server asks for in its answer to LOAD DATA LOCAL; returns
/// the sum of their checksums.
fn send_as_file(
    connection: &mut Conn,
    generator: &Generator,
    table: &str,
    chunk: &Chunk,
    say: &Sender<u64>,
) -> Result<u64, LoadError> {
    let summed = Arc::new(AtomicU64::new(0));
    let (sum, generator, chunk_of_file) = (Arc::clone(&summed), generator.clone(), chunk.clone());
    // Whatever the server asks for by whichever name, it gets these rows.
    connection.set_local_infile_handler(Some(LocalInfileHandler::new(move |_, file| {
        let (mut out, mut line, mut checksum) = (Vec::new(), Vec::new(), 0);
        for id in chunk_of_file.ids.clone() {
            let table = chunk_of_file.table;
            checksum += u64::from(generator.write(table, id, Form::Tabs, &mut out, &mut line));
            if out.len() >= FILE_PIECE_BYTES {
                file.write_all(&out)?;
                out.clear();
            }
        }
        sum.store(checksum, Ordering::Relaxed);
        file.write_all(&out)
    })));
    let statement = format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} (id, k, c, pad)");
    let done = connection.query_drop(&statement);
    connection.set_local_infile_handler(None);
    done.map_err(|error| LoadError::statement(&statement, error))?;
    // If nobody hears us the load is over, which the next chunk will notice.
    let _ = say.send(chunk.ids.end - chunk.ids.start);
    Ok(summed.load(Ordering::Relaxed))
}

/// Sends the rows in long INSERTs; returns the sum of their checksums.
fn insert(
    connection: &mut Conn,
    generator: &Generator,
    insert: &str,
    chunk: &Chunk,
    say: &Sender<u64>,
) -> Result<u64, LoadError> {
    let insert_bytes = statement_bytes(connection)?;
    let (mut out, mut line) = (Vec::with_capacity(insert_bytes + ROW_BYTES_MAX), Vec::new());
    let (mut ids, mut checksum) = (chunk.ids.clone(), 0);
    while !ids.is_empty() {
        out.clear();
        out.extend_from_slice(insert.as_bytes());
        let from = ids.start;
        while out.len() < insert_bytes
            && let Some(id) = ids.next()
        {
            if id > from {
                out.push(b',');
            }
            let row = generator.write(chunk.table, id, Form::Sql, &mut out, &mut line);
            checksum += u64::from(row);
        }
        connection
            .query_drop(String::from_utf8_lossy(&out))
            .map_err(|error| LoadError::statement(&format!("{insert}..."), error))?;
        // As above.
        let _ = say.send(ids.start - from);
    }
    Ok(checksum)
}

/// Leaves out checks that the generator's rows cannot fail.
fn prepare_session(connection: &mut Conn) -> Result<(), LoadError> {
    server::run(connection, "SET SESSION unique_checks=0, foreign_key_checks=0, autocommit=1")?;
    // Not everybody may, and then the rows are logged.
    let _ = connection.query_drop("SET SESSION sql_log_bin=0");
    Ok(())
}

/// Length that an INSERT may have for this server.
fn statement_bytes(connection: &mut Conn) -> Result<usize, LoadError> {
    let statement = "SELECT @@max_allowed_packet";
    let packet: Option<usize> = connection.query_first(statement).map_err(|source| {
        LoadError::Statement { statement: statement.to_owned(), source: source.into() }
    })?;
    Ok(packet.map_or(0, |packet| packet.saturating_sub(2 * ROW_BYTES_MAX)).clamp(1, INSERT_BYTES))
}
