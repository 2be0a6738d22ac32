//! What the tasks of one thread share with its loop.
//!
//! Everything here belongs to one thread, so cells do for locks. A task is polled for a reason
//! only, and takes it at once; so one cell carries the reasons for all connections.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use wire::{Expect, FirstRow, Reply};

use crate::arrivals::Arrivals;
use crate::error::DriveError;
use crate::flight::{Age, Begun, Flight};
use crate::recorder::{Recorded, Recorder};
use crate::register::{OTHER, Register};
use crate::session::Outcome;
use crate::starts::{Due, Starts, TakenUp};

/// Why a task is polled.
#[derive(Debug)]
pub(crate) enum Wake {
    /// Its answer is complete.
    Reply(Reply),
    /// Its next transaction is due.
    Start(Begun),
    /// Its connection has broken off.
    Lost,
    /// It has another one, on which the server calls the statements by these names.
    Connected(Vec<u32>),
    /// The drive is over.
    Over,
}

/// See the module.
pub(crate) struct Lane {
    /// Encoded commands of the task that is being polled.
    outgoing: RefCell<Vec<u8>>,
    /// The answer that the task being polled waits for, for its decoder.
    expected: Cell<Option<(Expect, u8)>>,
    /// Where the first row of that answer is to be kept, if it is.
    keeping: Cell<Option<Rc<RefCell<FirstRow>>>>,
    /// Why the task is being polled.
    wake: Cell<Option<Wake>>,
    /// The task being polled has given its connection up.
    hung_up: Cell<bool>,
    /// When the bytes at hand were read, or the start at hand was made, CLOCK_MONOTONIC nanoseconds.
    now_ns: Cell<u64>,
    /// No further transaction begins.
    over: Cell<bool>,
    starts: RefCell<Starts>,
    recorder: RefCell<Recorder>,
    /// Signature of the parameter types of each statement, as it was first executed in this
    /// thread; 0 where it was not. Sessions then need a bit per statement and not a signature.
    signatures: RefCell<Vec<u64>>,
    /// By statement: its name's index.
    name_of: Box<[u32]>,
    /// By token.
    flights: Box<[Cell<Flight>]>,
    /// By token: transactions committed since [`Lane::count_anew`].
    commits: Box<[Cell<u64>]>,
}

impl Lane {
    /// For `connections` that begin as `starts` says.
    pub(crate) fn new(
        register: &Register,
        connections: usize,
        starts: Starts,
    ) -> Result<Lane, DriveError> {
        Ok(Lane {
            outgoing: RefCell::new(Vec::with_capacity(4096)),
            expected: Cell::new(None),
            keeping: Cell::new(None),
            wake: Cell::new(None),
            hung_up: Cell::new(false),
            now_ns: Cell::new(0),
            over: Cell::new(false),
            starts: RefCell::new(starts),
            recorder: RefCell::new(Recorder::new(register)?),
            signatures: RefCell::new(vec![0; register.name_of.len()]),
            name_of: register.name_of.clone().into_boxed_slice(),
            flights: vec![Cell::default(); connections].into_boxed_slice(),
            commits: vec![Cell::default(); connections].into_boxed_slice(),
        })
    }

    // For sessions.

    /// Lets `encode` append a command to what will be sent; returns what it does, the first packet
    /// number of the answer.
    #[inline]
    pub(crate) fn encode_with(&self, encode: impl FnOnce(&mut Vec<u8>) -> u8) -> u8 {
        encode(&mut self.outgoing.borrow_mut())
    }

    /// Forgets what would be sent.
    pub(crate) fn discard(&self) {
        self.outgoing.borrow_mut().clear();
    }

    /// Names the answer that the task being polled waits for.
    #[inline]
    pub(crate) fn expect(&self, expect: Expect, sequence: u8) {
        self.expected.set(Some((expect, sequence)));
    }

    /// The first row of the answer to the next command is wanted.
    pub(crate) fn keep(&self, row: Rc<RefCell<FirstRow>>) {
        self.keeping.set(Some(row));
    }

    #[inline]
    pub(crate) fn take_keeping(&self) -> Option<Rc<RefCell<FirstRow>>> {
        self.keeping.take()
    }

    #[inline]
    pub(crate) fn take_wake(&self) -> Option<Wake> {
        self.wake.take()
    }

    /// Index of the name of a statement.
    #[inline]
    pub(crate) fn name_of(&self, statement: usize) -> u32 {
        self.name_of.get(statement).copied().unwrap_or(OTHER)
    }

    /// Counts an answer to a statement that was encoded at `sent_ns`.
    #[inline]
    pub(crate) fn answered(&self, name: u32, outcome: &Outcome, sent_ns: u64) {
        let latency_ns = self.now_ns.get().saturating_sub(sent_ns);
        self.recorder.borrow_mut().statement(name, outcome, latency_ns);
    }

    /// Whether the server knows the parameter types of `statement` on the connection whose bits
    /// are `bound`; sets its bit, since they will be sent if not.
    #[inline]
    pub(crate) fn knows_types(
        &self,
        bound: &mut [u64],
        statement: usize,
        signature: Option<u64>,
    ) -> bool {
        let mut signatures = self.signatures.borrow_mut();
        let (Some(word), Some(usual)) =
            (bound.get_mut(statement / 64), signatures.get_mut(statement))
        else {
            return false;
        };
        let bit = 1 << (statement % 64);
        if *usual == 0 {
            *usual = signature.unwrap_or(0);
        }
        if signature != Some(*usual) {
            // Unusual types: send them, and remember that the usual ones must be sent again.
            *word &= !bit;
            return false;
        }
        let known = *word & bit != 0;
        *word |= bit;
        known
    }

    // For the tasks' own loop.

    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// See [`Starts::ask`]; who gets nothing waits until it is [`Lane::woken`].
    #[inline]
    pub(crate) fn ask_start(&self, token: usize, fresh: bool) -> Option<Begun> {
        self.starts.borrow_mut().ask(token, self.now_ns.get(), fresh)
    }

    /// Waits for the next reason to be polled.
    pub(crate) fn woken(&self) -> impl Future<Output = Wake> {
        poll_fn(|_| self.take_wake().map_or(Poll::Pending, Poll::Ready))
    }

    /// Counts the loss of the connection `token` and of what it was in the middle of, which is
    /// returned.
    pub(crate) fn lose(&self, token: usize, told: bool) -> Option<Begun> {
        let flight = self.flights[token].replace(Flight::Grounded);
        self.recorder.borrow_mut().lose(flight, told);
        flight.begun()
    }

    /// The task being polled waits until the connection `token` has been made again; `broken` is
    /// the transaction that was lost with the one before.
    pub(crate) fn hang_up(&self, token: usize, broken: Option<Begun>) {
        self.discard();
        self.starts.borrow_mut().leave(token, broken.map(|begun| begun.intended_ns));
        self.hung_up.set(true);
    }

    #[inline]
    pub(crate) fn record<T>(&self, record: impl FnOnce(&mut Recorder) -> T) -> T {
        record(&mut self.recorder.borrow_mut())
    }

    /// Counts a transaction that the connection `token` has just committed.
    #[inline]
    pub(crate) fn commit(&self, token: usize, kind: usize, begun: Begun) {
        self.recorder.borrow_mut().commit(kind, begun, self.now_ns.get());
        let commits = &self.commits[token];
        commits.set(commits.get() + 1);
    }

    /// Notes what the connection `token` is in the middle of.
    #[inline]
    pub(crate) fn fly(&self, token: usize, flight: Flight) {
        self.flights[token].set(flight);
    }

    // For the thread's loop.

    /// What the connection `token` is in the middle of.
    pub(crate) fn flight(&self, token: usize) -> Flight {
        self.flights[token].get()
    }

    /// Ages of all transactions in flight.
    pub(crate) fn ages(&self, now_ns: u64) -> Vec<Age> {
        self.flights.iter().filter_map(|flight| flight.get().age(now_ns)).collect()
    }

    /// Forgets how many transactions each connection has committed.
    pub(crate) fn count_anew(&self) {
        self.commits.iter().for_each(|commits| commits.set(0));
    }

    /// Transactions that each connection has committed since then.
    pub(crate) fn commits(&self) -> Vec<u64> {
        self.commits.iter().map(Cell::get).collect()
    }

    #[inline]
    pub(crate) fn set_now(&self, now_ns: u64) {
        self.now_ns.set(now_ns);
    }

    pub(crate) fn end(&self) {
        self.over.set(true);
    }

    #[inline]
    pub(crate) fn wake(&self, wake: Wake) {
        self.wake.set(Some(wake));
    }

    /// The task that was polled has called [`Lane::hang_up`] since this was last asked.
    #[inline]
    pub(crate) fn take_hung_up(&self) -> bool {
        self.hung_up.replace(false)
    }

    /// The connection `token` has been made again.
    pub(crate) fn return_to_work(&self, token: usize) {
        self.starts.borrow_mut().go_on(token);
    }

    /// A start that is due; its lateness is recorded if it is ours.
    pub(crate) fn due(&self, now_ns: u64) -> Option<Due> {
        let due = self.starts.borrow_mut().due(now_ns)?;
        if due.was_free {
            let late_ns = now_ns.saturating_sub(due.begun.intended_ns);
            self.recorder.borrow_mut().schedule_error(late_ns);
        }
        Some(due)
    }

    /// See [`Starts::next_ns`].
    #[inline]
    pub(crate) fn next_start_ns(&self) -> u64 {
        if self.over.get() { u64::MAX } else { self.starts.borrow().next_ns() }
    }

    /// See [`Starts::backlog`].
    pub(crate) fn backlog(&self) -> Option<Arrivals> {
        self.starts.borrow().backlog()
    }

    /// See [`Starts::take_taken_up`].
    pub(crate) fn take_taken_up(&self) -> TakenUp {
        self.starts.borrow_mut().take_taken_up()
    }

    /// See [`Starts::away`].
    pub(crate) fn away(&self, now_ns: u64) -> u32 {
        self.starts.borrow_mut().away(now_ns)
    }

    /// See [`Starts::overdue`].
    pub(crate) fn overdue(&self, now_ns: u64) -> Vec<u64> {
        self.starts.borrow().overdue(now_ns)
    }

    /// See [`Starts::dismiss`].
    pub(crate) fn dismiss(&self, token: usize) -> bool {
        self.starts.borrow_mut().dismiss(token)
    }

    #[inline]
    pub(crate) fn take_expected(&self) -> Option<(Expect, u8)> {
        self.expected.take()
    }

    /// Gives what is to be sent to `send` and forgets it.
    #[inline]
    pub(crate) fn flush<E>(&self, send: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.is_empty() {
            return Ok(());
        }
        let sent = send(&outgoing);
        outgoing.clear();
        sent
    }

    /// Takes what was recorded and goes on with `empty`.
    pub(crate) fn cut(&self, empty: Box<Recorded>) -> Box<Recorded> {
        self.recorder.borrow_mut().cut(empty)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use wire::{Param, types_signature};

    use super::*;
    use crate::spec::DriveSpec;
    use crate::timeline::Timeline;

    #[test]
    fn types_are_sent_once_per_connection_and_when_they_change() {
        let register = Register {
            kinds: vec!["all".to_owned()],
            names: vec!["one".to_owned()],
            name_of: vec![0; 70],
            targets: 1,
        };
        let timeline = Arc::new(Timeline::new(&DriveSpec::default()).unwrap());
        let starts = Starts::new(&timeline, 0, 1, 2, 0);
        let lane = Lane::new(&register, 2, starts).unwrap();
        let (mut one, mut two) = ([0; 2], [0; 2]);
        let ints = types_signature(&[Param::Int(1)]);
        let texts = types_signature(&[Param::Bytes(b"a")]);
        let knows = |bound: &mut [u64; 2], sig| lane.knows_types(bound, 69, sig);
        assert!(!knows(&mut one, ints));
        assert!(knows(&mut one, ints));
        assert!(!knows(&mut two, ints));
        assert!(!knows(&mut one, texts), "other types than before");
        assert!(!knows(&mut one, texts), "unusual types are always sent");
        assert!(!knows(&mut one, ints), "the server has the unusual ones now");
        assert!(knows(&mut one, ints));
        assert!(knows(&mut two, ints));
        assert!(!knows(&mut two, None), "too many to be summed up");
        assert!(!knows(&mut two, ints));
        assert!(!lane.knows_types(&mut one, 70, ints), "no such statement");
    }
}
