//! What a drive has measured: its intervals added up, told second by second and as a whole.
//!
//! The coordinator hands over the parts of an interval as soon as every thread has given its own.
//! A window that ends early, with the drive, is one that is shorter.

use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::arrivals::Arrivals;
use crate::batching::Added;
use crate::error::DriveError;
use crate::flight::Age;
use crate::handover::ThreadInterval;
use crate::histogram::{latency_ms, serialize};
use crate::peak::Peak;
use crate::recorder::{Counts, Recorded};
use crate::register::Register;
use crate::report::{DriveReport, Second, ThreadUse};
use crate::schedule::Interval;
use crate::spec::DriveSpec;
use crate::starts::TakenUp;
use crate::summary::{
    all_kinds, errors, fairness, kinds, retries, second, statements, targets, transactions,
};
use crate::timeline::Timeline;

/// See the module.
pub(crate) struct Window<'a> {
    spec: &'a DriveSpec,
    register: &'a Register,
    timeline: &'a Timeline,
    schedule: &'a [Interval],
    /// Intervals added up so far.
    told: usize,
    /// End of the latest of them, and length of those that were measured, nanoseconds.
    until_ns: u64,
    measured_ns: u64,
    /// Open loop: the whole drive's arrivals from the latest interval's end on.
    arrivals: Option<Arrivals>,
    /// Of those before that, how many nobody has taken up. Less than none for a moment, where one
    /// was taken up after the end of an interval and before that was noticed.
    queued: i64,
    /// Of the interval that is being added up.
    sum: Box<Recorded>,
    /// Of the measured window.
    total: Box<Recorded>,
    peak: Peak,
    /// At the end of the window.
    in_flight: Vec<Age>,
    /// Then, for how long each transaction had been due whose connection was being made again.
    overdue: Vec<u64>,
    /// Of each thread: what was due and had not started then.
    backlogs: Vec<Arrivals>,
    /// Of each connection in the measured window.
    commits: Vec<u64>,
    /// What the generator added in the measured window.
    added: Added,
    report: DriveReport,
}

impl<'a> Window<'a> {
    /// Before the first interval.
    pub(crate) fn new(
        spec: &'a DriveSpec,
        register: &'a Register,
        timeline: &'a Timeline,
        schedule: &'a [Interval],
    ) -> Result<Window<'a>, DriveError> {
        Ok(Window {
            spec,
            register,
            timeline,
            schedule,
            told: 0,
            until_ns: 0,
            measured_ns: 0,
            arrivals: Arrivals::new(&Arc::new(timeline.clone()), 0, 1),
            queued: 0,
            sum: Recorded::new(register)?,
            total: Recorded::new(register)?,
            peak: Peak::default(),
            in_flight: Vec::new(),
            overdue: Vec::new(),
            backlogs: Vec::new(),
            commits: Vec::new(),
            added: Added::new()?,
            report: DriveReport::default(),
        })
    }

    /// Whether anything was measured.
    pub(crate) fn has_begun(&self) -> bool {
        self.measured_ns > 0
    }

    /// Checks that no interval is missing.
    pub(crate) fn check_whole(&self) -> Result<(), DriveError> {
        let (told, all) = (self.told, self.schedule.len());
        if told == all {
            return Ok(());
        }
        Err(DriveError::Internal(format!("{told} of {all} intervals were told")))
    }

    /// The next interval, of which each thread gives its part, `None` where it has ended. Memory
    /// goes back, cleared.
    pub(crate) fn add_up(
        &mut self,
        parts: Vec<Option<ThreadInterval>>,
        give_back: &mut dyn FnMut(usize, Box<Recorded>),
    ) -> Result<Second, DriveError> {
        let Some(mut interval) = self.schedule.get(self.told).copied() else {
            return Err(DriveError::Internal("an interval too many".to_owned()));
        };
        if parts.iter().flatten().any(|part| part.index != self.told) {
            return Err(DriveError::Internal("intervals out of order".to_owned()));
        }
        let until_ns = parts.iter().flatten().map(|part| part.until_ns).max();
        interval.end_ns = until_ns.unwrap_or(interval.end_ns).max(interval.begin_ns);
        self.told += 1;
        self.until_ns = interval.end_ns;
        self.sum.clear();
        let (mut cpu, mut taken_up, mut away) = (Vec::new(), TakenUp::default(), 0);
        for (thread, part) in parts.into_iter().enumerate() {
            let Some(mut part) = part else {
                cpu.push(ThreadUse::default());
                continue;
            };
            self.sum.add(&part.recorded)?;
            part.recorded.clear();
            give_back(thread, part.recorded);
            cpu.push(part.cpu);
            taken_up.add(part.taken_up);
            away += part.away;
            self.in_flight.extend(part.in_flight);
            self.overdue.extend(part.overdue);
            self.backlogs.extend(part.backlog);
            self.commits.extend(part.commits);
            if let Some(added) = &part.added {
                self.added.add(added)?;
            }
            if interval.measured {
                self.report.user_s += part.cpu.user_s;
                self.report.sys_s += part.cpu.sys_s;
                self.peak.add(thread, part.cpu, part.sampled_s);
            }
        }
        if interval.measured {
            self.measured_ns += interval.end_ns - interval.begin_ns;
            self.total.add(&self.sum)?;
        }
        let at_work = self.timeline.connections(interval.end_ns.saturating_sub(1));
        let mut second = second(interval, at_work.saturating_sub(away), &self.sum, cpu)?;
        if let Some(arrivals) = &mut self.arrivals {
            while arrivals.due_ns() < interval.end_ns {
                self.queued += 1;
                arrivals.advance();
            }
            self.queued -= taken_up.count as i64;
            second.queued = Some(self.queued.max(0) as u64);
            let late_ms = taken_up.late_ns_max as f64 / 1e6;
            second.late_ms_max = (taken_up.count > 0).then_some(late_ms);
        }
        Ok(second)
    }

    /// The report of the window of a drive that began at `start_ns`, CLOCK_MONOTONIC; who drove is
    /// left to the caller.
    pub(crate) fn report(mut self, start_ns: u64) -> Result<DriveReport, DriveError> {
        let mut response = all_kinds(&self.total, |kind| &kind.response)?;
        let mut service = all_kinds(&self.total, |kind| &kind.service)?;
        self.record_stalled(&mut response, &mut service);
        let Window { spec, register, mut report, total, .. } = self;
        let Counts { reads, writes, other, failed, reconnects, .. } = total.counts;
        let peak = self.peak.shares();
        report.peak_thread_share = peak.busy;
        report.peak_thread_wait = peak.wait;
        report.peak_thread_occupied = peak.occupied;
        report.generator.batch_delay = latency_ms(&self.added.delay);
        report.generator.clock_error = latency_ms(&self.added.clock_error);
        let warmup_ns = u64::try_from(spec.warmup.as_nanos()).unwrap_or(u64::MAX);
        report.measured_s = Duration::from_nanos(self.measured_ns).as_secs_f64();
        report.measure_start_monotonic_ns = start_ns.saturating_add(warmup_ns);
        report.transactions = transactions(&total);
        (report.reads, report.writes, report.other) = (reads, writes, other);
        (report.failed, report.reconnects) = (failed, reconnects);
        report.retries = retries(&total);
        report.errors = errors(&total);
        report.response = latency_ms(&response);
        report.service = latency_ms(&service);
        report.response_hdr_base64 = serialize(&response)?;
        report.service_hdr_base64 = serialize(&service)?;
        report.kinds = kinds(register, &total)?;
        report.targets = targets(register, &total)?;
        report.statements = statements(register, &total)?;
        let known = self.commits.len() == spec.connections_max() as usize;
        let alike = spec.pacing.stages.iter().all(|stage| stage.connections.is_none());
        report.fairness = (known && alike).then(|| fairness(&self.commits));
        report.schedule_error = latency_ms(&total.schedule_error.histogram()?);
        let DriveReport { transactions, stalled_at_end, overdue_at_end, .. } = report;
        let expected = transactions + stalled_at_end;
        let committed = if known { self.commits.iter().sum() } else { transactions };
        let got = [
            response.len(),
            service.len() + overdue_at_end,
            committed + stalled_at_end + overdue_at_end,
        ];
        if got != [expected + overdue_at_end; 3] {
            return Err(DriveError::Internal(format!(
                "{transactions} transactions, {stalled_at_end} stalled and {overdue_at_end} \
                 overdue, but {got:?} response times, service times and commits of connections"
            )));
        }
        Ok(report)
    }

    /// Transactions in flight at the window's end, of which those older than all that were
    /// committed are recorded with the age they have. The others' ages would only pull the
    /// percentiles down: what is cut off by the end is short because it is cut off.
    ///
    /// The same goes for what was due and had not started, which has a response time only: arrivals
    /// of an open loop, and what waits for a connection that was lost.
    fn record_stalled(&mut self, response: &mut Histogram<u64>, service: &mut Histogram<u64>) {
        let recorded_max_ns = response.max();
        for age in &self.in_flight {
            let age_ms = age.response_ns as f64 / 1e6;
            self.report.oldest_in_flight_ms = self.report.oldest_in_flight_ms.max(age_ms);
            if age.response_ns > recorded_max_ns {
                self.report.stalled_at_end += 1;
                response.saturating_record(age.response_ns.max(1));
                service.saturating_record(age.service_ns.max(1));
            }
        }
        self.report.in_flight_at_end = self.in_flight.len() as u64;
        let report = &mut self.report;
        let mut record_overdue = |age_ns: u64| {
            report.never_started += 1;
            if age_ns > recorded_max_ns {
                report.overdue_at_end += 1;
                response.saturating_record(age_ns.max(1));
            }
        };
        self.overdue.iter().copied().for_each(&mut record_overdue);
        for backlog in &mut self.backlogs {
            while backlog.due_ns() < self.until_ns {
                record_overdue(self.until_ns - backlog.due_ns());
                backlog.advance();
            }
        }
    }
}
