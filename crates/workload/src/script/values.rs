//! Values and the expressions that make them.
//!
//! An expression is read once, with the parameters put in; what is left is evaluated for each
//! statement or row and allocates nothing: numbers stand in the value, text in the frame's buffer.

use load::Rng;

use crate::digits::append_digits;
use crate::distribution::Ids;

/// A value; text stands in the frame's buffer, from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Int(i64),
    Text(u32, u32),
}

/// How a value is made.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Int(i64),
    Text(Box<[u8]>),
    /// A variable.
    Slot(usize),
    /// Number of the row, from 1.
    Row,
    /// Number of the table's copy, from 1.
    Copy,
    /// `start`, `start + step` ..., each once in a drive or a table.
    Sequence {
        start: i64,
        step: i64,
    },
    /// `low + (an id of 1.. - 1)`.
    Draw {
        low: i64,
        ids: Ids,
    },
    /// Groups of digits joined by `-`.
    Digits {
        groups: u32,
        width: u32,
    },
    /// Small letters.
    Letters {
        least: u64,
        most: u64,
    },
    /// One of some texts.
    Pick(Box<[Box<[u8]>]>),
    Negate(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// Where an expression is evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Number of the row, or of the draw in the whole drive, from 0.
    pub(super) number: u64,
    /// Number of the table's copy, from 1.
    pub(super) copy: u32,
}

/// The values of one transaction or row.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) slots: Vec<Value>,
    pub(super) text: Vec<u8>,
}

impl Frame {
    /// Forgets all values; there are `slots` of them, all NULL.
    pub(super) fn clear(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, Value::Null);
        self.text.clear();
    }

    /// The text of a value.
    pub(super) fn text(&self, from: u32, to: u32) -> &[u8] {
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Appends text.
    pub(super) fn push(&mut self, text: &[u8]) -> Value {
        let from = self.text.len();
        self.text.extend_from_slice(text);
        self.since(from)
    }

    fn since(&self, from: usize) -> Value {
        // Texts are bounded, and so is their number: far below 4 GiB.
        Value::Text(from as u32, self.text.len() as u32)
    }
}

impl Expr {
    /// The value, its choices from `rng`. What overflows or divides by zero is NULL, and so is all
    /// that is computed from NULL, as in SQL.
    pub(super) fn value(&self, frame: &mut Frame, place: Place, rng: &mut Rng) -> Value {
        match self {
            Expr::Int(value) => Value::Int(*value),
            Expr::Text(text) => frame.push(text),
            Expr::Slot(slot) => frame.slots.get(*slot).copied().unwrap_or(Value::Null),
            Expr::Row => number(Some(place.number as i64 + 1)),
            Expr::Copy => Value::Int(i64::from(place.copy)),
            Expr::Sequence { start, step } => {
                let steps = i64::try_from(place.number).ok().and_then(|n| step.checked_mul(n));
                number(steps.and_then(|steps| start.checked_add(steps)))
            }
            Expr::Draw { low, ids } => Value::Int(low.wrapping_add(ids.draw(rng) as i64 - 1)),
            Expr::Digits { groups, width } => {
                let from = frame.text.len();
                append_digits(rng, *groups, *width, &mut frame.text);
                frame.since(from)
            }
            Expr::Letters { least, most } => {
                let from = frame.text.len();
                let length = match most - least {
                    0 => *least,
                    more => least + rng.below(more + 1),
                };
                frame.text.extend((0..length).map(|_| b'a' + rng.below(26) as u8));
                frame.since(from)
            }
            Expr::Pick(texts) => {
                let at = rng.below(texts.len() as u64) as usize;
                texts.get(at).map_or(Value::Null, |text| frame.push(text))
            }
            Expr::Negate(inner) => match inner.value(frame, place, rng) {
                Value::Int(value) => number(value.checked_neg()),
                _ => Value::Null,
            },
            Expr::Binary(operator, left, right) => {
                let left = left.value(frame, place, rng);
                match (left, right.value(frame, place, rng)) {
                    (Value::Int(left), Value::Int(right)) => number(operator.of(left, right)),
                    _ => Value::Null,
                }
            }
        }
    }
}

fn number(value: Option<i64>) -> Value {
    value.map_or(Value::Null, Value::Int)
}

impl Operator {
    pub(super) fn of(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => left.checked_div(right),
            Operator::Remainder => left.checked_rem(right),
        }
    }
}
