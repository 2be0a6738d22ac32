//! The texts that a study is made of, and the way back from a place to its text, line and column.
//!
//! A study is read from a file and from any number of `--set` overrides, and their values end up in
//! one tree. So all texts share one address space: each is given a base, spans are shifted by it,
//! and a [`Fault`] anywhere in the tree finds the text that it came from.

use std::ops::Range;

use crate::error::{StudyError, printable};

/// Something wrong at a place of the shared address space; becomes a [`StudyError`].
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// Where, in bytes.
    pub(crate) span: Range<usize>,
    /// As in [`StudyError::message`].
    pub(crate) message: String,
    /// As in [`StudyError::hint`].
    pub(crate) hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { span, message: message.into(), hint: None }
    }

    /// Adds the next step.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// An error of the TOML parser or of serde, whose span counts from `base`.
    pub(crate) fn toml(error: &toml::de::Error, base: usize) -> Fault {
        let span = error.span().unwrap_or(0..0);
        Fault::new(span.start + base..span.end + base, error.message().replace('\n', ", "))
    }
}

/// The texts and their bases.
pub(crate) struct Sources<'i> {
    parts: Vec<(String, &'i str, usize)>,
    end: usize,
}

impl<'i> Sources<'i> {
    /// No text yet.
    pub(crate) fn new() -> Self {
        Sources { parts: Vec::new(), end: 0 }
    }

    /// Adds a text and says at which base its spans begin.
    pub(crate) fn add(&mut self, name: &str, text: &'i str) -> usize {
        let base = self.end;
        self.parts.push((name.to_owned(), text, base));
        // One more than the text, so that its end is not the beginning of the next.
        self.end = base + text.len() + 1;
        base
    }

    /// The text at a span, empty where the span is none.
    pub(crate) fn text(&self, span: Range<usize>) -> &'i str {
        self.parts
            .iter()
            .rev()
            .find(|(_, _, base)| *base <= span.start)
            .and_then(|(_, text, base)| text.get(span.start - base..span.end.saturating_sub(*base)))
            .unwrap_or("")
    }

    /// The error for a person, with line and column.
    pub(crate) fn error(&self, fault: Fault) -> StudyError {
        let part = self.parts.iter().rev().find(|(_, _, base)| *base <= fault.span.start);
        let (name, text, base) = match part {
            Some((name, text, base)) => (name.as_str(), *text, *base),
            None => ("", "", 0),
        };
        let start = char_boundary(text, fault.span.start - base);
        let end = char_boundary(text, fault.span.end.saturating_sub(base)).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let whole = &text[line_start..line_end];
        // A byte order mark is no character that a person counts.
        let shown = if line_start == 0 { whole.trim_start_matches('\u{feff}') } else { whole };
        let visible_start = (line_start + whole.len() - shown.len()).min(start);
        StudyError {
            source_name: name.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: text[visible_start..start].chars().count() + 1,
            width: text[start..end.min(line_end)].chars().count().max(1),
            line_text: shown.strip_suffix('\r').unwrap_or(shown).to_owned(),
            // Both quote the study, and go to terminals and into JSON.
            message: printable(&fault.message),
            hint: fault.hint.as_deref().map(printable),
        }
    }
}

/// The nearest character boundary at or before `index`.
fn char_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}
