//! Pure statistics: no I/O, no clock, no randomness that is not passed in.
//!
//! Called by the conductor (when to stop, what the verdict is) and by tests that simulate truth.
//! `docs/verdicts.md` says in prose what this crate computes; `tests/simulations.rs` measures how
//! often it is right.

mod effect;
mod gamma;
mod normal;
mod steady;
mod student;

pub use effect::{Confidence, Effect, Verdict, effects, enough, verdict};
pub use steady::{Steadiness, WEAK_BELOW, steadiness};
pub use student::{t_cdf, t_quantile};
