//! One row: a function of (seed, table, id).

use std::io::Write as _;

use std::sync::Arc;

use load::Rng;

use crate::digits::{C_BYTES, PAD_BYTES, digit_groups};
use crate::distribution::{Ids, Law};
use crate::script::Script;

/// Makes rows.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    seed: u64,
    rows: Rows,
}

/// How a row is written. No value holds a quote, a tab or a backslash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As an INSERT has it.
    Sql,
    /// As LOAD DATA reads it: fields end in tabs, rows in line feeds.
    Tabs,
}

/// What is in a row beside its id.
#[derive(Clone, Debug)]
pub(super) enum Rows {
    /// sysbench 1.x: `k` as the workload draws ids, random digits in `c` and `pad`.
    Random(Ids),
    /// sysbench 0.4.12: the same in every row.
    Legacy,
    /// As the columns of a script say.
    Script(Arc<Script>),
}

/// `pad` of 0.4.12; `c` is a blank, which a CHAR column does not keep.
const LEGACY_PAD: &str = "qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt";

impl Rows {
    /// Name and version; another version makes other rows from the same seed.
    pub(super) const RANDOM: &str = "oltp rows 1";
    /// As `RANDOM`.
    pub(super) const LEGACY: &str = "oltp 0.4.12 rows 1";

    pub(super) fn random(rows: u64, law: Law) -> Rows {
        Rows::Random(Ids::new(rows, law))
    }
}

/// A row of a sysbench 1.x table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    id: u64,
    k: u64,
    c: [u8; C_BYTES],
    pad: [u8; PAD_BYTES],
}

impl Generator {
    pub(super) fn new(seed: u64, rows: Rows) -> Generator {
        Generator { seed, rows }
    }

    /// Appends row `id` of table `table`, both from 1, in the `form` asked for, and returns its
    /// checksum: what the server computes as `CRC32(CONCAT_WS('#', id, k, c, pad))`. `line` is
    /// scratch space.
    pub(super) fn write(
        &self,
        table: u32,
        id: u64,
        form: Form,
        out: &mut Vec<u8>,
        line: &mut Vec<u8>,
    ) -> u32 {
        match &self.rows {
            Rows::Random(ks) => self.row(ks, table, id).write(form, out, line),
            Rows::Legacy => {
                line.clear();
                // Writing to a vector cannot fail.
                let _ = write!(line, "{id}#0##{LEGACY_PAD}");
                let _ = match form {
                    Form::Sql => write!(out, "({id},0,' ','{LEGACY_PAD}')"),
                    Form::Tabs => writeln!(out, "{id}\t0\t \t{LEGACY_PAD}"),
                };
                crc32fast::hash(line)
            }
            // A script has one form only; see `fill`.
            Rows::Script(script) => script.write_row(self.seed, table, id, out, line),
        }
    }

    fn row(&self, ks: &Ids, table: u32, id: u64) -> Row {
        // The high bit sets these streams apart from those of connections under the same seed.
        let mut rng = Rng::new(self.seed, 1 << 63 | u64::from(table), id, 0);
        let k = ks.draw(&mut rng);
        Row { id, k, c: digit_groups(&mut rng), pad: digit_groups(&mut rng) }
    }
}

impl Row {
    fn write(&self, form: Form, out: &mut Vec<u8>, line: &mut Vec<u8>) -> u32 {
        line.clear();
        // Writing to a vector cannot fail.
        let _ = write!(line, "{}#{}#", self.id, self.k);
        line.extend_from_slice(&self.c);
        line.push(b'#');
        line.extend_from_slice(&self.pad);
        let (start, between, end): (_, &[u8], &[u8]) = match form {
            Form::Sql => (write!(out, "({},{},'", self.id, self.k), b"','", b"')"),
            Form::Tabs => (write!(out, "{}\t{}\t", self.id, self.k), b"\t", b"\n"),
        };
        let _ = start;
        for bytes in [&self.c[..], between, &self.pad, end] {
            out.extend_from_slice(bytes);
        }
        crc32fast::hash(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_function_of_seed_table_and_id() {
        let ks = Ids::new(1000, Law::Uniform);
        let generator = |seed| Generator::new(seed, Rows::Random(ks));
        let row = generator(7).row(&ks, 2, 33);
        assert_eq!(row, generator(7).row(&ks, 2, 33));
        assert!((1..=1000).contains(&row.k));
        for (seed, table, id) in [(7, 1, 33), (7, 2, 34), (8, 2, 33)] {
            let other = generator(seed).row(&ks, table, id);
            assert_ne!(row.c, other.c);
            assert_ne!(row.pad, other.pad);
        }
    }

    #[test]
    fn a_row_is_written_as_sql_and_summed_up_as_the_server_would() {
        let row = Row { id: 12, k: 5, c: [b'1'; C_BYTES], pad: [b'2'; PAD_BYTES] };
        let (mut out, mut line) = (Vec::new(), b"left from before".to_vec());
        let checksum = row.write(Form::Sql, &mut out, &mut line);
        let (c, pad) = ("1".repeat(C_BYTES), "2".repeat(PAD_BYTES));
        assert_eq!(String::from_utf8_lossy(&out), format!("(12,5,'{c}','{pad}')"));
        assert_eq!(checksum, crc32fast::hash(format!("12#5#{c}#{pad}").as_bytes()));
        out.clear();
        assert_eq!(row.write(Form::Tabs, &mut out, &mut line), checksum);
        assert_eq!(String::from_utf8_lossy(&out), format!("12\t5\t{c}\t{pad}\n"));
        // SELECT CRC32('MySQL') is 3259397556 by the server's manual.
        assert_eq!(crc32fast::hash(b"MySQL"), 3_259_397_556);
    }

    /// Data made by one build must be what another build expects: the same version, the same rows.
    #[test]
    fn rows_of_this_version_never_change() {
        let generator = Generator::new(1, Rows::random(1000, Law::Uniform));
        let (mut out, mut line) = (Vec::new(), Vec::new());
        let sum: u64 = (1..=1000)
            .map(|id| u64::from(generator.write(1, id, Form::Sql, &mut out, &mut line)))
            .sum();
        assert_eq!(sum, ROWS_1_CHECKSUM, "raise the version in Rows if this is meant");
    }

    const ROWS_1_CHECKSUM: u64 = 2_118_187_715_086;

    #[test]
    fn rows_of_0_4_12_are_all_alike() {
        let generator = Generator::new(1, Rows::Legacy);
        let (mut out, mut line) = (Vec::new(), Vec::new());
        let checksum = generator.write(1, 7, Form::Sql, &mut out, &mut line);
        let text = format!("(7,0,' ','{LEGACY_PAD}')");
        assert_eq!(String::from_utf8_lossy(&out), text);
        assert_eq!(LEGACY_PAD.len(), 50);
        assert_eq!(checksum, crc32fast::hash(format!("7#0##{LEGACY_PAD}").as_bytes()));
    }
}
