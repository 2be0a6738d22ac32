//! One study whose levels are where the server runs, on the real things: a process, a container, a
//! guest, a Pod. Then what a small limit of CPU does to a Pod.
//!
//! The shared cache is used, because it holds the guest's base system. An engine or a cluster that is
//! not up is brought up by `scripts/with-docker` and `scripts/cluster/up` and taken down afterwards.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::laboratory::{Laboratory, server_installed};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name)
}

fn skipped(placement: &str, why: &str) {
    eprintln!("SKIPPED placement {placement}: {why}");
}

fn there(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .unwrap()
        .status
        .success()
}

/// The cluster while a test uses it.
struct Cluster {
    environment: String,
}

impl Cluster {
    /// Brings it up; says why not where the machine lacks something.
    fn up() -> Option<Cluster> {
        let up = Command::new(script("cluster/up")).output().unwrap();
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        match up.status.code() {
            Some(0) => Some(Cluster { environment: String::from_utf8(up.stdout).unwrap() }),
            Some(2) => {
                skipped("kubernetes", said.lines().find(|line| line.starts_with("error")).unwrap());
                None
            }
            _ => panic!("scripts/cluster/up: {said}"),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let down = Command::new(script("cluster/down")).status();
        assert!(std::thread::panicking() || down.is_ok_and(|status| status.success()));
    }
}

/// ceteris with a Docker engine and the cluster at hand.
fn surrounded(lab: &Laboratory, cluster: Option<&Cluster>, arguments: &[&str]) -> Output {
    let plain = lab.command(arguments);
    let environment = cluster.map_or("", |cluster| &cluster.environment);
    let mut command = match there("docker") {
        true => Command::new(script("with-docker")),
        false => Command::new("env"),
    };
    command
        .args(["bash", "-c", "eval \"$0\"; exec \"$@\"", environment])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(plain.get_current_dir().unwrap())
        .output()
        .unwrap()
}

const BASE: &str = r#"
[server.config]
innodb_buffer_pool_size = "128M"

[workload.oltp_read_only]
tables = 1
rows   = 500

[load]
connections = 2
connect     = "tcp"
warmup      = "1s"
measure     = "2s"

[design]
blocks = 2
"#;

#[test]
fn the_same_server_wherever_it_runs() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::on_the_shared_cache();
    let mut levels = vec![("host", "{ host = { cpus = 1, memory = \"1GiB\" } }")];
    match there("docker") {
        true => levels.push(("docker", "{ docker = { cpus = 1, memory = \"1GiB\" } }")),
        false => skipped("docker", "docker is not installed"),
    }
    match there("qemu-system-x86_64") && there("debootstrap") {
        true => levels.push(("kvm", "{ kvm = { cpus = 1, memory = \"1GiB\" } }")),
        false => skipped("kvm", "qemu-system-x86_64 or debootstrap is not installed"),
    }
    let cluster = Cluster::up();
    if cluster.is_some() {
        let limits = "limits = { cpu = \"1\", memory = \"1Gi\" }";
        let pod = format!("{{ kubernetes = {{ qos = \"guaranteed\", {limits} }} }}").leak();
        levels.push(("kubernetes", pod));
    }
    let written: String =
        levels.iter().map(|(name, placement)| format!("{name} = {placement}\n")).collect();
    lab.write(
        "study.toml",
        &format!(
            "title = \"Where it runs\"\n{BASE}\n[[question]]\nname = \"placement\"\n\
             vary = \"placement\"\n[question.levels]\n{written}"
        ),
    );
    let ran = surrounded(&lab, cluster.as_ref(), &["run", "study.toml"]);
    let talk = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{talk}\n{}", String::from_utf8_lossy(&ran.stdout));

    let shown = lab.show("results/study.ceteris");
    let question = &shown["questions"][0];
    assert_eq!(question["audit"]["ok"], true, "{}", question["audit"]["unexplained"]);
    let runs = question["runs"].as_array().unwrap();
    for (name, _) in &levels {
        let own = runs.iter().filter(|run| run["level"] == *name).count();
        assert_eq!(own, 2, "{name}: {runs:?}");
        eprintln!("PLACED {name}");
    }
    let seen = |group: &str, name: &str| -> Value {
        let listed = question["audit"][group].as_array().unwrap();
        listed.iter().find(|one| one["name"] == name).cloned().unwrap_or_default()
    };
    if levels.len() > 1 {
        let kinds = seen("factor", "place.placement.kind");
        for (name, _) in &levels {
            assert_eq!(kinds["values"][name], *name, "{kinds}");
        }
    }
    // What speed means nothing is said before anything else, in every form.
    if seen("factor", "place.placement.accelerator")["values"]["kvm"] == "tcg" {
        assert!(shown["caveats"][0].as_str().unwrap().contains("tcg"), "{shown}");
        let text = lab.succeed(&["show", "results/study.ceteris"]);
        assert!(text.lines().next().unwrap().contains("caution"), "{text}");
        lab.succeed(&["report", "results/study.ceteris", "-o", "page.html"]);
        let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
        let body = page.split("<header>").nth(1).unwrap();
        assert!(body.find("tcg").unwrap() < body.find("<h1>").unwrap());
    }
    assert_eq!(lab.processes(), vec![], "processes left");
}

#[test]
fn a_small_limit_of_cpu_is_seen_in_the_evidence() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::on_the_shared_cache();
    let Some(cluster) = Cluster::up() else { return };
    let placement = "[placement.kubernetes]\nqos = \"guaranteed\"\n\
                     limits = { cpu = \"1\", memory = \"1Gi\" }\n";
    lab.write(
        "study.toml",
        &format!(
            "title = \"A small limit\"\n{BASE}\n{placement}[[question]]\nname = \"limit\"\n\
             vary = \"placement.kubernetes.limits.cpu\"\nlevels = [\"1\", \"200m\"]\n"
        ),
    );
    let ran = surrounded(&lab, Some(&cluster), &["run", "study.toml"]);
    let talk = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{talk}\n{}", String::from_utf8_lossy(&ran.stdout));
    let question = lab.show("results/study.ceteris")["questions"][0].clone();
    assert_eq!(question["audit"]["ok"], true, "{}", question["audit"]["unexplained"]);
    let factor = question["audit"]["factor"].as_array().unwrap();
    let allowance = factor.iter().find(|one| one["name"] == "allowance.cpus").unwrap();
    assert_eq!(allowance["values"]["200m"], "0.2", "{allowance}");
    lab.succeed(&["report", "results/study.ceteris", "-o", "page.html"]);
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("server.cgroup.throttled_periods"), "no throttling in the evidence");
}

/// The optimised program that `make test` has just built and names: an emulated processor takes
/// minutes for what this test's own one does.
fn quick_program() -> PathBuf {
    std::env::var_os("CETERIS_QUICK_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_ceteris").into(), PathBuf::from)
}

/// Two and four servers, bound to the nodes of a machine with two and not, in a guest that is one.
#[test]
fn bound_and_unbound_instances_on_two_nodes() {
    if !server_installed() {
        return;
    }
    if !there("qemu-system-x86_64") || !there("debootstrap") {
        return skipped("host on two nodes", "qemu-system-x86_64 or debootstrap is not installed");
    }
    // One at a time with the others.
    let _lab = Laboratory::on_the_shared_cache();
    let cache = place::Cache::open().unwrap();
    let journal = place::Journal::open(&cache).unwrap();
    let log = place::CommandLog::default();
    let tools = place::Tools { cache: &cache, journal: &journal, log: &log };
    let package = place::resolve_package("installed", &cache, &log, &place::Quiet).unwrap();
    let study = format!(
        "title = \"Nodes\"\n{}\n[placement.host]\ninstances = 2\n[[question]]\nname = \"bound\"\n\
         vary = \"placement.host.assign\"\nlevels = [\"none\", \"spread\"]\n\
         sweep = {{ \"placement.host.instances\" = [2, 4] }}\n",
        BASE.replace("connections = 2", "connections = 4")
            // Small files: an emulated processor hashes each clone of them.
            .replace("\n[workload", "innodb_log_file_size = \"8M\"\n[workload")
            .replace("warmup      = \"1s\"", "warmup      = \"0s\"")
            .replace("measure     = \"2s\"", "measure     = \"1s\"")
    );
    let placement: study::KvmPlacement = serde_json::from_value(serde_json::json!({
        "cpus": 4, "numa_nodes": 2, "memory": "4GiB"
    }))
    .unwrap();
    let helpers = ["mariadb-install-db", "my_print_defaults", "resolveip"];
    let said = place::run_in_guest(
        &place::GuestCommand {
            placement: &placement,
            package: &package,
            program: quick_program(),
            files: helpers.map(|name| Path::new("/usr/bin").join(name)).to_vec(),
            script: format!(
                "set -e; hostname localhost; echo 127.0.0.1 localhost > /etc/hosts\n\
                 ip link set lo up; mkdir -p /var/lab; cd /var/lab; export CETERIS_CACHE=/var/lab/cache\n\
                 mkdir -p -m 755 cache; cat > study.toml <<'END'\n{study}END\n\
                 /ceteris/ceteris run study.toml\necho SHOWN\n\
                 /ceteris/ceteris show results/study.ceteris --format json\n"
            ),
            limit: std::time::Duration::from_secs(1800),
        },
        tools,
    )
    .unwrap();
    assert_eq!(said.status, "0", "{}", said.text);
    let (talk, shown) = said.text.split_once("\nSHOWN\n").unwrap();
    let shown: Value = serde_json::from_str(shown).unwrap();
    let question = &shown["questions"][0];
    assert_eq!(question["audit"]["ok"], true, "{}", question["audit"]["unexplained"]);
    assert_eq!(question["runs"].as_array().unwrap().len(), 8, "{talk}");
    // Each run tells of each of its instances.
    let told = |count: usize| {
        let each =
            talk.lines().filter_map(|line| line.split_once("(instances ")?.1.split_once(')'));
        each.filter(|(figures, _)| figures.split(", ").count() == count).count()
    };
    assert_eq!((told(2), told(4)), (4, 4), "{talk}");
    // Unbound, a server may run on all four processors; bound, on those of one node.
    let listed = ["factor", "consequences"].map(|group| question["audit"][group].clone());
    let allowed: Vec<&Value> = listed
        .iter()
        .flat_map(|group| group.as_array().unwrap())
        .filter(|one| one["name"].as_str().unwrap().starts_with("host.process.cpus_allowed"))
        .collect();
    assert!(!allowed.is_empty(), "{listed:?}");
    for one in allowed {
        let values = one["values"].as_object().unwrap();
        let of = |level: &str| {
            values.iter().find(|(who, _)| who.starts_with(level)).unwrap().1.as_str().unwrap()
        };
        assert_eq!(of("none"), "0-3", "{one}");
        assert!(["0-1", "2-3"].contains(&of("spread")), "{one}");
    }
    eprintln!("PLACED host, two and four instances bound and unbound on two nodes");
}
