//! Reading `[[published]]`: figures from elsewhere, each of which must have one of ours beside it.

use std::collections::BTreeMap;

use toml::de::DeTable;

use crate::check::value;
use crate::question::paths_table;
use crate::source::Fault;
use crate::study::{Published, Question};
use crate::suggest::allowed;
use crate::tree::{self, Node, spoken};

/// Reads a figure that [`crate::check::table`] has passed.
pub(crate) fn read(figure: &Node<'_>, questions: &[Question]) -> Result<Published, Fault> {
    let empty = DeTable::new();
    let table = figure.get_ref().as_table().unwrap_or(&empty);
    let text = |key: &str| table.get(key).and_then(|node| node.get_ref().as_str()).unwrap_or("");
    let span_of = |key: &str| table.get(key).map_or(figure.span(), toml::Spanned::span);

    let name = text("question");
    let Some(question) = questions.iter().find(|question| question.name == name) else {
        return Err(Fault::new(span_of("question"), format!("no question is named `{name}`"))
            .hint(allowed(name, questions.iter().map(|question| question.name.as_str()))));
    };
    let level = text("level");
    if !question.levels.iter().any(|known| known.name == level) {
        return Err(Fault::new(
            span_of("level"),
            format!("the question `{name}` has no level `{level}`"),
        )
        .hint(allowed(level, question.levels.iter().map(|level| level.name.as_str()))));
    }
    let mut at = BTreeMap::new();
    for (path, node) in paths_table(table, "at")? {
        let Some(axis) = question.sweep.iter().find(|axis| axis.path == path.text) else {
            let swept = question.sweep.iter().map(|axis| axis.path.as_str());
            let hint = match question.sweep.is_empty() {
                true => format!("`{name}` has no sweep, so leave out `at`"),
                false => allowed(&path.text, swept),
            };
            return Err(Fault::new(
                path.span,
                format!("the question `{name}` does not sweep `{}`", path.text),
            )
            .hint(hint));
        };
        value(path.kind, node, &path.text)?;
        let point = tree::json(node.get_ref());
        if !axis.values.contains(&point) {
            let points: Vec<String> = axis.values.iter().map(ToString::to_string).collect();
            return Err(Fault::new(
                node.span(),
                format!(
                    "the question `{name}` does not take `{}` to {}",
                    path.text,
                    spoken(node.get_ref())
                ),
            )
            .hint(format!("its sweep points: {}", points.join(", "))));
        }
        at.insert(path.text, point);
    }
    if let Some(axis) = question.sweep.iter().find(|axis| !at.contains_key(&axis.path)) {
        return Err(Fault::new(
            table.get("at").map_or(figure.span(), toml::Spanned::span),
            format!("the figure does not say at which `{}` it was measured", axis.path),
        )
        .hint(format!("at = {{ \"{}\" = ... }}", axis.path)));
    }
    Ok(Published {
        question: name.to_owned(),
        level: level.to_owned(),
        at,
        metric: text("metric").to_owned(),
        value: table.get("value").and_then(|node| tree::number(node.get_ref())).unwrap_or_default(),
        source: text("source").to_owned(),
    })
}
