//! Brings packages up by hand: `cargo run -p ceteris-place --example try_package -- mysql-5.7.22`.
//!
//! For each name: resolves it, starts an instance, asks it for its version over its socket and over
//! TCP with the password, stops it, and prints the commands that a person would type.

use std::sync::Arc;
use std::time::Instant;

use ceteris_place::{
    Cache, CommandLog, InstanceSpec, Journal, PlaceError, Quiet, Tools, resolve_package,
};
use mysql::prelude::Queryable;

fn main() {
    let mut failed = false;
    for name in std::env::args().skip(1) {
        let log = CommandLog::default();
        let result = try_package(&name, &log);
        for entry in log.drain() {
            println!("  $ {} -> {}", entry.command, entry.status.unwrap_or("runs".into()));
        }
        if let Err(error) = result {
            failed = true;
            println!("{name}: {error}");
            if let Some(hint) = error.hint() {
                println!("hint: {hint}");
            }
        }
    }
    std::process::exit(i32::from(failed));
}

fn try_package(name: &str, log: &CommandLog) -> Result<(), PlaceError> {
    let cache = Cache::open()?;
    let journal = Journal::open(&cache)?;
    let start = Instant::now();
    let package = Arc::new(resolve_package(name, &cache, log, &Quiet)?);
    println!("{name}: {:?} {} ({:.1?})", package.flavour, package.version, start.elapsed());
    let setup: study::Setup =
        serde_json::from_value(serde_json::json!({ "workload": { "oltp_read_only": {} } }))
            .map_err(|error| PlaceError::Other(error.to_string()))?;
    let start = Instant::now();
    let spec = InstanceSpec { setup, package, dataset: None, ordinal: 0 };
    let instance = ceteris_place::start(&spec, Tools { cache: &cache, journal: &journal, log })?;
    println!("{name}: up as process {:?} ({:.1?})", instance.pid(), start.elapsed());
    let by_socket = instance.endpoint();
    let by_tcp = ceteris_place::Endpoint { socket: None, ..instance.endpoint() };
    for (way, endpoint) in [("socket", by_socket), ("tcp", by_tcp)] {
        let answer = mysql::Conn::new(endpoint.opts())
            .and_then(|mut c| c.query_first::<(String, String), _>("SELECT VERSION(), USER()"));
        println!("{name}: over {way}: {answer:?}");
        if answer.is_err() {
            return Err(PlaceError::Other(format!("no answer over {way}")));
        }
    }
    println!("{name}: {:#?}", instance.fingerprint());
    let start = Instant::now();
    instance.stop()?;
    println!("{name}: stopped ({:.1?})", start.elapsed());
    Ok(())
}
