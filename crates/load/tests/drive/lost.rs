//! Connections that break off, and servers that come back or do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ceteris_load::{DriveSpec, OnLost, Pacing};

use super::kinds::find;
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
    let connect = find(&report.statements, "connect");
    assert_eq!((connect.executions, connect.errors.len()), (12, 0));
    assert!(connect.latency.min > 0.0);
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
    // Longer than a second, of which one then ends within it.
    const AWAY_MS: u64 = 1_300;
    let server = Scripted::start_hearing(usize::MAX, heard, move |n, _| {
        let away_until_ns = &ear.away_until_ns;
        if n == 21 {
            // The first to come so far brings the server down.
            let until_ns = monotonic_ns() + AWAY_MS * 1_000_000;
            let _ = away_until_ns.compare_exchange(0, until_ns, Ordering::SeqCst, Ordering::SeqCst);
        }
        match away_until_ns.load(Ordering::SeqCst) {
            until_ns if monotonic_ns() < until_ns => Act::Close,
            // Who has not noticed that the server was away is slow, but not lost.
            _ => Act::Answer,
        }
    });
    let (report, seconds) = run(&Four::default(), &reconnecting(&server, 4, 6000)).unwrap();
    assert!((1..=4).contains(&report.failed), "{report:?}");
    assert_eq!(report.reconnects, report.failed);
    // Every attempt that the server turned away is counted, and apart from statements.
    let turned_away = server.heard.turned_away.load(Ordering::Relaxed);
    assert!(turned_away > 0);
    let errors = [("lost".to_owned(), report.failed), ("2013".to_owned(), turned_away)];
    assert_eq!(report.errors, errors.into());
    let connect = find(&report.statements, "connect");
    assert_eq!(connect.errors, [("2013".to_owned(), turned_away)].into());
    assert_eq!(connect.executions, report.reconnects);
    let told: u64 = seconds.iter().filter_map(|second| second.errors.get("2013")).sum();
    assert_eq!(told, turned_away);
    // The seconds say that connections were missing, and that they came back.
    let at_work: Vec<u32> = seconds.iter().map(|second| second.connections).collect();
    assert_eq!(*at_work.iter().min().unwrap(), 4 - report.failed as u32, "{at_work:?}");
    assert_eq!(at_work.last(), Some(&4));
    // Who was in the middle of a transaction waited for as long as the server was away, and that
    // is in the response times; the service times are of the transactions that were then made.
    let long = |base64: &str| {
        let bytes = ceteris_load::decode_base64(base64).unwrap();
        let all: hdrhistogram::Histogram<u64> =
            hdrhistogram::serialization::Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        all.count_between(AWAY_MS * 1_000_000 * 999 / 1000, u64::MAX)
    };
    assert!(long(&report.response_hdr_base64) >= report.failed, "{report:?}");
    assert!(report.response.max >= 0.999 * AWAY_MS as f64, "{:?}", report.response);
    let waited_ms = (report.response.mean - report.service.mean) * report.transactions as f64;
    assert!(waited_ms >= 0.99 * (report.failed * AWAY_MS) as f64, "{waited_ms} {report:?}");
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
    assert_eq!(report.errors["lost"], 2);
    assert!(
        (1..=server.heard.turned_away.load(Ordering::Relaxed)).contains(&report.errors["2013"])
    );
    assert!(report.never_started > 2, "{report:?}");
    let last = seconds.last().unwrap();
    assert_eq!((seconds.len(), last.connections, last.transactions), (2, 0, 0));
    assert_eq!(last.late_ms_max, None, "none started");
    // The two that were lost have been taken up, so they wait in no queue.
    assert_eq!(last.queued, Some(report.never_started - 2));
    // Nobody was free to start what was due.
    assert!(report.schedule_error.max < report.response.max, "{report:?}");
}

#[test]
fn an_outage_that_does_not_end_shows_in_a_closed_loop_too() {
    let heard = Arc::new(Heard::default());
    let ear = Arc::clone(&heard);
    let down_ns = Arc::new(AtomicU64::new(0));
    let since = Arc::clone(&down_ns);
    let server = Scripted::start_hearing(usize::MAX, heard, move |n, _| match n {
        40 => {
            ear.away_until_ns.store(u64::MAX, Ordering::SeqCst);
            since.fetch_max(monotonic_ns(), Ordering::SeqCst);
            Act::Close
        }
        _ => Act::Answer,
    });
    let (report, seconds) = run(&Four::default(), &reconnecting(&server, 3, 2500)).unwrap();
    assert_eq!((report.transactions, report.failed, report.reconnects), (30, 3, 0));
    // Each of the three owes a transaction since before the server went.
    assert_eq!((report.never_started, report.in_flight_at_end), (3, 0));
    assert_eq!(seconds.last().unwrap().connections, 0);
    let end_ns = report.measure_start_monotonic_ns + 2_500_000_000;
    let away_ms = (end_ns - down_ns.load(Ordering::SeqCst)) as f64 / 1e6;
    assert!(report.response.max >= 0.999 * away_ms, "{away_ms} {report:?}");
    assert!(report.overdue_at_end >= 1 && report.service.max <= report.response.max, "{report:?}");
}

#[test]
fn who_cannot_be_reached_is_counted_by_the_number_of_the_way() {
    let server = Scripted::start(usize::MAX, |n, _| match n {
        4 => Act::Close,
        _ => Act::Answer,
    });
    let spec = reconnecting(&server, 1, 1500);
    let socket = match &spec.targets[0].address {
        ceteris_load::Address::Socket(path) => path.clone(),
        other => panic!("{other}"),
    };
    // Gone from its place, the listener is deaf to who comes anew.
    let mut removed = false;
    let report = ceteris_load::drive(
        &One,
        &spec,
        &std::sync::atomic::AtomicBool::new(false),
        &mut |event| {
            if matches!(event, ceteris_load::DriveEvent::Connected { .. }) {
                removed = std::fs::remove_file(&socket).is_ok();
            }
        },
    )
    .unwrap();
    assert!(removed);
    // Whoever came back before the socket was gone was closed again, but for the last.
    assert_eq!(report.failed, report.reconnects + 1);
    assert!(report.errors["2002"] > 0, "{report:?}");
}
