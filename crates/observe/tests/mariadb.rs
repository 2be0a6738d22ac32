//! A real server of this machine: its fingerprint, its status series, and an audit of two.
//!
//! Starts `mariadbd` or `mysqld` in a temporary directory, as an unprivileged user when run by root.
//! Says loudly on standard error when there is none.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ceteris_observe::{
    Compared, Factor, Fingerprint, Kind, Sampler, SamplerTarget, audit, host_fingerprint,
    server_fingerprint,
};
use mysql::prelude::Queryable;
use serde_json::json;

/// One running server in a directory of its own.
struct Server {
    directory: tempfile::TempDir,
    process: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.exists())
}

impl Server {
    /// `None`, said loudly, where no server is installed.
    fn start(options: &[&str]) -> Option<Server> {
        let (Some(daemon), Some(install)) = (program("mariadbd"), program("mariadb-install-db"))
        else {
            eprintln!("SKIPPED: no mariadbd on this machine, the real server was not observed");
            return None;
        };
        let directory = tempfile::Builder::new().prefix("observe").tempdir().unwrap();
        let data = directory.path().join("data");
        // A server that starts removes every `#sql` file in its directory for temporary ones, those
        // of other servers too: each needs a directory of its own.
        let temporary = directory.path().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let runs_as = place::ServerUser::find().unwrap();
        let user: Vec<String> =
            runs_as.switch_name().iter().map(|n| format!("--user={n}")).collect();
        if let Some(name) = runs_as.switch_name() {
            let mut chown = Command::new("chown");
            let status = chown.arg("-R").arg(name).arg(directory.path()).status().unwrap();
            assert!(status.success());
        }
        let made = Command::new(install)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(&user)
            .env("TMPDIR", &temporary)
            .output()
            .unwrap();
        let told = [made.stdout, made.stderr].concat();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&told));
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let process = Command::new(daemon)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", directory.path().join("s").display()))
            .arg(format!("--pid-file={}", directory.path().join("pid").display()))
            .arg("--skip-networking")
            .args(&user)
            .args(options)
            .env("TMPDIR", &temporary)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Server { directory, process };
        loop {
            if server.connect().is_ok() {
                return Some(server);
            }
            if let Some(status) = server.process.try_wait().unwrap() {
                let log = std::fs::read_to_string(server.directory.path().join("log")).unwrap();
                panic!("the server ended ({status}): {log}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn opts(&self) -> mysql::Opts {
        let socket = self.directory.path().join("s").display().to_string();
        mysql::OptsBuilder::new().socket(Some(socket)).user(Some("root")).into()
    }

    fn connect(&self) -> Result<mysql::Conn, mysql::Error> {
        mysql::Conn::new(self.opts())
    }

    fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn fingerprint(&self) -> Fingerprint {
        let mut connection = self.connect().unwrap();
        let mut all = server_fingerprint(&mut connection, self.directory.path()).unwrap();
        all.extend(host_fingerprint(&self.data_dir(), Some(self.process.id())));
        all
    }
}

#[test]
fn two_instances_of_one_condition_look_the_same() {
    let (Some(one), Some(two)) = (Server::start(&[]), Server::start(&[])) else { return };
    let (seen, other) = (one.fingerprint(), two.fingerprint());
    let differing: Vec<_> = seen
        .iter()
        .filter(|(name, value)| other.get(*name) != Some(value))
        .map(|(name, value)| format!("{name}: {value} / {:?}", other.get(name)))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
    assert_eq!(seen.len(), other.len());
    assert_eq!(seen["server.variable.datadir"], "<instance>/data/");
    assert_eq!(seen["server.plugin.InnoDB"], "ACTIVE");
    assert_eq!(seen["server.replication"], "off");
    assert!(seen["server.version"].starts_with(|c: char| c.is_ascii_digit()));
    assert!(seen.keys().filter(|name| name.starts_with("server.variable.")).count() > 300);
    assert!(seen.contains_key("host.process.limit.nofile"));
    // The program itself and the C library at least, and each known by what its linker wrote.
    let libraries: Vec<_> =
        seen.iter().filter(|(name, _)| name.starts_with("host.process.library.")).collect();
    assert!(libraries.len() > 5, "{libraries:?}");
    assert!(libraries.iter().any(|(name, _)| name.starts_with("host.process.library.libc.so")));
    let nameless = |value: &str| value.contains("unreadable") || value.contains("replaced");
    assert!(!libraries.iter().any(|(_, value)| nameless(value)), "{libraries:?}");
    let own = one.directory.path().display().to_string();
    let shows_path: Vec<_> = seen.iter().filter(|(_, value)| value.contains(&own)).collect();
    assert!(shows_path.is_empty(), "{shows_path:?}");
}

#[test]
fn the_audit_tells_a_factor_from_a_variable_set_behind_its_back() {
    let (Some(one), Some(two)) = (
        Server::start(&["--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M"]),
        Server::start(&["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M"]),
    ) else {
        return;
    };
    let factor = Factor {
        paths: vec!["server.config.innodb_flush_log_at_trx_commit".to_owned()],
        levels: [("one".to_owned(), vec![json!(1)]), ("two".to_owned(), vec![json!("2")])].into(),
    };
    let run = |level: &str, before: Fingerprint, after: Fingerprint| Compared {
        level: level.to_owned(),
        at: "{}".to_owned(),
        block: 0,
        before,
        after,
    };
    let (before_one, before_two) = (one.fingerprint(), two.fingerprint());
    let honest = [
        run("one", before_one.clone(), one.fingerprint()),
        run("two", before_two.clone(), two.fingerprint()),
    ];
    let (found, compared) = audit(&factor, &honest);
    let of = |kind: Kind| -> Vec<&str> {
        found.iter().filter(|f| f.kind == kind).map(|f| f.name.as_str()).collect()
    };
    assert_eq!(of(Kind::Unexplained), [""; 0], "{found:#?}");
    assert_eq!(of(Kind::Factor), ["server.variable.innodb_flush_log_at_trx_commit"]);
    // MariaDB 10.8 and later; nothing else follows from it.
    assert!(of(Kind::Consequence).iter().all(|name| name.ends_with("innodb_log_file_buffering")));
    assert!(compared > 400, "{compared}");

    two.connect().unwrap().query_drop("SET GLOBAL innodb_io_capacity = 777").unwrap();
    let tampered =
        [run("one", before_one, one.fingerprint()), run("two", before_two, two.fingerprint())];
    let (found, _) = audit(&factor, &tampered);
    assert_eq!(found[0].kind, Kind::Unexplained);
    assert_eq!(found[0].name, "server.variable.innodb_io_capacity");
    assert_eq!(found[0].values["two, block 0, after"], "777");
}

#[test]
fn status_is_sampled_as_rates_and_levels() {
    let Some(server) = Server::start(&[]) else { return };
    let target = SamplerTarget {
        name: "server".to_owned(),
        pid: Some(server.process.id()),
        data_dir: Some(server.data_dir()),
        connection: Some(server.opts()),
        inside: None,
    };
    let sampler = Sampler::start(vec![target], Some(std::process::id()));
    let mut connection = server.connect().unwrap();
    connection.query_drop("CREATE DATABASE d").unwrap();
    connection.query_drop("CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
    for n in 0..45 {
        connection.exec_drop("INSERT INTO d.t VALUES (?)", (n,)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let (series, problems) = sampler.stop();
    assert!(problems.is_empty(), "{problems:?}");
    let of = |name: &str| {
        let found = series.iter().find(|series| series.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {:?}", names(&series)))
    };
    let inserts = of("server.status.Com_insert");
    assert_eq!(inserts.unit, "1/s");
    assert!(inserts.values.iter().sum::<f64>() > 0.0);
    // Rates times their spans add up to no more than what was inserted.
    let times = &inserts.at_monotonic_s;
    let total: f64 =
        times.windows(2).zip(&inserts.values[1..]).map(|(t, v)| (t[1] - t[0]) * v).sum();
    assert!(total <= 45.5, "{total}");
    let connected = of("server.status.Threads_connected");
    assert_eq!(connected.unit, "count");
    assert!(connected.values.iter().all(|value| *value >= 1.0));
    assert_eq!(of("server.status.Bytes_received").unit, "bytes/s");
    assert!(of("server.memory.resident").values[0] > 1e7);
    assert!(!series.iter().any(|series| series.name == "server.status.Com_create_role"));
    assert!(series.iter().all(|series| series.values.len() == series.at_monotonic_s.len()));
}

fn names(series: &[ceteris_observe::Sampled]) -> Vec<&str> {
    series.iter().map(|series| series.name.as_str()).collect()
}
