//! The sysbench OLTP family, 1.x and 0.4.12.
//!
//! One file per variant, which reads like its row in sysbench's own definition; `statements` holds
//! what those of 1.x are put together from. `docs/workloads.md` lists what each sends and where it
//! departs from sysbench: BEGIN and COMMIT travel as text, as MySQL cannot prepare BEGIN, and a
//! variant prepares only what it uses.

mod bulk_insert;
mod delete;
mod insert;
mod legacy;
mod named;
mod point_select;
mod random_points;
mod random_ranges;
mod read_only;
mod read_write;
mod scratch;
mod statements;
mod update_index;
mod update_non_index;
mod write_only;

use std::sync::atomic::AtomicBool;

use load::rehearsal::{Rehearsal, rehearse};
use load::{DriveError, DriveEvent, DriveReport, DriveSpec};
use study::{Oltp, Workload};

use crate::script::{Driven, compile};

use bulk_insert::BulkInsert;
use delete::Delete;
use insert::Insert;
use legacy::Legacy;
use named::Named;
use point_select::PointSelect;
use random_points::RandomPoints;
use random_ranges::RandomRanges;
use read_only::ReadOnly;
use read_write::ReadWrite;
use update_index::UpdateIndex;
use update_non_index::UpdateNonIndex;
use write_only::WriteOnly;

/// Calls `$body` with the workload that `$of` describes, `$connections` driving it. A macro, since
/// every workload is a type of its own, for which the driver is compiled. A script is read to
/// `$script` first, for which there is `$other`.
macro_rules! with {
    ($of:expr, $connections:expr, $workload:ident => $body:expr, $script:ident => $other:expr) => {
        match $of {
            Workload::OltpPointSelect(k) => with!(PointSelect::new(k), $workload => $body),
            Workload::OltpReadOnly(k) => with!(ReadOnly::new(k), $workload => $body),
            Workload::OltpReadWrite(k) => with!(ReadWrite::new(k), $workload => $body),
            Workload::OltpWriteOnly(k) => with!(WriteOnly::new(k), $workload => $body),
            Workload::OltpInsert(k) => with!(Insert::new(k, $connections), $workload => $body),
            Workload::OltpDelete(k) => with!(Delete::new(k), $workload => $body),
            Workload::OltpUpdateIndex(k) => with!(UpdateIndex::new(k), $workload => $body),
            Workload::OltpUpdateNonIndex(k) => with!(UpdateNonIndex::new(k), $workload => $body),
            Workload::SelectRandomPoints(k) => {
                with!(RandomPoints::new(k, $connections), $workload => $body)
            }
            Workload::SelectRandomRanges(k) => {
                with!(RandomRanges::new(k, $connections), $workload => $body)
            }
            Workload::BulkInsert(_) => with!(BulkInsert, $workload => $body),
            Workload::OltpLegacy(k) => with!(Legacy::new(k, $connections), $workload => $body),
            Workload::Script($script) => $other,
        }
    };
    ($made:expr, $workload:ident => $body:expr) => {{
        let $workload = $made;
        $body
    }};
}

/// Drives `workload` as `spec` says; `stop` ends it early (an error then).
///
/// # Errors
/// A workload that cannot be driven so, or a target that cannot be reached, refuses a statement or
/// goes away.
pub fn drive(
    workload: &Workload,
    spec: &DriveSpec,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(DriveEvent),
) -> Result<DriveReport, DriveError> {
    let connections = connections(spec);
    workload
        .check(connections)
        .map_err(|(wrong, hint)| DriveError::Workload(format!("{wrong}; {hint}")))?;
    let name = workload.name();
    with!(workload, connections, workload => {
        load::drive(&Named { name, workload }, spec, stop, on_event)
    }, script => {
        let script = compile(script).map_err(|error| DriveError::Workload(error.to_string()))?;
        load::drive(&Driven { script: &script, connections }, spec, stop, on_event)
    })
}

/// Drives point selects without a server, for `make bench`; see [`load::rehearsal`].
///
/// # Errors
/// See [`rehearse`].
#[doc(hidden)]
pub fn rehearse_point_selects(oltp: &Oltp, rehearsal: Rehearsal<'_>) -> Result<(), DriveError> {
    rehearse(&Named { name: "oltp_point_select", workload: PointSelect::new(oltp) }, rehearsal)
}

/// Statements that each connection prepares, of which servers admit only so many. None of a script
/// that cannot be read, which [`drive`] refuses.
pub fn statement_count(workload: &Workload) -> usize {
    statements(workload).len()
}

/// A workload that leaves all rows as they are: it has statements, and all of them are SELECTs.
pub fn only_reads(workload: &Workload) -> bool {
    let statements = statements(workload);
    !statements.is_empty() && statements.iter().all(|one| one.text.starts_with("SELECT "))
}

fn statements(workload: &Workload) -> Vec<load::Statement> {
    with!(workload, 1, workload => load::Workload::statements(&workload), script => {
        compile(script).map(|script| script.statements).unwrap_or_default()
    })
}

/// Connections that the drive opens in all.
fn connections(spec: &DriveSpec) -> u32 {
    let later = spec.pacing.stages.iter().filter_map(|stage| stage.connections);
    later.chain([spec.connections]).max().unwrap_or(1).max(1)
}
