//! What a transaction holds of its connection.
//!
//! A session encodes commands into its thread's one buffer and waits for the answer. It owns no
//! socket: the thread's loop sends the buffer after the task has been polled, and polls the task
//! again when the answer is complete. So a connection costs this struct, its decoder and its
//! future.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use wire::{Command, Expect, Param, Reply, status, types_signature};

use crate::lane::Lane;
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
    /// One bit per statement: the server knows the types of its parameters.
    bound: Box<[u64]>,
    /// Status flags of the latest answer that had some.
    status: u16,
    /// Whose transaction is under way.
    operation: Operation,
}

impl Session {
    pub(crate) fn new(lane: Rc<Lane>, statements: Rc<[u32]>) -> Session {
        let bound = vec![0; statements.len().div_ceil(64)].into_boxed_slice();
        let operation = Operation { seed: 0, connection: 0, sequence: 0 };
        Session { lane, statements, bound, status: 0, operation }
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
        let Some(&id) = self.statements.get(statement) else {
            return self.refuse(format!("there is no statement {statement}"));
        };
        let types = !self.lane.knows_types(&mut self.bound, statement, types_signature(params));
        self.send(Command::Execute { statement: id, params, types })
    }

    /// Executes a statement by its text.
    ///
    /// # Errors
    /// (When awaited.) The server's.
    #[inline]
    pub fn query(&mut self, text: &str) -> Answer<'_> {
        self.send(Command::Query(text.as_bytes()))
    }

    /// Opens a transaction.
    ///
    /// # Errors
    /// (When awaited.) The server's.
    pub fn begin(&mut self) -> Answer<'_> {
        self.query("BEGIN")
    }

    /// Commits the open transaction.
    ///
    /// # Errors
    /// (When awaited.) The server's.
    pub fn commit(&mut self) -> Answer<'_> {
        self.query("COMMIT")
    }

    /// Rolls the open transaction back.
    ///
    /// # Errors
    /// (When awaited.) The server's.
    pub fn rollback(&mut self) -> Answer<'_> {
        self.query("ROLLBACK")
    }

    /// The server said, in the latest answer that was no error, that a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.status & status::IN_TRANS != 0
    }

    fn send(&mut self, command: Command<'_>) -> Answer<'_> {
        let sequence = self.lane.encode(command);
        Answer { session: self, state: AnswerState::Sent(sequence), outcome: Outcome::default() }
    }

    #[cold]
    fn refuse(&mut self, reason: String) -> Answer<'_> {
        let state = AnswerState::Refused(reason);
        Answer { session: self, state, outcome: Outcome::default() }
    }
}

/// The answer to a statement that is on its way.
#[must_use = "a statement must be awaited before the next"]
pub struct Answer<'s> {
    session: &'s mut Session,
    state: AnswerState,
    outcome: Outcome,
}

enum AnswerState {
    /// Never sent: there is no such statement.
    Refused(String),
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
            AnswerState::Sent(sequence) => {
                let sequence = *sequence;
                self.session.lane.expect(Expect::Result, sequence);
                self.state = AnswerState::Waiting;
                return Poll::Pending;
            }
            AnswerState::Waiting => {}
        }
        let Some(reply) = self.session.lane.take_reply() else { return Poll::Pending };
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
            Reply::Err(error) => return Poll::Ready(Err(error.into())),
            Reply::Prepared { .. } => {
                let reason = "an answer to a preparation that nobody asked for".to_owned();
                return Poll::Ready(Err(TransactionError::Workload(reason)));
            }
        }
        if more {
            return Poll::Pending;
        }
        self.session.lane.count(&self.outcome);
        Poll::Ready(Ok(self.outcome))
    }
}
