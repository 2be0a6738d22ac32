//! What every reactor must do, tried on each.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;
use crate::cpu::monotonic_ns;
use crate::epoll::Epoll;
use crate::uring::Uring;

const HOUR: Duration = Duration::from_secs(3600);

/// So many connections and their other ends.
fn connected<R: Reactor>(count: usize) -> (R, Vec<UnixStream>) {
    crate::descriptors::make_room(2 * count as u64 + 100);
    let mut reactor = R::new(count).unwrap();
    let theirs = (0..count).map(|token| add(&mut reactor, token)).collect();
    (reactor, theirs)
}

fn add<R: Reactor>(reactor: &mut R, token: usize) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    reactor.add(token, ours.into()).unwrap();
    theirs
}

fn alone(within: Duration) -> Wait {
    let until_ns = monotonic_ns() + within.as_nanos() as u64;
    Wait { until_ns, company: 1, patience: Duration::ZERO }
}

/// What the events of one wait came to: received bytes by token; who closed.
#[derive(Default)]
struct Came {
    bytes: Vec<Vec<u8>>,
    closed: Vec<usize>,
    events: usize,
}

impl Came {
    fn of(connections: usize) -> Came {
        Came { bytes: vec![Vec::new(); connections], ..Came::default() }
    }

    /// Waits once and takes all events.
    fn wait<R: Reactor>(&mut self, reactor: &mut R, wait: Wait) {
        reactor.wait(wait).unwrap();
        while let Some((token, event)) = reactor.next() {
            self.events += 1;
            match event {
                Event::Received(bytes) => self.bytes[token].extend_from_slice(bytes),
                Event::Closed => {
                    self.closed.push(token);
                    reactor.close(token);
                }
                Event::Failed(error) => panic!("{token}: {error}"),
            }
        }
    }
}

fn more_than_all_buffers_and_a_farewell_are_read_to_the_end<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(1);
    let text: Vec<u8> = (0..=250).cycle().take(1_000_001).collect();
    let (mut stream, said) = (theirs.remove(0), text.clone());
    let writer = std::thread::spawn(move || stream.write_all(&said));
    let mut came = Came::of(1);
    while came.closed.is_empty() {
        came.wait(&mut reactor, alone(HOUR));
    }
    writer.join().unwrap().unwrap();
    assert!(came.bytes[0] == text);
}

fn single_bytes_add_up<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(1);
    let mut came = Came::of(1);
    for byte in 0..100 {
        theirs[0].write_all(&[byte]).unwrap();
        came.wait(&mut reactor, alone(HOUR));
    }
    assert_eq!(came.bytes[0], (0..100).collect::<Vec<u8>>());
}

fn questions_and_answers_alternate<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(3);
    for round in 0..50_u8 {
        for token in 0..3 {
            reactor.send(token, &vec![round; 1 + 300 * token]).unwrap();
        }
        reactor.wait(alone(Duration::ZERO)).unwrap();
        let mut came = Came::of(3);
        for (token, stream) in theirs.iter_mut().enumerate() {
            let mut question = vec![0; 1 + 300 * token];
            stream.read_exact(&mut question).unwrap();
            assert!(question.iter().all(|&byte| byte == round));
            stream.write_all(&question).unwrap();
        }
        while came.bytes.iter().map(Vec::len).sum::<usize>() < 3 + 300 * 3 {
            came.wait(&mut reactor, alone(HOUR));
        }
        assert!(came.bytes.iter().flatten().all(|&byte| byte == round));
    }
}

fn tcp_is_no_different<R: Reactor>() {
    let mut reactor = R::new(1).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut theirs, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    reactor.add(0, ours.into()).unwrap();
    let mut came = Came::of(1);
    for (round, length) in [1, 500, 100_000, 7, 3_000_000, 2].into_iter().enumerate() {
        let question = vec![round as u8; length];
        reactor.send(0, &question).unwrap();
        let echo = std::thread::spawn(move || {
            let mut heard = vec![0; length];
            theirs.read_exact(&mut heard).unwrap();
            theirs.write_all(&heard).unwrap();
            theirs
        });
        came.bytes[0].clear();
        while came.bytes[0].len() < length {
            came.wait(&mut reactor, alone(HOUR));
        }
        assert!(came.bytes[0] == question);
        theirs = echo.join().unwrap();
    }
    drop(theirs);
    came.wait(&mut reactor, alone(HOUR));
    assert_eq!(came.closed, [0]);
}

fn all_of_more_connections_than_buffers_are_heard<R: Reactor>() {
    const MANY: usize = 1500;
    let (mut reactor, mut theirs) = connected::<R>(MANY);
    let text = |token: usize| [token as u8, (token >> 8) as u8].repeat(3000);
    for (token, stream) in theirs.iter_mut().enumerate() {
        stream.write_all(&text(token)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
    let mut came = Came::of(MANY);
    while came.closed.len() < MANY {
        came.wait(&mut reactor, alone(HOUR));
    }
    assert!((0..MANY).all(|token| came.bytes[token] == text(token)));
}

fn what_the_peer_does_not_read_is_sent_later_and_in_order<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(1);
    // Short ones before, between and after long ones, none of which is answered.
    let pieces = [1, 7, 1 << 20, 3, 1 << 20, 500, 1 << 19, 9].map(|length: usize| {
        let piece: Vec<u8> = (0..251).cycle().skip(length % 251).take(length).collect();
        piece
    });
    for piece in &pieces[..5] {
        reactor.send(0, piece).unwrap();
    }
    reactor.wait(alone(Duration::ZERO)).unwrap();
    assert!(reactor.next().is_none());
    for piece in &pieces[5..] {
        reactor.send(0, piece).unwrap();
    }
    let (all, mut stream) = (pieces.concat(), theirs.remove(0));
    let length = all.len();
    let reader = std::thread::spawn(move || {
        let mut read = vec![0; length];
        stream.read_exact(&mut read).unwrap();
        stream.write_all(b"all").unwrap();
        (read, stream)
    });
    let mut came = Came::of(1);
    while came.bytes[0].is_empty() {
        came.wait(&mut reactor, alone(HOUR));
    }
    let (read, mut stream) = reader.join().unwrap();
    assert!(read == all);
    // And then it is as before.
    reactor.send(0, b"again").unwrap();
    reactor.wait(alone(Duration::ZERO)).unwrap();
    let mut again = [0; 5];
    stream.read_exact(&mut again).unwrap();
    assert_eq!(&again, b"again");
}

fn a_token_is_used_again_and_hears_nothing_of_its_past<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(2);
    for round in 0..20 {
        let mut before = theirs.remove(0);
        before.write_all(b"from before").unwrap();
        reactor.send(0, b"farewell").unwrap();
        reactor.close(0);
        assert!(reactor.send(0, b"?").is_err());
        theirs.insert(0, add(&mut reactor, 0));
        reactor.wait(alone(Duration::ZERO)).unwrap();
        assert!(reactor.next().is_none());
        // The old one gets what was sent and then the end.
        let mut heard = Vec::new();
        let end = before.read_to_end(&mut heard);
        // A Unix socket that is closed with bytes unread resets its peer, after what was sent.
        assert!(end.is_ok() || end.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset));
        assert_eq!(heard, b"farewell");
        reactor.send(0, b"hello").unwrap();
        theirs[0].write_all(&[round]).unwrap();
        theirs[1].write_all(&[round]).unwrap();
        let mut came = Came::of(2);
        while came.bytes.iter().any(Vec::is_empty) {
            came.wait(&mut reactor, alone(HOUR));
        }
        assert_eq!((came.bytes, came.closed), (vec![vec![round]; 2], Vec::new()));
        let mut hello = [0; 5];
        theirs[0].read_exact(&mut hello).unwrap();
        assert_eq!(&hello, b"hello");
    }
}

fn a_message_under_way_survives_the_close_of_its_connection<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(1);
    for _ in 0..20 {
        let mut before = theirs.remove(0);
        reactor.send(0, &[7; 1 << 20]).unwrap();
        reactor.send(0, b"and more").unwrap();
        reactor.wait(alone(Duration::ZERO)).unwrap();
        reactor.close(0);
        theirs.push(add(&mut reactor, 0));
        reactor.wait(alone(Duration::ZERO)).unwrap();
        let mut heard = Vec::new();
        before.read_to_end(&mut heard).unwrap();
        assert!(!heard.is_empty() && heard.len() < 1 << 20);
        assert!(heard.iter().all(|&byte| byte == 7));
        theirs[0].write_all(b"x").unwrap();
        let mut came = Came::of(1);
        while came.bytes[0].is_empty() {
            came.wait(&mut reactor, alone(HOUR));
        }
    }
}

fn a_peer_that_is_gone_is_an_event<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(2);
    theirs.remove(0);
    let sent = reactor.send(0, b"is anybody there?");
    reactor.wait(alone(HOUR)).unwrap();
    let mut told = sent.is_err();
    while let Some((token, event)) = reactor.next() {
        assert_eq!(token, 0);
        assert!(matches!(event, Event::Closed | Event::Failed(_)), "{event:?}");
        told = true;
    }
    assert!(told);
}

fn a_wait_ends_when_it_is_told_to<R: Reactor>() {
    let (mut reactor, _theirs) = connected::<R>(1);
    for company in [1, 4] {
        for within in [Duration::ZERO, Duration::from_micros(1500)] {
            let wait = Wait { company, patience: Duration::from_micros(100), ..alone(within) };
            reactor.wait(wait).unwrap();
            assert!(reactor.next().is_none());
            assert!(monotonic_ns() >= wait.until_ns);
        }
    }
}

fn who_is_there_is_not_kept_waiting_for_company_that_is_there<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(4);
    for stream in &mut theirs[..3] {
        stream.write_all(b"x").unwrap();
    }
    let mut came = Came::of(4);
    came.wait(&mut reactor, Wait { company: 3, patience: HOUR, ..alone(HOUR) });
    assert_eq!(came.events, 3);
}

fn patience_ends_and_company_is_not_a_must<R: Reactor>() {
    let (mut reactor, mut theirs) = connected::<R>(4);
    theirs[2].write_all(b"x").unwrap();
    let mut came = Came::of(4);
    let wait = Wait { company: 4, patience: Duration::from_micros(700), ..alone(HOUR) };
    came.wait(&mut reactor, wait);
    assert_eq!((came.events, came.bytes[2].as_slice()), (1, &b"x"[..]));
    // Whoever comes when the patience is over is not kept waiting either.
    let mut late = theirs.remove(1);
    let speaker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        late.write_all(b"y").unwrap();
        late
    });
    came.wait(&mut reactor, wait);
    assert_eq!((came.events, came.bytes[1].as_slice()), (2, &b"y"[..]));
    speaker.join().unwrap();
}

macro_rules! on_each {
    ($($check:ident),* $(,)?) => {
        mod on_epoll {
            $(#[test] fn $check() { super::$check::<super::Epoll>(); })*
        }
        mod on_io_uring {
            $(#[test] fn $check() {
                match super::Uring::probe() {
                    Ok(()) => super::$check::<super::Uring>(),
                    Err(why) => eprintln!("SKIPPED: this machine has no io_uring for us: {why}"),
                }
            })*
        }
    };
}

on_each! {
    more_than_all_buffers_and_a_farewell_are_read_to_the_end,
    single_bytes_add_up,
    questions_and_answers_alternate,
    tcp_is_no_different,
    all_of_more_connections_than_buffers_are_heard,
    what_the_peer_does_not_read_is_sent_later_and_in_order,
    a_token_is_used_again_and_hears_nothing_of_its_past,
    a_message_under_way_survives_the_close_of_its_connection,
    a_peer_that_is_gone_is_an_event,
    a_wait_ends_when_it_is_told_to,
    who_is_there_is_not_kept_waiting_for_company_that_is_there,
    patience_ends_and_company_is_not_a_must,
}

/// A ring waits until all have come; the set of epoll can only sleep.
#[test]
fn io_uring_waits_for_company_and_no_longer() {
    if let Err(why) = Uring::probe() {
        eprintln!("SKIPPED: this machine has no io_uring for us: {why}");
        return;
    }
    let (mut reactor, mut theirs) = connected::<Uring>(3);
    let speaker = std::thread::spawn(move || {
        for stream in &mut theirs {
            stream.write_all(b"x").unwrap();
            std::thread::sleep(Duration::from_millis(3));
        }
        theirs
    });
    let mut came = Came::of(3);
    came.wait(&mut reactor, Wait { company: 3, patience: HOUR, ..alone(HOUR) });
    assert_eq!(came.events, 3);
    speaker.join().unwrap();
}
