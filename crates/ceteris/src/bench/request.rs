//! From arguments to plain structs: everything is checked here, before anything is started.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};

use load::{Address, DriveSpec, Engine, Pacing, Target, Tls};
use study::{Param, Script, Workload};

use super::defaults::{self, Defaults};
use super::{dsn, password};
use crate::cli::{BenchAction, BenchArgs, BenchFormat, LoadArgs, ServerArgs};
use crate::commands::read_script;
use crate::failure::{EXIT_USAGE, Failure};

/// JSON readers hold numbers as doubles, and a seed that is printed must be the seed that is given.
const SEED_MAX: u64 = (1 << 53) - 1;
/// Where servers put their sockets; a client library that is told `localhost` goes there.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

/// All that a bench command needs to know.
pub struct Request {
    pub workload: Workload,
    /// Its only target is the server.
    pub spec: DriveSpec,
    /// `run`: tables of others may be written to.
    pub write_foreign_tables: bool,
    /// `cleanup`: the tables to drop; empty: ours.
    pub tables_named: Vec<String>,
    pub format: BenchFormat,
    /// Seconds between two lines; 0: none.
    pub report_interval: u32,
    /// 0: none.
    pub percentile: f64,
    pub histogram: bool,
}

impl Request {
    /// The server.
    pub fn target(&self) -> Result<&Target, Failure> {
        self.spec.targets.first().ok_or_else(|| Failure::new("no server"))
    }
}

/// Checks the arguments, and asks for the password where that is wanted.
pub fn resolve(args: BenchArgs) -> Result<Request, Failure> {
    password::refuse_argument(&args.server, &args.options.given)?;
    if !args.tables.tables_named.is_empty() && args.action != BenchAction::Cleanup {
        return Err(Failure::new("--tables-named is for cleanup")
            .code(EXIT_USAGE)
            .hint("the tables of a workload have the names that it gives them"));
    }
    let workload = workload(&args.workload, &args.options.given)?;
    let mut spec = spec(&args.load)?;
    let defaults = defaults::read(args.server.defaults_file.as_deref())?;
    let mut target = target(&args.server, &defaults)?;
    let whose = format!("{} at {}", target.user, target.address);
    target.password = password::password(&args.server, defaults, &whose)?;
    spec.targets = vec![target];
    Ok(Request {
        workload,
        spec,
        write_foreign_tables: args.tables.write_foreign_tables,
        tables_named: args.tables.tables_named,
        format: args.output.format,
        report_interval: args.output.report_interval,
        percentile: args.output.percentile,
        histogram: args.output.histogram,
    })
}

/// A script by its path, or a built-in workload by its name.
fn workload(given: &str, options: &[(String, String)]) -> Result<Workload, Failure> {
    if !given.ends_with(".toml") {
        return Ok(Workload::from_options(workload_name(given), options)?);
    }
    let params =
        options.iter().map(|(name, value)| (name.replace('-', "_"), Param::from_word(value)));
    let script = Script {
        file: Some(given.to_owned()),
        params: params.collect(),
        text: Some(read_script(Path::new(given))?),
    };
    let workload = Workload::Script(script);
    workload::check_script(&workload)?;
    Ok(workload)
}

/// sysbench is given paths of scripts: `/usr/share/sysbench/oltp_read_only.lua`.
fn workload_name(given: &str) -> &str {
    let name = given.rsplit('/').next().unwrap_or(given);
    name.strip_suffix(".lua").unwrap_or(name)
}

fn spec(args: &LoadArgs) -> Result<DriveSpec, Failure> {
    let wrong = |message: &str, hint: &str| {
        Err(Failure::new(message).code(EXIT_USAGE).hint(hint.to_owned()))
    };
    let rate = args.rate.filter(|rate| *rate > 0.0);
    if args.time.is_zero() {
        return wrong("--time is 0", "a run has an end; Ctrl-C ends it sooner, with a report");
    }
    if rate.is_some() && !args.think_time.is_zero() {
        return wrong("--think-time is for a closed loop", "give either --rate or --think-time");
    }
    if rate.is_none() && args.stage.iter().any(|stage| stage.rate_per_second.is_some()) {
        return wrong("a --stage changes the rate of a closed loop", "give --rate to begin with");
    }
    if args.stage.windows(2).any(|pair| pair[1].at < pair[0].at + pair[0].ramp) {
        return wrong(
            "a --stage begins before the one before it has reached its values",
            "give stages in the order of their times, each after the ramp before it",
        );
    }
    if args.stage.iter().any(|stage| stage.at >= args.warmup.saturating_add(args.time)) {
        return wrong(
            "a --stage begins when the run is over",
            "its time counts from the start; --time is how long is measured after --warmup",
        );
    }
    let plain = DriveSpec::default();
    Ok(DriveSpec {
        connections: args.connections,
        threads: args.workers,
        warmup: args.warmup,
        measure: args.time,
        seed: match args.seed.unwrap_or_default() {
            0 => new_seed(),
            seed => seed,
        },
        pacing: Pacing {
            rate_per_second: rate,
            arrivals: args.arrivals,
            think: args.think_time,
            stages: args.stage.clone(),
        },
        engine: Engine {
            reactor: args.reactor.unwrap_or(plain.engine.reactor),
            batching: args.batching.unwrap_or(plain.engine.batching),
            scheduling: args.scheduling.unwrap_or(plain.engine.scheduling),
        },
        protocol: args.protocol.or(args.db_ps_mode).unwrap_or(plain.protocol),
        on_lost: args.on_lost.unwrap_or(plain.on_lost),
        retried_errors: match &args.retry_errors {
            Some(codes) => codes.0.clone(),
            None => plain.retried_errors.clone(),
        },
        ..plain
    })
}

/// Never 0, and none that was there before.
fn new_seed() -> u64 {
    (RandomState::new().build_hasher().finish() & SEED_MAX).max(1)
}

fn target(args: &ServerArgs, defaults: &Defaults) -> Result<Target, Failure> {
    let (user, address, database, tls) = match &args.dsn {
        Some(text) => {
            let dsn = dsn::parse(text)?;
            let named = Some(dsn.user).filter(|user| !user.is_empty());
            let user = named.or_else(|| defaults.user.clone()).unwrap_or_else(login_name);
            (user, dsn.address, dsn.database, dsn.tls)
        }
        None => {
            let (user, address, database) = as_clients(args, defaults)?;
            (user, address, database, Tls::default())
        }
    };
    let database = if database.is_empty() { workload::DATABASE.to_owned() } else { database };
    Ok(Target { address, user, password: String::new(), database, tls })
}

fn login_name() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".to_owned())
}

/// sysbench's flags, with its defaults, and what an option file says.
fn as_clients(
    args: &ServerArgs,
    defaults: &Defaults,
) -> Result<(String, Address, String), Failure> {
    let none = args.defaults_file.is_none()
        && args.mysql_host.is_none()
        && args.mysql_port.is_none()
        && args.mysql_socket.is_none()
        && args.mysql_user.is_none()
        && args.mysql_db.is_none();
    if none {
        return Err(Failure::new("no server is named")
            .code(EXIT_USAGE)
            .hint("such as --dsn mysql://user@host:3306/database"));
    }
    let host = args.mysql_host.as_deref().or(defaults.host.as_deref()).unwrap_or("localhost");
    let named = args.mysql_socket.clone().or_else(|| defaults.socket.clone());
    let local = || SOCKETS.iter().map(PathBuf::from).find(|path| Path::new(path).exists());
    let socket = if host == "localhost" { named.or_else(local) } else { None };
    let address = match socket {
        Some(path) => Address::Socket(path),
        None => {
            Address::Tcp(host.to_owned(), args.mysql_port.or(defaults.port).unwrap_or(dsn::PORT))
        }
    };
    let usual = || match args.defaults_file {
        Some(_) => login_name(),
        None => "sbtest".to_owned(),
    };
    let user = args.mysql_user.clone().or_else(|| defaults.user.clone()).unwrap_or_else(usual);
    Ok((user, address, args.mysql_db.clone().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use clap::Parser;
    use load::{OnLost, StatementProtocol};

    use super::*;
    use crate::cli::{Cli, Command};

    fn asked(line: &str) -> Result<Request, Failure> {
        let words = ["ceteris", "bench"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Bench(args) => resolve(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sysbench_s_words_mean_what_they_mean_there() {
        let request = asked(
            "/usr/share/sysbench/oltp_read_only.lua --threads=16 --time=30 --table-size=1000 \
             --tables=4 --rand-type=pareto --range_size=7 --rate=250 --warmup-time=5 \
             --db-ps-mode=disable --mysql-host=db1 --mysql-user=me --mysql-db=t --rand-seed=7 \
             --mysql-ignore-errors=1213 --report_interval=5 --histogram --percentile=99 \
             --events=0 --db-driver=mysql run",
        )
        .unwrap();
        let (spec, target) = (&request.spec, request.target().unwrap());
        assert_eq!(request.workload.name(), "oltp_read_only");
        let knobs = serde_json::to_value(&request.workload).unwrap()["oltp_read_only"].clone();
        assert_eq!((&knobs["tables"], &knobs["rows"]), (&4.into(), &1000.into()));
        assert_eq!((&knobs["range_size"], &knobs["distribution"]), (&7.into(), &"pareto".into()));
        assert_eq!((spec.connections, spec.threads, spec.seed), (16, None, 7));
        assert_eq!((spec.measure, spec.warmup), (Duration::from_secs(30), Duration::from_secs(5)));
        assert_eq!(spec.pacing.rate_per_second, Some(250.0));
        assert_eq!(spec.protocol, StatementProtocol::Text);
        assert_eq!(spec.retried_errors, [1213]);
        assert_eq!(target.address, Address::Tcp("db1".into(), 3306));
        assert_eq!((target.user.as_str(), target.database.as_str()), ("me", "t"));
        assert!(request.histogram);
        assert_eq!((request.report_interval, request.percentile), (5, 99.0));
    }

    #[test]
    fn what_is_not_said_is_what_a_drive_does_by_itself() {
        let request = asked("oltp_point_select --dsn mysql://me@h/t --on-lost reconnect").unwrap();
        let plain = DriveSpec::default();
        assert_eq!(request.spec.engine, plain.engine);
        assert_eq!(request.spec.pacing, plain.pacing);
        assert_eq!(request.spec.protocol, plain.protocol);
        assert_eq!(request.spec.retried_errors, plain.retried_errors);
        assert_eq!(request.spec.on_lost, OnLost::Reconnect);
        assert!(request.spec.seed > 0);
        let other = asked("oltp_point_select --dsn mysql://me@h/t").unwrap();
        assert_ne!(request.spec.seed, other.spec.seed);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_next_step() {
        for (line, message) in [
            ("oltp_read_only", "no server is named"),
            ("oltp_read_only --dsn mysql://me:pw@h/t", "holds a password"),
            ("oltp_read_only --dsn mysql://h --mysql-password=pw", "--mysql-password"),
            (
                "oltp_read_only --dsn mysql://h --option mysql_password=pw",
                "--option mysql_password",
            ),
            ("oltp_read_only --dsn mysql://h --time 0", "--time is 0"),
            ("oltp_read_only --defaults-file /nonexistent/my.cnf", "/nonexistent/my.cnf"),
            ("oltp_read_only --dsn mysql://h --rate 5 --think-time 1", "closed loop"),
            ("oltp_read_only --dsn mysql://h --stage at=1,rate=5", "closed loop"),
            (
                "oltp_read_only --dsn mysql://h --warmup 2 --time 3 --stage at=5,connections=5",
                "is over",
            ),
            ("oltp_read_only prepare --dsn mysql://h --tables-named t", "for cleanup"),
            ("oltp_read_only --dsn mysql://h --option rowz=5", "no option `rowz`"),
            ("oltp_reads --dsn mysql://h", "no workload `oltp_reads`"),
            (
                "oltp_read_only --dsn mysql://h --stage at=9,connections=5 --stage at=1,connections=2",
                "begins before",
            ),
        ] {
            let failure = asked(line).err().unwrap();
            assert_eq!(failure.code, EXIT_USAGE, "{line}");
            assert!(failure.message.contains(message), "{line}: {}", failure.message);
            let next = failure.hint.is_some() || failure.rendered || line.contains("/nonexistent");
            assert!(next && !failure.message.contains("pw"), "{line}: {}", failure.message);
        }
    }

    #[test]
    fn an_option_file_says_what_the_arguments_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my.cnf");
        std::fs::write(&path, "[client]\nuser=me\nhost=db1\nport=3307\npassword=s3cret\n").unwrap();
        let asked = |rest: &str| {
            let line = format!("oltp_read_only --defaults-file {} {rest}", path.display());
            let target = asked(&line).unwrap().target().unwrap().clone();
            assert_eq!(target.password, "s3cret");
            (target.user, target.address, target.database)
        };
        let tcp = |host: &str, port| Address::Tcp(host.to_owned(), port);
        let sbtest = || "sbtest".to_owned();
        assert_eq!(asked(""), ("me".into(), tcp("db1", 3307), sbtest()));
        let other = asked("--mysql-host=db2 --mysql-user=you");
        assert_eq!(other, ("you".into(), tcp("db2", 3307), sbtest()));
        let named = asked("--dsn mysql://db3/t");
        assert_eq!(named, ("me".into(), tcp("db3", 3306), "t".into()));
        let whole = asked("--dsn mysql://you@db3/t");
        assert_eq!(whole.0, "you");
    }

    #[test]
    fn every_key_of_every_workload_is_a_flag() {
        for option in Workload::options() {
            let flag = option.name.replace(['_', '.'], "-");
            // A number's default, as not every number may be 1.
            let number = Some(option.default).filter(|text| text.parse::<f64>().is_ok());
            let value = option.words.first().copied().or(number).unwrap_or("1");
            let line =
                format!("{} --dsn mysql://h --option {}={value}", option.workloads[0], option.name);
            assert!(asked(&line).is_ok(), "{line}");
            let line = format!("{} --dsn mysql://h --{flag}={value}", option.workloads[0]);
            let words = ["ceteris", "bench"].into_iter().chain(line.split_whitespace());
            assert!(Cli::try_parse_from(words).is_ok(), "{line}");
        }
    }
}
