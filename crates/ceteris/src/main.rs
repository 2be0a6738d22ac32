//! ceteris: a laboratory for MySQL-family servers.
//!
//! The binary: arguments, commands, the conductor, progress and the rendering of errors. What is
//! known about servers, load, statistics or reports lives in the other crates.

mod bench;
mod cli;
mod commands;
mod conductor;
mod doubts;
mod failure;
mod interrupt;
mod seconds;
mod talk;
mod worker;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Run(args) => commands::run::run(args),
        Command::Plan(args) => commands::plan::plan(args),
        Command::Bench(args) => commands::bench::bench(*args),
        Command::Show(args) => commands::show::show(args),
        Command::Report(args) => commands::report::report(args),
        Command::Packages(args) => commands::packages::packages(args),
        Command::Doctor(args) => commands::doctor::doctor(args),
        Command::Completions(args) => commands::shell::completions(args),
        Command::Man => commands::shell::man(),
        Command::Worker => worker::serve(),
        Command::Pack(args) => commands::parcel::pack(&args),
        Command::Unpack(args) => commands::parcel::unpack(&args),
        Command::Observe(args) => commands::observe::observe(args),
    };
    failure::exit_code(ended)
}
