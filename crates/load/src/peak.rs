//! How busy the busiest generator thread was.
//!
//! A share is one of the time between two samples. Over a few milliseconds, as where the window
//! ends shortly after a whole second, it is 100 % easily and means nothing; so only samples that
//! are far enough apart count, and without any, each thread's mean over the window.

use crate::report::ThreadUse;

/// Samples must be further apart than this.
const APART_S: f64 = 0.5;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Peak {
    /// The largest of the samples that count.
    largest: Option<Shares>,
    /// By thread: sum of all samples, and their seconds.
    sums: Vec<(ThreadUse, f64)>,
}

/// Shares of a time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    /// On CPU.
    pub busy: f64,
    /// Runnable, but not on CPU.
    pub wait: f64,
    /// Either: all but idle.
    pub occupied: f64,
}

impl Peak {
    /// A sample of `thread`, `sampled_s` seconds after its one before.
    pub(crate) fn add(&mut self, thread: usize, used: ThreadUse, sampled_s: f64) {
        if self.sums.len() <= thread {
            self.sums.resize(thread + 1, (ThreadUse::default(), 0.0));
        }
        let (sum, seconds) = &mut self.sums[thread];
        sum.user_s += used.user_s;
        sum.sys_s += used.sys_s;
        sum.wait_s += used.wait_s;
        *seconds += sampled_s;
        if sampled_s > APART_S {
            let largest = self.largest.unwrap_or_default();
            self.largest = Some(largest.max(Shares::of(used, sampled_s)));
        }
    }

    /// The largest shares that any thread had; each may be of different threads and seconds.
    pub(crate) fn shares(&self) -> Shares {
        self.largest.unwrap_or_else(|| {
            let means = self.sums.iter().map(|&(sum, seconds)| Shares::of(sum, seconds));
            means.fold(Shares::default(), Shares::max)
        })
    }
}

impl Shares {
    fn of(used: ThreadUse, seconds: f64) -> Shares {
        let share = |s: f64| if seconds > 0.0 { (s / seconds).clamp(0.0, 1.0) } else { 0.0 };
        let busy_s = used.user_s + used.sys_s;
        Shares {
            busy: share(busy_s),
            wait: share(used.wait_s),
            occupied: share(busy_s + used.wait_s),
        }
    }

    fn max(self, other: Shares) -> Shares {
        Shares {
            busy: self.busy.max(other.busy),
            wait: self.wait.max(other.wait),
            occupied: self.occupied.max(other.occupied),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(user_s: f64, sys_s: f64, wait_s: f64) -> ThreadUse {
        ThreadUse { user_s, sys_s, wait_s }
    }

    #[test]
    fn a_short_interval_raises_no_alarm() {
        let mut peak = Peak::default();
        peak.add(0, used(0.25, 0.25, 0.125), 1.0);
        peak.add(1, used(0.125, 0.0, 0.75), 1.0);
        peak.add(0, used(0.05, 0.0, 0.0), 0.05);
        peak.add(1, used(0.0, 0.0, 0.05), 0.05);
        assert_eq!(peak.shares(), Shares { busy: 0.5, wait: 0.75, occupied: 0.875 });
    }

    #[test]
    fn a_short_window_counts_by_its_mean() {
        let mut peak = Peak::default();
        peak.add(0, used(0.25, 0.0, 0.0), 0.25);
        peak.add(0, used(0.0, 0.0, 0.25), 0.25);
        peak.add(1, used(0.0, 0.125, 0.0), 0.5);
        assert_eq!(peak.shares(), Shares { busy: 0.5, wait: 0.5, occupied: 1.0 });
        assert_eq!(Peak::default().shares(), Shares::default());
    }

    #[test]
    fn a_share_is_never_more_than_the_whole() {
        let mut peak = Peak::default();
        peak.add(0, used(1.0, 0.004, 1.1), 1.0);
        assert_eq!(peak.shares(), Shares { busy: 1.0, wait: 1.0, occupied: 1.0 });
    }
}
