//! A workload from options as a command line gives them: `rows=1000`, on top of the defaults.
//!
//! The same reference, check and deserialisation as for the study file, so that a knob which is
//! added there is an option here at once, with the same bounds and hints. Only the spelling is
//! wider: `on` and `off` for booleans, `-` for `_`, and no quotes.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::StudyError;
use crate::path::{Path, resolve};
use crate::reference::{Key, Kind, SETUP};
use crate::setup::Workload;
use crate::source::{Fault, Sources};
use crate::suggest::allowed;
use crate::tree::{self, Node};
use crate::{cells, check};

/// A knob that at least one workload has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadOption {
    /// As in the study file; a dot stands between a table and its key.
    pub name: String,
    /// What its value may be, for people.
    pub value: String,
    /// The words that it may be, where it is one of some words.
    pub words: &'static [&'static str],
    /// It is `true` or `false`.
    pub boolean: bool,
    /// What holds where it is not given, for people.
    pub default: &'static str,
    /// One sentence without a full stop.
    pub meaning: &'static str,
    /// The workloads that have it.
    pub workloads: Vec<&'static str>,
}

impl Workload {
    /// The names of all workloads, each with its meaning.
    pub fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
        variants().map(|key| (key.name, key.meaning))
    }

    /// Every knob of every workload; those of the same name once, as the first workload has it.
    pub fn options() -> Vec<WorkloadOption> {
        let mut options = Vec::new();
        for variant in variants() {
            collect(variant.name, "", keys_of(variant), &mut options);
        }
        options
    }

    /// The workload `name` with `options` (key and value) over its defaults; of several with the
    /// same key the last holds.
    ///
    /// # Errors
    /// The first thing that is wrong, with the names or values that are allowed.
    pub fn from_options(name: &str, options: &[(String, String)]) -> Result<Workload, StudyError> {
        let texts: Vec<String> =
            options.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut sources = Sources::new();
        let base = sources.add("workload", name);
        let parts: Vec<(usize, &str)> =
            texts.iter().map(|text| (sources.add("option", text), text.as_str())).collect();
        read(name, base..base + name.len(), &parts).map_err(|fault| sources.error(fault))
    }
}

fn read(name: &str, span: Range<usize>, options: &[(usize, &str)]) -> Result<Workload, Fault> {
    let name = name.replace('-', "_");
    let Some(variant) = variants().find(|key| key.name == name) else {
        let names = variants().map(|key| key.name).collect::<Vec<_>>();
        let names = names.iter().copied();
        let fault = Fault::new(span, format!("there is no workload `{name}`"));
        return Err(
            fault.hint(format!("{}; or the path of a script, `NAME.toml`", allowed(&name, names)))
        );
    };
    let mut knobs = DeTable::new();
    for (base, text) in options {
        let (path, node) = option(variant, *base, text)?;
        check::value(path.kind, &node, &check::joined(variant.name, &path.text))?;
        tree::insert(&mut knobs, &path.segments, path.span.clone(), node)?;
    }
    let node = |table| Spanned::new(span.clone(), DeValue::Table(table));
    let table = |key: &'static str, value| {
        let mut table = DeTable::new();
        table.insert(Spanned::new(span.clone(), key.into()), value);
        table
    };
    let workload = node(table(variant.name, node(knobs)));
    for key in SETUP.iter().filter(|key| key.name == "workload") {
        check::value(&key.kind, &workload, "workload")?;
    }
    Ok(cells::setup(table("workload", workload), span.clone())?.workload)
}

fn option<'t>(
    variant: &'static Key,
    base: usize,
    text: &'t str,
) -> Result<(Path, Node<'t>), Fault> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let at = base..base + key.len();
    let path = resolve(keys_of(variant), &key.replace('-', "_"), at).map_err(|mut fault| {
        fault.message = format!("the workload `{}` has no option `{key}`", variant.name);
        fault
    })?;
    let begin = base + key.len() + 1;
    let spanned = |value| Spanned::new(begin..base + text.len(), value);
    let word = || spanned(DeValue::String(value.into()));
    let node = match path.kind {
        Kind::Boolean => match value {
            "on" | "true" | "1" => spanned(DeValue::Boolean(true)),
            "off" | "false" | "0" => spanned(DeValue::Boolean(false)),
            _ => word(),
        },
        Kind::Text | Kind::Word(_) | Kind::Duration(..) | Kind::Percent => word(),
        _ => DeValue::parse(value).map_or_else(|_| word(), |node| tree::shifted(node, begin)),
    };
    Ok((path, node))
}

/// All but scripts, which have options of their own.
fn variants() -> impl Iterator<Item = &'static Key> {
    let workload = SETUP.iter().find(|key| key.name == "workload");
    let variants: &[Key] = match workload.map(|key| &key.kind) {
        Some(Kind::Choice(variants)) => variants,
        _ => &[],
    };
    variants.iter().filter(|key| key.name != "script")
}

fn keys_of(variant: &'static Key) -> &'static [Key] {
    match variant.kind {
        Kind::Table(keys) => keys,
        _ => &[],
    }
}

fn collect(
    workload: &'static str,
    path: &str,
    keys: &'static [Key],
    options: &mut Vec<WorkloadOption>,
) {
    for key in keys {
        let name = check::joined(path, key.name);
        if let Kind::Table(inner) = key.kind {
            collect(workload, &name, inner, options);
            continue;
        }
        let value = key.kind.describe();
        let known = options.iter_mut().find(|option| option.name == name);
        if let Some(known) = known {
            known.workloads.push(workload);
            if Some(known.default) != key.default {
                known.default = "by workload";
            }
            continue;
        }
        options.push(WorkloadOption {
            name,
            value,
            words: if let Kind::Word(words) = key.kind { words } else { &[] },
            boolean: key.kind == Kind::Boolean,
            default: key.default.unwrap_or("required"),
            meaning: key.meaning,
            workloads: vec![workload],
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::setup::{Distribution, Oltp, OltpReadOnly};

    fn read(name: &str, options: &[(&str, &str)]) -> Result<Workload, StudyError> {
        let options: Vec<_> =
            options.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Workload::from_options(name, &options)
    }

    #[test]
    fn options_replace_defaults_and_the_last_one_holds() {
        let given =
            [("tables", "3"), ("range-size", "7"), ("distribution", "pareto"), ("tables", "4")];
        let oltp = OltpReadOnly {
            tables: 4,
            range_size: 7,
            distribution: Distribution::Pareto,
            ..OltpReadOnly::default()
        };
        assert_eq!(read("oltp_read_only", &given), Ok(Workload::OltpReadOnly(oltp.clone())));
        assert_eq!(read("oltp-read-only", &given), Ok(Workload::OltpReadOnly(oltp)));
        let plain = Workload::OltpPointSelect(Oltp::default());
        assert_eq!(read("oltp_point_select", &[]), Ok(plain));
    }

    #[test]
    fn what_is_wrong_is_told_with_what_would_be_right() {
        for (name, options, message, hint) in [
            ("oltp_red_only", &[][..], "no workload `oltp_red_only`", "mean `oltp_read_only`?"),
            ("oltp_read_only", &[("rowz", "1")], "no option `rowz`", "`rows`? allowed: tables, "),
            ("oltp_read_only", &[("rows", "many")], "to be a whole number", "from 1 to"),
            ("oltp_read_only", &[("rows", "0")], "must be a whole number from 1", ""),
            ("oltp_read_only", &[("distribution", "flat")], "not a value", "uniform, special"),
            ("oltp_read_only", &[("rows.x", "1")], "no option `rows.x`", ""),
        ] {
            let error = read(name, options).unwrap_err();
            assert!(error.message.contains(message), "{}", error.message);
            let given = error.hint.clone().unwrap_or_default();
            assert!(given.contains(hint), "{error}");
        }
        let error = read("oltp_read_only", &[("tables", "2"), ("rows", "0")]).unwrap_err();
        assert_eq!((error.line_text.as_str(), error.column, error.width), ("rows=0", 6, 1));
    }

    #[test]
    fn every_option_of_every_workload_takes_what_its_kind_allows() {
        assert!(Workload::known().count() >= 4);
        let rows = Workload::options().into_iter().find(|option| option.name == "rows").unwrap();
        assert!(rows.workloads.contains(&"oltp_read_only"));
        for option in Workload::options() {
            for word in option.words {
                for workload in &option.workloads {
                    assert!(read(workload, &[(&option.name, word)]).is_ok(), "{option:?}");
                }
            }
            for workload in option.workloads.iter().filter(|_| option.boolean) {
                assert!(read(workload, &[(&option.name, "off")]).is_ok(), "{option:?}");
            }
        }
    }
}
