//! The host placement with the real server of this machine (`installed`), and what a killed
//! conductor leaves.
//!
//! Where no server is installed each test says SKIPPED on standard error. A test that must be
//! killed plays its conductor in a child process: this same binary, told by an environment variable.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ceteris_place::{
    Cache, CommandLog, Dataset, DatasetKey, Endpoint, Instance, InstanceSpec, Journal, Leftover,
    Made, Package, PlaceError, Quiet, Tools, clean, leftovers, list_packages, resolve_package,
    start,
};
use mysql::prelude::Queryable;
use study::{ConfigValue, Setup};

/// A cache of its own that the server user can reach; short, because sockets lie in it.
struct Lab {
    _dir: tempfile::TempDir,
    cache: Cache,
    journal: Journal,
    log: CommandLog,
}

impl Lab {
    fn new() -> Lab {
        let dir = tempfile::Builder::new().prefix("ct").tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let journal = Journal::open(&cache).unwrap();
        Lab { _dir: dir, cache, journal, log: CommandLog::default() }
    }

    fn start(&self, spec: &InstanceSpec) -> Result<Box<dyn Instance>, PlaceError> {
        start(spec, Tools { cache: &self.cache, journal: &self.journal, log: &self.log })
    }

    fn instances(&self) -> usize {
        std::fs::read_dir(self.cache.root().join("instances")).unwrap().count()
    }
}

fn installed() -> Option<Arc<Package>> {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path()).unwrap();
    match resolve_package("installed", &cache, &CommandLog::default(), &Quiet) {
        Ok(package) => Some(Arc::new(package)),
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

fn setup(config: &[(&str, &str)]) -> Setup {
    let mut setup: Setup =
        serde_json::from_value(serde_json::json!({ "workload": { "oltp_read_only": {} } }))
            .unwrap();
    setup.server.config = config
        .iter()
        .map(|(name, value)| ((*name).to_owned(), ConfigValue::Text((*value).to_owned())))
        .collect();
    setup
}

fn spec(package: &Arc<Package>, config: &[(&str, &str)]) -> InstanceSpec {
    InstanceSpec { setup: setup(config), package: package.clone(), dataset: None, ordinal: 0 }
}

fn answer<T: mysql::prelude::FromRow>(endpoint: &Endpoint, query: &str) -> T {
    mysql::Conn::new(endpoint.opts()).unwrap().query_first(query).unwrap().unwrap()
}

fn by_tcp(endpoint: &Endpoint) -> Endpoint {
    Endpoint { socket: None, ..endpoint.clone() }
}

#[test]
fn an_instance_answers_with_its_settings_and_leaves_nothing() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    let config = [("innodb-buffer-pool-size", "32M"), ("innodb_flush_log_at_trx_commit", "2")];
    let mut instance = lab.start(&spec(&package, &config)).unwrap();
    let endpoint = instance.endpoint();
    let pool = "SELECT @@innodb_buffer_pool_size, @@innodb_flush_log_at_trx_commit";
    assert_eq!(answer::<(u64, u32)>(&endpoint, pool), (32 << 20, 2));
    let listens = "SELECT @@bind_address, @@datadir";
    let (bind, data): (String, PathBuf) = {
        let (bind, data): (String, String) = answer(&by_tcp(&endpoint), listens);
        (bind, data.into())
    };
    assert_eq!(bind, "127.0.0.1");
    assert_eq!(Some(data.components().as_path()), instance.data_dir());
    // One administrator, two ways in, and neither is open to others.
    let users = "SELECT COUNT(*) FROM mysql.user WHERE user = '' OR host NOT IN \
                 ('localhost', '127.0.0.1', '')";
    assert_eq!(answer::<u32>(&endpoint, users), 0);
    for way in [endpoint.clone(), by_tcp(&endpoint)] {
        for password in ["", "wrong"] {
            let wrong = Endpoint { password: password.to_owned(), ..way.clone() };
            let refused = mysql::Conn::new(wrong.opts()).err().unwrap();
            assert!(refused.to_string().contains("Access denied"), "{refused}");
        }
    }
    let as_anybody = Endpoint { user: "mysql".into(), password: String::new(), ..endpoint.clone() };
    assert!(mysql::Conn::new(as_anybody.opts()).is_err());

    assert_eq!(instance.alive(), Ok(()));
    let pid = instance.pid().unwrap();
    let owner = std::fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    assert!(!rustix::process::geteuid().is_root() || owner != 0, "the server must not be root");
    let mode = instance.dir().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let fingerprint = instance.fingerprint();
    let plain = ceteris_place::FINGERPRINT_NAMES
        .into_iter()
        .filter(|name| !name.starts_with("place.placement.") || *name == "place.placement.kind");
    assert!(fingerprint.keys().map(String::as_str).eq(plain));
    assert_eq!(fingerprint["place.package.hash"], package.hash);
    assert_eq!(fingerprint["place.dataset.clone_hash"], fingerprint["place.dataset.hash"]);
    instance.stop().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(lab.instances(), 0);
    let commands: Vec<String> = lab.log.drain().into_iter().map(|entry| entry.command).collect();
    assert!(commands.iter().any(|command| command.starts_with("cp -a --reflink=auto")));
    assert!(commands.iter().any(|command| command.contains("--defaults-file=")));
    assert!(commands.iter().all(|command| !command.contains(&endpoint.password)));
}

#[test]
fn a_refused_setting_brings_the_servers_own_words_and_its_name() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    let error = lab.start(&spec(&package, &[("innodb_nonsense", "1")])).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("[ERROR]") && text.contains("innodb_nonsense"), "{text}");
    assert!(error.hint().unwrap().contains("server.config.innodb_nonsense"));
    assert_eq!(lab.instances(), 0, "what was made for it is gone");
    // One that the initialisation itself refuses.
    let error = lab.start(&spec(&package, &[("innodb_data_file_path", "nonsense")])).err().unwrap();
    assert!(matches!(error, PlaceError::Refused { .. }), "{error}");
    assert_eq!(lab.instances(), 0);
    // One that is ceteris's own to set: nothing is started for it at all.
    lab.log.drain();
    let error = lab.start(&spec(&package, &[("port", "3306")])).err().unwrap();
    assert!(matches!(error, PlaceError::Setting { .. }), "{error}");
    assert_eq!(lab.log.drain(), []);
    drop(lab.journal);
    assert_eq!(leftovers(&lab.cache).unwrap(), []);
}

#[test]
fn a_saved_dataset_is_cloned_with_its_rows_and_its_hash() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    let plain = spec(&package, &[("log_bin", "our-bin"), ("server_id", "1")]);
    let instance = lab.start(&plain).unwrap();
    let mut connection = mysql::Conn::new(instance.endpoint().opts()).unwrap();
    connection.query_drop("CREATE DATABASE sbtest").unwrap();
    connection.query_drop("CREATE TABLE sbtest.t (id INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
    connection.query_drop("INSERT INTO sbtest.t VALUES (1), (2), (3)").unwrap();
    drop(connection);
    let key = DatasetKey::new(&package, &plain.setup, "three rows", 7);
    assert!(Dataset::find(&lab.cache, &key).unwrap().is_none());
    let facts = BTreeMap::from([("rows".to_owned(), "3".to_owned())]);
    let saved = Dataset::save(instance, &lab.cache, &key, &facts).unwrap();
    assert_eq!(lab.instances(), 0);
    let found = Arc::new(Dataset::find(&lab.cache, &key).unwrap().unwrap());
    assert_eq!((found.hash(), found.bytes()), (saved.hash(), saved.bytes()));
    assert!(found.bytes() > 0);
    assert_eq!(found.facts(), &facts);

    // Two at once, each on its own clone; neither sees what the other does.
    let cloned = InstanceSpec { dataset: Some(found.clone()), ..plain };
    let (one, two) = (lab.start(&cloned).unwrap(), lab.start(&cloned).unwrap());
    for instance in [&one, &two] {
        assert_eq!(answer::<u32>(&instance.endpoint(), "SELECT COUNT(*) FROM sbtest.t"), 3);
        assert_eq!(instance.fingerprint()["place.dataset.clone_hash"], found.hash());
    }
    assert_ne!(one.endpoint().tcp, two.endpoint().tcp);
    let mut connection = mysql::Conn::new(one.endpoint().opts()).unwrap();
    connection.query_drop("DELETE FROM sbtest.t").unwrap();
    drop(connection);
    assert_eq!(answer::<u32>(&two.endpoint(), "SELECT COUNT(*) FROM sbtest.t"), 3);
    one.stop().unwrap();
    two.stop().unwrap();
    let third = lab.start(&cloned).unwrap();
    assert_eq!(answer::<u32>(&third.endpoint(), "SELECT COUNT(*) FROM sbtest.t"), 3);
    assert_eq!(third.fingerprint()["place.dataset.clone_hash"], found.hash());
    third.stop().unwrap();
}

#[test]
fn a_server_that_dies_is_noticed_and_dropping_an_instance_leaves_nothing() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    let mut instance = lab.start(&spec(&package, &[])).unwrap();
    let pid = rustix::process::Pid::from_raw(instance.pid().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let said = loop {
        match instance.alive() {
            Ok(()) => std::thread::yield_now(),
            Err(said) => break said,
        }
    };
    assert!(said.starts_with("the server ended (signal 9)"), "{said}");
    let key = DatasetKey::new(&package, &setup(&[]), "dead", 1);
    let cache = &lab.cache;
    let saved = Dataset::save(instance, cache, &key, &BTreeMap::new());
    assert!(saved.is_err(), "a server that died must not become a snapshot");
    assert!(Dataset::find(&lab.cache, &key).unwrap().is_none());
    assert_eq!(lab.instances(), 0);

    // Stopped after it died: told, and nothing is left all the same.
    let crashed = lab.start(&spec(&package, &[])).unwrap();
    let pid = rustix::process::Pid::from_raw(crashed.pid().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let told = crashed.stop().unwrap_err();
    assert!(
        matches!(&told, PlaceError::NotStopped { status, .. } if status == "signal 9"),
        "{told}"
    );
    assert_eq!(lab.instances(), 0);

    let dropped = lab.start(&spec(&package, &[])).unwrap();
    let pid = dropped.pid().unwrap();
    drop(dropped);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(lab.instances(), 0);
}

#[test]
fn the_password_lies_in_no_file_that_others_read_and_in_no_command_line() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    let instance = lab.start(&spec(&package, &[])).unwrap();
    let password = instance.endpoint().password;
    assert!(password.len() >= 32);
    assert!(!format!("{:?}", instance.endpoint()).contains(&password));
    let mut holders = Vec::new();
    search(lab.cache.root(), password.as_bytes(), &mut holders);
    assert_eq!(holders.len(), 1, "{holders:?}");
    assert_eq!(holders[0].file_name().unwrap(), "secret");
    assert_eq!(holders[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        for name in ["cmdline", "environ"] {
            let text = std::fs::read(entry.path().join(name)).unwrap_or_default();
            assert!(!contains(&text, password.as_bytes()), "{}", entry.path().display());
        }
    }
    instance.stop().unwrap();
}

fn search(dir: &Path, wanted: &[u8], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            search(&path, wanted, found);
        } else if meta.is_file() && contains(&std::fs::read(&path).unwrap(), wanted) {
            found.push(path);
        }
    }
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

/// Runs one test of this binary in a child process that plays another part.
fn play(part: &str, cache: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", part, "--ignored", "--nocapture", "--test-threads=1"])
        .env("CETERIS_TEST_PART", cache)
        .stdin(Stdio::null());
    command
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
fn what_a_killed_conductor_leaves_is_found_and_cleaned() {
    if installed().is_none() {
        return;
    }
    let lab = Lab::new();
    let mut conductor =
        Guard(play("part_conductor", lab.cache.root()).stdout(Stdio::piped()).spawn().unwrap());
    let words: Vec<String> = BufReader::new(conductor.0.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| {
            let (_, rest) = line.split_once("READY ")?;
            Some(rest.split(' ').map(str::to_owned).collect())
        })
        .unwrap();
    let (server, stray) = (words[0].clone(), words[1].clone());
    let dir = PathBuf::from(&words[2]);
    assert_eq!(leftovers(&lab.cache).unwrap(), [], "a living conductor's are not leftovers");
    assert_eq!(clean(&lab.cache).unwrap(), []);
    assert!(dir.is_dir() && Path::new(&format!("/proc/{server}")).exists());

    conductor.0.kill().unwrap();
    conductor.0.wait().unwrap();
    // The kernel kills the server with its conductor; the stray carries only the marker.
    while std::fs::read(format!("/proc/{server}/environ")).is_ok_and(|text| !text.is_empty()) {
        std::thread::yield_now();
    }
    let found = leftovers(&lab.cache).unwrap();
    let stray = Leftover::Process { pid: stray.parse().unwrap(), command: "sleep 300".to_owned() };
    let expected = [stray, Leftover::Made(Made::Directory { path: dir.clone() })];
    assert_eq!(found, expected);
    assert_eq!(clean(&lab.cache).unwrap(), expected);
    assert!(!dir.exists());
    assert_eq!(leftovers(&lab.cache).unwrap(), []);
    assert_eq!(lab.instances(), 0);
}

#[test]
#[allow(clippy::zombie_processes)] // Left behind on purpose.
#[ignore = "played by what_a_killed_conductor_leaves_is_found_and_cleaned"]
fn part_conductor() {
    let Some(root) = std::env::var_os("CETERIS_TEST_PART") else { return };
    let cache = Cache::at(Path::new(&root)).unwrap();
    let journal = Journal::open(&cache).unwrap();
    let package = installed().unwrap();
    let log = CommandLog::default();
    let instance =
        start(&spec(&package, &[]), Tools { cache: &cache, journal: &journal, log: &log }).unwrap();
    let (name, value) = journal.environment();
    let null = || Stdio::null();
    let stray = Command::new("sleep")
        .arg("300")
        .env(name, value)
        .stdin(null())
        .stdout(null())
        .stderr(null())
        .spawn()
        .unwrap();
    println!("READY {} {} {}", instance.pid().unwrap(), stray.id(), instance.dir().display());
    loop {
        std::thread::park();
    }
}

#[test]
fn a_missing_client_is_named_with_its_debian_package() {
    let lab = Lab::new();
    let output = play("part_without_clients", lab.cache.root()).env("PATH", "").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("`mvn` is needed to fetch mysql-8.0.12 and was not found"), "{text}");
    assert!(text.contains("hint: apt-get install maven"), "{text}");
    assert!(text.contains("`debootstrap` is needed to fetch mysql-9.7"), "{text}");
    assert!(text.contains("list mysql-5.7.22 present=false usable=false"), "{text}");
    assert_eq!(lab.cache.usage().unwrap(), []);
}

#[test]
#[ignore = "played by a_missing_client_is_named_with_its_debian_package"]
fn part_without_clients() {
    let Some(root) = std::env::var_os("CETERIS_TEST_PART") else { return };
    let cache = Cache::at(Path::new(&root)).unwrap();
    let names = std::env::var("CETERIS_TEST_NAMES");
    for name in names.as_deref().unwrap_or("mysql-8.0.12 mysql-9.7").split(' ') {
        let error = resolve_package(name, &cache, &CommandLog::default(), &Quiet).unwrap_err();
        println!("{error}\nhint: {}", error.hint().unwrap());
    }
    for one in list_packages(&cache) {
        println!("list {} present={} usable={}", one.name, one.present, one.usable);
    }
}

#[test]
fn a_download_with_another_hash_is_refused_and_not_kept() {
    let lab = Lab::new();
    let clients = tempfile::tempdir().unwrap();
    let liar = "#!/bin/sh\nfor word; do case $word in -DoutputDirectory=*) \
                echo no server > \"${word#*=}/server.jar\";; esac; done\n";
    for (name, script) in [("mvn", liar), ("java", "#!/bin/sh\n")] {
        let path = clients.path().join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", clients.path().display());
    let mut part = play("part_without_clients", lab.cache.root());
    let output = part.env("PATH", path).env("CETERIS_TEST_NAMES", "mysql-8.0.12").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if std::env::consts::ARCH == "x86_64" {
        assert!(text.contains("server.jar has SHA-256"), "{text}");
    }
    assert_eq!(lab.cache.usage().unwrap(), []);
    let left = std::fs::read_dir(lab.cache.root().join("packages")).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with(".lock-")), "{left:?}");
}

/// A package like `package`, but with nothing in it that initialises a data directory.
fn without_script(package: &Package, base: &Path) -> Arc<Package> {
    std::os::unix::fs::symlink(package.base_dir.join("share"), base.join("share")).unwrap();
    Arc::new(Package {
        name: "without-script".to_owned(),
        base_dir: base.to_owned(),
        hash: format!("{}-without", package.hash),
        ..package.clone()
    })
}

#[test]
fn a_package_without_install_script_is_bootstrapped_from_its_sql_files() {
    let lab = Lab::new();
    let mut packages: Vec<Arc<Package>> = installed().into_iter().collect();
    match Cache::open() {
        Ok(cache) if list_packages(&cache).iter().any(|p| p.name == "mysql-5.5.9" && p.present) => {
            let old = resolve_package("mysql-5.5.9", &cache, &CommandLog::default(), &Quiet);
            packages.push(Arc::new(old.unwrap()));
        }
        _ => eprintln!("SKIPPED: mysql-5.5.9: not in the cache"),
    }
    for package in packages {
        if package.flavour == ceteris_place::Flavour::Mysql && package.version.minor >= 7 {
            eprintln!("SKIPPED: {} initialises itself", package.version);
            continue;
        }
        let base = tempfile::Builder::new().tempdir_in(lab.cache.root()).unwrap();
        std::fs::set_permissions(base.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let instance = lab.start(&spec(&without_script(&package, base.path()), &[])).unwrap();
        let commands = lab.log.drain();
        assert!(commands.iter().any(|entry| entry.command.contains("--bootstrap < ")));
        let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'mysql'";
        for endpoint in [instance.endpoint(), by_tcp(&instance.endpoint())] {
            assert!(answer::<u32>(&endpoint, tables) > 20);
        }
        let anonymous = Endpoint {
            user: "nobody-known".to_owned(),
            password: String::new(),
            ..instance.endpoint()
        };
        assert!(mysql::Conn::new(anonymous.opts()).is_err());
        instance.stop().unwrap();
    }
}

/// Every package of the catalogue, where asked for by `CETERIS_TEST_PACKAGES=1` or already in this
/// machine's cache: initialised, started, asked over socket and TCP, stopped.
#[test]
fn every_catalogue_package_answers() {
    let Ok(cache) = Cache::open() else {
        eprintln!("SKIPPED: this machine's package cache cannot be opened");
        return;
    };
    let asked = std::env::var("CETERIS_TEST_PACKAGES").is_ok_and(|value| value == "1");
    let journal = Journal::open(&cache).unwrap();
    let log = CommandLog::default();
    for one in list_packages(&cache) {
        if one.name == "installed" || one.name.starts_with('/') {
            continue;
        }
        if !(one.present || asked && one.usable) {
            eprintln!("SKIPPED: {}: not in the cache; {}", one.name, one.why);
            continue;
        }
        let package = Arc::new(resolve_package(&one.name, &cache, &log, &Quiet).unwrap());
        let instance =
            start(&spec(&package, &[]), Tools { cache: &cache, journal: &journal, log: &log })
                .unwrap();
        for endpoint in [instance.endpoint(), by_tcp(&instance.endpoint())] {
            let version: String = answer(&endpoint, "SELECT VERSION()");
            assert!(version.starts_with(&package.version.to_string()), "{version}");
        }
        instance.stop().unwrap();
    }
}
