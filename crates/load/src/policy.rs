//! What an error means for the transaction that it ended.

use crate::spec::{DriveSpec, OnLost};
use crate::workload::TransactionError;

/// Error code after which the server may have rolled back only the statement.
const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// Codes with which a server announces that it closes the connection: it shuts down (1053, 1077,
/// 1079), was told to close it (1080, 1152, 1184, 1927 of MariaDB, 3169), could not read or write
/// it (1158 to 1161), had waited too long (4031). 2006 and 2013 are those of clients, which proxies
/// pass on.
const FAREWELLS: [u16; 15] =
    [1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 3169, 4031];

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    retried: Box<[u16]>,
    reconnects: bool,
}

/// What follows from an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The transaction is tried again, after a rollback where `rollback` or where the server says
    /// that one is open.
    Retry { rollback: bool },
    /// It has failed with its connection, which is made again. `told`: the server said so in an
    /// answer.
    Lost { told: bool },
    /// The drive ends.
    Fatal,
}

impl Policy {
    /// As the drive is asked for.
    pub(crate) fn new(spec: &DriveSpec) -> Policy {
        Policy {
            retried: spec.retried_errors[..].into(),
            reconnects: spec.on_lost == OnLost::Reconnect,
        }
    }

    /// Judges the error of an attempt.
    pub(crate) fn judge(&self, error: &TransactionError) -> Verdict {
        match error {
            TransactionError::Lost if self.reconnects => Verdict::Lost { told: false },
            TransactionError::Server(error) => match error.code {
                code if self.reconnects && FAREWELLS.contains(&code) => {
                    Verdict::Lost { told: true }
                }
                code if self.retried.contains(&code) => {
                    Verdict::Retry { rollback: code == LOCK_WAIT_TIMEOUT }
                }
                _ => Verdict::Fatal,
            },
            TransactionError::Lost | TransactionError::Workload(_) => Verdict::Fatal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ServerError;

    #[test]
    fn errors_are_judged_as_asked() {
        let server = |code| {
            let (sqlstate, message) = ("HY000".to_owned(), String::new());
            TransactionError::Server(Box::new(ServerError { code, sqlstate, message }))
        };
        let fails = Policy::new(&DriveSpec::default());
        let reconnects =
            Policy::new(&DriveSpec { on_lost: OnLost::Reconnect, ..DriveSpec::default() });
        for policy in [&fails, &reconnects] {
            assert_eq!(policy.judge(&server(1213)), Verdict::Retry { rollback: false });
            assert_eq!(policy.judge(&server(1205)), Verdict::Retry { rollback: true });
            assert_eq!(policy.judge(&server(1146)), Verdict::Fatal);
            assert_eq!(policy.judge(&TransactionError::Workload(String::new())), Verdict::Fatal);
        }
        assert_eq!(fails.judge(&TransactionError::Lost), Verdict::Fatal);
        assert_eq!(fails.judge(&server(1053)), Verdict::Fatal);
        assert_eq!(reconnects.judge(&TransactionError::Lost), Verdict::Lost { told: false });
        assert_eq!(reconnects.judge(&server(1053)), Verdict::Lost { told: true });
    }
}
