//! The seam between what is driven and how.

use wire::ServerError;

use crate::rng::Rng;
use crate::session::Session;

/// What a connection executes. One implementation per workload; the driver is compiled for each,
/// so that its transactions are plain state machines without allocation.
pub trait Workload: Sync {
    /// Statements in the order in which [`Session::execute`] numbers them.
    fn statements(&self) -> Vec<Statement>;

    /// Names of the kinds of transactions, which are counted and timed apart.
    fn kinds(&self) -> Vec<String> {
        vec!["transaction".to_owned()]
    }

    /// Kind of an operation, an index into [`Workload::kinds`]. All attempts at the operation are
    /// of this kind.
    fn kind(&self, _operation: Operation) -> usize {
        0
    }

    /// Whether a repeated attempt makes new choices. Where not, it is given the first one's random
    /// stream again, so that it repeats the same statements with the same values.
    fn redraws(&self) -> bool {
        true
    }

    /// One attempt at one transaction of `kind`. All its choices come from `rng`; a repeated
    /// attempt gets another one if the workload [redraws](Workload::redraws). What must differ
    /// between connections or from one transaction to the next may come from
    /// [`Session::operation`]. Must leave no transaction open when it returns `Ok`.
    fn transaction(
        &self,
        session: &mut Session,
        kind: usize,
        rng: Rng,
    ) -> impl Future<Output = Result<(), TransactionError>>;
}

/// A statement that every connection prepares, or sends as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// SQL with `?` for each value.
    pub text: String,
    /// What it is called in reports; statements of the same name are counted and timed together
    /// (the same one on several tables).
    pub name: String,
}

/// Which operation of a drive: the `sequence`-th transaction of connection `connection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Seed of the drive.
    pub seed: u64,
    /// Ordinal of the connection in the whole drive.
    pub connection: u64,
    /// From 0.
    pub sequence: u64,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum TransactionError {
    /// The server refused a statement.
    #[error(transparent)]
    Server(#[from] Box<ServerError>),
    /// The connection broke off.
    #[error("lost connection")]
    Lost,
    /// The workload asked for something that does not exist, or got what it cannot work with.
    #[error("{0}")]
    Workload(String),
}
