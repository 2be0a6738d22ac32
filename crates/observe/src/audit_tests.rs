//! The audit on made-up runs: each rule once where it holds and once where it must not.

#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::json;

/// Two levels, three blocks; every run sees `seen(level, block, when)` beside a constant name.
fn runs_at(
    at: &str,
    seen: impl Fn(&str, u32, &str) -> Vec<(&'static str, String)>,
) -> Vec<Compared> {
    let mut runs = Vec::new();
    for block in 0..3 {
        for level in ["one", "two"] {
            let take = |when: &str| {
                let own = seen(level, block, when).into_iter();
                let own = own.map(|(name, value)| (name.to_owned(), value));
                own.chain([("host.kernel.release".to_owned(), "6.1".to_owned())]).collect()
            };
            let (before, after) = (take("before"), take("after"));
            let (level, at) = (level.to_owned(), at.to_owned());
            runs.push(Compared { level, at, block, before, after });
        }
    }
    runs
}

fn runs(seen: impl Fn(&str, u32, &str) -> Vec<(&'static str, String)>) -> Vec<Compared> {
    runs_at("{}", seen)
}

fn factor(path: &str, one: Value, two: Value) -> Factor {
    let levels = [("one".to_owned(), vec![one]), ("two".to_owned(), vec![two])].into();
    Factor { paths: vec![path.to_owned()], levels }
}

fn flush() -> Factor {
    factor("server.config.innodb_flush_log_at_trx_commit", json!(1), json!(2))
}

const FLUSH: &str = "server.variable.innodb_flush_log_at_trx_commit";

fn by_level(level: &str) -> String {
    if level == "one" { "1" } else { "2" }.to_owned()
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(who, what)| ((*who).to_owned(), (*what).to_owned())).collect()
}

#[test]
fn the_factor_alone_differs() {
    let (found, compared) = audit(&flush(), &runs(|level, _, _| vec![(FLUSH, by_level(level))]));
    assert_eq!(compared, 2);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].kind), (FLUSH, Kind::Factor));
    assert_eq!(found[0].values, values(&[("one", "1"), ("two", "2")]));
    assert_eq!(found[0].reason, "the factor");
}

#[test]
fn a_second_variable_confounds() {
    let seen = |level: &str, _: u32, _: &str| {
        let io = if level == "one" { "200" } else { "400" };
        vec![(FLUSH, by_level(level)), ("server.variable.innodb_io_capacity", io.to_owned())]
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].kind, Kind::Unexplained);
    assert_eq!(found[0].name, "server.variable.innodb_io_capacity");
    assert_eq!(found[0].values, values(&[("one", "200"), ("two", "400")]));
    assert_eq!(found[1].kind, Kind::Factor);
}

#[test]
fn the_host_is_compared_as_strictly() {
    let seen = |level: &str, _: u32, _: &str| {
        let governor = if level == "one" { "performance" } else { "powersave" };
        vec![(FLUSH, by_level(level)), ("host.cpu.governor", governor.to_owned())]
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!((found[0].name.as_str(), found[0].kind), ("host.cpu.governor", Kind::Unexplained));
}

#[test]
fn equal_levels_with_nothing_different_have_no_findings() {
    let same = factor("server.config.sync_binlog", json!(1), json!("1"));
    let found =
        audit(&same, &runs(|_, _, _| vec![("server.variable.sync_binlog", "1".to_owned())]));
    assert_eq!(found, (vec![], 2));
}

#[test]
fn equal_levels_that_the_server_tells_apart_confound() {
    let same = factor("server.config.sync_binlog", json!(1), json!("1"));
    let seen =
        |level: &str, _: u32, _: &str| vec![("server.variable.sync_binlog", by_level(level))];
    let (found, _) = audit(&same, &runs(seen));
    assert_eq!(found[0].kind, Kind::Unexplained);
    assert_eq!(found[0].reason, "one and two ask for the same value, yet the server differs");
}

#[test]
fn a_change_during_one_run_names_the_run() {
    let seen = |level: &str, block: u32, when: &str| {
        let moved = level == "two" && block == 1 && when == "after";
        let swappiness = if moved { "1" } else { "60" };
        vec![(FLUSH, by_level(level)), ("host.vm.swappiness", swappiness.to_owned())]
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!(found[0].name, "host.vm.swappiness");
    assert_eq!(
        (found[0].kind, found[0].reason.as_str()),
        (Kind::Unexplained, "changed during a run")
    );
    let wanted = values(&[("one", "60"), ("two", "60"), ("two, block 1, after", "1")]);
    assert_eq!(found[0].values, wanted);
}

#[test]
fn a_change_during_every_run_is_said_once() {
    let seen = |level: &str, _: u32, when: &str| {
        vec![(FLUSH, by_level(level)), ("server.variable.x", when.to_owned())]
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!(found[0].reason, "changed during a run");
    let wanted = values(&[
        ("one", "before"),
        ("one, after every run", "after"),
        ("two", "before"),
        ("two, after every run", "after"),
    ]);
    assert_eq!(found[0].values, wanted);
}

#[test]
fn a_block_that_differs_from_its_level_names_the_block() {
    let seen = |level: &str, block: u32, _: &str| {
        let kernel = if block == 2 { "6.2" } else { "6.1" };
        vec![(FLUSH, by_level(level)), ("host.kernel.version", kernel.to_owned())]
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!(found[0].kind, Kind::Unexplained);
    assert_eq!(found[0].reason, "differs between blocks of one level");
    let wanted =
        values(&[("one", "6.1"), ("one, block 2", "6.2"), ("two", "6.1"), ("two, block 2", "6.2")]);
    assert_eq!(found[0].values, wanted);
}

#[test]
fn the_factor_itself_must_hold_still_too() {
    let seen = |level: &str, block: u32, when: &str| {
        let value = if level == "two" && block == 0 && when == "after" { "1" } else { "" };
        vec![(FLUSH, if value.is_empty() { by_level(level) } else { value.to_owned() })]
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!(found[0].kind, Kind::Unexplained);
    assert_eq!(found[0].reason, "changed during a run");
}

#[test]
fn what_innodb_tunes_by_itself_is_listed_and_confounds_nothing() {
    let seen = |level: &str, block: u32, when: &str| {
        let delay = format!("{}", block * 100 + u32::from(when == "after"));
        vec![(FLUSH, by_level(level)), ("server.variable.innodb_thread_sleep_delay", delay)]
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert!(found.iter().all(|finding| finding.kind < Kind::Unexplained), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_name_on_one_side_only_is_a_difference() {
    let seen = |level: &str, _: u32, _: &str| {
        let mut all = vec![(FLUSH, by_level(level))];
        if level == "two" {
            all.push(("host.process.environment.LD_PRELOAD", "/x.so".to_owned()));
        }
        all
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!(found[0].kind, Kind::Unexplained);
    assert_eq!(found[0].values, values(&[("one", "(absent)"), ("two", "/x.so")]));
}

#[test]
fn known_consequences_are_listed_with_their_reason() {
    let pool = factor("server.config.innodb-buffer-pool-size", json!("128M"), json!("2G"));
    let seen = |level: &str, _: u32, _: &str| {
        let (size, parts) = if level == "one" { ("134217728", "1") } else { ("2147483648", "8") };
        vec![
            ("server.variable.innodb_buffer_pool_size", size.to_owned()),
            ("server.variable.innodb_buffer_pool_instances", parts.to_owned()),
        ]
    };
    let (found, _) = audit(&pool, &runs(seen));
    let kinds: Vec<(&str, Kind)> = found.iter().map(|f| (f.name.as_str(), f.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("server.variable.innodb_buffer_pool_instances", Kind::Consequence),
            ("server.variable.innodb_buffer_pool_size", Kind::Factor),
        ]
    );
    assert!(found[0].reason.contains("buffer pool"));
    // The same difference without that cause is no consequence.
    let other = factor("server.config.sync_binlog", json!(0), json!(0));
    let (found, _) = audit(&other, &runs(seen));
    assert!(found.iter().all(|finding| finding.kind == Kind::Unexplained));
}

#[test]
fn connections_follow_into_the_limits_of_the_process() {
    let connections = factor("server.config.max_connections", json!(100), json!(5000));
    let seen = |level: &str, _: u32, _: &str| {
        let n = if level == "one" { "100" } else { "5000" }.to_owned();
        vec![
            ("server.variable.max_connections", n.clone()),
            ("server.variable.open_files_limit", n.clone()),
            ("server.variable.performance_schema_max_thread_instances", n.clone()),
            ("host.process.limit.nofile", n),
        ]
    };
    let (found, _) = audit(&connections, &runs(seen));
    assert_eq!(found.len(), 4);
    assert_eq!(found.iter().filter(|f| f.kind == Kind::Consequence).count(), 3);
    assert_eq!(found.iter().filter(|f| f.kind == Kind::Factor).count(), 1);
}

#[test]
fn a_page_size_brings_its_own_dataset_and_a_flush_setting_does_not() {
    let dataset = |level: &str, _: u32, _: &str| vec![("place.dataset.hash", by_level(level))];
    let page = Factor { paths: vec!["server.config.innodb_page_size".into()], ..Factor::default() };
    assert_eq!(audit(&page, &runs(dataset)).0[0].kind, Kind::Consequence);
    let commit =
        Factor { paths: vec![format!("server.config.{}", &FLUSH[16..])], ..Factor::default() };
    assert_eq!(audit(&commit, &runs(dataset)).0[0].kind, Kind::Unexplained);
    let rows = Factor { paths: vec!["workload.oltp_read_only.rows".into()], ..Factor::default() };
    assert_eq!(audit(&rows, &runs(dataset)).0[0].kind, Kind::Consequence);
    let load = Factor { paths: vec!["load.connections".into()], ..Factor::default() };
    assert_eq!(audit(&load, &runs(dataset)).0[0].kind, Kind::Unexplained);
}

#[test]
fn another_package_explains_the_server_and_not_the_host() {
    let package = factor("server.package", json!("mysql-5.7.22"), json!("mysql-8.0.12"));
    let seen = |level: &str, _: u32, _: &str| {
        [
            "server.version",
            "server.variable.innodb_io_capacity",
            "server.plugin.mysqlx",
            "place.package.hash",
            "place.dataset.hash",
            "host.kernel.numa_balancing",
        ]
        .map(|name| (name, by_level(level)))
        .to_vec()
    };
    let (found, _) = audit(&package, &runs(seen));
    let of = |name: &str| found.iter().find(|finding| finding.name == name).unwrap().kind;
    assert_eq!(of("host.kernel.numa_balancing"), Kind::Unexplained);
    assert_eq!(of("place.package.hash"), Kind::Factor);
    assert_eq!(of("server.version"), Kind::Consequence);
    assert_eq!(of("server.plugin.mysqlx"), Kind::Consequence);
    assert_eq!(of("place.dataset.hash"), Kind::Consequence);
}

/// The names that the host placement really gives to a fingerprint.
fn placed(level: &str) -> Vec<(&'static str, String)> {
    // The user that servers run as is the machine's, and where they run is the placement's.
    let names = place::FINGERPRINT_NAMES
        .into_iter()
        .filter(|name| *name != "place.user" && !name.starts_with("place.placement."));
    names.map(|name| (name, by_level(level))).collect()
}

#[test]
fn everything_that_a_placement_tells_follows_from_another_package() {
    let seen = |level: &str, _: u32, _: &str| {
        let mut all = placed(level);
        all.push(("host.process.limit.nofile", by_level(level)));
        all.push(("host.process.huge_pages_enabled", by_level(level)));
        all.push(("host.process.library.libssl.so.3", by_level(level)));
        all.push(("server.version", by_level(level)));
        all
    };
    for path in ["server.package", "server"] {
        let package = factor(path, json!("a"), json!("b"));
        let (found, _) = audit(&package, &runs(seen));
        assert_eq!(found.len(), placed("a").len() + 4, "{found:?}");
        assert!(found.iter().all(|finding| finding.kind < Kind::Unexplained), "{found:?}");
    }
    let (found, _) = audit(&flush(), &runs(seen));
    assert!(found.iter().filter(|f| f.kind == Kind::Unexplained).count() > 6, "{found:?}");
}

#[test]
fn everything_that_a_placement_tells_of_itself_is_the_factor_where_the_placement_is() {
    let own: Vec<&str> = place::FINGERPRINT_NAMES
        .into_iter()
        .filter(|name| name.starts_with("place.placement."))
        .collect();
    assert!(own.contains(&"place.placement.kind"));
    let seen =
        |level: &str, _: u32, _: &str| own.iter().map(|name| (*name, by_level(level))).collect();
    let placement = factor("placement", json!("a"), json!("b"));
    let (found, _) = audit(&placement, &runs(seen));
    assert_eq!(found.len(), own.len());
    assert!(found.iter().all(|finding| finding.kind == Kind::Factor), "{found:?}");
    let (found, _) = audit(&flush(), &runs(seen));
    assert!(found.iter().all(|finding| finding.kind == Kind::Unexplained), "{found:?}");
}

#[test]
fn everything_that_a_dataset_changes_follows_from_what_changes_files() {
    let seen = |level: &str, _: u32, _: &str| {
        let mut all = placed(level);
        all.retain(|(name, _)| name.starts_with("place.dataset"));
        assert_eq!(all.len(), 2);
        all
    };
    let file_settings = study::variables::FILE_CHANGING.iter();
    let settings = file_settings.map(|name| format!("server.config.{name}"));
    let workload = ["rows", "tables", "distribution"].map(|key| format!("workload.x.{key}"));
    for path in settings.chain(workload).chain(["workload".into(), "server.config".into()]) {
        let varied = Factor { paths: vec![path.clone()], ..Factor::default() };
        let (found, _) = audit(&varied, &runs(seen));
        assert_eq!(found.len(), 2, "{path}");
        assert!(found.iter().all(|f| f.kind == Kind::Consequence), "{path}: {found:?}");
    }
}

#[test]
fn datasets_differ_by_the_settings_that_they_are_loaded_under_and_no_other() {
    let mut causes: Vec<&str> = DERIVATIONS
        .iter()
        .filter(|rule| rule.derived.iter().any(|name| name.starts_with("place.dataset")))
        .flat_map(|rule| rule.causes.iter().copied())
        .collect();
    causes.sort_unstable();
    assert_eq!(causes, study::variables::FILE_CHANGING);
}

#[test]
fn the_generators_threads_follow_from_the_load_and_from_nothing_else() {
    let seen = |level: &str, _: u32, _: &str| {
        ["generator.threads", "generator.cpus", "generator.reactor"]
            .map(|name| (name, by_level(level)))
            .to_vec()
    };
    let kinds = |path: &str| -> Vec<(String, Kind)> {
        let varied = Factor { paths: vec![path.to_owned()], ..Factor::default() };
        audit(&varied, &runs(seen)).0.into_iter().map(|f| (f.name, f.kind)).collect()
    };
    for path in ["load", "load.connections", "load.connect"] {
        assert_eq!(kinds(path).len(), 3);
        assert!(kinds(path).iter().all(|(_, kind)| *kind == Kind::Consequence), "{path}");
    }
    let threads = kinds("load.threads");
    assert!(threads.contains(&("generator.threads".to_owned(), Kind::Factor)), "{threads:?}");
    assert!(threads.contains(&("generator.cpus".to_owned(), Kind::Consequence)), "{threads:?}");
    let others = kinds("workload.x.rows");
    assert!(others.iter().all(|(_, kind)| *kind == Kind::Unexplained), "{others:?}");
}

const LIBRARY: &str = "host.process.library.libssl.so.3";

#[test]
fn an_upgraded_library_confounds_and_one_that_is_loaded_later_does_not() {
    let seen = |change: fn(u32, &str) -> Option<&'static str>| {
        move |level: &str, block: u32, when: &str| {
            let mut all = vec![(FLUSH, by_level(level))];
            all.extend(change(block, when).map(|build| (LIBRARY, build.to_owned())));
            all
        }
    };
    let later = seen(|_, when| (when == "after").then_some("build 1"));
    let (found, _) = audit(&flush(), &runs(later));
    assert_eq!(found.len(), 1, "{found:?}");
    let once_early = seen(|block, when| (block == 0 || when == "after").then_some("build 1"));
    assert_eq!(audit(&flush(), &runs(once_early)).0.len(), 1);

    let upgraded = seen(|block, _| Some(if block == 2 { "build 2" } else { "build 1" }));
    let (found, _) = audit(&flush(), &runs(upgraded));
    assert_eq!((found[0].name.as_str(), found[0].kind), (LIBRARY, Kind::Unexplained));
    assert_eq!(found[0].reason, "differs between blocks of one level");
    let replaced = seen(|_, when| Some(if when == "after" { "build 2" } else { "build 1" }));
    let (found, _) = audit(&flush(), &runs(replaced));
    assert_eq!(found[0].reason, "changed during a run");
}

#[test]
fn a_library_of_some_levels_is_theirs_and_another_build_of_it_is_not() {
    let seen = |level: &str, _: u32, _: &str| {
        let mut all = vec![(FLUSH, by_level(level))];
        if level == "two" {
            all.push((LIBRARY, "build 1".to_owned()));
        }
        all
    };
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!(found.iter().find(|f| f.name == LIBRARY).unwrap().kind, Kind::Consequence);
    let seen =
        |level: &str, _: u32, _: &str| vec![(FLUSH, by_level(level)), (LIBRARY, by_level(level))];
    let (found, _) = audit(&flush(), &runs(seen));
    assert_eq!(found.iter().find(|f| f.name == LIBRARY).unwrap().kind, Kind::Unexplained);
}

#[test]
fn load_explains_nothing_of_the_server() {
    let load = factor("load.connections", json!(8), json!(64));
    let seen = |level: &str, _: u32, _: &str| vec![("server.variable.back_log", by_level(level))];
    assert_eq!(audit(&load, &runs(seen)).0[0].kind, Kind::Unexplained);
}

#[test]
fn a_factor_without_effect_is_found_out() {
    // Set, accepted, and not taken: both levels run with the same value.
    let (found, _) = audit(&flush(), &runs(|_, _, _| vec![(FLUSH, "1".to_owned())]));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, Kind::Unexplained);
    assert!(found[0].reason.starts_with("the factor did not take effect"), "{}", found[0].reason);
    let wanted = values(&[("one", "1, asked for 1"), ("two", "1, asked for 2")]);
    assert_eq!(found[0].values, wanted);
    // A name that the server does not know, let pass by `loose_`.
    let typo = factor("server.config.loose_innodb_flsh", json!(1), json!(2));
    let (found, _) = audit(&typo, &runs(|_, _, _| vec![(FLUSH, "1".to_owned())]));
    assert_eq!(found[0].name, "server.variable.innodb_flsh");
    assert!(found[0].reason.ends_with("the server shows no such variable"));
}

#[test]
fn an_option_that_no_variable_shows_is_not_called_without_effect() {
    let option = factor("server.config.skip-stack-trace", json!(true), json!(false));
    assert_eq!(audit(&option, &runs(|_, _, _| vec![])).0, vec![]);
}

#[test]
fn older_names_and_negations_are_the_same_factor() {
    let isolation = factor(
        "server.config.transaction-isolation",
        json!("READ-COMMITTED"),
        json!("REPEATABLE-READ"),
    );
    let seen = |level: &str, _: u32, _: &str| {
        let value = if level == "one" { "READ-COMMITTED" } else { "REPEATABLE-READ" };
        vec![("server.variable.tx_isolation", value.to_owned())]
    };
    let (found, _) = audit(&isolation, &runs(seen));
    assert_eq!(
        (found.len(), found[0].kind, found[0].reason.as_str()),
        (1, Kind::Factor, "the factor")
    );
}

#[test]
fn what_the_server_made_of_a_value_is_said() {
    let size = factor("server.config.innodb_io_capacity", json!(50), json!("1K"));
    let seen = |level: &str, _: u32, _: &str| {
        let value = if level == "one" { "100" } else { "1024" };
        vec![("server.variable.innodb_io_capacity", value.to_owned())]
    };
    let (found, _) = audit(&size, &runs(seen));
    assert_eq!(found[0].kind, Kind::Factor);
    assert_eq!(found[0].reason, "the factor, as the server took it: one asked for 50");
}

#[test]
fn sweep_points_are_compared_each_for_itself() {
    // The swept variable differs between points and never between levels at one point.
    let seen = |io: &'static str| {
        move |level: &str, _: u32, _: &str| {
            vec![(FLUSH, by_level(level)), ("server.variable.innodb_io_capacity", io.to_owned())]
        }
    };
    let mut all = runs_at("{\"io\":200}", seen("200"));
    all.extend(runs_at("{\"io\":400}", seen("400")));
    let (found, _) = audit(&flush(), &all);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].values, values(&[("one", "1"), ("two", "2")]));
    // One point has a confounder of its own.
    all.retain(|run| run.at != "{\"io\":400}");
    all.extend(runs_at("{\"io\":400}", |level, _, _| {
        vec![(FLUSH, by_level(level)), ("server.variable.innodb_io_capacity", by_level(level))]
    }));
    let (found, _) = audit(&flush(), &all);
    assert_eq!(found[0].kind, Kind::Unexplained);
    let wanted = values(&[("one at {\"io\":400}", "1"), ("two at {\"io\":400}", "2")]);
    assert_eq!(found[0].values, wanted);
}

#[test]
fn further_instances_are_judged_by_the_same_rules() {
    let second = "server.variable.innodb_flush_log_at_trx_commit#1";
    let seen =
        |level: &str, _: u32, _: &str| vec![(FLUSH, by_level(level)), (second, by_level(level))];
    let (found, _) = audit(&flush(), &runs(seen));
    assert!(found.iter().all(|finding| finding.kind == Kind::Factor), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_run_that_was_not_observed_cannot_be_vouched_for() {
    let mut all = runs(|level, _, _| vec![(FLUSH, by_level(level))]);
    all[0].after.clear();
    let (found, _) = audit(&flush(), &all);
    assert_eq!((found[0].name.as_str(), found[0].kind), ("fingerprint", Kind::Unexplained));
    assert_eq!(found[0].values, values(&[("one, block 0", "(absent)")]));
    // And nothing else is made of its absence.
    assert_eq!(found.len(), 2);
}

#[test]
fn compound_factors_explain_each_their_own() {
    let mut both = flush();
    both.paths.push("server.config.sync_binlog".to_owned());
    for values in both.levels.values_mut() {
        values.push(values[0].clone());
    }
    let seen = |level: &str, _: u32, _: &str| {
        vec![(FLUSH, by_level(level)), ("server.variable.sync_binlog", by_level(level))]
    };
    let (found, _) = audit(&both, &runs(seen));
    assert_eq!(found.iter().filter(|finding| finding.kind == Kind::Factor).count(), 2);
}

#[test]
fn no_rule_of_the_table_names_its_cause_wrongly() {
    for rule in DERIVATIONS {
        for name in rule.causes.iter().chain(rule.derived) {
            assert_eq!(*name, name.to_ascii_lowercase(), "fingerprints have small letters");
            assert!(!name.contains('-'));
        }
        assert!(!rule.derived.contains(&"*"), "a rule for everything explains nothing");
    }
}
