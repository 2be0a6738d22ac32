//! The Docker placement with a real engine and the real server of this machine (`installed`).
//!
//! Where no engine answers a private one is started (`engine`); where that cannot be, or no server is
//! installed, each test says SKIPPED. A test that must be killed plays its conductor in a child
//! process: this same binary, told by an environment variable.
#![allow(clippy::unwrap_used)]

mod engine;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ceteris_place::{
    Cache, CommandLog, Dataset, DatasetKey, Endpoint, Instance, InstanceSpec, Journal, Leftover,
    Made, Package, PlaceError, Quiet, Tools, check, clean, leftovers, planned_commands,
    resolve_package, root_tar, start, start_all,
};
use mysql::prelude::Queryable;
use serde_json::json;
use study::{ConfigValue, Setup};

/// A cache of its own that the server user can reach; short, because sockets lie in it.
struct Lab {
    _dir: tempfile::TempDir,
    cache: Cache,
    journal: Journal,
    log: CommandLog,
    package: Arc<Package>,
}

impl Lab {
    /// A lab with an engine and a server, or the reason why there is none.
    fn new() -> Option<Lab> {
        if !engine::ready() {
            return None;
        }
        let dir = tempfile::Builder::new().prefix("ct").tempdir().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(dir.path(), open).unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let journal = Journal::open(&cache).unwrap();
        let log = CommandLog::default();
        match resolve_package("installed", &cache, &log, &Quiet) {
            Ok(package) => Some(Lab { _dir: dir, cache, journal, log, package: package.into() }),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED: {error}");
                None
            }
        }
    }

    fn tools(&self) -> Tools<'_> {
        Tools { cache: &self.cache, journal: &self.journal, log: &self.log }
    }

    fn spec(&self, docker: serde_json::Value, config: &[(&str, &str)]) -> InstanceSpec {
        InstanceSpec {
            setup: setup(json!({ "docker": docker }), config),
            package: self.package.clone(),
            dataset: None,
            ordinal: 0,
        }
    }

    /// Three rows, loaded by a server on the host.
    fn dataset(&self) -> Arc<Dataset> {
        let spec = InstanceSpec {
            setup: setup(json!({ "host": {} }), &[]),
            package: self.package.clone(),
            dataset: None,
            ordinal: 0,
        };
        let instance = start(&spec, self.tools()).unwrap();
        let mut connection = mysql::Conn::new(instance.endpoint().opts()).unwrap();
        connection.query_drop("CREATE DATABASE d").unwrap();
        connection.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        connection.query_drop("INSERT INTO d.t VALUES (1), (2), (3)").unwrap();
        drop(connection);
        let key = DatasetKey::new(&self.package, &spec.setup, "three rows", 7);
        Arc::new(Dataset::save(instance, &self.cache, &key, &BTreeMap::new()).unwrap())
    }

    /// Asserts that this lab's journal has nothing on the engine and no directory.
    fn nothing_is_left(&self) {
        left_nothing(&self.cache, &self.journal.marker());
    }
}

fn left_nothing(cache: &Cache, journal: &str) {
    let label = format!("label=ceteris.journal={journal}");
    assert_eq!(docker(&["ps", "--all", "--quiet", "--filter", &label]), "");
    assert_eq!(docker(&["volume", "ls", "--quiet", "--filter", &label]), "");
    let instances = std::fs::read_dir(cache.root().join("instances")).unwrap();
    assert_eq!(instances.count(), 0);
}

fn setup(placement: serde_json::Value, config: &[(&str, &str)]) -> Setup {
    let setup = json!({ "workload": { "oltp_read_only": {} }, "placement": placement });
    let mut setup: Setup = serde_json::from_value(setup).unwrap();
    setup.server.config = config
        .iter()
        .map(|(name, value)| ((*name).to_owned(), ConfigValue::Text((*value).to_owned())))
        .collect();
    setup
}

fn docker(words: &[&str]) -> String {
    let said = Command::new("docker").args(words).output().unwrap();
    assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

fn answer<T: mysql::prelude::FromRow>(endpoint: &Endpoint, query: &str) -> T {
    mysql::Conn::new(endpoint.opts()).unwrap().query_first(query).unwrap().unwrap()
}

fn by_tcp(endpoint: &Endpoint) -> Endpoint {
    Endpoint { socket: None, ..endpoint.clone() }
}

fn container_of(instance: &dyn Instance) -> String {
    format!("ceteris-{}", instance.dir().file_name().unwrap().to_str().unwrap())
}

#[test]
fn every_network_and_every_storage_answers_on_the_same_bytes() {
    let Some(lab) = Lab::new() else { return };
    let dataset = lab.dataset();
    for (network, storage) in [("host", "bind"), ("bridge", "volume"), ("published", "overlay")] {
        let docker_keys = json!({ "network": network, "storage": storage });
        let config = [("innodb_buffer_pool_size", "32M")];
        let spec =
            InstanceSpec { dataset: Some(dataset.clone()), ..lab.spec(docker_keys, &config) };
        check(&spec, lab.tools()).unwrap();
        let mut instance = start(&spec, lab.tools()).unwrap();
        assert_eq!(instance.alive(), Ok(()));
        let endpoint = instance.endpoint();
        for way in [endpoint.clone(), by_tcp(&endpoint)] {
            let asked = "SELECT COUNT(*), @@innodb_buffer_pool_size FROM d.t";
            assert_eq!(answer::<(u32, u64)>(&way, asked), (3, 32 << 20), "{network}");
            let wrong = Endpoint { password: "wrong".to_owned(), ..way };
            let refused = mysql::Conn::new(wrong.opts()).err().unwrap().to_string();
            assert!(refused.contains("Access denied"), "{refused}");
        }
        let (host, _) = endpoint.tcp.clone().unwrap();
        assert_eq!(host == "127.0.0.1", network != "bridge", "{host}");
        // Where files are is told alike, wherever they are.
        let (data, base): (String, String) = answer(&endpoint, "SELECT @@datadir, @@basedir");
        assert_eq!(Path::new(&data), instance.dir().join("data"));
        assert_eq!(Path::new(&base), lab.package.base_dir);
        // The process is seen from here, and its files are where the placement says.
        let pid = instance.pid().unwrap();
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(command.contains("--defaults-file="), "{command}");
        assert!(instance.data_dir().unwrap().join("d/t.ibd").exists());
        assert_eq!(instance.data_dir().unwrap() == instance.dir().join("data"), storage == "bind");
        let fingerprint = instance.fingerprint();
        assert_eq!(fingerprint["place.dataset.clone_hash"], dataset.hash());
        assert_eq!(fingerprint["place.placement.kind"], "docker");
        assert_eq!(fingerprint["place.placement.network"], network);
        assert_eq!(fingerprint["place.placement.storage"], storage);
        instance.stop().unwrap();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        lab.nothing_is_left();
        let commands: Vec<String> = lab.log.drain().into_iter().map(|one| one.command).collect();
        assert!(commands.iter().any(|one| one.starts_with("docker create ")), "{commands:?}");
        assert!(commands.iter().all(|one| !one.contains(&endpoint.password)));
    }
}

#[test]
fn podman_does_as_docker_does() {
    let answers =
        Command::new("podman").arg("info").output().is_ok_and(|said| said.status.success());
    if !answers {
        let _ = writeln!(std::io::stderr(), "SKIPPED: podman does not answer");
        return;
    }
    let Some(lab) = Lab::new() else { return };
    let dataset = lab.dataset();
    for storage in ["bind", "volume", "overlay"] {
        let keys = json!({ "engine": "podman", "storage": storage, "memory": "512MiB" });
        let spec = InstanceSpec { dataset: Some(dataset.clone()), ..lab.spec(keys, &[]) };
        check(&spec, lab.tools()).unwrap();
        let mut instance = start(&spec, lab.tools()).unwrap();
        assert_eq!(instance.alive(), Ok(()));
        let endpoint = instance.endpoint();
        for way in [endpoint.clone(), by_tcp(&endpoint)] {
            assert_eq!(answer::<u32>(&way, "SELECT COUNT(*) FROM d.t"), 3, "{storage}");
        }
        assert_eq!(instance.allowance().memory_bytes, Some(512 << 20));
        assert_eq!(instance.fingerprint()["place.dataset.clone_hash"], dataset.hash());
        assert_eq!(instance.fingerprint()["place.placement.engine"], "podman");
        instance.stop().unwrap();
        let label = format!("label=ceteris.journal={}", lab.journal.marker());
        for words in
            [["ps", "--all", "--quiet", "--filter"], ["volume", "ls", "--quiet", "--filter"]]
        {
            let listed = Command::new("podman").args(words).arg(&label).output().unwrap();
            assert_eq!(String::from_utf8(listed.stdout).unwrap(), "");
        }
    }
    lab.nothing_is_left();
}

#[test]
fn limits_are_those_of_the_kernel() {
    let Some(lab) = Lab::new() else { return };
    let keys = json!({ "cpus": 0.5, "cpuset": "0", "memory": "512MiB" });
    let instance = start(&lab.spec(keys, &[]), lab.tools()).unwrap();
    let allowance = instance.allowance();
    assert_eq!(allowance.processors, Some([0].into()));
    assert_eq!((allowance.cpus, allowance.memory_bytes), (Some(0.5), Some(512 << 20)));
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", instance.pid().unwrap()));
    let groups = groups.unwrap();
    let path = |controller: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let mut controllers = parts.next()?.split(',');
            controllers.any(|one| one == controller).then(|| parts.next().map(str::to_owned))?
        })
    };
    let read = |path: String| std::fs::read_to_string(path).unwrap().trim().to_owned();
    if let Some(cpu) = path("cpu") {
        let of = |name: &str| {
            read(format!("/sys/fs/cgroup/cpu{cpu}/cpu.cfs_{name}_us")).parse::<f64>().unwrap()
        };
        assert_eq!(of("quota") / of("period"), 0.5);
        let memory = path("memory").unwrap();
        let limit = read(format!("/sys/fs/cgroup/memory{memory}/memory.limit_in_bytes"));
        assert_eq!(limit, (512_u64 << 20).to_string());
    } else {
        let group = path("").unwrap();
        assert_eq!(read(format!("/sys/fs/cgroup{group}/cpu.max")), "50000 100000");
        let limit = read(format!("/sys/fs/cgroup{group}/memory.max"));
        assert_eq!(limit, (512_u64 << 20).to_string());
    }
    instance.stop().unwrap();
    lab.nothing_is_left();
}

#[test]
fn eight_containers_at_once_answer() {
    let Some(lab) = Lab::new() else { return };
    let config = [("innodb_buffer_pool_size", "16M")];
    let spec = lab.spec(json!({ "instances": 8 }), &config);
    let instances = start_all(&spec, lab.tools()).unwrap();
    assert_eq!(instances.len(), 8);
    let mut directories: Vec<String> = instances
        .iter()
        .map(|instance| answer::<String>(&by_tcp(&instance.endpoint()), "SELECT @@datadir"))
        .collect();
    directories.sort();
    directories.dedup();
    assert_eq!(directories.len(), 8, "each on files of its own");
    for instance in instances {
        instance.stop().unwrap();
    }
    lab.nothing_is_left();
}

#[test]
fn an_image_is_initialised_and_run_by_itself() {
    let Some(lab) = Lab::new() else { return };
    let here = Cache::look().unwrap();
    if !here.root().join("packages/mysql-8.0.12/package.json").exists() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: mysql-8.0.12 is not in the cache");
        return;
    }
    // An image as a registry would hold it: a server in its own `PATH`, and nothing of ceteris.
    let inner = resolve_package("mysql-8.0.12", &here, &lab.log, &Quiet).unwrap();
    let root = root_tar(&inner, &[], lab.tools()).unwrap();
    let bin = inner.binary().parent().unwrap().display().to_string();
    let mut words: Vec<String> = vec!["import".into()];
    for (name, value) in &inner.env {
        words.extend(["--change".into(), format!("ENV {}={}", name.display(), value.display())]);
    }
    words.extend(["--change".into(), format!("ENV PATH={bin}:/usr/bin")]);
    let name = format!("example/server:{}", &lab.journal.marker());
    words.extend([root.path.display().to_string(), name.clone()]);
    docker(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let _image = Untag(name.clone());

    let asked = format!("image:{name}");
    let package = Arc::new(resolve_package(&asked, &lab.cache, &lab.log, &Quiet).unwrap());
    assert_eq!(package.version.to_string(), "8.0.12");
    assert_eq!(package.image(), Some(name.as_str()));
    let mut spec = lab.spec(json!({ "storage": "volume", "network": "bridge" }), &[]);
    spec.package = package.clone();
    check(&spec, lab.tools()).unwrap();
    let instance = start(&spec, lab.tools()).unwrap();
    let version = "SELECT VERSION()";
    assert_eq!(answer::<String>(&instance.endpoint(), version), "8.0.12");
    assert_eq!(answer::<String>(&by_tcp(&instance.endpoint()), version), "8.0.12");
    assert_eq!(instance.fingerprint()["place.placement.image"], name);
    instance.stop().unwrap();
    lab.nothing_is_left();

    // Its dataset is loaded where it can run, and nowhere else.
    let loading = ceteris_place::loading_placement(&package, &spec.setup.placement);
    spec.setup.placement = loading;
    let loader = start(&spec, lab.tools()).unwrap();
    let key = DatasetKey::new(&package, &spec.setup, "nothing", 1);
    Dataset::save(loader, &lab.cache, &key, &BTreeMap::new()).unwrap();
    lab.nothing_is_left();
    spec.setup.placement = serde_json::from_value(json!({ "host": {} })).unwrap();
    let refused = start(&spec, lab.tools()).err().unwrap();
    assert!(matches!(refused, PlaceError::NeedsContainer { .. }), "{refused}");
}

/// Removes a name of an image.
struct Untag(String);

impl Drop for Untag {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", &self.0]).stdout(Stdio::null()).status();
    }
}

#[test]
fn what_is_missing_or_impossible_is_told_with_a_next_step() {
    let Some(lab) = Lab::new() else { return };
    let absent = resolve_package("image:example/absent:1", &lab.cache, &lab.log, &Quiet);
    let error = absent.unwrap_err();
    assert!(error.to_string().contains("No such image"), "{error}");
    assert_eq!(error.hint().unwrap(), "docker pull example/absent:1");

    let many = lab.spec(json!({ "cpus": 4096.0 }), &[]);
    let error = check(&many, lab.tools()).unwrap_err();
    assert!(error.to_string().contains("placement.docker.cpus is 4096"), "{error}");
    // What only the engine knows is told in its own words, and nothing is left of the attempt.
    let odd = lab.spec(json!({ "security_opt": ["nonsense=1"] }), &[]);
    let error = start(&odd, lab.tools()).err().unwrap();
    assert!(error.to_string().contains("nonsense"), "{error}");
    lab.nothing_is_left();

    let error = start(&lab.spec(json!({}), &[("innodb_nonsense", "1")]), lab.tools()).err();
    let error = error.unwrap();
    assert!(error.to_string().contains("innodb_nonsense"), "{error}");
    assert!(error.hint().unwrap().contains("server.config.innodb_nonsense"));
    lab.nothing_is_left();
}

#[test]
fn a_server_killed_for_its_memory_says_so() {
    let Some(lab) = Lab::new() else { return };
    let spec = lab.spec(json!({ "memory": "48MiB" }), &[("innodb_buffer_pool_size", "8G")]);
    let error = start(&spec, lab.tools()).err().unwrap();
    assert!(error.to_string().contains("using more than 48MiB of memory"), "{error}");
    assert!(error.hint().unwrap().contains("placement.docker.memory"));
    lab.nothing_is_left();
}

#[test]
fn a_container_that_is_killed_or_removed_by_hand_is_noticed() {
    let Some(lab) = Lab::new() else { return };
    let end = |words: &[&str], told: &str| {
        let mut instance = start(&lab.spec(json!({}), &[]), lab.tools()).unwrap();
        let name = container_of(&*instance);
        docker(&[words, &[name.as_str()]].concat());
        let said = loop {
            match instance.alive() {
                Ok(()) => std::thread::yield_now(),
                Err(said) => break said,
            }
        };
        assert!(said.contains(told), "{said}");
        let stopped = instance.stop().unwrap_err();
        assert!(matches!(stopped, PlaceError::NotStopped { .. }), "{stopped}");
        assert!(stopped.to_string().contains(told), "{stopped}");
        lab.nothing_is_left();
    };
    end(&["kill"], "signal 9");
    end(&["rm", "--force"], "somebody removed the container");
    // Dropping an instance that nobody stopped leaves nothing either.
    drop(start(&lab.spec(json!({ "storage": "volume" }), &[]), lab.tools()).unwrap());
    lab.nothing_is_left();
}

#[test]
fn a_plan_tells_the_commands_and_runs_none() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path()).unwrap();
    let placement = json!({ "docker": {
        "cpus": 0.5, "memory": "1GiB", "network": "published", "storage": "volume" } });
    let commands = planned_commands(&setup(placement, &[]), "data", 1, &cache);
    if commands.iter().any(|command| command.starts_with("# installed")) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", commands[0]);
        return;
    }
    let create = commands.iter().find(|one| one.starts_with("docker create ")).unwrap();
    for words in [
        "--cpus 0.5",
        "--memory 1073741824 --memory-swap 1073741824",
        "--publish 127.0.0.1::3306",
        "type=volume,source=ceteris-INSTANCE",
    ] {
        assert!(create.contains(words), "{words}: {create}");
    }
    assert!(commands.iter().any(|one| one.contains("bind_address = 0.0.0.0")));
    assert!(commands.contains(&"docker start ceteris-INSTANCE".to_owned()));
    assert!(std::fs::read_dir(cache.root().join("images")).unwrap().next().is_none());
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

#[test]
fn without_an_engine_the_package_that_brings_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let said = play("part_without_an_engine", dir.path()).env("PATH", dir.path()).output();
    let said = String::from_utf8(said.unwrap().stdout).unwrap();
    assert!(said.contains("`docker` is needed to place a server in a container"), "{said}");
    assert!(said.contains("apt-get install docker.io"), "{said}");
}

#[test]
#[ignore = "played by without_an_engine_the_package_that_brings_one_is_named"]
fn part_without_an_engine() {
    let Some(root) = std::env::var_os("CETERIS_TEST_PART") else { return };
    let cache = Cache::at(Path::new(&root)).unwrap();
    let asked = resolve_package("image:mysql:8.0", &cache, &CommandLog::default(), &Quiet);
    let error = asked.unwrap_err();
    println!("{error}\n{}", error.hint().unwrap_or_default());
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
    let Some(lab) = Lab::new() else { return };
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
    let (journal, dir) = (words[0].clone(), PathBuf::from(&words[1]));
    assert_eq!(leftovers(&lab.cache).unwrap(), [], "a living conductor's are not leftovers");
    conductor.0.kill().unwrap();
    conductor.0.wait().unwrap();
    let name = format!("ceteris-{}", dir.file_name().unwrap().to_str().unwrap());
    let docker_name = || ("docker".to_owned(), name.clone());
    let made = |found: Vec<Leftover>| -> Vec<Made> {
        found
            .into_iter()
            .filter_map(|left| match left {
                Leftover::Made(made) => Some(made),
                Leftover::Process { .. } => None,
            })
            .collect()
    };
    let (engine, container) = docker_name();
    let (_, volume) = docker_name();
    let expected = [
        Made::Container { engine: engine.clone(), name: container },
        Made::Volume { engine, name: volume },
        Made::Directory { path: dir.clone() },
    ];
    assert_eq!(made(leftovers(&lab.cache).unwrap()), expected);
    assert_eq!(made(clean(&lab.cache).unwrap()), expected);
    assert_eq!(leftovers(&lab.cache).unwrap(), []);
    left_nothing(&lab.cache, &journal);
}

#[test]
#[ignore = "played by what_a_killed_conductor_leaves_is_found_and_cleaned"]
fn part_conductor() {
    let Some(root) = std::env::var_os("CETERIS_TEST_PART") else { return };
    let cache = Cache::at(Path::new(&root)).unwrap();
    let journal = Journal::open(&cache).unwrap();
    let log = CommandLog::default();
    let package = Arc::new(resolve_package("installed", &cache, &log, &Quiet).unwrap());
    let setup = setup(json!({ "docker": { "storage": "volume" } }), &[]);
    let spec = InstanceSpec { setup, package, dataset: None, ordinal: 0 };
    let instance = start(&spec, Tools { cache: &cache, journal: &journal, log: &log }).unwrap();
    println!("READY {} {}", journal.marker(), instance.dir().display());
    std::thread::sleep(std::time::Duration::from_secs(600));
}
