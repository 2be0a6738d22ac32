//! The one error that reading a study gives: where, what and what would have been right.
//!
//! `Display` is the rendering that a person sees. It must stay readable without colour and must
//! not pass control characters of the study on to a terminal.

use std::ops::Range;

use crate::source::{Fault, Sources};

/// Widest piece of a source line that is shown; longer lines are cut around the place.
const SHOWN_COLUMNS: usize = 120;

/// What is wrong with a study or a script, at a place. `Display` renders it for the terminal: the message, the
/// line with carets below it, and a `hint:` line where there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyError {
    /// The file's name, or `--set`.
    pub source_name: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Characters at fault on that line, at least 1.
    pub width: usize,
    /// The text of that line.
    pub line_text: String,
    /// A lower-case sentence without a full stop.
    pub message: String,
    /// The allowed values or the next step.
    pub hint: Option<String>,
}

impl std::fmt::Display for StudyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let (shown, before) = self.shown_line();
        let room = shown.chars().count().saturating_sub(before).max(1);
        writeln!(f, "error: {}", self.message)?;
        let source = printable(&self.source_name);
        writeln!(f, "{gutter}--> {source}:{}:{}", self.line, self.column)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {shown}")?;
        write!(f, "{gutter} | {}{}", " ".repeat(before), "^".repeat(self.width.clamp(1, room)))?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", hint)?;
        }
        Ok(())
    }
}

impl StudyError {
    /// Something wrong at `span` (bytes) of `text`, which is called `source_name`; for scripts,
    /// which another crate reads.
    pub fn at(
        source_name: &str,
        text: &str,
        span: Range<usize>,
        message: String,
        hint: Option<String>,
    ) -> StudyError {
        let mut sources = Sources::new();
        let base = sources.add(source_name, text);
        sources.error(Fault { span: span.start + base..span.end + base, message, hint })
    }

    /// The part of the line that is shown and how many characters of it stand before the place.
    fn shown_line(&self) -> (String, usize) {
        let before = self.column.saturating_sub(1);
        let skipped =
            if before + self.width > SHOWN_COLUMNS { before.saturating_sub(20) } else { 0 };
        let line: String = self.line_text.chars().skip(skipped).take(SHOWN_COLUMNS).collect();
        // A tab would move the carets, so it is shown as the one character it counts for.
        (printable(&line.replace('\t', " ")), before - skipped)
    }
}

impl std::error::Error for StudyError {}

/// The text with control characters replaced one for one, so that columns stay what they are.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
