//! The seam between a thread's loop and the kernel.
//!
//! A reactor moves bytes for connections named by token, which the loop chooses, below the number
//! it told at the start. Events are taken one by one ([`Reactor::next`]), each borrowing the
//! reactor's receive buffer, so that the loop is free to send between two of them.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Something happened on a connection.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// Bytes came.
    Received(&'a [u8]),
    /// The server closed its end.
    Closed,
    /// The connection broke.
    Failed(io::Error),
}

/// How long to wait, and for how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Not beyond this instant, CLOCK_MONOTONIC nanoseconds.
    pub until_ns: u64,
    /// Events that are worth waiting for together; 1: return with the first.
    pub company: u32,
    /// The first event waits at most this long for company; what comes later shares its wait.
    pub patience: Duration,
}

/// Moves bytes.
pub(crate) trait Reactor: Sized {
    /// As told in `DriveEvent::Connected`.
    const NAME: &'static str;
    /// Events that are handled between two readings of the clock: so many take less than 20 us.
    const TOGETHER: u32;

    /// For tokens below `connections`, none of which has a socket yet.
    fn new(connections: usize) -> io::Result<Self>;

    /// Takes over a connected non-blocking stream socket; also after [`Reactor::close`].
    fn add(&mut self, token: usize, socket: OwnedFd) -> io::Result<()>;

    /// Sends bytes at the latest when [`Reactor::wait`] is called next, or when the socket takes
    /// them.
    fn send(&mut self, token: usize, bytes: &[u8]) -> io::Result<()>;

    /// Sends what is to be sent and waits until something happens.
    fn wait(&mut self, wait: Wait) -> io::Result<()>;

    /// The next event of the latest [`Reactor::wait`].
    fn next(&mut self) -> Option<(usize, Event<'_>)>;

    /// Sends what is to be sent and closes a connection; nothing is told of it any more.
    fn close(&mut self, token: usize);
}

#[cfg(test)]
mod tests;
