//! One connection's life: transactions one after the other until the drive is over.

use std::rc::Rc;

use crate::flight::{Begun, Flight};
use crate::lane::Lane;
use crate::rng::Rng;
use crate::session::Session;
use crate::workload::{Operation, TransactionError, Workload};

/// Error code after which the server may have rolled back only the statement.
const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// Which connection lives.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    /// Index in its thread.
    pub token: usize,
    /// Seed of the drive.
    pub seed: u64,
    /// Its random stream.
    pub stream: u64,
}

/// Lives; what each transaction comes to is counted in `lane`.
pub(crate) async fn live<W: Workload>(
    lane: Rc<Lane>,
    mut session: Session,
    workload: &W,
    identity: Identity,
    retried: Rc<[u16]>,
) -> Result<(), TransactionError> {
    let Identity { token, seed, stream } = identity;
    let mut sequence = 0;
    while !lane.is_over() {
        // Closed loop: a transaction is due when the one before has ended.
        let intended_ns = lane.now_ns();
        let begun = Begun { intended_ns, started_ns: intended_ns };
        let operation = Operation { seed, connection: stream, sequence };
        session.set_operation(operation);
        let kind = workload.kind(operation);
        let mut attempt = 0;
        loop {
            lane.record(|recorder| recorder.attempt());
            lane.fly(token, Flight::Attempt(begun));
            let draw = if workload.redraws() { attempt } else { 0 };
            let rng = Rng::new(seed, stream, sequence, draw);
            let Err(error) = workload.transaction(&mut session, kind, rng).await else {
                let ended_ns = lane.now_ns();
                lane.record(|recorder| recorder.commit(begun, ended_ns));
                break;
            };
            let Some(code) = retried_code(&error, &retried) else { return Err(error) };
            lane.record(|recorder| recorder.retry(code));
            // The attempt is accounted for, also if the rollback is never answered.
            lane.fly(token, Flight::RollingBack(begun));
            // The latest status may be older than the error: after a deadlock nothing is left to
            // roll back, which does no harm.
            if session.in_transaction() || code == LOCK_WAIT_TIMEOUT {
                session.rollback().await?;
            }
            if lane.is_over() {
                lane.fly(token, Flight::Grounded);
                return Ok(());
            }
            attempt += 1;
        }
        sequence += 1;
    }
    lane.fly(token, Flight::Grounded);
    Ok(())
}

/// Code of an error after which the transaction is tried again.
fn retried_code(error: &TransactionError, retried: &[u16]) -> Option<u16> {
    match error {
        TransactionError::Server(error) if retried.contains(&error.code) => Some(error.code),
        _ => None,
    }
}
