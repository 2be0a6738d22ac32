//! Tests that the reference and serde accept the same keys, words and defaults.
//!
//! The reference stands beside the types and could drift from them. serde's own refusals list what
//! it would have accepted, so they are asked.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::quantity::Millis;
use crate::reference::{DESIGN, Key, Kind, PUBLISHED, QUESTION, SETUP, STUDY};
use crate::setup::Setup;

/// A setup with `value` at a dotted path and a workload in any case.
fn setup_with(path: &[&str], value: Value) -> Result<Setup, String> {
    let nested = path.iter().rev().fold(value, |inner, key| json!({ *key: inner }));
    let mut tree = json!({ "workload": { "oltp_read_only": {} } });
    for (key, value) in nested.as_object().unwrap() {
        tree[key] = value.clone();
    }
    serde_json::from_value(tree).map_err(|error| error.to_string())
}

/// The names in "unknown field `x`, expected one of `a`, `b`", without the first.
fn expected_names(error: &str) -> BTreeSet<String> {
    error.split('`').skip(1).step_by(2).skip(1).map(str::to_owned).collect()
}

fn names(keys: &[Key]) -> BTreeSet<String> {
    keys.iter().map(|key| key.name.to_owned()).collect()
}

fn compare(keys: &'static [Key], path: &mut Vec<&'static str>, compared: &mut usize) {
    let mut with_unknown = path.clone();
    with_unknown.push("no_such_key");
    let refusal = setup_with(&with_unknown, json!({})).unwrap_err();
    assert!(refusal.contains("no_such_key"), "{path:?}: {refusal}");
    assert_eq!(expected_names(&refusal), names(keys), "{path:?}: {refusal}");
    for key in keys {
        *compared += 1;
        path.push(key.name);
        match &key.kind {
            Kind::Table(inner) | Kind::Choice(inner) => compare(inner, path, compared),
            Kind::Word(words) => {
                let refusal = setup_with(path, json!("no_such_word")).unwrap_err();
                let words: BTreeSet<String> = words.iter().map(|w| (*w).to_owned()).collect();
                assert_eq!(expected_names(&refusal), words, "{path:?}: {refusal}");
            }
            Kind::Integer(min, max) => {
                assert!(setup_with(path, json!(min)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(max)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!("8")).is_err(), "{path:?}");
            }
            Kind::Whole(min, max) => {
                assert!(setup_with(path, json!(min)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(max)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!("8")).is_err(), "{path:?}");
            }
            Kind::Numbers => {
                assert!(setup_with(path, json!([0, 1])).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(["0"])).is_err(), "{path:?}");
            }
            Kind::Texts => {
                assert!(setup_with(path, json!(["x"])).is_ok(), "{path:?}");
                assert!(setup_with(path, json!([1])).is_err(), "{path:?}");
            }
            Kind::Bytes => {
                assert!(setup_with(path, json!("1G")).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(1)).is_err(), "{path:?}");
            }
            Kind::Cpus => {
                assert!(setup_with(path, json!(1)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!("0-1")).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(0.5)).is_err(), "{path:?}");
            }
            Kind::Duration(min, max) => {
                assert!(setup_with(path, json!(min)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(max)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(8)).is_err(), "{path:?}");
            }
            Kind::Number(min, max) => {
                assert!(setup_with(path, json!(min)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(max)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!("0.5")).is_err(), "{path:?}");
            }
            Kind::Boolean => {
                assert!(setup_with(path, json!(true)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!("true")).is_err(), "{path:?}");
            }
            Kind::Text => assert!(setup_with(path, json!("x")).is_ok(), "{path:?}"),
            Kind::Positive => {
                assert!(setup_with(path, json!(0.5)).is_ok(), "{path:?}");
                assert!(setup_with(path, json!("0.5")).is_err(), "{path:?}");
            }
            Kind::Percent => {
                assert!(setup_with(path, json!("5%")).is_ok(), "{path:?}");
                assert!(setup_with(path, json!(5)).is_err(), "{path:?}");
            }
            Kind::Tables(inner) => {
                let refusal = setup_with(path, json!([{ "no_such_key": 1 }])).unwrap_err();
                assert_eq!(expected_names(&refusal), names(inner), "{path:?}: {refusal}");
                let required = inner.iter().filter(|key| key.default.is_none());
                let least: Value = required.map(|key| (key.name.to_owned(), json!("1s"))).collect();
                assert!(setup_with(path, json!([least])).is_ok(), "{path:?}");
                assert!(setup_with(path, json!([{}])).is_err(), "{path:?}");
            }
            Kind::Variables => {
                let values = json!({ "a": "x", "b": 1, "c": true, "d": 0.5 });
                assert!(setup_with(path, values).is_ok());
                assert!(setup_with(path, json!({ "a": [] })).is_err());
            }
            Kind::Lines => assert!(setup_with(path, json!("x\ny")).is_ok(), "{path:?}"),
            Kind::Params => {
                assert!(setup_with(path, json!({ "a": "x", "b": 1, "d": 0.5 })).is_ok());
                assert!(setup_with(path, json!({ "a": true })).is_err());
            }
            other => panic!("{path:?}: {other:?} has no place in a setup"),
        }
        path.pop();
    }
}

const WORKLOADS: usize = 13;
/// Eleven keys on the sysbench 1.x tables, ten times; what each workload adds; `bulk_insert` and
/// `oltp_legacy`.
const WORKLOAD_KEYS: usize = 10 * 11 + (1 + 9 + 12 + 5 + 1 + 1 + 2 + 2 + 1 + 2) + 1 + 18;
const SCRIPT_KEYS: usize = 3;
/// The placements, and the keys of host, docker, kvm, kubernetes and external with their tables.
const PLACEMENT_KEYS: usize = 5 + (12 + 2) + 8 + (10 + 4) + (11 + 2 + 2 + 3) + 3;
const HOST_KEYS: usize = 8;
/// Those of them that have a value where they are not given.
const PLACEMENT_DEFAULTS: usize = 8 + 5 + (7 + 4) + (4 + 1) + 1 + 2;

#[test]
fn serde_accepts_the_keys_of_the_reference_and_no_others() {
    let refusal = serde_json::from_value::<Setup>(json!({ "no_such_key": 1 })).unwrap_err();
    assert_eq!(expected_names(&refusal.to_string()), names(SETUP));
    let mut compared = 0;
    for key in SETUP {
        match key.kind {
            Kind::Table(keys) | Kind::Choice(keys) => {
                compare(keys, &mut vec![key.name], &mut compared);
            }
            _ => panic!("{} is no table", key.name),
        }
    }
    assert_eq!(
        compared,
        2 + PLACEMENT_KEYS + HOST_KEYS + WORKLOADS + WORKLOAD_KEYS + SCRIPT_KEYS + 14
    );
}

#[test]
fn documented_defaults_are_the_defaults() {
    let mut compared = 0;
    let setup = setup_with(&["placement", "host"], json!({})).unwrap();
    let defaults = serde_json::to_value(setup).unwrap();
    for key in SETUP {
        match key.kind {
            Kind::Table(inner) => compare_defaults(inner, &defaults[key.name], &mut compared),
            Kind::Choice(variants) => {
                for variant in variants {
                    let Kind::Table(inner) = variant.kind else { continue };
                    let setup = setup_with(&[key.name, variant.name], json!({})).unwrap();
                    let defaults = serde_json::to_value(setup).unwrap();
                    compare_defaults(inner, &defaults[key.name][variant.name], &mut compared);
                }
            }
            _ => panic!("{} is no table", key.name),
        }
    }
    // A script has two keys that are nothing where they are not given.
    assert_eq!(compared, 2 + PLACEMENT_DEFAULTS + WORKLOAD_KEYS + SCRIPT_KEYS - 2 + 11);
}

fn compare_defaults(keys: &[Key], values: &Value, compared: &mut usize) {
    for key in keys {
        let text = key.default.unwrap().trim_matches('`');
        let value = &values[key.name];
        match key.kind {
            _ if value.is_null() => continue,
            Kind::Tables(_) | Kind::Texts | Kind::Numbers => {
                assert_eq!((text, value), ("none", &json!([])), "{}", key.name);
            }
            Kind::Table(inner) => {
                compare_defaults(inner, value, compared);
                continue;
            }
            Kind::Whole(..) | Kind::Integer(..) | Kind::Boolean | Kind::Number(..) => {
                assert_eq!(text, value.to_string(), "{}", key.name);
            }
            Kind::Duration(..) => {
                let value: Millis = value.as_str().unwrap().parse().unwrap();
                assert_eq!(text.parse(), Ok(value), "{}", key.name);
            }
            Kind::Variables | Kind::Params => assert_eq!(value, &json!({})),
            _ => assert_eq!(text, value.as_str().unwrap(), "{}", key.name),
        }
        *compared += 1;
    }
}

#[test]
fn a_question_has_every_design_key_and_every_meaning_is_told() {
    assert!(DESIGN.iter().all(|key| QUESTION.contains(key)));
    for keys in [STUDY, DESIGN, QUESTION, PUBLISHED] {
        for key in keys {
            assert!(!key.meaning.is_empty() && !key.meaning.ends_with('.'), "{}", key.name);
        }
        assert_eq!(names(keys).len(), keys.len());
    }
}

#[test]
fn a_figure_has_the_keys_of_the_reference() {
    let refusal = serde_json::from_value::<crate::Published>(json!({ "no_such_key": 1 }));
    assert_eq!(expected_names(&refusal.unwrap_err().to_string()), names(PUBLISHED));
}
