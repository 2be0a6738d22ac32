//! One connection's life: transactions one after the other until the drive is over.

use std::rc::Rc;

use crate::flight::{Begun, Flight};
use crate::lane::{Lane, Wake};
use crate::policy::{Policy, Verdict};
use crate::rng::Rng;
use crate::session::Session;
use crate::workload::{Operation, TransactionError, Workload};

/// Which connection lives.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    /// Index in its thread.
    pub token: usize,
    /// Seed of the drive.
    pub seed: u64,
    /// Its random stream.
    pub stream: u64,
    /// How many kinds of transactions there are.
    pub kinds: usize,
    /// Where the kinds of the connection's target begin among all that is counted apart.
    pub first_slot: usize,
}

/// Lives; what each transaction comes to is counted in `lane`.
pub(crate) async fn live<W: Workload>(
    lane: Rc<Lane>,
    mut session: Session,
    workload: &W,
    identity: Identity,
    policy: Rc<Policy>,
) -> Result<(), TransactionError> {
    let Identity { token, seed, stream, kinds, first_slot } = identity;
    let (mut sequence, mut fresh) = (0, true);
    loop {
        let begun = match next_start(&lane, token, fresh).await {
            Start::Now(begun) => begun,
            Start::Lost => {
                if !reconnected(&lane, token, &mut session, false).await {
                    break;
                }
                fresh = true;
                continue;
            }
            Start::Never => break,
        };
        fresh = false;
        let operation = Operation { seed, connection: stream, sequence };
        session.set_operation(operation);
        let kind = workload.kind(operation);
        if kind >= kinds {
            let reason = format!("there is no kind {kind} of transactions");
            return Err(TransactionError::Workload(reason));
        }
        let slot = first_slot + kind;
        let mut attempt = 0;
        loop {
            lane.record(|recorder| recorder.attempt());
            lane.fly(token, Flight::Attempt(begun));
            let draw = if workload.redraws() { attempt } else { 0 };
            let rng = Rng::new(seed, stream, sequence, draw);
            let Err(mut error) = workload.transaction(&mut session, kind, rng).await else {
                lane.commit(token, slot, begun);
                break;
            };
            let mut verdict = policy.judge(&error);
            if let Verdict::Retry { rollback } = verdict {
                lane.record(|recorder| recorder.retry(slot));
                // The attempt is accounted for, also if the rollback is never answered.
                lane.fly(token, Flight::RollingBack(begun));
                // The latest status may be older than the error: after a deadlock nothing is left
                // to roll back, which does no harm.
                if (rollback || session.in_transaction())
                    && let Err(second) = session.rollback().await
                {
                    error = second;
                    verdict = match policy.judge(&error) {
                        // No server refuses a rollback and is well.
                        Verdict::Retry { .. } => Verdict::Fatal,
                        verdict => verdict,
                    };
                }
            }
            match verdict {
                Verdict::Retry { .. } if lane.is_over() => {
                    lane.fly(token, Flight::Grounded);
                    return Ok(());
                }
                Verdict::Retry { .. } => attempt += 1,
                Verdict::Lost { told } => {
                    if !reconnected(&lane, token, &mut session, told).await {
                        return Ok(());
                    }
                    fresh = true;
                    break;
                }
                Verdict::Fatal => return Err(error),
            }
        }
        sequence += 1;
    }
    lane.fly(token, Flight::Grounded);
    Ok(())
}

/// Whether a connection may start its next transaction.
enum Start {
    /// It may.
    Now(Begun),
    /// It is gone.
    Lost,
    /// None starts any more.
    Never,
}

async fn next_start(lane: &Lane, token: usize, fresh: bool) -> Start {
    if lane.is_over() {
        return Start::Never;
    }
    if let Some(begun) = lane.ask_start(token, fresh) {
        return Start::Now(begun);
    }
    lane.fly(token, Flight::Grounded);
    match lane.woken().await {
        Wake::Start(begun) => Start::Now(begun),
        Wake::Lost => Start::Lost,
        Wake::Reply(_) | Wake::Connected(_) | Wake::Over => Start::Never,
    }
}

/// Counts what the loss of the connection ended, and waits for another one; false if the drive is
/// over first.
async fn reconnected(lane: &Lane, token: usize, session: &mut Session, told: bool) -> bool {
    let broken = lane.lose(token, told);
    if lane.is_over() {
        return false;
    }
    lane.hang_up(token, broken);
    match lane.woken().await {
        Wake::Connected(statements) => {
            session.renew(&statements);
            true
        }
        Wake::Reply(_) | Wake::Start(_) | Wake::Lost | Wake::Over => false,
    }
}
