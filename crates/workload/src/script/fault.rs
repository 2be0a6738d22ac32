//! Something wrong at a place, and the way from a place in a string to the place in the file.

use std::ops::Range;

/// Something wrong; becomes a [`study::StudyError`].
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// In bytes.
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { span, message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// A fault within the string `inner`, which stands with its quotes at `outer` of `file`. Where
    /// the string is written with escapes, places within it are not known, and the whole is
    /// at fault.
    pub(super) fn within(mut self, inner: &str, outer: Range<usize>, file: &str) -> Fault {
        let written = file.get(outer.clone()).unwrap_or("");
        let quotes = ["'''\r\n", "\"\"\"\r\n", "'''\n", "\"\"\"\n", "'''", "\"\"\"", "'", "\""];
        let opening = quotes.iter().find(|quote| written.starts_with(**quote));
        let opening = opening.map_or(0, |quote| quote.len());
        let plain = written.get(opening..).is_some_and(|written| written.starts_with(inner));
        self.span = if plain && !inner.is_empty() {
            let start = self.span.start.min(inner.len());
            let from = outer.start + opening;
            from + start..from + self.span.end.clamp(start, inner.len())
        } else {
            outer
        };
        self
    }
}
