//! Hears what the generator threads say: starts them together, has their intervals added up
//! (`window`), tells them, and reports the whole.
//!
//! Runs in the caller's thread. Generator threads send it messages and never wait for it, except
//! for the common start.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use crate::cpu::monotonic_ns;
use crate::error::DriveError;
use crate::handover::{HandOver, ThreadInterval};
use crate::recorder::Recorded;
use crate::register::Register;
use crate::report::{DriveEvent, DriveReport};
use crate::schedule::Interval;
use crate::spec::{DriveSpec, Scheduling};
use crate::timeline::Timeline;
use crate::window::Window;

/// From the word to the first transaction, for all threads to hear it.
const LEAD_NS: u64 = 20_000_000;

/// What a generator thread says.
pub(crate) enum Message {
    /// Its connections stand; it is pinned where it should be, and in this class.
    Connected { pinned: bool, scheduling: Scheduling },
    /// An interval ended.
    Interval { thread: usize, interval: ThreadInterval },
    /// It is done, and has handed over all that it had.
    Ended { thread: usize, result: Result<(), DriveError> },
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
    team: Team,
    /// By thread: intervals that came and wait for those of the other threads.
    waiting: Vec<VecDeque<ThreadInterval>>,
    /// By thread: it has ended.
    ended: Vec<bool>,
    began: Instant,
    start_ns: Option<u64>,
    connected: u32,
    window: Window<'a>,
    /// What all threads were granted.
    scheduling: Scheduling,
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
            waiting: (0..team.threads).map(|_| VecDeque::new()).collect(),
            ended: vec![false; team.threads as usize],
            began,
            start_ns: None,
            connected: 0,
            window: Window::new(spec, register, timeline, schedule)?,
            scheduling: spec.engine.scheduling,
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
                }
                Message::Ended { thread, result: ended } => {
                    self.ended[thread] = true;
                    if let Err(error) = ended {
                        failed.store(true, Ordering::Relaxed);
                        self.team.words.clear();
                        // The first error is the cause; that others were stopped follows from it.
                        if matches!(result, Ok(()) | Err(DriveError::Stopped)) {
                            result = Err(error);
                        }
                    }
                }
            }
            if let Err(error) = self.tell(on_event) {
                failed.store(true, Ordering::Relaxed);
                result = result.and(Err(error));
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

    /// Adds up and tells every interval that all threads have handed over, but for those that have
    /// ended and will not.
    fn tell(&mut self, on_event: &mut dyn FnMut(DriveEvent)) -> Result<(), DriveError> {
        while self.waiting.iter().any(|intervals| !intervals.is_empty())
            && self.waiting.iter().zip(&self.ended).all(|(own, ended)| *ended || !own.is_empty())
        {
            let parts: Vec<Option<ThreadInterval>> =
                self.waiting.iter_mut().map(VecDeque::pop_front).collect();
            let returns = &self.team.returns;
            let second = self.window.add_up(parts, &mut |thread, empty| {
                // A thread that has ended takes nothing back.
                let _ = returns[thread].send(empty);
            })?;
            on_event(DriveEvent::Second(second));
        }
        Ok(())
    }

    /// The report, when every thread has ended well.
    pub(crate) fn finish(self) -> Result<DriveReport, DriveError> {
        self.window.check_whole()?;
        self.report()
    }

    /// What was measured until the drive ended early; `None` if nothing was, or if it contradicts
    /// itself, which is no wonder where a thread has died.
    pub(crate) fn cut_short(self) -> Option<DriveReport> {
        if self.window.has_begun() { self.report().ok() } else { None }
    }

    fn report(self) -> Result<DriveReport, DriveError> {
        let mut report = self.window.report(self.start_ns.unwrap_or_default())?;
        report.threads = self.team.threads;
        report.generator.reactor = self.team.reactor;
        report.generator.scheduling = match self.scheduling {
            Scheduling::Normal => "normal",
            Scheduling::Batch => "batch",
        }
        .to_owned();
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::flight::{Age, Begun};
    use crate::recorder::Recorder;
    use crate::register::OTHER;
    use crate::report::ThreadUse;
    use crate::schedule::intervals;
    use crate::starts::TakenUp;

    fn spec(measure: Duration) -> DriveSpec {
        DriveSpec { connections: 3, threads: Some(1), measure, seed: 1, ..DriveSpec::default() }
    }

    fn register() -> Register {
        let names = crate::register::PROTOCOL.map(str::to_owned).to_vec();
        Register { kinds: vec!["all".to_owned()], names, name_of: Vec::new(), targets: 1 }
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
            until_ns: (index as u64 + 1) * 1_000_000_000,
            recorded,
            cpu,
            sampled_s: 1.0,
            taken_up: TakenUp::default(),
            away: 0,
            overdue: Vec::new(),
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
