//! How long runs take, so that a person can be told how long the rest will.

use std::time::{Duration, Instant};

use study::Cell;

/// What the runs so far say of the time that a run takes besides its load.
pub struct Pace {
    /// When the first run began.
    pub begun: Instant,
    runs: u32,
    overhead: Duration,
}

impl Pace {
    /// Nothing is known yet.
    pub fn new() -> Pace {
        Pace { begun: Instant::now(), runs: 0, overhead: Duration::ZERO }
    }

    /// A run of `cell` took so long.
    pub fn learn(&mut self, took: Duration, cell: &Cell) {
        self.runs += 1;
        self.overhead += took.saturating_sub(load_time(cell));
    }

    /// What a run of `cell` is going to take.
    pub fn expected(&self, cell: &Cell) -> Duration {
        load_time(cell) + self.overhead.checked_div(self.runs).unwrap_or(super::OVERHEAD_GUESS)
    }
}

fn load_time(cell: &Cell) -> Duration {
    cell.setup.load.warmup.duration() + cell.setup.load.measure.duration()
}
