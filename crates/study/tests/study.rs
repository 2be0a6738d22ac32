//! Studies that are right: what they mean, what overrides do to them, and their plans.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use ceteris_study::{
    ConfigValue, Distribution, Millis, Percent, Plan, Study, StudyError, Workload,
};
use proptest::prelude::*;
use serde_json::json;

const FIRST: &str = include_str!("../../../studies/first-question.toml");
const EVERYTHING: &str = include_str!("../../../fuzz/corpus/study/seed-everything.toml");

fn parse(text: &str, overrides: &[&str]) -> Study {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Study::parse("study.toml", text, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn override_error(overrides: &[&str]) -> StudyError {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Study::parse("study.toml", FIRST, &overrides).unwrap_err()
}

#[test]
fn the_first_question() {
    let study = parse(FIRST, &[]);
    assert_eq!(study.title, "What does full durability cost?");
    assert_eq!(study.text, FIRST);
    assert_eq!(study.baseline.server.package, "installed");
    let Workload::OltpWriteOnly(oltp) = &study.baseline.workload else { panic!() };
    assert_eq!((oltp.tables, oltp.rows), (4, 50_000));
    assert_eq!(study.baseline.load.connections, 8);

    let [durability, control] = &study.questions[..] else { panic!() };
    assert_eq!(durability.factor.paths, ["server.config.innodb_flush_log_at_trx_commit"]);
    assert_eq!(durability.levels[0].name, "2");
    assert_eq!(durability.levels[1].values, [json!(1)]);
    assert_eq!((durability.blocks, durability.max_blocks), (6, 6));
    assert_eq!(durability.margin, Percent(0.01));
    assert_eq!(control.levels[0].values, control.levels[1].values);

    let plan = study.plan();
    let flush = |cell: usize| {
        plan.questions[0].cells[cell].setup.server.config["innodb_flush_log_at_trx_commit"].clone()
    };
    assert_eq!((flush(0), flush(1)), (ConfigValue::Integer(2), ConfigValue::Integer(1)));
    assert_eq!(plan.questions[1].cells[0].setup, plan.questions[1].cells[1].setup);

    // `make demo` has four minutes; loading and building the answer need some of them.
    let estimate = plan.estimate(Duration::from_secs(2));
    assert_eq!((estimate.runs, estimate.max_runs), (24, 24));
    assert_eq!(estimate.time, Duration::from_secs(192));
}

#[test]
fn every_key_once() {
    let study = parse(EVERYTHING, &[]);
    assert_eq!(study.seed, 42);
    let config = &study.baseline.server.config;
    assert_eq!(config["innodb_flush_method"], ConfigValue::Text("O_DIRECT".to_owned()));
    assert_eq!(config["validate_password.policy"], ConfigValue::Text("LOW".to_owned()));
    assert_eq!(config["innodb_stats_on_metadata"], ConfigValue::Boolean(false));
    assert_eq!(config["long_query_time"], ConfigValue::Float(0.5));
    let Workload::OltpReadWrite(oltp) = &study.baseline.workload else { panic!() };
    assert_eq!(oltp.distribution, Distribution::Special);
    assert_eq!(study.baseline.load.warmup, Millis(1_500));
    assert_eq!(study.baseline.load.threads, Some(2));

    let [workload, bundle] = &study.questions[..] else { panic!() };
    assert_eq!((workload.blocks, workload.max_blocks, workload.confidence), (3, 12, 0.99));
    assert_eq!((workload.margin, workload.precision), (Percent(0.005), Percent(0.01)));
    assert_eq!(workload.given["server.config.innodb_flush_method"], "fsync");
    assert!(bundle.factor.compound);
    // In the order written, not in the order of the alphabet: the first is the baseline.
    let names: Vec<&str> = bundle.levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["old", "new"]);

    let plan = study.plan();
    let cells = &plan.questions[0].cells;
    let seen: Vec<(&str, u64, &str, u32, bool)> = cells
        .iter()
        .map(|cell| {
            (
                cell.level.as_str(),
                cell.at["load.connections"].as_u64().unwrap(),
                cell.at["load.connect"].as_str().unwrap(),
                cell.setup.load.connections,
                matches!(&cell.setup.workload, Workload::OltpReadOnly(oltp) if oltp.rows == 1_000),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("reads", 8, "socket", 8, true),
            ("writes", 8, "socket", 8, false),
            ("reads", 8, "tcp", 8, true),
            ("writes", 8, "tcp", 8, false),
            ("reads", 64, "socket", 64, true),
            ("writes", 64, "socket", 64, false),
            ("reads", 64, "tcp", 64, true),
            ("writes", 64, "tcp", 64, false),
        ]
    );
    for cell in cells {
        let method = &cell.setup.server.config["innodb_flush_method"];
        assert_eq!(method, &ConfigValue::Text("fsync".to_owned()));
    }
    let new = &plan.questions[1].cells[1].setup.server;
    assert_eq!(new.package, "mysql-8.0.12");
    assert_eq!(new.config["sql_mode"], ConfigValue::Text("ANSI".to_owned()));
    assert_eq!(study.published[0].value, 12.5);
}

#[test]
fn blocks_and_their_limit() {
    let amount = |design: &str| {
        let question = &parse(&FIRST.replace("blocks = 6", design), &[]).questions[0];
        (question.blocks, question.max_blocks, question.precision)
    };
    assert_eq!(amount("blocks = 3"), (3, 3, Percent(0.01)));
    assert_eq!(amount("blocks = 3\nprecision = \"2%\""), (3, 12, Percent(0.02)));
    assert_eq!(amount("blocks = 3\nprecision = \"2%\"\nmax_blocks = 5"), (3, 5, Percent(0.02)));
    assert_eq!(amount("max_blocks = 9"), (6, 9, Percent(0.01)));
}

#[test]
fn overrides_replace_the_baseline() {
    let overrides = [
        "load.measure=10s",
        "server.config.innodb-buffer-pool-size = 1G",
        "server.config.sql_mode=",
        "workload={ oltp_read_only = { rows = 10 } }",
        "design.blocks=3",
        "load.connections=0x10",
        "seed=7",
    ];
    let study = parse(FIRST, &overrides);
    assert_eq!(study.baseline.load.measure, Millis::from_secs(10));
    assert_eq!(study.baseline.load.connections, 16);
    let config = &study.baseline.server.config;
    assert_eq!(config["innodb_buffer_pool_size"], ConfigValue::Text("1G".to_owned()));
    assert_eq!(config["sql_mode"], ConfigValue::Text(String::new()));
    assert!(matches!(&study.baseline.workload, Workload::OltpReadOnly(oltp) if oltp.rows == 10));
    assert_eq!((study.questions[0].blocks, study.questions[0].max_blocks), (3, 3));
    assert_eq!(study.seed, 7);
    assert_eq!(study.overrides, overrides);
    for cell in &study.plan().questions[1].cells {
        assert_eq!(cell.setup.load, study.baseline.load);
    }
    // The last one wins, as in every command line.
    assert_eq!(parse(FIRST, &["seed=1", "seed=2"]).seed, 2);
    // What the file lacks can be given.
    let untitled = FIRST.replace("title = ", "# ");
    assert_eq!(parse(&untitled, &["title=two words"]).title, "two words");
}

#[test]
fn a_wrong_override_is_told_in_its_own_text() {
    for (text, column, width, message) in [
        ("load.measure", 1, 12, "is not path=value"),
        ("load.mesure=10s", 1, 11, "does not exist"),
        ("load.measure=10", 14, 2, "expected `load.measure` to be a duration"),
        ("load.measure= 10 sec", 15, 6, "`sec` is not a unit"),
        ("load.connections=many", 18, 4, "expected `load.connections` to be a whole number"),
        ("title=\"x", 9, 1, "invalid basic string"),
        ("workload={ oltp_read_only = { row = 1 } }", 31, 3, "unknown key `row`"),
        ("workload.oltp_read_only.rows=5", 1, 28, "the workload is `oltp_write_only`"),
        ("question=[]", 1, 8, "`question` cannot be overridden"),
        ("question.name=x", 1, 13, "does not exist"),
        ("server.config.port=3306", 1, 18, "cannot be set in a study"),
        ("placement.kmv={}", 1, 13, "does not exist"),
        ("server.config.innodb_flush_log_at_trx_commit=0", 1, 44, "has no effect"),
        ("server.config.max_connections=4", 15, 1, "8 connections cannot reach"),
        ("=3", 1, 1, "does not exist"),
    ] {
        let error = override_error(&[text]);
        assert!(error.message.contains(message), "{text}\n{error}");
        if error.source_name == "--set" {
            assert_eq!((error.line, error.column, error.width), (1, column, width), "{error}");
            assert_eq!(error.line_text, text);
        } else {
            // The connections of the file meet the limit of the override.
            assert_eq!((error.source_name.as_str(), error.column), ("study.toml", column));
        }
    }
    let error = override_error(&["load.measure=10s", "load.warmup=5"]);
    assert_eq!((error.line_text.as_str(), error.column), ("load.warmup=5", 13));
}

#[test]
fn an_override_of_a_design_that_every_question_sets_has_no_effect() {
    let own = FIRST.replace("[[question]]", "[[question]]\nblocks = 4");
    let error = Study::parse("study.toml", &own, &["design.blocks=3".to_owned()]).unwrap_err();
    assert!(error.message.contains("has no effect"), "{error}");
    let one = FIRST.replacen("[[question]]", "[[question]]\nblocks = 4", 1);
    assert_eq!(parse(&one, &["design.blocks=3"]).questions[1].blocks, 3);
}

#[test]
fn the_order_of_runs_never_changes() {
    // If this fails, studies that were begun with an earlier version can no longer be resumed.
    let text = EVERYTHING.replace("seed = 42", "seed = 1");
    let plan = parse(&text, &[]).plan();
    let orders: Vec<Vec<usize>> = (0..4).map(|block| plan.order(0, block)).collect();
    assert_eq!(
        orders,
        [
            [7, 3, 0, 1, 4, 6, 2, 5],
            [2, 4, 1, 6, 0, 7, 3, 5],
            [1, 2, 6, 7, 3, 4, 5, 0],
            [7, 5, 0, 6, 3, 1, 2, 4],
        ]
    );
    assert_eq!(parse(FIRST, &[]).seed & !((1 << 53) - 1), 0);
    assert_eq!(parse(DERIVED, &[]).seed, 2_078_794_898_265_859);
    assert_eq!(parse(DERIVED, &["load.connect=tcp"]).seed, 6_940_333_736_233_171);
}

const DERIVED: &str = "title = 'x'\n[workload.oltp_read_only]\n[[question]]\nname = 'q'\n\
                       vary = 'load.connections'\nlevels = [1, 2]\n";

#[test]
fn a_plan_survives_json_and_keeps_its_order() {
    let plan = parse(EVERYTHING, &[]).plan();
    let text = serde_json::to_string(&plan).unwrap();
    let read: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(read, plan);
    assert_eq!(read.order(0, 5), plan.order(0, 5));
    assert!(plan.order(99, 0).is_empty());
}

#[test]
fn seeds_questions_and_blocks_have_orders_of_their_own() {
    let plan = parse(EVERYTHING, &["seed=1"]).plan();
    let other = parse(EVERYTHING, &["seed=2"]).plan();
    let orders = |plan: &Plan| (0..20).map(|block| plan.order(0, block)).collect::<Vec<_>>();
    assert_ne!(orders(&plan), orders(&other));
    let distinct: std::collections::BTreeSet<_> = orders(&plan).into_iter().collect();
    assert!(distinct.len() > 15, "8 cells in 20 blocks should hardly repeat an order");
    // Each of two levels comes first about as often: 200 fair coins stay within 70 and 130.
    let first = (0..200).filter(|block| plan.order(1, *block)[0] == 0).count();
    assert!((70..=130).contains(&first), "{first}");
}

proptest! {
    #[test]
    fn an_order_is_a_permutation(seed in 0_u64..1 << 53, block in any::<u32>()) {
        let plan = Plan { seed, ..parse(EVERYTHING, &[]).plan() };
        let mut order = plan.order(0, block);
        order.sort_unstable();
        prop_assert!(order.into_iter().eq(0..8));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "(?s).{0,200}") {
        let _ = Study::parse("x", &text, &[]).map_err(|error| error.to_string());
        let _ = Study::parse("x", FIRST, &[text]).map_err(|error| error.to_string());
    }

    #[test]
    fn no_damage_to_a_study_makes_the_parser_panic(
        cut in 0..EVERYTHING.len(),
        end in 0..EVERYTHING.len(),
        put in "[\\PC\\n]{0,8}",
    ) {
        let (start, end) = (cut.min(end), cut.max(end).min(cut.min(end) + 40));
        let text = format!("{}{put}{}", &EVERYTHING[..start], &EVERYTHING[end..]);
        match Study::parse("x", &text, &[]) {
            Ok(study) => prop_assert_eq!(
                study.plan(),
                Study::parse("x", &text, &[]).unwrap().plan()
            ),
            Err(error) => {
                let line = text.split('\n').nth(error.line - 1).unwrap();
                prop_assert_eq!(line, &error.line_text);
                prop_assert!(error.column <= line.chars().count() + 1, "{}", error);
                prop_assert!(!error.message.is_empty());
            }
        }
    }
}
