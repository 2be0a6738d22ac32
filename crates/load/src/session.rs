//! What a transaction holds of its connection.
//!
//! A session encodes commands into its thread's one buffer and waits for the answer. It owns no
//! socket: the thread's loop sends the buffer after the task has been polled, and polls the task
//! again when the answer is complete. So a connection costs this struct, its decoder and its
//! future.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use wire::{Command, Expect, FirstRow, Kept, Param, Reply, Template, status, types_signature};

use crate::lane::{Lane, Wake};
use crate::register::{BEGIN, COMMIT, OTHER, ROLLBACK};
use crate::workload::{Operation, TransactionError};

/// Result of one statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Columns; 0 where the statement returned no result set.
    pub columns: u16,
    /// Rows returned.
    pub rows: u64,
    /// Rows changed (not: found).
    pub affected_rows: u64,
    /// First value generated for an AUTO_INCREMENT column.
    pub last_insert_id: u64,
    /// Warnings.
    pub warnings: u16,
}

/// One connection, as a transaction sees it.
pub struct Session {
    lane: Rc<Lane>,
    /// The server's names of the prepared statements. Usually the same for all connections of a
    /// thread, which then share one list.
    statements: Rc<[u32]>,
    /// All statements of the drive, where they travel as text; else none.
    texts: Rc<[Template]>,
    /// One bit per statement: the server knows the types of its parameters.
    bound: Box<[u64]>,
    /// Status flags of the latest answer that had some.
    status: u16,
    /// The connection has broken off and has not been made again.
    lost: bool,
    /// Whose transaction is under way.
    operation: Operation,
    /// What was kept of the latest answer of [`Session::execute_keeping`]; the thread's loop fills
    /// it. None where that was never asked for.
    first_row: Option<Rc<RefCell<FirstRow>>>,
}

impl Session {
    pub(crate) fn new(lane: Rc<Lane>, statements: Rc<[u32]>, texts: Rc<[Template]>) -> Session {
        let bound = vec![0; statements.len().div_ceil(64)].into_boxed_slice();
        let operation = Operation { seed: 0, connection: 0, sequence: 0 };
        Session {
            lane,
            statements,
            texts,
            bound,
            status: 0,
            lost: false,
            operation,
            first_row: None,
        }
    }

    /// The connection has been made again; the server knows the statements by these names.
    pub(crate) fn renew(&mut self, statements: &[u32]) {
        if self.statements[..] != *statements {
            self.statements = statements.into();
        }
        self.bound.fill(0);
        (self.status, self.lost) = (0, false);
    }

    /// Which transaction of which connection is under way, whatever the attempt.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    pub(crate) fn set_operation(&mut self, operation: Operation) {
        self.operation = operation;
    }

    /// Executes the `statement`-th of [`crate::Workload::statements`].
    ///
    /// # Errors
    /// (When awaited.) The server's, or that there is no such statement.
    #[inline]
    pub fn execute(&mut self, statement: usize, params: &[Param<'_>]) -> Answer<'_> {
        let name = self.lane.name_of(statement);
        if let Some(template) = self.texts.get(statement) {
            return self.render(name, statement, template.params(), params);
        }
        let Some(&id) = self.statements.get(statement) else {
            return self.refuse(format!("there is no statement {statement}"));
        };
        let types = !self.lane.knows_types(&mut self.bound, statement, types_signature(params));
        self.send(name, Command::Execute { statement: id, params, types })
    }

    /// The same, and keeps the first row of the answer for [`Session::kept`].
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn execute_keeping(&mut self, statement: usize, params: &[Param<'_>]) -> Answer<'_> {
        let row = Rc::clone(self.first_row.get_or_insert_default());
        row.borrow_mut().clear();
        let answer = self.execute(statement, params);
        // What is never sent must not leave its wish to whoever sends next.
        if matches!(answer.state, AnswerState::Sent(_)) {
            answer.session.lane.keep(row);
        }
        answer
    }

    /// Shows `see` the value of column `index`, from 0, of the row that the latest
    /// [`Session::execute_keeping`] kept.
    ///
    /// # Errors
    /// The value cannot be read.
    pub fn kept<T>(
        &self,
        index: usize,
        see: impl FnOnce(Kept<'_>) -> T,
    ) -> Result<T, TransactionError> {
        let Some(row) = &self.first_row else { return Ok(see(Kept::Null)) };
        let value = row.borrow();
        let value = value.value(index, !self.texts.is_empty());
        value.map(see).map_err(|why| {
            TransactionError::Workload(format!("cannot keep column {}: {why}", index + 1))
        })
    }

    /// Executes a statement by its text.
    ///
    /// # Errors
    /// (When awaited.) The server's.
    #[inline]
    pub fn query(&mut self, text: &str) -> Answer<'_> {
        self.send(OTHER, Command::Query(text.as_bytes()))
    }

    /// Opens a transaction.
    ///
    /// # Errors
    /// (When awaited.) The server's.
    pub fn begin(&mut self) -> Answer<'_> {
        self.send(BEGIN, Command::Query(b"BEGIN"))
    }

    /// Commits the open transaction.
    ///
    /// # Errors
    /// (When awaited.) The server's.
    pub fn commit(&mut self) -> Answer<'_> {
        self.send(COMMIT, Command::Query(b"COMMIT"))
    }

    /// Rolls the open transaction back.
    ///
    /// # Errors
    /// (When awaited.) The server's.
    pub fn rollback(&mut self) -> Answer<'_> {
        self.send(ROLLBACK, Command::Query(b"ROLLBACK"))
    }

    /// The server said, in the latest answer that was no error, that a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.status & status::IN_TRANS != 0
    }

    /// Sends a statement as text, with its values in it.
    fn render(
        &mut self,
        name: u32,
        statement: usize,
        wanted: usize,
        params: &[Param<'_>],
    ) -> Answer<'_> {
        if params.len() != wanted {
            let got = params.len();
            return self.refuse(format!("statement {statement} takes {wanted} values, got {got}"));
        }
        let backslashes = self.status & status::NO_BACKSLASH_ESCAPES == 0;
        let template = &self.texts[statement];
        let sequence = self.lane.encode_with(|out| template.encode(params, backslashes, out));
        self.sent(name, sequence)
    }

    #[inline]
    fn send(&mut self, name: u32, command: Command<'_>) -> Answer<'_> {
        let sequence = self.lane.encode_with(|out| command.encode(out));
        self.sent(name, sequence)
    }

    #[inline]
    fn sent(&mut self, name: u32, sequence: u8) -> Answer<'_> {
        let state = if self.lost {
            self.lane.discard();
            AnswerState::Lost
        } else {
            AnswerState::Sent(sequence)
        };
        let sent_ns = self.lane.now_ns();
        Answer { session: self, state, name, sent_ns, outcome: Outcome::default() }
    }

    #[cold]
    fn refuse(&mut self, reason: String) -> Answer<'_> {
        let state = AnswerState::Refused(reason);
        Answer { session: self, state, name: OTHER, sent_ns: 0, outcome: Outcome::default() }
    }
}

/// The answer to a statement that is on its way.
#[must_use = "a statement must be awaited before the next"]
pub struct Answer<'s> {
    session: &'s mut Session,
    state: AnswerState,
    /// Index of the statement's name.
    name: u32,
    /// When it was encoded, CLOCK_MONOTONIC nanoseconds.
    sent_ns: u64,
    outcome: Outcome,
}

enum AnswerState {
    /// Never sent: there is no such statement.
    Refused(String),
    /// Never sent: there is no connection.
    Lost,
    /// Sent; the answer begins with this packet number. The decoder does not know yet.
    Sent(u8),
    /// The decoder is at it.
    Waiting,
}

impl Future for Answer<'_> {
    type Output = Result<Outcome, TransactionError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            AnswerState::Refused(reason) => {
                return Poll::Ready(Err(TransactionError::Workload(std::mem::take(reason))));
            }
            AnswerState::Lost => return Poll::Ready(Err(TransactionError::Lost)),
            AnswerState::Sent(sequence) => {
                let sequence = *sequence;
                self.session.lane.expect(Expect::Result, sequence);
                self.state = AnswerState::Waiting;
                return Poll::Pending;
            }
            AnswerState::Waiting => {}
        }
        let reply = match self.session.lane.take_wake() {
            Some(Wake::Reply(reply)) => reply,
            Some(Wake::Lost) => {
                self.session.lost = true;
                return Poll::Ready(Err(TransactionError::Lost));
            }
            _ => return Poll::Pending,
        };
        let more = reply.more_follow();
        match reply {
            Reply::Ok { affected_rows, last_insert_id, status, warnings } => {
                self.outcome.affected_rows += affected_rows;
                self.outcome.last_insert_id = last_insert_id;
                self.outcome.warnings = warnings;
                self.session.status = status;
            }
            Reply::ResultSet { columns, rows, status, warnings } => {
                self.outcome.columns = columns;
                self.outcome.rows += rows;
                self.outcome.warnings = warnings;
                self.session.status = status;
            }
            Reply::Err(error) => {
                let name = self.name;
                self.session.lane.record(|recorder| recorder.refused(name, error.code));
                return Poll::Ready(Err(error.into()));
            }
            Reply::Prepared { .. } => {
                let reason = "an answer to a preparation that nobody asked for".to_owned();
                return Poll::Ready(Err(TransactionError::Workload(reason)));
            }
        }
        if more {
            return Poll::Pending;
        }
        self.session.lane.answered(self.name, &self.outcome, self.sent_ns);
        Poll::Ready(Ok(self.outcome))
    }
}
