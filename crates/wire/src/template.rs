//! Statements as text: the template of a statement, split once at its placeholders, and its values
//! written between the pieces for each execution.
//!
//! The SQL grammar says where a `?` is a placeholder and where it is a character of a string, of a
//! quoted name or of a comment; [`Template::new`] follows it as MySQL's lexer does.

use crate::command::{COM_QUERY, Param, begin_packet, end_packet};

/// A statement with `?` for each value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: Box<[u8]>,
    /// Where the placeholders stand in `text`.
    placeholders: Box<[usize]>,
}

impl Template {
    /// Splits `text` at its placeholders.
    pub fn new(text: &str) -> Template {
        let text: Box<[u8]> = text.as_bytes().into();
        let mut placeholders = Vec::new();
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let rest = &text[at..];
            at += match byte {
                b'?' => {
                    placeholders.push(at);
                    1
                }
                b'\'' | b'"' | b'`' => quoted(rest, byte),
                b'#' => line(rest),
                // Two hyphens begin a comment only before white space or the end.
                b'-' if rest.get(1) == Some(&b'-')
                    && rest.get(2).is_none_or(|next| *next <= b' ') =>
                {
                    line(rest)
                }
                // What stands in `/*! */` is executed, and `/*+ */` holds no values.
                b'/' if rest.starts_with(b"/*") && !rest.starts_with(b"/*!") => comment(rest),
                _ => 1,
            };
        }
        Template { text, placeholders: placeholders.into() }
    }

    /// How many values it takes.
    pub fn params(&self) -> usize {
        self.placeholders.len()
    }

    /// Appends the command that runs the statement with `params` to `out`, as
    /// [`crate::Command::encode`] does; a placeholder without a value becomes NULL. `backslashes`
    /// says that a backslash escapes in strings, which it does unless the server's SQL mode holds
    /// NO_BACKSLASH_ESCAPES ([`crate::status::NO_BACKSLASH_ESCAPES`]).
    ///
    /// Integers are written in decimal, strings in single quotes, floating-point numbers with an
    /// exponent, which makes them DOUBLE; those that SQL does not know (NaN, infinity) as NULL.
    pub fn encode(&self, params: &[Param<'_>], backslashes: bool, out: &mut Vec<u8>) -> u8 {
        let start = begin_packet(out);
        out.push(COM_QUERY);
        let mut from = 0;
        for (i, &at) in self.placeholders.iter().enumerate() {
            out.extend_from_slice(&self.text[from..at]);
            write_value(out, params.get(i).copied().unwrap_or(Param::Null), backslashes);
            from = at + 1;
        }
        out.extend_from_slice(&self.text[from..]);
        end_packet(out, start)
    }
}

/// Length of the quoted piece at the start of `text`, or of the rest if it is never closed. A
/// doubled quote reads as the end of one piece and the begin of another, which comes to the same.
fn quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        at += match byte {
            b'\\' if quote != b'`' => 2,
            _ if byte == quote => return at + 1,
            _ => 1,
        };
    }
    text.len()
}

fn line(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

fn comment(text: &[u8]) -> usize {
    let end = text.get(2..).and_then(|rest| rest.windows(2).position(|two| two == b"*/"));
    end.map_or(text.len(), |end| end + 4)
}

fn write_value(out: &mut Vec<u8>, value: Param<'_>, backslashes: bool) {
    match value {
        Param::Null => out.extend_from_slice(b"NULL"),
        Param::Int(value) => {
            if value < 0 {
                out.push(b'-');
            }
            write_decimal(out, value.unsigned_abs());
        }
        Param::UInt(value) => write_decimal(out, value),
        Param::Double(value) if value.is_finite() => {
            use std::io::Write;
            // Writing into a vector cannot fail.
            let _ = write!(out, "{value:e}");
        }
        Param::Double(_) => out.extend_from_slice(b"NULL"),
        Param::Bytes(bytes) => {
            out.push(b'\'');
            for &byte in bytes {
                if byte == b'\'' || (backslashes && byte == b'\\') {
                    // Doubling works for both, whatever the SQL mode says of backslashes.
                    out.push(byte);
                }
                out.push(byte);
            }
            out.push(b'\'');
        }
    }
}

fn write_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rendered(text: &str, params: &[Param<'_>]) -> String {
        let mut out = Vec::new();
        assert_eq!(Template::new(text).encode(params, true, &mut out), 1);
        assert_eq!(usize::from(out[0]) + 256 * usize::from(out[1]), out.len() - 4);
        assert_eq!((out[3], out[4]), (0, COM_QUERY));
        String::from_utf8(out[5..].to_vec()).unwrap()
    }

    #[test]
    fn placeholders_are_those_of_the_grammar() {
        for (text, params) in [
            ("SELECT ?, ?", 2),
            ("?", 1),
            ("SELECT '?', \"?\", `?`, ?", 1),
            ("SELECT 'it''s ?', ?", 1),
            (r"SELECT 'a\'?', ?", 1),
            (r"SELECT `a\`, ?", 1),
            ("SELECT 1 -- why?\n, ?", 1),
            ("SELECT 5--?", 1),
            ("SELECT 1 # why?\n, ?", 1),
            ("SELECT /* ? */ ? /*! + ? */", 2),
            ("SELECT /*+ MAX(?) */ 1 / ?", 1),
            ("SELECT 'never closed ?", 0),
            ("SELECT 1 /* never closed ?", 0),
            ("SELECT 1 -- ?", 0),
            ("--", 0),
            ("SELECT '\\", 0),
        ] {
            assert_eq!(Template::new(text).params(), params, "{text}");
        }
    }

    #[test]
    fn values_are_written_as_literals() {
        let all = "SELECT ?,?,?,?,?,?,?;";
        let params = [
            Param::Int(i64::MIN),
            Param::Int(0),
            Param::UInt(u64::MAX),
            Param::Null,
            Param::Double(-0.1),
            Param::Double(f64::NAN),
            Param::Bytes(b"it's a \\ ?"),
        ];
        assert_eq!(
            rendered(all, &params),
            "SELECT -9223372036854775808,0,18446744073709551615,NULL,-1e-1,NULL,'it''s a \\\\ ?';"
        );
        assert_eq!(rendered("DO ?, ?", &[Param::Int(7)]), "DO 7, NULL");
        assert_eq!(rendered("DO 1", &[]), "DO 1");
        let mut out = Vec::new();
        Template::new("?").encode(&[Param::Bytes(b"a\\'")], false, &mut out);
        assert_eq!(out[5..], *b"'a\\'''");
    }

    #[test]
    fn what_is_encoded_before_is_kept_and_long_statements_are_split() {
        let mut out = b"before".to_vec();
        let long = vec![b'x'; crate::MAX_PACKET_PAYLOAD];
        assert_eq!(Template::new("?").encode(&[Param::Bytes(&long)], true, &mut out), 2);
        assert_eq!(out[..10], *b"before\xff\xff\xff\0");
    }
}
