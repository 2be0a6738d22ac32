//! The reactor that every Linux has.
//!
//! Edge-triggered: a level-triggered set asks every socket that was just ready once more in the
//! next wait. With edges, a socket must be read until it is empty, which a read shorter than the
//! buffer shows without another call, unless the peer hung up, whose end of file must still be
//! read. Sockets are watched for writing only while something is kept for them: the server's every
//! read makes a socket writable again and would wake us for nothing.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

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
    /// A send may put whom it wakes in our place at once, for any time.
    const TOGETHER: u32 = 1;

    fn new(connections: usize) -> io::Result<Epoll> {
        Ok(Epoll {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            ready: Vec::with_capacity(connections.clamp(2, EVENTS)),
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
        let left = |until_ns: u64| Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        self.collect(left(wait.until_ns))?;
        // The set cannot wait for several. Waking for each of them would save nothing, so whoever
        // has come sits the whole patience out.
        let came = self.ready.len();
        if came > 0 && came < wait.company as usize && !wait.patience.is_zero() {
            std::thread::sleep(wait.patience.min(left(wait.until_ns)));
            self.collect(Duration::ZERO)?;
        }
        Ok(())
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
    /// Adds to `ready` what is ready, or what is so first within `timeout`.
    ///
    /// rustix rounds timeouts to milliseconds, for the sake of kernels before 5.11; what is due
    /// between two milliseconds would begin late.
    fn collect(&mut self, timeout: Duration) -> io::Result<()> {
        let room = self.ready.spare_capacity_mut();
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: the kernel writes at most as many events as there is room for, of the size that
        // it shares with libc and rustix, and reads the timeout.
        let came = unsafe {
            let (set, null) = (self.epoll.as_raw_fd(), std::ptr::null::<libc::sigset_t>());
            let (room, most) = (room.as_mut_ptr().cast(), room.len() as libc::c_int);
            match libc::syscall(libc::SYS_epoll_pwait2, set, room, most, &timeout, null, 0) {
                -1 if last_errno() == Errno::NOSYS => {
                    libc::epoll_wait(set, room, most, milliseconds(&timeout)).into()
                }
                came => came,
            }
        };
        match usize::try_from(came) {
            // SAFETY: so many were written.
            Ok(came) => unsafe { self.ready.set_len(self.ready.len() + came) },
            Err(_) if last_errno() == Errno::INTR => {}
            Err(_) => return Err(io::Error::last_os_error()),
        }
        Ok(())
    }

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

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Rounded up, so that nothing is waited for twice.
fn milliseconds(time: &libc::timespec) -> libc::c_int {
    let ms = time.tv_sec.saturating_mul(1000).saturating_add((time.tv_nsec + 999_999) / 1_000_000);
    libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX)
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
