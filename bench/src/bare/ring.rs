//! A bare loop over io_uring: each request is a send with a receive linked to it, and one call into
//! the kernel submits all that a batch of answers asked for and waits for the next.
//!
//! [`Ring`] serves the other side as well: the null responder receives first and sends then.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use io_uring::{IoUring, opcode, squeue, types};

use crate::Failed;

const BUFFER_BYTES: usize = 4096;
/// Marks the completion of a send, which is told only where it failed.
const SEND: u64 = 1 << 63;
/// In place of a token: somebody wants to connect.
pub const LISTENER: usize = 1 << 62;

/// A ring with its sockets and a buffer for each direction of each.
pub struct Ring {
    ring: IoUring,
    sockets: Vec<OwnedFd>,
    received: Vec<[u8; BUFFER_BYTES]>,
    sent: Vec<Vec<u8>>,
}

impl Ring {
    /// For at most so many connected sockets, none of which is there yet.
    pub fn new(sockets: usize) -> Result<Ring, Failed> {
        let entries = (2 * sockets as u32).next_power_of_two().clamp(64, 4096);
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .build(entries)?;
        ring.submitter().register_files_sparse(sockets as u32)?;
        // Receive buffers must stay where they are, so that there is room for all from the start.
        let received = Vec::with_capacity(sockets);
        Ok(Ring { ring, sockets: Vec::new(), received, sent: Vec::new() })
    }

    /// Takes over a socket; its token.
    pub fn add(&mut self, socket: OwnedFd) -> Result<usize, Failed> {
        let token = self.sockets.len();
        if token == self.received.capacity() {
            return Err("a socket too many".into());
        }
        self.ring.submitter().register_files_update(token as u32, &[socket.as_raw_fd()])?;
        self.sockets.push(socket);
        self.received.push([0; BUFFER_BYTES]);
        self.sent.push(Vec::with_capacity(512));
        Ok(token)
    }

    /// Tells once, as an event of [`LISTENER`], that somebody wants to connect.
    pub fn watch(&mut self, listener: &impl AsRawFd) -> Result<(), Failed> {
        let poll = opcode::PollAdd::new(types::Fd(listener.as_raw_fd()), libc::POLLIN as u32);
        self.push(poll.build().user_data(LISTENER as u64))
    }

    /// Receives on `token`, after sending `bytes` where there are some.
    pub fn exchange(&mut self, token: usize, bytes: &[u8]) -> Result<(), Failed> {
        let fixed = types::Fixed(token as u32);
        if !bytes.is_empty() {
            self.sent[token].clear();
            self.sent[token].extend_from_slice(bytes);
            let send = opcode::Send::new(fixed, self.sent[token].as_ptr(), bytes.len() as u32)
                .flags(libc::MSG_NOSIGNAL)
                .build()
                .flags(squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS)
                .user_data(SEND | token as u64);
            self.push(send)?;
        }
        let into = self.received[token].as_mut_ptr();
        let receive =
            opcode::Recv::new(fixed, into, BUFFER_BYTES as u32).build().user_data(token as u64);
        self.push(receive)
    }

    fn push(&mut self, entry: squeue::Entry) -> Result<(), Failed> {
        // SAFETY: the buffers belong to this ring and stay where they are while it exists; one
        // exchange at a time uses them.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Submits, waits for an event, and gives each to `received` (token, bytes); bytes are empty
    /// where the peer has closed.
    pub fn wait(&mut self, events: &mut Vec<(usize, usize)>) -> Result<(), Failed> {
        events.clear();
        let timeout = types::Timespec::new().nsec(50_000_000);
        let args = types::SubmitArgs::new().timespec(&timeout);
        match self.ring.submitter().submit_with_args(1, &args) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        for done in self.ring.completion() {
            if done.user_data() & SEND != 0 || done.result() < 0 {
                // A link whose send failed cancels its receive: the peer is gone.
                if done.user_data() & SEND == 0 {
                    events.push((done.user_data() as usize, 0));
                }
                continue;
            }
            events.push((done.user_data() as usize, done.result() as usize));
        }
        Ok(())
    }

    /// What was received on `token`.
    pub fn bytes(&self, token: usize, length: usize) -> &[u8] {
        &self.received[token][..length]
    }
}

/// Sends a request on each socket and another for each answer; the answers until then.
pub fn exchange<const N: usize>(
    sockets: Vec<OwnedFd>,
    mut request: impl FnMut(usize) -> [u8; N],
    until: Instant,
) -> Result<u64, Failed> {
    let mut ring = Ring::new(sockets.len())?;
    for socket in sockets {
        let token = ring.add(socket)?;
        ring.exchange(token, &request(token))?;
    }
    let (mut answers, mut events) = (0, Vec::with_capacity(4096));
    while Instant::now() < until {
        ring.wait(&mut events)?;
        for &(token, length) in &events {
            if length == 0 {
                return Err("the server closed the connection".into());
            }
            answers += 1;
            ring.exchange(token, &request(token))?;
        }
    }
    Ok(answers)
}
