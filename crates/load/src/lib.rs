//! Drives connections: reactors, schedule, sessions, recorder.
//!
//! Called by the worker process through `workload`, which says what a transaction is. Knows no
//! workload by name. The way of one statement: a [`Workload`]'s `async fn` asks its [`Session`],
//! which encodes the command into the thread's one buffer; the thread's loop (`thread`) hands it to
//! its reactor, feeds what comes back to the connection's decoder and polls the task again. Per
//! statement nothing is allocated, locked or formatted. Once a second each thread sends what it has
//! counted to the `coordinator`, which adds up and tells.

mod address;
mod arrivals;
mod authenticate;
mod batching;
mod clock;
mod connect;
mod coordinator;
mod cpu;
mod crew;
mod descriptors;
mod dialler;
mod drive;
mod epoll;
mod error;
mod flight;
mod handover;
mod histogram;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod hostile;
mod lane;
mod live;
mod packets;
mod peak;
mod policy;
mod reactor;
mod recorder;
mod register;
#[doc(hidden)]
pub mod rehearsal;
mod report;
mod rng;
mod schedule;
#[cfg(any(test, fuzzing))]
mod scripted_socket;
mod server_key;
mod session;
mod socket;
mod spec;
mod starts;
mod summary;
mod thread;
mod timeline;
mod times;
mod tls;
mod transport;
mod uring;
mod window;
mod workload;

pub use drive::drive;
pub use error::DriveError;
pub use histogram::{decode_base64, encode_base64};
pub use report::{
    DriveEvent, DriveReport, Fairness, GeneratorReport, KindReport, LatencyMs, Second,
    StatementReport, ThreadUse,
};
pub use rng::Rng;
pub use session::{Answer, Outcome, Session};
pub use spec::{
    Address, Arrivals, Batching, DriveSpec, Engine, OnLost, Pacing, RETRIED_ERRORS, ReactorChoice,
    Scheduling, Stage, StatementProtocol, Target, Tls, TlsMode,
};
pub use timeline::RATE_MAX;
pub use tls::TlsError;
pub use workload::{Operation, Statement, TransactionError, Workload};
