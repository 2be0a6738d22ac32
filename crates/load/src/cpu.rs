//! Clocks, CPU time and CPUs of a generator thread.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};

use crate::spec::Scheduling;

/// CLOCK_MONOTONIC in nanoseconds; a call into the vDSO, not into the kernel.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CPU seconds that the calling thread has used so far: in user space, in the kernel.
pub(crate) fn thread_cpu_s() -> (f64, f64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writing a `rusage`, which is all that the call does.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}

/// How long the calling thread has been runnable without a CPU, as `/proc/thread-self/schedstat`
/// tells: nanoseconds on a CPU, nanoseconds waiting in a run queue, times it was put on a CPU.
pub(crate) struct RunQueue(Option<File>);

impl RunQueue {
    /// Of the calling thread, whichever thread reads it later.
    pub(crate) fn of_this_thread() -> RunQueue {
        // A kernel without schedstat tells nothing, which is no reason not to drive.
        RunQueue(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Seconds waited so far; `None` where the kernel does not tell.
    pub(crate) fn waited_s(&self) -> Option<f64> {
        let mut bytes = [0; 96];
        let read = self.0.as_ref()?.read_at(&mut bytes, 0).ok()?;
        waited_ns(bytes.get(..read)?).map(|ns| ns as f64 / 1e9)
    }
}

fn waited_ns(schedstat: &[u8]) -> Option<u64> {
    std::str::from_utf8(schedstat).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// CPUs that this process may use, ascending.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Pins the calling thread.
pub(crate) fn pin_to(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Puts the calling thread into a scheduling class and lets it wake at the nanosecond it asked for
/// and not up to 50 us later; what class the kernel granted.
pub(crate) fn schedule(asked: Scheduling) -> Scheduling {
    // Refused only to real-time threads, which are punctual anyway.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let policy = match asked {
        Scheduling::Normal => libc::SCHED_OTHER,
        Scheduling::Batch => libc::SCHED_BATCH,
    };
    // SAFETY: the kernel reads a `sched_param`; 0 is the calling thread.
    let granted = unsafe {
        let param = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, policy, &raw const param);
        libc::sched_getscheduler(0)
    };
    if granted == libc::SCHED_BATCH { Scheduling::Batch } else { Scheduling::Normal }
}

/// How many threads drive `connections`: as asked, else a quarter of the CPUs, because most of them
/// belong to the server; never more than connections.
pub(crate) fn choose_threads(asked: Option<u32>, connections: u32, cpus: usize) -> u32 {
    let quarter = || u32::try_from(cpus / 4).unwrap_or(u32::MAX);
    asked.unwrap_or_else(quarter).clamp(1, connections.max(1))
}

/// The CPU of each thread: as asked, else from the last allowed one downwards, away from the first
/// ones, where kernels like to put interrupts and schedulers their newcomers.
pub(crate) fn choose_pins(asked: Option<&[usize]>, threads: u32, cpus: &[usize]) -> Vec<usize> {
    let downwards: Vec<usize> = cpus.iter().rev().copied().collect();
    let pins = asked.unwrap_or(&downwards);
    pins.iter().copied().cycle().take(threads as usize).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn threads_and_pins_are_chosen() {
        assert_eq!(choose_threads(None, 64, 2), 1);
        assert_eq!(choose_threads(None, 64, 16), 4);
        assert_eq!(choose_threads(None, 3, 64), 3);
        assert_eq!(choose_threads(Some(9), 8, 2), 8);
        assert_eq!(choose_threads(Some(0), 8, 2), 1);
        assert_eq!(choose_pins(None, 3, &[0, 1, 4, 5]), [5, 4, 1]);
        assert_eq!(choose_pins(None, 3, &[0, 1]), [1, 0, 1]);
        assert_eq!(choose_pins(Some(&[3]), 2, &[0, 1]), [3, 3]);
        assert!(choose_pins(Some(&[]), 2, &[0, 1]).is_empty());
        assert!(choose_pins(None, 2, &[]).is_empty());
    }

    #[test]
    fn the_class_of_a_thread_is_what_the_kernel_says() {
        for asked in [Scheduling::Batch, Scheduling::Normal] {
            assert_eq!(schedule(asked), asked);
            assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
        }
    }

    #[test]
    fn the_run_queue_tells_how_long_a_thread_waited() {
        assert_eq!(waited_ns(b"286493 731577 9\n"), Some(731_577));
        assert_eq!(waited_ns(b"286493"), None);
        assert_eq!(waited_ns(b""), None);
        assert_eq!(RunQueue(None).waited_s(), None);
        let cpus = allowed_cpus();
        // Two that spin on one CPU: each waits while the other runs.
        let spin = |done: &AtomicBool| {
            pin_to(cpus[0]).unwrap();
            let queue = RunQueue::of_this_thread();
            let Some(before) = queue.waited_s() else { return };
            let start = monotonic_ns();
            while queue.waited_s().is_some_and(|now| now - before < 0.01)
                && !done.load(Ordering::Relaxed)
            {
                assert!(monotonic_ns() - start < 60_000_000_000, "nobody ever waited");
            }
            let waited = queue.waited_s().unwrap() - before;
            assert!(waited >= 0.01 || done.swap(true, Ordering::Relaxed), "{waited}");
            done.store(true, Ordering::Relaxed);
        };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| spin(&done));
            scope.spawn(|| spin(&done));
        });
    }

    #[test]
    fn pinning_takes_and_cpu_time_runs() {
        let cpus = allowed_cpus();
        let last = cpus.last().copied().unwrap_or_default();
        assert!(pin_to(last).is_ok());
        assert_eq!(allowed_cpus(), [last]);
        assert!(pin_to(usize::MAX).is_err());
        let (before, start) = (thread_cpu_s(), monotonic_ns());
        // Spins until the accounting has moved; the limit only guards against a hang.
        while thread_cpu_s() == before {
            assert!(monotonic_ns() - start < 60_000_000_000, "CPU time stands still");
        }
    }
}
