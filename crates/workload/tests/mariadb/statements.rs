//! What reaches the server, from its general log: ours against sysbench's own, and 0.4.12's against
//! what its source says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ceteris_workload::load_data;
use load::DriveSpec;
use mysql::prelude::Queryable;
use study::{
    Oltp, OltpLegacy, OltpReadOnly, OltpReadWrite, OltpUpdateIndex, SelectRandomPoints,
    SelectRandomRanges, TestMode, Workload,
};

use crate::run;
use crate::server::Server;
use crate::sysbench::{ROWS, clear, moment, sysbench, tables_args, variants, with_sysbench};

/// A statement in the log, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Logged {
    /// Numbers are `?`, and digits within strings and names of tables `#`.
    form: String,
    /// In their order.
    numbers: Vec<i64>,
    table: String,
}

/// What one side sent.
#[derive(Debug, Default)]
struct Log {
    /// Texts, but for BEGIN and COMMIT.
    prepared: BTreeSet<String>,
    /// In order, by connection.
    executed: BTreeMap<u64, Vec<Logged>>,
    /// As they came, by connection.
    texts: BTreeMap<u64, Vec<String>>,
}

/// Logs what `work` sends.
fn logged(server: &Server, work: impl FnOnce()) -> Log {
    let mut admin = server.admin().unwrap();
    let own: u64 = admin.query_first("SELECT CONNECTION_ID()").unwrap().unwrap();
    for statement in [
        "SET GLOBAL log_output = 'TABLE'",
        "TRUNCATE mysql.general_log",
        "SET GLOBAL general_log = ON",
    ] {
        admin.query_drop(statement).unwrap();
    }
    work();
    admin.query_drop("SET GLOBAL general_log = OFF").unwrap();
    let text = "SELECT thread_id, command_type, CONVERT(argument USING utf8) \
                FROM mysql.general_log";
    let rows: Vec<(u64, String, String)> = admin.query(text).unwrap();
    let mut log = Log::default();
    for (connection, command, text) in rows {
        if connection == own {
            continue;
        }
        match command.as_str() {
            "Prepare" if text != "BEGIN" && text != "COMMIT" => {
                log.prepared.insert(text);
            }
            "Execute" | "Query" if !is_housekeeping(&text) => {
                log.executed.entry(connection).or_default().push(take_apart(&text));
                log.texts.entry(connection).or_default().push(text);
            }
            _ => {}
        }
    }
    log
}

/// What the client libraries say on their own.
fn is_housekeeping(text: &str) -> bool {
    text.starts_with("SET ") || text.starts_with("set ")
}

fn take_apart(text: &str) -> Logged {
    let mut logged = Logged { form: String::new(), numbers: Vec::new(), table: String::new() };
    let mut rest = text.chars().peekable();
    let (mut in_string, mut word) = (false, String::new());
    while let Some(c) = rest.next() {
        let follows_word = !word.is_empty();
        if c == '\'' {
            in_string = !in_string;
        }
        if c.is_ascii_digit() && in_string {
            logged.form.push('#');
        } else if c.is_ascii_digit() && follows_word {
            logged.table.push(c);
            if !logged.form.ends_with('#') {
                logged.form.push('#');
            }
        } else if !in_string
            && (c.is_ascii_digit() || c == '-' && rest.peek().is_some_and(char::is_ascii_digit))
        {
            let mut number = String::from(c);
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                number.push(digit);
            }
            logged.numbers.push(number.parse().unwrap());
            logged.form.push('?');
        } else {
            logged.form.push(c);
        }
        match c.is_alphanumeric() && !in_string {
            true if c.is_ascii_digit() && !follows_word => {}
            true => word.push(c),
            false => word.clear(),
        }
    }
    logged
}

/// The statements of one transaction, of which every connection's log must be made.
fn cycle(log: &Log, length: usize) -> Vec<String> {
    let first = log.executed.values().next().expect("a connection that sent something");
    let forms = |list: &[Logged]| list.iter().map(|s| s.form.clone()).collect::<Vec<_>>();
    let cycle = forms(&first[..length]);
    for (connection, statements) in &log.executed {
        assert!(statements.len() >= 10 * length, "only {} statements", statements.len());
        assert!(statements.len().is_multiple_of(length), "{connection}: a part of a transaction");
        for transaction in statements.chunks(length) {
            assert_eq!(forms(transaction), cycle);
        }
    }
    cycle
}

/// Smallest and largest value at each place of each statement.
fn bounds(log: &Log) -> BTreeMap<(String, usize), (i64, i64)> {
    let mut bounds = BTreeMap::new();
    for statement in log.executed.values().flatten() {
        for (place, &number) in statement.numbers.iter().enumerate() {
            let entry = bounds.entry((statement.form.clone(), place)).or_insert((number, number));
            *entry = (entry.0.min(number), entry.1.max(number));
        }
    }
    bounds
}

/// Widths of the ranges in each statement that has some.
fn widths(log: &Log) -> BTreeMap<String, BTreeSet<i64>> {
    let mut widths: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for statement in log.executed.values().flatten() {
        if statement.form.to_ascii_uppercase().contains("BETWEEN") {
            let found = widths.entry(statement.form.clone()).or_default();
            found.extend(statement.numbers.chunks(2).map(|pair| pair[1] - pair[0]));
        }
    }
    widths
}

fn tables(log: &Log) -> BTreeSet<&str> {
    log.executed.values().flatten().map(|statement| statement.table.as_str()).collect()
}

/// Ours on fresh tables, for as long as it takes each connection to send enough.
fn log_of_ours(server: &Server, workload: &Workload, connections: u32) -> Log {
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
    let events = 400;
    let mut all = tables_args(workload);
    all.extend([format!("--threads={connections}"), format!("--events={events}")]);
    let all: Vec<&str> = all.iter().map(String::as_str).chain(["--time=0"]).collect();
    let all = [&all[..], args].concat();
    let theirs = logged(server, || {
        sysbench(server, name, &all, "run");
    });
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

const COMPLEX: [&str; 21] = [
    "BEGIN",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id=?",
    "SELECT c from sbtest where id between ? and ?",
    "SELECT SUM(K) from sbtest where id between ? and ?",
    "SELECT c from sbtest where id between ? and ? order by c",
    "SELECT DISTINCT c from sbtest where id between ? and ? order by c",
    "UPDATE sbtest set k=k+? where id=?",
    "UPDATE sbtest set c='N' where id=?",
    "UPDATE sbtest set k=k+? where id=?",
    "DELETE from sbtest where id=?",
    "INSERT INTO sbtest values(?,?,' ','aaaaaaaaaaffffffffffrrrrrrrrrreeeeeeeeeeyyyyyyyyyy')",
    "COMMIT",
];

/// Ten or five numbers joined by `-`, of no fixed width.
fn without_numbers(form: &str) -> String {
    let mut text = form.to_owned();
    for count in [10, 5] {
        let at = |text: &str| {
            let (from, to) = (text.find("'#")?, text.find("#'")?);
            let numbers: Vec<&str> = text[from + 1..=to].split('-').collect();
            let widths = numbers.iter().all(|number| (1..=10).contains(&number.len()));
            (numbers.len() == count && widths).then_some((from + 1, to + 1))
        };
        if let Some((from, to)) = at(&text) {
            text.replace_range(from..to, if count == 10 { "N" } else { "M" });
        }
    }
    text
}

#[test]
fn legacy_sends_what_0_4_12_sent() {
    let Some(server) = Server::start("legacy_sends_what_0_4_12_sent") else { return };
    let with = |knobs: OltpLegacy| Workload::OltpLegacy(OltpLegacy { rows: ROWS, ..knobs });
    let complex = OltpLegacy::default();
    let nontrx = |mode| OltpLegacy {
        test_mode: TestMode::Nontrx,
        nontrx_mode: mode,
        ..OltpLegacy::default()
    };
    use study::NontrxMode as N;
    let reads = [&COMPLEX[..15], &["COMMIT"]].concat();
    for (knobs, expected) in [
        (complex.clone(), &COMPLEX[..]),
        (OltpLegacy { skip_trx: true, ..complex.clone() }, &COMPLEX[1..20]),
        (OltpLegacy { read_only: true, ..complex.clone() }, &reads[..]),
        (OltpLegacy { test_mode: TestMode::Simple, ..complex.clone() }, &COMPLEX[1..2]),
        (nontrx(N::Select), &["SELECT pad from sbtest where id=?"]),
        (nontrx(N::UpdateKey), &["UPDATE sbtest set k=k+? where id=?"]),
        (nontrx(N::UpdateNokey), &["UPDATE sbtest set c='N' where id=?"]),
        (nontrx(N::Insert), &["INSERT INTO sbtest values(NULL,?,'N','M')"]),
        (nontrx(N::Delete), &["DELETE from sbtest where id=?"]),
    ] {
        let mut log = log_of_ours(&server, &with(knobs.clone()), 1);
        for statement in log.executed.values_mut().flatten() {
            statement.form = without_numbers(&statement.form);
        }
        assert_eq!(cycle(&log, expected.len()), expected, "{knobs:?}");
        for (form, widths) in widths(&log) {
            let width = if form.contains("DISTINCT") { 100 } else { 99 };
            assert_eq!(widths, [width].into(), "{form}");
        }
        for ((form, place), (min, max)) in bounds(&log) {
            let constant = match (form.as_str(), place) {
                (form, 0) if form.contains("k=k+?") => Some(1),
                (form, 1) if form.contains("values(?,?,") => Some(0),
                _ => None,
            };
            match constant {
                Some(constant) => assert_eq!((min, max), (constant, constant), "{form}"),
                None => assert!(min >= 1 && max <= ROWS as i64, "{form}: {min} to {max}"),
            }
        }
        if knobs == nontrx(N::Delete) {
            let ids: Vec<i64> = log.executed.values().flatten().map(|s| s.numbers[0]).collect();
            let distinct = BTreeSet::from_iter(&ids).len();
            assert_eq!(distinct, ids.len().min(ROWS as usize), "each row once before any twice");
        }
        // The row that is updated is the one that is deleted and comes back.
        for transaction in log.executed.values().flat_map(|all| all.chunks(expected.len())) {
            if let Some(at) = expected.iter().position(|form| form.starts_with("DELETE")) {
                let id = transaction[at].numbers[0];
                if at > 0 {
                    assert_eq!(transaction[at - 1].numbers[1], id);
                    assert_eq!(transaction[at + 1].numbers[0], id);
                }
            }
        }
    }
}

#[test]
fn legacy_begins_with_the_table_of_0_4_12() {
    let Some(server) = Server::start("legacy_begins_with_the_table_of_0_4_12") else { return };
    let legacy = OltpLegacy { rows: 30_000, ..OltpLegacy::default() };
    let facts =
        load_data(&Workload::OltpLegacy(legacy), &server.target(), 7, 2, &mut |_| {}).unwrap();
    assert_eq!(facts["sbtest.rows"], "30000");
    let mut admin = server.admin().unwrap();
    let (_, create): (String, String) =
        admin.query_first("SHOW CREATE TABLE sbtest.sbtest").unwrap().unwrap();
    for part in [
        "`id` int(10) unsigned NOT NULL AUTO_INCREMENT",
        "`k` int(10) unsigned NOT NULL DEFAULT 0",
        "`c` char(120) NOT NULL DEFAULT ''",
        "`pad` char(60) NOT NULL DEFAULT ''",
        "PRIMARY KEY (`id`)",
        "KEY `k` (`k`)",
        "ENGINE=InnoDB",
    ] {
        assert!(create.contains(part), "{part}: {create}");
    }
    let all: (u64, u64, u64) = admin
        .query_first(
            "SELECT COUNT(*), MIN(id), MAX(id) FROM sbtest.sbtest WHERE k = 0 AND c = ' ' AND \
             pad = 'qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt'",
        )
        .unwrap()
        .unwrap();
    assert_eq!(all, (30_000, 1, 30_000));
}

#[test]
fn a_table_without_transactions_is_locked_by_legacy() {
    let test = "a_table_without_transactions_is_locked_by_legacy";
    let Some(server) = Server::start(test) else { return };
    let mysql_table_engine = "myisam".to_owned();
    let legacy = OltpLegacy { rows: ROWS, mysql_table_engine, ..OltpLegacy::default() };
    let log = log_of_ours(&server, &Workload::OltpLegacy(legacy), 2);
    for statements in log.executed.values() {
        for transaction in statements.chunks(21) {
            assert_eq!(transaction[0].form, "LOCK TABLES sbtest WRITE");
            assert_eq!(transaction[20].form, "UNLOCK TABLES");
        }
    }
}
