//! The sysbench 1.x OLTP family.
//!
//! One file per variant, which reads like its row in sysbench's own definition; `statements` holds
//! what they are put together from. Semantics are sysbench 1.x's: each block of a transaction draws
//! its own table, ranges are not cut at the end of a table, statements are prepared once per
//! connection and table. Unlike sysbench, BEGIN and COMMIT travel as text, as MySQL cannot prepare
//! BEGIN, and a variant prepares only what it uses.

mod point_select;
mod read_only;
mod read_write;
mod statements;
mod write_only;

use std::sync::atomic::AtomicBool;

use load::{DriveError, DriveEvent, DriveReport, DriveSpec};
use study::Workload;

use point_select::PointSelect;
use read_only::ReadOnly;
use read_write::ReadWrite;
use write_only::WriteOnly;

/// Drives `workload` as `spec` says; `stop` ends it early (an error then).
///
/// # Errors
/// A target that cannot be reached, refuses a statement or goes away.
pub fn drive(
    workload: &Workload,
    spec: &DriveSpec,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(DriveEvent),
) -> Result<DriveReport, DriveError> {
    let (Workload::OltpPointSelect(oltp)
    | Workload::OltpReadOnly(oltp)
    | Workload::OltpReadWrite(oltp)
    | Workload::OltpWriteOnly(oltp)) = workload;
    if oltp.tables == 0 || oltp.rows == 0 || oltp.range_size == 0 {
        return Err(DriveError::Spec("tables, rows and range_size must be at least 1"));
    }
    match workload {
        Workload::OltpPointSelect(oltp) => {
            load::drive(&PointSelect::new(oltp), spec, stop, on_event)
        }
        Workload::OltpReadOnly(oltp) => load::drive(&ReadOnly::new(oltp), spec, stop, on_event),
        Workload::OltpReadWrite(oltp) => load::drive(&ReadWrite::new(oltp), spec, stop, on_event),
        Workload::OltpWriteOnly(oltp) => load::drive(&WriteOnly::new(oltp), spec, stop, on_event),
    }
}

/// Statements that each connection prepares, of which servers admit only so many.
pub fn statement_count(workload: &Workload) -> usize {
    statements(workload).len()
}

/// A workload that leaves all rows as they are: it has statements, and all of them are SELECTs.
pub fn only_reads(workload: &Workload) -> bool {
    let statements = statements(workload);
    !statements.is_empty() && statements.iter().all(|one| one.text.starts_with("SELECT "))
}

fn statements(workload: &Workload) -> Vec<load::Statement> {
    use load::Workload as _;
    match workload {
        Workload::OltpPointSelect(oltp) => PointSelect::new(oltp).statements(),
        Workload::OltpReadOnly(oltp) => ReadOnly::new(oltp).statements(),
        Workload::OltpReadWrite(oltp) => ReadWrite::new(oltp).statements(),
        Workload::OltpWriteOnly(oltp) => WriteOnly::new(oltp).statements(),
    }
}
