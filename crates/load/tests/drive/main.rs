//! Whole drives against a scripted server: what it did is what must be counted. Compiled twice, for
//! each reactor once (see `tests/on_io_uring/main.rs`).
#![allow(clippy::unwrap_used)]

mod kinds;
mod lost;
mod repeated;
mod schedule;
mod scripted;
mod text;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ceteris_load::{
    Batching, DriveError, DriveEvent, DriveReport, DriveSpec, Engine, ReactorChoice, Rng,
    Scheduling, Second, Session, Statement, TransactionError, Workload, drive,
};
use scripted::{Act, Scripted, monotonic_ns};
use wire::Param;

const SELECT: &str = "SELECT c WHERE id=?";
const UPDATE: &str = "UPDATE c WHERE id=?";
/// BEGIN, SELECT, UPDATE, COMMIT.
const STATEMENTS: u64 = 4;

fn statement(text: &str) -> Statement {
    Statement { text: text.into(), name: text.into() }
}

/// A transaction of one statement.
struct One;

impl Workload for One {
    fn statements(&self) -> Vec<Statement> {
        vec![statement(SELECT)]
    }

    async fn transaction(&self, s: &mut Session, _: usize, _: Rng) -> Result<(), TransactionError> {
        s.execute(0, &[Param::Int(7)]).await.map(|_| ())
    }
}

/// A transaction of four statements that remembers what it drew.
#[derive(Default)]
struct Four {
    attempts: AtomicU64,
    drawn: Mutex<HashSet<u64>>,
}

impl Workload for Four {
    fn statements(&self) -> Vec<Statement> {
        vec![statement(SELECT), statement(UPDATE)]
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let value = rng.next_u64();
        self.drawn.lock().unwrap().insert(value);
        s.begin().await?;
        let rows = s.execute(0, &[Param::UInt(value)]).await?;
        assert_eq!((rows.columns, rows.rows, rows.affected_rows), (1, 1, 0));
        assert!(s.in_transaction());
        let change = s.execute(1, &[Param::UInt(value)]).await?;
        assert_eq!((change.columns, change.affected_rows), (0, 1));
        s.commit().await?;
        assert!(!s.in_transaction());
        Ok(())
    }
}

/// The reactor under test; loudly another one where the machine does not have it.
fn reactor() -> ReactorChoice {
    if !module_path!().starts_with("on_io_uring") {
        return ReactorChoice::Epoll;
    }
    let engine = Engine { reactor: ReactorChoice::IoUring, ..Engine::default() };
    let nobody = DriveSpec { engine, ..DriveSpec::default() };
    match drive(&Wrong, &nobody, &AtomicBool::new(false), &mut |_| {}) {
        Err(DriveError::IoUring { source }) => {
            eprintln!("SKIPPED: this machine has no io_uring for us ({source}); epoll instead");
            ReactorChoice::Auto
        }
        _ => ReactorChoice::IoUring,
    }
}

fn spec(servers: &[&Scripted], connections: u32, measure_ms: u64) -> DriveSpec {
    DriveSpec {
        targets: servers.iter().map(|server| server.target()).collect(),
        connections,
        threads: Some(2),
        measure: Duration::from_millis(measure_ms),
        seed: 5,
        engine: Engine { reactor: reactor(), ..Engine::default() },
        ..DriveSpec::default()
    }
}

fn run<W: Workload>(
    workload: &W,
    spec: &DriveSpec,
) -> Result<(DriveReport, Vec<Second>), DriveError> {
    let mut seconds = Vec::new();
    let report = drive(workload, spec, &AtomicBool::new(false), &mut |event| match event {
        DriveEvent::Second(second) => seconds.push(second),
        DriveEvent::Connected { connections, reactor, .. } => {
            assert_eq!(connections, spec.connections_max());
            let expected = match spec.engine.reactor {
                ReactorChoice::IoUring => "io_uring",
                ReactorChoice::Auto | ReactorChoice::Epoll => "epoll",
            };
            assert!(reactor.starts_with(expected), "{reactor}");
        }
        DriveEvent::EndedEarly(_) => {}
    })?;
    Ok((report, seconds))
}

/// Every connection is answered `answered` statements and then no more: what happened is known.
fn count_exactly(piece: usize, connections: u32, answered: u64) {
    let server = Scripted::start(piece, move |n, _| match n < answered {
        true => Act::Answer,
        false => Act::Silence,
    });
    let workload = Four::default();
    let (report, seconds) = run(&workload, &spec(&[&server], connections, 1500)).unwrap();
    let all = |each: u64| u64::from(connections) * each;
    // An answer later than the window would be missing here: the window is generous for that.
    assert_eq!(report.transactions, all(answered / STATEMENTS));
    assert_eq!(report.reads, all((answered + 2) / STATEMENTS));
    assert_eq!(report.writes, all((answered + 1) / STATEMENTS));
    assert_eq!(report.other, all(answered) - report.reads - report.writes);
    assert_eq!(report.reads, server.answered(SELECT));
    assert_eq!(report.writes, server.answered(UPDATE));
    assert_eq!(report.other, server.answered("BEGIN") + server.answered("COMMIT"));
    assert_eq!((report.retries, report.errors.len()), (0, 0));
    // Types of parameters travel once for each connection and statement.
    assert_eq!(server.heard.typed.load(Ordering::Relaxed), all(2));
    assert_eq!(
        seconds.iter().map(|second| (second.at_s, second.measured)).collect::<Vec<_>>(),
        [(1, true), (2, true)]
    );
    assert_eq!(seconds.iter().map(|second| second.end_s).collect::<Vec<_>>(), [1.0, 1.5]);
    assert!((0.0..=1.0).contains(&report.peak_thread_share));
    assert!((0.0..=1.0).contains(&report.peak_thread_wait));
    assert_eq!(seconds.iter().map(|second| second.transactions).sum::<u64>(), report.transactions);
    assert_eq!((seconds[0].length_s, seconds[1].length_s), (1.0, 0.5));
    assert!(seconds.iter().all(|second| second.threads.len() == report.threads as usize));
}

#[test]
fn what_is_answered_is_counted() {
    count_exactly(usize::MAX, 3, 41);
}

#[test]
fn packets_that_come_byte_by_byte_are_counted_too() {
    count_exactly(1, 3, 43);
    count_exactly(3, 2, 42);
}

#[test]
fn connections_are_many_to_a_thread_and_none_starves() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let workload = Four::default();
    let (report, _) = run(&workload, &spec(&[&server], 300, 1000)).unwrap();
    assert!(report.transactions > 0);
    let counts = server.heard.per_connection.lock().unwrap().clone();
    assert_eq!(counts.len(), 300);
    assert!(counts.iter().all(|&count| count >= STATEMENTS), "a connection starved");
    // After the end each connection finished its transaction and said goodbye; the server's own
    // threads may still be reading that.
    while server.heard.quit.load(Ordering::Relaxed) < 300 {
        std::thread::yield_now();
    }
    assert_eq!(server.answered("BEGIN"), server.answered("COMMIT"));
    // No two operations draw alike, on whichever connection.
    let drawn = workload.drawn.lock().unwrap().len() as u64;
    assert_eq!(drawn, workload.attempts.load(Ordering::Relaxed));
}

#[test]
fn connections_are_dealt_to_the_targets_in_turn() {
    let servers = [(); 3].map(|()| Scripted::start(usize::MAX, |_, _| Act::Answer));
    let all: Vec<&Scripted> = servers.iter().collect();
    run(&Four::default(), &spec(&all, 7, 200)).unwrap();
    let connections =
        servers.each_ref().map(|server| server.heard.per_connection.lock().unwrap().len());
    assert_eq!(connections, [3, 2, 2]);
}

/// An error at every fifth UPDATE of a connection, which is retried until it works.
fn retried(code: u16, message: &'static str) {
    let updates = AtomicU64::new(0);
    let server = Scripted::start(usize::MAX, move |n, text| {
        if n >= 400 {
            Act::Silence
        } else if text == UPDATE && updates.fetch_add(1, Ordering::Relaxed).is_multiple_of(5) {
            Act::Error(code, message)
        } else {
            Act::Answer
        }
    });
    let workload = Four::default();
    let (report, _) = run(&workload, &spec(&[&server], 4, 1500)).unwrap();
    let refused = server.refused(code);
    assert!(refused > 20);
    assert_eq!(report.retries, refused);
    assert_eq!(report.errors, [(code.to_string(), refused)].into());
    assert_eq!(report.transactions, server.answered("COMMIT"));
    assert_eq!(report.response.max, report.service.max);
    // Each was rolled back, except where the server fell silent before that.
    let rolled_back = server.answered("ROLLBACK");
    assert!(rolled_back <= refused && refused - rolled_back <= 4, "{rolled_back} of {refused}");
    // A repeated attempt draws anew.
    let drawn = workload.drawn.lock().unwrap().len() as u64;
    assert_eq!(drawn, workload.attempts.load(Ordering::Relaxed));
}

#[test]
fn a_deadlock_is_rolled_back_and_retried() {
    retried(1213, "Deadlock found when trying to get lock");
}

#[test]
fn a_lock_wait_timeout_is_rolled_back_and_retried() {
    retried(1205, "Lock wait timeout exceeded");
}

#[test]
fn another_error_ends_the_drive_in_the_servers_words() {
    let server = Scripted::start(usize::MAX, |n, _| match n {
        25 => Act::Error(1114, "The table is full"),
        _ => Act::Answer,
    });
    let error = run(&Four::default(), &spec(&[&server], 4, 600_000)).unwrap_err();
    let DriveError::Statement { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((source.code, source.message.as_str()), (1114, "The table is full"));
}

/// The error that ends a drive, and what it had measured until then.
fn run_until_error<W: Workload>(
    workload: &W,
    spec: &DriveSpec,
    stop: &AtomicBool,
    on_second: &mut dyn FnMut(&Second),
) -> (DriveError, DriveReport, Vec<Second>) {
    let (mut seconds, mut early) = (Vec::new(), None);
    let error = drive(workload, spec, stop, &mut |event| match event {
        DriveEvent::Second(second) => {
            assert!(early.is_none(), "a second after the end");
            on_second(&second);
            seconds.push(second);
        }
        DriveEvent::EndedEarly(report) => assert!(early.replace(*report).is_none()),
        DriveEvent::Connected { .. } => {}
    })
    .unwrap_err();
    (error, early.expect("nothing was measured"), seconds)
}

#[test]
fn what_was_measured_before_a_fatal_error_is_kept() {
    let server = Scripted::start(usize::MAX, |n, _| match n {
        25 => Act::Error(1114, "The table is full"),
        _ => Act::Answer,
    });
    let never = AtomicBool::new(false);
    let one = spec(&[&server], 1, 600_000);
    let (error, early, seconds) = run_until_error(&Four::default(), &one, &never, &mut |_| {});
    assert!(matches!(error, DriveError::Statement { .. }), "{error:?}");
    // Six whole transactions, and a BEGIN that is none.
    assert_eq!((early.transactions, early.reads, early.writes, early.other), (6, 6, 6, 13));
    assert_eq!(early.errors, [("1114".to_owned(), 1)].into());
    assert_eq!(seconds.iter().map(|second| second.transactions).sum::<u64>(), 6);
    assert!(early.measured_s > 0.0 && early.measured_s < 600.0, "{early:?}");
    let told_s: f64 = seconds.iter().map(|second| second.length_s).sum();
    assert!((told_s - early.measured_s).abs() < 1e-6, "{told_s} {early:?}");
    assert!(early.response.p50 > 0.0 && early.response.p50 <= early.response.max, "{early:?}");
    assert_eq!(early.fairness.map(|fairness| fairness.max), Some(6));
}

#[test]
fn one_thread_that_ends_takes_the_others_figures_along() {
    let server = Scripted::start(usize::MAX, |n, text| match (n, text) {
        (200.., "COMMIT") => Act::Error(1114, "The table is full"),
        _ => Act::Answer,
    });
    let never = AtomicBool::new(false);
    let four = spec(&[&server], 4, 600_000);
    let (_, early, seconds) = run_until_error(&Four::default(), &four, &never, &mut |_| {});
    let committed = server.answered("COMMIT");
    // Each connection may have had one answer on its way.
    assert!((committed - 4..=committed).contains(&early.transactions), "{committed} {early:?}");
    assert_eq!(seconds.iter().map(|s| s.transactions).sum::<u64>(), early.transactions);
    assert!(seconds.iter().all(|second| second.threads.len() == early.threads as usize));
}

#[test]
fn a_lost_connection_ends_the_drive() {
    let server = Scripted::start(usize::MAX, |n, _| match n {
        30 => Act::Close,
        _ => Act::Answer,
    });
    let error = run(&Four::default(), &spec(&[&server], 4, 600_000)).unwrap_err();
    assert!(matches!(error, DriveError::Lost { .. }), "{error:?}");
}

#[test]
fn nonsense_ends_the_drive() {
    for (bytes, expected) in [
        (&b"\x01\0\0\x09\0"[..], "packet out of order: expected number 1, got 9"),
        (b"\x02\0\0\x01\0\xfb", "malformed OK"),
        // A byte too many, which is taken for the next packet's first.
        (b"\x07\0\0\x01\0\0\0\x02\0\0\0?", "packet out of order: expected number 1, got 0"),
    ] {
        let server = Scripted::start(usize::MAX, move |n, text| match n {
            _ if text == "COMMIT" => Act::Bytes(bytes),
            _ => Act::Answer,
        });
        let once = spec(&[&server], 1, 600_000);
        let error = run(&Four::default(), &once).unwrap_err();
        let DriveError::Protocol { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.to_string(), expected);
    }
}

#[test]
fn a_stall_shows_in_the_response_time() {
    let stall = Duration::from_millis(700);
    let server = Scripted::start(usize::MAX, move |n, _| match n {
        100 => Act::Late(stall),
        _ => Act::Answer,
    });
    let (report, _) = run(&Four::default(), &spec(&[&server], 1, 1500)).unwrap();
    let stall_ms = stall.as_secs_f64() * 1e3;
    assert!(report.response.max >= 0.999 * stall_ms, "{:?}", report.response);
    assert!(report.response.p50 < stall_ms, "{:?}", report.response);
    assert!(report.transactions > 25);
    // What the end of the window cuts off says nothing new after that stall.
    assert_eq!((report.in_flight_at_end, report.stalled_at_end), (1, 0));
}

#[test]
fn a_rollback_that_is_never_answered_is_no_contradiction() {
    let server = Scripted::start(usize::MAX, |_, text| match text {
        UPDATE => Act::Error(1213, "Deadlock found when trying to get lock"),
        "ROLLBACK" => Act::Silence,
        _ => Act::Answer,
    });
    let (report, _) = run(&Four::default(), &spec(&[&server], 3, 1500)).unwrap();
    assert_eq!((report.transactions, report.retries), (0, 3));
    assert_eq!(report.errors, [("1213".to_owned(), 3)].into());
    // Each transaction is still in flight: it waits to be tried again.
    assert_eq!((report.in_flight_at_end, report.stalled_at_end), (3, 3));
}

#[test]
fn a_stall_that_outlasts_the_window_shows_in_the_response_time() {
    let stalled_ns = Arc::new(AtomicU64::new(0));
    let since = Arc::clone(&stalled_ns);
    // Ten transactions, a pause before the stall so that it begins within the window, then a stall
    // far beyond its end.
    let server = Scripted::start(usize::MAX, move |n, _| match n {
        20 => Act::Late(Duration::from_millis(200)),
        41 => {
            since.store(monotonic_ns(), Ordering::Relaxed);
            Act::Late(Duration::from_millis(2500))
        }
        _ => Act::Answer,
    });
    let (report, seconds) = run(&Four::default(), &spec(&[&server], 1, 1500)).unwrap();
    let end_ns = report.measure_start_monotonic_ns + 1_500_000_000;
    let stalled_ms = (end_ns - stalled_ns.load(Ordering::Relaxed)) as f64 / 1e6;
    assert!(report.oldest_in_flight_ms >= stalled_ms, "{stalled_ms} {report:?}");
    assert!(report.response.max >= stalled_ms, "{stalled_ms} {report:?}");
    assert_eq!(report.response.max, report.service.max);
    assert!(report.response.p50 < 200.0, "{report:?}");
    assert_eq!((report.transactions, report.in_flight_at_end, report.stalled_at_end), (10, 1, 1));
    assert_eq!(seconds.iter().map(|second| second.transactions).sum::<u64>(), 10);
}

#[test]
fn who_is_asked_to_stop_stops() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let stop = AtomicBool::new(false);
    let four = spec(&[&server], 4, 600_000);
    let (error, early, seconds) = run_until_error(&Four::default(), &four, &stop, &mut |_| {
        stop.store(true, Ordering::Relaxed);
    });
    assert!(matches!(error, DriveError::Stopped), "{error:?}");
    let told: u64 = seconds.iter().map(|second| second.transactions).sum();
    assert!(early.transactions > 0 && told == early.transactions, "{told} {early:?}");
    assert!(early.measured_s >= 1.0 && early.measured_s < 600.0, "{early:?}");
    assert_eq!(early.response.max >= early.response.p99, early.response.p99 > 0.0);
}

#[test]
fn who_cannot_connect_says_why() {
    let full = b"\x17\0\0\0\xff\x10\x04Too many connections";
    let error = run(&Four::default(), &spec(&[&Scripted::greeting(full)], 2, 100)).unwrap_err();
    let DriveError::Refused { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((source.code, source.message.as_str()), (1040, "Too many connections"));
    assert!(error.hint().unwrap().contains("max_connections"));

    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    let error = run(&Four::default(), &spec(&[&Scripted::greeting(http)], 2, 100)).unwrap_err();
    assert!(matches!(error, DriveError::Protocol { .. }), "{error:?}");

    let mut nowhere = spec(&[&Scripted::greeting(http)], 2, 100);
    nowhere.targets[0].address = ceteris_load::Address::Socket("/nonexistent/s".into());
    let error = run(&Four::default(), &nowhere).unwrap_err();
    assert!(matches!(error, DriveError::Connect { .. }), "{error:?}");

    for (targets, connections, measure_ms) in [(0, 1, 100), (1, 0, 100), (1, 1, 0)] {
        let mut nothing = spec(&[&Scripted::greeting(http)], connections, measure_ms);
        nothing.targets.truncate(targets);
        let error = run(&Four::default(), &nothing).unwrap_err();
        assert!(matches!(error, DriveError::Spec(_)), "{error:?}");
    }
}

#[test]
fn what_the_generator_is_and_adds_is_told() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let mut batched = spec(&[&server], 64, 2000);
    let (report, _) = run(&Four::default(), &batched).unwrap();
    assert_eq!(report.generator.scheduling, "batch");
    // epoll's events are stamped one by one.
    let stamped_together = report.generator.reactor == "io_uring";
    assert_eq!(report.generator.clock_error.max > 0.0, stamped_together, "{:?}", report.generator);
    assert_eq!(report.generator.batch_delay.max, 0.0, "nothing was to wait");

    batched.engine.batching = Batching::Share(0.5);
    batched.engine.scheduling = Scheduling::Normal;
    batched.threads = Some(1);
    let (report, _) = run(&Four::default(), &batched).unwrap();
    assert_eq!(report.generator.scheduling, "normal");
    let delay = report.generator.batch_delay;
    assert!(delay.max > 0.0, "{delay:?}");
    // The bound is an eighth (half, over four statements) of a median of the first second.
    assert!(report.transactions > 0 && delay.max < report.response.max, "{report:?}");
}

/// Asks for a statement that it never prepared.
struct Wrong;

impl Workload for Wrong {
    fn statements(&self) -> Vec<Statement> {
        vec![statement(SELECT)]
    }

    async fn transaction(&self, s: &mut Session, _: usize, _: Rng) -> Result<(), TransactionError> {
        s.execute(1, &[]).await.map(|_| ())
    }
}

#[test]
fn a_wrong_workload_is_an_error_and_no_panic() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let error = run(&Wrong, &spec(&[&server], 2, 600_000)).unwrap_err();
    assert_eq!(error.to_string(), "the workload is wrong: there is no statement 1");
}
