//! What is driven: schema, data, transactions and checks.
//!
//! Called by the worker process. Knows what a transaction is and nothing of when it runs. A
//! workload is a file under its family that reads like its specification; rows and draws are
//! functions of a seed, so that the same study makes the same bytes and the same requests.

mod data;
mod digits;
mod distribution;
mod oltp;
mod script;

pub use data::{
    Cleaned, DATABASE, DataFacts, FoundTable, LoadError, LoadProgress, OWNERSHIP_TABLE, Planned,
    Prepared, Survey, TableState, describe_data, drop_named, drop_own, load_data, load_private,
    load_standing, prepare, survey, tables,
};
pub use oltp::{drive, only_reads, rehearse_point_selects, statement_count};
pub use script::check_script;
