//! The end of an interval in a generator thread: what it hands over, and to whom.

use crate::arrivals::Arrivals;
use crate::batching::{Added, Batch};
use crate::clock::Clock;
use crate::error::DriveError;
use crate::flight::Age;
use crate::lane::Lane;
use crate::recorder::Recorded;
use crate::register::Register;
use crate::report::ThreadUse;

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
    /// Of the last interval of an open loop, what has not been started by its end.
    pub backlog: Option<Arrivals>,
    /// Of the last interval, what each connection committed in the measured window.
    pub commits: Vec<u64>,
    /// With the last interval: what the generator added in the measured window.
    pub added: Option<Box<Added>>,
}

/// The way of intervals to the coordinator, and of their memory back.
pub(crate) trait HandOver {
    /// A cleared [`Recorded`] that came back, if one has.
    fn emptied(&mut self) -> Option<Box<Recorded>>;

    /// Takes an interval that has ended.
    fn hand_over(&mut self, interval: ThreadInterval);
}

/// Ends the intervals that lie before `now_ns`.
#[inline]
pub(crate) fn cut_until(
    clock: &mut Clock<'_>,
    lane: &Lane,
    register: &Register,
    batch: &mut Batch,
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
            None => Recorded::new(register)?,
        };
        let recorded = lane.cut(empty);
        let index = clock.advance();
        let is_last = clock.boundary_ns().is_none();
        let (mut in_flight, mut backlog, mut commits) = (Vec::new(), None, Vec::new());
        if is_last {
            (in_flight, backlog) = (lane.ages(boundary_ns), lane.backlog());
            commits = lane.commits();
            lane.end();
        } else if clock.begins_window() {
            lane.count_anew();
        }
        let added = batch.cut(&recorded, sampled_s, clock.begins_window(), is_last);
        coordinator.hand_over(ThreadInterval {
            index,
            recorded,
            cpu,
            sampled_s,
            in_flight,
            backlog,
            commits,
            added,
        });
    }
    Ok(())
}
