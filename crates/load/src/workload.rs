//! The seam between what is driven and how.

use wire::ServerError;

use crate::rng::Rng;
use crate::session::Session;

/// What a connection executes. One implementation per workload; the driver is compiled for each,
/// so that its transactions are plain state machines without allocation.
pub trait Workload: Sync {
    /// Statements that every connection prepares, in the order in which [`Session::execute`]
    /// numbers them.
    fn statements(&self) -> Vec<String>;

    /// One attempt at one transaction. All its choices come from `rng`; a repeated attempt gets
    /// another one. Must leave no transaction open when it returns `Ok`.
    fn transaction(
        &self,
        session: &mut Session,
        rng: Rng,
    ) -> impl Future<Output = Result<(), TransactionError>>;
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum TransactionError {
    /// The server refused a statement.
    #[error(transparent)]
    Server(#[from] Box<ServerError>),
    /// The workload asked for something that does not exist, or got what it cannot work with.
    #[error("{0}")]
    Workload(String),
}

impl TransactionError {
    /// Code of an error after which the transaction is tried again, as sysbench does: deadlock
    /// (1213), lock wait timeout (1205), record changed since last read (1020).
    pub fn retried_code(&self) -> Option<u16> {
        match self {
            TransactionError::Server(error) if matches!(error.code, 1213 | 1205 | 1020) => {
                Some(error.code)
            }
            _ => None,
        }
    }
}
