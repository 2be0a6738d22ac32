//! A whole drive: checks what is asked, chooses and starts the threads, and lets the `coordinator`
//! listen to them until all have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use crate::coordinator::{Coordinator, Message, Post, Team};
use crate::cpu::{allowed_cpus, choose_pins, choose_threads, pin_to, schedule};
use crate::crew::{Brief, Crew, Stops};
use crate::descriptors;
use crate::dialler::Dialler;
use crate::epoll::Epoll;
use crate::error::DriveError;
use crate::reactor::Reactor;
use crate::recorder::Recorded;
use crate::register::Register;
use crate::report::{DriveEvent, DriveReport};
use crate::schedule::{Interval, intervals};
use crate::spec::{DriveSpec, OnLost, ReactorChoice, StatementProtocol};
use crate::thread::watch;
use crate::timeline::Timeline;
use crate::uring::Uring;
use crate::workload::Workload;

/// Drives `workload` as `spec` says and tells `on_event`; `stop` ends it early (an error then)
/// within 100 ms, or within a connection's handshake. Before an error is returned,
/// [`DriveEvent::EndedEarly`] tells what had been measured.
///
/// # Errors
/// A target that cannot be reached, refuses a statement with an error that is not retried, or goes
/// away where connections are not made again: the first such error of any connection ends the
/// drive.
pub fn drive<W: Workload>(
    workload: &W,
    spec: &DriveSpec,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(DriveEvent),
) -> Result<DriveReport, DriveError> {
    let refused = match spec.engine.reactor {
        ReactorChoice::Epoll => None,
        ReactorChoice::Auto | ReactorChoice::IoUring => Uring::probe().err(),
    };
    match (spec.engine.reactor, refused) {
        (ReactorChoice::Epoll, _) => {
            drive_by::<W, Epoll>(workload, spec, Epoll::NAME, stop, on_event)
        }
        (_, None) => drive_by::<W, Uring>(workload, spec, Uring::NAME, stop, on_event),
        (ReactorChoice::Auto, Some(refused)) => {
            let reactor = format!("{} ({}: {refused})", Epoll::NAME, Uring::NAME);
            drive_by::<W, Epoll>(workload, spec, &reactor, stop, on_event)
        }
        (ReactorChoice::IoUring, Some(source)) => Err(DriveError::IoUring { source }),
    }
}

fn drive_by<W: Workload, R: Reactor>(
    workload: &W,
    spec: &DriveSpec,
    reactor: &str,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(DriveEvent),
) -> Result<DriveReport, DriveError> {
    if spec.targets.is_empty() {
        return Err(DriveError::Spec("no target"));
    }
    if spec.connections == 0 {
        return Err(DriveError::Spec("no connections"));
    }
    if spec.measure.is_zero() {
        return Err(DriveError::Spec("nothing is measured in no time"));
    }
    let timeline = Arc::new(Timeline::new(spec)?);
    let cpus = allowed_cpus();
    let connections = spec.connections_max();
    let threads = choose_threads(spec.threads, connections, cpus.len());
    let pins = choose_pins(spec.pin.as_deref(), threads, &cpus);
    let descriptors = descriptors::needed(connections, threads);
    descriptors::make_room(descriptors);
    let register = Register::new(workload, spec.targets.len());
    let (prepared, texts) = match spec.protocol {
        StatementProtocol::Prepared => (workload.statements(), Vec::new()),
        StatementProtocol::Text => (Vec::new(), workload.statements()),
    };
    let schedule = intervals(spec.warmup, spec.measure);
    let mut diallers = match spec.on_lost {
        OnLost::Fail => Vec::new(),
        OnLost::Reconnect => Dialler::start(&spec.targets, &prepared, threads)?,
    }
    .into_iter();
    let failed = AtomicBool::new(false);
    let stops = Stops { asked: stop, failed: &failed };
    let (prepared, texts) = (&prepared[..], &texts[..]);
    let (register, timeline) = (&register, &timeline);
    let brief = Brief { spec, register, timeline, prepared, texts, stops, threads };
    let began = Instant::now();
    std::thread::scope(|scope| {
        let (say, hear) = channel();
        let (mut words, mut returns, mut handles) = (Vec::new(), Vec::new(), Vec::new());
        for thread in 0..threads {
            let (word, start) = channel();
            words.push(word);
            let (give_back, back) = channel();
            // The second of the two that every thread has.
            let _ = give_back.send(Recorded::new(register)?);
            returns.push(give_back);
            let dialler = diallers.next();
            let pin = pins.get(thread as usize).copied();
            let (say, schedule) = (say.clone(), &schedule[..]);
            let spawned = std::thread::Builder::new().name(format!("load-{thread}")).spawn_scoped(
                scope,
                move || {
                    let part = Part { brief, schedule, thread, pin, dialler };
                    let mut post = Post { thread: thread as usize, say: say.clone(), back };
                    let result = part.run::<W, R>(workload, &say, &start, &mut post);
                    let result = result.map_err(|error| descriptors::explain(error, descriptors));
                    let _ = say.send(Message::Ended { thread: thread as usize, result });
                },
            );
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    failed.store(true, Ordering::Relaxed);
                    return Err(DriveError::System { what: "start", source });
                }
            }
        }
        drop(say);
        let team = Team { threads, pins, reactor: reactor.to_owned(), words, returns };
        let mut coordinator = Coordinator::new(spec, register, timeline, &schedule, team, began)?;
        let result = coordinator.listen(&hear, &failed, on_event);
        // Joining each thread here keeps the panic of one, which would be ours, a value.
        let died = handles.into_iter().filter_map(|handle| handle.join().err()).count();
        if let Err(error) = result {
            if let Some(report) = coordinator.cut_short() {
                on_event(DriveEvent::EndedEarly(Box::new(report)));
            }
            return Err(error);
        }
        if died > 0 {
            return Err(DriveError::Internal("a generator thread panicked".to_owned()));
        }
        coordinator.finish()
    })
}

/// What one generator thread is told.
struct Part<'a> {
    brief: Brief<'a>,
    schedule: &'a [Interval],
    thread: u32,
    pin: Option<usize>,
    dialler: Option<Dialler>,
}

impl Part<'_> {
    fn run<W: Workload, R: Reactor>(
        &self,
        workload: &W,
        say: &Sender<Message>,
        start: &Receiver<u64>,
        post: &mut Post,
    ) -> Result<(), DriveError> {
        // A thread that may not be pinned works all the same; it is told in `Connected`.
        let pinned = self.pin.is_some_and(|cpu| pin_to(cpu).is_ok());
        let scheduling = schedule(self.brief.spec.engine.scheduling);
        let crew = Crew::connect(self.brief, self.thread)?;
        let _ = say.send(Message::Connected { pinned, scheduling });
        // No word comes if another thread could not connect.
        let start_ns = start.recv().map_err(|_| DriveError::Stopped)?;
        let reactor = R::new(crew.len()).map_err(watch)?;
        crew.run(workload, reactor, start_ns, self.schedule, self.dialler.as_ref(), post)
    }
}
