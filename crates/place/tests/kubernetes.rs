//! The Kubernetes placement on a real cluster of one node, which this test brings up and takes down
//! (`scripts/cluster/up` and `down`), with the real server of this machine.
//!
//! It has a `main` of its own because it plays several parts: first it brings the cluster up and runs
//! itself in the cluster's environment, so that the cluster goes down however the tests end; then
//! it is the tests; in a Pod it is the ceteris that unpacks a dataset and the worker; and once it is
//! the conductor that is killed. Where there can be no cluster it says SKIPPED and why.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use ceteris_place::{
    Cache, CommandLog, Emit, Endpoint, Instance, InstanceSpec, Journal, Leftover, Made, Package,
    PlaceError, Quiet, Tools, check, clean, emit, leftovers, resolve_package, start,
};
use mysql::prelude::Queryable;
use serde_json::{Value, json};
use study::{ConfigValue, Setup};

/// Set for the part that has a cluster.
const INSIDE: &str = "CETERIS_TEST_IN_CLUSTER";
/// The cache of the part that is the conductor.
const CONDUCTOR: &str = "CETERIS_TEST_CONDUCTOR";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["unpack", dir] => {
            println!("{}", ceteris_place::unpack(&mut std::io::stdin(), Path::new(dir)).unwrap());
        }
        ["answer", socket] => answer_inside(Path::new(socket)),
        _ if std::env::var_os(CONDUCTOR).is_some() => conduct(),
        _ if std::env::var_os(INSIDE).is_some() => return run_tests(&words),
        _ => return with_cluster(&words),
    }
    ExitCode::SUCCESS
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cluster").join(name)
}

/// Brings the cluster up, runs this program again in its environment, takes it down.
fn with_cluster(words: &[&str]) -> ExitCode {
    if words.contains(&"--list") {
        return ExitCode::SUCCESS;
    }
    let up = Command::new(script("up")).output().unwrap();
    let said = String::from_utf8_lossy(&up.stderr);
    match up.status.code() {
        Some(0) => {}
        Some(2) => {
            let why = said.lines().find(|line| line.starts_with("error: ")).unwrap_or("no reason");
            eprintln!("SKIPPED: no Kubernetes cluster: {}", why.trim_start_matches("error: "));
            return ExitCode::SUCCESS;
        }
        _ => panic!("scripts/cluster/up failed: {said}"),
    }
    let environment = String::from_utf8(up.stdout).unwrap();
    let tests = Command::new("bash")
        .args(["-c", "eval \"$1\"; shift; exec \"$@\"", "bash", &environment])
        .arg(std::env::current_exe().unwrap())
        .args(words)
        .env(INSIDE, "1")
        .status();
    let down = Command::new(script("down")).status().unwrap();
    assert!(down.success(), "scripts/cluster/down left something");
    assert!(!Path::new("/run/netns/ceteris-test").exists(), "the namespace is left");
    if tests.unwrap().success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type Test = (&'static str, fn(&Arc<Package>));

const TESTS: [Test; 12] = [
    ("a_small_limit_throttles", a_small_limit_throttles),
    ("a_deployment_answers_by_a_node_port", a_deployment_answers_by_a_node_port),
    ("a_stateful_set_answers_from_inside", a_stateful_set_answers_from_inside),
    ("a_host_path_holds_the_clone", a_host_path_holds_the_clone),
    ("a_claim_holds_the_clone", a_claim_holds_the_clone),
    ("a_named_image_is_given_ceteris", a_named_image_is_given_ceteris),
    ("a_pod_that_never_schedules_says_what_was_short", a_pod_that_never_schedules),
    ("what_cannot_start_is_told", what_cannot_start_is_told),
    ("a_pod_that_goes_is_told", a_pod_that_goes_is_told),
    ("a_node_that_goes_is_told", a_node_that_goes_is_told),
    ("a_killed_conductor_leaves_nothing", a_killed_conductor_leaves_nothing),
    ("the_manifests_are_taken", the_manifests_are_taken),
];

fn run_tests(words: &[&str]) -> ExitCode {
    let package =
        match resolve_package("installed", &Lab::new().cache, &CommandLog::default(), &Quiet) {
            Ok(package) => Arc::new(package),
            Err(error) => {
                eprintln!("SKIPPED: {error}");
                return ExitCode::SUCCESS;
            }
        };
    let chosen = |name: &str| {
        let filters: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).collect();
        filters.is_empty() || filters.iter().any(|filter| name.contains(**filter))
    };
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| chosen(name)) {
        let ended = std::panic::catch_unwind(|| test(&package));
        println!("test {name} ... {}", if ended.is_ok() { "ok" } else { "FAILED" });
        failed += u32::from(ended.is_err());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A cache of its own that the server user can reach.
struct Lab {
    _dir: tempfile::TempDir,
    cache: Cache,
    journal: Journal,
    log: CommandLog,
}

impl Lab {
    fn new() -> Lab {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::Builder::new().prefix("ct").tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let journal = Journal::open(&cache).unwrap();
        Lab { _dir: dir, cache, journal, log: CommandLog::default() }
    }

    fn tools(&self) -> Tools<'_> {
        Tools { cache: &self.cache, journal: &self.journal, log: &self.log }
    }

    /// Starts an instance, or shows what was run when it does not come up.
    fn start(&self, spec: &InstanceSpec) -> Box<dyn Instance> {
        start(spec, self.tools()).unwrap_or_else(|error| {
            let commands: Vec<_> = self.log.drain().into_iter().map(|one| one.command).collect();
            panic!("{error}\nhint: {:?}\n{}", error.hint(), commands.join("\n"))
        })
    }

    fn refused(&self, spec: &InstanceSpec) -> PlaceError {
        start(spec, self.tools()).err().unwrap()
    }
}

fn spec(package: &Arc<Package>, placement: Value, config: &[(&str, &str)]) -> InstanceSpec {
    let mut setup: Setup = serde_json::from_value(json!({
        "workload": { "oltp_read_only": {} },
        "load": { "connect": "tcp" },
        "placement": { "kubernetes": placement },
    }))
    .unwrap();
    let small = [("innodb_buffer_pool_size", "16M"), ("innodb_log_file_size", "8M")];
    setup.server.config = small
        .iter()
        .chain(config)
        .map(|(name, value)| ((*name).to_owned(), ConfigValue::Text((*value).to_owned())))
        .collect();
    InstanceSpec { setup, package: Arc::clone(package), dataset: None, ordinal: 0 }
}

fn answer<T: mysql::prelude::FromRow>(endpoint: &Endpoint, query: &str) -> T {
    mysql::Conn::new(endpoint.opts()).unwrap().query_first(query).unwrap().unwrap()
}

fn fact(instance: &dyn Instance, name: &str) -> String {
    instance.fingerprint()[&format!("place.placement.{name}")].clone()
}

/// Namespaces of ceteris that are in the cluster.
fn namespaces() -> Vec<String> {
    let said = Command::new("kubectl")
        .args(["get", "namespaces", "-l", "ceteris.journal", "--output=name"])
        .output()
        .unwrap();
    assert!(said.status.success());
    String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn a_small_limit_throttles(package: &Arc<Package>) {
    let lab = Lab::new();
    let limits = json!({ "cpu": "100m", "memory": "512Mi" });
    let spec = spec(package, json!({ "qos": "guaranteed", "limits": limits }), &[]);
    check(&spec, lab.tools()).unwrap();
    let mut instance = lab.start(&spec);
    assert_eq!(fact(&*instance, "qos_class"), "Guaranteed");
    assert_eq!(fact(&*instance, "requests.cpu"), "100m");
    assert_eq!(fact(&*instance, "cpu_manager_policy"), "none");
    assert_eq!(fact(&*instance, "controller"), "pod");
    let hashes = instance.fingerprint();
    assert_eq!(hashes["place.dataset.hash"], hashes["place.dataset.clone_hash"]);
    assert_eq!(instance.allowance().cpus, Some(0.1));
    assert_eq!(instance.allowance().memory_bytes, Some(512 << 20));
    let pid = instance.pid().expect("the node is this machine");
    let owner =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{pid}")).unwrap());
    assert_ne!(owner, 0, "the server must not be root");
    let endpoint = instance.endpoint();
    let before = throttled(pid);
    let busy = || {
        let mut connection = mysql::Conn::new(endpoint.opts()).unwrap();
        connection.query_drop("DO BENCHMARK(400000, MD5('x'))").unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(busy);
        scope.spawn(busy);
    });
    assert!(throttled(pid) > before, "two busy sessions under 100m were not throttled");
    assert_eq!(instance.alive(), Ok(()));
    assert!(instance.error_log().contains("ready for connections"), "{}", instance.error_log());
    assert!(!lab.log.drain().iter().any(|one| one.command.contains(&endpoint.password)));
    instance.stop().unwrap();
    assert_eq!(namespaces(), [""; 0]);
}

/// `nr_throttled` of a process's control group.
fn throttled(pid: u32) -> u64 {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let group = |controllers: &str| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let named = fields.next()?.split(',').any(|one| one == controllers);
            named.then(|| fields.next()).flatten()
        })
    };
    let stat = match group("cpu") {
        Some(path) => format!("/sys/fs/cgroup/cpu{path}/cpu.stat"),
        None => format!("/sys/fs/cgroup{}/cpu.stat", group("").unwrap()),
    };
    let stat = std::fs::read_to_string(stat).unwrap();
    stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")).unwrap().parse().unwrap()
}

fn a_deployment_answers_by_a_node_port(package: &Arc<Package>) {
    let lab = Lab::new();
    let placement =
        json!({ "controller": "deployment", "reach": "node_port", "qos": "best_effort" });
    let instance = lab.start(&spec(package, placement, &[]));
    assert_eq!(fact(&*instance, "qos_class"), "BestEffort");
    assert_eq!(fact(&*instance, "limits.cpu"), "none");
    assert_eq!(instance.allowance(), ceteris_place::Allowance::default());
    let (_, port) = instance.endpoint().tcp.unwrap();
    assert!(port >= 30000, "{port} is no NodePort");
    let name: String = answer(&instance.endpoint(), "SELECT @@hostname");
    assert!(name.starts_with("server-"), "{name}");
    instance.stop().unwrap();
}

fn a_stateful_set_answers_from_inside(package: &Arc<Package>) {
    let lab = Lab::new();
    let placement = json!({
        "controller": "stateful_set", "worker": "inside", "node": "ceteris-node",
        "qos": "burstable", "limits": { "cpu": "1", "memory": "512Mi" },
    });
    let instance = lab.start(&spec(package, placement, &[]));
    assert_eq!(fact(&*instance, "qos_class"), "Burstable");
    assert_eq!(fact(&*instance, "requests.cpu"), "500m");
    // The conductor still asks from here.
    assert_eq!(answer::<String>(&instance.endpoint(), "SELECT @@hostname"), "server-0");
    let seat = instance.worker_endpoint();
    let prefix = instance.worker_prefix();
    let mut worker = Command::new(&prefix[0])
        .args(&prefix[1..])
        .arg("answer")
        .arg(seat.socket.unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    worker.stdin.take().unwrap().write_all(seat.password.as_bytes()).unwrap();
    let said = worker.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), "server-0");
    instance.stop().unwrap();
}

/// In the Pod: asks the server by its socket, as a worker would.
fn answer_inside(socket: &Path) {
    let mut password = String::new();
    std::io::stdin().read_to_string(&mut password).unwrap();
    let socket = Some(socket.to_owned());
    let endpoint = Endpoint { socket, tcp: None, user: "root".to_owned(), password };
    println!("{}", answer::<String>(&endpoint, "SELECT @@hostname"));
}

fn a_host_path_holds_the_clone(package: &Arc<Package>) {
    let lab = Lab::new();
    let placement = json!({ "storage": { "kind": "host_path" } });
    let instance = lab.start(&spec(package, placement, &[]));
    assert_eq!(answer::<u32>(&instance.endpoint(), "SELECT 1"), 1);
    let data = instance.data_dir().unwrap().to_owned();
    assert!(data.join("ibdata1").exists());
    instance.stop().unwrap();
    assert!(!data.exists());
    assert_eq!(std::fs::read_dir(lab.cache.root().join("instances")).unwrap().count(), 0);
}

/// A volume that was made by hand, as clusters without a provisioner have them.
fn a_claim_holds_the_clone(package: &Arc<Package>) {
    let lab = Lab::new();
    let directory = lab.cache.root().join("volume");
    std::fs::create_dir(&directory).unwrap();
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": "ceteris-test" },
        "spec": {
            "capacity": { "storage": "8Gi" },
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "ceteris-test",
            "local": { "path": directory },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [{
                "key": "kubernetes.io/hostname", "operator": "In", "values": ["ceteris-node"],
            }] }] } },
        },
    });
    let (made, errors) = kubectl(&["create", "--filename", "-"], &volume.to_string());
    assert!(made.contains("created"), "{errors}");
    let storage = json!({ "kind": "pvc", "class": "ceteris-test" });
    let ended = std::panic::catch_unwind(|| {
        let spec = spec(package, json!({ "storage": storage }), &[]);
        check(&spec, lab.tools()).unwrap();
        let instance = lab.start(&spec);
        assert_eq!(answer::<u32>(&instance.endpoint(), "SELECT 1"), 1);
        assert!(directory.join("data/ibdata1").exists());
        assert_eq!(fact(&*instance, "storage"), "pvc");
        instance.stop().unwrap();
    });
    kubectl(&["delete", "persistentvolume", "ceteris-test"], "");
    ended.unwrap();
    let absent = json!({ "kind": "pvc", "class": "nothing" });
    let absent = check(&spec(package, json!({ "storage": absent }), &[]), lab.tools());
    assert!(absent.unwrap_err().to_string().contains("no storage class `nothing`"));
}

/// The same image under its name: then nothing about it is known, and ceteris is sent along.
fn a_named_image_is_given_ceteris(package: &Arc<Package>) {
    let lab = Lab::new();
    let made = lab.start(&spec(package, json!({}), &[]));
    let image = fact(&*made, "image");
    made.stop().unwrap();
    let placement = json!({ "image": image, "worker": "inside" });
    let named = lab.start(&spec(package, placement, &[]));
    assert_eq!(named.worker_prefix().last().unwrap(), "/instance/ceteris");
    assert_eq!(answer::<String>(&named.endpoint(), "SELECT @@hostname"), "server");
    named.stop().unwrap();
}

/// What `kubectl` says to an input: its output and its errors.
fn kubectl(words: &[&str], input: &str) -> (String, String) {
    let mut kubectl = Command::new("kubectl")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    kubectl.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let said = kubectl.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&said.stdout), text(&said.stderr))
}

fn a_pod_that_never_schedules(package: &Arc<Package>) {
    let lab = Lab::new();
    let requests = json!({ "cpu": "56", "memory": "256Mi" });
    let spec = spec(package, json!({ "requests": requests }), &[]);
    for error in [check(&spec, lab.tools()).unwrap_err(), lab.refused(&spec)] {
        let said = error.to_string();
        assert!(said.contains("enough cpu") && said.contains("56"), "{said}");
        assert!(said.contains("ceteris-node has"), "{said}");
        assert!(error.hint().unwrap().contains("requests.cpu"));
    }
    let scheduler = lab.refused(&spec).to_string();
    assert!(scheduler.contains("0/1 nodes are available: 1 Insufficient cpu"), "{scheduler}");
    assert_eq!(namespaces(), [""; 0]);
}

fn what_cannot_start_is_told(package: &Arc<Package>) {
    let lab = Lab::new();
    let absent = lab.refused(&spec(package, json!({ "image": "localhost/absent:1" }), &[]));
    assert!(absent.to_string().contains("localhost/absent:1"), "{absent}");
    assert!(absent.hint().unwrap().contains("placement.kubernetes.image"));
    let wrong = lab.refused(&spec(package, json!({}), &[("innodb_nonsense", "1")]));
    assert!(
        matches!(&wrong, PlaceError::Refused { setting: Some(name), .. } if name == "innodb_nonsense"),
        "{wrong:?}"
    );
    let node = check(&spec(package, json!({ "node": "nowhere" }), &[]), lab.tools()).unwrap_err();
    assert!(node.to_string().contains("no node `nowhere`"), "{node}");
    let context = json!({ "context": "nowhere" });
    let context = check(&spec(package, context, &[]), lab.tools()).unwrap_err();
    assert!(context.hint().unwrap().contains("get-contexts"), "{context}");
    assert_eq!(namespaces(), [""; 0]);
}

fn a_pod_that_goes_is_told(package: &Arc<Package>) {
    let lab = Lab::new();
    let limits = json!({ "memory": "400Mi" });
    let packet = [("max_allowed_packet", "1G")];
    let mut instance = lab.start(&spec(package, json!({ "limits": limits }), &packet));
    let mut connection = mysql::Conn::new(instance.endpoint().opts()).unwrap();
    assert!(connection.query_drop("SELECT LENGTH(REPEAT('a', 900000000))").is_err());
    let why = told(&mut *instance);
    assert!(why.contains("OOMKilled") && why.contains("400Mi"), "{why}");
    let stopped = instance.stop();
    assert!(matches!(stopped, Err(PlaceError::NotStopped { .. })), "{stopped:?}");

    let mut instance = lab.start(&spec(package, json!({}), &[]));
    let namespace = namespaces().remove(0);
    let deleted = Command::new("kubectl")
        .args(["delete", "pod", "server", "--wait=false", "--namespace"])
        .arg(namespace.trim_start_matches("namespace/"))
        .output()
        .unwrap();
    assert!(deleted.status.success());
    let why = told(&mut *instance);
    assert!(why.contains("deleted") || why.contains("ended"), "{why}");
    drop(instance);
    assert_eq!(namespaces(), [""; 0]);
}

/// A kubelet that is held stands for a node that is gone: the control plane finds out by its silence.
fn a_node_that_goes_is_told(package: &Arc<Package>) {
    use rustix::process::{Pid, Signal, kill_process};
    let lab = Lab::new();
    let mut instance = lab.start(&spec(package, json!({}), &[]));
    let kubelet = std::fs::read_to_string("/var/lib/ceteris-test-cluster/pids/kubelet").unwrap();
    let kubelet = Pid::from_raw(kubelet.trim().parse().unwrap()).unwrap();
    kill_process(kubelet, Signal::STOP).unwrap();
    let why = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| told(&mut *instance)));
    kill_process(kubelet, Signal::CONT).unwrap();
    let why = why.unwrap();
    assert!(why.contains("the node ceteris-node does not answer"), "{why}");
    let stopped = instance.stop();
    assert!(matches!(stopped, Ok(()) | Err(PlaceError::NotStopped { .. })), "{stopped:?}");
    assert_eq!(namespaces(), [""; 0]);
}

/// Waits until an instance says that it does not run any more, and how that came.
fn told(instance: &mut dyn Instance) -> String {
    for _ in 0..1800 {
        if let Err(why) = instance.alive() {
            return why;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("an instance that is gone was still called alive after minutes");
}

fn a_killed_conductor_leaves_nothing(_: &Arc<Package>) {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::Builder::new().prefix("ct").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut conductor = Command::new(std::env::current_exe().unwrap())
        .env(CONDUCTOR, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(conductor.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "READY");
    let cache = Cache::at(dir.path()).unwrap();
    assert_eq!(leftovers(&cache).unwrap(), [], "nothing of a living conductor");
    let left = namespaces();
    assert_eq!(left.len(), 1);
    conductor.kill().unwrap();
    conductor.wait().unwrap();
    let name = left[0].trim_start_matches("namespace/").to_owned();
    let namespace = Leftover::Made(Made::Namespace {
        config: std::env::var("KUBECONFIG").ok(),
        context: Some("ceteris-test".to_owned()),
        name,
    });
    assert!(leftovers(&cache).unwrap().contains(&namespace));
    assert!(clean(&cache).unwrap().contains(&namespace));
    assert_eq!(namespaces(), [""; 0]);
    assert_eq!(leftovers(&cache).unwrap(), []);
}

/// The conductor that is killed.
fn conduct() {
    let dir = PathBuf::from(std::env::var_os(CONDUCTOR).unwrap());
    let cache = Cache::at(&dir).unwrap();
    let journal = Journal::open(&cache).unwrap();
    let log = CommandLog::default();
    let package = Arc::new(resolve_package("installed", &cache, &log, &Quiet).unwrap());
    let tools = Tools { cache: &cache, journal: &journal, log: &log };
    let placement = json!({ "storage": { "kind": "host_path" } });
    let _instance = start(&spec(&package, placement, &[]), tools).unwrap();
    println!("READY");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

fn the_manifests_are_taken(package: &Arc<Package>) {
    let lab = Lab::new();
    for placement in [
        json!({ "controller": "stateful_set", "worker": "inside", "node": "a" }),
        json!({ "controller": "deployment", "reach": "node_port", "limits": { "cpu": "2" } }),
        json!({ "storage": { "kind": "pvc", "size": "1Gi", "class": "fast" } }),
    ] {
        let setup = spec(package, placement, &[("init_connect", "SET @a = 'x: #'")]).setup;
        let text = emit(&setup, "data", 1, &lab.cache, Emit::Kubernetes).unwrap();
        assert!(text.starts_with("---\n") && text.contains("  name: ceteris-instance\n"), "{text}");
        let words = ["create", "--dry-run=client", "--validate=strict", "--filename", "-"];
        let (made, errors) = kubectl(&words, &text);
        assert_eq!(errors, "", "{text}");
        assert!(made.lines().count() >= 5, "{made}");
    }
}
