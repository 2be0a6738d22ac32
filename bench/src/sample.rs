//! What one run of one driver came to.

use std::process::{Child, ExitStatus};

use crate::Failed;

/// One run of one driver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Statements answered.
    pub statements: f64,
    /// Seconds in which they were.
    pub seconds: f64,
    /// CPU seconds in user space, of the whole process.
    pub user_s: f64,
    /// CPU seconds in the kernel, of the whole process.
    pub sys_s: f64,
}

impl Sample {
    /// Statements per second.
    pub fn rate(&self) -> f64 {
        self.statements / self.seconds
    }

    /// User-space CPU for a statement, microseconds.
    pub fn user_us(&self) -> f64 {
        self.user_s * 1e6 / self.statements
    }

    /// All CPU for a statement, microseconds.
    pub fn cpu_us(&self) -> f64 {
        (self.user_s + self.sys_s) * 1e6 / self.statements
    }
}

/// Waits for a child and returns the CPU seconds that it used, user and system: all of its life,
/// start and connecting included, which is how every driver here is measured.
pub fn reap(mut child: Child) -> Result<(ExitStatus, f64, f64), Failed> {
    let before = children_cpu_s();
    let status = child.wait()?;
    let after = children_cpu_s();
    Ok((status, after.0 - before.0, after.1 - before.1))
}

/// CPU seconds of all children that were waited for.
fn children_cpu_s() -> (f64, f64) {
    cpu_s(libc::RUSAGE_CHILDREN)
}

/// CPU seconds of the calling thread.
pub fn thread_cpu_s() -> (f64, f64) {
    cpu_s(libc::RUSAGE_THREAD)
}

fn cpu_s(who: libc::c_int) -> (f64, f64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writing a `rusage`, which is all that the call does.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}
