//! The least that a driver must do: send a request, wait, receive the answer. No decoding, no
//! random rows beyond one multiplication, no histogram. What ceteris costs above this is its own;
//! what this costs is the kernel's.

mod epoll;
mod ring;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use load::Target;

use crate::Failed;
use crate::handshake::{connect, execute};
use crate::sample::{Sample, thread_cpu_s};
use crate::server::ROWS;

pub use ring::{LISTENER, Ring};

/// How a bare loop waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Epoll,
    Ring,
}

/// Drives point selects from one thread under SCHED_BATCH, as ceteris does by default.
pub fn drive(way: Way, target: &Target, connections: u32, seconds: u64) -> Result<Sample, Failed> {
    let target = target.clone();
    // A thread of its own, so that its CPU and its scheduling class are.
    let thread = std::thread::spawn(move || -> Result<Sample, String> {
        drive_here(way, &target, connections, seconds).map_err(|error| error.to_string())
    });
    Ok(thread.join().map_err(|_| "the bare loop panicked")??)
}

fn drive_here(way: Way, target: &Target, connections: u32, seconds: u64) -> Result<Sample, Failed> {
    be_batch();
    let (mut sockets, mut statements) = (Vec::<OwnedFd>::new(), Vec::new());
    for _ in 0..connections {
        let (socket, statement) = connect(target, "SELECT c FROM sbtest1 WHERE id=?")?;
        sockets.push(socket);
        statements.push(statement);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let request = |token: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let id = ((u128::from(state) * u128::from(ROWS)) >> 64) as u64 + 1;
        execute(statements[token], id)
    };
    let began = Instant::now();
    let until = began + Duration::from_secs(seconds);
    let before = thread_cpu_s();
    let answers = match way {
        Way::Epoll => epoll::exchange(sockets, request, until)?,
        Way::Ring => ring::exchange(sockets, request, until)?,
    };
    let after = thread_cpu_s();
    Ok(Sample {
        statements: answers as f64,
        seconds: began.elapsed().as_secs_f64(),
        user_s: after.0 - before.0,
        sys_s: after.1 - before.1,
    })
}

fn be_batch() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for reading a `sched_param`; pid 0 is the calling thread. A
    // refusal leaves the class as it is.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &param) };
}
