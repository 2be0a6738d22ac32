//! Connections that break off, and servers that come back or do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ceteris_load::{DriveSpec, OnLost, Pacing};

use super::scripted::{Act, Heard, Scripted, monotonic_ns};
use super::{Four, One, run, spec};

fn reconnecting(server: &Scripted, connections: u32, measure_ms: u64) -> DriveSpec {
    DriveSpec { on_lost: OnLost::Reconnect, ..spec(&[server], connections, measure_ms) }
}

/// A server that does `act` at the 11th statement of its first 12 connections.
fn twelve(act: Act) -> Scripted {
    let left = AtomicU64::new(12);
    Scripted::start(usize::MAX, move |n, _| {
        let take = |left: u64| left.checked_sub(1);
        match n {
            10 if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() => {
                act.clone()
            }
            200.. => Act::Silence,
            _ => Act::Answer,
        }
    })
}

#[test]
fn a_lost_connection_fails_its_transaction_and_is_made_again() {
    let server = twelve(Act::Close);
    let (report, _) = run(&Four::default(), &reconnecting(&server, 4, 3000)).unwrap();
    assert_eq!((report.failed, report.reconnects), (12, 12));
    assert_eq!(report.errors, [("lost".to_owned(), 12)].into());
    assert_eq!(report.transactions, server.answered("COMMIT"));
    assert_eq!(server.heard.per_connection.lock().unwrap().len(), 16);
    // The types of parameters are sent to a new connection as to the first.
    assert_eq!(server.heard.typed.load(Ordering::Relaxed), 2 * 16);
    assert_eq!((report.retries, report.in_flight_at_end), (0, 4));
}

#[test]
fn a_server_that_says_why_is_counted_by_its_code() {
    let server = twelve(Act::Error(1053, "Server shutdown in progress"));
    let (report, _) = run(&Four::default(), &reconnecting(&server, 4, 3000)).unwrap();
    assert_eq!((report.failed, report.reconnects), (12, 12));
    assert_eq!(report.errors, [("1053".to_owned(), 12)].into());
    assert_eq!(report.transactions, server.answered("COMMIT"));
}

#[test]
fn a_connection_may_be_lost_while_it_has_nothing_to_do() {
    let server = twelve(Act::Farewell);
    let pacing = Pacing { think: Duration::from_millis(20), ..Pacing::default() };
    let spec = DriveSpec { pacing, ..reconnecting(&server, 4, 3000) };
    let (report, _) = run(&One, &spec).unwrap();
    assert_eq!(report.reconnects, 12);
    assert_eq!(report.errors, [("lost".to_owned(), 12)].into());
    // Nobody was asked anything, unless our think time was over before the farewell was read.
    assert!(report.failed < 12, "{report:?}");
}

#[test]
fn a_server_that_goes_away_and_comes_back_is_survived() {
    let heard = Arc::new(Heard::default());
    let ear = Arc::clone(&heard);
    let server = Scripted::start_hearing(usize::MAX, heard, move |n, _| {
        let away_until_ns = &ear.away_until_ns;
        if n == 21 {
            // The first to come so far brings the server down.
            let until_ns = monotonic_ns() + 300_000_000;
            let _ = away_until_ns.compare_exchange(0, until_ns, Ordering::SeqCst, Ordering::SeqCst);
        }
        match away_until_ns.load(Ordering::SeqCst) {
            until_ns if monotonic_ns() < until_ns => Act::Close,
            // Who has not noticed that the server was away is slow, but not lost.
            _ => Act::Answer,
        }
    });
    let (report, _) = run(&Four::default(), &reconnecting(&server, 4, 3000)).unwrap();
    assert!((1..=4).contains(&report.failed), "{report:?}");
    assert_eq!(report.reconnects, report.failed);
    assert_eq!(report.errors, [("lost".to_owned(), report.failed)].into());
    assert!(server.heard.turned_away.load(Ordering::Relaxed) > 0);
    let back_ns = server.heard.away_until_ns.load(Ordering::SeqCst);
    let log = server.heard.log.lock().unwrap();
    let since = log.iter().filter(|one| one.received_ns > back_ns && one.connection >= 4).count();
    assert!(since > 0, "nothing was asked of the server that came back");
}

#[test]
fn a_server_that_never_comes_back_ends_nothing() {
    let heard = Arc::new(Heard::default());
    let ear = Arc::clone(&heard);
    let server = Scripted::start_hearing(usize::MAX, heard, move |n, _| match n {
        4 => {
            ear.away_until_ns.store(u64::MAX, Ordering::SeqCst);
            Act::Close
        }
        _ => Act::Answer,
    });
    let pacing = Pacing { rate_per_second: Some(100.0), ..Pacing::default() };
    let spec = DriveSpec { pacing, ..reconnecting(&server, 2, 1500) };
    let (report, seconds) = run(&One, &spec).unwrap();
    assert_eq!((report.transactions, report.failed, report.reconnects), (8, 2, 0));
    assert_eq!(report.errors, [("lost".to_owned(), 2)].into());
    assert!(report.never_started > 0, "{report:?}");
    assert_eq!(seconds.len(), 2);
    assert!(server.heard.turned_away.load(Ordering::Relaxed) > 0);
}
