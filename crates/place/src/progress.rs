//! How long work tells how far it is.

/// Hears of progress. The binary draws it; tests stay quiet.
pub trait Progress {
    /// A step begins, e.g. `fetching mysql-8.0.12`; `total` in `unit`s where known.
    fn begin(&self, what: &str, unit: &str, total: Option<u64>);
    /// `done` of the step's units are done.
    fn advance(&self, done: u64);
    /// The step ended.
    fn end(&self);
}

/// Hears and says nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _what: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64) {}
    fn end(&self) {}
}
