//! The connections of one generator thread before its start: connects them, gives each its task and
//! hands all to the thread's loop.
//!
//! The only place in a thread that knows the workload's type. Tasks go on as [`Task`]s, which cost
//! an indirect call for each answer, so that the loop and its reactors are compiled once and not
//! once for each workload.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wire::{Decoder, Template};

use crate::batching::Batch;
use crate::clock::Clock;
use crate::connect::{Connected, connect};
use crate::dialler::Dialler;
use crate::error::DriveError;
use crate::handover::HandOver;
use crate::lane::Lane;
use crate::live::{Identity, live};
use crate::policy::Policy;
use crate::reactor::Reactor;
use crate::register::Register;
use crate::schedule::Interval;
use crate::session::Session;
use crate::spec::DriveSpec;
use crate::starts::Starts;
use crate::thread::{Task, Thread, target, watch};
use crate::timeline::Timeline;
use crate::workload::{Statement, Workload};

/// Flags that end a drive early; raised, never lowered.
#[derive(Clone, Copy)]
pub(crate) struct Stops<'a> {
    /// The caller's.
    pub asked: &'a AtomicBool,
    /// Another thread failed.
    pub failed: &'a AtomicBool,
}

impl Stops<'_> {
    pub(crate) fn check(self) -> Result<(), DriveError> {
        if self.asked.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed) {
            return Err(DriveError::Stopped);
        }
        Ok(())
    }
}

/// What every thread of a drive is told.
#[derive(Clone, Copy)]
pub(crate) struct Brief<'a> {
    /// What is asked.
    pub spec: &'a DriveSpec,
    /// What is counted apart.
    pub register: &'a Register,
    /// Rate and connections.
    pub timeline: &'a Arc<Timeline>,
    /// Statements that each connection prepares, or none.
    pub prepared: &'a [Statement],
    /// Statements that travel as text, or none.
    pub texts: &'a [Statement],
    /// Why it may end early.
    pub stops: Stops<'a>,
    /// Generator threads.
    pub threads: u32,
}

/// The connections of one thread before the start.
pub(crate) struct Crew<'a> {
    brief: Brief<'a>,
    thread: u32,
    /// Ordinals in the whole drive, which choose target and random stream.
    ordinals: Vec<u32>,
    connected: Vec<Connected>,
}

impl<'a> Crew<'a> {
    /// Connects every `threads`-th connection, beginning with that of the thread's own number, one
    /// after the other.
    pub(crate) fn connect(brief: Brief<'a>, thread: u32) -> Result<Crew<'a>, DriveError> {
        let Brief { spec, prepared, stops, threads, .. } = brief;
        let ordinals: Vec<u32> =
            (thread..spec.connections_max()).step_by(threads as usize).collect();
        let mut connected = Vec::with_capacity(ordinals.len());
        for &ordinal in &ordinals {
            stops.check()?;
            connected.push(connect(target(spec, ordinal), prepared)?);
        }
        Ok(Crew { brief, thread, ordinals, connected })
    }

    /// The only thread of a drive, whose connections stand.
    pub(crate) fn alone(brief: Brief<'a>, connected: Vec<Connected>) -> Crew<'a> {
        Crew { brief, thread: 0, ordinals: (0..).take(connected.len()).collect(), connected }
    }

    /// How many connections it has.
    pub(crate) fn len(&self) -> usize {
        self.connected.len()
    }

    /// Drives `workload` from `start_ns` on by `reactor`, which has been made for so many
    /// connections; `coordinator` gets each interval as it ends, and `dialler`, if there is one,
    /// makes lost connections again.
    pub(crate) fn run<W: Workload, R: Reactor>(
        self,
        workload: &W,
        mut reactor: R,
        start_ns: u64,
        schedule: &[Interval],
        dialler: Option<&Dialler>,
        coordinator: &mut dyn HandOver,
    ) -> Result<(), DriveError> {
        let Crew { brief, thread, ordinals, connected } = self;
        let Brief { spec, register, timeline, texts, stops, threads, .. } = brief;
        let starts = Starts::new(timeline, thread, threads, ordinals.len(), start_ns);
        let lane = Rc::new(Lane::new(register, ordinals.len(), starts)?);
        let (mut tasks, mut transports) = (Vec::<Option<Task>>::new(), Vec::new());
        let mut usual: Rc<[u32]> = Rc::new([]);
        let texts: Rc<[Template]> = texts.iter().map(|text| Template::new(&text.text)).collect();
        let policy = Rc::new(Policy::new(spec));
        for (token, (connected, &ordinal)) in connected.into_iter().zip(&ordinals).enumerate() {
            if usual[..] != connected.statements {
                usual = connected.statements.into();
            }
            let session = Session::new(Rc::clone(&lane), Rc::clone(&usual), Rc::clone(&texts));
            let (seed, stream) = (spec.seed, u64::from(ordinal));
            let kinds = register.kinds.len();
            let first_slot = register.first_slot(ordinal);
            let identity = Identity { token, seed, stream, kinds, first_slot };
            let task = live(Rc::clone(&lane), session, workload, identity, Rc::clone(&policy));
            tasks.push(Some(Box::pin(task) as Task));
            reactor.add(token, connected.socket).map_err(watch)?;
            transports.push(connected.transport);
        }
        let decoders = ordinals.iter().map(|_| Decoder::new()).collect();
        let keeping = vec![None; ordinals.len()];
        let running = tasks.len();
        let clock = Clock::new(start_ns, schedule);
        let mut thread = Thread {
            spec,
            register,
            ordinals,
            lane,
            reactor,
            transports,
            scratch: Vec::new(),
            decoders,
            keeping,
            tasks,
            running,
            clock,
            dialler,
            missing: 0,
            dismissed: false,
            batch: Batch::new(spec.engine.batching, R::TOGETHER)?,
        };
        let driven = match thread.wait_for_start(stops) {
            Ok(()) => thread.drive(stops, coordinator),
            Err(stopped) => return Err(stopped),
        };
        if driven.is_err() {
            // What ended it is told; that its last interval could not be kept would be no news.
            let _ = thread.cut_short(coordinator);
        }
        driven
    }
}
