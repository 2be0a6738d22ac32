//! One generator thread: its connections, its reactor, its executor.
//!
//! Task `i` is connection `i`. A task is polled when an answer for it is complete, never
//! speculatively, so wakers do nothing. The clock is read once for each read of a socket, after the
//! read and before its bytes are looked at: that instant ends the transactions that the bytes
//! complete and starts the next ones, so a transaction's time includes all that the generator
//! itself spends on it.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use wire::{Command, Decoder, NoRows, Step};

use crate::clock::Clock;
use crate::connect::{Connected, connect};
use crate::cpu::monotonic_ns;
use crate::error::DriveError;
use crate::flight::{Age, Flight};
use crate::lane::Lane;
use crate::live::{Identity, live};
use crate::reactor::{Event, Reactor, Wait};
use crate::recorder::Recorded;
use crate::report::ThreadUse;
use crate::schedule::Interval;
use crate::session::Session;
use crate::spec::{DriveSpec, Target};
use crate::transport::Transport;
use crate::workload::{Statement, TransactionError, Workload};

/// `stop` is looked at this often.
const ATTENTION: Duration = Duration::from_millis(50);
/// Transactions that are still running this long after the end are abandoned.
const DRAIN_NS: u64 = 5_000_000_000;

/// What a thread hands over when an interval ends.
pub(crate) struct ThreadInterval {
    /// Which of the schedule's intervals.
    pub index: usize,
    /// What was counted.
    pub recorded: Box<Recorded>,
    /// CPU used.
    pub cpu: ThreadUse,
    /// Seconds in which it was used: the interval's length, but for how late its ends were noticed.
    pub sampled_s: f64,
    /// Of the last interval, transactions in flight at its end.
    pub in_flight: Vec<Age>,
}

/// The way of intervals to the coordinator, and of their memory back.
pub(crate) trait HandOver {
    /// A cleared [`Recorded`] that came back, if one has.
    fn emptied(&mut self) -> Option<Box<Recorded>>;

    /// Takes an interval that has ended.
    fn hand_over(&mut self, interval: ThreadInterval);
}

/// Flags that end a drive early; raised, never lowered.
#[derive(Clone, Copy)]
pub(crate) struct Stops<'a> {
    /// The caller's.
    pub asked: &'a AtomicBool,
    /// Another thread failed.
    pub failed: &'a AtomicBool,
}

impl Stops<'_> {
    fn check(self) -> Result<(), DriveError> {
        if self.asked.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed) {
            return Err(DriveError::Stopped);
        }
        Ok(())
    }
}

/// The connections of one thread before the start.
pub(crate) struct Crew<'a> {
    spec: &'a DriveSpec,
    stops: Stops<'a>,
    /// Ordinals in the whole drive, which choose target and random stream.
    ordinals: Vec<u32>,
    connected: Vec<Connected>,
}

impl<'a> Crew<'a> {
    /// Connects every `threads`-th connection, beginning with `first`, one after the other.
    pub(crate) fn connect(
        spec: &'a DriveSpec,
        statements: &[Statement],
        first: u32,
        threads: u32,
        stops: Stops<'a>,
    ) -> Result<Crew<'a>, DriveError> {
        let ordinals: Vec<u32> = (first..spec.connections).step_by(threads as usize).collect();
        let mut connected = Vec::with_capacity(ordinals.len());
        for &ordinal in &ordinals {
            stops.check()?;
            connected.push(connect(target(spec, ordinal), statements)?);
        }
        Ok(Crew { spec, stops, ordinals, connected })
    }

    /// Drives `workload` from `start_ns` on; `coordinator` gets each interval as it ends.
    pub(crate) fn run<W: Workload, R: Reactor>(
        self,
        workload: &W,
        start_ns: u64,
        schedule: &[Interval],
        coordinator: &mut dyn HandOver,
    ) -> Result<(), DriveError> {
        let Crew { spec, stops, ordinals, connected } = self;
        let statements = connected.first().map_or(0, |connected| connected.statements.len());
        let lane = Rc::new(Lane::new(statements, ordinals.len())?);
        let watch = |source| DriveError::System { what: "watch its connections", source };
        let mut reactor = R::new(ordinals.len()).map_err(watch)?;
        let (mut tasks, mut transports) = (Vec::new(), Vec::new());
        let mut usual: Rc<[u32]> = Rc::new([]);
        let retried: Rc<[u16]> = spec.retried_errors[..].into();
        for (token, (connected, &ordinal)) in connected.into_iter().zip(&ordinals).enumerate() {
            if usual[..] != connected.statements {
                usual = connected.statements.into();
            }
            let session = Session::new(Rc::clone(&lane), Rc::clone(&usual));
            let identity = Identity { token, seed: spec.seed, stream: u64::from(ordinal) };
            let task = live(Rc::clone(&lane), session, workload, identity, Rc::clone(&retried));
            tasks.push(Some(Box::pin(task)));
            reactor.add(token, connected.socket).map_err(watch)?;
            transports.push(connected.transport);
        }
        let decoders = ordinals.iter().map(|_| Decoder::new()).collect();
        let running = tasks.len();
        let clock = Clock::new(start_ns, schedule);
        let scratch = Vec::new();
        let mut crew = Running {
            spec,
            ordinals,
            lane,
            reactor,
            transports,
            scratch,
            decoders,
            tasks,
            running,
            clock,
        };
        crew.wait_for_start(stops)?;
        crew.drive(stops, coordinator)
    }
}

fn target(spec: &DriveSpec, ordinal: u32) -> &Target {
    &spec.targets[ordinal as usize % spec.targets.len()]
}

/// A thread at work.
struct Running<'a, R, F> {
    spec: &'a DriveSpec,
    ordinals: Vec<u32>,
    lane: Rc<Lane>,
    reactor: R,
    /// By token.
    transports: Vec<Transport>,
    /// Where bytes are encrypted and decrypted.
    scratch: Vec<u8>,
    /// By token, as `tasks`.
    decoders: Vec<Decoder>,
    /// `None` where the task has ended.
    tasks: Vec<Option<Pin<Box<F>>>>,
    /// Tasks that have not ended.
    running: usize,
    clock: Clock<'a>,
}

impl<R, F> Running<'_, R, F>
where
    R: Reactor,
    F: Future<Output = Result<(), TransactionError>>,
{
    fn wait_for_start(&mut self, stops: Stops<'_>) -> Result<(), DriveError> {
        loop {
            stops.check()?;
            let left = self.clock.start_ns().saturating_sub(monotonic_ns());
            if left == 0 {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left).min(ATTENTION));
        }
        self.clock.sample(monotonic_ns());
        Ok(())
    }

    fn drive(
        &mut self,
        stops: Stops<'_>,
        coordinator: &mut dyn HandOver,
    ) -> Result<(), DriveError> {
        self.lane.set_now(monotonic_ns());
        for token in 0..self.tasks.len() {
            self.poll_task(token)?;
            self.send(token)?;
        }
        let deadline_ns = self.clock.end_ns().saturating_add(DRAIN_NS);
        loop {
            let now_ns = monotonic_ns();
            self.cut_until(now_ns, coordinator)?;
            stops.check()?;
            let boundary_ns = match self.clock.boundary_ns() {
                Some(boundary_ns) => boundary_ns,
                None if self.running == 0 || now_ns >= deadline_ns => break,
                None => deadline_ns,
            };
            let until_ns = boundary_ns.min(now_ns + ATTENTION.as_nanos() as u64);
            self.reactor
                .wait(Wait { until_ns, company: 1, patience: Duration::ZERO })
                .map_err(|source| DriveError::System { what: "wait for answers", source })?;
            while self.turn(coordinator)? {}
        }
        for (token, task) in self.tasks.iter().enumerate() {
            // The server rolls back when we close. Whoever waits for a rollback has counted its
            // attempt already.
            if task.is_some() && matches!(self.lane.flight(token), Flight::Attempt(_)) {
                self.lane.record(|recorder| recorder.give_up());
            }
        }
        self.lane.record(|recorder| recorder.check())
    }

    /// Handles one event; false when there is none.
    #[inline]
    fn turn(&mut self, coordinator: &mut dyn HandOver) -> Result<bool, DriveError> {
        let Some((token, event)) = self.reactor.next() else { return Ok(false) };
        let mut rest = match event {
            Event::Received(bytes) => self.transports[token]
                .open(bytes, &mut self.scratch)
                .map_err(|source| lost(self.spec, self.ordinals[token], source))?,
            Event::Closed => {
                let source = io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server closed the connection",
                );
                return Err(lost(self.spec, self.ordinals[token], source));
            }
            Event::Failed(source) => return Err(lost(self.spec, self.ordinals[token], source)),
        };
        let now_ns = monotonic_ns();
        cut_until(&mut self.clock, &self.lane, now_ns, coordinator)?;
        self.lane.set_now(now_ns);
        while !rest.is_empty() {
            let step = self.decoders[token].feed(rest, &mut NoRows);
            match step.map_err(|source| protocol(self.spec, self.ordinals[token], source))? {
                Step::NeedMore => break,
                Step::Reply { reply, used } => {
                    rest = &rest[used..];
                    self.lane.put_reply(reply);
                    let task = &mut self.tasks[token];
                    let ended = poll(task, &self.lane, &mut self.decoders[token]);
                    self.running -= usize::from(
                        ended.map_err(|error| failed(self.spec, self.ordinals[token], error))?,
                    );
                }
            }
        }
        self.send(token)?;
        Ok(true)
    }

    fn poll_task(&mut self, token: usize) -> Result<(), DriveError> {
        let ended = poll(&mut self.tasks[token], &self.lane, &mut self.decoders[token])
            .map_err(|error| failed(self.spec, self.ordinals[token], error))?;
        self.running -= usize::from(ended);
        Ok(())
    }

    /// Sends what the task of `token` has encoded, or says goodbye if it has ended.
    #[inline]
    fn send(&mut self, token: usize) -> Result<(), DriveError> {
        let ended = self.tasks[token].is_none();
        if ended {
            self.lane.encode(Command::Quit);
        }
        let (reactor, transport) = (&mut self.reactor, &mut self.transports[token]);
        let scratch = &mut self.scratch;
        let sent = self.lane.flush(|bytes| reactor.send(token, transport.seal(bytes, scratch)?));
        if ended {
            // Whether the farewell arrived is nobody's concern.
            self.reactor.close(token);
            return Ok(());
        }
        sent.map_err(|source| lost(self.spec, self.ordinals[token], source))
    }

    fn cut_until(&mut self, now_ns: u64, coordinator: &mut dyn HandOver) -> Result<(), DriveError> {
        cut_until(&mut self.clock, &self.lane, now_ns, coordinator)
    }
}

/// Ends the intervals that lie before `now_ns`.
#[inline]
fn cut_until(
    clock: &mut Clock<'_>,
    lane: &Lane,
    now_ns: u64,
    coordinator: &mut dyn HandOver,
) -> Result<(), DriveError> {
    while let Some(boundary_ns) = clock.boundary_ns()
        && now_ns >= boundary_ns
    {
        let (cpu, sampled_s) = clock.sample(now_ns);
        // Only a coordinator that is a whole interval late has nothing to give back; then memory
        // is cheaper than waiting.
        let empty = match coordinator.emptied() {
            Some(empty) => empty,
            None => Recorded::new()?,
        };
        let recorded = lane.cut(empty);
        let index = clock.advance();
        let is_last = clock.boundary_ns().is_none();
        let in_flight = if is_last { lane.ages(boundary_ns) } else { Vec::new() };
        if is_last {
            lane.end();
        }
        coordinator.hand_over(ThreadInterval { index, recorded, cpu, sampled_s, in_flight });
    }
    Ok(())
}

/// Polls a task, tells its decoder what it waits for, and drops it when it has ended (then true).
#[inline]
fn poll<F>(
    task: &mut Option<Pin<Box<F>>>,
    lane: &Lane,
    decoder: &mut Decoder,
) -> Result<bool, TransactionError>
where
    F: Future<Output = Result<(), TransactionError>>,
{
    let Some(future) = task else { return Ok(false) };
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => {
            if let Some((expect, sequence)) = lane.take_expected() {
                decoder.expect(expect, sequence);
            }
            Ok(false)
        }
        Poll::Ready(result) => {
            *task = None;
            result.map(|()| true)
        }
    }
}

#[cold]
fn lost(spec: &DriveSpec, connection: u32, source: io::Error) -> DriveError {
    DriveError::Lost { address: target(spec, connection).address.clone(), connection, source }
}

#[cold]
fn protocol(spec: &DriveSpec, connection: u32, source: wire::DecodeError) -> DriveError {
    DriveError::Protocol { address: target(spec, connection).address.clone(), source }
}

#[cold]
fn failed(spec: &DriveSpec, connection: u32, error: TransactionError) -> DriveError {
    match error {
        TransactionError::Server(source) => DriveError::Statement {
            address: target(spec, connection).address.clone(),
            source: *source,
        },
        TransactionError::Lost => {
            let source = io::Error::from(io::ErrorKind::ConnectionReset);
            lost(spec, connection, source)
        }
        TransactionError::Workload(reason) => DriveError::Workload(reason),
    }
}
