//! One row: a function of (seed, table, id).

use std::io::Write as _;

use load::Rng;
use study::Oltp;

use crate::digits::{C_BYTES, PAD_BYTES, digit_groups};
use crate::distribution::Ids;

/// Name and version of this generator; another version makes other rows from the same seed.
pub(super) const GENERATOR: &str = "oltp rows 1";

/// Makes rows.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    seed: u64,
    ks: Ids,
}

/// A row of an `sbtest` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub id: u64,
    pub k: u64,
    pub c: [u8; C_BYTES],
    pub pad: [u8; PAD_BYTES],
}

impl Generator {
    pub(super) fn new(seed: u64, oltp: &Oltp) -> Generator {
        Generator { seed, ks: Ids::new(oltp.rows, oltp.distribution) }
    }

    /// Row `id` of table `table`, both from 1.
    pub(super) fn row(&self, table: u32, id: u64) -> Row {
        // The high bit sets these streams apart from those of connections under the same seed.
        let mut rng = Rng::new(self.seed, 1 << 63 | u64::from(table), id, 0);
        let k = self.ks.draw(&mut rng);
        Row { id, k, c: digit_groups(&mut rng), pad: digit_groups(&mut rng) }
    }
}

impl Row {
    /// Appends the row as an INSERT has it, and returns its checksum: what the server computes as
    /// `CRC32(CONCAT_WS('#', id, k, c, pad))`. `line` is scratch space.
    pub(super) fn write(&self, out: &mut Vec<u8>, line: &mut Vec<u8>) -> u32 {
        line.clear();
        // Writing to a vector cannot fail.
        let _ = write!(line, "{}#{}#", self.id, self.k);
        line.extend_from_slice(&self.c);
        line.push(b'#');
        line.extend_from_slice(&self.pad);
        let _ = write!(out, "({},{},'", self.id, self.k);
        out.extend_from_slice(&self.c);
        out.extend_from_slice(b"','");
        out.extend_from_slice(&self.pad);
        out.extend_from_slice(b"')");
        crc32fast::hash(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_function_of_seed_table_and_id() {
        let oltp = Oltp { rows: 1000, ..Oltp::default() };
        let generator = Generator::new(7, &oltp);
        let row = generator.row(2, 33);
        assert_eq!(row, generator.clone().row(2, 33));
        assert!((1..=1000).contains(&row.k));
        for other in
            [generator.row(1, 33), generator.row(2, 34), Generator::new(8, &oltp).row(2, 33)]
        {
            assert_ne!(row.c, other.c);
            assert_ne!(row.pad, other.pad);
        }
    }

    #[test]
    fn a_row_is_written_as_sql_and_summed_up_as_the_server_would() {
        let row = Row { id: 12, k: 5, c: [b'1'; C_BYTES], pad: [b'2'; PAD_BYTES] };
        let (mut out, mut line) = (Vec::new(), b"left from before".to_vec());
        let checksum = row.write(&mut out, &mut line);
        let (c, pad) = ("1".repeat(C_BYTES), "2".repeat(PAD_BYTES));
        assert_eq!(String::from_utf8_lossy(&out), format!("(12,5,'{c}','{pad}')"));
        assert_eq!(checksum, crc32fast::hash(format!("12#5#{c}#{pad}").as_bytes()));
        // SELECT CRC32('MySQL') is 3259397556 by the server's manual.
        assert_eq!(crc32fast::hash(b"MySQL"), 3_259_397_556);
    }

    /// Data made by one build must be what another build expects: the same version, the same rows.
    #[test]
    fn rows_of_this_version_never_change() {
        let generator = Generator::new(1, &Oltp { rows: 1000, ..Oltp::default() });
        let (mut out, mut line) = (Vec::new(), Vec::new());
        let sum: u64 =
            (1..=1000).map(|id| u64::from(generator.row(1, id).write(&mut out, &mut line))).sum();
        assert_eq!(sum, ROWS_1_CHECKSUM, "raise the version in GENERATOR if this is meant");
    }

    const ROWS_1_CHECKSUM: u64 = 2_118_187_715_086;
}
