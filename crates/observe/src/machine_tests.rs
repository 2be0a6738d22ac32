//! The host's facts from the files of three other kernels, and from this one's.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::golden::Golden;

fn golden(name: &str) -> Golden {
    Golden::copy(name)
}

fn expect(found: &Fingerprint, wanted: &[(&str, &str)]) {
    for (name, value) in wanted {
        assert_eq!(found.get(*name).map(String::as_str), Some(*value), "{name} in {found:#?}");
    }
}

#[test]
fn two_sockets_with_cgroup_2_and_an_nvme_partition() {
    let found = facts(&golden("linux-6.1-cgroup2"), Path::new("/srv/i/data"), Some(4711));
    expect(
        &found,
        &[
            ("host.system", "Debian GNU/Linux 12 (bookworm)"),
            ("host.kernel.release", "6.1.0-18-amd64"),
            ("host.kernel.numa_balancing", "1"),
            ("host.kernel.clocksource", "tsc"),
            ("host.cpu.model", "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz"),
            ("host.cpu.microcode", "0x5003604"),
            ("host.cpu.count", "4"),
            ("host.cpu.cores", "4"),
            ("host.cpu.sockets", "2"),
            ("host.cpu.online", "0-3"),
            ("host.cpu.smt_active", "0"),
            // Processors that disagree are worth seeing.
            ("host.cpu.governor", "performance, powersave"),
            ("host.cpu.frequency_driver", "intel_pstate"),
            ("host.cpu.vulnerability.meltdown", "Vulnerable"),
            ("host.numa.nodes", "0-1"),
            ("host.numa.node1.cpus", "2-3"),
            ("host.machine.virtual", "false"),
            ("host.huge_pages.enabled", "always"),
            ("host.huge_pages.defrag", "madvise"),
            ("host.vm.swappiness", "60"),
            ("host.vm.page-cluster", "3"),
            // 135055360000 to the next 64 MiB.
            ("host.memory.total_bytes", "135023034368"),
            ("host.data.mount", "/srv"),
            ("host.data.device", "<disk>p3"),
            ("host.data.filesystem", "xfs"),
            ("host.data.options", "rw,noatime; rw,attr2,inode64,logbufs=8,logbsize=32k,noquota"),
            ("host.data.disk", "nvme0n1"),
            ("host.data.disk.scheduler", "none"),
            ("host.data.disk.rotational", "0"),
            ("host.data.disk.size_bytes", "960197124096"),
            ("host.process.nice", "0"),
            ("host.process.scheduler", "other"),
            ("host.process.cpus_allowed", "0-3"),
            ("host.process.oom_score_adj", "-600"),
            ("host.process.limit.nofile", "10000 (hard 524288)"),
            ("host.process.environment.LD_PRELOAD", "/usr/lib/libjemalloc.so.2"),
            ("host.process.environment.MALLOC_CONF", "narenas:4"),
            // Set by the slice above, which the service's own "max" does not lift.
            ("host.cgroup.cpu.quota", "1.5"),
            ("host.cgroup.memory.limit_bytes", "8589934592"),
            ("host.cgroup.memory.high_bytes", "unlimited"),
            ("host.cgroup.memory.swap_limit_bytes", "0"),
            ("host.cgroup.cpu.weight", "200"),
            ("host.cgroup.cpuset.cpus", "0-1"),
            ("host.cgroup.io.weight", "default 100"),
            ("host.cgroup.io.max", "259:0 rbps=max wbps=1048576 riops=max wiops=max"),
            ("host.cgroup.pids.limit", "4096"),
        ],
    );
    assert!(!found.keys().any(|name| name.contains("SECRET") || name.contains("PATH")));
    assert!(!found.values().any(|value| value == "x"));
    // What moves by itself is no fact.
    assert!(!found.keys().any(|name| name.contains("available") || name.contains("dirty_kb")));
}

#[test]
fn an_old_kernel_with_cgroup_1() {
    let found = facts(&golden("linux-3.10-cgroup1"), Path::new("/var/lib/x/data"), Some(4711));
    expect(
        &found,
        &[
            ("host.kernel.release", "3.10.0-1160.el7.x86_64"),
            ("host.machine.virtual", "true"),
            ("host.huge_pages.enabled", "never"),
            ("host.data.mount", "/"),
            ("host.data.disk", "ST2000"),
            ("host.data.disk.scheduler", "deadline"),
            ("host.data.disk.model", "ST2000"),
            ("host.process.nice", "5"),
            ("host.process.scheduler", "batch"),
            // 50000/20000 in the group itself, 400000/100000 above it.
            ("host.cgroup.cpu.quota", "2.5"),
            ("host.cgroup.cpu.shares", "512"),
            ("host.cgroup.memory.limit_bytes", "unlimited"),
            ("host.cgroup.cpuset.cpus", "0"),
            ("host.cgroup.io.weight", "500"),
            ("host.cgroup.io.write_bps", "8:0 1048576; 8:16 2097152"),
        ],
    );
    assert!(!found.contains_key("host.numa.nodes"));
}

#[test]
fn inside_a_container_the_cgroup_path_is_seen_from_within() {
    let found = facts(&golden("container-cgroup2"), Path::new("/var/lib/mysql"), Some(4711));
    expect(
        &found,
        &[
            ("host.cpu.model", "implementer 0x41, part 0xd0c"),
            ("host.cgroup.cpu.quota", "2"),
            ("host.cgroup.memory.limit_bytes", "1073741824"),
            ("host.data.filesystem", "overlay"),
        ],
    );
    assert!(!found.contains_key("host.data.disk"));
}

#[test]
fn a_mount_of_the_instance_itself_has_a_neutral_path() {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("proc/self")).unwrap();
    let of = |instance: &str, point: &str| {
        let line = format!("9 1 7:1 / {instance}{point} rw - ext4 /dev/loop1 rw\n");
        std::fs::write(tree.path().join("proc/self/mountinfo"), line).unwrap();
        let data_dir = format!("{instance}/data");
        facts(&Root::at(tree.path()), Path::new(&data_dir), None)["host.data.mount"].clone()
    };
    assert_eq!(of("/x/1", "/data"), "<instance>/data");
    assert_eq!(of("/x/2", "/data"), "<instance>/data");
    assert_eq!(of("/x/2", ""), "<instance>");
}

#[test]
fn what_changes_from_boot_to_boot_is_not_told() {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let boot = |disk: &str, number: &str, kilobytes: u32| {
        let mount = format!("9 1 {number} / / rw - ext4 /dev/{disk}2 rw\n");
        write("proc/self/mountinfo", &mount);
        write("proc/meminfo", &format!("MemTotal:       {kilobytes} kB\n"));
        write(&format!("sys/dev/block/{number}/partition"), "2");
        // The partition's directory lies in the disk's.
        let target = format!("sys/devices/x/{disk}/{disk}2");
        write(&format!("{target}/partition"), "2");
        let link = tree.path().join(format!("sys/dev/block/{number}"));
        std::fs::remove_dir_all(&link).unwrap();
        std::os::unix::fs::symlink(tree.path().join(target), link).unwrap();
        write(&format!("sys/block/{disk}/device/model"), "ST2000");
        write(&format!("sys/block/{disk}/size"), "4000");
        facts(&Root::at(tree.path()), Path::new("/"), None)
    };
    let first = boot("sda", "8:2", 16_301_444);
    assert_eq!(first, boot("sdb", "8:18", 16_301_388));
    expect(&first, &[("host.data.disk", "ST2000"), ("host.data.device", "<disk>2")]);
}

#[test]
fn throttling_is_read_in_both_versions() {
    for (name, wanted) in [("linux-6.1-cgroup2", (7.0, 0.35)), ("linux-3.10-cgroup1", (12.0, 2.5))]
    {
        let root = golden(name);
        let mounts = mounts(&root);
        let groups = Groups::of(&root, &mounts, 4711).unwrap();
        assert_eq!(groups.throttling().unwrap().read(&root), Some(wanted), "{name}");
    }
}

#[test]
fn an_empty_tree_gives_no_facts_and_no_error() {
    let tree = tempfile::tempdir().unwrap();
    let found = facts(&Root::at(tree.path()), Path::new("/nowhere"), Some(1));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn this_machine_has_the_same_facts_twice() {
    let root = Root::machine();
    let here = std::env::temp_dir();
    let take = || facts(&root, &here, Some(std::process::id()));
    let (before, after) = (take(), take());
    assert_eq!(before, after);
    for name in
        ["host.kernel.release", "host.cpu.count", "host.memory.total_bytes", "host.data.mount"]
    {
        assert!(before.contains_key(name), "{name}");
    }
}
