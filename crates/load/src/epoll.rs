//! The reactor that every Linux has.
//!
//! Edge-triggered: a level-triggered set asks every socket that was just ready once more in the
//! next wait. With edges, a socket must be read until it is empty, which a read shorter than the
//! buffer shows without another call, unless the peer hung up, whose end of file must still be
//! read. Sockets are watched for writing only while something is kept for them: the server's every
//! read makes a socket writable again and would wake us for nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::Timespec;

use crate::cpu::monotonic_ns;
use crate::reactor::{Event, Reactor, Wait};

const BUFFER_BYTES: usize = 64 * 1024;
const EVENTS: usize = 512;

/// See the module.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    sockets: Vec<Socket>,
    ready: Vec<epoll::Event>,
    /// Next of `ready`.
    at: usize,
    buffer: Box<[u8]>,
}

struct Socket {
    fd: Option<OwnedFd>,
    /// What the socket did not take; empty without allocation nearly always.
    unsent: Vec<u8>,
}

impl Reactor for Epoll {
    const NAME: &'static str = "epoll";

    fn new(connections: usize) -> io::Result<Epoll> {
        Ok(Epoll {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            ready: Vec::with_capacity(connections.clamp(1, EVENTS)),
            sockets: (0..connections).map(|_| Socket { fd: None, unsent: Vec::new() }).collect(),
            at: 0,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        })
    }

    fn add(&mut self, token: usize, socket: OwnedFd) -> io::Result<()> {
        epoll::add(&self.epoll, &socket, data(token), watched(false))?;
        self.sockets[token] = Socket { fd: Some(socket), unsent: Vec::new() };
        Ok(())
    }

    #[inline]
    fn send(&mut self, token: usize, bytes: &[u8]) -> io::Result<()> {
        let socket = &mut self.sockets[token];
        let Some(fd) = &socket.fd else { return Err(io::ErrorKind::NotConnected.into()) };
        let sent = if socket.unsent.is_empty() { send_some(fd, bytes)? } else { 0 };
        if sent < bytes.len() {
            let watch = socket.unsent.is_empty();
            socket.unsent.extend_from_slice(&bytes[sent..]);
            if watch {
                epoll::modify(&self.epoll, fd, data(token), watched(true))?;
            }
        }
        Ok(())
    }

    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        self.ready.clear();
        self.at = 0;
        let timeout = Duration::from_nanos(wait.until_ns.saturating_sub(monotonic_ns()));
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[inline]
    fn next(&mut self) -> Option<(usize, Event<'_>)> {
        loop {
            let ready = *self.ready.get(self.at)?;
            let (flags, token) = (ready.flags, ready.data.u64() as usize);
            if flags.contains(EventFlags::OUT)
                && let Err(error) = self.flush(token)
            {
                self.at += 1;
                return Some((token, Event::Failed(error)));
            }
            let Some(fd) = &self.sockets[token].fd else {
                self.at += 1;
                continue;
            };
            let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            if !hung_up && !flags.contains(EventFlags::IN) {
                self.at += 1;
                continue;
            }
            match recv(fd, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.at += 1;
                    return Some((token, Event::Closed));
                }
                Ok((received, _)) => {
                    if received < self.buffer.len() && !hung_up {
                        self.at += 1;
                    }
                    return Some((token, Event::Received(&self.buffer[..received])));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.at += 1,
                Err(error) => {
                    self.at += 1;
                    return Some((token, Event::Failed(error.into())));
                }
            }
        }
    }

    fn close(&mut self, token: usize) {
        // Closing the only descriptor takes the socket out of the epoll set, too.
        self.sockets[token].fd = None;
        self.sockets[token].unsent = Vec::new();
    }
}

impl Epoll {
    /// Sends what was kept for a socket that is writable again.
    #[cold]
    fn flush(&mut self, token: usize) -> io::Result<()> {
        let socket = &mut self.sockets[token];
        let Some(fd) = &socket.fd else { return Ok(()) };
        let sent = send_some(fd, &socket.unsent)?;
        socket.unsent.drain(..sent);
        if socket.unsent.is_empty() {
            socket.unsent = Vec::new();
            epoll::modify(&self.epoll, fd, data(token), watched(false))?;
        }
        Ok(())
    }
}

/// Sends until the socket takes no more; returns how much it took.
#[inline]
fn send_some(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match send(fd, &bytes[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(taken) => sent += taken,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}

fn data(token: usize) -> EventData {
    EventData::new_u64(token as u64)
}

fn watched(writing: bool) -> EventFlags {
    let reading = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if writing { reading | EventFlags::OUT } else { reading }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (Epoll, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut reactor = Epoll::new(1).unwrap();
        reactor.add(0, ours.into()).unwrap();
        (reactor, theirs)
    }

    /// Polls until something happens.
    fn drain(reactor: &mut Epoll, received: &mut Vec<u8>) -> bool {
        let until_ns = monotonic_ns() + 10_000_000_000;
        reactor.wait(Wait { until_ns, company: 1, patience: Duration::ZERO }).unwrap();
        let mut closed = false;
        while let Some((token, event)) = reactor.next() {
            assert_eq!(token, 0);
            match event {
                Event::Received(bytes) => received.extend_from_slice(bytes),
                Event::Closed => {
                    closed = true;
                    reactor.close(0);
                }
                Event::Failed(error) => panic!("{error}"),
            }
        }
        closed
    }

    #[test]
    fn more_than_a_buffer_and_a_farewell_are_read_to_the_end() {
        let (mut reactor, mut theirs) = pair();
        let writer = std::thread::spawn(move || theirs.write_all(&vec![7; 5 * BUFFER_BYTES / 2]));
        let mut received = Vec::new();
        while !drain(&mut reactor, &mut received) {}
        writer.join().unwrap().unwrap();
        assert_eq!(received.len(), 5 * BUFFER_BYTES / 2);
    }

    #[test]
    fn what_the_socket_does_not_take_is_sent_later_and_in_order() {
        let (mut reactor, mut theirs) = pair();
        let piece: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
        for _ in 0..4 {
            reactor.send(0, &piece).unwrap();
        }
        assert!(!reactor.sockets[0].unsent.is_empty());
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; 4 << 20];
            theirs.read_exact(&mut all).unwrap();
            all
        });
        while !reactor.sockets[0].unsent.is_empty() {
            drain(&mut reactor, &mut Vec::new());
        }
        let all = reader.join().unwrap();
        assert!(all.chunks(1 << 20).all(|chunk| chunk == piece));
    }
}
