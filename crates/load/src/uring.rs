//! The reactor that asks the kernel once for many connections.
//!
//! Each connection has one receive operation that stays in force ("multishot") and takes buffers
//! from a common ring ([`buffers`]). Sends are queued, and the call that waits hands all of them
//! over ([`kernel`]). A short send to a peer that has answered everything before it is done at
//! once, so it reports only failure: what comes back says that it arrived, and completions are
//! only those that somebody waits for. All other sends, long ones and those whose forerunner has
//! not been answered, go one after the other and report each.
//!
//! Memory that the kernel may be reading is never freed before it says that it is done: short
//! messages have a place of their own for each connection until the ring is gone, long ones belong
//! to their operation. A peer that answers before it was asked can make us overwrite a short
//! message that the kernel still holds; it then gets other bytes of ours that were meant for it,
//! and nothing else happens.

mod buffers;
mod kernel;

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, Fixed};
use io_uring::{cqueue, opcode};
use rustix::io::Errno;

use crate::cpu::monotonic_ns;
use crate::reactor::{Event, Reactor, Wait};
use buffers::Buffers;
use kernel::Kernel;

/// Longest message that is sent without a report of its own.
const SHORT_BYTES: usize = 512;
/// A probe that has not been answered for so long will not be.
const PROBE_NS: u64 = 2_000_000_000;

/// See the module. Its fields are dropped in this order: the ring before what it uses.
pub(crate) struct Uring {
    kernel: Kernel,
    buffers: Buffers,
    connections: Box<[Connection]>,
    /// A place of [`SHORT_BYTES`] for each connection; the pages of those that are idle are never
    /// touched.
    short: Box<[u8]>,
    /// The buffer that the latest event lent out.
    lent: Option<u16>,
    /// Long messages of connections that were closed, until their operations report.
    orphans: Vec<(u64, Box<Long>)>,
}

#[derive(Default)]
struct Connection {
    /// Goes up when the connection is closed, so that late completions are known as such.
    generation: u32,
    open: bool,
    sending: Sending,
}

/// What is on its way out.
#[derive(Default)]
enum Sending {
    /// Nothing that the peer has not answered.
    #[default]
    Nothing,
    /// A short message of so many bytes. It has arrived when something comes back.
    Short(u16),
    /// As `Short`, but another message waits and must not overtake it: the operation was cancelled,
    /// which tells whether there was anything left to cancel.
    Asked(u16, Box<Long>),
    /// A message that reports.
    Long(Box<Long>),
}

#[derive(Default)]
struct Long {
    /// The kernel reads this from `sent` on; it does not move while it does.
    bytes: Vec<u8>,
    sent: usize,
    /// What comes next.
    waiting: Vec<u8>,
}

/// What an operation was, in its `user_data`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Receive = 0,
    Send = 1,
    /// The cancellation of a short message.
    Ask = 2,
    /// Whatever it comes to.
    Ignored = 3,
}

const GENERATION_MASK: u32 = (1 << 30) - 1;

fn name(kind: Kind, token: usize, generation: u32) -> u64 {
    u64::from(generation & GENERATION_MASK) << 34 | (kind as u64) << 32 | u64::from(token as u32)
}

fn kind(name: u64) -> Kind {
    match name >> 32 & 3 {
        0 => Kind::Receive,
        1 => Kind::Send,
        2 => Kind::Ask,
        _ => Kind::Ignored,
    }
}

impl Reactor for Uring {
    const NAME: &'static str = "io_uring";
    /// Each stays in user space, half a microsecond.
    const TOGETHER: u32 = 16;

    fn new(connections: usize) -> io::Result<Uring> {
        let slots = u32::try_from(connections.max(1)).map_err(|_| io::ErrorKind::InvalidInput)?;
        let buffers = buffers::count(connections);
        let kernel = Kernel::new(connections, buffers + 2 * connections)?;
        kernel.ring().submitter().register_files_sparse(slots)?;
        Ok(Uring {
            buffers: Buffers::new(kernel.ring(), buffers)?,
            connections: (0..connections).map(|_| Connection::default()).collect(),
            short: vec![0; connections * SHORT_BYTES].into_boxed_slice(),
            lent: None,
            orphans: Vec::new(),
            kernel,
        })
    }

    fn add(&mut self, token: usize, socket: OwnedFd) -> io::Result<()> {
        if self.connections[token].generation > 0 {
            // What ends the one before must be done before the new one takes its place.
            self.kernel.submit()?;
        }
        let submitter = self.kernel.ring().submitter();
        submitter.register_files_update(token as u32, &[socket.as_raw_fd()])?;
        let connection = &mut self.connections[token];
        connection.open = true;
        connection.sending = Sending::Nothing;
        self.receive(token)
    }

    #[inline]
    fn send(&mut self, token: usize, bytes: &[u8]) -> io::Result<()> {
        let connection = &mut self.connections[token];
        if !connection.open {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if !matches!(connection.sending, Sending::Nothing) || bytes.len() > SHORT_BYTES {
            return self.send_with_report(token, bytes);
        }
        connection.sending = Sending::Short(bytes.len() as u16);
        let send_name = name(Kind::Send, token, connection.generation);
        let place = &mut self.short[token * SHORT_BYTES..][..bytes.len()];
        place.copy_from_slice(bytes);
        let entry = send_entry(token, place).user_data(send_name).flags(Flags::SKIP_SUCCESS);
        // SAFETY: the place stays until the ring is gone.
        unsafe { self.kernel.push(&entry) }
    }

    #[inline]
    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        self.take_back();
        self.kernel.wait(wait)
    }

    #[inline]
    fn next(&mut self) -> Option<(usize, Event<'_>)> {
        loop {
            self.take_back();
            let completion = self.kernel.pop()?;
            let (name, flags) = (completion.user_data(), completion.flags());
            self.lent = cqueue::buffer_select(flags);
            let token = name as u32 as usize;
            let Some(connection) = self.connections.get_mut(token) else { continue };
            let current = connection.generation & GENERATION_MASK == (name >> 34) as u32;
            if !current || !connection.open {
                self.bury(name);
                continue;
            }
            if kind(name) != Kind::Receive {
                match self.sent(name, token, completion.result()) {
                    Ok(()) => continue,
                    Err(error) => return Some((token, Event::Failed(error))),
                }
            }
            let received = completion.result();
            if let Ok(bytes @ 1..) = usize::try_from(received) {
                if let Sending::Short(_) = connection.sending {
                    connection.sending = Sending::Nothing;
                }
                if !cqueue::more(flags)
                    && let Err(error) = self.receive(token)
                {
                    return Some((token, Event::Failed(error)));
                }
                let bytes = self.lent.map_or(&[][..], |id| self.buffers.read(id, bytes));
                return Some((token, Event::Received(bytes)));
            }
            if received == 0 {
                return Some((token, Event::Closed));
            }
            match self.interrupted(token, received) {
                Ok(()) => {}
                Err(error) => return Some((token, Event::Failed(error))),
            }
        }
    }

    fn close(&mut self, token: usize) {
        let connection = &mut self.connections[token];
        if !connection.open {
            return;
        }
        let sending = std::mem::take(&mut connection.sending);
        if let Sending::Long(long) = sending {
            self.orphans.push((name(Kind::Send, token, connection.generation), long));
        }
        connection.open = false;
        connection.generation = connection.generation.wrapping_add(1) & GENERATION_MASK;
        let ignored = name(Kind::Ignored, token, connection.generation);
        let slot = Fixed(token as u32);
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::fd(slot).all()).build();
        let close = opcode::Close::new(slot).build();
        for entry in [cancel, close] {
            let entry = entry.user_data(ignored).flags(Flags::SKIP_SUCCESS);
            // SAFETY: neither points to memory. If the kernel takes nothing any more, the ring's
            // end closes the socket.
            let _ = unsafe { self.kernel.push(&entry) };
        }
    }
}

impl Uring {
    /// Tries on a socket pair all that a drive needs.
    ///
    /// # Errors
    /// What this kernel does not have, or does not let us do (seccomp, `kernel.io_uring_disabled`).
    pub(crate) fn probe() -> io::Result<()> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let mut ring = Uring::new(1)?;
        ring.add(0, ours.into())?;
        ring.send(0, b"?")?;
        let until_ns = monotonic_ns() + PROBE_NS;
        let wait = Wait { until_ns: monotonic_ns(), company: 1, patience: Duration::ZERO };
        ring.wait(wait)?;
        theirs.set_nonblocking(true)?;
        (&theirs).read_exact(&mut [0])?;
        (&theirs).write_all(b"!")?;
        ring.wait(Wait { until_ns, ..wait })?;
        let heard = match ring.next() {
            Some((0, Event::Received(b"!"))) => Ok(()),
            Some((_, Event::Failed(error))) => Err(error),
            _ => Err(io::Error::other("it does not say what it received")),
        };
        ring.close(0);
        heard
    }

    /// Gives the buffer of the latest event to the kernel again.
    #[inline]
    fn take_back(&mut self) {
        if let Some(id) = self.lent.take() {
            self.buffers.give_back(id);
        }
    }

    /// Asks for all that a connection will receive.
    #[cold]
    fn receive(&mut self, token: usize) -> io::Result<()> {
        let receive_name = name(Kind::Receive, token, self.connections[token].generation);
        let entry = opcode::RecvMulti::new(Fixed(token as u32), buffers::GROUP).build();
        // SAFETY: it points to no memory but the registered buffers, which outlive the ring.
        unsafe { self.kernel.push(&entry.user_data(receive_name)) }
    }

    /// A receive operation ended with an error.
    #[cold]
    fn interrupted(&mut self, token: usize, result: i32) -> io::Result<()> {
        match Errno::from_raw_os_error(-result) {
            // No buffer was free, which is so no longer when the kernel is next asked: whoever
            // waits takes all events first, and with them gives all buffers back.
            Errno::NOBUFS | Errno::INTR | Errno::AGAIN => self.receive(token),
            error => Err(error.into()),
        }
    }

    /// Sends what is long, or what must wait for something before it.
    #[cold]
    fn send_with_report(&mut self, token: usize, bytes: &[u8]) -> io::Result<()> {
        let connection = &mut self.connections[token];
        match &mut connection.sending {
            Sending::Nothing => {
                let long = Long { bytes: bytes.to_vec(), ..Long::default() };
                connection.sending = Sending::Long(Box::new(long));
                self.send_rest(token)
            }
            Sending::Short(length) => {
                let long = Long { waiting: bytes.to_vec(), ..Long::default() };
                connection.sending = Sending::Asked(*length, Box::new(long));
                self.ask(token)
            }
            Sending::Asked(_, long) | Sending::Long(long) => {
                long.waiting.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Asks whether a short message is still on its way, by calling it back.
    fn ask(&mut self, token: usize) -> io::Result<()> {
        let generation = self.connections[token].generation;
        let asked = CancelBuilder::user_data(name(Kind::Send, token, generation));
        let entry = opcode::AsyncCancel2::new(asked).build();
        // SAFETY: it points to no memory.
        unsafe { self.kernel.push(&entry.user_data(name(Kind::Ask, token, generation))) }
    }

    /// Sends what is left of a long message.
    fn send_rest(&mut self, token: usize) -> io::Result<()> {
        let connection = &self.connections[token];
        let Sending::Long(long) = &connection.sending else { return Ok(()) };
        let entry = send_entry(token, &long.bytes[long.sent..]).user_data(name(
            Kind::Send,
            token,
            connection.generation,
        ));
        // SAFETY: the bytes belong to the operation until it reports (see `close`).
        unsafe { self.kernel.push(&entry) }
    }

    /// A send has reported, or the question whether it is done was answered.
    #[cold]
    fn sent(&mut self, name: u64, token: usize, result: i32) -> io::Result<()> {
        let errno = (result < 0).then(|| Errno::from_raw_os_error(-result));
        let connection = &mut self.connections[token];
        match (kind(name), std::mem::take(&mut connection.sending)) {
            (Kind::Ask, Sending::Asked(length, long)) => match errno {
                // Nothing was left to call back.
                Some(Errno::NOENT) => self.go_on(token, long),
                Some(Errno::ALREADY) => {
                    connection.sending = Sending::Asked(length, long);
                    self.ask(token)
                }
                // Called back: the message itself says how far it came.
                _ => {
                    connection.sending = Sending::Asked(length, long);
                    Ok(())
                }
            },
            (Kind::Send, Sending::Asked(length, mut long)) => {
                let sent = taken(result)?;
                let place = &self.short[token * SHORT_BYTES..][..usize::from(length)];
                long.bytes = place[sent.min(place.len())..].to_vec();
                if long.bytes.is_empty() {
                    return self.go_on(token, long);
                }
                connection.sending = Sending::Long(long);
                self.send_rest(token)
            }
            (Kind::Send, Sending::Long(mut long)) => {
                long.sent += taken(result)?;
                if long.sent >= long.bytes.len() {
                    return self.go_on(token, long);
                }
                connection.sending = Sending::Long(long);
                self.send_rest(token)
            }
            (Kind::Send, sending) => {
                // A short message reports failure only.
                connection.sending = sending;
                taken(result).map(|_| ())
            }
            (_, sending) => {
                connection.sending = sending;
                Ok(())
            }
        }
    }

    /// What went before has been taken: sends what waits, if anything does.
    fn go_on(&mut self, token: usize, mut long: Box<Long>) -> io::Result<()> {
        if long.waiting.is_empty() {
            self.connections[token].sending = Sending::Nothing;
            return Ok(());
        }
        long.bytes = std::mem::take(&mut long.waiting);
        long.sent = 0;
        self.connections[token].sending = Sending::Long(long);
        self.send_rest(token)
    }

    /// An operation of a connection that was closed has ended.
    #[cold]
    fn bury(&mut self, name: u64) {
        self.orphans.retain(|(orphan, _)| *orphan != name);
    }
}

/// Sends all of `bytes`, or as much as can be until it fails.
#[inline]
fn send_entry(token: usize, bytes: &[u8]) -> io_uring::squeue::Entry {
    // More than 4 GiB in one message there is not: the rest would be sent when this reports.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    opcode::Send::new(Fixed(token as u32), bytes.as_ptr(), length)
        .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
        .build()
}

/// Bytes that a send took before it was called back, or all.
fn taken(result: i32) -> io::Result<usize> {
    match usize::try_from(result) {
        Ok(taken) => Ok(taken),
        Err(_) => match Errno::from_raw_os_error(-result) {
            Errno::CANCELED | Errno::INTR | Errno::AGAIN => Ok(0),
            error => Err(error.into()),
        },
    }
}
