//! sysbench 1.x `oltp_insert`: one new row, as text and outside of any transaction.
//!
//! With AUTO_INCREMENT the id is 0, which asks the server for one. Without, the tables begin empty
//! and each id is one of the 2^32 of a signed INTEGER, in random order, none twice in a drive.

use load::{Operation, Rng, Session, TransactionError, Workload};
use study::Oltp;

use super::scratch;
use crate::digits::{C_BYTES, PAD_BYTES, digit_groups, push_decimal};
use crate::distribution::{Ids, Law};

pub(super) struct Insert {
    tables: u32,
    ks: Ids,
    auto_inc: bool,
    connections: u32,
}

impl Insert {
    pub(super) fn new(oltp: &Oltp, connections: u32) -> Insert {
        let ks = Ids::new(oltp.rows, Law::of(oltp));
        Insert { tables: oltp.tables, ks, auto_inc: oltp.auto_inc, connections }
    }

    fn id(&self, operation: Operation) -> i64 {
        if self.auto_inc {
            return 0;
        }
        let Operation { seed, connection, sequence } = operation;
        // Modulo 2^32 on purpose: so many ids there are.
        let index = sequence.wrapping_mul(u64::from(self.connections)).wrapping_add(connection);
        i64::from(shuffled(index as u32, seed as u32)) + i64::from(i32::MIN)
    }
}

/// A permutation of all `u32`: every step can be undone.
fn shuffled(index: u32, seed: u32) -> u32 {
    let mut x = index.wrapping_add(seed);
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

impl Workload for Insert {
    fn statements(&self) -> Vec<load::Statement> {
        Vec::new()
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let table = 1 + rng.below(u64::from(self.tables)) as i64;
        let (id, k) = (self.id(s.operation()), self.ks.draw(&mut rng) as i64);
        let c: [u8; C_BYTES] = digit_groups(&mut rng);
        let pad: [u8; PAD_BYTES] = digit_groups(&mut rng);
        scratch::query(s, |text| {
            text.push_str("INSERT INTO sbtest");
            push_decimal(text, table);
            text.push_str(" (id, k, c, pad) VALUES (");
            push_decimal(text, id);
            text.push_str(", ");
            push_decimal(text, k);
            text.push_str(", '");
            // Digits and dashes, which are text.
            text.push_str(std::str::from_utf8(&c).unwrap_or_default());
            text.push_str("', '");
            text.push_str(std::str::from_utf8(&pad).unwrap_or_default());
            text.push_str("')");
        })
        .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_each_used_once_and_spread_over_the_column() {
        let oltp = Oltp { auto_inc: false, ..Oltp::default() };
        let insert = Insert::new(&oltp, 7);
        let mut seen = HashSet::new();
        for connection in 0..7 {
            for sequence in 0..20_000 {
                let id = insert.id(Operation { seed: 3, connection, sequence });
                assert!(i32::try_from(id).is_ok(), "{id}");
                assert!(seen.insert(id), "{id} twice");
            }
        }
        let negative = seen.iter().filter(|id| **id < 0).count();
        assert!((69_000..71_000).contains(&negative), "{negative} of 140,000");
    }

    #[test]
    fn with_auto_increment_the_server_is_asked() {
        let insert = Insert::new(&Oltp::default(), 7);
        assert_eq!(insert.id(Operation { seed: 3, connection: 2, sequence: 9 }), 0);
    }
}
