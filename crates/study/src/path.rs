//! A dotted path into the setup tree, checked against the reference.

use std::ops::Range;

use toml::de::DeTable;

use crate::check::{joined, unknown_key, variable_name};
use crate::reference::{Key, Kind};
use crate::source::Fault;
use crate::tree;
use crate::variables;

/// A path that exists, the kind of value it holds, and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Normalised: variables of `server.config` with `_` and in small letters.
    pub(crate) text: String,
    /// The keys on the way. The name of a variable is one key, also where it holds dots.
    pub(crate) segments: Vec<String>,
    /// What a value there may be.
    pub(crate) kind: &'static Kind,
    /// Where it was written.
    pub(crate) span: Range<usize>,
}

/// Finds a path below `keys`.
pub(crate) fn resolve(keys: &'static [Key], text: &str, span: Range<usize>) -> Result<Path, Fault> {
    let mut segments: Vec<String> = Vec::new();
    let mut keys = keys;
    let mut parts = text.trim().split('.');
    let mut kind: Option<&'static Kind> = None;
    while let Some(part) = parts.next() {
        let here = segments.join(".");
        let Some(key) = keys.iter().find(|key| key.name == part) else {
            let mut fault = unknown_key(keys, part, &here, span);
            if !fault.message.contains("yet") {
                fault.message = format!("the path `{text}` does not exist: {}", fault.message);
            }
            return Err(fault);
        };
        segments.push(part.to_owned());
        kind = Some(&key.kind);
        match key.kind {
            Kind::Table(inner) | Kind::Choice(inner) => keys = inner,
            Kind::Variables => {
                let rest = parts.by_ref().collect::<Vec<_>>().join(".");
                if !rest.is_empty() {
                    variable_name(&rest, span.clone())?;
                    segments.push(variables::canonical(&rest));
                    kind = Some(&Kind::Variable);
                }
            }
            Kind::Params => {
                let rest = parts.by_ref().collect::<Vec<_>>().join(".");
                if !rest.is_empty() {
                    segments.push(rest);
                    kind = Some(&Kind::Param);
                }
            }
            _ => {
                if let Some(next) = parts.next() {
                    let whole = joined(&here, part);
                    return Err(Fault::new(
                        span,
                        format!("the path `{text}` does not exist: `{whole}` has no key `{next}`"),
                    )
                    .hint(format!("`{whole}` is a {}", key.kind.describe())));
                }
            }
        }
    }
    match kind {
        Some(kind) => Ok(Path { text: segments.join("."), segments, kind, span }),
        None => Err(Fault::new(span, "the path is empty")),
    }
}

impl Path {
    /// The segments as the tree's functions for known places want them.
    pub(crate) fn parts(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }

    /// Whether one path is, or leads to, the other.
    pub(crate) fn overlaps(&self, other: &Path) -> bool {
        self.covers(other) || other.covers(self)
    }

    /// Whether a value put at this path replaces what stands at `other`.
    pub(crate) fn covers(&self, other: &Path) -> bool {
        other.segments.starts_with(&self.segments)
    }

    /// Refuses a path that leads through another variant than the one that `setup` has, such as
    /// `workload.oltp_read_only.rows` where the workload is `oltp_write_only`: the value would
    /// stand beside the setup and not in it.
    pub(crate) fn fits(&self, setup: &DeTable<'_>) -> Result<(), Fault> {
        let [choice @ ("placement" | "workload"), variant, ..] = self.parts()[..] else {
            return Ok(());
        };
        let chosen = setup.get(choice).and_then(|node| node.get_ref().as_table());
        match chosen.and_then(|table| tree::ordered(table).first().map(|(key, _)| key.get_ref())) {
            Some(chosen) if chosen.as_ref() != variant => Err(Fault::new(
                self.span.clone(),
                format!("`{}` does not apply: the {choice} is `{chosen}`", self.text),
            )
            .hint(format!("name a path below `{choice}.{chosen}`, or the whole `{choice}`"))),
            _ => Ok(()),
        }
    }
}
