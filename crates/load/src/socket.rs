//! A socket that waits for its server until a deadline and not beyond.
//!
//! Never blocks in a read or write, so that a server that sends a byte now and then cannot stretch
//! the time; while connections are made, waiting is done here, by `poll`.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::spec::Address;

/// A connected socket, set to not block, and how long it may take.
pub(crate) struct PatientSocket {
    socket: OwnedFd,
    patience: Duration,
    until: Instant,
}

impl PatientSocket {
    /// Connects; this and what follows may take `patience` in all.
    pub(crate) fn connect(address: &Address, patience: Duration) -> io::Result<PatientSocket> {
        let until = Instant::now() + patience;
        let socket = match address {
            Address::Socket(path) => connect_unix(path, patience),
            Address::Tcp(host, port) => connect_tcp(host, *port, until),
        };
        let socket = socket.map_err(|error| told(error, patience))?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(PatientSocket { socket, patience, until })
    }

    /// The time begins anew: something else is asked now.
    pub(crate) fn renew(&mut self) {
        self.until = Instant::now() + self.patience;
    }

    pub(crate) fn into_inner(self) -> OwnedFd {
        self.socket
    }

    /// Does `attempt` as soon as the socket is ready for it.
    fn patiently<T>(
        &self,
        ready: PollFlags,
        mut attempt: impl FnMut(&OwnedFd) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        loop {
            // Looked at each time, not only when there is nothing: a server that never stops
            // talking must not hold us either.
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(told(io::ErrorKind::TimedOut.into(), self.patience));
            }
            match attempt(&self.socket) {
                Ok(done) => return Ok(done),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
            let timeout = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&self.socket, ready)], timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for PatientSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.patiently(PollFlags::IN, |socket| rustix::io::read(socket, &mut *bytes))
    }
}

impl Write for PatientSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(PollFlags::OUT, |socket| {
            rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server whose backlog is full lets a connection wait; the send timeout limits that.
fn connect_unix(path: &Path, patience: Duration) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    rustix::net::connect(&socket, &address)?;
    Ok(socket)
}

/// The first of the host's addresses that answers.
fn connect_tcp(host: &str, port: u16, until: Instant) -> io::Result<OwnedFd> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket.into());
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A timeout in words; a socket's own calls itself "temporarily unavailable".
fn told(error: io::Error, patience: Duration) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("not done within {} s", patience.as_secs()),
        ),
        _ => error,
    }
}
