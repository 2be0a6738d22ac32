//! Room for a file descriptor per connection.
//!
//! Machines come with a soft limit of 1024 open files, for the sake of old programs that use
//! `select`, and a hard limit far above it, up to which everybody may go. So we go there when a
//! drive needs it. What is still too little becomes an error that says how much would do.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::DriveError;

/// For what a thread needs beside its connections (a reactor, its run queue), and some for what the
/// process opens meanwhile.
const PER_THREAD: u64 = 2;
const SPARE: u64 = 32;

/// Descriptors that a drive needs, with those that are open now.
pub(crate) fn needed(connections: u32, threads: u32) -> u64 {
    // The count holds the directory itself, which is closed again: one more to spare.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    open + u64::from(connections) + PER_THREAD * u64::from(threads) + SPARE
}

/// Raises the soft limit to the hard one if it is below `needed`. That the hard one is too low, or
/// that the kernel refuses, is told by the connection for which there is no descriptor.
pub(crate) fn make_room(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) && limit.current != limit.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Names the cause where an error is that descriptors have run out.
pub(crate) fn explain(error: DriveError, needed: u64) -> DriveError {
    match error {
        DriveError::Connect { source, .. } | DriveError::System { source, .. }
            if ran_out(&source).is_some() =>
        {
            let limit = getrlimit(Resource::Nofile).current;
            DriveError::Descriptors { needed, limit, source }
        }
        other => other,
    }
}

/// Whose descriptors have run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RanOut {
    /// This process's.
    Process,
    /// The machine's.
    Machine,
}

/// Whether descriptors have run out, and whose.
pub(crate) fn ran_out(error: &io::Error) -> Option<RanOut> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some(RanOut::Process),
        Errno::NFILE => Some(RanOut::Machine),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::spec::Address;

    fn connect(source: io::Error) -> DriveError {
        explain(DriveError::Connect { address: Address::Socket("/s".into()), source }, 1234)
    }

    #[test]
    fn errors_name_the_limit_that_was_reached() {
        let process = connect(Errno::MFILE.into());
        let hint = process.hint().unwrap();
        assert!(matches!(process, DriveError::Descriptors { needed: 1234, .. }), "{process:?}");
        assert!(hint.contains("1234") && hint.contains("ulimit -Hn"), "{hint}");
        let machine = connect(Errno::NFILE.into()).hint().unwrap();
        assert!(machine.contains("1234") && machine.contains("fs.file-max"), "{machine}");
        let other = connect(Errno::CONNREFUSED.into());
        assert!(matches!(other, DriveError::Connect { .. }), "{other:?}");
    }

    #[test]
    fn every_connection_needs_one() {
        assert!(needed(5000, 4) >= 5000 + 8);
    }
}
