//! One generator thread: its connections, its reactor, its executor.
//!
//! Task `i` is connection `i`. A task is polled when an answer for it is complete or a start is due
//! (see `lane::Wake`), never speculatively, so wakers do nothing. The clock is read when bytes have
//! come and before they are looked at, for a few events together where these take no more than
//! microseconds: that instant ends the transactions that the bytes complete and starts the next
//! ones, so a transaction's time includes all that the generator itself spends on it. How old an
//! instant had become when it was last used is recorded (`batching`).

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use wire::{Command, DecodeError, Decoder, FirstRow, NoRows, Step};

use crate::batching::Batch;
use crate::clock::Clock;
use crate::cpu::monotonic_ns;
use crate::crew::Stops;
use crate::dialler::{Dialled, Dialler};
use crate::error::DriveError;
use crate::flight::Flight;
use crate::handover::{HandOver, cut_short, cut_until};
use crate::lane::{Lane, Wake};
use crate::reactor::{Event, Reactor};
use crate::register::Register;
use crate::spec::{DriveSpec, Target};
use crate::transport::Transport;
use crate::workload::TransactionError;

/// `stop` is looked at this often.
const ATTENTION: Duration = Duration::from_millis(50);
/// Transactions that are still running this long after the end are abandoned.
const DRAIN_NS: u64 = 5_000_000_000;

pub(crate) fn target(spec: &DriveSpec, ordinal: u32) -> &Target {
    &spec.targets[ordinal as usize % spec.targets.len()]
}

/// The life of one connection.
pub(crate) type Task<'a> = Pin<Box<dyn Future<Output = Result<(), TransactionError>> + 'a>>;

/// A thread at work.
pub(crate) struct Thread<'a, R> {
    pub spec: &'a DriveSpec,
    pub register: &'a Register,
    pub ordinals: Vec<u32>,
    pub lane: Rc<Lane>,
    pub reactor: R,
    /// By token.
    pub transports: Vec<Transport>,
    /// Where bytes are encrypted and decrypted.
    pub scratch: Vec<u8>,
    /// By token, as `tasks`.
    pub decoders: Vec<Decoder>,
    /// By token: where the first row of the answer under way is to be kept.
    pub keeping: Vec<Option<Rc<RefCell<FirstRow>>>>,
    /// `None` where the task has ended.
    pub tasks: Vec<Option<Task<'a>>>,
    /// Tasks that have not ended.
    pub running: usize,
    pub clock: Clock<'a>,
    /// Makes lost connections again; without it a loss ends the drive.
    pub dialler: Option<&'a Dialler>,
    /// Connections that it has been asked for.
    pub missing: usize,
    /// The tasks that waited for a start know that none comes any more.
    pub dismissed: bool,
    pub batch: Batch,
}

impl<R: Reactor> Thread<'_, R> {
    pub(crate) fn wait_for_start(&mut self, stops: Stops<'_>) -> Result<(), DriveError> {
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

    pub(crate) fn drive(
        &mut self,
        stops: Stops<'_>,
        coordinator: &mut dyn HandOver,
    ) -> Result<(), DriveError> {
        for token in 0..self.tasks.len() {
            self.lane.set_now(monotonic_ns());
            self.poll_task(token)?;
            self.send(token)?;
        }
        let deadline_ns = self.clock.end_ns().saturating_add(DRAIN_NS);
        loop {
            let now_ns = monotonic_ns();
            self.batch.end(now_ns);
            self.cut_until(now_ns, coordinator)?;
            stops.check()?;
            self.dismiss_if_over()?;
            self.take_connections()?;
            self.start_due(now_ns)?;
            let boundary_ns = match self.clock.boundary_ns() {
                Some(boundary_ns) => boundary_ns,
                None if self.running == 0 || now_ns >= deadline_ns => break,
                None => deadline_ns,
            };
            let until_ns = boundary_ns
                .min(now_ns + ATTENTION.as_nanos() as u64)
                .min(self.lane.next_start_ns());
            self.reactor
                .wait(self.batch.begin(now_ns, until_ns))
                .map_err(|source| DriveError::System { what: "wait for answers", source })?;
            while self.turn(coordinator)? {
                // Between two readings of the clock nothing becomes due.
                if self.batch.has_just_been_stamped() {
                    self.start_due(self.lane.now_ns())?;
                }
            }
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
                return self.lose(token, source).map(|()| true);
            }
            Event::Failed(source) => return self.lose(token, source).map(|()| true),
        };
        if self.batch.wants_clock() {
            let now_ns = monotonic_ns();
            self.batch.stamp(now_ns);
            let Thread { clock, lane, register, batch, .. } = self;
            cut_until(clock, lane, register, batch, now_ns, coordinator)?;
            lane.set_now(now_ns);
        }
        while !rest.is_empty() {
            let decoder = &mut self.decoders[token];
            let step = match &self.keeping[token] {
                None => decoder.feed(rest, &mut NoRows),
                Some(row) => decoder.feed(rest, &mut *row.borrow_mut()),
            };
            match step {
                Ok(Step::NeedMore) => break,
                Ok(Step::Reply { reply, used }) => {
                    rest = &rest[used..];
                    self.lane.wake(Wake::Reply(reply));
                    let task = &mut self.tasks[token];
                    let keeping = &mut self.keeping[token];
                    let ended = poll(task, &self.lane, &mut self.decoders[token], keeping);
                    self.running -= usize::from(
                        ended.map_err(|error| failed(self.spec, self.ordinals[token], error))?,
                    );
                    if self.lane.take_hung_up() {
                        self.redial(token);
                        return Ok(true);
                    }
                }
                // Some servers say why they close a connection that had asked nothing.
                Err(source @ DecodeError::Unsolicited) if self.dialler.is_some() => {
                    let source = io::Error::new(io::ErrorKind::ConnectionAborted, source);
                    return self.lose(token, source).map(|()| true);
                }
                Err(source) => return Err(protocol(self.spec, self.ordinals[token], source)),
            }
        }
        self.send(token)?;
        Ok(true)
    }

    /// The connection of `token` has broken off: the end of the drive, or of its transaction.
    #[cold]
    fn lose(&mut self, token: usize, source: io::Error) -> Result<(), DriveError> {
        if self.dialler.is_none() {
            return Err(lost(self.spec, self.ordinals[token], source));
        }
        self.lane.set_now(monotonic_ns());
        self.lane.wake(Wake::Lost);
        self.poll_task(token)?;
        if self.tasks[token].is_none() {
            self.reactor.close(token);
        }
        Ok(())
    }

    /// The task of `token` has given its connection up.
    #[cold]
    fn redial(&mut self, token: usize) {
        self.reactor.close(token);
        self.decoders[token] = Decoder::new();
        if let Some(dialler) = self.dialler {
            dialler.dial(token, self.ordinals[token] as usize % self.spec.targets.len());
            self.missing += 1;
        }
    }

    /// Goes on with the connections that have been made again, and counts those that could not be.
    fn take_connections(&mut self) -> Result<(), DriveError> {
        while self.missing > 0
            && let Some(dialled) = self.dialler.and_then(Dialler::dialled)
        {
            let (token, connected, took_ns) = match dialled {
                Dialled::Connected { token, connected, took_ns } => (token, connected, took_ns),
                Dialled::Failed { code } => {
                    self.lane.record(|recorder| recorder.dial_failed(code));
                    continue;
                }
            };
            self.missing -= 1;
            if self.tasks[token].is_none() {
                continue;
            }
            self.lane.record(|recorder| recorder.reconnect(took_ns));
            self.reactor.add(token, connected.socket).map_err(watch)?;
            self.transports[token] = connected.transport;
            self.lane.set_now(monotonic_ns());
            self.lane.return_to_work(token);
            self.lane.wake(Wake::Connected(connected.statements));
            self.poll_task(token)?;
            self.send(token)?;
        }
        Ok(())
    }

    fn poll_task(&mut self, token: usize) -> Result<(), DriveError> {
        let keeping = &mut self.keeping[token];
        let ended = poll(&mut self.tasks[token], &self.lane, &mut self.decoders[token], keeping)
            .map_err(|error| failed(self.spec, self.ordinals[token], error))?;
        self.running -= usize::from(ended);
        if self.lane.take_hung_up() {
            self.redial(token);
        }
        Ok(())
    }

    /// Starts what is due, if anything can be at `now_ns`, which may lie a little back.
    #[inline]
    fn start_due(&mut self, now_ns: u64) -> Result<(), DriveError> {
        if now_ns < self.lane.next_start_ns() {
            return Ok(());
        }
        loop {
            // Anew for each: a start should not be told earlier than it is.
            let now_ns = monotonic_ns();
            let Some(due) = self.lane.due(now_ns) else { return Ok(()) };
            self.lane.set_now(now_ns);
            self.lane.wake(Wake::Start(due.begun));
            self.poll_task(due.token)?;
            self.send(due.token)?;
        }
    }

    /// After the end, lets the tasks end that wait for a start.
    fn dismiss_if_over(&mut self) -> Result<(), DriveError> {
        if !self.lane.is_over() || self.dismissed {
            return Ok(());
        }
        self.dismissed = true;
        for token in 0..self.tasks.len() {
            if self.lane.dismiss(token) {
                self.lane.wake(Wake::Over);
                self.poll_task(token)?;
                self.send(token)?;
            }
        }
        Ok(())
    }

    /// Sends what the task of `token` has encoded, or says goodbye if it has ended.
    #[inline]
    fn send(&mut self, token: usize) -> Result<(), DriveError> {
        if self.tasks[token].is_none() {
            self.take_leave(token);
            return Ok(());
        }
        match self.flush(token) {
            Ok(()) => Ok(()),
            Err(source) => self.lose(token, source),
        }
    }

    #[inline(always)]
    fn flush(&mut self, token: usize) -> io::Result<()> {
        let (reactor, transport) = (&mut self.reactor, &mut self.transports[token]);
        let scratch = &mut self.scratch;
        self.lane.flush(|bytes| reactor.send(token, transport.seal(bytes, scratch)?))
    }

    #[cold]
    fn take_leave(&mut self, token: usize) {
        self.lane.encode_with(|out| Command::Quit.encode(out));
        // Whether the farewell arrived is nobody's concern.
        let _ = self.flush(token);
        self.reactor.close(token);
    }

    fn cut_until(&mut self, now_ns: u64, coordinator: &mut dyn HandOver) -> Result<(), DriveError> {
        let Thread { clock, lane, register, batch, .. } = self;
        cut_until(clock, lane, register, batch, now_ns, coordinator)
    }

    /// Hands over what was counted until now; the drive does not go on.
    #[cold]
    pub(crate) fn cut_short(&mut self, coordinator: &mut dyn HandOver) -> Result<(), DriveError> {
        let Thread { clock, lane, register, batch, .. } = self;
        cut_short(clock, lane, register, batch, monotonic_ns(), coordinator)
    }
}

/// Polls a task, tells its decoder what it waits for, and drops it when it has ended (then true).
#[inline(always)]
fn poll(
    task: &mut Option<Task<'_>>,
    lane: &Lane,
    decoder: &mut Decoder,
    keeping: &mut Option<Rc<RefCell<FirstRow>>>,
) -> Result<bool, TransactionError> {
    let Some(future) = task else { return Ok(false) };
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => {
            if let Some((expect, sequence)) = lane.take_expected() {
                decoder.expect(expect, sequence);
                *keeping = lane.take_keeping();
            }
            Ok(false)
        }
        Poll::Ready(result) => {
            *task = None;
            result.map(|()| true)
        }
    }
}

pub(crate) fn watch(source: io::Error) -> DriveError {
    DriveError::System { what: "watch its connections", source }
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
