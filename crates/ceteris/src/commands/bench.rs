//! `ceteris bench`

use crate::bench::{cleanup, prepare, resolve, run};
use crate::cli::{BenchAction, BenchArgs};
use crate::failure::Ended;
use crate::talk::Talk;

/// Prepares, drives or drops, as asked.
pub fn bench(args: BenchArgs) -> Ended {
    let action = args.action;
    let request = resolve(args)?;
    let talk = Talk::new(false);
    match action {
        BenchAction::Prepare => prepare(&request, &talk),
        BenchAction::Run => run(&request, &talk),
        BenchAction::Cleanup => cleanup(&request, &talk),
    }
}
