//! Open loops, think time and stages, against what the server saw of them.

use std::time::Duration;

use ceteris_load::{Arrivals, DriveReport, DriveSpec, Pacing, Stage};

use super::scripted::{Act, Logged, Scripted};
use super::{One, run, spec};

const MS: u64 = 1_000_000;

/// One thread, so that the server's connections are numbered as the driver's.
fn paced(server: &Scripted, connections: u32, measure_ms: u64, pacing: Pacing) -> DriveSpec {
    DriveSpec { threads: Some(1), pacing, ..spec(&[server], connections, measure_ms) }
}

fn uniform(rate: f64) -> Pacing {
    let arrivals = Arrivals::Uniform;
    Pacing { rate_per_second: Some(rate), arrivals, ..Pacing::default() }
}

fn stage(at_ms: u64) -> Stage {
    Stage { at: Duration::from_millis(at_ms), ..Stage::default() }
}

/// All transactions that were due, where there was no warm-up and no error.
fn due(report: &DriveReport) -> u64 {
    report.transactions + report.in_flight_at_end + report.never_started
}

fn log(server: &Scripted) -> Vec<Logged> {
    server.heard.log.lock().unwrap().clone()
}

#[test]
fn a_stall_shows_in_the_response_times_of_all_that_it_delayed() {
    // One connection, a transaction each 10 ms, and a second in which nothing is answered.
    let server = Scripted::start(usize::MAX, |n, _| match n {
        50 => Act::Late(Duration::from_secs(1)),
        _ => Act::Answer,
    });
    let (report, _) = run(&One, &paced(&server, 1, 3000, uniform(100.0))).unwrap();
    assert_eq!(due(&report), 300);
    let start_ns = report.measure_start_monotonic_ns;
    let log = log(&server);
    // What the i-th transaction took by the server's own log: it was due at a known instant, it
    // cannot have ended before the server answered it, and must have before the server read the
    // next one. In the backlog behind the stall these two bounds nearly meet.
    let count = report.transactions as usize;
    let ended = |i: usize| match log.get(i + 1) {
        Some(next) => next.received_ns,
        None => start_ns + 3000 * MS,
    };
    let intended = |i: usize| start_ns + (2 * i as u64 + 1) * 5 * MS;
    let sorted = |mut times: Vec<u64>| {
        times.sort_unstable();
        times
    };
    let all = |time: &dyn Fn(usize) -> u64| sorted((0..count).map(time).collect());
    let at_least = all(&|i| log[i].answered_ns - intended(i));
    let at_most = all(&|i| ended(i) - intended(i));
    assert_eq!((report.stalled_at_end, report.overdue_at_end), (0, 0));
    for (share, told_ms) in [
        (0.9, report.response.p90),
        (0.95, report.response.p95),
        (0.99, report.response.p99),
        (0.999, report.response.p999),
    ] {
        let rank = (share * count as f64).ceil() as usize - 1;
        // Three digits, and a rank for the rounding of ranks.
        let from_ms = 0.999 * at_least[rank.saturating_sub(1)] as f64 / 1e6;
        let to_ms = 1.001 * at_most[(rank + 1).min(count - 1)] as f64 / 1e6;
        assert!((from_ms..=to_ms).contains(&told_ms), "{share}: {from_ms} {told_ms} {to_ms}");
        assert!(told_ms <= report.response.max);
    }
    // A tenth of all, 30, waited for more than half of the stall, but it was one that took long.
    assert!(report.response.p90 > 500.0, "{report:?}");
    assert!(report.service.max >= 999.0, "{report:?}");
    let long = |times: Vec<u64>| times.iter().filter(|&&ns| ns > 900 * MS).count();
    let service_at_most = all(&|i| {
        let free_ns = if i == 0 { start_ns } else { log[i - 1].answered_ns };
        ended(i) - free_ns.max(intended(i))
    });
    if long(service_at_most) == 1 {
        assert!(report.service.p99 < 901.0, "{report:?}");
    }
}

#[test]
fn a_stall_that_does_not_end_shows_too() {
    let server = Scripted::start(usize::MAX, |n, _| match n {
        10.. => Act::Silence,
        _ => Act::Answer,
    });
    let (report, _) = run(&One, &paced(&server, 1, 2000, uniform(100.0))).unwrap();
    assert_eq!((report.transactions, report.in_flight_at_end), (10, 1));
    assert_eq!((due(&report), report.never_started), (200, 189));
    assert_eq!(report.stalled_at_end, 1);
    // Unless the ten took longer than that themselves, all that were due show with their age.
    let took_ms = report.response.max.min(2000.0);
    assert!(took_ms > 1800.0, "{report:?}");
    if report.overdue_at_end == 189 {
        // The ages are spread evenly between 0 and 1900 ms.
        assert!((report.response.p50 / 900.0 - 1.0).abs() < 0.02, "{report:?}");
    }
    assert!(report.service.p50 < report.response.p50);
}

#[test]
fn a_saturated_open_loop_goes_on_and_counts_what_never_started() {
    let late = Duration::from_millis(20);
    let server = Scripted::start(usize::MAX, move |_, _| Act::Late(late));
    for threads in [1, 2] {
        let spec = DriveSpec { threads: Some(threads), ..paced(&server, 2, 1000, uniform(1000.0)) };
        let (report, seconds) = run(&One, &spec).unwrap();
        assert_eq!(due(&report), 1000);
        // Two connections, 20 ms each.
        assert!(report.transactions <= 100, "{report:?}");
        assert!(report.never_started >= 898);
        assert!(report.response.p50 > report.service.p50, "{report:?}");
        assert!(report.response.max >= report.service.max, "{report:?}");
        assert_eq!(seconds[0].transactions, report.transactions);
        assert!(seconds[0].queued.unwrap().abs_diff(report.never_started) <= 2, "{seconds:?}");
        // The last to start had been due for all but the first tenth of the second or so.
        assert!(seconds[0].late_ms_max.unwrap() > 20.0, "{seconds:?}");
    }
}

#[test]
fn the_same_transactions_are_due_on_any_number_of_threads() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let pacing = Pacing { arrivals: Arrivals::Poisson, ..uniform(500.0) };
    let all = [1, 2, 3].map(|threads| {
        let spec = DriveSpec { threads: Some(threads), ..paced(&server, 8, 600, pacing.clone()) };
        due(&run(&One, &spec).unwrap().0)
    });
    assert!(all[0] > 200, "{all:?}");
    assert_eq!(all, [all[0]; 3]);
}

#[test]
fn a_stage_changes_the_connections_at_work() {
    let late = Duration::from_millis(2);
    let server = Scripted::start(usize::MAX, move |_, _| Act::Late(late));
    let stages = vec![
        Stage { connections: Some(4), ..stage(500) },
        Stage { connections: Some(2), ..stage(1000) },
    ];
    let pacing = Pacing { stages, ..Pacing::default() };
    let (report, seconds) = run(&One, &paced(&server, 1, 2500, pacing)).unwrap();
    let at_work: Vec<u32> = seconds.iter().map(|second| second.connections).collect();
    assert_eq!(at_work, [4, 2, 2]);
    let start_ns = report.measure_start_monotonic_ns;
    let log = log(&server);
    let received = |connection: usize, from_ms: u64, to_ms: u64| {
        let span = start_ns + from_ms * MS..start_ns + to_ms * MS;
        log.iter()
            .filter(|one| one.connection == connection && span.contains(&one.received_ns))
            .count()
    };
    assert_eq!([1, 2, 3].map(|connection| received(connection, 0, 500)), [0; 3]);
    let all = [0, 1, 2, 3].map(|connection| received(connection, 0, u64::MAX / MS / 2));
    assert!(all.iter().all(|&count| count > 0), "{all:?}");
    // What was sent before the stage may be read after it; nothing more is sent.
    for connection in [2, 3] {
        let after = received(connection, 1000, u64::MAX / MS / 2);
        assert!(after <= 1, "connection {connection}: {after}");
    }
    assert!(received(1, 1000, 2500) > 1);
    assert_eq!(report.fairness, None, "those that came late had less time");
}

#[test]
fn a_stage_changes_the_rate() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let stages = vec![
        Stage { rate_per_second: Some(400.0), ..stage(500) },
        Stage { rate_per_second: Some(0.0), ramp: Duration::from_millis(500), ..stage(1000) },
    ];
    let pacing = Pacing { stages, ..uniform(100.0) };
    let (report, _) = run(&One, &paced(&server, 4, 2000, pacing)).unwrap();
    // 50 in the first half second, 200 in the next, 100 on the way down to none.
    assert_eq!(due(&report), 350);
    let start_ns = report.measure_start_monotonic_ns;
    let early = log(&server).iter().filter(|one| one.received_ns < start_ns + 500 * MS).count();
    assert!(early <= 50, "{early}");
}

#[test]
fn connections_think_between_transactions() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let pacing = Pacing { think: Duration::from_millis(20), ..Pacing::default() };
    let (report, _) = run(&One, &paced(&server, 3, 1000, pacing)).unwrap();
    assert!((3..=150).contains(&report.transactions), "{report:?}");
    assert!(report.response.mean >= report.service.mean);
    assert_eq!(report.never_started, 0);
    let log = log(&server);
    for connection in 0..3 {
        let own: Vec<_> = log.iter().filter(|one| one.connection == connection).collect();
        for pair in own.windows(2) {
            // The answer is written after its stamp, and read after that.
            assert!(pair[1].received_ns - pair[0].answered_ns >= 20 * MS, "{pair:?}");
        }
    }
}
