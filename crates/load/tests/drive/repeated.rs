//! A workload that repeats the same statements after a deadlock, and one that knows its operation.

use std::collections::HashMap;
use std::sync::Mutex;

use ceteris_load::{Operation, Rng, Session, Statement, TransactionError, Workload};
use wire::Param;

use super::scripted::{Act, Scripted};
use super::{UPDATE, run, spec, statement};

/// Remembers what each attempt at each operation drew.
#[derive(Default)]
struct Same(Mutex<HashMap<(u64, u64), Vec<u64>>>);

impl Workload for Same {
    fn statements(&self) -> Vec<Statement> {
        vec![statement(UPDATE)]
    }

    fn redraws(&self) -> bool {
        false
    }

    async fn transaction(
        &self,
        s: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let Operation { seed, connection, sequence } = s.operation();
        assert_eq!(seed, 5, "as the drive was told");
        let value = rng.next_u64();
        self.0.lock().unwrap().entry((connection, sequence)).or_default().push(value);
        s.execute(0, &[Param::UInt(value)]).await?;
        Ok(())
    }
}

#[test]
fn a_workload_that_does_not_redraw_repeats_its_values() {
    let server = Scripted::start(usize::MAX, |n, text| match n {
        300.. => Act::Silence,
        _ if text == UPDATE && n % 3 == 0 => Act::Error(1213, "Deadlock found"),
        _ => Act::Answer,
    });
    let workload = Same::default();
    let (report, _) = run(&workload, &spec(&[&server], 3, 800)).unwrap();
    assert!(report.retries > 20, "{}", report.retries);
    let drawn = workload.0.lock().unwrap();
    let mut firsts: Vec<u64> = drawn.values().map(|values| values[0]).collect();
    for values in drawn.values() {
        assert!(values.iter().all(|value| value == &values[0]), "{values:?}");
    }
    assert!(drawn.values().any(|values| values.len() > 1));
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), drawn.len(), "operations differ");
    // Three connections, each counting its transactions from 0.
    for connection in 0..3 {
        let count = drawn.keys().filter(|(of, _)| *of == connection).count() as u64;
        assert!(count > 0 && (0..count).all(|n| drawn.contains_key(&(connection, n))));
    }
}
