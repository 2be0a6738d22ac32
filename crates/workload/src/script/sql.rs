//! The holes of a statement: `{name}` is text that is put in once, `:name` a value of each execution.
//!
//! Neither is one within quotes or comments, so that JSON and times can be written as they are.

use std::ops::Range;

use super::fault::Fault;
use super::parse::name_at;

/// A hole in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hole<'t> {
    /// `{name}`
    Text(&'t str),
    /// `:name`
    Value(&'t str),
}

/// Appends what stands in a hole at a place.
pub(super) type Fill<'f> = dyn FnMut(Hole<'_>, Range<usize>, &mut String) -> Result<(), Fault> + 'f;

/// Copies `text`; `fill` appends what stands in its holes.
pub(super) fn filled(text: &str, fill: &mut Fill<'_>) -> Result<String, Fault> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut length = c.len_utf8();
        match c {
            '\'' | '"' | '`' => length = quoted(rest, c),
            '#' => length = line(rest),
            '-' if rest.starts_with("-- ") || rest.starts_with("--\n") => length = line(rest),
            '/' if rest.starts_with("/*") => {
                length = rest.find("*/").map_or(rest.len(), |end| end + 2);
            }
            '?' => {
                return Err(Fault::new(at..at + 1, "a `?` is no value here")
                    .hint("write `:name` for a value that is drawn, kept or a parameter"));
            }
            '{' => {
                let name = name_at(&rest[1..]);
                let end = at + 2 + name.len();
                if name.is_empty() || !rest[1 + name.len()..].starts_with('}') {
                    return Err(Fault::new(at..at + 1, "`{` begins no name")
                        .hint("`{name}` is a table or a parameter"));
                }
                fill(Hole::Text(name), at..end, &mut out)?;
                at = end;
                continue;
            }
            // `::` and `:=` are other things.
            ':' if !name_at(&rest[1..]).is_empty() && !text[..at].ends_with(':') => {
                let name = name_at(&rest[1..]);
                let end = at + 1 + name.len();
                fill(Hole::Value(name), at..end, &mut out)?;
                at = end;
                continue;
            }
            _ => {}
        }
        out.push_str(&rest[..length]);
        at += length;
    }
    Ok(out)
}

/// Length of the quoted piece that `text` begins with.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote != '`' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

fn line(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn holes(text: &str) -> Result<(String, Vec<String>), Fault> {
        let mut seen = Vec::new();
        let out = filled(text, &mut |hole, span, out| {
            seen.push(text[span].to_owned());
            out.push_str(if let Hole::Text(_) = hole { "T" } else { "?" });
            Ok(())
        })?;
        Ok((out, seen))
    }

    #[test]
    fn holes_are_found_outside_of_quotes_and_comments() {
        for (text, out, seen) in [
            ("SELECT :a, {t}.x", "SELECT ?, T.x", &[":a", "{t}"][..]),
            ("SELECT '{a} :b ''? ', \":c\", `{d}`", "SELECT '{a} :b ''? ', \":c\", `{d}`", &[]),
            ("SELECT 'a\\':b', :c", "SELECT 'a\\':b', ?", &[":c"]),
            ("SELECT 1 -- :a?\n, :b", "SELECT 1 -- :a?\n, ?", &[":b"]),
            ("SELECT /* :a */ @x := 1, a::b", "SELECT /* :a */ @x := 1, a::b", &[]),
            ("id=:id AND", "id=? AND", &[":id"]),
            ("é:ü :a_1", "é:ü ?", &[":a_1"]),
        ] {
            let (got, found) = holes(text).unwrap();
            assert_eq!((got.as_str(), found.join(" ")), (out, seen.join(" ")), "{text}");
        }
        for (text, at) in [("id = ?", 5), ("x { y }", 2), ("{", 0), ("{a", 0)] {
            assert_eq!(holes(text).unwrap_err().span.start, at, "{text}");
        }
    }
}
