//! Questions that every part of the reader asks of a script's TOML: is the key known, is it there,
//! is the value what it must be. Every answer that is no comes with its place in the file.

use std::ops::Range;

use study::allowed;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::fault::Fault;
use super::super::parse::name_at;

/// A value and where it stands.
pub(super) type Node<'i> = Spanned<DeValue<'i>>;

pub(super) fn ordered<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<toml::de::DeString<'i>>, &'t Node<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

pub(super) fn known(table: &DeTable<'_>, keys: &[&str], what: &str) -> Result<(), Fault> {
    for (key, _) in ordered(table) {
        let name = key.get_ref().as_ref();
        if !keys.contains(&name) {
            return Err(Fault::new(key.span(), format!("{what} has no key `{name}`"))
                .hint(allowed(name, keys.iter().copied())));
        }
    }
    Ok(())
}

pub(super) fn required<'t, 'i>(
    table: &'t DeTable<'i>,
    key: &str,
    at: &Node<'_>,
) -> Result<&'t Node<'i>, Fault> {
    table.get(key).ok_or_else(|| Fault::new(at.span(), format!("`{key}` is missing here")))
}

pub(super) fn array<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Result<&'t [Node<'i>], Fault> {
    match table.get(key) {
        None => Ok(&[]),
        Some(node) => match node.get_ref() {
            DeValue::Array(array) => Ok(&array[..]),
            _ => Err(expected(node, "an array of tables")
                .hint(format!("write its head in double brackets, `[[{key}]]`"))),
        },
    }
}

pub(super) fn string<'t>(node: &'t Node<'_>) -> Result<(&'t str, Range<usize>), Fault> {
    let text = node.get_ref().as_str().ok_or_else(|| expected(node, "a string"))?;
    Ok((text, node.span()))
}

/// A string or an array of them.
pub(super) fn strings<'t>(node: &'t Node<'_>) -> Result<Vec<(&'t str, Range<usize>)>, Fault> {
    match node.get_ref() {
        DeValue::Array(array) => array.iter().map(string).collect(),
        _ => Ok(vec![string(node)?]),
    }
}

pub(super) fn expected(node: &Node<'_>, what: &str) -> Fault {
    Fault::new(node.span(), format!("expected {what}"))
}

pub(super) fn identifier(name: &str, at: Range<usize>) -> Result<(), Fault> {
    if !name.is_empty() && name_at(name) == name && name.len() <= 64 {
        return Ok(());
    }
    Err(Fault::new(at, format!("`{name}` cannot be a name"))
        .hint("letters, digits and `_`, a letter first, at most 64"))
}
