//! Plans for trees of other machines, and groups on this one.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::cache::Cache;
use crate::journal::{clean, leftovers};

/// A machine's files below a temporary directory.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(mountinfo: &str, cgroup: &str) -> Tree {
        let tree = Tree(tempfile::tempdir().unwrap());
        tree.write("proc/self/mountinfo", mountinfo);
        tree.write("proc/self/cgroup", cgroup);
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A group of version 2: its controllers, those it passes on, its processes.
    fn group(&self, path: &str, controllers: &str, passed: &str, processes: &str) {
        let dir = format!("sys/fs/cgroup/{path}");
        if !path.is_empty() {
            self.write(&format!("{dir}/cgroup.type"), "domain\n");
        }
        self.write(&format!("{dir}/cgroup.controllers"), controllers);
        self.write(&format!("{dir}/cgroup.subtree_control"), passed);
        self.write(&format!("{dir}/cgroup.procs"), processes);
    }

    fn plan(&self, limits: &Limits) -> Result<Vec<String>, String> {
        let planned = Hierarchies::of(self.0.path(), "self").plan(limits, "ceteris-x");
        planned
            .map(|plan| plan.commands())
            .map_err(|error| format!("{error}; {}", error.hint().unwrap_or_default()))
    }
}

fn everything() -> Limits {
    Limits {
        processors: Some([0, 1, 3].into()),
        quota_will_do: false,
        nodes: Some([0].into()),
        memory_bytes: Some(1 << 30),
        io_weight: Some(200),
    }
}

const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
";
const V1_GROUPS: &str = "5:cpuset:/\n4:memory:/user.slice\n3:blkio:/\n2:cpu,cpuacct:/\n0::/\n";
const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

fn version_1() -> Tree {
    let tree = Tree::new(V1, V1_GROUPS);
    for (file, text) in [
        ("cpuset/cpuset.effective_cpus", "0-7\n"),
        ("cpuset/cpuset.effective_mems", "0-1\n"),
        ("memory/user.slice/memory.memsw.limit_in_bytes", "9223372036854771712\n"),
        ("blkio/blkio.bfq.io_service_bytes", ""),
        ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
    ] {
        tree.write(&format!("sys/fs/cgroup/{file}"), text);
    }
    tree
}

#[test]
fn version_1_has_a_group_for_each_controller() {
    let tree = version_1();
    assert_eq!(
        tree.plan(&everything()).unwrap(),
        [
            "mkdir /sys/fs/cgroup/cpuset/ceteris-x",
            "echo 0-1,3 > /sys/fs/cgroup/cpuset/ceteris-x/cpuset.cpus",
            "echo 0 > /sys/fs/cgroup/cpuset/ceteris-x/cpuset.mems",
            "mkdir /sys/fs/cgroup/memory/user.slice/ceteris-x",
            "echo 1073741824 > /sys/fs/cgroup/memory/user.slice/ceteris-x/memory.limit_in_bytes",
            "echo 1073741824 > /sys/fs/cgroup/memory/user.slice/ceteris-x/memory.memsw.limit_in_bytes",
            "mkdir /sys/fs/cgroup/blkio/ceteris-x",
            "echo 200 > /sys/fs/cgroup/blkio/ceteris-x/blkio.bfq.weight",
        ]
    );
    // A set that names only one of both inherits the other.
    let some = Limits { processors: Some([5].into()), ..Limits::default() };
    assert_eq!(
        tree.plan(&some).unwrap()[1..],
        [
            "echo 5 > /sys/fs/cgroup/cpuset/ceteris-x/cpuset.cpus",
            "echo 0-1 > /sys/fs/cgroup/cpuset/ceteris-x/cpuset.mems",
        ]
    );
}

#[test]
fn a_count_becomes_a_quota_only_where_no_set_can_be_made() {
    let some = Limits { processors: Some([0, 1].into()), ..Limits::default() };
    let counted = Limits { quota_will_do: true, ..some.clone() };
    let tree = version_1();
    assert!(tree.plan(&counted).unwrap()[0].contains("cpuset"));
    let without: String = V1
        .lines()
        .filter(|line| !line.contains("cpuset"))
        .fold(String::new(), |text, line| text + line + "\n");
    tree.write("proc/self/mountinfo", &without);
    assert_eq!(
        tree.plan(&counted).unwrap(),
        [
            "mkdir /sys/fs/cgroup/cpu,cpuacct/ceteris-x",
            "echo 100000 > /sys/fs/cgroup/cpu,cpuacct/ceteris-x/cpu.cfs_period_us",
            "echo 200000 > /sys/fs/cgroup/cpu,cpuacct/ceteris-x/cpu.cfs_quota_us",
        ]
    );
    let refused = tree.plan(&some).unwrap_err();
    assert!(refused.contains("cannot set the server's processors: no `cpuset`"), "{refused}");
}

#[test]
fn version_2_has_one_group_in_the_nearest_directory_without_processes() {
    let tree = Tree::new(V2, "0::/user.slice/user-0.slice/session-1.scope\n");
    tree.group("", "cpuset cpu io memory pids\n", "cpu memory pids\n", "2\n3\n");
    tree.group("user.slice", "cpu memory pids\n", "memory pids\n", "");
    tree.group("user.slice/user-0.slice", "memory pids\n", "memory pids\n", "");
    tree.group("user.slice/user-0.slice/session-1.scope", "memory pids\n", "", "77\n");
    let group = "/sys/fs/cgroup/user.slice/user-0.slice/ceteris-x";
    assert_eq!(
        tree.plan(&everything()).unwrap(),
        [
            "echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control".to_owned(),
            "echo +io > /sys/fs/cgroup/cgroup.subtree_control".to_owned(),
            "echo +cpuset > /sys/fs/cgroup/user.slice/cgroup.subtree_control".to_owned(),
            "echo +io > /sys/fs/cgroup/user.slice/cgroup.subtree_control".to_owned(),
            "echo +cpuset > /sys/fs/cgroup/user.slice/user-0.slice/cgroup.subtree_control"
                .to_owned(),
            "echo +io > /sys/fs/cgroup/user.slice/user-0.slice/cgroup.subtree_control".to_owned(),
            format!("mkdir {group}"),
            format!("echo 0-1,3 > {group}/cpuset.cpus"),
            format!("echo 0 > {group}/cpuset.mems"),
            format!("echo 1073741824 > {group}/memory.max"),
            format!("[ ! -e {group}/memory.swap.max ] || echo 0 > {group}/memory.swap.max"),
            format!("[ ! -e {group}/io.bfq.weight ] || echo 200 > {group}/io.bfq.weight"),
            format!("[ ! -e {group}/io.weight ] || echo 200 > {group}/io.weight"),
        ]
    );
    // What is passed on already needs no switch.
    let memory = Limits { memory_bytes: Some(4096), ..Limits::default() };
    assert_eq!(tree.plan(&memory).unwrap()[0], format!("mkdir {group}"));
}

#[test]
fn a_container_whose_group_holds_its_processes_is_told_what_to_do() {
    let tree = Tree::new(V2, "0::/\n");
    tree.group("", "cpuset cpu memory\n", "", "1\n77\n");
    // Only the machine's own root has no type.
    tree.write("sys/fs/cgroup/cgroup.type", "domain\n");
    let memory = Limits { memory_bytes: Some(4096), ..Limits::default() };
    let refused = tree.plan(&memory).unwrap_err();
    assert!(refused.contains("/sys/fs/cgroup holds processes itself"), "{refused}");
    assert!(refused.contains("mkdir /sys/fs/cgroup/rest;"), "{refused}");
    // A controller that the kernel lacks is another story.
    tree.write("sys/fs/cgroup/cgroup.procs", "");
    let weight = Limits { io_weight: Some(10), ..Limits::default() };
    let refused = tree.plan(&weight).unwrap_err();
    assert!(refused.contains("no `io` controller of version 2"), "{refused}");
}

#[test]
fn the_tightest_limit_on_the_way_out_is_the_one_in_force() {
    let tree = version_1();
    tree.write("proc/9/mountinfo", V1);
    tree.write("proc/9/cgroup", "4:memory:/a/ceteris-x\n2:cpu,cpuacct:/ceteris-x\n3:blkio:/b\n");
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    tree.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n");
    tree.write("sys/fs/cgroup/memory/a/ceteris-x/memory.limit_in_bytes", "8192\n");
    tree.write("sys/fs/cgroup/cpu,cpuacct/ceteris-x/cpu.cfs_quota_us", "150000\n");
    tree.write("sys/fs/cgroup/cpu,cpuacct/ceteris-x/cpu.cfs_period_us", "100000\n");
    tree.write("sys/fs/cgroup/blkio/b/blkio.bfq.weight", "300\n");
    let process = Hierarchies::of(tree.0.path(), "9");
    assert_eq!(process.effective(), (Some(1.5), Some(4096)));
    assert_eq!(process.io_weight(), "300");

    let tree = Tree::new(V2, "0::/a/b\n");
    tree.write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    tree.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    tree.write("sys/fs/cgroup/a/b/memory.max", "max\n");
    tree.write("sys/fs/cgroup/a/b/io.weight", "default 200\n8:0 100\n");
    let process = Hierarchies::of(tree.0.path(), "self");
    assert_eq!(process.effective(), (Some(0.5), None));
    assert_eq!(process.io_weight(), "200");
}

#[test]
fn groups_of_this_machine_are_made_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path()).unwrap();
    let journal = Journal::open(&cache).unwrap();
    let log = CommandLog::default();
    let limits = Limits { memory_bytes: Some(256 << 20), ..Limits::default() };
    let plan = match Hierarchies::own().plan(&limits, "ceteris-cgroup-test") {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            return;
        }
    };
    let cgroup = Cgroup::make(&plan, &journal, &log).unwrap();
    let groups = plan.groups();
    assert_eq!(groups.len(), 1);
    let limit = ["memory.limit_in_bytes", "memory.max"]
        .iter()
        .find_map(|file| fs::read_to_string(groups[0].join(file)).ok());
    assert_eq!(limit.as_deref().map(str::trim), Some("268435456"));
    drop(cgroup);
    assert!(!groups[0].exists());
    let commands: Vec<String> = log.drain().into_iter().map(|one| one.command).collect();
    assert_eq!(commands, plan.commands());

    // A step that is refused takes back those before it.
    let mut wrong = plan.clone();
    wrong.write(groups[0].join("memory.no_such_file"), "1");
    let error = Cgroup::make(&wrong, &journal, &log).err().unwrap().to_string();
    assert!(error.contains("memory.no_such_file"), "{error}");
    assert!(!groups[0].exists());

    // And what a killed conductor made is found.
    let kept = Cgroup::make(&plan, &journal, &log).unwrap();
    assert_eq!(leftovers(&cache).unwrap(), []);
    let dead = cache.room("journal").join("1-dead");
    fs::create_dir(&dead).unwrap();
    let made = Made::Cgroup { path: groups[0].clone() };
    let line = format!("begin {}\n", serde_json::to_string(&made).unwrap());
    fs::write(dead.join("entries"), line).unwrap();
    assert_eq!(clean(&cache).unwrap().len(), 1);
    assert!(!groups[0].exists());
    drop(kept);
}

#[test]
fn a_share_of_the_disk_is_what_the_kernel_shows() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(&Cache::at(dir.path()).unwrap()).unwrap();
    let log = CommandLog::default();
    let limits = Limits { io_weight: Some(300), ..Limits::default() };
    let planned = Hierarchies::own().plan(&limits, "ceteris-weight-test");
    let made = planned.and_then(|plan| Ok((Cgroup::make(&plan, &journal, &log)?, plan)));
    let (_cgroup, plan) = match made {
        Ok(made) => made,
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            return;
        }
    };
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    for group in plan.groups() {
        fs::write(group.join("cgroup.procs"), child.id().to_string()).unwrap();
    }
    let weight = Hierarchies::of(Path::new("/"), &child.id().to_string()).io_weight();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(weight, "300");
}
