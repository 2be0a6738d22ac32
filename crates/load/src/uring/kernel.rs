//! The rings that are shared with the kernel, and the one call that hands over all that was queued
//! and waits.
//!
//! Knows operations, not connections. Nothing here retries: what the kernel refuses is the
//! caller's to judge.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, squeue};
use rustix::io::Errno;

use crate::cpu::monotonic_ns;
use crate::reactor::Wait;

/// Operations that are queued between two calls at most; one more makes a call of its own.
const QUEUED_MAX: usize = 4096;

/// `IORING_REGISTER_RING_FDS`, which the crate offers only on an object that it makes anew for
/// every call.
const REGISTER_RING_FDS: u32 = 20;
/// `IORING_UNREGISTER_RING_FDS`.
const UNREGISTER_RING_FDS: u32 = 21;

/// See the module.
pub(crate) struct Kernel {
    ring: IoUring,
    /// The ring's descriptor, or its number among this thread's registered rings.
    fd: RawFd,
    flags: EnterFlags,
    /// The kernel takes a wait for company and an absolute time (6.12).
    min_wait: bool,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
struct GetEvents {
    sigmask: u64,
    sigmask_bytes: u32,
    min_wait_us: u32,
    timeout: u64,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct ResourceUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

impl Kernel {
    /// Rings for so many connections and as many completions at a time as fit; used by the calling
    /// thread alone.
    pub(crate) fn new(connections: usize, completions: usize) -> io::Result<Kernel> {
        let queued = connections.clamp(8, QUEUED_MAX) as u32;
        let completions = completions.next_power_of_two().max(2 * queued as usize) as u32;
        let mut full = IoUring::builder();
        full.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
        let mut some = IoUring::builder();
        some.setup_coop_taskrun();
        let mut refused = Errno::INVAL.into();
        for mut builder in [full, some, IoUring::builder()] {
            builder.setup_clamp().setup_submit_all().setup_cqsize(completions);
            match builder.build(queued) {
                Ok(ring) => return Kernel::of(ring),
                // An older kernel: it does without the newer flags.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    fn of(ring: IoUring) -> io::Result<Kernel> {
        let params = ring.params();
        if !params.is_feature_ext_arg()
            || !params.is_feature_nodrop()
            || !params.is_feature_skip_cqe_on_success()
        {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "kernel older than 5.17"));
        }
        let min_wait = params.is_feature_min_timeout();
        let mut update =
            ResourceUpdate { offset: u32::MAX, reserved: 0, data: ring.as_raw_fd() as u64 };
        // Spares a look-up of the descriptor in every call; where it is refused, there is one.
        let (fd, flags) = match change_ring_fd(&ring, REGISTER_RING_FDS, &mut update) {
            true => (update.offset as RawFd, EnterFlags::REGISTERED_RING),
            false => (ring.as_raw_fd(), EnterFlags::empty()),
        };
        Ok(Kernel { ring, fd, flags, min_wait })
    }

    /// The ring, to register things with.
    pub(crate) fn ring(&self) -> &IoUring {
        &self.ring
    }

    /// Queues an operation; makes room first where there is none.
    ///
    /// # Safety
    /// What the operation points to stays where it is until the operation has ended.
    #[inline]
    pub(crate) unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: as the caller promises.
        if unsafe { self.ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        self.submit()?;
        // SAFETY: as the caller promises.
        unsafe { self.ring.submission().push(entry) }
            .map_err(|_| io::Error::other("the kernel takes no more operations"))
    }

    /// Hands over what was queued and does not wait.
    #[cold]
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        while !self.ring.submission().is_empty() {
            self.enter(0, EnterFlags::empty(), None)?;
        }
        Ok(())
    }

    /// Hands over what was queued and waits.
    #[inline]
    pub(crate) fn wait(&mut self, wait: Wait) -> io::Result<()> {
        let patience_us = u32::try_from(wait.patience.as_micros()).unwrap_or(u32::MAX);
        let company = if patience_us == 0 { 1 } else { wait.company.max(1) };
        if !self.min_wait {
            return self.wait_twice(wait, company);
        }
        let until = timespec(Duration::from_nanos(wait.until_ns));
        let min_wait_us = if company > 1 { patience_us } else { 0 };
        self.enter(company, EnterFlags::ABS_TIMER, Some((&until, min_wait_us)))
    }

    /// Kernels before 6.12 wait for a number or for a time: first for company, and if nobody came,
    /// for anybody.
    #[cold]
    fn wait_twice(&mut self, wait: Wait, company: u32) -> io::Result<()> {
        let left = |until_ns: u64| Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        if company > 1 {
            let patience = timespec(left(wait.until_ns).min(wait.patience));
            self.enter(company, EnterFlags::empty(), Some((&patience, 0)))?;
            if !self.ring.completion().is_empty() {
                return Ok(());
            }
        }
        self.enter(1, EnterFlags::empty(), Some((&timespec(left(wait.until_ns)), 0)))
    }

    /// The call. Waits for `want` completions where a time is given.
    #[inline]
    fn enter(
        &mut self,
        want: u32,
        flags: EnterFlags,
        until: Option<(&Timespec, u32)>,
    ) -> io::Result<()> {
        let queued = self.ring.submission().len() as u32;
        let argument = until.map(|(time, min_wait_us)| GetEvents {
            sigmask: 0,
            sigmask_bytes: 0,
            min_wait_us,
            timeout: std::ptr::from_ref(time) as u64,
        });
        let mut flags = self.flags | flags;
        if argument.is_some() {
            flags |= EnterFlags::EXT_ARG | EnterFlags::GETEVENTS;
        }
        let (argument, bytes) = match &argument {
            Some(argument) => (std::ptr::from_ref(argument), size_of::<GetEvents>()),
            None => (std::ptr::null(), 0),
        };
        // SAFETY: the kernel reads `argument` and the time that it points to, which outlive the
        // call; what the queued operations point to was promised to `push`.
        let done = unsafe {
            let flags = flags.bits();
            libc::syscall(libc::SYS_io_uring_enter, self.fd, queued, want, flags, argument, bytes)
        };
        if done >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR) => Ok(()),
            // Completions must be taken first, which the caller does next.
            Some(Errno::BUSY) if until.is_some() => Ok(()),
            _ => Err(error),
        }
    }

    /// The next completion that is here.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }
}

impl Drop for Kernel {
    /// Hands over what was queued and ends every operation: afterwards the kernel touches no memory
    /// of ours any more. Closing a ring alone would end them at some later time.
    fn drop(&mut self) {
        let _ = self.submit();
        let submitter = self.ring.submitter();
        // That there is nothing to end is as good; that files are gone, too.
        let _ = submitter.register_sync_cancel(None, CancelBuilder::any());
        let _ = submitter.unregister_files();
        if self.flags.contains(EnterFlags::REGISTERED_RING) {
            let mut update = ResourceUpdate { offset: self.fd as u32, reserved: 0, data: 0 };
            change_ring_fd(&self.ring, UNREGISTER_RING_FDS, &mut update);
        }
    }
}

/// Registers the ring with the calling thread, or takes that back; whether it was done.
fn change_ring_fd(ring: &IoUring, operation: u32, update: &mut ResourceUpdate) -> bool {
    // SAFETY: the kernel reads and writes one `io_uring_rsrc_update`.
    let done = unsafe {
        let update = std::ptr::from_mut(update);
        libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), operation, update, 1)
    };
    done == 1
}

fn timespec(time: Duration) -> Timespec {
    Timespec::from(time)
}
