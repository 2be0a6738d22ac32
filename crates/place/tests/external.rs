//! The external placement against a private server, which is a host instance of this same crate.
//!
//! Where no server is installed each test says SKIPPED.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ceteris_place::{
    Cache, CommandLog, Instance, InstanceSpec, Journal, Leftover, Made, PlaceError, Quiet, Tools,
    check, clean, leftovers, loads_in_place, package_for, planned_commands, resolve_package, start,
};
use mysql::prelude::Queryable;
use serde_json::json;
use study::{ConfigValue, Setup};

/// A server that stands for somebody else's, and a cache for the conductor that meets it.
struct Meeting {
    // Stopped before its cache goes.
    theirs: Option<Box<dyn Instance>>,
    password_file: PathBuf,
    _dir: tempfile::TempDir,
    cache: Cache,
    journal: Journal,
    log: CommandLog,
}

impl Meeting {
    fn new() -> Option<Meeting> {
        let dir = tempfile::Builder::new().prefix("ct").tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let (journal, log) = (Journal::open(&cache).unwrap(), CommandLog::default());
        let package = match resolve_package("installed", &cache, &log, &Quiet) {
            Ok(package) => Arc::new(package),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED: {error}");
                return None;
            }
        };
        let setup = setup(json!({ "host": {} }), &[]);
        let spec = InstanceSpec { setup, package, dataset: None, ordinal: 0 };
        let tools = Tools { cache: &cache, journal: &journal, log: &log };
        let theirs = start(&spec, tools).unwrap();
        let password_file = dir.path().join("password");
        std::fs::write(&password_file, format!("{}\n", theirs.endpoint().password)).unwrap();
        Some(Meeting { theirs: Some(theirs), password_file, _dir: dir, cache, journal, log })
    }

    fn dsn(&self) -> String {
        let socket = self.theirs.as_ref().unwrap().endpoint().socket.unwrap();
        format!("mysql://root@localhost/?socket={}", socket.display())
    }

    fn spec(&self, allow: bool, config: &[(&str, ConfigValue)]) -> InstanceSpec {
        let setup = setup(external(&self.dsn(), &self.password_file, allow), config);
        let package = package_for(&setup, &self.cache, &self.log, &Quiet).unwrap();
        InstanceSpec { setup, package: Arc::new(package), dataset: None, ordinal: 0 }
    }

    fn tools(&self) -> Tools<'_> {
        Tools { cache: &self.cache, journal: &self.journal, log: &self.log }
    }

    /// What the server has, asked past the placement.
    fn of(&self, variable: &str) -> String {
        let endpoint = self.theirs.as_ref().unwrap().endpoint();
        let mut connection = mysql::Conn::new(endpoint.opts()).unwrap();
        connection.query_first(format!("SELECT @@GLOBAL.{variable}")).unwrap().unwrap()
    }
}

fn external(dsn: &str, password_file: &Path, allow: bool) -> serde_json::Value {
    json!({ "external": {
        "dsn": dsn, "password_file": password_file, "allow_set_global": allow } })
}

fn setup(placement: serde_json::Value, config: &[(&str, ConfigValue)]) -> Setup {
    let setup = json!({ "workload": { "oltp_read_only": {} }, "placement": placement });
    let mut setup: Setup = serde_json::from_value(setup).unwrap();
    setup.server.config =
        config.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    setup
}

fn text(text: &str) -> ConfigValue {
    ConfigValue::Text(text.to_owned())
}

#[test]
fn a_server_is_used_as_it_is_and_goes_on_running() {
    let Some(mut meeting) = Meeting::new() else { return };
    let spec = meeting.spec(false, &[]);
    assert!(loads_in_place(&spec.setup.placement));
    check(&spec, meeting.tools()).unwrap();
    let mut instance = start(&spec, meeting.tools()).unwrap();
    assert_eq!(instance.alive(), Ok(()));
    assert_eq!((instance.pid(), instance.data_dir()), (None, None));
    let fingerprint = instance.fingerprint();
    assert_eq!(fingerprint["place.placement.kind"], "external");
    let version = meeting.of("version");
    assert!(version.starts_with(&fingerprint["place.package.version"]), "{version}");
    assert_eq!(fingerprint["place.package.hash"].len(), 64);
    let mut connection = mysql::Conn::new(instance.endpoint().opts()).unwrap();
    assert_eq!(connection.query_first::<u32, _>("SELECT 1").unwrap(), Some(1));
    // Its end is told, though it is not ours to start.
    meeting.theirs.take().unwrap().stop().unwrap();
    let said = loop {
        match instance.alive() {
            Ok(()) => std::thread::yield_now(),
            Err(said) => break said,
        }
    };
    assert!(said.contains("does not answer any more"), "{said}");
    instance.stop().unwrap();
}

#[test]
fn variables_are_set_where_allowed_and_set_back() {
    let Some(meeting) = Meeting::new() else { return };
    let (limit, packet) = (meeting.of("max_connections"), meeting.of("max_allowed_packet"));
    let config = [
        ("max-connections", ConfigValue::Integer(77)),
        ("max_allowed_packet", text("32M")),
        ("sql_mode", text("ANSI")),
    ];
    let refused = check(&meeting.spec(false, &config), meeting.tools()).unwrap_err();
    assert!(refused.to_string().contains("would change a server that is not ours"), "{refused}");
    assert!(refused.hint().unwrap().contains("allow_set_global"));
    assert!(start(&meeting.spec(false, &config), meeting.tools()).is_err());
    assert_eq!(meeting.of("max_connections"), limit);

    let mode = meeting.of("sql_mode");
    let instance = start(&meeting.spec(true, &config), meeting.tools()).unwrap();
    assert_eq!(meeting.of("max_connections"), "77");
    assert_eq!(meeting.of("max_allowed_packet"), (32 << 20).to_string());
    assert!(meeting.of("sql_mode").contains("ANSI_QUOTES"));
    instance.stop().unwrap();
    // The same when nobody stops it, and when a later variable is refused.
    drop(start(&meeting.spec(true, &config), meeting.tools()).unwrap());
    let config = [config[0].clone(), ("version_comment", text("mine"))];
    let error = start(&meeting.spec(true, &config), meeting.tools()).err().unwrap();
    assert!(matches!(&error, PlaceError::Setting { name, .. } if name == "version_comment"));
    assert!(error.to_string().contains("it is not dynamic there"), "{error}");
    assert_eq!(meeting.of("max_connections"), limit);
    assert_eq!(meeting.of("max_allowed_packet"), packet);
    assert_eq!(meeting.of("sql_mode"), mode);
    let unknown = [("no_such_thing", ConfigValue::Integer(1))];
    let error = check(&meeting.spec(true, &unknown), meeting.tools()).unwrap_err();
    assert!(error.to_string().contains("it is not known there"), "{error}");
}

#[test]
fn what_a_study_cannot_ask_of_it_is_told() {
    let Some(meeting) = Meeting::new() else { return };
    let mut spec = meeting.spec(false, &[]);
    spec.setup.server.package = "mysql-8.0.12".to_owned();
    let error = check(&spec, meeting.tools()).unwrap_err();
    assert!(error.to_string().contains("an external server is what it is"), "{error}");
    assert!(error.hint().unwrap().contains("remove server.package"));

    let wrong = meeting.cache.root().join("wrong");
    std::fs::write(&wrong, "s3cret\n").unwrap();
    let setup = setup(external(&meeting.dsn(), &wrong, false), &[]);
    let error = package_for(&setup, &meeting.cache, &meeting.log, &Quiet).unwrap_err();
    assert!(error.to_string().contains("Access denied"), "{error}");
    assert!(error.hint().unwrap().contains("password_file"));
    assert!(!format!("{error:?}").contains("s3cret"));

    let planned = planned_commands(&spec.setup, "data", 1, &meeting.cache);
    assert!(planned[0].starts_with("mysql --user=root --socket="), "{planned:?}");
}

/// A child that does not outlive its test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_killed_conductor_left_set_is_told_and_set_back() {
    let Some(mut meeting) = Meeting::new() else { return };
    let before = meeting.of("max_connections");
    let mut conductor = Guard(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "part_conductor", "--ignored", "--nocapture"])
            .env("CETERIS_TEST_PART", meeting.cache.root())
            .env("CETERIS_TEST_DSN", meeting.dsn())
            .env("CETERIS_TEST_PASSWORD_FILE", &meeting.password_file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let ready = BufReader::new(conductor.0.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains("READY"));
    assert!(ready);
    assert_eq!(meeting.of("max_connections"), "77");
    assert_eq!(leftovers(&meeting.cache).unwrap(), []);
    conductor.0.kill().unwrap();
    conductor.0.wait().unwrap();
    let expected = [Leftover::Made(Made::Variable {
        dsn: meeting.dsn(),
        password_file: Some(meeting.password_file.clone()),
        name: "max_connections".to_owned(),
        old: before.clone(),
    })];
    assert_eq!(leftovers(&meeting.cache).unwrap(), expected);
    // As long as the server does not let us in, nobody forgets it.
    let aside = meeting.password_file.with_extension("aside");
    std::fs::rename(&meeting.password_file, &aside).unwrap();
    let error = clean(&meeting.cache).unwrap_err();
    assert!(error.to_string().contains("max_connections"), "{error}");
    assert!(error.hint().unwrap().contains("/journal/"), "{:?}", error.hint());
    std::fs::rename(&aside, &meeting.password_file).unwrap();
    assert_eq!(clean(&meeting.cache).unwrap(), expected);
    assert_eq!(meeting.of("max_connections"), before);
    assert_eq!(leftovers(&meeting.cache).unwrap(), []);
    meeting.theirs.take().unwrap().stop().unwrap();
}

#[test]
#[ignore = "played by what_a_killed_conductor_left_set_is_told_and_set_back"]
fn part_conductor() {
    let Some(root) = std::env::var_os("CETERIS_TEST_PART") else { return };
    let cache = Cache::at(Path::new(&root)).unwrap();
    let journal = Journal::open(&cache).unwrap();
    let log = CommandLog::default();
    let dsn = std::env::var("CETERIS_TEST_DSN").unwrap();
    let file = PathBuf::from(std::env::var_os("CETERIS_TEST_PASSWORD_FILE").unwrap());
    let config = [("max_connections", ConfigValue::Integer(77))];
    let setup = setup(external(&dsn, &file, true), &config);
    let package = Arc::new(package_for(&setup, &cache, &log, &Quiet).unwrap());
    let spec = InstanceSpec { setup, package, dataset: None, ordinal: 0 };
    let _instance = start(&spec, Tools { cache: &cache, journal: &journal, log: &log }).unwrap();
    println!("READY");
    std::thread::sleep(std::time::Duration::from_secs(600));
}
