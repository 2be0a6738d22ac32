//! Makes lost connections again, for all threads of a drive.
//!
//! Logging in blocks, which no generator thread may, and a server that comes back should not be met
//! by all connections at once; so one thread makes them, one after the other, and waits after a
//! failure: 10 ms, doubling to 1 s, for each target by itself, so that one that is down does not
//! keep connections from another. Each attempt is told to the thread whose connection it was for,
//! also one that failed, because an outage that nobody counts is none. It owns what it needs and is not waited for, because a server
//! that accepts and then says nothing would hold up the end of the drive.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::connect::{Connected, connect};
use crate::error::DriveError;
use crate::spec::Target;
use crate::workload::Statement;

const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A connection that is lost.
struct Request {
    thread: usize,
    token: usize,
    target: usize,
}

/// What an attempt came to.
pub(crate) enum Dialled {
    /// The connection stands, after so many nanoseconds.
    Connected { token: usize, connected: Connected, took_ns: u64 },
    /// It does not, and will be tried again; by [`DriveError::code`].
    Failed { code: u16 },
}

/// A generator thread's way to the dialler and back.
pub(crate) struct Dialler {
    thread: usize,
    ask: Sender<Request>,
    back: Receiver<Dialled>,
}

impl Dialler {
    /// Starts the thread and returns the ways of `threads` generator threads to it. It ends when
    /// they are dropped.
    pub(crate) fn start(
        targets: &[Target],
        statements: &[Statement],
        threads: u32,
    ) -> Result<Vec<Dialler>, DriveError> {
        let (ask, asked) = channel();
        let (mut dialler_ends, mut thread_ends) = (Vec::new(), Vec::new());
        for thread in 0..threads as usize {
            let (give, back) = channel();
            dialler_ends.push(give);
            thread_ends.push(Dialler { thread, ask: ask.clone(), back });
        }
        let (targets, statements) = (targets.to_vec(), statements.to_vec());
        std::thread::Builder::new()
            .name("load-dialler".to_owned())
            .spawn(move || dial(&targets, &statements, &asked, &dialler_ends))
            .map_err(|source| DriveError::System { what: "start", source })?;
        Ok(thread_ends)
    }

    /// Asks for a new connection to the `target`-th target.
    pub(crate) fn dial(&self, token: usize, target: usize) {
        let _ = self.ask.send(Request { thread: self.thread, token, target });
    }

    /// What the next attempt came to, if one has been made.
    pub(crate) fn dialled(&self) -> Option<Dialled> {
        self.back.try_recv().ok()
    }
}

/// When a target may be tried again.
struct Pause {
    until: Instant,
    /// After the next failure.
    length: Duration,
}

impl Pause {
    fn none() -> Pause {
        Pause { until: Instant::now(), length: PAUSE_MIN }
    }

    fn after_failure(&self) -> Pause {
        let length = (self.length * 2).min(PAUSE_MAX);
        Pause { until: Instant::now() + self.length, length }
    }
}

fn dial(
    targets: &[Target],
    statements: &[Statement],
    asked: &Receiver<Request>,
    back: &[Sender<Dialled>],
) {
    let mut waiting: VecDeque<Request> = VecDeque::new();
    let mut pauses: Vec<Pause> = targets.iter().map(|_| Pause::none()).collect();
    loop {
        loop {
            match asked.try_recv() {
                Ok(request) => waiting.push_back(request),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let now = Instant::now();
        let ready = waiting.iter().position(|request| pauses[request.target].until <= now);
        let Some(request) = ready.and_then(|index| waiting.remove(index)) else {
            let until = waiting.iter().map(|request| pauses[request.target].until).min();
            let pause = until.map_or(PAUSE_MAX, |until| until.saturating_duration_since(now));
            match asked.recv_timeout(pause) {
                Ok(request) => waiting.push_back(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            continue;
        };
        let pause = &mut pauses[request.target];
        let Request { thread, token, .. } = request;
        match connect(&targets[request.target], statements) {
            Ok(connected) => {
                *pause = Pause::none();
                let took_ns = u64::try_from(now.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let _ = back[thread].send(Dialled::Connected { token, connected, took_ns });
            }
            // Whatever the cause, it is tried again: a server that starts up gives all kinds.
            Err(error) => {
                let _ = back[thread].send(Dialled::Failed { code: error.code() });
                *pause = pause.after_failure();
                waiting.push_back(request);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second() {
        let mut pause = Pause::none();
        let mut lengths = Vec::new();
        for _ in 0..9 {
            lengths.push(pause.length.as_millis());
            pause = pause.after_failure();
        }
        assert_eq!(lengths, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert!(pause.until > Instant::now());
    }
}
