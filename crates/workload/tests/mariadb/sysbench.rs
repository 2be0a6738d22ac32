//! sysbench 1.x on our tables, ours on its tables, and both kinds of tables compared.

use std::process::Command;
use std::time::Duration;

use ceteris_workload::{load_data, statement_count};
use load::DriveSpec;
use mysql::prelude::Queryable;
use study::{
    BulkInsert, Oltp, OltpReadOnly, OltpReadWrite, OltpUpdateIndex, OltpUpdateNonIndex,
    OltpWriteOnly, SelectRandomPoints, SelectRandomRanges, Workload,
};

use crate::run;
use crate::server::{Server, find};

pub const ROWS: u64 = 2_000;

/// A server, where sysbench is there too; loudly `None` where not.
pub fn with_sysbench(test: &str) -> Option<Server> {
    if find("sysbench").is_none() {
        eprintln!("SKIPPED {test}: no sysbench on this machine");
        return None;
    }
    Server::start(test)
}

/// Runs sysbench's `script`; what it printed.
pub fn sysbench(server: &Server, script: &str, args: &[&str], command: &str) -> String {
    let output = Command::new(find("sysbench").unwrap())
        .arg(script)
        .args([&format!("--mysql-socket={}", server.socket().display()), "--mysql-user=empty"])
        .args(["--mysql-db=sbtest", "--rand-type=uniform"])
        .args(args)
        .arg(command)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script} {command}: {text}");
    text
}

/// Every variant on two tables, or on one where it knows but one, with its defaults.
pub fn variants() -> Vec<Workload> {
    let oltp = Oltp { tables: 2, rows: ROWS, ..Default::default() };
    vec![
        Workload::OltpPointSelect(oltp.clone()),
        Workload::OltpReadOnly(OltpReadOnly { tables: 2, rows: ROWS, ..Default::default() }),
        Workload::OltpReadWrite(OltpReadWrite { tables: 2, rows: ROWS, ..Default::default() }),
        Workload::OltpWriteOnly(OltpWriteOnly { tables: 2, rows: ROWS, ..Default::default() }),
        Workload::OltpInsert(oltp.clone()),
        Workload::OltpDelete(oltp),
        Workload::OltpUpdateIndex(OltpUpdateIndex { tables: 2, rows: ROWS, ..Default::default() }),
        Workload::OltpUpdateNonIndex(OltpUpdateNonIndex {
            tables: 2,
            rows: ROWS,
            ..Default::default()
        }),
        Workload::SelectRandomPoints(SelectRandomPoints { rows: ROWS, ..Default::default() }),
        Workload::SelectRandomRanges(SelectRandomRanges { rows: ROWS, ..Default::default() }),
        Workload::BulkInsert(BulkInsert { tables: 2 }),
    ]
}

/// sysbench's arguments for the tables of [`variants`].
pub fn tables_args(workload: &Workload) -> Vec<String> {
    match workload {
        Workload::BulkInsert(_) => Vec::new(),
        Workload::SelectRandomPoints(_) | Workload::SelectRandomRanges(_) => {
            vec![format!("--table-size={ROWS}")]
        }
        _ => vec![format!("--table-size={ROWS}"), "--tables=2".to_owned()],
    }
}

/// An empty database.
pub fn clear(server: &Server) {
    let mut admin = server.admin().unwrap();
    admin.query_drop("DROP DATABASE IF EXISTS sbtest").unwrap();
    admin.query_drop("CREATE DATABASE sbtest").unwrap();
}

/// Long enough for hundreds of transactions, or for some that are half a megabyte each.
pub fn moment(workload: &Workload) -> Duration {
    let long = matches!(workload, Workload::BulkInsert(_));
    Duration::from_millis(if long { 4000 } else { 400 })
}

/// A short drive, after which nothing but deadlocks may have gone wrong.
fn drive_briefly(server: &Server, workload: &Workload) {
    let spec = DriveSpec { warmup: Duration::ZERO, measure: moment(workload), ..server.spec(2) };
    let (report, _) = run(workload, &spec).unwrap_or_else(|e| panic!("{}: {e}", workload.name()));
    assert!(report.transactions > 0, "{}", workload.name());
    assert_eq!(report.errors.values().sum::<u64>(), report.retries, "{:?}", report.errors);
}

#[test]
fn ours_run_on_sysbenchs_tables() {
    let Some(server) = with_sysbench("ours_run_on_sysbenchs_tables") else { return };
    for workload in variants() {
        clear(&server);
        let args = tables_args(&workload);
        let args: Vec<&str> = args.iter().map(String::as_str).chain(["--threads=2"]).collect();
        sysbench(&server, workload.name(), &args, "prepare");
        drive_briefly(&server, &workload);
    }
}

#[test]
fn sysbench_runs_on_our_tables() {
    let Some(server) = with_sysbench("sysbench_runs_on_our_tables") else { return };
    for workload in variants() {
        clear(&server);
        load_data(&workload, &server.target(), 7, 2, &mut |_| {}).unwrap();
        let args = tables_args(&workload);
        // Rows that bulk_insert counts as events are many to a statement.
        let events = if matches!(workload, Workload::BulkInsert(_)) { "200000" } else { "100" };
        let events = format!("--events={events}");
        let more = ["--threads=1", "--time=0", events.as_str()];
        let args: Vec<&str> = args.iter().map(String::as_str).chain(more).collect();
        let text = sysbench(&server, workload.name(), &args, "run");
        let figure = |label: &str| -> u64 {
            let line = text.lines().find(|line| line.trim().starts_with(label)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        // Rows that were missing would show as `other`.
        let expected = match workload {
            Workload::OltpReadOnly(_) => (1400, 0, 200),
            Workload::OltpReadWrite(_) => (1400, 400, 200),
            Workload::OltpWriteOnly(_) => (0, 400, 200),
            // Some are deleted twice.
            Workload::OltpDelete(_) => (0, 100 - figure("other:"), figure("other:")),
            Workload::BulkInsert(_) => (0, figure("write:"), 0),
            Workload::OltpInsert(_)
            | Workload::OltpUpdateIndex(_)
            | Workload::OltpUpdateNonIndex(_) => (0, 100, 0),
            _ => (100, 0, 0),
        };
        let found = (figure("read:"), figure("write:"), figure("other:"));
        assert_eq!(found, expected, "{}: {text}", workload.name());
    }
}

#[test]
fn our_tables_are_sysbenchs() {
    let Some(server) = with_sysbench("our_tables_are_sysbenchs") else { return };
    let usual = Oltp { tables: 2, rows: 300, ..Default::default() };
    let without_ids = Oltp { auto_inc: false, ..usual.clone() };
    let cases = [
        (Workload::OltpPointSelect(usual.clone()), vec![]),
        (Workload::OltpPointSelect(without_ids.clone()), vec!["--auto-inc=off"]),
        (
            Workload::OltpPointSelect(Oltp { secondary: true, ..usual.clone() }),
            vec!["--secondary=on"],
        ),
        (
            Workload::OltpPointSelect(Oltp {
                create_secondary: false,
                mysql_storage_engine: "MyISAM".to_owned(),
                ..usual
            }),
            vec!["--create-secondary=off", "--mysql-storage-engine=MyISAM"],
        ),
        (Workload::OltpInsert(without_ids), vec!["--auto-inc=off"]),
        (Workload::BulkInsert(BulkInsert { tables: 2 }), vec![]),
    ];
    for (workload, mut args) in cases {
        args.push("--threads=2");
        if !matches!(workload, Workload::BulkInsert(_)) {
            args.extend(["--tables=2", "--table-size=300"]);
        }
        clear(&server);
        sysbench(&server, workload.name(), &args, "prepare");
        let theirs = tables(&server);
        clear(&server);
        load_data(&workload, &server.target(), 7, 2, &mut |_| {}).unwrap();
        assert_eq!(tables(&server), theirs, "{workload:?}");
    }
}

/// Rows, ids and definition of each table, without the counter, which depends on how INSERTs were
/// cut.
fn tables(server: &Server) -> Vec<(u64, i64, i64, String)> {
    let mut admin = server.admin().unwrap();
    let text = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'sbtest' \
                ORDER BY table_name";
    let names: Vec<String> = admin.query(text).unwrap();
    let one = |name: String| {
        let text = format!("SHOW CREATE TABLE sbtest.{name}");
        let (_, create): (String, String) = admin.query_first(text).unwrap().unwrap();
        let text = format!(
            "SELECT COUNT(*), COALESCE(MIN(id), 0), COALESCE(MAX(id), 0) FROM sbtest.{name}"
        );
        let (rows, min, max): (u64, i64, i64) = admin.query_first(text).unwrap().unwrap();
        let words = create.split(' ').filter(|word| !word.starts_with("AUTO_INCREMENT="));
        (rows, min, max, words.collect::<Vec<_>>().join(" "))
    };
    names.into_iter().map(one).collect()
}

#[test]
fn an_engine_that_the_server_lacks_is_not_replaced_by_another() {
    let test = "an_engine_that_the_server_lacks_is_not_replaced_by_another";
    let Some(server) = Server::start(test) else { return };
    let oltp = Oltp { mysql_storage_engine: "nosuch".to_owned(), rows: 5, ..Default::default() };
    let workload = Workload::OltpDelete(oltp);
    let error = load_data(&workload, &server.target(), 7, 1, &mut |_| {}).unwrap_err();
    let text = format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
    assert!(text.contains("nosuch"), "{text}");
}

#[test]
fn what_is_prepared_is_what_sysbench_says() {
    let counts: Vec<usize> = variants().iter().map(statement_count).collect();
    // Without BEGIN and COMMIT; each on two tables but the two that know one.
    assert_eq!(counts, [2, 10, 18, 8, 0, 2, 2, 2, 1, 1, 0]);
}
