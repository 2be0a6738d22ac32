//! Hears what the generator threads say: starts them together, adds up their intervals, tells them,
//! and reports the whole.
//!
//! Runs in the caller's thread. Generator threads send it messages and never wait for it, except
//! for the common start.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::arrivals::Arrivals;
use crate::batching::Added;
use crate::cpu::monotonic_ns;
use crate::error::DriveError;
use crate::flight::Age;
use crate::handover::{HandOver, ThreadInterval};
use crate::histogram::{latency_ms, serialize};
use crate::peak::Peak;
use crate::recorder::{Counts, Recorded};
use crate::register::Register;
use crate::report::{DriveEvent, DriveReport};
use crate::schedule::Interval;
use crate::spec::{DriveSpec, Scheduling};
use crate::summary::{
    all_kinds, errors, fairness, kinds, retries, second, statements, transactions,
};
use crate::timeline::Timeline;

/// From the word to the first transaction, for all threads to hear it.
const LEAD_NS: u64 = 20_000_000;

/// What a generator thread says.
pub(crate) enum Message {
    /// Its connections stand; it is pinned where it should be, and in this class.
    Connected { pinned: bool, scheduling: Scheduling },
    /// An interval ended.
    Interval { thread: usize, interval: ThreadInterval },
    /// It is done.
    Ended(Result<(), DriveError>),
}

/// A generator thread's way to the coordinator and back. Sending allocates nothing but, now and
/// then, a link of the channel.
pub(crate) struct Post {
    /// Its number.
    pub thread: usize,
    /// To the coordinator.
    pub say: Sender<Message>,
    /// And back.
    pub back: Receiver<Box<Recorded>>,
}

impl HandOver for Post {
    fn emptied(&mut self) -> Option<Box<Recorded>> {
        self.back.try_recv().ok()
    }

    fn hand_over(&mut self, interval: ThreadInterval) {
        let _ = self.say.send(Message::Interval { thread: self.thread, interval });
    }
}

/// The threads, and the ways to them.
pub(crate) struct Team {
    /// How many.
    pub threads: u32,
    /// The CPU of each, if they are to be pinned.
    pub pins: Vec<usize>,
    /// What they wait with.
    pub reactor: String,
    /// The word to start, one for each thread; dropped to call all off.
    pub words: Vec<Sender<u64>>,
    /// The way back of what the threads handed over, one for each thread.
    pub returns: Vec<Sender<Box<Recorded>>>,
}

/// See the module.
pub(crate) struct Coordinator<'a> {
    spec: &'a DriveSpec,
    register: &'a Register,
    timeline: &'a Timeline,
    schedule: &'a [Interval],
    team: Team,
    /// By thread: intervals that came and wait for those of the other threads.
    waiting: Vec<VecDeque<ThreadInterval>>,
    /// Intervals told so far.
    told: usize,
    began: Instant,
    start_ns: Option<u64>,
    connected: u32,
    /// Of the interval that is being added up.
    sum: Box<Recorded>,
    /// Of the measured window.
    total: Box<Recorded>,
    peak: Peak,
    /// At the end of the window.
    in_flight: Vec<Age>,
    /// Of each thread: what was due and had not started then.
    backlogs: Vec<Arrivals>,
    /// Of each connection in the measured window.
    commits: Vec<u64>,
    /// What the generator added in the measured window.
    added: Added,
    /// What all threads were granted.
    scheduling: Scheduling,
    report: DriveReport,
}

impl<'a> Coordinator<'a> {
    /// Of a drive that `began` with the first connect.
    pub(crate) fn new(
        spec: &'a DriveSpec,
        register: &'a Register,
        timeline: &'a Timeline,
        schedule: &'a [Interval],
        team: Team,
        began: Instant,
    ) -> Result<Coordinator<'a>, DriveError> {
        Ok(Coordinator {
            spec,
            register,
            timeline,
            schedule,
            waiting: (0..team.threads).map(|_| VecDeque::new()).collect(),
            told: 0,
            began,
            start_ns: None,
            connected: 0,
            sum: Recorded::new(register)?,
            total: Recorded::new(register)?,
            peak: Peak::default(),
            in_flight: Vec::new(),
            backlogs: Vec::new(),
            commits: Vec::new(),
            added: Added::new()?,
            scheduling: spec.engine.scheduling,
            report: DriveReport { threads: team.threads, ..DriveReport::default() },
            team,
        })
    }

    /// Listens until every thread has ended; the first error is the cause of all others.
    pub(crate) fn listen(
        &mut self,
        hear: &Receiver<Message>,
        failed: &AtomicBool,
        on_event: &mut dyn FnMut(DriveEvent),
    ) -> Result<(), DriveError> {
        let mut result = Ok(());
        // Ends when every thread has ended and dropped its end of the channel.
        for message in hear {
            match message {
                Message::Connected { pinned, scheduling } => {
                    if scheduling == Scheduling::Normal {
                        self.scheduling = Scheduling::Normal;
                    }
                    if !pinned {
                        self.team.pins.clear();
                    }
                    self.connected += 1;
                    if self.connected == self.team.threads {
                        self.start(on_event);
                    }
                }
                Message::Interval { thread, interval } => {
                    self.waiting[thread].push_back(interval);
                    if let Err(error) = self.tell(on_event) {
                        failed.store(true, Ordering::Relaxed);
                        result = result.and(Err(error));
                    }
                }
                Message::Ended(Ok(())) => {}
                Message::Ended(Err(error)) => {
                    failed.store(true, Ordering::Relaxed);
                    self.team.words.clear();
                    // The first error is the cause; that others were stopped is its consequence.
                    if matches!(result, Ok(()) | Err(DriveError::Stopped)) {
                        result = Err(error);
                    }
                }
            }
        }
        result
    }

    fn start(&mut self, on_event: &mut dyn FnMut(DriveEvent)) {
        let start_ns = monotonic_ns() + LEAD_NS;
        self.start_ns = Some(start_ns);
        for word in &self.team.words {
            let _ = word.send(start_ns);
        }
        on_event(DriveEvent::Connected {
            connections: self.spec.connections_max(),
            threads: self.team.threads,
            pinned: self.team.pins.clone(),
            reactor: self.team.reactor.clone(),
            took_ms: self.began.elapsed().as_secs_f64() * 1e3,
            start_monotonic_ns: start_ns,
        });
    }

    /// Adds up and tells every interval that all threads have handed over.
    fn tell(&mut self, on_event: &mut dyn FnMut(DriveEvent)) -> Result<(), DriveError> {
        while self.waiting.iter().all(|intervals| !intervals.is_empty()) {
            let parts: Vec<ThreadInterval> =
                self.waiting.iter_mut().filter_map(VecDeque::pop_front).collect();
            let Some(interval) = self.schedule.get(self.told).copied() else {
                return Err(DriveError::Internal("an interval too many".to_owned()));
            };
            if parts.iter().any(|part| part.index != self.told) {
                return Err(DriveError::Internal("intervals out of order".to_owned()));
            }
            self.told += 1;
            self.sum.clear();
            let mut cpu = Vec::with_capacity(parts.len());
            for (thread, mut part) in parts.into_iter().enumerate() {
                self.sum.add(&part.recorded)?;
                part.recorded.clear();
                // A thread that has ended takes nothing back.
                let _ = self.team.returns[thread].send(part.recorded);
                cpu.push(part.cpu);
                self.in_flight.extend(part.in_flight);
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
                self.total.add(&self.sum)?;
            }
            let connections = self.timeline.connections(interval.end_ns.saturating_sub(1));
            let second = second(interval, connections, &self.sum, cpu)?;
            on_event(DriveEvent::Second(second));
        }
        Ok(())
    }

    /// The report, when every thread has ended well.
    pub(crate) fn finish(mut self) -> Result<DriveReport, DriveError> {
        if self.told != self.schedule.len() {
            let (told, all) = (self.told, self.schedule.len());
            return Err(DriveError::Internal(format!("{told} of {all} intervals were told")));
        }
        let mut response = all_kinds(&self.total, |kind| &kind.response)?;
        let mut service = all_kinds(&self.total, |kind| &kind.service)?;
        self.record_stalled(&mut response, &mut service);
        let Coordinator { spec, register, mut report, total, .. } = self;
        let Counts { reads, writes, other, failed, reconnects, .. } = total.counts;
        let peak = self.peak.shares();
        report.peak_thread_share = peak.busy;
        report.peak_thread_wait = peak.wait;
        report.peak_thread_occupied = peak.occupied;
        report.generator.reactor = self.team.reactor;
        report.generator.scheduling = match self.scheduling {
            Scheduling::Normal => "normal",
            Scheduling::Batch => "batch",
        }
        .to_owned();
        report.generator.batch_delay = latency_ms(&self.added.delay);
        report.generator.clock_error = latency_ms(&self.added.clock_error);
        let warmup_ns = u64::try_from(spec.warmup.as_nanos()).unwrap_or(u64::MAX);
        report.measured_s = spec.measure.as_secs_f64();
        report.measure_start_monotonic_ns =
            self.start_ns.unwrap_or_default().saturating_add(warmup_ns);
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
        report.statements = statements(register, &total)?;
        report.fairness = fairness(&self.commits);
        report.schedule_error = latency_ms(&total.schedule_error.histogram()?);
        let DriveReport { transactions, stalled_at_end, overdue_at_end, .. } = report;
        let expected = transactions + stalled_at_end;
        let got = [
            response.len(),
            service.len() + overdue_at_end,
            self.commits.iter().sum::<u64>() + stalled_at_end + overdue_at_end,
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
    /// The same goes for what was due and had not started, which has a response time only.
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
        for backlog in &mut self.backlogs {
            while backlog.due_ns() < u64::MAX {
                let age_ns = self.timeline.end_ns.saturating_sub(backlog.due_ns());
                self.report.never_started += 1;
                if age_ns > recorded_max_ns {
                    self.report.overdue_at_end += 1;
                    response.saturating_record(age_ns.max(1));
                }
                backlog.advance();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::flight::Begun;
    use crate::recorder::Recorder;
    use crate::register::OTHER;
    use crate::report::ThreadUse;
    use crate::schedule::intervals;

    fn spec(measure: Duration) -> DriveSpec {
        DriveSpec { connections: 3, threads: Some(1), measure, seed: 1, ..DriveSpec::default() }
    }

    fn register() -> Register {
        let names = crate::register::PROTOCOL.map(str::to_owned).to_vec();
        Register { kinds: vec!["all".to_owned()], names, name_of: Vec::new() }
    }

    fn coordinator<'a>(
        spec: &'a DriveSpec,
        register: &'a Register,
        timeline: &'a Timeline,
        schedule: &'a [Interval],
        returns: Vec<Sender<Box<Recorded>>>,
    ) -> Coordinator<'a> {
        let team = Team {
            threads: 1,
            pins: Vec::new(),
            reactor: "none".to_owned(),
            words: Vec::new(),
            returns,
        };
        Coordinator::new(spec, register, timeline, schedule, team, Instant::now()).unwrap()
    }

    fn interval(index: usize, recorded: Box<Recorded>, in_flight: Vec<Age>) -> ThreadInterval {
        let (cpu, commits) = (ThreadUse::default(), vec![recorded.kinds[0].transactions]);
        ThreadInterval {
            index,
            recorded,
            cpu,
            sampled_s: 1.0,
            in_flight,
            backlog: None,
            commits,
            added: None,
        }
    }

    #[test]
    fn memory_goes_round_and_comes_back_empty() {
        let (register, spec) = (register(), spec(Duration::from_secs(6)));
        let timeline = Timeline::new(&spec).unwrap();
        let schedule = intervals(spec.warmup, spec.measure);
        let ((say, hear), (give_back, back)) = (channel(), channel());
        give_back.send(Recorded::new(&register).unwrap()).unwrap();
        let mut post = Post { thread: 0, say, back };
        let mut coordinator = coordinator(&spec, &register, &timeline, &schedule, vec![give_back]);
        let mut recorder = Recorder::new(&register).unwrap();
        let (mut places, mut told) = (Vec::new(), Vec::new());
        for index in 0..6 {
            recorder.attempt();
            recorder.refused(OTHER, 1213);
            recorder.retry(0);
            recorder.commit(0, Begun { intended_ns: 0, started_ns: 0 }, 1_000_000);
            let recorded = recorder.cut(post.emptied().unwrap());
            places.push(std::ptr::from_ref(&*recorded));
            post.hand_over(interval(index, recorded, Vec::new()));
            let Ok(Message::Interval { thread: 0, interval }) = hear.recv() else { panic!() };
            coordinator.waiting[0].push_back(interval);
            let tell = coordinator.tell(&mut |event| {
                if let DriveEvent::Second(second) = event {
                    told.push((second.transactions, second.retries, second.errors["1213"]));
                }
            });
            tell.unwrap();
        }
        assert_eq!(told, [(1, 1, 1); 6]);
        assert_ne!(places[0], places[1]);
        assert!(places.iter().zip(&places[2..]).all(|(before, after)| before == after));
        let report = coordinator.finish().unwrap();
        assert_eq!((report.transactions, report.retries), (6, 6));
    }

    #[test]
    fn only_what_is_older_than_all_that_ended_is_a_stall() {
        let (register, spec) = (register(), spec(Duration::from_secs(1)));
        let timeline = Timeline::new(&spec).unwrap();
        let schedule = intervals(spec.warmup, spec.measure);
        let mut coordinator =
            coordinator(&spec, &register, &timeline, &schedule, vec![channel().0]);
        let mut recorder = Recorder::new(&register).unwrap();
        for _ in 0..100 {
            recorder.commit(0, Begun { intended_ns: 0, started_ns: 0 }, 4_000_000);
        }
        let recorded = recorder.cut(Recorded::new(&register).unwrap());
        let age = |ms: u64| Age { response_ns: ms * 1_000_000, service_ns: ms * 500_000 };
        let ages = vec![age(1), age(600), age(4)];
        coordinator.waiting[0].push_back(interval(0, recorded, ages));
        coordinator.tell(&mut |_| {}).unwrap();
        let report = coordinator.finish().unwrap();
        assert_eq!(
            (report.transactions, report.in_flight_at_end, report.stalled_at_end),
            (100, 3, 1)
        );
        assert_eq!(report.oldest_in_flight_ms, 600.0);
        assert!((report.response.max / 600.0 - 1.0).abs() < 1e-3, "{:?}", report.response);
        assert!((report.service.max / 300.0 - 1.0).abs() < 1e-3, "{:?}", report.service);
        assert!((report.response.p99 / 4.0 - 1.0).abs() < 1e-3, "{:?}", report.response);
    }
}
