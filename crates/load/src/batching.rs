//! How long answers wait for company, and what the generator adds to the times that it measures.
//!
//! One visit to the kernel costs about as much as an answer; a visit for several answers costs
//! hardly more. So the loop may wait a little for further answers when the first has come. How
//! long is learned from each interval and used in the next: of the median response time, a share
//! that all statements of a transaction have together. Before the first interval has ended nothing
//! is known, and nothing waits.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::error::DriveError;
use crate::reactor::Wait;
use crate::recorder::Recorded;
use crate::spec::Batching;
use crate::summary;
use crate::times::Fine;

/// More answers than this are not worth waiting for: their common visit is cheap enough.
const COMPANY_MAX: u32 = 32;
/// Nor more than this part of the transactions in flight, or the server runs out of work.
const COMPANY_SHARE: f64 = 0.25;
/// Longest delay or error that is told apart.
const ADDED_NS_MAX: u64 = 60_000_000_000;

/// The events that one wait brings, as the loop goes through them.
#[derive(Debug)]
pub(crate) struct Batch {
    company: Company,
    /// `None` when it has been handed over.
    added: Option<Box<Added>>,
    /// Events to one reading of the clock.
    together: u32,
    /// When the wait began.
    began_ns: u64,
    /// The latest reading that was ascribed to events, and to how many so far.
    stamp_ns: u64,
    stamped: u32,
    /// Events of the groups before.
    events: u32,
    /// What the first event was kept waiting at most.
    delay_ns: Option<u64>,
}

impl Batch {
    pub(crate) fn new(batching: Batching, together: u32) -> Result<Batch, DriveError> {
        Ok(Batch {
            company: Company::new(batching)?,
            added: Some(Box::new(Added::new()?)),
            together,
            began_ns: 0,
            stamp_ns: 0,
            stamped: 0,
            events: 0,
            delay_ns: None,
        })
    }

    /// A wait begins that lasts until `until_ns` at the latest.
    #[inline]
    pub(crate) fn begin(&mut self, now_ns: u64, until_ns: u64) -> Wait {
        (self.began_ns, self.stamped, self.events, self.delay_ns) = (now_ns, 0, 0, None);
        self.company.wait(until_ns)
    }

    /// The next event needs a new reading of the clock, of which [`Batch::stamp`] is told.
    #[inline]
    pub(crate) fn wants_clock(&mut self) -> bool {
        let wants = self.stamped == 0 || self.stamped == self.together;
        if !wants {
            self.stamped += 1;
        }
        wants
    }

    /// The latest event is the first to which the latest reading was ascribed.
    #[inline]
    pub(crate) fn has_just_been_stamped(&self) -> bool {
        self.stamped == 1
    }

    /// What happens next, happens now.
    #[inline]
    pub(crate) fn stamp(&mut self, now_ns: u64) {
        match self.stamped {
            0 => self.delay_ns = self.company.delay_ns(now_ns.saturating_sub(self.began_ns)),
            _ => self.end_group(now_ns),
        }
        (self.stamp_ns, self.stamped) = (now_ns, 1);
    }

    /// All events have been handled.
    #[inline]
    pub(crate) fn end(&mut self, now_ns: u64) {
        if self.stamped > 0 {
            self.end_group(now_ns);
            if let (Some(added), Some(delay_ns)) = (&mut self.added, self.delay_ns) {
                added.delayed(delay_ns, self.events);
            }
        }
    }

    #[inline]
    fn end_group(&mut self, now_ns: u64) {
        // Who reads the clock for each event is exact: what comes between two of them is sending.
        let error_ns = if self.together > 1 { now_ns.saturating_sub(self.stamp_ns) } else { 0 };
        if let Some(added) = &mut self.added {
            added.stamped(error_ns, self.stamped);
        }
        self.events += self.stamped;
    }

    /// An interval of so many seconds has ended, the last of the warm-up or of all perhaps; what
    /// was added in the measured window comes with the last.
    pub(crate) fn cut(
        &mut self,
        recorded: &Recorded,
        seconds: f64,
        warmed_up: bool,
        last: bool,
    ) -> Option<Box<Added>> {
        self.company.learn(recorded, seconds);
        if warmed_up && let Some(added) = &mut self.added {
            added.clear();
        }
        if last { self.added.take() } else { None }
    }
}

/// What is waited for.
#[derive(Debug)]
struct Company {
    share: Option<f64>,
    company: u32,
    patience: Duration,
    /// Where the response times of an interval are added up; there if there is a share.
    times: Option<Fine>,
}

impl Company {
    fn new(batching: Batching) -> Result<Company, DriveError> {
        let share = match batching {
            Batching::Share(share) if share > 0.0 => Some(share.min(1.0)),
            Batching::Share(_) | Batching::Off => None,
        };
        let times = share.map(|_| Fine::new());
        Ok(Company { share, company: 1, patience: Duration::ZERO, times })
    }

    /// Learns from what was recorded in so many seconds.
    fn learn(&mut self, recorded: &Recorded, seconds: f64) {
        let (Some(share), Some(times)) = (self.share, &mut self.times) else { return };
        let transactions = summary::transactions(recorded) as f64;
        if transactions == 0.0 || seconds <= 0.0 {
            // Whatever was true is so no longer.
            (self.company, self.patience) = (1, Duration::ZERO);
            return;
        }
        times.reset();
        for kind in &recorded.kinds {
            times.add(&kind.prompt);
            times.add(&kind.response);
        }
        let Some(median_ns) = times.quantile_ns(0.5) else { return };
        let counts = &recorded.counts;
        let statements =
            ((counts.reads + counts.writes + counts.other) as f64 / transactions).max(1.0);
        self.patience = Duration::from_nanos((share * median_ns as f64 / statements) as u64);
        // Little's law: how many are in flight is how many end in a second times how long each is.
        let busy_ns: f64 = recorded
            .kinds
            .iter()
            .map(|kind| kind.prompt.total_ns() + kind.service.total_ns())
            .sum();
        let in_flight = busy_ns / 1e9 / seconds;
        self.company = ((in_flight * COMPANY_SHARE) as u32).clamp(1, COMPANY_MAX);
    }

    /// A wait until `until_ns` at the latest.
    #[inline]
    fn wait(&self, until_ns: u64) -> Wait {
        Wait { until_ns, company: self.company, patience: self.patience }
    }

    /// Longest that an answer was kept waiting by a wait of so many nanoseconds; `None` if waits are
    /// not extended.
    #[inline]
    fn delay_ns(&self, waited_ns: u64) -> Option<u64> {
        // Patience runs from the beginning of the wait in a ring and from the first event in a set
        // of epoll: either way an answer waits no longer than that, and no longer than the wait.
        let patience_ns = u64::try_from(self.patience.as_nanos()).unwrap_or(u64::MAX);
        (self.company > 1 && patience_ns > 0).then(|| waited_ns.min(patience_ns))
    }
}

/// What the generator added, one entry for each answer: bounds, not estimates.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    /// By keeping an answer waiting for company, nanoseconds. An upper bound: an answer that came
    /// late in the wait waited less.
    pub delay: Histogram<u64>,
    /// By reading the clock once for several answers, nanoseconds: how old the instant ascribed to
    /// an answer had become when the last one of its group had been handled.
    pub clock_error: Histogram<u64>,
}

impl Added {
    /// Nothing yet.
    pub(crate) fn new() -> Result<Added, DriveError> {
        let empty = || {
            Histogram::new_with_bounds(1, ADDED_NS_MAX, 2)
                .map_err(|error| DriveError::Internal(format!("histogram: {error}")))
        };
        Ok(Added { delay: empty()?, clock_error: empty()? })
    }

    /// Forgets everything and keeps the memory.
    fn clear(&mut self) {
        self.delay.reset();
        self.clock_error.reset();
    }

    #[inline]
    fn delayed(&mut self, ns: u64, answers: u32) {
        self.delay.saturating_record_n(ns, u64::from(answers));
    }

    #[inline]
    fn stamped(&mut self, error_ns: u64, answers: u32) {
        self.clock_error.saturating_record_n(error_ns, u64::from(answers));
    }

    /// What another thread added, too.
    pub(crate) fn add(&mut self, other: &Added) -> Result<(), DriveError> {
        self.delay
            .add(&other.delay)
            .and_then(|()| self.clock_error.add(&other.clock_error))
            .map_err(|error| DriveError::Internal(format!("histogram: {error}")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flight::Begun;
    use crate::recorder::Recorder;
    use crate::register::Register;
    use crate::rng::Rng;
    use crate::session::{Outcome, Session};
    use crate::workload::{Statement, TransactionError, Workload};

    struct Nothing;

    impl Workload for Nothing {
        fn statements(&self) -> Vec<Statement> {
            Vec::new()
        }

        async fn transaction(
            &self,
            _: &mut Session,
            _: usize,
            _: Rng,
        ) -> Result<(), TransactionError> {
            Ok(())
        }
    }

    /// So many transactions of `statements` statements and a millisecond each.
    fn recorded(transactions: u64, statements: u64) -> Box<Recorded> {
        let register = Register::new(&Nothing, 1);
        let mut recorder = Recorder::new(&register).unwrap();
        for _ in 0..transactions {
            for _ in 0..statements {
                recorder.statement(0, &Outcome { columns: 1, ..Outcome::default() }, 1);
            }
            recorder.commit(0, Begun { intended_ns: 0, started_ns: 0 }, 1_000_000);
        }
        recorder.cut(Recorded::new(&register).unwrap())
    }

    #[test]
    fn patience_is_a_share_of_the_median_for_all_statements_together() {
        let mut company = Company::new(Batching::Share(0.05)).unwrap();
        assert_eq!(company.wait(7), Wait { until_ns: 7, company: 1, patience: Duration::ZERO });
        assert_eq!(company.delay_ns(1_000), None, "nothing is known yet");
        // 40,000 a second of a millisecond each: 40 in flight.
        company.learn(&recorded(4_000, 1), 0.1);
        let wait = company.wait(7);
        assert_eq!(wait.company, 10);
        assert!((wait.patience.as_secs_f64() / 50e-6 - 1.0).abs() < 2e-3, "{wait:?}");
        assert_eq!(company.delay_ns(1_000), Some(1_000));
        assert_eq!(company.delay_ns(1_000_000), Some(wait.patience.as_nanos() as u64));
        company.learn(&recorded(4_000, 5), 0.1);
        assert!((company.wait(7).patience.as_secs_f64() / 10e-6 - 1.0).abs() < 2e-3);
        // Few in flight have no company, many no more than is worth it.
        company.learn(&recorded(300, 1), 0.1);
        assert_eq!((company.wait(7).company, company.delay_ns(1_000)), (1, None));
        company.learn(&recorded(50_000, 1), 0.1);
        assert_eq!(company.wait(7).company, COMPANY_MAX);
        company.learn(&recorded(0, 0), 1.0);
        assert_eq!(company.delay_ns(1_000), None, "the server has fallen silent");
    }

    #[test]
    fn without_a_share_nothing_waits() {
        for batching in [Batching::Off, Batching::Share(0.0), Batching::Share(-1.0)] {
            let mut company = Company::new(batching).unwrap();
            company.learn(&recorded(4_000, 1), 0.1);
            assert_eq!((company.wait(7).company, company.delay_ns(1_000)), (1, None));
        }
    }

    #[test]
    fn a_group_shares_an_instant_and_owns_up_to_its_age() {
        let mut batch = Batch::new(Batching::Share(0.05), 3).unwrap();
        assert!(batch.cut(&recorded(4_000, 1), 0.1, false, false).is_none());
        assert_eq!(batch.begin(1_000, 9_000).company, 10);
        let mut reads = Vec::new();
        for event in 0..5 {
            if batch.wants_clock() {
                reads.push(event);
                batch.stamp(11_000 + 1_000 * event);
            }
        }
        batch.end(16_000);
        assert_eq!(reads, [0, 3]);
        // A wait that brings nothing adds nothing.
        batch.begin(20_000, 30_000);
        batch.end(30_000);
        let added = batch.cut(&recorded(1, 1), 1.0, false, true).unwrap();
        assert_eq!((added.clock_error.len(), added.delay.len()), (5, 5));
        assert_eq!((added.clock_error.min() / 100, added.clock_error.max() / 100), (20, 30));
        assert_eq!(added.delay.min() / 100, 99);
    }

    #[test]
    fn a_reading_for_each_event_is_exact_and_the_warm_up_is_forgotten() {
        let mut batch = Batch::new(Batching::Off, 1).unwrap();
        for warmed_up in [true, false] {
            batch.begin(0, 10);
            for event in 0..3 {
                assert!(batch.wants_clock());
                batch.stamp(event);
            }
            batch.end(10);
            assert!(batch.cut(&recorded(1, 1), 1.0, warmed_up, false).is_none());
        }
        let added = batch.cut(&recorded(1, 1), 1.0, false, true).unwrap();
        assert_eq!((added.clock_error.len(), added.clock_error.max()), (3, 0));
        assert!(added.delay.is_empty());
    }

    #[test]
    fn what_was_added_is_counted_for_every_answer() {
        let (mut one, mut two) = (Added::new().unwrap(), Added::new().unwrap());
        one.delayed(1_000, 3);
        two.delayed(9_000, 1);
        two.stamped(500, 2);
        one.add(&two).unwrap();
        assert_eq!((one.delay.len(), one.clock_error.len()), (4, 2));
        assert_eq!(one.delay.value_at_quantile(0.5) / 10, 100);
    }
}
