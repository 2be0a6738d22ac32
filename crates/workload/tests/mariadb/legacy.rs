//! `oltp_legacy` against what the source of sysbench 0.4.12 says: there is no program to ask.

use std::collections::BTreeSet;

use ceteris_workload::load_data;
use mysql::prelude::Queryable;
use study::{NontrxMode as N, OltpLegacy, TestMode, Workload};

use crate::log::{bounds, cycle, widths};
use crate::server::Server;
use crate::statements::log_of_ours;
use crate::sysbench::ROWS;

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
