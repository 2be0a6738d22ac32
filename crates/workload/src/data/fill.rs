//! Filling the tables: multi-row INSERTs over several connections, also within one table.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use load::Target;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::row::Generator;
use super::schema::Schema;
use super::{Chunk, LoadError, LoadProgress, server};

/// Length of an INSERT, as in sysbench.
const INSERT_BYTES: usize = 512 * 1024;
/// What a statement may exceed that by: its last row.
const ROW_BYTES_MAX: usize = 1024;
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
                fill_chunk(connection, generator, &schema.insert(chunk.table), chunk, &sent, &say)
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
    insert: &str,
    chunk: &Chunk,
    sent: &[Sent],
    say: &Sender<u64>,
) -> Result<(), LoadError> {
    prepare_session(connection)?;
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
            checksum += u64::from(generator.write(chunk.table, id, &mut out, &mut line));
        }
        connection.query_drop(String::from_utf8_lossy(&out)).map_err(|source| {
            LoadError::Statement { statement: format!("{insert}..."), source: Box::new(source) }
        })?;
        // If nobody hears us the load is over, which the next chunk will notice.
        let _ = say.send(ids.start - from);
    }
    let sent = &sent[chunk.table as usize - 1];
    sent.rows.fetch_add(chunk.ids.end - chunk.ids.start, Ordering::Relaxed);
    sent.checksum.fetch_add(checksum, Ordering::Relaxed);
    Ok(())
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
        LoadError::Statement { statement: statement.to_owned(), source: Box::new(source) }
    })?;
    Ok(packet.map_or(0, |packet| packet.saturating_sub(2 * ROW_BYTES_MAX)).clamp(1, INSERT_BYTES))
}
