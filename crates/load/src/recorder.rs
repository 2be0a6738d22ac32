//! What one thread counts, interval by interval.
//!
//! Plain integers and histograms, touched by one thread only. A thread has two [`Recorded`]: one
//! that it fills, and one that is on its way to the coordinator and comes back empty, so that
//! neither is allocated nor are its pages touched for the first time while driving. The identity
//! that must hold at the end: attempts = committed + retried + unfinished.

use hdrhistogram::Histogram;

use crate::error::DriveError;
use crate::flight::Begun;
use crate::histogram::latency_histogram;
use crate::session::Outcome;

/// Error codes for which there is room from the start.
const ERROR_CODES: usize = 8;

/// Counts of one interval of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Committed transactions.
    pub transactions: u64,
    /// Statements that returned a result set.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements.
    pub other: u64,
    /// Attempts that were repeated.
    pub retries: u64,
    /// By server error code; a handful at most, so a list.
    pub errors: Vec<(u16, u64)>,
}

/// What is handed over when an interval ends.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Counts.
    pub counts: Counts,
    /// From the intended start, nanoseconds.
    pub response: Histogram<u64>,
    /// From the actual start, nanoseconds.
    pub service: Histogram<u64>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Recorder {
    current: Box<Recorded>,
    attempts: u64,
    committed: u64,
    retried: u64,
    unfinished: u64,
}

impl Recorded {
    /// Nothing yet; all its memory is there.
    pub(crate) fn new() -> Result<Box<Recorded>, DriveError> {
        let mut recorded = Box::new(Recorded {
            counts: Counts { errors: Vec::with_capacity(ERROR_CODES), ..Counts::default() },
            response: latency_histogram()?,
            service: latency_histogram()?,
        });
        // Writes every page once, which the allocator has not done.
        recorded.clear();
        Ok(recorded)
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.response.reset();
        self.service.reset();
        let mut errors = std::mem::take(&mut self.counts.errors);
        errors.clear();
        self.counts = Counts { errors, ..Counts::default() };
    }
}

impl Recorder {
    /// Nothing yet.
    pub(crate) fn new() -> Result<Recorder, DriveError> {
        let current = Recorded::new()?;
        Ok(Recorder { current, attempts: 0, committed: 0, retried: 0, unfinished: 0 })
    }

    /// An attempt begins.
    pub(crate) fn attempt(&mut self) {
        self.attempts += 1;
    }

    /// A statement was answered; classed by its result, as sysbench does.
    #[inline]
    pub(crate) fn statement(&mut self, outcome: &Outcome) {
        let counts = &mut self.current.counts;
        if outcome.columns > 0 {
            counts.reads += 1;
        } else if outcome.affected_rows > 0 {
            counts.writes += 1;
        } else {
            counts.other += 1;
        }
    }

    /// A transaction was committed; `ended_ns` is when its last answer was read.
    #[inline]
    pub(crate) fn commit(&mut self, begun: Begun, ended_ns: u64) {
        let Begun { intended_ns, started_ns } = begun;
        self.committed += 1;
        self.current.counts.transactions += 1;
        self.current.response.saturating_record(ended_ns.saturating_sub(intended_ns).max(1));
        self.current.service.saturating_record(ended_ns.saturating_sub(started_ns).max(1));
    }

    /// An attempt failed with an error after which it is repeated.
    pub(crate) fn retry(&mut self, code: u16) {
        self.retried += 1;
        let counts = &mut self.current.counts;
        counts.retries += 1;
        match counts.errors.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => counts.errors.push((code, 1)),
        }
    }

    /// An attempt was given up because the drive is over.
    pub(crate) fn give_up(&mut self) {
        self.unfinished += 1;
    }

    /// Hands over the interval that ends and begins the next with `empty`.
    pub(crate) fn cut(&mut self, empty: Box<Recorded>) -> Box<Recorded> {
        std::mem::replace(&mut self.current, empty)
    }

    /// Checks that every attempt ended in exactly one way.
    ///
    /// # Errors
    /// The counters contradict each other, so no figure of this drive can be trusted.
    pub(crate) fn check(&self) -> Result<(), DriveError> {
        let Recorder { attempts, committed, retried, unfinished, .. } = self;
        if *attempts == committed + retried + unfinished {
            return Ok(());
        }
        Err(DriveError::Internal(format!(
            "{attempts} attempts are not {committed} committed + {retried} retried + {unfinished} \
             unfinished"
        )))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn statements_are_classed_by_their_result() {
        let mut recorder = Recorder::new().unwrap();
        recorder.statement(&Outcome { columns: 1, rows: 0, ..Outcome::default() });
        recorder.statement(&Outcome { affected_rows: 2, ..Outcome::default() });
        recorder.statement(&Outcome::default());
        let counts = recorder.cut(Recorded::new().unwrap()).counts;
        assert_eq!((counts.reads, counts.writes, counts.other), (1, 1, 1));
        assert_eq!(recorder.cut(Recorded::new().unwrap()).counts, Counts::default());
    }

    #[test]
    fn attempts_are_accounted_for() {
        let mut recorder = Recorder::new().unwrap();
        for _ in 0..4 {
            recorder.attempt();
        }
        recorder.retry(1213);
        recorder.retry(1213);
        recorder.commit(Begun { intended_ns: 1_000, started_ns: 2_000 }, 5_000);
        assert!(recorder.check().is_err());
        recorder.give_up();
        assert!(recorder.check().is_ok());
        let mut recorded = recorder.cut(Recorded::new().unwrap());
        assert_eq!(recorded.counts.errors, [(1213, 2)]);
        assert_eq!(recorded.counts.retries, 2);
        assert_eq!((recorded.response.max() / 1000, recorded.service.max() / 1000), (4, 3));
        recorded.clear();
        let empty = Recorded::new().unwrap();
        assert_eq!(recorded.counts, empty.counts);
        assert_eq!((recorded.response, recorded.service), (empty.response, empty.service));
    }
}
