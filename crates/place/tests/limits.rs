//! What the kernel gives a real server (`installed`) of the host placement's limits, scheduling, memory
//! policy and allocator; several instances; the machine's own settings; and that nothing of all
//! this is left, also after SIGKILL of the conductor.
//!
//! What this machine cannot give is said on standard error as SKIPPED.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use ceteris_place::{
    Cache, CommandLog, Endpoint, FINGERPRINT_NAMES, Instance, InstanceSpec, Journal, Leftover,
    MachineSettings, Made, Package, PlaceError, Quiet, Tools, clean, leftovers, resolve_package,
    start_all,
};
use mysql::prelude::Queryable;
use serde_json::{Value, json};

struct Lab {
    _dir: tempfile::TempDir,
    cache: Cache,
    journal: Journal,
    log: CommandLog,
}

impl Lab {
    fn new() -> Lab {
        let dir = tempfile::Builder::new().prefix("cl").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let journal = Journal::open(&cache).unwrap();
        Lab { _dir: dir, cache, journal, log: CommandLog::default() }
    }

    fn tools(&self) -> Tools<'_> {
        Tools { cache: &self.cache, journal: &self.journal, log: &self.log }
    }

    fn start(&self, spec: &InstanceSpec) -> Result<Vec<Box<dyn Instance>>, PlaceError> {
        start_all(spec, self.tools())
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

fn spec(package: &Arc<Package>, host: Value, config: Value) -> InstanceSpec {
    let setup = json!({
        "workload": { "oltp_read_only": {} },
        "placement": { "host": host },
        "server": { "config": config },
    });
    let setup = serde_json::from_value(setup).unwrap();
    InstanceSpec { setup, package: package.clone(), dataset: None, ordinal: 0 }
}

/// Whether this process may make control groups: root, outside of a container that forbids it.
fn may_limit(lab: &Lab, package: &Arc<Package>) -> bool {
    let spec = spec(package, json!({ "memory": "1GiB", "cpus": 1 }), json!({}));
    match ceteris_place::check(&spec, lab.tools()) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            false
        }
    }
}

/// The control groups of a process that are ours, by the directories that the kernel shows.
fn our_groups(pid: u32) -> BTreeSet<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points: Vec<PathBuf> = mounts
        .lines()
        .filter(|line| line.contains(" - cgroup"))
        .map(|line| line.split(' ').nth(4).unwrap().into())
        .collect();
    let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let paths = membership.lines().map(|line| line.splitn(3, ':').nth(2).unwrap());
    paths
        .filter(|path| path.contains("/ceteris-"))
        .flat_map(|path| points.iter().map(|point| point.join(path.trim_start_matches('/'))))
        .filter(|group| group.is_dir())
        .collect()
}

fn answer<T: mysql::prelude::FromRow>(endpoint: &Endpoint, query: &str) -> T {
    mysql::Conn::new(endpoint.opts()).unwrap().query_first(query).unwrap().unwrap()
}

fn first(path: &Path, files: &[&str]) -> Option<String> {
    let text = files.iter().find_map(|file| fs::read_to_string(path.join(file)).ok())?;
    Some(text.trim().to_owned())
}

#[test]
fn limits_are_the_kernels_from_the_first_instruction_and_leave_nothing() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    if !may_limit(&lab, &package) {
        return;
    }
    let host = json!({ "cpus": 1, "memory": "512MiB" });
    let limited = spec(&package, host, json!({ "innodb_buffer_pool_size": "16M" }));
    let instance = lab.start(&limited).unwrap().remove(0);
    let pid = instance.pid().unwrap();
    let groups = our_groups(pid);
    assert!(!groups.is_empty());
    let read = |files: &[&str]| groups.iter().find_map(|group| first(group, files));
    let bytes = (512_u64 << 20).to_string();
    assert_eq!(read(&["memory.limit_in_bytes", "memory.max"]), Some(bytes.clone()));
    let cpus = read(&["cpuset.cpus"]).unwrap();
    let processors: BTreeSet<u32> = [cpus.parse().unwrap()].into();
    // Every thread, also those that were there before the server said anything.
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        assert!(status.contains(&format!("Cpus_allowed_list:\t{cpus}\n")), "{status}");
    }
    // Memory of the server's very start is charged to the group.
    let used = read(&["memory.usage_in_bytes", "memory.current"]).unwrap();
    assert!(used.parse::<u64>().unwrap() > 16 << 20, "{used}");
    let allowance = instance.allowance();
    assert_eq!(allowance.processors, Some(processors));
    assert_eq!(allowance.memory_bytes, Some(512 << 20));
    let told = instance.fingerprint();
    assert_eq!(told["place.placement.kind"], "host");
    assert_eq!(told["place.placement.cpus"], cpus);
    assert_eq!(told["place.placement.memory_bytes"], bytes);
    assert_eq!(told.keys().filter(|name| name.starts_with("place.placement.")).count(), 3);
    instance.stop().unwrap();
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
    let commands: Vec<String> = lab.log.drain().into_iter().map(|one| one.command).collect();
    for group in &groups {
        let mkdir = format!("mkdir {}", group.display());
        assert!(commands.contains(&mkdir), "{mkdir}: {commands:?}");
        let enters = format!("echo $$ > {}/cgroup.procs", group.display());
        assert!(commands.iter().any(|command| command.contains(&enters)), "{enters}");
    }
    // A dropped one takes its groups with it, too.
    let dropped = lab.start(&limited).unwrap().remove(0);
    let groups = our_groups(dropped.pid().unwrap());
    drop(dropped);
    assert!(!groups.is_empty() && groups.iter().all(|group| !group.exists()), "{groups:?}");
}

#[test]
fn every_setting_is_in_force_and_in_the_fingerprint() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    if !may_limit(&lab, &package) {
        return;
    }
    let all = json!({
        "memory": "1GiB", "io_weight": 300, "instances": 1, "assign": "spread", "cpus": 1,
        "numa": { "policy": "interleave" }, "nice": 7, "scheduler": "batch", "huge_pages": "off",
        "allocator": "jemalloc",
    });
    let mut spec = spec(&package, all, json!({}));
    // What this machine cannot give (most disks' schedulers know no shares) is left out, loudly.
    let mut dropped = 0;
    for key in ["io_weight", "allocator"] {
        if let Err(error) = ceteris_place::check(&spec, lab.tools()) {
            let without = without(&spec, key);
            eprintln!("SKIPPED {key}: {error}");
            spec = without;
            dropped += 1;
        }
    }
    ceteris_place::check(&spec, lab.tools()).unwrap();
    let instance = lab.start(&spec).unwrap().remove(0);
    let told = instance.fingerprint();
    let known: BTreeSet<&str> = FINGERPRINT_NAMES.into_iter().collect();
    assert!(told.keys().all(|name| known.contains(name.as_str())), "{told:?}");
    assert_eq!(told.len() + dropped, known.len(), "{told:?}");
    let of = |name: &str| told[&format!("place.placement.{name}")].clone();
    assert_eq!(of("nice"), "7");
    assert_eq!(of("scheduler"), "batch");
    assert_eq!(of("huge_pages"), "off");
    assert!(of("numa").starts_with("interleave:0"), "{}", of("numa"));
    assert_eq!(of("memory_nodes"), "0");
    let maps = fs::read_to_string(format!("/proc/{}/numa_maps", instance.pid().unwrap())).unwrap();
    assert!(maps.lines().any(|line| line.contains(" interleave:0") && line.contains("stack")));
    if told.contains_key("place.placement.allocator") {
        let pid = instance.pid().unwrap();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        assert!(maps.contains("jemalloc"));
    }
    instance.stop().unwrap();
}

fn without(spec: &InstanceSpec, key: &str) -> InstanceSpec {
    let mut setup = serde_json::to_value(&spec.setup).unwrap();
    setup["placement"]["host"].as_object_mut().unwrap().remove(key);
    InstanceSpec { setup: serde_json::from_value(setup).unwrap(), ..spec.clone() }
}

#[test]
fn a_server_that_its_memory_limit_ends_is_told_as_that() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    if !may_limit(&lab, &package) {
        return;
    }
    let config = json!({ "innodb_buffer_pool_size": "8M" });
    let small = spec(&package, json!({ "memory": "8MiB" }), config.clone());
    let error = lab.start(&small).err().unwrap().to_string();
    assert!(error.contains("its memory limit was used up"), "{error}");

    let mut enough = lab.start(&spec(&package, json!({ "memory": "256MiB" }), config)).unwrap();
    let mut instance = enough.remove(0);
    let mut greedy = mysql::Conn::new(instance.endpoint().opts()).unwrap();
    greedy.query_drop("SET max_heap_table_size = 4294967296").unwrap();
    greedy.query_drop("CREATE DATABASE d").unwrap();
    greedy.query_drop("CREATE TABLE d.t (a CHAR(250)) ENGINE=MEMORY").unwrap();
    greedy.query_drop("INSERT INTO d.t VALUES ('x'), ('x'), ('x'), ('x')").unwrap();
    let doubled = (0..24).all(|_| greedy.query_drop("INSERT INTO d.t SELECT * FROM d.t").is_ok());
    assert!(!doubled, "nothing stopped it");
    let said = loop {
        match instance.alive() {
            Ok(()) => std::thread::yield_now(),
            Err(said) => break said,
        }
    };
    assert!(said.starts_with("the server ended (signal 9)"), "{said}");
    assert!(said.contains("its memory limit was used up"), "{said}");
    let stopped = instance.stop().unwrap_err().to_string();
    assert!(stopped.contains("its memory limit was used up"), "{stopped}");
    assert_eq!(fs::read_dir(lab.cache.root().join("instances")).unwrap().count(), 0);
}

#[test]
fn two_instances_share_what_is_to_be_shared_and_nothing_else() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    let host = json!({ "instances": 2, "buffer_pool": "divided" });
    let both =
        lab.start(&spec(&package, host, json!({ "innodb_buffer_pool_size": "64M" }))).unwrap();
    let ends: Vec<Endpoint> = both.iter().map(|instance| instance.endpoint()).collect();
    assert_ne!(ends[0].tcp, ends[1].tcp);
    assert_ne!(ends[0].socket, ends[1].socket);
    assert_ne!(both[0].data_dir(), both[1].data_dir());
    for endpoint in &ends {
        assert_eq!(answer::<u64>(endpoint, "SELECT @@innodb_buffer_pool_size"), 32 << 20);
        let port: u16 = answer(endpoint, "SELECT @@port");
        assert_eq!(Some(port), endpoint.tcp.as_ref().map(|(_, port)| *port));
    }
    for instance in both {
        instance.stop().unwrap();
    }
    let own = json!({ "instances": 2, "buffer_pool": "each" });
    let own = lab.start(&spec(&package, own, json!({ "innodb_buffer_pool_size": "64M" }))).unwrap();
    assert_eq!(answer::<u64>(&own[1].endpoint(), "SELECT @@innodb_buffer_pool_size"), 64 << 20);
    drop(own);
    assert_eq!(fs::read_dir(lab.cache.root().join("instances")).unwrap().count(), 0);
}

/// On a machine with one node both are bound to that.
#[test]
fn bound_instances_lie_on_their_own_nodes() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    if !may_limit(&lab, &package) {
        return;
    }
    let nodes: Vec<u32> = (0..64)
        .filter(|node| Path::new(&format!("/sys/devices/system/node/node{node}/cpulist")).exists())
        .collect();
    let host = json!({ "instances": 2, "assign": "spread" });
    let both = lab.start(&spec(&package, host, json!({}))).unwrap();
    for (ordinal, instance) in both.iter().enumerate() {
        let node = nodes[ordinal % nodes.len()];
        let told = instance.fingerprint();
        assert_eq!(told["place.placement.memory_nodes"], node.to_string());
        let cpus = now(Path::new(&format!("/sys/devices/system/node/node{node}/cpulist")));
        assert_eq!(told["place.placement.cpus"], cpus);
        // Files may lie anywhere, as whoever read them first left them; its own memory may not.
        let pid = instance.pid().unwrap();
        let maps = fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap();
        let own: Vec<&str> = maps
            .lines()
            .filter(|line| line.contains(" anon=") && !line.contains(" file="))
            .flat_map(|line| line.split(' ').filter(|word| word.starts_with('N')))
            .map(|word| word.split_once('=').unwrap().0)
            .collect();
        let here = format!("N{node}");
        assert!(!own.is_empty() && own.iter().all(|on| *on == here), "{here}: {maps}");
    }
    for instance in both {
        instance.stop().unwrap();
    }
}

#[test]
fn what_this_machine_has_not_is_an_error_before_anything_is_made() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    for (host, fragment, hint) in [
        (json!({ "numa": { "policy": "bind", "nodes": [977] } }), "no node 977", "has 0"),
        (json!({ "cpus": "node:977" }), "no node 977", "are 0"),
        (json!({ "cpus": 8000 }), "wants 8000", "usable are"),
        (
            json!({ "instances": 2, "assign": "list", "assign_list": ["0", "8191"] }),
            "8191",
            "usable",
        ),
    ] {
        let spec = spec(&package, host, json!({}));
        for error in
            [ceteris_place::check(&spec, lab.tools()).unwrap_err(), lab.start(&spec).err().unwrap()]
        {
            assert!(error.to_string().contains(fragment), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
        }
    }
    let odd = json!({ "innodb_buffer_pool_size": "half" });
    let error = ceteris_place::check(&spec(&package, json!({ "instances": 2 }), odd), lab.tools());
    assert!(error.unwrap_err().to_string().contains("`half` is no size"));
    assert_eq!(fs::read_dir(lab.cache.root().join("instances")).unwrap().count(), 0);
}

/// A kernel setting that tests of this file may change, one test at a time: its old value and another.
fn swappiness() -> Option<(PathBuf, String, u32)> {
    let path = PathBuf::from("/proc/sys/vm/swappiness");
    let old = fs::read_to_string(&path).ok()?.trim().to_owned();
    if let Err(error) = fs::write(&path, &old) {
        eprintln!("SKIPPED: {} cannot be written: {error}", path.display());
        return None;
    }
    let other = if old == "61" { 62 } else { 61 };
    Some((path, old, other))
}

fn now(path: &Path) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

#[test]
fn settings_of_the_machine_are_set_back_however_it_ends() {
    let Some((path, old, other)) = swappiness() else { return };
    let lab = Lab::new();
    let host = study::Host { swappiness: Some(other), ..study::Host::default() };
    MachineSettings::check(&host, lab.cache.root()).unwrap();
    assert_eq!(now(&path), old, "a check changes nothing");
    let settings = MachineSettings::apply(&host, lab.tools()).unwrap();
    assert_eq!(now(&path), other.to_string());

    // Another study must not take our value for the machine's own.
    let second = Lab::new();
    for cache in [&lab, &second] {
        let journal = Journal::open(&cache.cache).unwrap();
        let tools = Tools { journal: &journal, ..cache.tools() };
        let error = MachineSettings::apply(&host, tools).err().unwrap().to_string();
        assert!(error.contains("host.swappiness") && error.contains("stud"), "{error}");
    }
    assert_eq!(now(&path), other.to_string());
    settings.set_back().unwrap();
    assert_eq!(now(&path), old);
    let typed: Vec<String> = lab.log.drain().into_iter().map(|one| one.command).collect();
    let line = |value: &str| format!("echo {value} > {}", path.display());
    assert_eq!(typed, [line(&other.to_string()), line(&old)]);

    // All or none: the second of these does not exist.
    let sysctl = [("vm.no_such_setting".to_owned(), study::Param::Integer(1))].into();
    let wrong = study::Host { sysctl, ..host.clone() };
    let error = MachineSettings::apply(&wrong, lab.tools()).err().unwrap();
    assert!(error.to_string().contains("/proc/sys/vm/no_such_setting is not there"), "{error}");
    assert!(MachineSettings::check(&wrong, lab.cache.root()).is_err());
    assert_eq!(now(&path), old);

    // Killed: its value stays, nobody builds on it, and cleaning sets it back.
    let mut conductor = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "part_conductor", "--ignored", "--nocapture", "--test-threads=1"])
        .env("CETERIS_TEST_PART", lab.cache.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let ready = BufReader::new(conductor.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("READY ").map(|(_, rest)| rest.to_owned()))
        .unwrap();
    assert_eq!(now(&path), other.to_string());
    assert_eq!(leftovers(&lab.cache).unwrap(), []);
    conductor.kill().unwrap();
    conductor.wait().unwrap();
    let error = MachineSettings::apply(&host, lab.tools()).err().unwrap();
    assert_eq!(error.hint().as_deref(), Some("ceteris doctor --clean sets it back"), "{error}");
    let groups: Vec<PathBuf> =
        ready.split(' ').filter(|word| !word.is_empty()).map(PathBuf::from).collect();
    assert!(groups.iter().all(|group| group.is_dir()));
    let cleaned = clean(&lab.cache).unwrap();
    let setting = Made::Setting { path: path.clone(), old: old.clone() };
    assert!(cleaned.contains(&Leftover::Made(setting)), "{cleaned:?}");
    for group in &groups {
        let made = Leftover::Made(Made::Cgroup { path: group.clone() });
        assert!(cleaned.contains(&made) && !group.exists(), "{}: {cleaned:?}", group.display());
    }
    assert_eq!(now(&path), old);
    assert_eq!(leftovers(&lab.cache).unwrap(), []);
    assert_eq!(fs::read_dir(lab.cache.root().join("instances")).unwrap().count(), 0);
}

/// Changes a setting and starts a limited server, where this machine has one; then waits to be killed.
#[test]
#[ignore = "played by settings_of_the_machine_are_set_back_however_it_ends"]
fn part_conductor() {
    let Some(root) = std::env::var_os("CETERIS_TEST_PART") else { return };
    let cache = Cache::at(Path::new(&root)).unwrap();
    let journal = Journal::open(&cache).unwrap();
    let log = CommandLog::default();
    let tools = Tools { cache: &cache, journal: &journal, log: &log };
    let (_, _, other) = swappiness().unwrap();
    let host = study::Host { swappiness: Some(other), ..study::Host::default() };
    let _settings = MachineSettings::apply(&host, tools).unwrap();
    let limited = installed().map(|package| spec(&package, json!({ "memory": "1GiB" }), json!({})));
    let limited = limited.filter(|spec| ceteris_place::check(spec, tools).is_ok());
    let instances = limited.map(|spec| start_all(&spec, tools).unwrap()).unwrap_or_default();
    let pids = instances.iter().filter_map(|instance| instance.pid());
    let groups: Vec<String> =
        pids.flat_map(our_groups).map(|group| group.display().to_string()).collect();
    println!("READY {}", groups.join(" "));
    loop {
        std::thread::park();
    }
}

#[test]
fn the_page_cache_is_dropped_before_a_start_where_the_study_says_so() {
    let Some(package) = installed() else { return };
    let lab = Lab::new();
    let mut dropping = spec(&package, json!({}), json!({}));
    dropping.setup.host.drop_caches = true;
    if let Err(error) = MachineSettings::check(&dropping.setup.host, lab.cache.root()) {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let instance = lab.start(&dropping).unwrap().remove(0);
    let commands: Vec<String> = lab.log.drain().into_iter().map(|one| one.command).collect();
    let at = |wanted: &str| commands.iter().rposition(|command| command.contains(wanted)).unwrap();
    let dropped = at("echo 3 > /proc/sys/vm/drop_caches");
    assert!(at("cp -a ") < dropped, "what is cloned is in the page cache: {commands:?}");
    assert!(dropped < at("--defaults-file="), "{commands:?}");
    assert_eq!(commands[dropped - 1], "sync");
    instance.stop().unwrap();
}
