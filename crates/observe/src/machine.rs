//! Facts of the machine that should be the same in every run: kernel, processors, memory policy,
//! the disk below the data directory. No load average, no free memory: those are series.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Fingerprint;
use crate::cgroup::Groups;
use crate::facts::{Root, bracketed, field};
use crate::mounts::{disk_of, mount_of, mounts};
use crate::process;

/// Files whose whole text is the fact.
const FILES: &[(&str, &str)] = &[
    ("host.kernel.release", "/proc/sys/kernel/osrelease"),
    ("host.kernel.version", "/proc/sys/kernel/version"),
    ("host.kernel.command_line", "/proc/cmdline"),
    ("host.kernel.numa_balancing", "/proc/sys/kernel/numa_balancing"),
    ("host.kernel.sched_autogroup", "/proc/sys/kernel/sched_autogroup_enabled"),
    ("host.kernel.sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
    ("host.kernel.timer_migration", "/proc/sys/kernel/timer_migration"),
    ("host.kernel.watchdog", "/proc/sys/kernel/watchdog"),
    ("host.kernel.clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("host.kernel.aio_max", "/proc/sys/fs/aio-max-nr"),
    ("host.kernel.file_max", "/proc/sys/fs/file-max"),
    ("host.kernel.io_uring_disabled", "/proc/sys/kernel/io_uring_disabled"),
    ("host.network.somaxconn", "/proc/sys/net/core/somaxconn"),
    ("host.network.tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ("host.network.ip_local_port_range", "/proc/sys/net/ipv4/ip_local_port_range"),
    ("host.cpu.online", "/sys/devices/system/cpu/online"),
    ("host.cpu.isolated", "/sys/devices/system/cpu/isolated"),
    ("host.cpu.smt_active", "/sys/devices/system/cpu/smt/active"),
    ("host.cpu.smt_control", "/sys/devices/system/cpu/smt/control"),
    ("host.cpu.boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("host.cpu.no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("host.cpu.idle_driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
    ("host.cpu.idle_governor", "/sys/devices/system/cpu/cpuidle/current_governor"),
    ("host.numa.nodes", "/sys/devices/system/node/online"),
    ("host.machine.vendor", "/sys/class/dmi/id/sys_vendor"),
    ("host.machine.product", "/sys/class/dmi/id/product_name"),
    ("host.machine.hypervisor", "/sys/hypervisor/type"),
];

/// Files that mark the chosen word with brackets.
const CHOICES: &[(&str, &str)] = &[
    ("host.huge_pages.enabled", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("host.huge_pages.defrag", "/sys/kernel/mm/transparent_hugepage/defrag"),
    ("host.huge_pages.shmem_enabled", "/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
    ("host.huge_pages.khugepaged_defrag", "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag"),
];

/// `/proc/sys/vm` settings that bear on a server.
const VM: &[&str] = &[
    "swappiness",
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "overcommit_memory",
    "overcommit_ratio",
    "max_map_count",
    "min_free_kbytes",
    "nr_hugepages",
    "page-cluster",
    "vfs_cache_pressure",
    "watermark_scale_factor",
    "zone_reclaim_mode",
    "compaction_proactiveness",
    "laptop_mode",
];

/// Settings of each processor's frequency driver; the values of all processors are joined.
const FREQUENCY: &[(&str, &str)] = &[
    ("host.cpu.governor", "scaling_governor"),
    ("host.cpu.frequency_driver", "scaling_driver"),
    ("host.cpu.frequency_max_khz", "scaling_max_freq"),
    ("host.cpu.frequency_min_khz", "scaling_min_freq"),
    ("host.cpu.energy_preference", "energy_performance_preference"),
];

/// Settings of a disk's request queue.
const QUEUE: &[&str] = &[
    "rotational",
    "read_ahead_kb",
    "nr_requests",
    "write_cache",
    "logical_block_size",
    "physical_block_size",
    "nomerges",
    "rq_affinity",
    "wbt_lat_usec",
    "io_poll",
];

/// Bytes to which the size of the memory is rounded.
const MEMORY_STEP: u64 = 64 << 20;

/// The disk below the file system of a path of this machine, by the name that outlasts a reboot.
pub fn disk_below(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let root = Root::machine();
    // By its number, because the path may lead through another process's root.
    if let Ok(device) = std::fs::metadata(path).map(|meta| meta.dev()) {
        let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let mounts = mounts(&root);
        let mount = mounts.iter().find(|mount| mount.device_number == number);
        if let Some(disk) = mount.and_then(|mount| disk_of(&root, mount)) {
            return Some(lasting_name(&root, disk));
        }
    }
    let mut facts = Fingerprint::new();
    data_directory(&root, path, &mut facts);
    facts.remove("host.data.disk")
}

/// Processors of this machine that are online; empty where the kernel does not tell.
pub fn online_processors() -> BTreeSet<u32> {
    let text = Root::machine().read("/sys/devices/system/cpu/online");
    match text.and_then(|text| text.parse().ok()) {
        Some(study::Cpus::List(list)) => list,
        _ => BTreeSet::new(),
    }
}

/// All of it.
pub(crate) fn facts(root: &Root, data_dir: &Path, server: Option<u32>) -> Fingerprint {
    let mut facts = Fingerprint::new();
    for (name, path) in FILES {
        keep(&mut facts, name, root.read(path));
    }
    for (name, path) in CHOICES {
        keep(&mut facts, name, root.read(path).map(|text| bracketed(&text).to_owned()));
    }
    for name in VM {
        keep(&mut facts, &format!("host.vm.{name}"), root.read(format!("/proc/sys/vm/{name}")));
    }
    for kind in root.list("/sys/devices/system/cpu/vulnerabilities") {
        let text = root.read(format!("/sys/devices/system/cpu/vulnerabilities/{kind}"));
        keep(&mut facts, &format!("host.cpu.vulnerability.{kind}"), text);
    }
    processors(root, &mut facts);
    memory(root, &mut facts);
    if let Some(text) = root.read("/etc/os-release") {
        let name = field_of_shell(&text, "PRETTY_NAME");
        keep(&mut facts, "host.system", name);
    }
    data_directory(root, data_dir, &mut facts);
    if let Some(pid) = server {
        facts.extend(process::settings(root, pid));
        let mounts = mounts(root);
        if let Some(groups) = Groups::of(root, &mounts, pid) {
            facts.extend(groups.limits());
        }
    }
    facts
}

fn keep(facts: &mut Fingerprint, name: &str, value: Option<String>) {
    if let Some(value) = value {
        facts.insert(name.to_owned(), value);
    }
}

fn field_of_shell(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(line.trim_matches('"').to_owned())
}

fn processors(root: &Root, facts: &mut Fingerprint) {
    let text = root.read("/proc/cpuinfo").unwrap_or_default();
    let all = |key: &str| -> BTreeSet<&str> {
        text.split("\n\n").filter_map(|processor| field(processor, key)).collect()
    };
    let joined = |values: BTreeSet<&str>| {
        (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(", "))
    };
    // Arm kernels give numbers instead of a name.
    let model = joined(all("model name")).or_else(|| {
        let part = joined(all("CPU part"))?;
        Some(format!("implementer {}, part {part}", joined(all("CPU implementer"))?))
    });
    keep(facts, "host.cpu.model", model);
    keep(facts, "host.cpu.microcode", joined(all("microcode")));
    let count = text.split("\n\n").filter(|one| field(one, "processor").is_some()).count();
    keep(facts, "host.cpu.count", (count > 0).then(|| count.to_string()));
    let cores: BTreeSet<(&str, &str)> = text
        .split("\n\n")
        .filter_map(|one| Some((field(one, "physical id")?, field(one, "core id")?)))
        .collect();
    keep(facts, "host.cpu.cores", (!cores.is_empty()).then(|| cores.len().to_string()));
    let sockets = all("physical id").len();
    keep(facts, "host.cpu.sockets", (sockets > 0).then(|| sockets.to_string()));
    if let Some(flags) = all("flags").first() {
        let virtual_machine = flags.split(' ').any(|flag| flag == "hypervisor");
        keep(facts, "host.machine.virtual", Some(virtual_machine.to_string()));
    }
    let directories = root.list("/sys/devices/system/cpu");
    for (name, file) in FREQUENCY {
        let values: BTreeSet<String> = directories
            .iter()
            .filter_map(|cpu| root.read(format!("/sys/devices/system/cpu/{cpu}/cpufreq/{file}")))
            .collect();
        let joined = values.into_iter().collect::<Vec<_>>().join(", ");
        keep(facts, name, (!joined.is_empty()).then_some(joined));
    }
    for node in root.list("/sys/devices/system/node") {
        if node.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok()) {
            let cpus = root.read(format!("/sys/devices/system/node/{node}/cpulist"));
            keep(facts, &format!("host.numa.{node}.cpus"), cpus);
        }
    }
}

fn memory(root: &Root, facts: &mut Fingerprint) {
    let text = root.read("/proc/meminfo").unwrap_or_default();
    let bytes = |key: &str| {
        let kilobytes: u64 = field(&text, key)?.split(' ').next()?.parse().ok()?;
        Some(kilobytes * 1024)
    };
    // What the kernel reserves for itself differs by a little from boot to boot.
    let total = bytes("MemTotal");
    let rounded = total.map(|total| (total + MEMORY_STEP / 2) / MEMORY_STEP * MEMORY_STEP);
    keep(facts, "host.memory.total_bytes", rounded.map(|bytes| bytes.to_string()));
    let swap = bytes("SwapTotal");
    keep(facts, "host.memory.swap_total_bytes", swap.map(|bytes| bytes.to_string()));
}

fn data_directory(root: &Root, data_dir: &Path, facts: &mut Fingerprint) {
    let resolved = std::fs::canonicalize(root.path(data_dir)).ok();
    let directory = match &resolved {
        Some(path) => path.strip_prefix(root.path("/")).map(|rest| Path::new("/").join(rest)).ok(),
        None => None,
    };
    let directory = directory.as_deref().unwrap_or(data_dir);
    let mounts = mounts(root);
    let Some(mount) = mount_of(&mounts, directory) else { return };
    // A mount made for the instance has the instance's own path, which differs from run to run.
    let instance = directory.parent().filter(|parent| mount.point.starts_with(parent));
    let point = match instance.and_then(|parent| mount.point.strip_prefix(parent).ok()) {
        Some(rest) if directory.parent() != Some(Path::new("/")) => Path::new("<instance>")
            .join(rest)
            .display()
            .to_string()
            .trim_end_matches('/')
            .to_owned(),
        _ => mount.point.display().to_string(),
    };
    keep(facts, "host.data.mount", Some(point));
    keep(facts, "host.data.device", Some(mount.source.clone()));
    keep(facts, "host.data.filesystem", Some(mount.kind.clone()));
    keep(facts, "host.data.options", Some(format!("{}; {}", mount.options, mount.super_options)));
    let Some(disk) = disk_of(root, mount) else { return };
    let queue = format!("/sys/class/block/{disk}/queue");
    let queue = if root.path(&queue).exists() { queue } else { format!("/sys/block/{disk}/queue") };
    for name in QUEUE {
        keep(facts, &format!("host.data.disk.{name}"), root.read(format!("{queue}/{name}")));
    }
    let scheduler = root.read(format!("{queue}/scheduler"));
    keep(facts, "host.data.disk.scheduler", scheduler.map(|text| bracketed(&text).to_owned()));
    let size: Option<u64> =
        root.read(format!("/sys/block/{disk}/size")).and_then(|text| text.parse().ok());
    keep(facts, "host.data.disk.size_bytes", size.map(|sectors| (sectors * 512).to_string()));
    keep(facts, "host.data.disk.model", root.read(format!("/sys/block/{disk}/device/model")));
    // Disks are numbered as they are found, so that a name may be another's after a reboot.
    let device = mount.source.strip_prefix("/dev/").and_then(|name| name.strip_prefix(&disk));
    if let Some(partition) = device {
        keep(facts, "host.data.device", Some(format!("<disk>{partition}")));
    }
    keep(facts, "host.data.disk", Some(lasting_name(root, disk)));
}

/// What a disk is called, if it has a name that outlasts a reboot; else its own.
fn lasting_name(root: &Root, disk: String) -> String {
    let lasting = ["dm/name", "md/uuid", "device/model"]
        .iter()
        .find_map(|file| root.read(format!("/sys/block/{disk}/{file}")));
    lasting.unwrap_or(disk)
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
