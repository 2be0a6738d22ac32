//! The buffers from which the kernel takes one for each piece that it receives.
//!
//! Shared by all connections of a ring: memory is needed for what has come and has not been looked
//! at, and not for each connection that might say something. The kernel takes them in the order in
//! which they were given, so that all of them are in use in turn: they are few where connections
//! are few, for the sake of the caches.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// Number of the one group.
pub(crate) const GROUP: u16 = 0;
/// Most answers are shorter; longer ones take several.
pub(crate) const BUFFER_BYTES: usize = 4096;
/// A cache line more than a buffer: with equal distances of 4096 bytes the beginnings of all
/// buffers, which are all that short answers need, would compete for the same few lines of a cache.
const STRIDE: usize = BUFFER_BYTES + 64;
/// Bounds of how many there are.
const COUNT_MIN: usize = 16;
const COUNT_MAX: usize = 1024;
const PAGE: usize = 4096;

/// How many buffers serve so many connections.
pub(crate) fn count(connections: usize) -> usize {
    connections.next_power_of_two().clamp(COUNT_MIN, COUNT_MAX)
}

/// See the module.
pub(crate) struct Buffers {
    /// The ring, then the buffers, in one piece.
    memory: NonNull<u8>,
    layout: Layout,
    data: usize,
    mask: u16,
    tail: u16,
}

impl Buffers {
    /// Registers `count` buffers, a power of two, all of them free.
    pub(crate) fn new(ring: &IoUring, count: usize) -> io::Result<Buffers> {
        let data = (count * size_of::<BufRingEntry>()).next_multiple_of(PAGE);
        let layout = Layout::from_size_align(data + count * STRIDE, PAGE)
            .map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the layout is not empty.
        let memory =
            NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut buffers = Buffers { memory, layout, data, mask: (count - 1) as u16, tail: 0 };
        // SAFETY: the memory is page-aligned, large enough, and freed only when the ring that is
        // told of it here has been closed (by the owner of both).
        unsafe {
            let at = memory.as_ptr() as u64;
            ring.submitter().register_buf_ring_with_flags(at, count as u16, GROUP, 0)?;
        }
        for id in 0..count {
            buffers.give_back(id as u16);
        }
        Ok(buffers)
    }

    /// What the kernel put into a buffer that it took.
    #[inline]
    pub(crate) fn read(&self, id: u16, bytes: usize) -> &[u8] {
        let id = usize::from(id & self.mask);
        // SAFETY: within the memory; the kernel does not write to a buffer that it took and filled
        // until it is given back, for which this borrow must have ended.
        unsafe {
            let at = self.memory.as_ptr().add(self.data + id * STRIDE);
            std::slice::from_raw_parts(at, bytes.min(BUFFER_BYTES))
        }
    }

    /// Gives a buffer to the kernel again.
    #[inline]
    pub(crate) fn give_back(&mut self, id: u16) {
        let id = id & self.mask;
        let slot = usize::from(self.tail & self.mask);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `slot` and `id` are within the memory; the kernel reads a slot only when the tail
        // has passed it, which is written last.
        unsafe {
            let ring = self.memory.as_ptr().cast::<BufRingEntry>();
            let entry = &mut *ring.add(slot);
            entry.set_addr(self.memory.as_ptr().add(self.data + usize::from(id) * STRIDE) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(id);
            let tail = BufRingEntry::tail(ring).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}
