//! sysbench 1.x `bulk_insert`: rows numbered from 1 into the connection's own table, in INSERTs as
//! long as sysbench's buffer of 512 KiB admits.
//!
//! sysbench counts each row that it appends to its buffer as an event, nearly all of which never
//! leave it; here a transaction is what the server gets to see, an INSERT. Where the rows of the
//! n-th INSERT begin follows from n alone, since a row's length follows from its number.

use std::ops::Range;

use load::{Rng, Session, TransactionError, Workload};

use super::scratch;
use crate::digits::{decimal_digits, push_decimal};

pub(super) struct BulkInsert;

/// sysbench's buffer, of which a byte ends the text.
const STATEMENT_BYTES_MAX: u64 = 512 * 1024 - 1;

impl Workload for BulkInsert {
    fn statements(&self) -> Vec<load::Statement> {
        Vec::new()
    }

    async fn transaction(&self, s: &mut Session, _: usize, _: Rng) -> Result<(), TransactionError> {
        let operation = s.operation();
        let table = operation.connection + 1;
        let rows = rows(table, operation.sequence);
        scratch::query(s, |text| {
            begin(text, table);
            for row in rows.clone() {
                if row > rows.start {
                    text.push(',');
                }
                text.push('(');
                push_decimal(text, row as i64);
                text.push(',');
                push_decimal(text, row as i64);
                text.push(')');
            }
        })
        .await?;
        Ok(())
    }
}

fn begin(text: &mut String, table: u64) {
    text.push_str("INSERT INTO sbtest");
    push_decimal(text, table as i64);
    text.push_str(" VALUES");
}

/// Rows of the `sequence`-th INSERT into a table, both from where they stand: a few steps for each
/// number of digits, however large `sequence` is.
fn rows(table: u64, sequence: u64) -> Range<u64> {
    let room =
        STATEMENT_BYTES_MAX - ("INSERT INTO sbtest VALUES".len() + decimal_digits(table)) as u64;
    let (mut first, mut left) = (1, sequence);
    loop {
        // All INSERTs whose rows have as many digits as `first` hold the same number of rows.
        let each = rows_that_fit(room, decimal_digits(first));
        let alike = (next_length(first) - first) / each;
        if left < alike {
            first += left * each;
            return first..first + each;
        }
        first += alike * each;
        left -= alike;
        let mixed = first..end_of_mixed(room, first);
        if left == 0 {
            return mixed;
        }
        first = mixed.end;
        left -= 1;
    }
}

/// `(N,N)` and a comma, of which the first row has none.
fn row_bytes(digits: usize) -> u64 {
    2 * digits as u64 + 4
}

fn rows_that_fit(room: u64, digits: usize) -> u64 {
    (room + 1) / row_bytes(digits)
}

/// The first number with more digits.
fn next_length(number: u64) -> u64 {
    10_u64.saturating_pow(decimal_digits(number) as u32)
}

/// End of an INSERT in which numbers grow longer.
fn end_of_mixed(room: u64, first: u64) -> u64 {
    let (mut end, mut room) = (first, room + 1);
    loop {
        let bytes = row_bytes(decimal_digits(end));
        let more = (next_length(end) - end).min(room / bytes);
        if more == 0 {
            return end;
        }
        end += more;
        room -= more * bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What sysbench does: appends while row, comma and the final byte fit.
    fn appended(table: u64, first: u64) -> (u64, usize) {
        let mut text = String::new();
        begin(&mut text, table);
        let mut row = first;
        loop {
            let next = format!("({row},{row})");
            let comma = usize::from(row > first);
            if text.len() + next.len() + 1 + comma > 512 * 1024 {
                return (row, text.len());
            }
            if comma == 1 {
                text.push(',');
            }
            text.push_str(&next);
            row += 1;
        }
    }

    #[test]
    fn statements_hold_the_rows_that_sysbenchs_buffer_holds() {
        for table in [1, 10] {
            let mut first = 1;
            // Past 99,999 and 999,999: statements of one length and mixed ones.
            for sequence in 0..40 {
                let (end, bytes) = appended(table, first);
                assert_eq!(rows(table, sequence), first..end, "INSERT {sequence}");
                assert!(bytes > 512 * 1024 - 20);
                first = end;
            }
            assert!(first > 1_000_000, "{first}");
        }
    }

    #[test]
    fn far_statements_are_found_as_fast_as_near_ones() {
        let before = rows(3, 99_999);
        let after = rows(3, 100_000);
        assert_eq!(before.end, after.start);
        assert!(after.start > 2_000_000_000);
        assert!(!rows(3, u64::from(u32::MAX)).is_empty());
    }
}
