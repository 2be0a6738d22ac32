//! What one thread counts, interval by interval.
//!
//! Plain integers and histograms, touched by one thread only. A thread has two [`Recorded`]: one
//! that it fills, and one that is on its way to the coordinator and comes back empty, so that
//! neither is allocated nor are its pages touched for the first time while driving. Nothing is
//! recorded twice: totals are added up by the coordinator from kinds and statements. The identity
//! that must hold at the end: attempts = committed + retried + failed + unfinished.

use crate::error::DriveError;
use crate::flight::{Begun, Flight};
use crate::register::{CONNECT, Register};
use crate::session::Outcome;
use crate::times::{Coarse, Fine};

/// Error codes for which there is room from the start.
const ERROR_CODES: usize = 8;

/// Errors by the server's code; a handful at most, so a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Errors(Vec<(u16, u64)>);

/// Counts of one interval of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Statements that returned a result set.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements.
    pub other: u64,
    /// Connections that broke off without a word, in a transaction or between two.
    pub lost: u64,
    /// Transactions that were given up because their connection was lost.
    pub failed: u64,
    /// Connections that were made again.
    pub reconnects: u64,
}

/// One kind of transaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kind {
    /// Committed.
    pub transactions: u64,
    /// Attempts that were repeated.
    pub retries: u64,
    /// Of those that started when intended, in both senses at once, nanoseconds: in a closed loop
    /// all of them, which then cost one record and not two. [`Recorded::add`] shares them out.
    pub prompt: Fine,
    /// From the intended start, nanoseconds.
    pub response: Fine,
    /// From the actual start, nanoseconds.
    pub service: Fine,
}

/// Statements of one name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatementRecord {
    /// Refused.
    pub errors: Errors,
    /// Of those that were not, from encoding to the end of the answer, nanoseconds.
    pub latency: Coarse,
}

/// What is handed over when an interval ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    /// What belongs to no kind and no statement.
    pub counts: Counts,
    /// By kind.
    pub kinds: Vec<Kind>,
    /// By name, as [`Register::names`].
    pub statements: Vec<StatementRecord>,
    /// How much later than intended transactions started although a connection was free,
    /// nanoseconds.
    pub schedule_error: Coarse,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Recorder {
    current: Box<Recorded>,
    attempts: u64,
    committed: u64,
    retried: u64,
    failed: u64,
    unfinished: u64,
}

impl Errors {
    fn new() -> Errors {
        Errors(Vec::with_capacity(ERROR_CODES))
    }

    fn add(&mut self, code: u16, count: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == code) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((code, count)),
        }
    }

    /// Codes and their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        self.0.iter().copied()
    }
}

impl Recorded {
    /// Nothing yet; all its memory is there.
    pub(crate) fn new(register: &Register) -> Result<Box<Recorded>, DriveError> {
        let kind = Kind {
            transactions: 0,
            retries: 0,
            prompt: Fine::new(),
            response: Fine::new(),
            service: Fine::new(),
        };
        let statement = StatementRecord { errors: Errors::new(), latency: Coarse::new() };
        let mut recorded = Box::new(Recorded {
            counts: Counts::default(),
            kinds: vec![kind; register.slots()],
            statements: register.names.iter().map(|_| statement.clone()).collect(),
            schedule_error: Coarse::new(),
        });
        // Writes every page once, which the allocator has not done.
        recorded.clear();
        Ok(recorded)
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        let Recorded { counts, kinds, statements, schedule_error } = self;
        *counts = Counts::default();
        for kind in kinds {
            (kind.transactions, kind.retries) = (0, 0);
            kind.prompt.reset();
            kind.response.reset();
            kind.service.reset();
        }
        for statement in statements {
            statement.errors.0.clear();
            statement.latency.reset();
        }
        schedule_error.reset();
    }

    /// Adds what another of the same drive holds.
    pub(crate) fn add(&mut self, part: &Recorded) -> Result<(), DriveError> {
        let Counts { reads, writes, other, lost, failed, reconnects } = part.counts;
        self.counts.reads += reads;
        self.counts.writes += writes;
        self.counts.other += other;
        self.counts.lost += lost;
        self.counts.failed += failed;
        self.counts.reconnects += reconnects;
        for (sum, part) in self.kinds.iter_mut().zip(&part.kinds) {
            sum.transactions += part.transactions;
            sum.retries += part.retries;
            for times in [&part.prompt, &part.response] {
                sum.response.add(times);
            }
            for times in [&part.prompt, &part.service] {
                sum.service.add(times);
            }
        }
        for (sum, part) in self.statements.iter_mut().zip(&part.statements) {
            for (code, count) in part.errors.iter() {
                sum.errors.add(code, count);
            }
            sum.latency.add(&part.latency);
        }
        self.schedule_error.add(&part.schedule_error);
        Ok(())
    }
}

impl Recorder {
    /// Nothing yet.
    pub(crate) fn new(register: &Register) -> Result<Recorder, DriveError> {
        let current = Recorded::new(register)?;
        Ok(Recorder { current, attempts: 0, committed: 0, retried: 0, failed: 0, unfinished: 0 })
    }

    /// An attempt begins.
    pub(crate) fn attempt(&mut self) {
        self.attempts += 1;
    }

    /// A statement was answered `latency_ns` after it was encoded; classed by its result, as
    /// sysbench does.
    #[inline]
    pub(crate) fn statement(&mut self, name: u32, outcome: &Outcome, latency_ns: u64) {
        let counts = &mut self.current.counts;
        if outcome.columns > 0 {
            counts.reads += 1;
        } else if outcome.affected_rows > 0 {
            counts.writes += 1;
        } else {
            counts.other += 1;
        }
        if let Some(statement) = self.current.statements.get_mut(name as usize) {
            statement.latency.saturating_record(latency_ns);
        }
    }

    /// A statement was refused.
    pub(crate) fn refused(&mut self, name: u32, code: u16) {
        if let Some(statement) = self.current.statements.get_mut(name as usize) {
            statement.errors.add(code, 1);
        }
    }

    /// A transaction was committed; `ended_ns` is when its last answer was read.
    #[inline]
    pub(crate) fn commit(&mut self, kind: usize, begun: Begun, ended_ns: u64) {
        let Begun { intended_ns, started_ns } = begun;
        self.committed += 1;
        if let Some(kind) = self.current.kinds.get_mut(kind) {
            kind.transactions += 1;
            let service_ns = ended_ns.saturating_sub(started_ns).max(1);
            if intended_ns == started_ns {
                kind.prompt.saturating_record(service_ns);
            } else {
                kind.response.saturating_record(ended_ns.saturating_sub(intended_ns).max(1));
                kind.service.saturating_record(service_ns);
            }
        }
    }

    /// An attempt failed with an error after which it is repeated.
    pub(crate) fn retry(&mut self, kind: usize) {
        self.retried += 1;
        if let Some(kind) = self.current.kinds.get_mut(kind) {
            kind.retries += 1;
        }
    }

    /// A connection was lost in the middle of `flight`; the server said why in an answer
    /// (`told`), which has been counted by its code, or it did not.
    pub(crate) fn lose(&mut self, flight: Flight, told: bool) {
        let counts = &mut self.current.counts;
        counts.lost += u64::from(!told);
        match flight {
            Flight::Grounded => {}
            Flight::Attempt(_) => {
                self.failed += 1;
                counts.failed += 1;
            }
            // The attempt has been counted as retried, but the transaction gets no other.
            Flight::RollingBack(_) => counts.failed += 1,
        }
    }

    /// A connection was made again, which took so long.
    pub(crate) fn reconnect(&mut self, took_ns: u64) {
        self.current.counts.reconnects += 1;
        if let Some(connect) = self.current.statements.get_mut(CONNECT as usize) {
            connect.latency.saturating_record(took_ns);
        }
    }

    /// An attempt to make one again failed.
    pub(crate) fn dial_failed(&mut self, code: u16) {
        self.refused(CONNECT, code);
    }

    /// A transaction started so much later than intended although a connection was free.
    #[inline]
    pub(crate) fn schedule_error(&mut self, late_ns: u64) {
        self.current.schedule_error.saturating_record(late_ns);
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
        let Recorder { attempts, committed, retried, failed, unfinished, .. } = self;
        if *attempts == committed + retried + failed + unfinished {
            return Ok(());
        }
        Err(DriveError::Internal(format!(
            "{attempts} attempts are not {committed} committed + {retried} retried + {failed} \
             failed + {unfinished} unfinished"
        )))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::register::{COMMIT, OTHER, PROTOCOL};

    fn register() -> Register {
        Register {
            kinds: vec!["a".to_owned(), "b".to_owned()],
            names: PROTOCOL.map(str::to_owned).to_vec(),
            name_of: Vec::new(),
            targets: 1,
        }
    }

    #[test]
    fn statements_are_classed_by_their_result_and_timed_by_their_name() {
        let register = register();
        let mut recorder = Recorder::new(&register).unwrap();
        recorder.statement(OTHER, &Outcome { columns: 1, ..Outcome::default() }, 1_000_000);
        recorder.statement(OTHER, &Outcome { affected_rows: 2, ..Outcome::default() }, 3_000_000);
        recorder.statement(COMMIT, &Outcome::default(), 5_000_000);
        recorder.refused(COMMIT, 1213);
        let recorded = recorder.cut(Recorded::new(&register).unwrap());
        let counts = recorded.counts;
        assert_eq!((counts.reads, counts.writes, counts.other), (1, 1, 1));
        let timed = |name: u32| {
            let latency = recorded.statements[name as usize].latency.histogram().unwrap();
            (latency.len(), (latency.mean() / 1e6).round(), latency.max() / 1_000_000)
        };
        assert_eq!((timed(OTHER), timed(COMMIT)), ((2, 2.0, 3), (1, 5.0, 5)));
        assert_eq!(recorded.statements[COMMIT as usize].errors, Errors(vec![(1213, 1)]));
        let next = recorder.cut(Recorded::new(&register).unwrap());
        assert_eq!(next, Recorded::new(&register).unwrap());
    }

    #[test]
    fn attempts_are_accounted_for() {
        let register = register();
        let mut recorder = Recorder::new(&register).unwrap();
        for _ in 0..5 {
            recorder.attempt();
        }
        recorder.retry(0);
        recorder.retry(1);
        let begun = Begun { intended_ns: 1_000, started_ns: 2_000 };
        recorder.commit(1, begun, 5_000);
        recorder.lose(Flight::Attempt(begun), false);
        recorder.lose(Flight::RollingBack(begun), true);
        recorder.lose(Flight::Grounded, false);
        assert!(recorder.check().is_err());
        recorder.give_up();
        assert!(recorder.check().is_ok());
        let mut recorded = recorder.cut(Recorded::new(&register).unwrap());
        assert_eq!((recorded.counts.lost, recorded.counts.failed), (2, 2));
        let kinds: Vec<_> =
            recorded.kinds.iter().map(|kind| (kind.transactions, kind.retries)).collect();
        assert_eq!(kinds, [(0, 1), (1, 1)]);
        let kind = &recorded.kinds[1];
        let max_us = |times: &Fine| times.histogram().unwrap().max() / 1000;
        assert_eq!((max_us(&kind.response), max_us(&kind.service)), (4, 3));
        let mut sum = Recorded::new(&register).unwrap();
        sum.add(&recorded).unwrap();
        assert_eq!(sum, recorded);
        recorded.clear();
        assert_eq!(recorded, Recorded::new(&register).unwrap());
    }
}
