//! Arguments as parsed; nothing happens here. Help, completions and the man page are made from
//! these definitions, so what a reader needs to know about a flag stands in its doc comment.

mod bench;
mod quantity;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use bench::{BenchAction, BenchArgs, BenchFormat, LoadArgs, ServerArgs};

/// A laboratory for MySQL-family servers
///
/// Write one question down as a study file; ceteris builds every condition for real, changes
/// exactly one thing between them, measures in random order, audits that only that thing changed
/// and answers with an interval and a verdict.
#[derive(Debug, Parser)]
#[command(name = "ceteris", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Start with: ceteris run studies/first-question.toml")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer a study's questions, or go on where it stopped
    Run(RunArgs),
    /// Drive load against a server that is already there
    Bench(Box<BenchArgs>),
    /// Print cells, order, time and commands of a study; changes nothing
    Plan(PlanArgs),
    /// Print the answers in a result file
    Show(ShowArgs),
    /// Write the report of a result file as one HTML page
    Report(ReportArgs),
    /// List or fetch server packages
    Packages(PackagesArgs),
    /// Say what is usable on this machine; find and remove what killed studies left
    Doctor(DoctorArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Print the man page (roff)
    Man,
    /// Drive load as told on standard input; started by `run`, not by people
    #[command(hide = true)]
    Worker,
    /// Write a directory as one stream, for `unpack` in a Pod; called by `run`
    #[command(hide = true)]
    Pack(ParcelArgs),
    /// Make a directory of the stream on standard input and print its content hash
    #[command(hide = true)]
    Unpack(ParcelArgs),
    /// Tell on a port what this machine and a server on it do; started in guests, not by people
    #[command(hide = true)]
    Observe(ObserveArgs),
}

/// What is packed or unpacked.
#[derive(Args, Debug)]
pub struct ParcelArgs {
    /// The directory
    pub directory: PathBuf,
}

/// A study and its overrides.
#[derive(Args, Debug)]
pub struct StudyArgs {
    /// The study file (TOML); reference: docs/study-file.md
    pub study: PathBuf,
    /// Override a path of the baseline, e.g. --set load.connections=64; stored with the result
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

/// `ceteris run`
#[derive(Args, Debug)]
#[command(after_help = "\
A study that was stopped or killed goes on where it stopped: run the same command again.
Exit codes: 0 every question has its blocks, 1 something failed, 2 the study or an argument is
wrong, 130 stopped by Ctrl-C.")]
pub struct RunArgs {
    #[command(flatten)]
    pub study: StudyArgs,
    /// The result file [default: results/STUDY.ceteris]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Start over; an existing result file is kept under another name
    #[arg(long)]
    pub again: bool,
    /// Also write the report to this file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Only say what goes wrong, and the answer
    #[arg(short, long)]
    pub quiet: bool,
}

/// `ceteris plan`
#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    pub study: StudyArgs,
    /// How to print it
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    pub format: PlanFormat,
    /// Print what this other tool would be given instead: a domain of libvirt for each KVM cell,
    /// manifests for each Kubernetes cell
    #[arg(long, value_enum, value_name = "TOOL")]
    pub emit: Option<EmitForm>,
}

/// Other tools that a placement can be written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmitForm {
    /// libvirt domain XML
    Libvirt,
    /// Kubernetes manifests, YAML
    Kubernetes,
}

/// Formats of `ceteris plan` and `ceteris doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

/// `ceteris show`
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The result file
    pub result: PathBuf,
    /// How to print it; the JSON follows docs/show.schema.json
    #[arg(long, value_enum, default_value_t = ShowFormat::Text)]
    pub format: ShowFormat,
}

/// Formats of `ceteris show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// The answers, for people
    Text,
    /// The answers, for programs
    Json,
    /// One line for each run
    Csv,
}

/// `ceteris report`
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The result file
    pub result: PathBuf,
    /// Where to write the page [default: RESULT with the ending .html]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `ceteris packages`
#[derive(Args, Debug)]
pub struct PackagesArgs {
    #[command(subcommand)]
    pub action: Option<PackagesAction>,
}

/// What to do with packages.
#[derive(Debug, Subcommand)]
pub enum PackagesAction {
    /// List what a study can name (the default)
    List {
        /// How to print it
        #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
        format: PlanFormat,
    },
    /// Fetch a package into the cache now
    Fetch {
        /// A catalogue name, a directory or an archive
        name: String,
    },
}

/// `ceteris doctor`
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// How to print it
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    pub format: PlanFormat,
    /// Remove what killed studies left: their processes and directories, nothing else
    #[arg(long)]
    pub clean: bool,
}

/// `ceteris observe`
#[derive(Args, Debug)]
pub struct ObserveArgs {
    /// A file to hear requests from and to answer to [default: standard input and output]
    pub port: Option<PathBuf>,
}

/// `ceteris completions`
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// For which shell
    pub shell: clap_complete::Shell,
}
