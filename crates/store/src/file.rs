//! The SQLite file: creating, opening, committing, reading.
//!
//! While a writer has the file open it keeps a write-ahead log with `synchronous = FULL`, moved into
//! the file after each commit; when it closes, back to a rollback journal. So a reader, however long
//! it reads, never blocks a commit (under a rollback journal it does, and a measured run is lost);
//! between commits the one file holds every run; and a closed file has nothing beside it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, params};

use crate::answer::Answer;
use crate::pack::{pack, unpack};
use crate::record::{
    CommandRecord, Event, Fingerprint, Header, Histogram, LogText, Outcome, RunKey, RunRecord,
    Series, StoredRun,
};

/// "CETR": what `file` and SQLite call the application of the file.
const APPLICATION_ID: i32 = 0x4345_5452;
/// Version of the schema that this code writes and the newest that it reads.
const SCHEMA_VERSION: i32 = 1;
/// How long a reader waits for a commit, and a commit for readers.
const BUSY_LIMIT: Duration = Duration::from_secs(30);

const NO_SPACE: &str = "free some space and run the same command again: finished runs are kept";
const NOT_WRITABLE: &str = "check owner and mode of the file and of its directory";

/// An open result file.
pub struct ResultFile {
    db: Connection,
    /// Held by the writer for as long as the file is open, gone with its process.
    _claim: Option<File>,
}

/// Why a result file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is to be created and is there already.
    #[error("{0} exists already")]
    Exists(PathBuf),
    /// The file is to be opened and is not there.
    #[error("there is no result file {0}")]
    Absent(PathBuf),
    /// Some other file.
    #[error("{0} is no ceteris result file")]
    Foreign(PathBuf),
    /// Written by a later version.
    #[error("{path} has schema version {version}, this ceteris reads up to {SCHEMA_VERSION}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i32,
    },
    /// Another process is adding runs to it.
    #[error("another ceteris is writing {0}")]
    Claimed(PathBuf),
    /// The file system's.
    #[error("cannot open {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite's.
    #[error("the result file failed")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored value that does not read back.
    #[error("the result file holds a damaged {what} of run {run}")]
    Damaged {
        /// What it should be.
        what: &'static str,
        /// Of which run; 0 for the study itself.
        run: i64,
    },
    /// A value that cannot be written as JSON.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
}

impl StoreError {
    /// The next step for the reader, shown as a `hint:` line.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            StoreError::Absent(_) => Some("results are made by `ceteris run STUDY`"),
            StoreError::Foreign(_) => Some("result files are made by `ceteris run`"),
            StoreError::Newer { .. } => {
                Some("read it with the ceteris that wrote it, or a later one")
            }
            StoreError::Claimed(_) => Some("wait for it to end, or name another file with -o"),
            StoreError::Io { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(NOT_WRITABLE),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(NO_SPACE),
                _ => None,
            },
            StoreError::Sqlite(error) => match error.sqlite_error_code()? {
                ErrorCode::DiskFull => Some(NO_SPACE),
                ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                    Some(NOT_WRITABLE)
                }
                ErrorCode::DatabaseBusy => Some("another program holds the file open; close it"),
                ErrorCode::DatabaseCorrupt => {
                    Some("if it was copied while a study ran, copy it again with its -wal file")
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Result of this crate's functions.
type Result<T> = std::result::Result<T, StoreError>;

impl ResultFile {
    /// Creates the file; an error if it exists.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Claimed`], the file system's and SQLite's.
    pub fn create(path: &Path, header: &Header) -> Result<ResultFile> {
        let claim = claim(path)?;
        if path.exists() {
            return Err(StoreError::Exists(path.to_owned()));
        }
        // Made under another name, so that the file is there with its header or not at all.
        let partial = beside(path, ".new");
        for stale in [partial.clone(), beside(&partial, "-journal")] {
            match std::fs::remove_file(&stale) {
                Err(source) if source.kind() != ErrorKind::NotFound => {
                    return Err(StoreError::Io { path: stale, source });
                }
                _ => {}
            }
        }
        let mut db = Connection::open(&partial)?;
        db.pragma_update(None, "synchronous", "full")?;
        let making = db.transaction()?;
        making.execute_batch(include_str!("schema.sql"))?;
        making.execute(
            "INSERT INTO study VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                header.title,
                header.study_text,
                serde_json::to_string(&header.overrides)?,
                header.seed.to_string(),
                header.plan_json,
                header.published_json,
                header.ceteris_version,
                header.created_unix_ns,
            ],
        )?;
        making.pragma_update(None, "application_id", APPLICATION_ID)?;
        making.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        making.commit()?;
        drop(db);
        std::fs::rename(&partial, path)
            .map_err(|source| StoreError::Io { path: path.to_owned(), source })?;
        let db = Connection::open(path)?;
        configure(&db)?;
        Ok(ResultFile { db, _claim: Some(claim) })
    }

    /// Opens a file for adding runs. A second writer is refused with an error that says so.
    ///
    /// # Errors
    /// [`StoreError::Absent`], [`StoreError::Foreign`], [`StoreError::Newer`],
    /// [`StoreError::Claimed`], the file system's and SQLite's.
    pub fn open(path: &Path) -> Result<ResultFile> {
        let claim = if path.exists() { Some(claim(path)?) } else { None };
        let db = open_checked(path, Way::ReadWrite)?;
        configure(&db)?;
        Ok(ResultFile { db, _claim: claim })
    }

    /// Opens a file for reading, also while a study is writing it.
    ///
    /// # Errors
    /// As [`ResultFile::open`], but for the second writer.
    pub fn open_read_only(path: &Path) -> Result<ResultFile> {
        // A hot journal has to be rolled back before anything can be read, which writes; where the
        // directory does not allow that, the plain read-only way is left.
        let db = open_checked(path, Way::ReadWrite).or_else(|error| match error {
            StoreError::Sqlite(_) => open_checked(path, Way::ReadOnly),
            other => Err(other),
        });
        // A copy taken while a study ran says that it has a log; on a read-only medium SQLite wants
        // to make one, unless it is told that nothing can change.
        let alone = ["-wal", "-journal"].iter().all(|side| !beside(path, side).exists());
        let db = db.or_else(|error| match error {
            StoreError::Sqlite(_) if alone => open_checked(path, Way::Unchanging),
            other => Err(other),
        })?;
        db.pragma_update(None, "query_only", true)?;
        Ok(ResultFile { db, _claim: None })
    }

    /// What the file knew before its first run.
    ///
    /// # Errors
    /// SQLite's.
    pub fn header(&self) -> Result<Header> {
        let (mut header, overrides, seed) =
            self.db.query_row("SELECT * FROM study", [], |row| {
                let header = Header {
                    title: row.get("title")?,
                    study_text: row.get("study_text")?,
                    overrides: Vec::new(),
                    seed: 0,
                    plan_json: row.get("plan_json")?,
                    published_json: row.get("published_json")?,
                    ceteris_version: row.get("ceteris_version")?,
                    created_unix_ns: row.get("created_unix_ns")?,
                };
                Ok((header, row.get::<_, String>("overrides_json")?, row.get::<_, String>("seed")?))
            })?;
        header.overrides = serde_json::from_str(&overrides)?;
        header.seed = seed.parse().map_err(|_| StoreError::Damaged { what: "seed", run: 0 })?;
        Ok(header)
    }

    /// Adds a run, durably and wholly or not at all.
    ///
    /// # Errors
    /// SQLite's; among them that this cell is finished in this block already.
    pub fn commit_run(&mut self, run: &RunRecord) -> Result<i64> {
        let adding = self.db.transaction()?;
        let id = insert_run(&adding, run)?;
        insert_series(&adding, id, &run.series)?;
        for histogram in &run.histograms {
            adding
                .prepare_cached("INSERT INTO histograms VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![id, histogram.name, histogram.unit, histogram.hdr_v2])?;
        }
        for (moment, fingerprint) in [("before", &run.before), ("after", &run.after)] {
            for (name, value) in fingerprint {
                let (name, value) = (text_id(&adding, name)?, text_id(&adding, value)?);
                adding
                    .prepare_cached("INSERT INTO observations VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![id, moment, name, value])?;
            }
        }
        for command in &run.commands {
            insert_command(&adding, Some(id), command)?;
        }
        for event in &run.events {
            adding
                .prepare_cached("INSERT INTO events VALUES (NULL, ?1, ?2, ?3, ?4)")?
                .execute(params![id, event.at_unix_ns, event.kind, event.text])?;
        }
        for log in &run.logs {
            adding
                .prepare_cached("INSERT INTO logs VALUES (?1, ?2, ?3)")?
                .execute(params![id, log.name, log.text])?;
        }
        adding.commit()?;
        self.settle();
        Ok(id)
    }

    /// All runs in the order in which they ran.
    ///
    /// # Errors
    /// SQLite's.
    pub fn runs(&self) -> Result<Vec<StoredRun>> {
        let mut query = self.db.prepare_cached("SELECT * FROM runs ORDER BY id")?;
        let rows = query.query_map([], |row| {
            let error: Option<String> = row.get("error")?;
            let run = StoredRun {
                id: row.get("id")?,
                key: RunKey {
                    question: row.get("question")?,
                    level: row.get("level")?,
                    at: row.get("at")?,
                    block: row.get("block")?,
                },
                started_unix_ns: row.get("started_unix_ns")?,
                finished_unix_ns: row.get("finished_unix_ns")?,
                outcome: error.map_or(Outcome::Finished, Outcome::Failed),
                summary: None,
            };
            Ok((run, row.get::<_, Option<String>>("summary_json")?))
        })?;
        let mut runs = Vec::new();
        for row in rows {
            let (mut run, summary) = row?;
            run.summary = summary.map(|json| serde_json::from_str(&json)).transpose()?;
            runs.push(run);
        }
        Ok(runs)
    }

    /// Keys of finished runs.
    ///
    /// # Errors
    /// SQLite's.
    pub fn finished(&self) -> Result<BTreeSet<RunKey>> {
        let finished = |run: &StoredRun| run.outcome == Outcome::Finished;
        Ok(self.runs()?.into_iter().filter(finished).map(|run| run.key).collect())
    }

    /// Names and units of a run's series, without their values.
    ///
    /// # Errors
    /// SQLite's.
    pub fn series_names(&self, run: i64) -> Result<Vec<(String, String)>> {
        self.list("SELECT name, unit FROM series WHERE run_id = ?1 ORDER BY name", run, |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    /// Some series of a run, by exact name; those that it lacks are left out.
    ///
    /// # Errors
    /// SQLite's, or [`StoreError::Damaged`].
    pub fn series(&self, run: i64, names: &[&str]) -> Result<Vec<Series>> {
        let mut query = self.db.prepare_cached(
            "SELECT unit, points, at_s, data FROM series JOIN axes ON axes.id = axis_id
             WHERE series.run_id = ?1 AND name = ?2",
        )?;
        let mut found = Vec::new();
        for name in names {
            let row = query.query_row(params![run, name], |row| {
                let points: i64 = row.get(1)?;
                // Borrowed from SQLite's page cache and unpacked where they lie.
                let points = usize::try_from(points).unwrap_or(usize::MAX);
                let at_s = unpack(row.get_ref(2)?.as_blob()?, points);
                let values = unpack(row.get_ref(3)?.as_blob()?, points);
                Ok((row.get::<_, String>(0)?, at_s.zip(values)))
            });
            if let Some((unit, numbers)) = row.optional()? {
                let damaged = StoreError::Damaged { what: "series", run };
                let (at_s, values) = numbers.ok_or(damaged)?;
                found.push(Series { name: (*name).to_owned(), unit, at_s, values });
            }
        }
        Ok(found)
    }

    /// A run's histograms.
    ///
    /// # Errors
    /// SQLite's.
    pub fn histograms(&self, run: i64) -> Result<Vec<Histogram>> {
        let query = "SELECT name, unit, hdr_v2 FROM histograms WHERE run_id = ?1 ORDER BY name";
        self.list(query, run, |row| {
            Ok(Histogram { name: row.get(0)?, unit: row.get(1)?, hdr_v2: row.get(2)? })
        })
    }

    /// A run's fingerprints, before and after.
    ///
    /// # Errors
    /// SQLite's.
    pub fn fingerprints(&self, run: i64) -> Result<(Fingerprint, Fingerprint)> {
        let query = "SELECT moment, name, value FROM fingerprints WHERE run_id = ?1";
        let rows: Vec<(String, String, String)> =
            self.list(query, run, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let (mut before, mut after) = (Fingerprint::new(), Fingerprint::new());
        for (moment, name, value) in rows {
            if moment == "before" { &mut before } else { &mut after }.insert(name, value);
        }
        Ok((before, after))
    }

    /// A run's commands.
    ///
    /// # Errors
    /// SQLite's.
    pub fn commands(&self, run: i64) -> Result<Vec<CommandRecord>> {
        self.list("SELECT * FROM commands WHERE run_id = ?1 ORDER BY id", run, command)
    }

    /// A run's events.
    ///
    /// # Errors
    /// SQLite's.
    pub fn events(&self, run: i64) -> Result<Vec<Event>> {
        let query = "SELECT at_unix_ns, kind, text FROM events WHERE run_id = ?1 ORDER BY id";
        self.list(query, run, |row| {
            Ok(Event { at_unix_ns: row.get(0)?, kind: row.get(1)?, text: row.get(2)? })
        })
    }

    /// A run's server logs.
    ///
    /// # Errors
    /// SQLite's.
    pub fn logs(&self, run: i64) -> Result<Vec<LogText>> {
        self.list("SELECT name, text FROM logs WHERE run_id = ?1 ORDER BY name", run, |row| {
            Ok(LogText { name: row.get(0)?, text: row.get(1)? })
        })
    }

    /// Commands of the study that belong to no run (fetching a package, loading a dataset).
    ///
    /// # Errors
    /// SQLite's.
    pub fn add_study_command(&mut self, command: &CommandRecord) -> Result<()> {
        let adding = self.db.transaction()?;
        insert_command(&adding, None, command)?;
        adding.commit()?;
        self.settle();
        Ok(())
    }

    /// See [`ResultFile::add_study_command`].
    ///
    /// # Errors
    /// SQLite's.
    pub fn study_commands(&self) -> Result<Vec<CommandRecord>> {
        let mut query =
            self.db.prepare_cached("SELECT * FROM commands WHERE run_id IS NULL ORDER BY id")?;
        let rows = query.query_map([], command)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Replaces the answers.
    ///
    /// # Errors
    /// SQLite's.
    pub fn save_answers(&mut self, answers: &[Answer]) -> Result<()> {
        let replacing = self.db.transaction()?;
        replacing.execute("DELETE FROM answers", [])?;
        for (position, answer) in answers.iter().enumerate() {
            replacing.execute(
                "INSERT INTO answers VALUES (?1, ?2, ?3)",
                params![position as i64, answer.name, serde_json::to_string(answer)?],
            )?;
        }
        replacing.commit()?;
        self.settle();
        Ok(())
    }

    /// The answers as last saved, in question order.
    ///
    /// # Errors
    /// SQLite's, or an answer that does not read back.
    pub fn answers(&self) -> Result<Vec<Answer>> {
        let mut query = self.db.prepare_cached("SELECT json FROM answers ORDER BY position")?;
        let rows = query.query_map([], |row| row.get::<_, String>(0))?;
        rows.map(|json| Ok(serde_json::from_str(&json?)?)).collect()
    }

    /// Moves what was committed from the log into the file, as far as readers allow. What cannot be
    /// moved is durable in the log, and moved the next time: so a failure here is none. Passive, and
    /// the log is left as it is until the next commit starts it over: a copy of the file that was
    /// being taken meanwhile is made whole by the log copied after it.
    fn settle(&self) {
        let _ = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }

    /// The rows of a query with the run as its one parameter.
    fn list<T>(
        &self,
        query: &str,
        run: i64,
        row: impl FnMut(&rusqlite::Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut query = self.db.prepare_cached(query)?;
        let rows = query.query_map([run], row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        // A closed file stands alone, readable from a read-only medium too. Not possible while
        // somebody reads: then the log stays, and whoever closes last moves it.
        if self._claim.is_some() {
            let _ = self.db.busy_timeout(Duration::ZERO);
            let _ = self.db.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()));
        }
    }
}

fn insert_run(adding: &Transaction, run: &RunRecord) -> Result<i64> {
    let error = match &run.outcome {
        Outcome::Finished => None,
        Outcome::Failed(why) => Some(why.as_str()),
    };
    let summary = run.summary.as_ref();
    let latency = summary.map(|s| s.response);
    adding
        .prepare_cached(
            "INSERT INTO runs (question, level, at, block, started_unix_ns, finished_unix_ns, error,
                tps, p50_ms, p95_ms, p99_ms, max_ms, transactions, reads, writes, other, retries,
                steady, generator_bound, summary_json)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                ?18, ?19, ?20)",
        )?
        .execute(params![
            run.key.question,
            run.key.level,
            run.key.at,
            run.key.block,
            run.started_unix_ns,
            run.finished_unix_ns,
            error,
            summary.map(|s| s.tps),
            latency.map(|l| l.p50_ms),
            latency.map(|l| l.p95_ms),
            latency.map(|l| l.p99_ms),
            latency.map(|l| l.max_ms),
            summary.map(|s| s.transactions as i64),
            summary.map(|s| s.reads as i64),
            summary.map(|s| s.writes as i64),
            summary.map(|s| s.other as i64),
            summary.map(|s| s.retries as i64),
            summary.map(|s| s.steady),
            summary.map(|s| s.generator_bound),
            summary.map(serde_json::to_string).transpose()?,
        ])?;
    Ok(adding.last_insert_rowid())
}

/// Times and values beyond the shorter of the two are left out.
fn insert_series(adding: &Transaction, run: i64, all: &[Series]) -> Result<()> {
    let mut axes: HashMap<Vec<u64>, i64> = HashMap::new();
    for series in all {
        let points = series.at_s.len().min(series.values.len());
        let (at_s, values) = (&series.at_s[..points], &series.values[..points]);
        let bits: Vec<u64> = at_s.iter().map(|at| at.to_bits()).collect();
        let axis = match axes.entry(bits) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                adding
                    .prepare_cached("INSERT INTO axes VALUES (NULL, ?1, ?2, ?3)")?
                    .execute(params![run, points as i64, pack(at_s)])?;
                *new.insert(adding.last_insert_rowid())
            }
        };
        adding
            .prepare_cached("INSERT INTO series VALUES (NULL, ?1, ?2, ?3, ?4, ?5)")?
            .execute(params![run, series.name, series.unit, axis, pack(values)])?;
    }
    Ok(())
}

fn text_id(adding: &Transaction, text: &str) -> Result<i64> {
    let known = adding
        .prepare_cached("SELECT id FROM texts WHERE text = ?1")?
        .query_row([text], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    adding.prepare_cached("INSERT INTO texts (text) VALUES (?1)")?.execute([text])?;
    Ok(adding.last_insert_rowid())
}

fn insert_command(adding: &Transaction, run: Option<i64>, command: &CommandRecord) -> Result<()> {
    adding.prepare_cached("INSERT INTO commands VALUES (NULL, ?1, ?2, ?3, ?4, ?5)")?.execute(
        params![run, command.at_unix_ns, command.command, command.took_ms, command.status],
    )?;
    Ok(())
}

fn command(row: &rusqlite::Row) -> rusqlite::Result<CommandRecord> {
    Ok(CommandRecord {
        at_unix_ns: row.get("at_unix_ns")?,
        command: row.get("command")?,
        took_ms: row.get("took_ms")?,
        status: row.get("status")?,
    })
}

fn configure(db: &Connection) -> Result<()> {
    db.busy_timeout(BUSY_LIMIT)?;
    // Where the file system has no shared memory SQLite stays with the rollback journal, which is
    // as safe, but for readers that hold up commits.
    db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.pragma_update(None, "synchronous", "full")?;
    db.pragma_update(None, "foreign_keys", true)?;
    Ok(())
}

/// How SQLite opens a file that is there.
#[derive(Clone, Copy)]
enum Way {
    ReadWrite,
    ReadOnly,
    /// Nobody can change it, so it is neither locked nor looked for a log.
    Unchanging,
}

fn open_checked(path: &Path, way: Way) -> Result<Connection> {
    if !path.exists() {
        return Err(StoreError::Absent(path.to_owned()));
    }
    let plain = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = match way {
        Way::ReadWrite => {
            Connection::open_with_flags(path, plain | OpenFlags::SQLITE_OPEN_READ_WRITE)?
        }
        Way::ReadOnly => {
            Connection::open_with_flags(path, plain | OpenFlags::SQLITE_OPEN_READ_ONLY)?
        }
        Way::Unchanging => {
            let uri = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(unchanging(path), plain | uri)?
        }
    };
    db.busy_timeout(BUSY_LIMIT)?;
    let foreign = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::Foreign(path.to_owned()),
        _ => StoreError::Sqlite(error),
    };
    let application: i32 =
        db.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(foreign)?;
    if application != APPLICATION_ID {
        return Err(StoreError::Foreign(path.to_owned()));
    }
    let version: i32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > SCHEMA_VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), version });
    }
    Ok(db)
}

/// Takes the writer's lock. It is on a hidden file of its own beside the result: closing any
/// descriptor of the database itself would drop SQLite's own locks on it (POSIX), and a lock of the
/// kernel's vanishes with its process, however that ends.
fn claim(path: &Path) -> Result<File> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let lock_path = path.with_file_name(format!(".{name}.lock"));
    let io = |source| StoreError::Io { path: lock_path.clone(), source };
    let lock = File::options().create(true).append(true).open(&lock_path).map_err(io)?;
    // One refusal proves nothing: a process that is just being started holds a copy of every
    // descriptor of its parent, locks included, until it executes.
    for _ in 0..20 {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(std::fs::TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(std::fs::TryLockError::Error(source)) => return Err(io(source)),
        }
    }
    Err(StoreError::Claimed(path.to_owned()))
}

/// The path as SQLite's URI, every byte that could mean something there escaped.
fn unchanging(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri + "?immutable=1"
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    path.with_file_name(name)
}
