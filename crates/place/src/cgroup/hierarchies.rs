//! Which hierarchies this machine mounts, and which group of each a process is in.
//!
//! From `/proc/PID/mountinfo` and `/proc/PID/cgroup` (proc(5), cgroups(7)). All reads go below a root
//! directory, so that trees of other machines can stand in for this one's in tests.

use std::fs;
use std::path::{Path, PathBuf};

use super::{GroupPlan, Limits, Want, v1, v2};
use crate::error::PlaceError;

/// Version 1 writes "no limit" as the largest multiple of a page size.
const UNLIMITED_FROM: u64 = 1 << 62;

/// One mounted hierarchy.
struct Mount {
    /// The part of the hierarchy that is mounted here.
    root: String,
    point: PathBuf,
    version: u8,
    controllers: Vec<String>,
}

/// The control groups of one process.
pub(crate) struct Hierarchies {
    root: PathBuf,
    mounts: Vec<Mount>,
    membership: String,
}

impl Hierarchies {
    /// Of this process.
    pub fn own() -> Hierarchies {
        Hierarchies::of(Path::new("/"), "self")
    }

    /// Of a process of the machine whose root is `root`.
    pub fn of(root: &Path, pid: &str) -> Hierarchies {
        let read = |name: &str| {
            fs::read_to_string(root.join(format!("proc/{pid}/{name}"))).unwrap_or_default()
        };
        Hierarchies {
            root: root.to_owned(),
            mounts: read("mountinfo").lines().filter_map(mount).collect(),
            membership: read("cgroup"),
        }
    }

    /// What it takes to limit an instance in groups called `name`; makes nothing.
    ///
    /// # Errors
    /// What could not be limited, why, and what would help.
    pub fn plan(&self, limits: &Limits, name: &str) -> Result<GroupPlan, PlaceError> {
        self.plan_for(limits, true, name).or_else(|first| {
            match limits.quota_will_do && limits.nodes.is_none() {
                true => self.plan_for(limits, false, name).map_err(|_| first),
                false => Err(first),
            }
        })
    }

    fn plan_for(&self, limits: &Limits, chosen: bool, name: &str) -> Result<GroupPlan, PlaceError> {
        let mut plan = GroupPlan { by_quota: !chosen, ..GroupPlan::default() };
        let mut unified = Vec::new();
        for want in limits.wants(chosen) {
            match self.group(want.controller(1), 1) {
                Some(own) => v1::add(&mut plan, self, want, &own, limits, name)?,
                None => unified.push(want),
            }
        }
        if let Some(first) = unified.first() {
            let Some((point, own)) = self.unified() else {
                let why = format!("no `{}` control groups are mounted", first.controller(1));
                let next = "mount the cgroup2 file system, as systemd does";
                return Err(first.refused(why, next));
            };
            v2::add(&mut plan, self, &unified, (&point, &own), limits, name)?;
        }
        Ok(plan)
    }

    /// The tightest CPU quota (in processors) and memory limit (in bytes) that hold here.
    pub fn effective(&self) -> (Option<f64>, Option<u64>) {
        let outwards = |controller: &str| {
            let found = [1, 2].into_iter().find_map(|version| {
                let own = self.group(controller, version)?;
                let mount = self.mount(controller, version)?;
                let point = mount.point.clone();
                let all = own.ancestors().map(Path::to_owned);
                Some((
                    version,
                    all.take_while(move |at| at.starts_with(&point)).collect::<Vec<_>>(),
                ))
            });
            found.unwrap_or((1, Vec::new()))
        };
        let ratio = |quota: &str, period: &str| {
            let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
            (quota > 0.0 && period > 0.0).then(|| quota / period)
        };
        let (version, groups) = outwards("cpu");
        let quotas = groups.iter().filter_map(|group| {
            let read = |name: &str| self.read(&group.join(name));
            match version {
                1 => ratio(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
                _ => read("cpu.max")?
                    .split_once(' ')
                    .and_then(|(quota, period)| ratio(quota, period)),
            }
        });
        let quota = quotas.reduce(f64::min);
        let (version, groups) = outwards("memory");
        let file = if version == 1 { "memory.limit_in_bytes" } else { "memory.max" };
        let limits = groups.iter().filter_map(|group| self.read(&group.join(file))?.parse().ok());
        (quota, limits.filter(|bytes| *bytes < UNLIMITED_FROM).min())
    }

    /// The share of the disk in the process's own group, whatever the version calls it; empty: none.
    pub fn io_weight(&self) -> String {
        let files = ["blkio.bfq.weight", "blkio.weight", "io.bfq.weight", "io.weight"];
        let groups = [self.group("blkio", 1), self.group("io", 2)];
        let texts = groups.iter().flatten().flat_map(|group| files.map(|file| group.join(file)));
        let text = texts.filter_map(|file| self.read(&file)).next().unwrap_or_default();
        text.lines().next().unwrap_or_default().trim_start_matches("default ").to_owned()
    }

    fn mount(&self, controller: &str, version: u8) -> Option<&Mount> {
        self.mounts.iter().find(|mount| {
            mount.version == version
                && (version == 2 || mount.controllers.iter().any(|name| name == controller))
        })
    }

    /// The process's group of a controller.
    pub(super) fn group(&self, controller: &str, version: u8) -> Option<PathBuf> {
        let mount = self.mount(controller, version)?;
        let path = self.membership.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let fits = match version {
                1 => controllers.split(',').any(|name| name == controller),
                _ => controllers.is_empty(),
            };
            fits.then_some(path)
        })?;
        // In a container the mount shows a part of the tree only; the path may be of either view.
        let inside = path.strip_prefix(mount.root.trim_end_matches('/')).unwrap_or(path);
        Some(match inside.trim_start_matches('/') {
            "" => mount.point.clone(),
            inside => mount.point.join(inside),
        })
    }

    /// Where version 2 is mounted, and the process's group in it.
    fn unified(&self) -> Option<(PathBuf, PathBuf)> {
        Some((self.mount("", 2)?.point.clone(), self.group("", 2)?))
    }

    /// The trimmed text of a file of this machine.
    pub(super) fn read(&self, path: &Path) -> Option<String> {
        fs::read_to_string(self.at(path)).ok().map(|text| text.trim().to_owned())
    }

    /// Whether a file or directory is there.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.at(path).exists()
    }

    /// Whether this process may write there.
    pub(super) fn writable(&self, path: &Path) -> bool {
        rustix::fs::access(self.at(path), rustix::fs::Access::WRITE_OK).is_ok()
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

impl Want {
    /// The error where this process has no right to make a group in `directory`.
    pub(super) fn forbidden(self, directory: &Path) -> PlaceError {
        let why = format!("control groups cannot be made in {}", directory.display());
        self.refused(why, "run as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes ceteris ...")
    }
}

fn mount(line: &str) -> Option<Mount> {
    // Optional fields of any number stand between the options and the lone dash.
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(3);
    let mut back = back.split(' ');
    let (root, point) = (front.next()?.to_owned(), PathBuf::from(front.next()?));
    let version = match back.next()? {
        "cgroup" => 1,
        "cgroup2" => 2,
        _ => return None,
    };
    let controllers = back.next_back()?.split(',').map(str::to_owned).collect();
    Some(Mount { root, point, version, controllers })
}
