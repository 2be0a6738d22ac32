//! The KVM placement with real guests, most of them under QEMU's own translator, which every machine
//! has.
//!
//! The base system and the disks are kept in the machine's own cache (`CETERIS_CACHE`), because
//! making them takes a minute. A guest runs this test's own binary as its observer: `observe PORT`
//! are the names of tests to libtest, and the test of that name serves the port. Guests boot one
//! after the other. Where QEMU, debootstrap or a server is missing a test says SKIPPED.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ceteris_place::{
    Cache, CommandLog, Endpoint, GuestCommand, Instance, InstanceSpec, Journal, Package,
    PlaceError, Quiet, Tools, check, clean, resolve_package, run_in_guest, start,
};
use mysql::prelude::Queryable;
use serde_json::{Value, json};
use study::{ConfigValue, Setup};

/// Tells a child process of this binary which part to play.
const PART: &str = "CETERIS_TEST_PART";

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Lab {
    _turn: MutexGuard<'static, ()>,
    cache: Cache,
    journal: Journal,
    log: CommandLog,
    package: Arc<Package>,
}

impl Lab {
    /// `None`, said aloud, where a guest cannot be run.
    fn open() -> Option<Lab> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = Cache::open().unwrap();
        let log = CommandLog::default();
        let package = match resolve_package("installed", &cache, &log, &Quiet) {
            Ok(package) => Arc::new(package),
            Err(error) => {
                eprintln!("SKIPPED: {error}");
                return None;
            }
        };
        let journal = Journal::open(&cache).unwrap();
        let lab = Lab { _turn: turn, cache, journal, log, package };
        match check(&lab.spec(json!({})), lab.tools()) {
            Ok(()) => Some(lab),
            Err(error) => {
                eprintln!("SKIPPED: no guest here: {error}");
                None
            }
        }
    }

    fn tools(&self) -> Tools<'_> {
        Tools { cache: &self.cache, journal: &self.journal, log: &self.log }
    }

    /// A small guest under TCG with these knobs beside.
    fn spec(&self, knobs: Value) -> InstanceSpec {
        let mut kvm = json!({ "accel": "tcg", "memory": "1GiB" });
        for (name, value) in knobs.as_object().unwrap() {
            kvm[name] = value.clone();
        }
        let setup: Setup = serde_json::from_value(json!({
            "workload": { "oltp_read_only": {} },
            "placement": { "kvm": kvm },
        }))
        .unwrap();
        InstanceSpec { setup, package: self.package.clone(), dataset: None, ordinal: 0 }
    }

    fn start(&self, spec: &InstanceSpec) -> Result<Box<dyn Instance>, PlaceError> {
        start(spec, self.tools())
    }

    fn commands(&self) -> String {
        let entries = self.log.drain().into_iter();
        entries.map(|entry| entry.command).collect::<Vec<_>>().join("\n")
    }
}

fn answer<T: mysql::prelude::FromRow>(endpoint: &Endpoint, query: &str) -> T {
    mysql::Conn::new(endpoint.opts()).unwrap().query_first(query).unwrap().unwrap()
}

fn running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// What the guest runs as `ceteris observe PORT`; otherwise it sees that no requests get no answers.
#[test]
fn observe() {
    let port = std::env::args().nth(2).filter(|port| port.starts_with("/dev/vport"));
    match port {
        Some(port) => {
            let port = std::fs::File::options().read(true).write(true).open(port).unwrap();
            ::observe::serve(&port, &port).unwrap();
        }
        None => {
            let mut said = Vec::new();
            ::observe::serve(&b""[..], &mut said).unwrap();
            assert_eq!(said, b"");
        }
    }
}

#[test]
fn a_guest_with_two_nodes_answers_is_seen_from_inside_and_leaves_nothing() {
    let Some(lab) = Lab::open() else { return };
    let mut spec = lab.spec(json!({ "numa_nodes": 2, "accel": "auto" }));
    let pool = ("innodb_buffer_pool_size".to_owned(), ConfigValue::Text("48M".to_owned()));
    spec.setup.server.config.extend([pool]);
    let mut instance = lab.start(&spec).unwrap();
    let endpoint = instance.endpoint();
    assert_eq!(endpoint.socket, None);
    assert_eq!(endpoint.tcp.as_ref().map(|(host, _)| host.as_str()), Some("127.0.0.1"));
    let asked = "SELECT @@innodb_buffer_pool_size, @@datadir";
    let (pool, data): (u64, String) = answer(&endpoint, asked);
    assert_eq!(pool, 48 << 20);
    let dir = instance.dir().to_owned();
    assert_eq!(Path::new(&data).components().as_path(), dir.join("data"), "as on the host");
    // The account of the dataset, and one for the address that clients have inside.
    let hosts = "SELECT GROUP_CONCAT(host ORDER BY host) FROM mysql.user WHERE user = 'root'";
    assert_eq!(answer::<String>(&endpoint, hosts), "10.0.2.2,127.0.0.1,localhost");

    let facts = instance.fingerprint();
    assert_eq!(facts["place.placement.kind"], "kvm");
    // Whichever a guest boots under here; it was tried once and the answer is remembered.
    let accelerator = facts["place.placement.accelerator"].as_str();
    assert!(["kvm", "tcg"].contains(&accelerator), "{accelerator}");
    if std::fs::File::options().read(true).write(true).open("/dev/kvm").is_ok() {
        let answers = lab.cache.root().join("guests/accelerator.json");
        let answers = std::fs::read_to_string(answers).unwrap();
        assert!(answers.contains(&format!("\"kvm\": {}", accelerator == "kvm")), "{answers}");
    } else {
        assert_eq!(accelerator, "tcg");
    }
    assert_eq!(facts["place.placement.disk.format"], "qcow2");
    assert_eq!(facts["place.dataset.clone_hash"], facts["place.dataset.hash"]);
    let allowance = instance.allowance();
    assert_eq!((allowance.cpus, allowance.memory_bytes), (Some(2.0), Some(1 << 30)));
    assert!(instance.storage().unwrap().starts_with(&dir));

    let channel = instance.observer().unwrap().unwrap();
    assert!(instance.observer().unwrap().is_none(), "there is one channel");
    let remote = ::observe::Remote::new(channel, &dir).unwrap();
    let inside = remote.fingerprint().unwrap();
    assert_eq!(inside["guest.host.numa.nodes"], "0-1");
    assert_eq!(inside["guest.host.numa.node1.cpus"], "1");
    assert_eq!(inside["guest.host.data.filesystem"], "ext4");
    assert!(inside["guest.host.kernel.release"].ends_with("-cloud-amd64"), "{inside:?}");
    let server = lab.package.binary();
    let server = server.file_name().unwrap().to_string_lossy();
    assert!(inside.contains_key(&format!("guest.host.process.library.{server}")), "{inside:?}");
    let here = ::observe::host_fingerprint(&dir, Some(std::process::id()));
    let library = "host.process.library.libc.so.6";
    assert_eq!(inside[&format!("guest.{library}")], here[library], "the same bytes as here");

    let written = |instance: &mut Box<dyn Instance>| {
        let figures = instance.figures();
        figures.into_iter().find(|(name, _)| name == "qemu.disk.write_bytes").unwrap().1
    };
    let before = written(&mut instance);
    let mut connection = mysql::Conn::new(endpoint.opts()).unwrap();
    connection.query_drop("CREATE DATABASE d").unwrap();
    connection.query_drop("CREATE TABLE d.t (a TEXT) AS SELECT REPEAT('x', 60000) AS a").unwrap();
    drop(connection);
    assert!(written(&mut instance) > before);

    assert_eq!(instance.alive(), Ok(()));
    assert!(instance.error_log().contains("ready for connections"));
    let pid = instance.pid().unwrap();
    instance.stop().unwrap();
    assert!(!running(pid) && !dir.exists());
    let commands = lab.commands();
    assert!(commands.contains("qemu-img create") && commands.contains("-numa node,nodeid=1"));
    assert!(!commands.contains(&endpoint.password));
}

#[test]
fn a_raw_disk_past_the_page_cache_on_scsi_behind_a_tap_and_a_guest_killed_by_hand() {
    let Some(lab) = Lab::open() else { return };
    let disk = json!({
        "format": "raw", "cache": "none", "aio": "native", "bus": "virtio_scsi"
    });
    let mut knobs = json!({ "disk": disk, "pin": "0-1", "network": "tap" });
    if !Path::new("/dev/net/tun").exists() {
        eprintln!("SKIPPED: a tap device: no /dev/net/tun");
        knobs["network"] = json!("user");
    }
    let tap = knobs["network"] == "tap";
    let mut instance = lab.start(&lab.spec(knobs)).unwrap();
    assert_eq!(answer::<u32>(&instance.endpoint(), "SELECT 6 * 7"), 42);
    let pinned = instance.allowance().processors.unwrap();
    assert_eq!(pinned.into_iter().collect::<Vec<_>>(), [0, 1]);
    let host = instance.endpoint().tcp.unwrap().0;
    assert_eq!(host.starts_with("169.254."), tap, "{host}");
    // Named after the instance's own directory.
    let id = instance.dir().file_name().unwrap().to_string_lossy().into_owned();
    let device = Path::new("/sys/class/net").join(format!("ceteris-{}", &id[..7]));
    assert_eq!(device.exists(), tap);
    let (pid, dir) = (instance.pid().unwrap(), instance.dir().to_owned());
    let process = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    let how = loop {
        match instance.alive() {
            Ok(()) => std::thread::yield_now(),
            Err(how) => break how,
        }
    };
    assert!(how.starts_with("QEMU ended (signal 9)"), "{how}");
    assert!(how.contains("starting the server"), "the console's last words are told: {how}");
    let error = instance.stop().unwrap_err();
    assert!(matches!(error, PlaceError::NotStopped { .. }), "{error}");
    assert!(!running(pid) && !dir.exists() && !device.exists());
}

#[test]
fn what_refuses_tells_why_in_its_own_words_and_leaves_nothing() {
    let Some(lab) = Lab::open() else { return };
    let instances = || std::fs::read_dir(lab.cache.root().join("instances")).unwrap().count();
    let before = instances();
    // The server.
    let mut spec = lab.spec(json!({}));
    spec.setup.server.config =
        [("innodb_nonsense".to_owned(), ConfigValue::Integer(1))].into_iter().collect();
    let error = lab.start(&spec).err().unwrap();
    let text = error.to_string();
    assert!(text.starts_with("the server refused to start"), "{text}");
    assert!(text.contains("[ERROR]") && text.contains("innodb_nonsense"), "{text}");
    assert!(error.hint().unwrap().contains("server.config.innodb_nonsense"));
    // QEMU.
    let error = lab.start(&lab.spec(json!({ "machine": "enigma" }))).err().unwrap();
    let text = error.to_string();
    assert!(text.starts_with("QEMU ended (1)"), "{text}");
    assert!(text.contains("unsupported machine type"), "{text}");
    // The guest's kernel, which has no room to begin with.
    let error = lab.start(&lab.spec(json!({ "memory": "96MiB" }))).err().unwrap();
    let text = error.to_string();
    assert!(text.starts_with("the guest's kernel panicked"), "{text}");
    assert!(text.contains("Kernel panic"), "{text}");
    // A cloud image.
    let error = lab.start(&lab.spec(json!({ "image": "/x.qcow2" }))).err().unwrap();
    assert!(error.to_string().contains("/x.qcow2"), "{error}");
    assert_eq!(instances(), before);
}

#[test]
fn any_command_runs_in_a_guest_with_two_nodes_and_control_groups_of_version_2() {
    let Some(lab) = Lab::open() else { return };
    let spec = lab.spec(json!({ "numa_nodes": 2 }));
    let study::Placement::Kvm(placement) = &spec.setup.placement else { panic!("no guest") };
    let script = format!(
        "set -e; cat /sys/devices/system/node/online; stat -f -c %T /sys/fs/cgroup\n\
         {} --version; echo written > /var/written; cat /var/written\n\
         mkdir /sys/fs/cgroup/ceteris-x; exit 3",
        lab.package.binary().display()
    );
    let job = GuestCommand {
        placement,
        package: &lab.package,
        program: std::env::current_exe().unwrap(),
        files: Vec::new(),
        script,
        limit: std::time::Duration::from_secs(300),
    };
    let said = run_in_guest(&job, lab.tools()).unwrap();
    assert!(said.text.starts_with("0-1\ncgroup2fs\n"), "{}", said.text);
    assert!(said.text.contains(&lab.package.version.to_string()), "{}", said.text);
    assert!(said.text.ends_with("\nwritten\n"), "{}", said.text);
    assert_eq!(said.status, "3");
}

/// With a cloud image of the tester's own, because none can be had from a package registry.
#[test]
fn a_cloud_image_does_what_a_built_guest_does_and_is_not_written_to() {
    let Ok(image) = std::env::var("CETERIS_TEST_CLOUD_IMAGE") else {
        eprintln!("SKIPPED: no cloud image: CETERIS_TEST_CLOUD_IMAGE names none");
        return;
    };
    let Some(lab) = Lab::open() else { return };
    let before = std::fs::metadata(&image).unwrap().modified().unwrap();
    let mut instance = lab.start(&lab.spec(json!({ "image": image }))).unwrap();
    assert_eq!(answer::<u32>(&instance.endpoint(), "SELECT 6 * 7"), 42);
    assert_eq!(instance.fingerprint()["place.placement.image"].len(), 64);
    let channel = instance.observer().unwrap().unwrap();
    let remote = ::observe::Remote::new(channel, instance.dir()).unwrap();
    assert_eq!(remote.fingerprint().unwrap()["guest.host.data.filesystem"], "ext4");
    let dir = instance.dir().to_owned();
    instance.stop().unwrap();
    assert!(!dir.exists());
    assert_eq!(std::fs::metadata(&image).unwrap().modified().unwrap(), before);
}

/// Plays a conductor that is killed while its guest runs.
#[test]
fn the_guest_of_a_killed_conductor_dies_and_its_directory_is_found() {
    if std::env::var(PART).is_ok_and(|part| part == "killed") {
        let lab = Lab::open().unwrap();
        let instance = lab.start(&lab.spec(json!({}))).unwrap();
        println!("\nguest {} {}", instance.pid().unwrap(), instance.dir().display());
        std::thread::sleep(std::time::Duration::from_secs(600));
    }
    let Some(lab) = Lab::open() else { return };
    let name = "the_guest_of_a_killed_conductor_dies_and_its_directory_is_found";
    let mut conductor = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PART, "killed")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(conductor.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("guest ")).unwrap();
    let mut words = line.split(' ').skip(1);
    let (pid, dir) = (words.next().unwrap().parse().unwrap(), words.next().unwrap());
    assert!(running(pid) && Path::new(dir).exists());
    conductor.kill().unwrap();
    conductor.wait().unwrap();
    while running(pid) {
        std::thread::yield_now();
    }
    let found = clean(&lab.cache).unwrap();
    let told: Vec<String> = found.iter().map(|leftover| leftover.describe()).collect();
    assert!(told.contains(&format!("directory {dir}")), "{told:?}");
    assert!(!Path::new(dir).exists());
}

/// Asks in a process whose PATH leads nowhere.
#[test]
fn without_qemu_the_check_names_the_package_that_brings_it() {
    if std::env::var(PART).is_ok_and(|part| part == "no qemu") {
        let package = Package {
            name: "none".to_owned(),
            flavour: ceteris_place::Flavour::Mysql,
            version: ceteris_place::Version::new(8, 0, 12),
            mysqld: Vec::new(),
            env: Vec::new(),
            base_dir: "/".into(),
            hash: String::new(),
        };
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let (journal, log) = (Journal::open(&cache).unwrap(), CommandLog::default());
        let setup = json!({ "workload": { "oltp_read_only": {} }, "placement": { "kvm": {} } });
        let spec = InstanceSpec {
            setup: serde_json::from_value(setup).unwrap(),
            package: Arc::new(package),
            dataset: None,
            ordinal: 0,
        };
        let tools = Tools { cache: &cache, journal: &journal, log: &log };
        let error = check(&spec, tools).unwrap_err();
        println!("\ntold {error} / {}", error.hint().unwrap_or_default());
        return;
    }
    let said = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "without_qemu_the_check_names_the_package_that_brings_it", "--nocapture"])
        .env(PART, "no qemu")
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let told = said.lines().find(|line| line.starts_with("told ")).unwrap_or(&said);
    let expected = "told `qemu-system-x86_64` is needed to run a guest and was not found / \
                    apt-get install qemu-system-x86";
    assert_eq!(told, expected);
}
