//! What `ceteris bench` does: prepare, drive and drop a workload's tables on a server that is
//! already there.
//!
//! `request` turns arguments into plain structs, `tables` looks after whose tables they are, `run`
//! drives, `outcome` and `figures` are what was measured (the JSON contract), and `text` the same
//! for people. The drive happens in this process and not in a worker as under
//! `ceteris run`: decision 011.

mod defaults;
mod dsn;
mod figures;
mod histogram;
mod outcome;
mod password;
mod request;
mod run;
mod tables;
mod text;

pub use request::{Request, resolve};
pub use run::run;
pub use tables::{cleanup, prepare};

use load::Target;

use crate::failure::{Failure, chain};

/// An error of the tables' side, for a person.
fn load_failure(error: &workload::LoadError) -> Failure {
    Failure { hint: error.hint(), ..Failure::new(chain(error)) }
}

/// Where a target is, for people: `db1:3306 as me, database sbtest`.
fn place(target: &Target) -> String {
    format!("{} as {}, database {}", target.address, target.user, target.database)
}
