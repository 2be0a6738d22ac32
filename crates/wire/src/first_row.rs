//! Keeps the first row of a result, for whoever computes with what the server said.
//!
//! Only a bounded beginning is kept, and read only when it is asked for. A row of the binary
//! protocol cannot be read without its columns' types, which stand in the definitions before it.

use crate::decoder::RowSink;
use crate::read::length;

/// Columns that can be asked for.
pub const KEPT_COLUMNS_MAX: usize = 16;
/// Bytes of a row that are kept.
const ROW_BYTES_MAX: usize = 4096;
/// What ends a definition: type, flags, decimals and two bytes that mean nothing.
const TAIL_BYTES: usize = 6;

/// The first row of the first result.
#[derive(Clone, Debug, Default)]
pub struct FirstRow {
    types: [Column; KEPT_COLUMNS_MAX],
    columns: usize,
    /// The end of the definition under way.
    tail: [u8; TAIL_BYTES],
    row: Vec<u8>,
    /// The row was longer than what is kept.
    cut: bool,
    /// It has come to its end.
    whole: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Column {
    code: u8,
    unsigned: bool,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept<'a> {
    /// NULL, or there was no row.
    Null,
    /// A whole number.
    Int(i64),
    /// Anything else that travels as text, DECIMAL among it.
    Bytes(&'a [u8]),
}

impl FirstRow {
    /// Forgets what was kept.
    pub fn clear(&mut self) {
        (self.columns, self.cut, self.whole) = (0, false, false);
        self.row.clear();
    }

    /// The value of column `index`, from 0; `text` says that the row is of the text protocol.
    ///
    /// # Errors
    /// Why it cannot be read, in a few words.
    pub fn value(&self, index: usize, text: bool) -> Result<Kept<'_>, &'static str> {
        if !self.whole {
            return Ok(Kept::Null);
        }
        if index >= self.columns.min(KEPT_COLUMNS_MAX) {
            return Err("there is no such column");
        }
        let cut = if self.cut { "its row is too long to be kept" } else { "its row is malformed" };
        let read = if text { self.text(index) } else { self.binary(index) };
        read.unwrap_or(Err(cut))
    }

    /// `None` where the row ends before the value does.
    fn text(&self, index: usize) -> Option<Result<Kept<'_>, &'static str>> {
        let mut rest = self.row.as_slice();
        for _ in 0..index {
            text_value(&mut rest)?;
        }
        let Some(bytes) = text_value(&mut rest)? else { return Some(Ok(Kept::Null)) };
        if !self.types[index].is_integer() {
            return Some(Ok(Kept::Bytes(bytes)));
        }
        let number = std::str::from_utf8(bytes).ok().and_then(|digits| digits.parse().ok());
        Some(number.map(Kept::Int).ok_or(TOO_LARGE))
    }

    fn binary(&self, index: usize) -> Option<Result<Kept<'_>, &'static str>> {
        let (_, rest) = self.row.split_first()?;
        let (nulls, mut rest) = rest.split_at_checked((self.columns + 9) / 8)?;
        let is_null = |column: usize| {
            let bit = column + 2;
            nulls.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
        };
        for column in (0..index).filter(|column| !is_null(*column)) {
            self.types[column].take(&mut rest)?;
        }
        if is_null(index) {
            return Some(Ok(Kept::Null));
        }
        let column = self.types[index];
        let bytes = column.take(&mut rest)?;
        if !column.is_integer() {
            let legible = column.fixed().is_none() && !column.is_moment();
            return Some(if legible { Ok(Kept::Bytes(bytes)) } else { Err(NOT_KEPT) });
        }
        let negative = !column.unsigned && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let value = i64::from_le_bytes(wide);
        let fits = !column.unsigned || value >= 0;
        Some(if fits { Ok(Kept::Int(value)) } else { Err(TOO_LARGE) })
    }
}

const TOO_LARGE: &str = "it is larger than a signed 64-bit number";
const NOT_KEPT: &str = "numbers with a fraction, dates and times cannot be kept; CAST it AS CHAR";

impl Column {
    fn is_integer(self) -> bool {
        matches!(self.code, 1 | 2 | 3 | 8 | 9 | 13)
    }

    /// Dates and times have a length of their own.
    fn is_moment(self) -> bool {
        matches!(self.code, 7 | 10 | 11 | 12)
    }

    /// Bytes of a value, where all have as many.
    fn fixed(self) -> Option<usize> {
        match self.code {
            1 => Some(1),
            2 | 13 => Some(2),
            3 | 4 | 9 => Some(4),
            5 | 8 => Some(8),
            _ => None,
        }
    }

    /// Takes a value off the front of a binary row.
    fn take<'a>(self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let size = match self.fixed() {
            Some(size) => size,
            None => usize::try_from(length(rest)?).ok()?,
        };
        let (value, behind) = rest.split_at_checked(size)?;
        *rest = behind;
        Some(value)
    }
}

/// Takes a value off the front of a text row; the inner `None` is NULL.
fn text_value<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    if let [0xfb, behind @ ..] = *rest {
        *rest = behind;
        return Some(None);
    }
    let size = usize::try_from(length(rest)?).ok()?;
    let (value, behind) = rest.split_at_checked(size)?;
    *rest = behind;
    Some(Some(value))
}

impl RowSink for FirstRow {
    fn column(&mut self, piece: &[u8], end: bool) {
        if self.whole {
            return;
        }
        let piece = &piece[piece.len().saturating_sub(TAIL_BYTES)..];
        self.tail.rotate_left(piece.len());
        self.tail[TAIL_BYTES - piece.len()..].copy_from_slice(piece);
        if end {
            if let Some(column) = self.types.get_mut(self.columns) {
                *column = Column { code: self.tail[0], unsigned: self.tail[1] & 0x20 != 0 };
            }
            self.columns += 1;
        }
    }

    fn row(&mut self, piece: &[u8], end: bool) {
        if self.whole {
            return;
        }
        let room = ROW_BYTES_MAX - self.row.len();
        self.cut |= piece.len() > room;
        self.row.extend_from_slice(&piece[..piece.len().min(room)]);
        self.whole = end;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// With columns of these types, the second of flags.
    fn described(columns: &[(u8, u8)]) -> FirstRow {
        let mut first = FirstRow::default();
        for &(code, flags) in columns {
            let definition = [&b"\x03def...\x0c\x3f\0\x0b\0\0\0"[..], &[code, flags, 0, 0, 0, 0]];
            let definition = definition.concat();
            // In pieces, as sockets cut them.
            for piece in definition.chunks(4) {
                first.column(piece, false);
            }
            first.column(&[], true);
        }
        first
    }

    #[test]
    fn binary_values_are_read_by_their_types() {
        let mut first = described(&[(3, 0), (8, 0x20), (253, 0), (246, 0), (2, 0), (5, 0), (1, 0)]);
        let mut row = vec![0, 1 << 6, 0];
        row.extend((-5i32).to_le_bytes());
        row.extend(u64::MAX.to_le_bytes());
        row.extend(b"\x03abc");
        row.extend(7i16.to_le_bytes());
        row.extend(0.5f64.to_le_bytes());
        row.push(0x80);
        // The fourth is NULL: bit 5 of the bitmap.
        row[1] = 1 << 5;
        for piece in row.chunks(3) {
            first.row(piece, false);
        }
        first.row(&[], true);
        first.row(b"another row", true);
        assert_eq!(first.value(0, false), Ok(Kept::Int(-5)));
        assert_eq!(first.value(1, false), Err(TOO_LARGE));
        assert_eq!(first.value(2, false), Ok(Kept::Bytes(b"abc")));
        assert_eq!(first.value(3, false), Ok(Kept::Null));
        assert_eq!(first.value(4, false), Ok(Kept::Int(7)));
        assert_eq!(first.value(5, false), Err(NOT_KEPT));
        assert_eq!(first.value(6, false), Ok(Kept::Int(-128)));
        assert!(first.value(7, false).is_err());
        first.clear();
        assert_eq!(first.value(0, false), Ok(Kept::Null));
    }

    #[test]
    fn text_values_are_read_by_their_types() {
        let mut first = described(&[(8, 0), (253, 0), (3, 0), (3, 0)]);
        first.row(b"\x03-12\xfb\x0199", true);
        assert_eq!(first.value(0, true), Ok(Kept::Int(-12)));
        assert_eq!(first.value(1, true), Ok(Kept::Null));
        assert_eq!(first.value(2, true), Ok(Kept::Int(9)));
        assert!(first.value(3, true).is_err(), "the row ends within it");
    }

    #[test]
    fn a_long_row_is_cut_and_never_grows() {
        let mut first = described(&[(253, 0), (3, 0)]);
        let long = [&b"\xfd\x00\x00\x01"[..], &vec![b'x'; 1 << 16]].concat();
        first.row(&long, false);
        first.row(&long, true);
        assert_eq!(first.row.len(), ROW_BYTES_MAX);
        assert_eq!(first.value(0, true), Err("its row is too long to be kept"));
        for (wrong, text) in [
            (&b""[..], true),
            (b"", false),
            (b"\xff", true),
            (b"\0", false),
            (b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff", true),
            (b"\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\xff", false),
        ] {
            let mut first = described(&[(253, 0)]);
            first.row(wrong, true);
            assert!(first.value(0, text).is_err(), "{wrong:?}");
        }
    }
}
