//! A drive without a kernel: a reactor that answers every command at once, from memory.
//!
//! For `make bench`, which counts the instructions that one statement costs on its whole way
//! through tasks, sessions, encoder, decoder and recorder. What a kernel adds to that differs from
//! run to run; this is the same each time. A product's binary does not contain it.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::connect::Connected;
use crate::cpu::monotonic_ns;
use crate::crew::{Brief, Crew, Stops};
use crate::error::DriveError;
use crate::handover::{HandOver, ThreadInterval};
use crate::reactor::{Event, Reactor, Wait};
use crate::recorder::Recorded;
use crate::register::Register;
use crate::schedule::Interval;
use crate::spec::{Address, DriveSpec, StatementProtocol, Target, Tls};
use crate::timeline::Timeline;
use crate::transport::Transport;
use crate::workload::Workload;

/// Longer than any rehearsal: no interval ends in it, which would cost what statements do not.
const LENGTH: Duration = Duration::from_secs(24 * 3600);

/// What is rehearsed.
#[derive(Clone, Copy, Debug)]
pub struct Rehearsal<'a> {
    /// Connections, all of which have a statement under way all the time.
    pub connections: u32,
    /// How statements travel.
    pub protocol: StatementProtocol,
    /// What every command is answered.
    pub reply: &'a [u8],
    /// How many are.
    pub answers: u64,
}

/// Drives `workload` in a closed loop until all answers have been given.
///
/// # Errors
/// Those of a drive, or commands and answers did not alternate.
pub fn rehearse<W: Workload>(workload: &W, rehearsal: Rehearsal<'_>) -> Result<(), DriveError> {
    let Rehearsal { connections, protocol, reply, answers } = rehearsal;
    let address = Address::Socket("/rehearsal".into());
    let (user, password, database) = Default::default();
    let spec = DriveSpec {
        targets: vec![Target { address, user, password, database, tls: Tls::default() }],
        connections,
        measure: LENGTH,
        protocol,
        ..DriveSpec::default()
    };
    let (prepared, texts) = match protocol {
        StatementProtocol::Prepared => (workload.statements(), Vec::new()),
        StatementProtocol::Text => (Vec::new(), workload.statements()),
    };
    let progress = Arc::new(Progress::default());
    let brief = Brief {
        spec: &spec,
        register: &Register::new(workload, 1),
        timeline: &Arc::new(Timeline::new(&spec)?),
        prepared: &prepared,
        texts: &texts,
        stops: Stops { asked: &progress.done, failed: &AtomicBool::new(false) },
        threads: 1,
    };
    let end_ns = u64::try_from(LENGTH.as_nanos()).unwrap_or(u64::MAX);
    let schedule = [Interval { begin_ns: 0, end_ns, measured: true }];
    let connected = (0..connections).map(|_| connected(prepared.len())).collect::<io::Result<_>>();
    let connected = connected.map_err(|source| DriveError::System { what: "open", source })?;
    let canned = Canned {
        reply: reply.into(),
        left: answers,
        asked: Vec::with_capacity(connections as usize),
        answered: Vec::with_capacity(connections as usize),
        progress: Arc::clone(&progress),
    };
    let crew = Crew::alone(brief, connected);
    match crew.run(workload, canned, monotonic_ns(), &schedule, None, &mut Nobody) {
        Err(DriveError::Stopped) => {}
        result => return result,
    }
    // One under way at each connection, and another for each answer.
    let (commands, expected) =
        (progress.commands.load(Ordering::Relaxed), u64::from(connections) + answers);
    if commands != expected {
        return Err(DriveError::Internal(format!("{commands} commands, not {expected}")));
    }
    Ok(())
}

/// A connection to nobody, for whom the statements have their own numbers.
fn connected(statements: usize) -> io::Result<Connected> {
    let socket = File::open("/dev/null")?.into();
    Ok(Connected {
        socket,
        transport: Transport::PLAIN,
        statements: (0..statements as u32).collect(),
    })
}

/// What is seen of a [`Canned`] that a drive owns.
#[derive(Default)]
struct Progress {
    /// Commands that it was sent.
    commands: AtomicU64,
    /// It has given all its answers.
    done: AtomicBool,
}

/// Whoever asked before a wait is answered after it.
#[derive(Default)]
struct Canned {
    reply: Box<[u8]>,
    /// Answers that have not been given.
    left: u64,
    /// Since the latest wait.
    asked: Vec<usize>,
    /// Before it; they are yet to be answered.
    answered: Vec<usize>,
    progress: Arc<Progress>,
}

impl Reactor for Canned {
    const NAME: &'static str = "none";
    /// As io_uring.
    const TOGETHER: u32 = 16;

    /// One that answers nothing.
    fn new(_: usize) -> io::Result<Canned> {
        Ok(Canned::default())
    }

    fn add(&mut self, _: usize, _: OwnedFd) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    fn send(&mut self, token: usize, _: &[u8]) -> io::Result<()> {
        self.asked.push(token);
        Ok(())
    }

    fn wait(&mut self, _: Wait) -> io::Result<()> {
        let commands = self.asked.len() as u64;
        self.progress.commands.fetch_add(commands, Ordering::Relaxed);
        mem::swap(&mut self.asked, &mut self.answered);
        self.answered.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= self.answered.len() as u64;
        self.progress.done.store(self.answered.is_empty(), Ordering::Relaxed);
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<(usize, Event<'_>)> {
        self.answered.pop().map(|token| (token, Event::Received(&self.reply)))
    }

    fn close(&mut self, _: usize) {}
}

/// Listens to no interval, since none ends.
struct Nobody;

impl HandOver for Nobody {
    fn emptied(&mut self) -> Option<Box<Recorded>> {
        None
    }

    fn hand_over(&mut self, _: ThreadInterval) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use wire::Param;

    use super::*;
    use crate::rng::Rng;
    use crate::session::Session;
    use crate::workload::{Statement, TransactionError};

    struct Two;

    impl Workload for Two {
        fn statements(&self) -> Vec<Statement> {
            vec![Statement { text: "DO ?".to_owned(), name: "do".to_owned() }]
        }

        async fn transaction(
            &self,
            session: &mut Session,
            _: usize,
            mut rng: Rng,
        ) -> Result<(), TransactionError> {
            for _ in 0..2 {
                session.execute(0, &[Param::UInt(rng.next_u64())]).await?;
            }
            Ok(())
        }
    }

    #[test]
    fn every_answer_is_followed_by_a_command() {
        let ok = b"\x07\0\0\x01\0\0\0\x02\0\0\0";
        for protocol in [StatementProtocol::Prepared, StatementProtocol::Text] {
            let rehearsal = Rehearsal { connections: 3, protocol, reply: ok, answers: 100 };
            rehearse(&Two, rehearsal).unwrap();
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let protocol = StatementProtocol::Prepared;
        let rehearsal = Rehearsal { connections: 1, protocol, reply: b"\0\0\0\x07", answers: 2 };
        assert!(matches!(rehearse(&Two, rehearsal), Err(DriveError::Protocol { .. })));
    }
}
