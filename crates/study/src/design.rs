//! How much a question measures: its own keys over the study's `[design]` over the defaults.

use toml::Spanned;
use toml::de::DeTable;

use crate::quantity::Percent;
use crate::source::Fault;
use crate::study::OnFailure;
use crate::tree;

/// How much one question measures; meanings and units as in [`crate::Question`].
pub(crate) struct Amount {
    pub(crate) blocks: u32,
    pub(crate) max_blocks: u32,
    pub(crate) precision: Percent,
    pub(crate) margin: Percent,
    pub(crate) confidence: f64,
    pub(crate) on_failure: OnFailure,
}

/// The question's own design keys over the study's over the defaults.
pub(crate) fn read(table: &DeTable<'_>, design: Option<&DeTable<'_>>) -> Result<Amount, Fault> {
    let node = |key: &str| table.get(key).or_else(|| design.and_then(|design| design.get(key)));
    let whole = |key: &str| {
        let number = node(key).and_then(|node| tree::integer(node.get_ref()));
        number.and_then(|number| u32::try_from(number).ok())
    };
    let share = |key: &str| node(key).and_then(|node| node.get_ref().as_str()?.parse().ok());
    let margin = share("margin").unwrap_or(Percent(0.01));
    let precision: Option<Percent> = share("precision");
    let blocks = whole("blocks").unwrap_or(6);
    let max_blocks = match (whole("max_blocks"), precision) {
        (Some(max), _) => max,
        (None, Some(_)) => blocks.saturating_mul(4),
        (None, None) => blocks,
    };
    if max_blocks < blocks {
        // The question's own key is at fault where it has one: the other may suit other questions.
        let own = table.get("max_blocks").or_else(|| table.get("blocks"));
        let at = own.or_else(|| node("max_blocks")).map_or(0..0, Spanned::span);
        return Err(Fault::new(
            at,
            format!("`max_blocks` is {max_blocks}, less than `blocks`, which is {blocks}"),
        )
        .hint("`max_blocks` is the limit up to which blocks are added"));
    }
    Ok(Amount {
        blocks,
        max_blocks,
        precision: precision.unwrap_or(margin),
        margin,
        confidence: node("confidence")
            .and_then(|node| tree::number(node.get_ref()))
            .unwrap_or(0.95),
        on_failure: match node("on_failure").and_then(|node| node.get_ref().as_str()) {
            Some("continue") => OnFailure::Continue,
            _ => OnFailure::Stop,
        },
    })
}
