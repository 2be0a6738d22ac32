//! What `ceteris show` prints in each of its formats, against hand-made result files: golden texts
//! for the terminal, the JSON contract against its schema, CSV line by line.
//!
//! `CETERIS_GOLDEN=write cargo test -p ceteris-report --test answers` writes the golden texts anew;
//! read the difference before keeping it.

#![allow(clippy::unwrap_used)]

mod cases;

use cases::{Case, confounded, empty, plain, sweep, undecided};
use ceteris_report as report;
use serde_json::Value;

const COLUMNS: usize = 100;

fn named_cases() -> [(&'static str, Case); 5] {
    [
        ("plain", plain()),
        ("undecided", undecided()),
        ("confounded", confounded()),
        ("sweep", sweep()),
        ("empty", empty()),
    ]
}

fn text(case: &Case, colour: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    report::text(&case.write(folder.path()), colour).unwrap()
}

fn json(case: &Case) -> Value {
    let folder = tempfile::tempdir().unwrap();
    // Through the text, as a reader gets it: NaN would become `null` here and not before.
    let show = report::show(&case.write(folder.path())).unwrap();
    serde_json::from_str(&serde_json::to_string(&show).unwrap()).unwrap()
}

fn schema() -> jsonschema::Validator {
    let schema = include_str!("../../../../docs/show.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::draft202012::new(&schema).unwrap()
}

fn complaints(of: &Value) -> Vec<String> {
    schema().iter_errors(of).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

#[test]
fn texts_are_the_golden_ones() {
    for (name, case) in named_cases() {
        let path = format!("{}/tests/answers/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let printed = text(&case, false);
        if std::env::var_os("CETERIS_GOLDEN").is_some() {
            std::fs::write(&path, &printed).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(printed == golden, "{name}: printed\n{printed}\nbut {path} holds\n{golden}");
    }
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    for (name, case) in named_cases() {
        for line in text(&case, false).lines() {
            let width = line.chars().count();
            assert!(width <= COLUMNS, "{name}: {width} columns: {line}");
            assert_eq!(line.trim_end(), line, "{name}: blanks at the end of a line");
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    for (name, case) in named_cases() {
        let coloured = text(&case, true);
        assert!(coloured.contains("\x1b["), "{name} has no colour");
        let mut bare = String::new();
        let mut parts = coloured.split("\x1b[");
        bare.push_str(parts.next().unwrap());
        for part in parts {
            bare.push_str(part.split_once('m').unwrap().1);
        }
        assert_eq!(bare, text(&case, false), "{name}");
    }
}

#[test]
fn json_keeps_its_contract() {
    for (name, case) in named_cases() {
        let shown = json(&case);
        assert_eq!(complaints(&shown), Vec::<String>::new(), "{name}");
        assert_eq!(shown["schema"], 1);
    }
    assert_eq!(json(&confounded())["questions"][0]["audit"]["ok"], false);
    assert_eq!(json(&sweep())["questions"][0]["effects"][1]["at"]["load.connections"], 512);
}

#[test]
fn the_schema_refuses_what_the_contract_does_not_allow() {
    let good = json(&plain());
    let bent = |pointer: &str, value: Value| {
        let mut shown = good.clone();
        *shown.pointer_mut(pointer).unwrap() = value;
        shown
    };
    for (pointer, value) in [
        ("/schema", Value::from(2)),
        ("/questions/0/verdict", Value::from("better")),
        ("/questions/0/effects/0/ratio", Value::Null),
        ("/questions/0/effects/0/metric", Value::from("qps")),
        ("/questions/0/runs/0/tps", Value::Null),
        ("/questions/0/runs/0/block", Value::from(-1)),
        ("/questions/0/audit/ok", Value::from("yes")),
        ("/questions/0/effects/0", serde_json::json!({})),
    ] {
        assert_ne!(complaints(&bent(pointer, value)), Vec::<String>::new(), "{pointer}");
    }
    for pointer in ["", "/questions/0", "/questions/0/audit", "/questions/0/effects/0"] {
        let mut more = good.clone();
        let object = more.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        object.insert("extra".to_owned(), Value::from(1));
        assert_ne!(complaints(&more), Vec::<String>::new(), "{pointer:?} takes anything");
    }
}

/// A run without a single transaction has no percentile, and one bad figure must not make a whole
/// result unreadable.
#[test]
fn figures_that_are_no_numbers_never_reach_a_reader() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut case = plain();
        let answer = &mut case.answers()[0];
        answer.effects[0].ratio = bad;
        answer.effects[1].low = Some(bad);
        answer.effects[1].high = Some(bad);
        answer.runs[0].tps = bad;
        answer.runs[1].p95_ms = bad;
        let summary = case.runs()[0].summary.as_mut().unwrap();
        summary.tps = bad;
        summary.generator_peak = bad;
        summary.response.p95_ms = bad;
        let shown = json(&case);
        assert_eq!(complaints(&shown), Vec::<String>::new());
        let effects = shown["questions"][0]["effects"].as_array().unwrap();
        assert_eq!(effects.len(), 1, "an effect without a ratio is none");
        assert_eq!(effects[0]["low"], Value::Null);
        let folder = tempfile::tempdir().unwrap();
        let file = case.write(folder.path());
        for printed in [report::text(&file, false).unwrap(), report::csv(&file).unwrap()] {
            for word in ["NaN", "nan", "inf"] {
                assert!(!printed.contains(word), "{word} in\n{printed}");
            }
        }
        report::html(&file).unwrap();
    }
}

#[test]
fn csv_has_one_line_for_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let csv = report::csv(&undecided().write(folder.path())).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("question,level,at,block,started,outcome,tps,p50_ms,p95_ms,"));
    assert!(
        lines[1].starts_with("flush-method,fsync,{},0,2026-01-02T03:04:05Z,finished,500,8,16,18,"),
        "{}",
        lines[1]
    );
    assert!(lines[1].contains(",1205=1;1213=4,"), "{}", lines[1]);
    assert!(lines[2].starts_with("flush-method,O_DIRECT,{},0,"), "{}", lines[2]);
    // Its error holds a comma, quotes and a line end, so it takes two lines of the text.
    assert!(lines[3].starts_with("flush-method,fsync,{},1,2026-01-02T03:04:05Z,failed,,,"));
    assert!(csv.ends_with(",\"the server said, \"\"no\"\"\nand left\"\n"), "{csv}");
    let sweep = report::csv(&sweep().write(tempfile::tempdir().unwrap().path())).unwrap();
    assert!(sweep.contains(",\"{\"\"load.connections\"\":8}\",0,"), "{sweep}");
}

/// The words of DESIGN section 1: levels are compared with a baseline, nothing is a test or a
/// variant.
#[test]
fn verdicts_stand_in_the_text_as_words() {
    let printed = text(&confounded(), false);
    assert!(printed.contains("confounded"));
    for other in ["higher", "lower", "equivalent", "undecided"] {
        assert!(!printed.contains(other), "a confounded answer says {other}:\n{printed}");
    }
    assert!(text(&empty(), false).contains("no run has finished yet"));
    assert!(text(&undecided(), false).contains("1 run failed"));
}
