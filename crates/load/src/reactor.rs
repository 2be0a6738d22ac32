//! The seam between a thread's loop and the kernel.
//!
//! A reactor moves bytes for connections named by token, which is their index. Events are taken
//! one by one ([`Reactor::next`]), each borrowing the reactor's one receive buffer, so that the
//! loop is free to send between two of them.

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

/// Moves bytes.
pub(crate) trait Reactor: Sized {
    /// As told in `DriveEvent::Connected`.
    const NAME: &'static str;

    /// Takes over connected stream sockets; the token of each is its index.
    fn new(sockets: Vec<OwnedFd>) -> io::Result<Self>;

    /// Sends bytes, or keeps what the socket does not take now and sends it when it does.
    fn send(&mut self, token: usize, bytes: &[u8]) -> io::Result<()>;

    /// Waits until something happens, at most `timeout`.
    fn poll(&mut self, timeout: Duration) -> io::Result<()>;

    /// The next event of the latest [`Reactor::poll`].
    fn next(&mut self) -> Option<(usize, Event<'_>)>;

    /// Closes a connection; nothing is told of it any more.
    fn close(&mut self, token: usize);
}
