//! The audit: what differed between the cells of a question beyond its factor.
//!
//! Called by the conductor before it gives a verdict. Three comparisons, each strict: a run's
//! conditions before and after it; the blocks of one level at one sweep point; the levels at one
//! sweep point. Whatever differs is the factor, follows from it by a rule that is written down in
//! `consequences`, or is unexplained and confounds the question.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::Fingerprint;
use crate::consequences::{DERIVATIONS, MOVES_BY_ITSELF, matches, of_machine, of_placement};
use crate::values::{is_invisible, same_value, variables_of, written};

/// What a name that is missing on one side is said to be.
const ABSENT: &str = "(absent)";

/// One run's fingerprints, for the audit.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Level of the run.
    pub level: String,
    /// Sweep point, canonical JSON; only runs at the same point are compared between levels.
    pub at: String,
    /// Block.
    pub block: u32,
    /// Before the run.
    pub before: Fingerprint,
    /// After the run.
    pub after: Fingerprint,
}

/// What was meant to differ.
#[derive(Clone, Debug, Default)]
pub struct Factor {
    /// The varied paths of the setup tree (`server.config.innodb_flush_method`).
    pub paths: Vec<String>,
    /// Level name to its values, one for each of `paths`. A level that is missing here is not
    /// checked for having taken effect.
    pub levels: BTreeMap<String, Vec<Value>>,
}

/// Where a difference belongs. In order of gravity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It is the factor.
    Factor,
    /// It follows from the factor, or moves by itself; known and listed.
    Consequence,
    /// Neither.
    Unexplained,
}

/// One name whose value was not the same everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Dotted name.
    pub name: String,
    /// Who (`level`, or `level, block 3, after`, with ` at POINT` behind it where sweep points
    /// disagree) saw what. A deviating run stands beside its level's usual value.
    pub values: BTreeMap<String, String>,
    /// Where it belongs.
    pub kind: Kind,
    /// Why.
    pub reason: String,
}

/// Compares the runs of one question. Returns the findings, gravest first, and how many names
/// were compared.
pub fn audit(factor: &Factor, runs: &[Compared]) -> (Vec<Finding>, u64) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for run in runs {
        names.extend(run.before.keys().chain(run.after.keys()).map(String::as_str));
    }
    let mut cells: BTreeMap<&str, BTreeMap<&str, Vec<&Compared>>> = BTreeMap::new();
    for run in runs {
        cells.entry(&run.at).or_default().entry(&run.level).or_default().push(run);
    }

    let mut findings = Vec::new();
    for name in &names {
        let mut at_points = Vec::new();
        for (point, levels) in &cells {
            if let Some(finding) = compare(factor, name, levels) {
                at_points.push((*point, finding));
            }
        }
        findings.extend(merge(at_points, cells.len()));
    }
    for (point, levels) in &cells {
        findings.extend(no_effect(factor, levels, point, cells.len()));
    }
    findings.extend(unobserved(runs));
    findings.sort_by(|a, b| b.kind.cmp(&a.kind).then_with(|| a.name.cmp(&b.name)));
    findings.dedup();
    (findings, names.len() as u64)
}

/// What one level saw of one name.
struct Seen<'a> {
    /// The only value, or the most frequent one.
    usual: &'a str,
    /// Runs that saw another: who, what.
    others: Vec<(String, &'a str)>,
    /// Some run saw one value before and another after it.
    moved: bool,
}

fn value<'a>(fingerprint: &'a Fingerprint, name: &str) -> &'a str {
    fingerprint.get(name).map_or(ABSENT, String::as_str)
}

fn see<'a>(level: &str, runs: &[&'a Compared], name: &str) -> Seen<'a> {
    let moments = |run: &&'a Compared| {
        let (before, after) = (value(&run.before, name), value(&run.after, name));
        // A server maps some libraries only when it first needs them (name service, plug-ins), which
        // is no change of its conditions; a replaced one shows another value, not none.
        match (before, after) {
            (ABSENT, seen) | (seen, ABSENT) if is_library(name) => (run.block, seen, seen),
            _ => (run.block, before, after),
        }
    };
    let seen: Vec<(u32, &str, &str)> =
        runs.iter().copied().filter(|run| observed(run)).map(|run| moments(&run)).collect();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, before, after) in &seen {
        *counts.entry(before).or_default() += 1;
        *counts.entry(after).or_default() += 1;
    }
    // What a run began with wins a tie: what moved is then shown as `after`.
    let first = seen.first().map_or(ABSENT, |(_, before, _)| before);
    let most = counts.values().copied().max().unwrap_or(0);
    let usual = match counts.get(first) {
        Some(count) if *count == most => first,
        _ => counts.iter().find(|(_, count)| **count == most).map_or(first, |(value, _)| value),
    };
    let mut others = Vec::new();
    for (block, before, after) in &seen {
        let deviates = |value: &str| value != usual;
        if before == after && deviates(before) {
            others.push((format!("{level}, block {block}"), *before));
            continue;
        }
        for (when, value) in [("before", before), ("after", after)] {
            if deviates(value) {
                others.push((format!("{level}, block {block}, {when}"), *value));
            }
        }
    }
    let moved = seen.iter().any(|(_, before, after)| before != after);
    // Every run alike: say it once.
    let all_moved = seen.len() > 1
        && others.len() == seen.len()
        && seen.iter().all(|(_, before, after)| *before == usual && *after == others[0].1);
    if all_moved {
        others = vec![(format!("{level}, after every run"), others[0].1)];
    }
    Seen { usual, others, moved }
}

/// One name at one sweep point; `None` when it was the same everywhere.
fn compare(
    factor: &Factor,
    name: &str,
    levels: &BTreeMap<&str, Vec<&Compared>>,
) -> Option<Finding> {
    let seen: BTreeMap<&str, Seen> =
        levels.iter().map(|(level, runs)| (*level, see(level, runs, name))).collect();
    let unstable = seen.values().any(|seen| !seen.others.is_empty());
    let mut distinct: Vec<&str> = seen.values().map(|seen| seen.usual).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if !unstable && distinct.len() < 2 {
        return None;
    }
    let mut values = BTreeMap::new();
    for (level, seen) in &seen {
        values.insert((*level).to_owned(), seen.usual.to_owned());
        values.extend(seen.others.iter().map(|(who, value)| (who.clone(), (*value).to_owned())));
    }
    let (kind, reason) = if unstable {
        let moves = MOVES_BY_ITSELF.iter().find(|(pattern, _)| matches(pattern, plain(name)));
        if let Some((_, reason)) = moves {
            (Kind::Consequence, (*reason).to_owned())
        } else if seen.values().any(|seen| seen.moved) {
            (Kind::Unexplained, "changed during a run".to_owned())
        } else {
            (Kind::Unexplained, "differs between blocks of one level".to_owned())
        }
    } else {
        let usual: BTreeMap<&str, &str> =
            seen.iter().map(|(level, seen)| (*level, seen.usual)).collect();
        classify(factor, plain(name), &usual)
    };
    Some(Finding { name: name.to_owned(), values, kind, reason })
}

/// Whether the value describes a file that a server process has mapped as code.
fn is_library(name: &str) -> bool {
    name.starts_with("host.process.library.")
}

/// A name without the ordinal of a further instance (`server.version#1`).
fn plain(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((front, ordinal)) if ordinal.parse::<u32>().is_ok() => front,
        _ => name,
    }
}

/// Where a difference between levels belongs, when each level agrees with itself.
fn classify(factor: &Factor, name: &str, values: &BTreeMap<&str, &str>) -> (Kind, String) {
    for (index, path) in factor.paths.iter().enumerate() {
        if let Some(found) = classify_by_path(factor, index, path, name, values) {
            return found;
        }
    }
    // The same file wherever it is mapped at all: the server decided to load it.
    let mapped: BTreeSet<&str> =
        values.values().copied().filter(|value| *value != ABSENT).collect();
    if is_library(name) && mapped.len() == 1 {
        return (Kind::Consequence, "the server loads this library in some levels only".to_owned());
    }
    (Kind::Unexplained, "neither the factor nor a known consequence of it".to_owned())
}

fn classify_by_path(
    factor: &Factor,
    index: usize,
    path: &str,
    name: &str,
    values: &BTreeMap<&str, &str>,
) -> Option<(Kind, String)> {
    let consequence = |reason: &str| Some((Kind::Consequence, reason.to_owned()));
    let of_server = name.starts_with("server.");
    let of_package = name.starts_with("place.package");
    let of_dataset = name.starts_with("place.dataset");
    if let Some(option) = path.strip_prefix("server.config.") {
        let variables = variables_of(option);
        if let Some(variable) = name.strip_prefix("server.variable.")
            && variables.iter().any(|own| own == variable)
        {
            return Some(classify_own_variable(factor, index, values));
        }
        return DERIVATIONS
            .iter()
            .filter(|rule| variables.iter().any(|own| rule.causes.contains(&own.as_str())))
            .find(|rule| rule.derived.iter().any(|pattern| matches(pattern, name)))
            .and_then(|rule| consequence(rule.reason));
    }
    // The whole server, or its whole configuration, as one factor.
    let of_server_config = of_server || of_dataset || name.starts_with("host.process.limit.");
    match path {
        "server" | "server.package" if of_package => Some((Kind::Factor, "the factor".to_owned())),
        "server" | "server.package" if of_server => consequence("another server program"),
        "server" | "server.package" if of_dataset => {
            consequence("each server program has loaded its own dataset of the same rows")
        }
        // A server raises its own limits (open files, core, locked memory) by its own rules.
        "server" | "server.package" if name.starts_with("host.process.limit.") => {
            consequence("another server program asks the kernel for other limits")
        }
        // MariaDB switches huge pages off for itself (PR_SET_THP_DISABLE), MySQL does not.
        "server" | "server.package" if name == "host.process.huge_pages_enabled" => {
            consequence("another server program asks the kernel for other memory pages")
        }
        "server" | "server.package" if is_library(name) => {
            consequence("another server program is linked with other libraries")
        }
        "server" | "server.package" | "server.config" if name == "allowance.buffer_pool_bytes" => {
            consequence("another configuration has another buffer pool")
        }
        "server.config" if of_server_config => consequence("another configuration"),
        _ if path == "placement" || path.starts_with("placement.") => {
            if is_library(name) {
                return consequence("another placement has its own libraries");
            }
            of_placement(path, name)
        }
        _ if path == "host" || path.starts_with("host.") => of_machine(path, name),
        _ if path == "workload" || path.starts_with("workload.") => {
            of_dataset.then(|| (Kind::Consequence, "another workload has other data".to_owned()))
        }
        "load.threads" if name == "generator.threads" => {
            Some((Kind::Factor, "the factor".to_owned()))
        }
        // `load` changes nothing of the server's conditions, only the generator's.
        _ if (path == "load" || path.starts_with("load.")) && name.starts_with("generator.") => {
            consequence("the worker chose its threads for this load")
        }
        _ => None,
    }
}

/// The factor's own variable differs. Rightly so?
fn classify_own_variable(
    factor: &Factor,
    index: usize,
    values: &BTreeMap<&str, &str>,
) -> (Kind, String) {
    let asked = |level: &str| factor.levels.get(level)?.get(index).map(written);
    let levels: Vec<&str> = values.keys().copied().collect();
    for (i, a) in levels.iter().enumerate() {
        for b in &levels[i + 1..] {
            if let (Some(asked_a), Some(asked_b)) = (asked(a), asked(b))
                && same_value(&asked_a, &asked_b)
                && !same_value(values[a], values[b])
            {
                let reason = format!("{a} and {b} ask for the same value, yet the server differs");
                return (Kind::Unexplained, reason);
            }
        }
    }
    let adjusted: Vec<String> = values
        .iter()
        .filter_map(|(level, used)| {
            let asked = asked(level)?;
            (!same_value(&asked, used)).then(|| format!("{level} asked for {asked}"))
        })
        .collect();
    if adjusted.is_empty() {
        (Kind::Factor, "the factor".to_owned())
    } else {
        (Kind::Factor, format!("the factor, as the server took it: {}", adjusted.join(", ")))
    }
}

/// Settings that differ between levels as asked and not as seen.
fn no_effect(
    factor: &Factor,
    levels: &BTreeMap<&str, Vec<&Compared>>,
    point: &str,
    points: usize,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, path) in factor.paths.iter().enumerate() {
        let Some(option) = path.strip_prefix("server.config.") else { continue };
        let asked: BTreeMap<&str, String> = levels
            .keys()
            .filter_map(|level| Some((*level, factor.levels.get(*level)?.get(index).map(written)?)))
            .collect();
        if is_invisible(option) {
            continue;
        }
        let names: Vec<String> =
            variables_of(option).iter().map(|own| format!("server.variable.{own}")).collect();
        let shown = |level: &str, name: &str| {
            levels[level].iter().find_map(|run| run.before.get(name)).map_or(ABSENT, String::as_str)
        };
        // The first of its names that any level shows.
        let name = names
            .iter()
            .find(|name| asked.keys().any(|level| shown(level, name) != ABSENT))
            .unwrap_or(&names[0]);
        let without_effect = asked.iter().any(|(a, asked_a)| {
            asked.iter().any(|(b, asked_b)| {
                a < b && !same_value(asked_a, asked_b) && shown(a, name) == shown(b, name)
            })
        });
        if without_effect {
            let suffix = suffix(point, points);
            let values = asked
                .iter()
                .map(|(level, asked)| {
                    let used = shown(level, name);
                    (format!("{level}{suffix}"), format!("{used}, asked for {asked}"))
                })
                .collect();
            let reason = if names.iter().all(|n| asked.keys().all(|l| shown(l, n) == ABSENT)) {
                "the factor did not take effect: the server shows no such variable"
            } else {
                "the factor did not take effect: levels ask for different values and got the same"
            };
            let (name, reason) = (name.clone(), reason.to_owned());
            findings.push(Finding { name, values, kind: Kind::Unexplained, reason });
        }
    }
    findings
}

fn observed(run: &Compared) -> bool {
    !run.before.is_empty() && !run.after.is_empty()
}

/// Runs without fingerprints cannot be vouched for.
fn unobserved(runs: &[Compared]) -> Option<Finding> {
    let values: BTreeMap<String, String> = runs
        .iter()
        .filter(|run| !observed(run))
        .map(|run| (format!("{}, block {}", run.level, run.block), ABSENT.to_owned()))
        .collect();
    (!values.is_empty()).then(|| Finding {
        name: "fingerprint".to_owned(),
        values,
        kind: Kind::Unexplained,
        reason: "nothing was observed before or after the run".to_owned(),
    })
}

fn suffix(point: &str, points: usize) -> String {
    if points > 1 { format!(" at {point}") } else { String::new() }
}

/// One finding of one name's findings at several sweep points.
fn merge(at_points: Vec<(&str, Finding)>, points: usize) -> Option<Finding> {
    let gravest = at_points.iter().map(|(_, finding)| finding).max_by_key(|f| f.kind)?.clone();
    let alike = at_points.len() == points
        && at_points.iter().all(|(_, finding)| finding.values == gravest.values);
    if alike {
        return Some(gravest);
    }
    let values = at_points
        .into_iter()
        .flat_map(|(point, finding)| {
            let suffix = suffix(point, points);
            finding.values.into_iter().map(move |(who, what)| (format!("{who}{suffix}"), what))
        })
        .collect();
    Some(Finding { values, ..gravest })
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
