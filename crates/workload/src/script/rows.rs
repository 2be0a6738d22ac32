//! The rows of a script's table: functions of (seed, table, row), written as SQL and summed up as
//! the server would.

use std::io::Write as _;

use load::Rng;

use super::values::{Expr, Frame, Place, Value};
use super::{Script, Table};

/// Name and version; another version makes other rows from the same seed.
pub(super) const VERSION: &str = "script rows 1";

impl Script {
    /// Appends row `id` of table `table`, both from 1, as an INSERT has it, and returns its
    /// checksum: what the server computes as `CRC32(CONCAT_WS('#', ...))` of its columns.
    pub(crate) fn write_row(
        &self,
        seed: u64,
        table: u32,
        id: u64,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> u32 {
        let Some(of) = self.tables.get((table as usize).wrapping_sub(1)) else { return 0 };
        // The same stream as for the built-in tables.
        let mut rng = Rng::new(seed, 1 << 63 | u64::from(table), id, 0);
        let mut frame = Frame { slots: Vec::new(), text: std::mem::take(scratch) };
        frame.clear(0);
        let place = Place { number: id - 1, copy: of.copy };
        let mut sum = crc32fast::Hasher::new();
        let mut summed = 0;
        for (i, (_, expr)) in of.columns.iter().enumerate() {
            out.push(if i == 0 { b'(' } else { b',' });
            let from = out.len();
            let value = expr.value(&mut frame, place, &mut rng);
            // CONCAT_WS leaves NULLs out.
            if summed > 0 && value != Value::Null {
                sum.update(b"#");
            }
            summed += u32::from(value != Value::Null);
            match value {
                Value::Null => out.extend_from_slice(b"NULL"),
                Value::Int(value) => {
                    // Writing to a vector cannot fail.
                    let _ = write!(out, "{value}");
                    sum.update(&out[from..]);
                }
                Value::Text(from, to) => {
                    let text = frame.text(from, to);
                    sum.update(text);
                    write_quoted(text, out);
                }
            }
        }
        out.push(b')');
        *scratch = frame.text;
        sum.finalize()
    }
}

fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in text {
        if matches!(byte, b'\'' | b'\\') {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

impl Table {
    /// Its columns, quoted.
    pub(crate) fn columns(&self) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|(name, _)| format!("`{name}`")).collect();
        columns.join(", ")
    }

    /// Names of its columns, where the server gives all values back as they were sent if the
    /// columns' types are whole numbers and strings: texts are plain and do not end in a blank,
    /// which CHAR takes away.
    pub(crate) fn exact_columns(&self) -> Option<Vec<&str>> {
        let plain = |text: &[u8]| text.is_ascii() && text.last() != Some(&b' ');
        let exact = self.columns.iter().all(|(_, expr)| match expr {
            Expr::Text(text) => plain(text),
            Expr::Pick(texts) => texts.iter().all(|text| plain(text)),
            _ => true,
        });
        (exact && !self.columns.is_empty())
            .then(|| self.columns.iter().map(|(name, _)| name.as_str()).collect())
    }
}
