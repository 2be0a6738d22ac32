//! Arguments of `ceteris bench`.
//!
//! The knobs of the workloads are not written down here: a flag is made for each key that the
//! study file knows below `[workload.*]` (see [`WorkloadArgs`]). sysbench's names stand as hidden
//! aliases and hidden flags; `docs/bench.md` lists them.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use load::{Arrivals, Batching, OnLost, ReactorChoice, Scheduling, Stage, StatementProtocol};
use study::{Workload, WorkloadOption};

use super::quantity::{
    ErrorCodes, batching, connections, error_codes, one_of, rate, report_interval, stage, time,
};

/// `ceteris bench`
///
/// Drives a workload against a server that is already there, and tells what it measured.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = "\
ceteris bench <WORKLOAD> [prepare|run|cleanup] --dsn <DSN> [OPTIONS]")]
pub struct BenchArgs {
    /// What is driven, by its name in a study file, or a script of your own: a path that ends in
    /// .toml, whose parameters are given as --option NAME=VALUE
    pub workload: String,
    /// What to do
    #[arg(value_enum, default_value_t = BenchAction::Run)]
    pub action: BenchAction,
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub tables: TableArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub options: WorkloadArgs,
}

const AFTER_HELP: &str = "\
Examples:
  ceteris bench oltp_read_only prepare --dsn mysql://me@db1:3306/sbtest --tables 10 --rows 1000000
  ceteris bench oltp_read_only --dsn mysql://me@db1:3306/sbtest --tables 10 --rows 1000000 \\
      --connections 64 --time 60
  ceteris bench oltp_read_only cleanup --dsn mysql://me@db1:3306/sbtest

Give `prepare` and `run` the same --tables and --rows. sysbench's own flags are understood where
they mean the same (--threads is --connections); docs/bench.md lists them and describes the JSON.

Exit codes: 0 done, 1 something failed, 2 an argument is wrong and nothing was started,
130 stopped by Ctrl-C. A run that ends early prints what it had measured until then.";

/// What to do with a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchAction {
    /// Create the tables and fill them; those of an earlier prepare are made anew
    Prepare,
    /// Drive the workload
    Run,
    /// Drop the tables that prepare made, nothing else
    Cleanup,
}

/// Where the server is and who we are.
#[derive(Args, Debug)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// Where and who, without a password: mysql://user@host:3306/database, or
    /// mysql://user@localhost/database?socket=/path; further parameters are
    /// ssl-mode (disabled, required, verify_ca, verify_identity) and ssl-ca (a PEM file)
    #[arg(long, value_name = "DSN")]
    pub dsn: Option<String>,
    /// Read user, host, port, socket and password from the [client] section of an option file, as
    /// MySQL's own clients do; what --dsn says goes first
    #[arg(long, value_name = "FILE")]
    pub defaults_file: Option<PathBuf>,
    /// Read the password from the first line of a file. Else it is taken from --defaults-file or
    /// the environment variable CETERIS_PASSWORD, and is empty without one
    #[arg(long, value_name = "FILE", conflicts_with = "ask_password")]
    pub password_file: Option<PathBuf>,
    /// Ask for the password on the terminal
    #[arg(long)]
    pub ask_password: bool,
    #[arg(long, hide = true, conflicts_with = "dsn")]
    pub mysql_host: Option<String>,
    #[arg(long, hide = true, conflicts_with = "dsn")]
    pub mysql_port: Option<u16>,
    #[arg(long, hide = true, conflicts_with = "dsn")]
    pub mysql_socket: Option<PathBuf>,
    #[arg(long, hide = true, conflicts_with = "dsn")]
    pub mysql_user: Option<String>,
    #[arg(long, hide = true, conflicts_with = "dsn")]
    pub mysql_db: Option<String>,
    /// Refused: an argument is seen by every user of the machine.
    #[arg(long, hide = true, value_name = "REFUSED", num_args = 0..=1)]
    pub mysql_password: Option<Option<String>>,
    #[arg(long, hide = true, value_parser = ["mysql"])]
    pub db_driver: Option<String>,
}

/// How much, for how long, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Connections at work, each one transaction after the other
    #[arg(short, long, value_name = "N", default_value_t = 8, alias = "threads",
        alias = "num-threads", value_parser = connections)]
    pub connections: u32,
    /// Time measured: seconds, or with a unit (90s, 5m)
    #[arg(long, value_name = "TIME", default_value = "10", alias = "max-time", value_parser = time)]
    pub time: Duration,
    /// Time driven before measuring
    #[arg(long, value_name = "TIME", default_value = "0", alias = "warmup-time", value_parser = time)]
    pub warmup: Duration,
    /// Open loop: transactions due per second over all connections, whether or not the server keeps
    /// up [default: closed loop, each connection goes as fast as it is answered]
    #[arg(long, value_name = "N", alias = "tx-rate", value_parser = rate)]
    pub rate: Option<f64>,
    /// Open loop: gaps between transactions
    #[arg(long, default_value = "poisson", value_parser = one_of(ARRIVALS))]
    pub arrivals: Arrivals,
    /// Closed loop: pause of a connection between two transactions
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time)]
    pub think_time: Duration,
    /// Change rate or connections while driving, e.g. at=30s,ramp=10s,rate=500,connections=32;
    /// times count from the start, warm-up included; may be given several times
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    pub stage: Vec<Stage>,
    /// Threads of the generator [default: chosen and told]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: Option<u32>,
    /// How statements travel [default: prepared]
    #[arg(long, value_parser = one_of(PROTOCOLS))]
    pub protocol: Option<StatementProtocol>,
    /// What a lost connection means: the end of the run, or a failed transaction and a new
    /// connection [default: fail]
    #[arg(long, value_parser = one_of(ON_LOST))]
    pub on_lost: Option<OnLost>,
    /// Codes of errors after which a transaction is tried again [default: 1213,1205,1020]
    #[arg(long, value_name = "CODES", alias = "mysql-ignore-errors", value_parser = error_codes)]
    pub retry_errors: Option<ErrorCodes>,
    /// What waits for answers [default: auto]
    #[arg(long, value_parser = one_of(REACTORS))]
    pub reactor: Option<ReactorChoice>,
    /// Answers wait for company at most this share of the median response time; the wait is
    /// reported [default: off]
    #[arg(long, value_name = "SHARE", value_parser = batching)]
    pub batching: Option<Batching>,
    /// Scheduling class of the generator's threads [default: batch]
    #[arg(long, value_parser = one_of(SCHEDULING))]
    pub scheduling: Option<Scheduling>,
    /// Seed of everything that is drawn; 0 or none: a new one, which is printed
    #[arg(long, value_name = "N", alias = "rand-seed")]
    pub seed: Option<u64>,
    #[arg(long, hide = true, value_parser = one_of(PS_MODES), conflicts_with = "protocol")]
    pub db_ps_mode: Option<StatementProtocol>,
    /// sysbench's limit by count; only its "no limit" means the same here.
    #[arg(long, hide = true, alias = "max-requests", value_parser = ["0"])]
    pub events: Option<String>,
}

const ARRIVALS: &[(&str, Arrivals)] =
    &[("poisson", Arrivals::Poisson), ("uniform", Arrivals::Uniform)];
const PROTOCOLS: &[(&str, StatementProtocol)] =
    &[("prepared", StatementProtocol::Prepared), ("text", StatementProtocol::Text)];
const PS_MODES: &[(&str, StatementProtocol)] =
    &[("auto", StatementProtocol::Prepared), ("disable", StatementProtocol::Text)];
const ON_LOST: &[(&str, OnLost)] = &[("fail", OnLost::Fail), ("reconnect", OnLost::Reconnect)];
const REACTORS: &[(&str, ReactorChoice)] = &[
    ("auto", ReactorChoice::Auto),
    ("epoll", ReactorChoice::Epoll),
    ("io-uring", ReactorChoice::IoUring),
];
const SCHEDULING: &[(&str, Scheduling)] =
    &[("normal", Scheduling::Normal), ("batch", Scheduling::Batch)];

/// Whose tables.
#[derive(Args, Debug)]
#[command(next_help_heading = "Tables")]
pub struct TableArgs {
    /// run: change rows of tables that ceteris did not create; reading from them needs no leave
    #[arg(long)]
    pub write_foreign_tables: bool,
    /// cleanup: drop exactly these tables, whoever created them
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    pub tables_named: Vec<String>,
}

/// What is printed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// How the result is printed on standard output; the JSON follows docs/bench.schema.json
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub format: BenchFormat,
    /// Tell how it goes every so many seconds, on standard error; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = report_interval)]
    pub report_interval: u32,
    /// Percentile that the latency section shows, as sysbench does
    #[arg(long, value_name = "P", default_value_t = 95.0, value_parser = percentile)]
    pub percentile: f64,
    /// Print the distribution of response times
    #[arg(long, value_name = "on|off", num_args = 0..=1, require_equals = true,
        default_value = "off", default_missing_value = "on", value_parser = one_of(SWITCH),
        hide_possible_values = true, action = ArgAction::Set)]
    pub histogram: bool,
}

const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];

/// Formats of `ceteris bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

fn percentile(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percentile) if (0.0..=100.0).contains(&percentile) => Ok(percentile),
        _ => Err("write a number from 0 to 100; 0 shows none".to_owned()),
    }
}

/// The workload's own knobs, in the order of their names; of one that is given twice the last
/// holds.
#[derive(Debug, Default)]
pub struct WorkloadArgs {
    /// Key and value.
    pub given: Vec<(String, String)>,
}

/// Names that sysbench, 1.x and 0.4.12, has for keys of ours, where they differ by more than `-`
/// and `_`.
const SYSBENCH_KEYS: &[(&str, &str)] = &[
    ("rows", "table-size"),
    ("rows", "oltp-table-size"),
    ("distribution", "rand-type"),
    ("range_size", "oltp-range-size"),
    ("skip_trx", "oltp-skip-trx"),
    ("test_mode", "oltp-test-mode"),
    ("nontrx_mode", "oltp-nontrx-mode"),
    ("read_only", "oltp-read-only"),
    ("dist_type", "oltp-dist-type"),
    ("dist_iter", "oltp-dist-iter"),
    ("dist_pct", "oltp-dist-pct"),
    ("dist_res", "oltp-dist-res"),
];

impl Args for WorkloadArgs {
    fn augment_args(command: Command) -> Command {
        let command = command.next_help_heading("Workload");
        let command = command.arg(
            Arg::new("option")
                .long("option")
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("Any key of the workload's table in docs/study-file.md"),
        );
        let taken: Vec<String> = command
            .get_arguments()
            .flat_map(|arg| {
                let names = arg.get_all_aliases().unwrap_or_default().into_iter();
                names.chain(arg.get_long()).map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        // A key that is called as one of our own flags is still to be had by `--option`.
        let options =
            Workload::options().into_iter().filter(|option| !taken.contains(&flag(option)));
        let command =
            options.fold(command, |command, option| command.arg(argument(&option, &taken)));
        let known = Workload::known().map(|(name, meaning)| format!("{name}: {meaning}"));
        let known = known.collect::<Vec<_>>().join("\n- ").replace('`', "");
        // sysbench takes `_` for `-` in all names.
        command.mut_args(|arg| {
            let names = arg.get_all_aliases().unwrap_or_default().into_iter();
            let aliases: Vec<String> = names
                .chain(arg.get_long())
                .filter(|name| name.contains('-'))
                .map(|name| name.replace('-', "_"))
                .collect();
            let arg = arg.aliases(aliases);
            if arg.get_id() != "workload" {
                return arg;
            }
            let help = arg.get_help().cloned().unwrap_or_default();
            arg.long_help(format!("{help}:\n- {known}"))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        WorkloadArgs::augment_args(command)
    }
}

fn flag(option: &WorkloadOption) -> String {
    option.name.replace(['_', '.'], "-")
}

fn argument(option: &WorkloadOption, taken: &[String]) -> Arg {
    let aliases = SYSBENCH_KEYS
        .iter()
        .filter(|(key, alias)| *key == option.name && !taken.iter().any(|name| name == alias))
        .map(|(_, alias)| *alias);
    let words = if option.words.is_empty() {
        String::new()
    } else {
        format!(": {}", option.words.join(", "))
    };
    let whose = match option.workloads.as_slice() {
        [only] => format!("{only}: "),
        _ => String::new(),
    };
    let help = format!("{whose}{}{words} [default: {}]", option.meaning, option.default);
    let arg = Arg::new(format!("workload.{}", option.name))
        .long(flag(option))
        .aliases(aliases)
        .value_name(if option.boolean { "on|off" } else { "VALUE" })
        .action(ArgAction::Append)
        .help(help.replace('`', ""));
    if option.boolean {
        arg.num_args(0..=1).require_equals(true).default_missing_value("on")
    } else {
        arg
    }
}

impl FromArgMatches for WorkloadArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<WorkloadArgs, Error> {
        let mut args = WorkloadArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for option in Workload::options() {
            let id = format!("workload.{}", option.name);
            // Not among the arguments where its name was taken.
            if let Ok(Some(values)) = matches.try_get_many::<String>(&id) {
                self.given.extend(values.map(|value| (option.name.clone(), value.clone())));
            }
        }
        for text in matches.get_many::<String>("option").into_iter().flatten() {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            self.given.push((key.trim().to_owned(), value.to_owned()));
        }
        Ok(())
    }
}
