//! Limits and throttling of a process's control groups, version 1 and 2 (and both at once).
//!
//! A limit holds if any ancestor sets it, so the tightest from the process's group up to the root
//! is taken. Facts from the kernel's `Documentation/admin-guide/cgroup-v1` and `cgroup-v2.rst`.

use std::path::PathBuf;

use crate::Fingerprint;
use crate::facts::{Root, field};
use crate::mounts::Mount;

/// Version 1 writes "no limit" as the largest multiple of a page size.
const UNLIMITED_FROM: u64 = 1 << 62;

/// Directories of a process's group for one controller, innermost first, and the version.
struct Group {
    directories: Vec<PathBuf>,
    version: u8,
}

/// The groups of one process.
pub(crate) struct Groups<'a> {
    root: &'a Root,
    mounts: &'a [Mount],
    membership: String,
}

impl<'a> Groups<'a> {
    /// `None` when the process is gone or the kernel has no control groups.
    pub(crate) fn of(root: &'a Root, mounts: &'a [Mount], pid: u32) -> Option<Groups<'a>> {
        let membership = root.read(format!("/proc/{pid}/cgroup"))?;
        Some(Groups { root, mounts, membership })
    }

    /// The group that a controller is managed in: version 1 where it is mounted there, else 2.
    fn group(&self, controller: &str) -> Option<Group> {
        let mut unified = None;
        for line in self.membership.lines() {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            if controllers.split(',').any(|name| name == controller) {
                let mount = self.mounts.iter().find(|mount| {
                    mount.kind == "cgroup"
                        && mount.super_options.split(',').any(|option| option == controller)
                })?;
                return Some(Group { directories: ancestors(mount, path), version: 1 });
            }
            if controllers.is_empty() {
                unified = Some(path);
            }
        }
        let mount = self.mounts.iter().find(|mount| mount.kind == "cgroup2")?;
        Some(Group { directories: ancestors(mount, unified?), version: 2 })
    }

    /// Every value of a file from the innermost group outwards.
    fn values(&self, group: &Group, file: &str) -> Vec<String> {
        let paths = group.directories.iter().map(|directory| directory.join(file));
        paths.filter_map(|path| self.root.read(path)).collect()
    }

    /// The innermost value of a file.
    fn own(&self, group: &Group, file: &str) -> Option<String> {
        self.values(group, file).into_iter().next()
    }

    /// CPUs that the quota allows: `unlimited` or a number such as `2.5`.
    fn cpu_quota(&self) -> Option<String> {
        let group = self.group("cpu")?;
        let cpus = |quota: &str, period: &str| {
            let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
            (quota > 0.0 && period > 0.0).then(|| quota / period)
        };
        let limits: Vec<f64> = if group.version == 2 {
            let files = self.values(&group, "cpu.max");
            files
                .iter()
                .filter_map(|text| text.split_once(' ').and_then(|(q, p)| cpus(q, p)))
                .collect()
        } else {
            let quotas = group.directories.iter().filter_map(|directory| {
                let quota = self.root.read(directory.join("cpu.cfs_quota_us"))?;
                let period = self.root.read(directory.join("cpu.cfs_period_us"))?;
                cpus(&quota, &period)
            });
            quotas.collect()
        };
        Some(limits.into_iter().reduce(f64::min).map_or("unlimited".to_owned(), |n| n.to_string()))
    }

    /// The smallest of a file of bytes, here and above: `unlimited` or bytes.
    fn bytes(&self, group: &Group, file: &str) -> Option<String> {
        let values = self.values(group, file);
        if values.is_empty() && group.version == 1 {
            return None;
        }
        let numbers = values.iter().filter_map(|text| text.parse::<u64>().ok());
        let limit = numbers.filter(|bytes| *bytes < UNLIMITED_FROM).min();
        Some(limit.map_or("unlimited".to_owned(), |bytes| bytes.to_string()))
    }

    /// All limits, under `host.cgroup.`; the same name means the same in both versions.
    pub(crate) fn limits(&self) -> Fingerprint {
        let mut facts = Fingerprint::new();
        let mut keep = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // Device tables have a line for each device.
                facts.insert(format!("host.cgroup.{name}"), value.replace('\n', "; "));
            }
        };
        keep("cpu.quota", self.cpu_quota());
        if let Some(group) = self.group("cpu") {
            keep("cpu.version", Some(group.version.to_string()));
            keep("cpu.weight", self.own(&group, "cpu.weight"));
            keep("cpu.shares", self.own(&group, "cpu.shares"));
            keep("cpu.idle", self.own(&group, "cpu.idle"));
        }
        if let Some(group) = self.group("cpuset") {
            let (cpus, mems) = if group.version == 2 {
                ("cpuset.cpus.effective", "cpuset.mems.effective")
            } else {
                ("cpuset.effective_cpus", "cpuset.effective_mems")
            };
            // Without the controller in its own group, the nearest ancestor's set holds.
            keep("cpuset.cpus", self.own(&group, cpus));
            keep("cpuset.mems", self.own(&group, mems));
        }
        if let Some(group) = self.group("memory") {
            keep("memory.version", Some(group.version.to_string()));
            if group.version == 2 {
                keep("memory.limit_bytes", self.bytes(&group, "memory.max"));
                keep("memory.high_bytes", self.bytes(&group, "memory.high"));
                keep("memory.swap_limit_bytes", self.bytes(&group, "memory.swap.max"));
            } else {
                keep("memory.limit_bytes", self.bytes(&group, "memory.limit_in_bytes"));
                keep(
                    "memory.and_swap_limit_bytes",
                    self.bytes(&group, "memory.memsw.limit_in_bytes"),
                );
                keep("memory.swappiness", self.own(&group, "memory.swappiness"));
            }
        }
        if let Some(group) = self.group("blkio").filter(|group| group.version == 1) {
            keep(
                "io.weight",
                self.own(&group, "blkio.bfq.weight").or_else(|| self.own(&group, "blkio.weight")),
            );
            for name in ["read_bps", "write_bps", "read_iops", "write_iops"] {
                keep(
                    &format!("io.{name}"),
                    self.own(&group, &format!("blkio.throttle.{name}_device")),
                );
            }
        } else if let Some(group) = self.group("io") {
            keep("io.weight", self.own(&group, "io.weight"));
            keep("io.max", self.own(&group, "io.max"));
            keep("io.latency", self.own(&group, "io.latency"));
        }
        if let Some(group) = self.group("pids") {
            keep("pids.limit", self.bytes(&group, "pids.max"));
        }
        facts
    }

    /// Where `cpu.stat` of the process's own group is, if that is not the root group.
    pub(crate) fn throttling(&self) -> Option<Throttling> {
        let group = self.group("cpu")?;
        // A root group has no ancestor and is never throttled.
        if group.directories.len() < 2 {
            return None;
        }
        Some(Throttling { path: group.directories.first()?.join("cpu.stat") })
    }
}

/// How to read how long a group was held back by its CPU quota.
#[derive(Clone, Debug)]
pub(crate) struct Throttling {
    path: PathBuf,
}

impl Throttling {
    /// Periods in which the quota ran out, and seconds lost, since the group was made.
    pub(crate) fn read(&self, root: &Root) -> Option<(f64, f64)> {
        let text = root.read(&self.path)?;
        let number = |key: &str| field(&text, key)?.parse::<f64>().ok();
        let seconds = match number("throttled_usec") {
            Some(microseconds) => microseconds / 1e6,
            None => number("throttled_time")? / 1e9,
        };
        Some((number("nr_throttled")?, seconds))
    }
}

/// The group's directory and those above it up to the mount, innermost first.
fn ancestors(mount: &Mount, path: &str) -> Vec<PathBuf> {
    // In a container the mount shows a part of the tree only; the path may be of either view.
    let inside = path.strip_prefix(mount.root.trim_end_matches('/')).unwrap_or(path);
    let full = mount.point.join(inside.trim_start_matches('/'));
    full.ancestors()
        .take_while(|directory| directory.starts_with(&mount.point))
        .map(|directory| directory.to_owned())
        .collect()
}
