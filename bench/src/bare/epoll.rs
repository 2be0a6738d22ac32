//! A bare loop over epoll.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::Timespec;

use crate::Failed;

/// Sends a request on each socket and another for each answer; the answers until then.
pub fn exchange<const N: usize>(
    sockets: Vec<OwnedFd>,
    mut request: impl FnMut(usize) -> [u8; N],
    until: Instant,
) -> Result<u64, Failed> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (token, socket) in sockets.iter().enumerate() {
        let interest = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, socket, EventData::new_u64(token as u64), interest)?;
        send(socket, &request(token), SendFlags::NOSIGNAL)?;
    }
    let (mut answers, mut buffer) = (0, [0u8; 4096]);
    let mut ready = Vec::with_capacity(512);
    let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while Instant::now() < until {
        ready.clear();
        epoll::wait(&epoll, spare_capacity(&mut ready), Some(&timeout))?;
        for event in &ready {
            let token = event.data.u64() as usize;
            match recv(&sockets[token], &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err("the server closed the connection".into()),
                Ok(_) => {
                    answers += 1;
                    send(&sockets[token], &request(token), SendFlags::NOSIGNAL)?;
                }
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(answers)
}
