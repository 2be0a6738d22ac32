//! Load and drive against a real server, which the tests start themselves.
//!
//! Needs an installed MariaDB (`mariadbd`, `mariadb-install-db`), for one test also `sysbench`;
//! where they are missing the tests say so on standard error and pass.
#![allow(clippy::unwrap_used)]

mod legacy;
mod log;
mod script;
mod server;
mod statements;
mod sysbench;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ceteris_workload::{LoadError, LoadProgress, drive, load_data};
use load::{Address, DriveError, DriveEvent, DriveReport, DriveSpec, Target};
use mysql::prelude::Queryable;
use server::{PASSWORD, Server};
use study::{Distribution, Oltp, OltpReadOnly, OltpReadWrite, OltpWriteOnly, Workload};

fn oltp() -> Oltp {
    Oltp { tables: 3, rows: 30_000, ..Oltp::default() }
}

fn read_write() -> Workload {
    Workload::OltpReadWrite(OltpReadWrite { tables: 3, rows: 30_000, ..Default::default() })
}

fn write_only(distribution: Distribution) -> Workload {
    let knobs = OltpWriteOnly { tables: 3, rows: 30_000, distribution, ..Default::default() };
    Workload::OltpWriteOnly(knobs)
}

fn load(server: &Server) -> std::collections::BTreeMap<String, String> {
    let mut told: Vec<LoadProgress> = Vec::new();
    let facts =
        load_data(&read_write(), &server.target(), 7, 2, &mut |progress| told.push(progress))
            .unwrap();
    assert_eq!(told.first().map(|progress| progress.rows), Some(0));
    assert_eq!(told.last(), Some(&LoadProgress { rows: 90_000, total: 90_000 }));
    assert!(told.windows(2).all(|pair| pair[0].rows <= pair[1].rows));
    facts
}

fn run(
    workload: &Workload,
    spec: &DriveSpec,
) -> Result<(DriveReport, Vec<DriveEvent>), DriveError> {
    let mut events = Vec::new();
    let stop = AtomicBool::new(false);
    drive(workload, spec, &stop, &mut |event| events.push(event)).map(|report| (report, events))
}

/// Statements in each transaction: reads, writes, others.
fn check(name: &str, report: &DriveReport, connections: u64, expected: [u64; 3]) {
    let n = report.transactions;
    assert!(n > 0, "{name}: nothing was committed");
    // A transaction may begin before the window and end within, or the other way round; a retried
    // one has statements of its own and a ROLLBACK.
    let slack = (connections + report.retries) * 20;
    for (what, count, each) in [
        ("reads", report.reads, expected[0]),
        ("writes", report.writes, expected[1]),
        ("other", report.other, expected[2]),
    ] {
        let difference = count.abs_diff(n * each);
        assert!(
            difference <= slack * each.min(1).max(report.retries.min(1)),
            "{name}: {count} {what} in {n} transactions, {} retries",
            report.retries
        );
    }
    let errors: u64 = report.errors.values().sum();
    assert_eq!(errors, report.retries, "{name}: {:?}", report.errors);
}

#[test]
fn data_is_loaded_verified_and_driven() {
    let Some(server) = Server::start("data_is_loaded_verified_and_driven") else { return };
    let facts = load(&server);
    assert_eq!(facts.len(), 6);
    assert_eq!(facts["sbtest3.rows"], "30000");

    let mut admin = server.admin().unwrap();
    let row: (u64, u64, u64, u64, String) = admin
        .query_first(
            "SELECT COUNT(*), MIN(id), MAX(id), COUNT(DISTINCT LENGTH(c), LENGTH(pad)), \
             CONCAT(MIN(k) >= 1, MAX(k) <= 30000) FROM sbtest.sbtest1 WHERE c REGEXP \
             '^([0-9]{11}-){9}[0-9]{11}$' AND pad REGEXP '^([0-9]{11}-){4}[0-9]{11}$'",
        )
        .unwrap()
        .unwrap();
    assert_eq!(row, (30_000, 1, 30_000, 1, "11".to_owned()));
    let (_, create): (String, String) =
        admin.query_first("SHOW CREATE TABLE sbtest.sbtest2").unwrap().unwrap();
    assert!(create.contains("KEY `k_2` (`k`)"), "{create}");

    let again = load_data(&read_write(), &server.target(), 7, 2, &mut |_| {});
    assert!(matches!(again, Err(LoadError::Occupied { tables: 3, .. })), "{again:?}");

    let connections = 8;
    for (workload, expected) in [
        (Workload::OltpPointSelect(oltp()), [1, 0, 0]),
        (
            Workload::OltpReadOnly(OltpReadOnly { tables: 3, rows: 30_000, ..Default::default() }),
            [14, 0, 2],
        ),
        (write_only(Distribution::Uniform), [0, 4, 2]),
        (read_write(), [14, 4, 2]),
    ] {
        let (report, events) = run(&workload, &server.spec(connections)).unwrap();
        check(workload.name(), &report, u64::from(connections), expected);
        assert!(matches!(events[0], DriveEvent::Connected { connections: 8, threads: 2, .. }));
        let measured: u64 = events
            .iter()
            .map(|event| match event {
                DriveEvent::Second(second) if second.measured => second.transactions,
                _ => 0,
            })
            .sum();
        assert_eq!(measured, report.transactions);
        assert!(report.user_s + report.sys_s > 0.0);
        assert!(report.response.p50 > 0.0 && report.response.p50 <= report.response.max);
        assert_eq!(report.response, report.service);
    }
    // Ranges of every distribution, and writes, left every row in its place.
    // Each with a seed of its own: setting a column to what it was set to before changes no row.
    // For longer than a busy disk holds up all commits.
    for (seed, distribution) in (2..).zip([
        Distribution::Special,
        Distribution::Special04,
        Distribution::Gaussian,
        Distribution::Pareto,
        Distribution::Zipfian,
    ]) {
        let workload = write_only(distribution);
        let spec =
            DriveSpec { seed, measure: Duration::from_millis(1500), ..server.spec(connections) };
        let (report, _) = run(&workload, &spec).unwrap();
        check(&format!("{distribution:?}"), &report, u64::from(connections), [0, 4, 2]);
    }
    let rows: u64 = admin.query_first("SELECT COUNT(*) FROM sbtest.sbtest1").unwrap().unwrap();
    assert_eq!(rows, 30_000);
}

#[test]
fn deadlocks_are_retried_and_counted() {
    let Some(server) = Server::start("deadlocks_are_retried_and_counted") else { return };
    let few = OltpWriteOnly { tables: 1, rows: 4, ..Default::default() };
    let workload = Workload::OltpWriteOnly(few);
    load_data(&workload, &server.target(), 7, 1, &mut |_| {}).unwrap();
    let (report, _) = run(&workload, &server.spec(16)).unwrap();
    assert!(report.errors.get("1213").is_some_and(|&count| count > 0), "{:?}", report.errors);
    check("4 rows", &report, 16, [0, 4, 2]);
    let mut admin = server.admin().unwrap();
    let rows: u64 = admin.query_first("SELECT COUNT(*) FROM sbtest.sbtest1").unwrap().unwrap();
    assert_eq!(rows, 4);
}

#[test]
fn tampered_data_is_found() {
    let Some(server) = Server::start("tampered_data_is_found") else { return };
    let mut admin = server.admin().unwrap();
    let workload = Workload::OltpPointSelect(Oltp { tables: 1, rows: 60_000, ..Oltp::default() });
    // Another session changes a row while the load is on its way; one row by its key, because
    // a scan would lock what the loaders insert and end in a deadlock of its own making.
    let mut tampered = false;
    let result = load_data(&workload, &server.target(), 7, 2, &mut |progress| {
        if progress.rows > 0 && !tampered {
            let changed = admin.exec_drop("UPDATE sbtest.sbtest1 SET pad='x' WHERE id=1", ());
            tampered = changed.is_ok() && admin.affected_rows() == 1;
        }
    });
    assert!(tampered, "nothing was changed");
    assert!(matches!(&result, Err(LoadError::Mismatch { found_rows: 60_000, .. })), "{result:?}");
}

#[test]
fn every_way_to_log_in_works_or_says_why_not() {
    let Some(server) = Server::start("every_way_to_log_in_works_or_says_why_not") else { return };
    load(&server);
    let workload = Workload::OltpPointSelect(oltp());
    let brief = |target: Target| DriveSpec {
        targets: vec![target],
        measure: Duration::from_millis(200),
        warmup: Duration::ZERO,
        ..server.spec(2)
    };
    let tcp = Address::Tcp("127.0.0.1".into(), server.port);
    for (user, password, address) in [
        ("tester", PASSWORD, None),
        ("tester", PASSWORD, Some(tcp.clone())),
        ("empty", "", None),
        ("empty", "", Some(tcp.clone())),
    ] {
        let mut target = server.target();
        (target.user, target.password) = (user.into(), password.into());
        target.address = address.unwrap_or(target.address);
        let (report, _) = run(&workload, &brief(target)).unwrap();
        assert!(report.transactions > 0, "{user}");
    }
    let wrong = Target { password: "not-the-secret".into(), ..server.target() };
    let error = run(&workload, &brief(wrong)).unwrap_err();
    assert!(matches!(&error, DriveError::Refused { source, .. } if source.code == 1045), "{error}");
    assert!(!format!("{error:?}").contains("not-the-secret"));
    assert!(error.hint().is_some());
    let elsewhere = Target { database: "nowhere".into(), ..server.target() };
    let error = run(&workload, &brief(elsewhere)).unwrap_err();
    assert!(matches!(&error, DriveError::Refused { source, .. } if source.code == 1049), "{error}");
    let more = Workload::OltpPointSelect(Oltp { tables: 4, ..oltp() });
    let error = run(&more, &brief(server.target())).unwrap_err();
    assert!(matches!(&error, DriveError::Prepare { source, .. } if source.code == 1146), "{error}");
}

#[test]
fn a_server_that_dies_ends_the_drive() {
    let Some(mut server) = Server::start("a_server_that_dies_ends_the_drive") else { return };
    load(&server);
    let spec = DriveSpec { measure: Duration::from_secs(600), ..server.spec(16) };
    let mut seconds = 0;
    let stop = AtomicBool::new(false);
    let result = drive(&read_write(), &spec, &stop, &mut |event| {
        if matches!(event, DriveEvent::Second(_)) {
            seconds += 1;
            if seconds == 2 {
                server.process.kill().unwrap();
            }
        }
    });
    let error = result.unwrap_err();
    assert!(matches!(error, DriveError::Lost { .. }), "{error:?}");
}
