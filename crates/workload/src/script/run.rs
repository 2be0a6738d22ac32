//! A script under load.

use std::cell::RefCell;

use load::{Answer, Operation, Rng, Session, Statement, TransactionError, Workload};
use wire::{Kept, Param};

use super::values::{Expr, Frame, Place, Value};
use super::{Action, Operand, Script, Step, Transaction};

/// Values that a statement takes at most.
pub(super) const OPERANDS_MAX: usize = 256;
/// Bytes of a text that is kept.
pub(super) const KEPT_BYTES_MAX: usize = 256;

/// A script driven by some connections.
pub(crate) struct Driven<'s> {
    pub(crate) script: &'s Script,
    /// In the whole drive.
    pub(crate) connections: u32,
}

thread_local! {
    /// Frames that no transaction of this thread uses; soon there are as many as connections, and
    /// nothing is allocated any more.
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// A frame that goes back when the transaction ends, however it ends.
struct Lent(Frame);

impl Lent {
    fn new() -> Lent {
        let free = FRAMES.try_with(|frames| frames.borrow_mut().pop()).ok().flatten();
        Lent(free.unwrap_or_default())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let frame = std::mem::take(&mut self.0);
        let _ = FRAMES.try_with(|frames| frames.borrow_mut().push(frame));
    }
}

impl Workload for Driven<'_> {
    fn statements(&self) -> Vec<Statement> {
        self.script.statements.clone()
    }

    fn kinds(&self) -> Vec<String> {
        self.script.transactions.iter().map(|transaction| transaction.name.clone()).collect()
    }

    fn kind(&self, operation: Operation) -> usize {
        let Operation { seed, connection, sequence } = operation;
        let [_, _, ..] = self.script.transactions[..] else { return 0 };
        // No attempt at the operation has this number, and so none has this stream.
        let mut rng = Rng::new(seed, connection, sequence, u32::MAX);
        let mut at = rng.below(self.script.weight);
        let chosen = self.script.transactions.iter().position(|transaction| {
            let here = at < transaction.weight;
            at = at.wrapping_sub(if here { 0 } else { transaction.weight });
            here
        });
        chosen.unwrap_or(0)
    }

    async fn transaction(
        &self,
        session: &mut Session,
        kind: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let Some(Transaction { slots, draw, steps, .. }) = self.script.transactions.get(kind)
        else {
            return Err(TransactionError::Workload(format!("there is no transaction {kind}")));
        };
        let Operation { connection, sequence, .. } = session.operation();
        let number = sequence * u64::from(self.connections) + connection;
        let mut lent = Lent::new();
        let frame = &mut lent.0;
        frame.clear(*slots);
        draw_all(draw, frame, number, &mut rng);
        for step in steps {
            let copy = match step.copies {
                0 => 0,
                copies => rng.below(u64::from(copies)) as usize,
            };
            let texts_before = frame.text.len();
            for turn in 0..u64::from(step.repeat) {
                if step.keep.is_empty() {
                    frame.text.truncate(texts_before);
                }
                let number = number.wrapping_mul(u64::from(step.repeat)).wrapping_add(turn);
                draw_all(&step.draw, frame, number, &mut rng);
                for action in &step.actions {
                    match action {
                        Action::Begin => session.begin().await?,
                        Action::Commit => session.commit().await?,
                        Action::Rollback => session.rollback().await?,
                        Action::Execute { first, operands } => {
                            let keeps = !step.keep.is_empty();
                            send(session, first + copy, operands, frame, keeps).await?
                        }
                    };
                }
                keep(step, session, frame)?;
            }
        }
        Ok(())
    }
}

fn draw_all(draw: &[(usize, Expr)], frame: &mut Frame, number: u64, rng: &mut Rng) {
    for (slot, expr) in draw {
        let value = expr.value(frame, Place { number, copy: 0 }, rng);
        if let Some(slot) = frame.slots.get_mut(*slot) {
            *slot = value;
        }
    }
}

/// Sends a statement. Its values stand on the stack, as few as will do.
fn send<'s>(
    session: &'s mut Session,
    statement: usize,
    operands: &[Operand],
    frame: &Frame,
    keeps: bool,
) -> Answer<'s> {
    fn with<'s, const N: usize>(
        session: &'s mut Session,
        statement: usize,
        operands: &[Operand],
        frame: &Frame,
        keeps: bool,
    ) -> Answer<'s> {
        let mut params = [Param::Null; N];
        for (param, operand) in params.iter_mut().zip(operands) {
            *param = match operand {
                Operand::Slot(slot) => match frame.slots.get(*slot) {
                    Some(Value::Int(value)) => Param::Int(*value),
                    Some(Value::Text(from, to)) => Param::Bytes(frame.text(*from, *to)),
                    Some(Value::Null) | None => Param::Null,
                },
                Operand::Int(value) => Param::Int(*value),
                Operand::Double(value) => Param::Double(*value),
                Operand::Text(text) => Param::Bytes(text),
            };
        }
        let params = &params[..operands.len().min(N)];
        if keeps {
            session.execute_keeping(statement, params)
        } else {
            session.execute(statement, params)
        }
    }
    match operands.len() {
        0..=4 => with::<4>(session, statement, operands, frame, keeps),
        5..=16 => with::<16>(session, statement, operands, frame, keeps),
        _ => with::<OPERANDS_MAX>(session, statement, operands, frame, keeps),
    }
}

/// Puts the columns of the first row where later steps find them.
fn keep(step: &Step, session: &Session, frame: &mut Frame) -> Result<(), TransactionError> {
    for (column, (slot, text)) in step.keep.iter().enumerate() {
        let value = session.kept(column, |kept| match (kept, text) {
            (Kept::Null, _) => Ok(Value::Null),
            (Kept::Int(value), false) => Ok(Value::Int(value)),
            (Kept::Int(value), true) => Ok(frame.push(value.to_string().as_bytes())),
            (Kept::Bytes(bytes), true) if bytes.len() <= KEPT_BYTES_MAX => Ok(frame.push(bytes)),
            (Kept::Bytes(_), true) => Err("it has more than 256 bytes"),
            (Kept::Bytes(bytes), false) => {
                let digits = std::str::from_utf8(bytes).ok();
                let number = digits.and_then(|digits| digits.parse().ok());
                number.map(Value::Int).ok_or("it is no whole number; keep it as \"text\"")
            }
        })?;
        let value = value.map_err(|why| {
            TransactionError::Workload(format!("cannot keep column {}: {why}", column + 1))
        })?;
        if let Some(slot) = frame.slots.get_mut(*slot) {
            *slot = value;
        }
    }
    Ok(())
}
