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
use crate::starts::TakenUp;

/// What a thread hands over when an interval ends.
pub(crate) struct ThreadInterval {
    /// Which of the schedule's intervals.
    pub index: usize,
    /// Where it ends, nanoseconds from the start: as scheduled, or where the drive ended early.
    pub until_ns: u64,
    /// What was counted.
    pub recorded: Box<Recorded>,
    /// CPU used.
    pub cpu: ThreadUse,
    /// Seconds in which it was used: the interval's length, but for how late its ends were noticed.
    pub sampled_s: f64,
    /// Arrivals of an open loop that were taken up.
    pub taken_up: TakenUp,
    /// Connections at work that were lost at its end and had not been made again.
    pub away: u32,
    /// Of the last interval, for how long each transaction has been due at its end that waits for
    /// such a connection, nanoseconds.
    pub overdue: Vec<u64>,
    /// Of the last interval, transactions in flight at its end.
    pub in_flight: Vec<Age>,
    /// Of the last interval of an open loop, what has not been started by its end.
    pub backlog: Option<Arrivals>,
    /// Of the last interval, if it is measured, what each connection committed in the window.
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
        let is_last = clock.is_last();
        cut(clock, lane, register, batch, (boundary_ns, now_ns), is_last, coordinator)?;
    }
    Ok(())
}

/// Ends them all at `now_ns`, before their time: what was counted until then is not lost.
#[cold]
pub(crate) fn cut_short(
    clock: &mut Clock<'_>,
    lane: &Lane,
    register: &Register,
    batch: &mut Batch,
    now_ns: u64,
    coordinator: &mut dyn HandOver,
) -> Result<(), DriveError> {
    cut_until(clock, lane, register, batch, now_ns, coordinator)?;
    match clock.boundary_ns() {
        Some(_) => cut(clock, lane, register, batch, (now_ns, now_ns), true, coordinator),
        None => Ok(()),
    }
}

/// Ends the interval under way at one instant, which is noticed at another.
fn cut(
    clock: &mut Clock<'_>,
    lane: &Lane,
    register: &Register,
    batch: &mut Batch,
    (until_ns, now_ns): (u64, u64),
    is_last: bool,
    coordinator: &mut dyn HandOver,
) -> Result<(), DriveError> {
    let (cpu, sampled_s) = clock.sample(now_ns);
    // Only a coordinator that is a whole interval late has nothing to give back; then memory is
    // cheaper than waiting.
    let empty = match coordinator.emptied() {
        Some(empty) => empty,
        None => Recorded::new(register)?,
    };
    let recorded = lane.cut(empty);
    let measured = clock.measures();
    let index = clock.advance();
    let mut interval = ThreadInterval {
        index,
        until_ns: until_ns.saturating_sub(clock.start_ns()),
        recorded,
        cpu,
        sampled_s,
        taken_up: lane.take_taken_up(),
        away: lane.away(until_ns),
        overdue: Vec::new(),
        in_flight: Vec::new(),
        backlog: None,
        commits: Vec::new(),
        added: None,
    };
    if is_last {
        interval.overdue = lane.overdue(until_ns);
        (interval.in_flight, interval.backlog) = (lane.ages(until_ns), lane.backlog());
        if measured {
            interval.commits = lane.commits();
        }
        lane.end();
    } else if clock.begins_window() {
        lane.count_anew();
    }
    interval.added = batch.cut(&interval.recorded, sampled_s, clock.begins_window(), is_last);
    coordinator.hand_over(interval);
    Ok(())
}
