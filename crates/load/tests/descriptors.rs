//! Limits of open files. A file of its own, and one test, because the limit is the process's.
#![allow(clippy::unwrap_used)]

#[path = "drive/scripted.rs"]
#[allow(dead_code)]
mod scripted;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ceteris_load::{
    DriveError, DriveReport, DriveSpec, Rng, Session, Statement, TransactionError, Workload, drive,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use scripted::{Act, Scripted};

struct One;

impl Workload for One {
    fn statements(&self) -> Vec<Statement> {
        Vec::new()
    }

    async fn transaction(&self, s: &mut Session, _: usize, _: Rng) -> Result<(), TransactionError> {
        s.query("SELECT 1").await.map(|_| ())
    }
}

fn run(server: &Scripted) -> Result<DriveReport, DriveError> {
    let spec = DriveSpec {
        targets: vec![server.target()],
        connections: 200,
        threads: Some(2),
        pin: Some(Vec::new()),
        measure: Duration::from_millis(200),
        seed: 1,
        ..DriveSpec::default()
    };
    drive(&One, &spec, &AtomicBool::new(false), &mut |_| {})
}

#[test]
fn the_soft_limit_is_raised_and_the_hard_one_is_named() {
    let server = Scripted::start(usize::MAX, |_, _| Act::Answer);
    let hard = getrlimit(Resource::Nofile).maximum;
    assert!(hard.is_none_or(|hard| hard >= 1024), "this machine is too small for the test");
    let low = Rlimit { current: Some(64), maximum: hard };
    setrlimit(Resource::Nofile, low).unwrap();
    assert!(run(&server).unwrap().transactions > 0);
    assert_eq!(getrlimit(Resource::Nofile).current, hard);

    // So low that not even the first connection finds one.
    let lowest = Rlimit { current: Some(3), maximum: Some(3) };
    setrlimit(Resource::Nofile, lowest).unwrap();
    let error = run(&server).unwrap_err();
    let DriveError::Descriptors { needed, limit: Some(3), .. } = &error else {
        panic!("{error:?}")
    };
    assert!(*needed > 200);
    let hint = error.hint().unwrap();
    assert!(hint.contains(&format!("needs {needed} open files")) && hint.contains("may have 3"));
}
