//! Building the cells of a question: the baseline's tree with the values of each sweep point and
//! level put in, read as a [`Setup`].
//!
//! Every cell is built before anything is started, so that a mistake in the last level of the last
//! question does not show after hours.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize as _;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::path::Path;
use crate::plan::Cell;
use crate::setup::{ConfigValue, Setup};
use crate::source::Fault;
use crate::tree::{self, Node};

/// More than anybody waits for; guards against a sweep that multiplies out of hand.
const MAX_CELLS: usize = 1000;

/// A level, and its values to put at the paths that vary.
pub(crate) struct LevelNodes<'i> {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Node<'i>>,
}

/// One path of the sweep and its values.
pub(crate) struct AxisNodes<'i> {
    pub(crate) path: Path,
    pub(crate) nodes: Vec<Node<'i>>,
}

/// Every sweep point times every level, the levels innermost.
pub(crate) fn build<'i>(
    setup: &DeTable<'i>,
    factor: &[Path],
    levels: &[LevelNodes<'i>],
    sweep: &[AxisNodes<'i>],
    span: Range<usize>,
) -> Result<Vec<Cell>, Fault> {
    let points = sweep.iter().map(|axis| axis.nodes.len());
    let count = points.chain([levels.len()]).try_fold(1_usize, usize::checked_mul);
    let Some(count) = count.filter(|count| *count <= MAX_CELLS) else {
        return Err(Fault::new(span, format!("the question has more than {MAX_CELLS} cells"))
            .hint("cells are levels times sweep points; ask fewer at once"));
    };
    let mut cells = Vec::with_capacity(count);
    for point in 0..count / levels.len() {
        let mut tree_at_point = setup.clone();
        let mut at: BTreeMap<String, Value> = BTreeMap::new();
        // The point's number, read as digits: the first axis changes slowest.
        let mut rest = point;
        for axis in sweep.iter().rev() {
            let node = &axis.nodes[rest % axis.nodes.len()];
            rest /= axis.nodes.len();
            at.insert(axis.path.text.clone(), tree::json(node.get_ref()));
            let place = axis.path.span.clone();
            tree::insert(&mut tree_at_point, &axis.path.segments, place, node.clone())?;
        }
        for level in levels {
            let mut tree_at_level = tree_at_point.clone();
            for (path, node) in factor.iter().zip(&level.nodes) {
                let place = path.span.clone();
                tree::insert(&mut tree_at_level, &path.segments, place, node.clone())?;
            }
            let setup = self::setup(tree_at_level, span.clone())?;
            cells.push(Cell { level: level.name.clone(), at: at.clone(), setup });
        }
    }
    Ok(cells)
}

/// The setup of a tree, with what only shows when the parts are together. `span` is where a fault
/// without a place is reported.
pub(crate) fn setup(tree: DeTable<'_>, span: Range<usize>) -> Result<Setup, Fault> {
    let place = |segments: &[&str]| {
        let segments: Vec<String> = segments.iter().map(|s| (*s).to_owned()).collect();
        tree::get(&tree, &segments).map(Spanned::span)
    };
    let connections_at = place(&["load", "connections"]);
    let load_at = keys_below(tree::get(&tree, &["load".to_owned()]));
    let placement_at = tree::get(&tree, &["placement".to_owned()])
        .and_then(|node| node.get_ref().as_table())
        .map(|chosen| chosen.values().flat_map(|variant| keys_below(Some(variant))).collect());
    let placement_at: BTreeMap<String, Range<usize>> = placement_at.unwrap_or_default();
    let limit_at = place(&["server", "config", "max_connections"]);
    let workload_at = place(&["workload"]);
    let node = Spanned::new(span.clone(), DeValue::Table(tree));
    let setup = Setup::deserialize(ValueDeserializer::from(node)).map_err(|error| {
        let fault = Fault::toml(&error, 0);
        if error.span().is_some() { fault } else { Fault { span: span.clone(), ..fault } }
    })?;
    let wrong =
        [(setup.load.contradiction(), load_at), (setup.placement.contradiction(), placement_at)];
    for (wrong, at) in wrong {
        if let Some(wrong) = wrong {
            let at = at.get(wrong.key).cloned().unwrap_or(span);
            return Err(Fault::new(at, wrong.message).hint(wrong.hint));
        }
    }
    let instances = setup.placement.instances();
    if setup.load.connections < instances {
        return Err(Fault::new(
            connections_at.unwrap_or(span),
            format!("{} connections cannot drive {instances} instances", setup.load.connections),
        )
        .hint("connections are dealt to the instances in turn: give each at least one"));
    }
    let connections = setup.load.connections_max();
    setup.workload.check(connections).map_err(|(wrong, hint)| {
        Fault::new(workload_at.unwrap_or(span.clone()), wrong).hint(hint)
    })?;
    let connections = i64::from(connections);
    match setup.server.config.get("max_connections") {
        Some(ConfigValue::Integer(limit)) if *limit < connections => Err(Fault::new(
            connections_at.or(limit_at).unwrap_or(span),
            format!(
                "{connections} connections cannot reach a server with max_connections = {limit}"
            ),
        )
        .hint("raise server.config.max_connections, or leave it to ceteris")),
        _ => Ok(setup),
    }
}

/// Where each key of a table stands.
fn keys_below(node: Option<&Node<'_>>) -> BTreeMap<String, Range<usize>> {
    let table = node.and_then(|node| node.get_ref().as_table());
    let entries = table.into_iter().flatten();
    entries.map(|(key, node)| (key.get_ref().to_string(), node.span())).collect()
}
