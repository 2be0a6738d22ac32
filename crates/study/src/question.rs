//! Reading one `[[question]]`: its factor, levels, sweep and what it is given.
//!
//! Keys and types have been checked by then; what is left is what one key says about another, such
//! as the kind that a level must have because of the path that varies.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::cells::{self, AxisNodes, LevelNodes};
use crate::path::{Path, resolve};
use crate::plan::Cell;
use crate::reference::{Kind, SETUP};
use crate::source::{Fault, Sources};
use crate::study::{Factor, Level, Question, SweepAxis};
use crate::tree::{self, Node, found, ordered};
use crate::{check, design};

/// A question, its cells, and the paths that it takes out of the baseline's hands.
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) cells: Vec<Cell>,
    pub(crate) paths: Vec<Path>,
}

/// Reads a question that [`check::table`] has passed. `baseline` holds the setup's tables alone,
/// `design` the study's `[design]`.
pub(crate) fn read<'i>(
    question: &Node<'i>,
    baseline: &DeTable<'i>,
    design: Option<&DeTable<'i>>,
    sources: &Sources<'i>,
) -> Result<Asked, Fault> {
    let span = question.span();
    let empty = DeTable::new();
    let table = question.get_ref().as_table().unwrap_or(&empty);
    let text = |key: &str| table.get(key).and_then(|node| node.get_ref().as_str()).unwrap_or("");

    let compound = table.get("compound").and_then(|node| node.get_ref().as_bool()) == Some(true);
    let factor = read_factor(table, compound)?;
    let given = read_given(table, sources)?;
    let mut setup = baseline.clone();
    for (path, node) in &given {
        path.fits(&setup)?;
        tree::insert(&mut setup, &path.segments, path.span.clone(), node.clone())?;
    }
    for path in &factor {
        path.fits(&setup)?;
    }
    let levels = read_levels(table, &factor, compound)?;
    let sweep = read_sweep(table, &setup)?;
    refuse_overlaps(&factor, &sweep, &given)?;
    let cells = cells::build(&setup, &factor, &levels, &sweep, span.clone())?;
    let amount = design::read(table, design)?;

    let paths = factor
        .iter()
        .chain(sweep.iter().map(|axis| &axis.path))
        .chain(given.iter().map(|(path, _)| path));
    Ok(Asked {
        paths: paths.cloned().collect(),
        question: Question {
            name: text("name").to_owned(),
            factor: Factor {
                paths: factor.iter().map(|path| path.text.clone()).collect(),
                compound,
            },
            levels: levels
                .iter()
                .map(|level| Level {
                    name: level.name.clone(),
                    values: level.nodes.iter().map(|node| tree::json(node.get_ref())).collect(),
                })
                .collect(),
            sweep: sweep
                .iter()
                .map(|axis| SweepAxis {
                    path: axis.path.text.clone(),
                    values: axis.nodes.iter().map(|node| tree::json(node.get_ref())).collect(),
                })
                .collect(),
            given: given
                .iter()
                .map(|(path, node)| (path.text.clone(), tree::json(node.get_ref())))
                .collect(),
            blocks: amount.blocks,
            max_blocks: amount.max_blocks,
            precision: amount.precision,
            margin: amount.margin,
            confidence: amount.confidence,
            on_failure: amount.on_failure,
        },
        cells,
    })
}

fn read_factor(table: &DeTable<'_>, compound: bool) -> Result<Vec<Path>, Fault> {
    let Some(vary) = table.get("vary") else { return Ok(Vec::new()) };
    let single = |node: &Node<'_>| match node.get_ref() {
        DeValue::String(text) => resolve(SETUP, text, node.span()),
        other => Err(Fault::new(
            node.span(),
            format!("expected `vary` to be a path, found {}", found(other)),
        )
        .hint("a path such as \"server.config.innodb_flush_method\"")),
    };
    let paths = match (vary.get_ref(), compound) {
        (DeValue::Array(array), true) => array.iter().map(single).collect::<Result<Vec<_>, _>>()?,
        (DeValue::Array(_), false) => {
            return Err(Fault::new(vary.span(), "a question varies one path, found a list")
                .hint("with `compound = true` the effect belongs to the bundle of them"));
        }
        (DeValue::String(_), true) => {
            return Err(Fault::new(vary.span(), "a compound question varies a list of paths")
                .hint("write `vary = [\"...\", \"...\"]`, or leave out `compound`"));
        }
        _ => vec![single(vary)?],
    };
    if paths.is_empty() {
        return Err(Fault::new(vary.span(), "`vary` names no path"));
    }
    for (index, path) in paths.iter().enumerate() {
        if let Some(earlier) = paths[..index].iter().find(|earlier| earlier.overlaps(path)) {
            return Err(Fault::new(
                path.span.clone(),
                format!("`{}` and `{}` are one and the same place", earlier.text, path.text),
            ));
        }
        if !compound {
            refuse_table(path, "a question varies one thing")?;
        }
    }
    Ok(paths)
}

/// A table of several keys is a bundle in disguise.
fn refuse_table(path: &Path, why: &str) -> Result<(), Fault> {
    let keys = match path.kind {
        Kind::Table(keys) => keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", "),
        Kind::Variables => "any server variable".to_owned(),
        Kind::Params => "any parameter of the script".to_owned(),
        _ => return Ok(()),
    };
    let hint = if keys.is_empty() {
        format!("`{}` has no keys yet", path.text)
    } else {
        format!("name one of its keys: {keys}")
    };
    Err(Fault::new(path.span.clone(), format!("{why}, but `{}` is a table", path.text)).hint(hint))
}

fn read_levels<'i>(
    table: &DeTable<'i>,
    factor: &[Path],
    compound: bool,
) -> Result<Vec<LevelNodes<'i>>, Fault> {
    let Some(levels) = table.get("levels") else { return Ok(Vec::new()) };
    let mut read: Vec<LevelNodes<'i>> = Vec::new();
    let mut add = |name: String, at: Range<usize>, node: &Node<'i>, named: bool| {
        let nodes = read_level(node, factor, compound)?;
        if read.iter().any(|level| level.name == name) {
            // Only an array can do this: TOML refuses a table with equal keys.
            return Err(Fault::new(at, format!("two levels are `{name}`")).hint(
                "name them where this is meant: levels = { a = ..., b = ... } with equal values is \
                 an A/A control",
            ));
        }
        if named {
            check::one_line(&name, "the name of a level", at)?;
        }
        read.push(LevelNodes { name, nodes });
        Ok(())
    };
    match levels.get_ref() {
        DeValue::Array(array) => {
            for node in array.iter() {
                add(tree::spoken(node.get_ref()), node.span(), node, false)?;
            }
        }
        DeValue::Table(named) => {
            for (key, node) in ordered(named) {
                add(key.get_ref().to_string(), key.span(), node, true)?;
            }
        }
        other => {
            return Err(Fault::new(
                levels.span(),
                format!("expected `levels` to be an array or a table, found {}", found(other)),
            )
            .hint("levels = [1, 2], or levels = { name = value, other = value }"));
        }
    }
    if read.len() < 2 {
        return Err(Fault::new(levels.span(), "a question compares at least two levels")
            .hint("the first level is the baseline"));
    }
    Ok(read)
}

fn read_level<'i>(
    node: &Node<'i>,
    factor: &[Path],
    compound: bool,
) -> Result<Vec<Node<'i>>, Fault> {
    let nodes = match (compound, node.get_ref()) {
        (false, _) => vec![node.clone()],
        (true, DeValue::Array(array)) if array.len() == factor.len() => array.to_vec(),
        (true, _) => {
            return Err(Fault::new(
                node.span(),
                format!("a level of this question is an array of {} values", factor.len()),
            )
            .hint("one value for each path of `vary`, in its order"));
        }
    };
    factor.iter().zip(nodes).map(|(path, node)| checked(path, node)).collect()
}

/// The node, checked for its path and its variables normalised.
pub(crate) fn checked<'i>(path: &Path, mut node: Node<'i>) -> Result<Node<'i>, Fault> {
    check::value(path.kind, &node, &path.text)?;
    tree::normalise(&mut node, &path.parts())?;
    Ok(node)
}

fn read_given<'i>(
    table: &DeTable<'i>,
    sources: &Sources<'i>,
) -> Result<Vec<(Path, Node<'i>)>, Fault> {
    let mut given: Vec<(Path, Node<'i>)> = Vec::new();
    for (path, node) in paths_table(table, "given")? {
        // Unquoted, `server.config.x = 1` is a nested table, and would replace all of `server`.
        if node.get_ref().is_table() && !sources.text(node.span()).starts_with('{') {
            return Err(Fault::new(path.span, "a path in `given` stands in quotes")
                .hint("given = { \"server.config.innodb_flush_method\" = \"O_DIRECT\" }"));
        }
        refuse_table(&path, "`given` sets one value")?;
        if let Some((earlier, _)) = given.iter().find(|(earlier, _)| earlier.overlaps(&path)) {
            return Err(Fault::new(
                path.span,
                format!("`{}` and `{}` are one and the same place", earlier.text, path.text),
            ));
        }
        let node = checked(&path, node.clone())?;
        given.push((path, node));
    }
    Ok(given)
}

fn read_sweep<'i>(table: &DeTable<'i>, setup: &DeTable<'i>) -> Result<Vec<AxisNodes<'i>>, Fault> {
    let mut sweep: Vec<AxisNodes<'i>> = Vec::new();
    for (path, node) in paths_table(table, "sweep")? {
        let DeValue::Array(array) = node.get_ref() else {
            let quoted = if node.get_ref().is_table() { "; the path stands in quotes" } else { "" };
            return Err(Fault::new(
                node.span(),
                format!("expected the values of `{}` to be an array", path.text),
            )
            .hint(format!("sweep = {{ \"load.connections\" = [8, 64] }}{quoted}")));
        };
        refuse_table(&path, "a sweep goes along one path")?;
        if matches!(path.kind, Kind::Choice(_)) {
            return Err(Fault::new(
                path.span,
                format!("a sweep goes along one value, but `{}` is a table", path.text),
            )
            .hint("ask one question for each, or vary it"));
        }
        path.fits(setup)?;
        if array.is_empty() {
            return Err(Fault::new(node.span(), format!("the sweep of `{}` is empty", path.text)));
        }
        let mut seen = BTreeSet::new();
        let mut nodes = Vec::with_capacity(array.len());
        for value in array.iter() {
            let value = checked(&path, value.clone())?;
            if !seen.insert(tree::json(value.get_ref()).to_string()) {
                return Err(Fault::new(
                    value.span(),
                    format!("`{}` stands twice in the sweep", tree::spoken(value.get_ref())),
                ));
            }
            nodes.push(value);
        }
        sweep.push(AxisNodes { path, nodes });
    }
    Ok(sweep)
}

/// The paths and nodes of a table such as `given`, in the order written.
pub(crate) fn paths_table<'t, 'i>(
    table: &'t DeTable<'i>,
    key: &str,
) -> Result<Vec<(Path, &'t Node<'i>)>, Fault> {
    let Some(node) = table.get(key) else { return Ok(Vec::new()) };
    let DeValue::Table(inner) = node.get_ref() else {
        return Err(Fault::new(
            node.span(),
            format!("expected `{key}` to be a table, found {}", found(node.get_ref())),
        )
        .hint(format!("{key} = {{ \"load.connections\" = ... }}")));
    };
    ordered(inner)
        .into_iter()
        .map(|(path, node)| Ok((resolve(SETUP, path.get_ref(), path.span())?, node)))
        .collect()
}

/// Two hands on one value: the audit could not say whose it is.
fn refuse_overlaps(
    factor: &[Path],
    sweep: &[AxisNodes<'_>],
    given: &[(Path, Node<'_>)],
) -> Result<(), Fault> {
    for (index, axis) in sweep.iter().enumerate() {
        let path = &axis.path;
        let fault = |message: String| Err(Fault::new(path.span.clone(), message));
        if factor.iter().any(|varied| varied.overlaps(path)) {
            return fault(format!("`{}` is both varied and swept", path.text)).map_err(
                |fault: Fault| fault.hint("levels are compared at each point of a sweep"),
            );
        }
        if sweep[..index].iter().any(|earlier| earlier.path.overlaps(path)) {
            return fault(format!("`{}` is swept twice", path.text));
        }
    }
    for (path, _) in given {
        if factor.iter().any(|varied| varied.covers(path)) {
            return Err(Fault::new(
                path.span.clone(),
                format!("`{}` is given, but the levels replace it", path.text),
            )
            .hint("leave it out of `given`"));
        }
        if sweep.iter().any(|axis| axis.path.covers(path)) {
            return Err(Fault::new(
                path.span.clone(),
                format!("`{}` is given, but the sweep replaces it", path.text),
            )
            .hint("leave it out of `given`"));
        }
    }
    Ok(())
}
