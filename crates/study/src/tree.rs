//! The parsed TOML tree, whose every key and value knows where it was written.
//!
//! `given`, sweep values, levels and overrides are put into copies of the baseline as the very
//! nodes that the parser made, so that whatever is found wrong later points at the line where that
//! value stands. Nothing here knows the schema except for [`normalise`].

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use crate::source::Fault;
use crate::variables;

/// A value and where it stands.
pub(crate) type Node<'i> = Spanned<DeValue<'i>>;

/// The entries in the order they were written; the first level is the baseline, so order matters,
/// and the parser's table is sorted by name.
pub(crate) fn ordered<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<DeString<'i>>, &'t Node<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The node with every span moved by `base` into the address space of all sources.
pub(crate) fn shifted(node: Node<'_>, base: usize) -> Node<'_> {
    let span = moved(node.span(), base);
    let value = match node.into_inner() {
        DeValue::Array(array) => {
            let mut moved_array = DeArray::new();
            for element in array {
                moved_array.push(shifted(element, base));
            }
            DeValue::Array(moved_array)
        }
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(key, value)| {
                    let span = moved(key.span(), base);
                    (Spanned::new(span, key.into_inner()), shifted(value, base))
                })
                .collect(),
        ),
        scalar => scalar,
    };
    Spanned::new(span, value)
}

fn moved(span: Range<usize>, base: usize) -> Range<usize> {
    span.start + base..span.end + base
}

/// The node at a path.
pub(crate) fn get<'t, 'i>(table: &'t DeTable<'i>, segments: &[String]) -> Option<&'t Node<'i>> {
    let (first, rest) = segments.split_first()?;
    let node = table.get(first.as_str())?;
    if rest.is_empty() { Some(node) } else { get(node.get_ref().as_table()?, rest) }
}

/// Puts a node at a path, in place of what was there; tables on the way are made. `at` is where
/// the path was written.
pub(crate) fn insert<'i>(
    table: &mut DeTable<'i>,
    segments: &[String],
    at: Range<usize>,
    node: Node<'i>,
) -> Result<(), Fault> {
    let Some((first, rest)) = segments.split_first() else { return Ok(()) };
    let key = || Spanned::new(at.clone(), Cow::Owned(first.clone()));
    if rest.is_empty() {
        // Removed first, because a map keeps the key it has, and with it the old place.
        table.remove(first.as_str());
        table.insert(key(), node);
        return Ok(());
    }
    if !table.contains_key(first.as_str()) {
        table.insert(key(), Spanned::new(at.clone(), DeValue::Table(DeTable::new())));
    }
    match table.get_mut(first.as_str()) {
        Some(inner) => {
            let span = inner.span();
            match inner.get_mut() {
                DeValue::Table(inner) => insert(inner, rest, at, node),
                other => Err(Fault::new(
                    span,
                    format!("expected `{first}` to be a table, found {}", found(other)),
                )),
            }
        }
        None => Ok(()),
    }
}

/// Writes the variables of `server.config` with `_` and in small letters, so that one variable has one name, where
/// `node` is what stands at `segments`.
pub(crate) fn normalise(node: &mut Node<'_>, segments: &[&str]) -> Result<(), Fault> {
    let DeValue::Table(table) = node.get_mut() else { return Ok(()) };
    match segments {
        ["server", "config"] => normalise_variables(table),
        ["server"] => match table.get_mut("config") {
            Some(config) => normalise(config, &["server", "config"]),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn normalise_variables(table: &mut DeTable<'_>) -> Result<(), Fault> {
    let mut entries: Vec<_> = std::mem::take(table).into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let span = key.span();
        let name = variables::canonical(&key.into_inner());
        if table.contains_key(name.as_str()) {
            return Err(Fault::new(span, format!("the variable `{name}` is set twice"))
                .hint("`-` and `_`, and small and capital letters, are the same in the name of a variable"));
        }
        table.insert(Spanned::new(span, Cow::Owned(name)), value);
    }
    Ok(())
}

/// What a value is, with its article, for messages.
pub(crate) fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// The whole number, of any radix, where it is one that anything could hold.
pub(crate) fn integer(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// The number, whole or not.
pub(crate) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        other => integer(other).map(|integer| integer as f64),
    }
}

/// The value as JSON. Dates and numbers that JSON cannot hold become text.
pub(crate) fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(written) => match integer(value) {
            Some(integer) => match (i64::try_from(integer), u64::try_from(integer)) {
                (Ok(integer), _) => Value::from(integer),
                (_, Ok(integer)) => Value::from(integer),
                _ => Value::from(written.to_string()),
            },
            None => Value::from(written.to_string()),
        },
        DeValue::Float(written) => written
            .as_str()
            .parse()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map_or_else(|| Value::from(written.as_str()), Value::Number),
        DeValue::Boolean(boolean) => Value::from(*boolean),
        DeValue::Datetime(date) => Value::from(date.to_string()),
        DeValue::Array(array) => array.iter().map(|element| json(element.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())))
                .collect(),
        ),
    }
}

/// The value as a level's name: as short as people say it.
pub(crate) fn spoken(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.is_empty() => "\"\"".to_owned(),
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(written) => {
            integer(value).map_or_else(|| written.to_string(), |integer| integer.to_string())
        }
        DeValue::Float(written) => written.as_str().to_owned(),
        DeValue::Boolean(boolean) => boolean.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(array) => {
            array.iter().map(|element| spoken(element.get_ref())).collect::<Vec<_>>().join(", ")
        }
        // A placement or workload goes by the name of its variant.
        DeValue::Table(table) => {
            table.keys().map(|key| key.get_ref().to_string()).collect::<Vec<_>>().join(", ")
        }
    }
}
