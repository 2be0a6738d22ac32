//! Scripts: the one of `oltp_read_write` against the built-in, and one that keeps values.

use std::path::Path;
use std::time::Duration;

use ceteris_workload::{
    TableState, check_script, describe_data, drop_own, load_data, prepare, survey,
};
use load::{DriveSpec, StatementProtocol};
use mysql::prelude::Queryable;
use study::{OltpReadWrite, Param, Script, Workload};

use crate::log::{Log, logged};
use crate::run;
use crate::server::Server;
use crate::sysbench::clear;

/// A script of `workloads/`.
fn script(name: &str, params: &[(&str, i64)]) -> Workload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name);
    let params =
        params.iter().map(|(name, value)| ((*name).to_owned(), Param::Integer(*value))).collect();
    let text = Some(std::fs::read_to_string(&path).unwrap());
    let workload = Workload::Script(Script { file: Some(name.to_owned()), params, text });
    check_script(&workload).unwrap_or_else(|error| panic!("{error}"));
    workload
}

/// What a drive of one connection begins with.
fn begin(log: &Log, length: usize) -> Vec<String> {
    let texts = log.texts.values().next().expect("a connection that sent something");
    assert!(texts.len() >= length, "only {} statements", texts.len());
    texts[..length].to_vec()
}

#[test]
fn the_script_of_oltp_read_write_sends_what_the_built_in_sends() {
    let test = "the_script_of_oltp_read_write_sends_what_the_built_in_sends";
    let Some(server) = Server::start(test) else { return };
    let built_in = Workload::OltpReadWrite(OltpReadWrite {
        tables: 3,
        rows: 1000,
        range_size: 7,
        order_ranges: 2,
        ..Default::default()
    });
    let params = [("tables", 3), ("rows", 1000), ("range_size", 7), ("order_ranges", 2)];
    let written = script("oltp_read_write.toml", &params);
    let both = [&built_in, &written].map(|workload| {
        clear(&server);
        let facts = load_data(workload, &server.target(), 7, 2, &mut |_| {}).unwrap();
        let spec = DriveSpec {
            warmup: Duration::ZERO,
            measure: Duration::from_secs(1),
            threads: Some(1),
            ..server.spec(1)
        };
        let mut names = Vec::new();
        let log = logged(&server, || {
            let (report, _) = run(workload, &spec).unwrap();
            assert_eq!((report.retries, report.errors.len()), (0, 0));
            names = report.statements.into_iter().map(|statement| statement.name).collect();
            let kinds: Vec<String> = report.kinds.into_iter().map(|kind| kind.name).collect();
            assert_eq!(kinds, ["oltp_read_write"]);
        });
        (facts, log.prepared.clone(), names, begin(&log, 21 * 20))
    });
    let [ours, theirs] = both;
    assert_eq!(ours.0.len(), 6);
    assert_eq!(ours.0, theirs.0, "rows");
    assert_eq!(ours.1, theirs.1, "prepared texts");
    assert_eq!(ours.2, theirs.2, "names");
    assert_eq!(ours.3, theirs.3, "executed, with all values");
}

#[test]
fn money_is_neither_made_nor_lost() {
    let Some(server) = Server::start("money_is_neither_made_nor_lost") else { return };
    let bank = script("bank_transfer.toml", &[("accounts", 60_000)]);
    let mut target = server.target();
    target.database = "bank".to_owned();
    let prepared = prepare(&bank, &target, 7, 2, &mut |_| {}).unwrap();
    assert_eq!(prepared.facts["account.rows"], "60000");
    assert!(prepared.facts.contains_key("account.checksum"), "{:?}", prepared.facts);
    assert_eq!(prepared.facts["transfer.rows"], "0");
    let again = prepare(&bank, &target, 7, 1, &mut |_| {}).unwrap();
    assert_eq!((again.replaced, &again.facts), (2, &prepared.facts));
    let states = |wanted| {
        let tables = survey(&bank, &target).unwrap().tables;
        tables.iter().filter(|table| table.state == wanted).count()
    };
    assert_eq!(states(TableState::Ours), 2);

    let mut admin = server.admin().unwrap();
    for protocol in [StatementProtocol::Prepared, StatementProtocol::Text] {
        let spec = DriveSpec { targets: vec![target.clone()], protocol, ..server.spec(8) };
        let (report, _) = run(&bank, &spec).unwrap();
        let count = |name: &str| {
            report.kinds.iter().find(|kind| kind.name == name).map_or(0, |kind| kind.transactions)
        };
        let (transfers, looks) = (count("transfer"), count("look"));
        assert!(transfers > 0 && looks > 0, "{transfers} transfers, {looks} looks");
        // Kinds are drawn when operations begin, of which a few are in flight at either end.
        let share = transfers as f64 / (transfers + looks) as f64;
        assert!((0.2..0.4).contains(&share), "weights are 3 to 7, {transfers} to {looks}");
    }
    let sum: (i64, i64) =
        admin.query_first("SELECT SUM(balance), COUNT(*) FROM bank.account").unwrap().unwrap();
    assert_eq!(sum, (60_000_000, 60_000));
    // Every transfer took a tenth of what was there when it was read, and named the owner.
    let (made, moved, unnamed): (u64, u64, u64) = admin
        .query_first(
            "SELECT COUNT(*), SUM(amount > 0), SUM(note NOT REGEXP \
             CONCAT('^(rent|wages|gift) from ', owner, '$')) \
             FROM bank.transfer JOIN bank.account ON account.id = payer",
        )
        .unwrap()
        .unwrap();
    assert!(made > 0 && moved > made / 2, "{moved} of {made} moved something");
    assert_eq!(unnamed, 0);
    assert_eq!(drop_own(&target).unwrap().dropped, ["account", "transfer"]);
}

#[test]
fn the_key_of_a_dataset_depends_on_tables_and_rows_alone() {
    let bank =
        |params: &[(&str, i64)]| describe_data(&script("bank_transfer.toml", params)).unwrap();
    let plain = bank(&[]);
    assert_eq!(plain, bank(&[("theta", 2)]), "what only transactions use");
    assert_ne!(plain, bank(&[("accounts", 5)]));
    assert_ne!(plain, bank(&[("opening", 5)]));
    assert!(plain.contains("CREATE INDEX owner ON account(owner)"), "{plain}");
}
