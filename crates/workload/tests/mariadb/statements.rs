//! What reaches the server, from its general log: ours against sysbench's own.

use std::time::Duration;

use ceteris_workload::load_data;
use load::DriveSpec;
use study::{
    Oltp, OltpReadOnly, OltpReadWrite, OltpUpdateIndex, SelectRandomPoints, SelectRandomRanges,
    Workload,
};

use crate::log::{Log, bounds, cycle, logged, tables, widths};
use crate::run;
use crate::server::Server;
use crate::sysbench::{ROWS, clear, moment, sysbench, tables_args, variants, with_sysbench};

/// Ours on fresh tables, for as long as it takes each connection to send enough.
pub fn log_of_ours(server: &Server, workload: &Workload, connections: u32) -> Log {
    let enough = if matches!(workload, Workload::BulkInsert(_)) { 3 } else { 300 };
    for attempt in 0..5 {
        clear(server);
        load_data(workload, &server.target(), 7, 2, &mut |_| {}).unwrap();
        let spec = DriveSpec {
            warmup: Duration::ZERO,
            measure: moment(workload) * (1 << (2 * attempt)),
            ..server.spec(connections)
        };
        let log = logged(server, || {
            let (report, _) = run(workload, &spec).unwrap();
            assert_eq!((report.retries, report.errors.len()), (0, 0));
        });
        assert_eq!(log.executed.len(), connections as usize);
        if log.executed.values().all(|statements| statements.len() >= enough) {
            return log;
        }
    }
    panic!("{} sends too little", workload.name());
}

/// Both sides on the same tables: the same statements in the same order with values from the same
/// ranges.
fn compare(server: &Server, workload: &Workload, args: &[&str], connections: u32) {
    let name = workload.name();
    let ours = log_of_ours(server, workload, connections);
    clear(server);
    load_data(workload, &server.target(), 7, 2, &mut |_| {}).unwrap();
    let mut all = tables_args(workload);
    // Several threads would share a number of events as the machine pleases.
    let until =
        if connections > 1 { ["--time=2", "--events=0"] } else { ["--time=0", "--events=400"] };
    all.push(format!("--threads={connections}"));
    let all: Vec<&str> = all.iter().map(String::as_str).chain(until).collect();
    let all = [&all[..], args].concat();
    let mut report = String::new();
    let theirs = logged(server, || report = sysbench(server, name, &all, "run"));
    let events =
        report.lines().find_map(|line| line.trim().strip_prefix("total number of events:"));
    let events: usize = events.unwrap().trim().parse().unwrap();
    let statements: usize = theirs.executed.values().map(Vec::len).sum();
    assert!(statements.is_multiple_of(events), "{name}: {statements} statements");
    let length = statements / events;
    assert_eq!(cycle(&ours, length), cycle(&theirs, length), "{name}");
    assert_eq!(ours.prepared, theirs.prepared, "{name}");
    assert_eq!(tables(&ours), tables(&theirs), "{name}");
    assert_eq!(widths(&ours), widths(&theirs), "{name}");
    let (ours, theirs) = (bounds(&ours), bounds(&theirs));
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for ((at, ours), theirs) in ours.iter().zip(theirs.values()) {
        // Hundreds of uniform draws come near both ends.
        let slack = (theirs.1 - theirs.0) / 10;
        assert!(
            (ours.0 - theirs.0).abs() <= slack && (ours.1 - theirs.1).abs() <= slack,
            "{name}: {at:?}: ours {ours:?}, sysbench's {theirs:?}"
        );
    }
}

#[test]
fn every_variant_sends_what_sysbench_sends() {
    let Some(server) = with_sysbench("every_variant_sends_what_sysbench_sends") else { return };
    for workload in variants() {
        match workload {
            Workload::BulkInsert(_) => {}
            // Which do not lock, and give each connection its own segment.
            Workload::SelectRandomPoints(_) | Workload::SelectRandomRanges(_) => {
                compare(&server, &workload, &[], 2);
            }
            _ => compare(&server, &workload, &[], 1),
        }
    }
}

#[test]
fn every_knob_does_what_sysbenchs_does() {
    let Some(server) = with_sysbench("every_knob_does_what_sysbenchs_does") else { return };
    let (tables, rows) = (2, ROWS);
    let reads = OltpReadOnly {
        tables,
        rows,
        range_size: 7,
        point_selects: 2,
        simple_ranges: 2,
        sum_ranges: 0,
        order_ranges: 3,
        distinct_ranges: 2,
        skip_trx: true,
        ..Default::default()
    };
    let args = [
        "--range-size=7",
        "--point-selects=2",
        "--simple-ranges=2",
        "--sum-ranges=0",
        "--order-ranges=3",
        "--distinct-ranges=2",
        "--skip-trx=on",
    ];
    compare(&server, &Workload::OltpReadOnly(reads), &args, 1);
    let both = OltpReadWrite {
        tables,
        rows,
        point_selects: 1,
        range_selects: false,
        index_updates: 2,
        non_index_updates: 3,
        delete_inserts: 2,
        ..Default::default()
    };
    let args = [
        "--point-selects=1",
        "--range-selects=off",
        "--index-updates=2",
        "--non-index-updates=3",
        "--delete-inserts=2",
    ];
    compare(&server, &Workload::OltpReadWrite(both), &args, 1);
    let updates = OltpUpdateIndex { tables, rows, index_updates: 3, ..Default::default() };
    compare(&server, &Workload::OltpUpdateIndex(updates), &["--index-updates=3"], 1);
    let inserts = Oltp { tables, rows, auto_inc: false, ..Default::default() };
    compare(&server, &Workload::OltpInsert(inserts), &["--auto-inc=off"], 1);
    let points = SelectRandomPoints { rows, random_points: 3, ..Default::default() };
    compare(&server, &Workload::SelectRandomPoints(points), &["--random-points=3"], 3);
    let ranges = SelectRandomRanges { rows, number_of_ranges: 4, delta: 9, ..Default::default() };
    let args = ["--number-of-ranges=4", "--delta=9"];
    compare(&server, &Workload::SelectRandomRanges(ranges), &args, 3);
}

#[test]
fn bulk_insert_sends_sysbenchs_very_bytes() {
    let Some(server) = with_sysbench("bulk_insert_sends_sysbenchs_very_bytes") else { return };
    let workload = variants().pop().unwrap();
    assert_eq!(workload.name(), "bulk_insert");
    let ours = log_of_ours(&server, &workload, 1);
    clear(&server);
    sysbench(&server, "bulk_insert", &["--threads=1"], "prepare");
    let args = ["--threads=1", "--time=0", "--events=150000"];
    let theirs = logged(&server, || {
        sysbench(&server, "bulk_insert", &args, "run");
    });
    let ours: Vec<&String> = ours.texts.values().flatten().collect();
    let theirs: Vec<&String> = theirs.texts.values().flatten().collect();
    // The last of theirs is what was left when it ended.
    let common = ours.len().min(theirs.len() - 1);
    assert!(common >= 2, "{} and {}", ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs).take(common) {
        assert!(ours == theirs, "{} and {} bytes", ours.len(), theirs.len());
    }
}

#[test]
fn a_table_for_each_connection_or_an_error() {
    let Some(server) = Server::start("a_table_for_each_connection_or_an_error") else { return };
    let workload = variants().pop().unwrap();
    let error = run(&workload, &server.spec(3)).unwrap_err();
    assert!(error.to_string().contains("3 connections and 2 tables"), "{error}");
}
