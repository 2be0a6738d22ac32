//! The dataset of a server that stands already and stays: an external one.
//!
//! Its tables are marked as ours and made anew before each run, so that all runs begin alike; what
//! only reads finds them as the run before left them.

use load::Target;
use study::Workload;

use super::{DataFacts, LoadError, LoadProgress, TableState, prepare, survey, tables};

/// Tables in `target`'s database, as [`prepare`] makes them; those of an earlier load are kept where
/// they are whole and `workload` changes nothing. The facts say which it was.
///
/// # Errors
/// The server's; a table of ours by name that somebody else made.
pub fn load_standing(
    workload: &Workload,
    target: &Target,
    seed: u64,
    threads: u32,
    on_progress: &mut dyn FnMut(LoadProgress),
) -> Result<DataFacts, LoadError> {
    if only_reads(workload) && stands_whole(workload, target)? {
        return Ok(DataFacts::from([("kept".to_owned(), "of an earlier run".to_owned())]));
    }
    Ok(prepare(workload, target, seed, threads, on_progress)?.facts)
}

/// Whether no statement of the workload changes a row. Of a script nobody can say.
fn only_reads(workload: &Workload) -> bool {
    matches!(
        workload,
        Workload::OltpPointSelect(_)
            | Workload::OltpReadOnly(_)
            | Workload::SelectRandomPoints(_)
            | Workload::SelectRandomRanges(_)
    )
}

fn stands_whole(workload: &Workload, target: &Target) -> Result<bool, LoadError> {
    let wanted = tables(workload)?;
    let found = survey(workload, target)?.tables;
    let whole = found.iter().zip(&wanted).all(|(found, wanted)| {
        found.state == TableState::Ours && found.max_id == Some(wanted.rows)
    });
    Ok(whole && found.len() == wanted.len())
}
