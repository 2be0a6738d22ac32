//! `make bench`: every figure that ceteris claims about its own speed, beside a peer.
//!
//! Runs peer and ceteris in turn on the same server (A B, B A, A B ...), takes the ratio within
//! each pair, and prints the median of the ratios with their range beside the bar that the design
//! sets. Absolute times of a shared machine mean little; ratios of neighbours mean more.
//!
//! Rooms: `server` (what is driven), `sysbench` and `ceteris` (who drives), `bare` (the least that
//! any driver must do), `responder` (a server that costs nearly nothing), `pairs` (interleaving and
//! medians), `table` (the page), and one file per group of rows: `cost`, `capacity`, `loading`,
//! `instructions`, `soak`.

mod bare;
mod capacity;
mod ceteris;
mod cost;
mod handshake;
mod instructions;
mod loading;
mod pairs;
mod responder;
mod sample;
mod server;
mod soak;
mod sysbench;
mod table;

use std::process::ExitCode;

use clap::Parser;

/// What can go wrong, in words for the person at the terminal.
pub type Failed = Box<dyn std::error::Error>;

/// Measures ceteris beside its peers
#[derive(Debug, Parser)]
pub struct Args {
    /// The release binary that is measured
    #[arg(long, default_value = "target/release/ceteris")]
    pub ceteris: std::path::PathBuf,
    /// Server package that is driven
    #[arg(long, default_value = "mysql-8.0.12")]
    pub server: String,
    /// Pairs of runs for each row
    #[arg(long, default_value_t = 7)]
    pub pairs: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 4)]
    pub seconds: u64,
    /// Groups of rows: cost, cost-all, capacity, memory, schedule, loading, instructions,
    /// soak
    #[arg(long, value_delimiter = ',', default_value = "cost,capacity,memory,schedule,loading")]
    pub groups: Vec<String>,
    /// Write the page to this file, too
    #[arg(long)]
    pub output: Option<std::path::PathBuf>,
    /// Of the group soak
    #[command(flatten)]
    pub soak: soak::Soak,
    /// Does one thing so many times, for valgrind to watch
    #[arg(long, hide = true, num_args = 2, value_names = ["WHAT", "TIMES"])]
    pub repeat: Option<Vec<String>>,
}

fn main() -> ExitCode {
    match measure(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> Result<(), Failed> {
    if let Some([what, times]) = args.repeat.as_deref() {
        return instructions::repeat(what, times.parse()?);
    }
    let mut page = table::Page::new(args)?;
    for group in &args.groups {
        match group.as_str() {
            "cost" => cost::rows(args, cost::SHORT, &mut page)?,
            "cost-all" => cost::rows(args, cost::ALL, &mut page)?,
            "capacity" => capacity::rows(args, &mut page)?,
            "memory" => capacity::memory(args, &mut page)?,
            "schedule" => capacity::schedule(args, &mut page)?,
            "soak" => soak::rows(args)?,
            "instructions" => instructions::rows(&mut page)?,
            "loading" => loading::rows(args, &mut page)?,
            other => return Err(format!("no group of rows is called {other:?}").into()),
        }
    }
    page.finish(args.output.as_deref())
}
