//! Where in the schedule a generator thread is, and the CPU it used since the latest boundary.

use crate::cpu::{RunQueue, monotonic_ns, thread_cpu_s};
use crate::report::ThreadUse;
use crate::schedule::Interval;

/// See the module; belongs to the thread that made it.
pub(crate) struct Clock<'a> {
    start_ns: u64,
    schedule: &'a [Interval],
    /// The interval under way.
    next: usize,
    /// CPU time at the latest sample, user and system.
    cpu: (f64, f64),
    run_queue: RunQueue,
    /// Waited at the latest sample.
    waited_s: f64,
    sampled_ns: u64,
}

impl<'a> Clock<'a> {
    /// Before the first interval, sampled now.
    pub(crate) fn new(start_ns: u64, schedule: &'a [Interval]) -> Clock<'a> {
        let run_queue = RunQueue::of_this_thread();
        let waited_s = run_queue.waited_s().unwrap_or(0.0);
        let (cpu, sampled_ns) = (thread_cpu_s(), monotonic_ns());
        Clock { start_ns, schedule, next: 0, cpu, run_queue, waited_s, sampled_ns }
    }

    /// CLOCK_MONOTONIC begin of the first interval.
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// CLOCK_MONOTONIC end of the interval under way; `None` after the last.
    #[inline]
    pub(crate) fn boundary_ns(&self) -> Option<u64> {
        self.schedule.get(self.next).map(|interval| self.start_ns.saturating_add(interval.end_ns))
    }

    /// CLOCK_MONOTONIC end of the last interval.
    pub(crate) fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.schedule.last().map_or(0, |last| last.end_ns))
    }

    /// The interval under way lies in the measured window.
    pub(crate) fn measures(&self) -> bool {
        self.schedule.get(self.next).is_some_and(|interval| interval.measured)
    }

    /// No interval comes after the one under way.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        self.next + 1 >= self.schedule.len()
    }

    /// The interval under way is the first of the measured window.
    pub(crate) fn begins_window(&self) -> bool {
        let measured = |index: usize| self.schedule.get(index).is_some_and(|next| next.measured);
        measured(self.next) && !self.next.checked_sub(1).is_some_and(measured)
    }

    /// Goes on to the next interval; the index of the one that ended.
    pub(crate) fn advance(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// CPU used since the latest sample, and the seconds since then.
    pub(crate) fn sample(&mut self, now_ns: u64) -> (ThreadUse, f64) {
        let (user, sys) = thread_cpu_s();
        let waited_s = self.run_queue.waited_s().unwrap_or(self.waited_s);
        let used = ThreadUse {
            user_s: user - self.cpu.0,
            sys_s: sys - self.cpu.1,
            wait_s: waited_s - self.waited_s,
        };
        let sampled_s = now_ns.saturating_sub(self.sampled_ns) as f64 / 1e9;
        (self.cpu, self.waited_s, self.sampled_ns) = ((user, sys), waited_s, now_ns);
        (used, sampled_s)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::schedule::intervals;

    #[test]
    fn boundaries_come_in_turn_and_samples_are_differences() {
        let schedule = intervals(Duration::from_millis(500), Duration::from_millis(750));
        let mut clock = Clock::new(1_000, &schedule);
        let mut ends = Vec::new();
        while let Some(end_ns) = clock.boundary_ns() {
            ends.push((clock.advance(), end_ns, clock.begins_window()));
        }
        assert_eq!(
            ends,
            [(0, 500_001_000, true), (1, 1_000_001_000, false), (2, 1_250_001_000, false)]
        );
        assert_eq!((clock.start_ns(), clock.end_ns()), (1_000, 1_250_001_000));

        let (before, waited_before_s) = (thread_cpu_s(), RunQueue::of_this_thread().waited_s());
        clock.sample(5_000_000_000);
        while thread_cpu_s().0 + thread_cpu_s().1 < before.0 + before.1 + 0.02 {}
        let (used, sampled_s) = clock.sample(5_250_000_000);
        let (after, waited_after_s) = (thread_cpu_s(), RunQueue::of_this_thread().waited_s());
        assert_eq!(sampled_s, 0.25);
        let most_s = after.0 + after.1 - before.0 - before.1;
        assert!((0.001..=most_s + 1e-9).contains(&(used.user_s + used.sys_s)), "{used:?}");
        let most_s = waited_after_s.unwrap_or(0.0) - waited_before_s.unwrap_or(0.0);
        assert!((0.0..=most_s + 1e-9).contains(&used.wait_s), "{used:?}");
    }
}
