//! The result file: one SQLite file per study, committed run by run.
//!
//! Written by the conductor, read by `report` and by anyone with `sqlite3`, DuckDB or pandas.
//! Keeps what it is given and never interprets it. The schema is documented in
//! `docs/result-file.md` and versioned; older files stay readable.

mod answer;
mod file;
mod number;
mod pack;
mod record;

pub use answer::{Answer, AnsweredEffect, Audit, Difference, RunLine, Show};
pub use file::{ResultFile, StoreError};
pub use record::{
    CommandRecord, Event, Fingerprint, Header, Histogram, InstanceSummary, Latency, LogText,
    Outcome, RunKey, RunRecord, Series, StoredRun, Summary,
};
