//! Which files of the kernel the keys of `[host]` mean, and whether they can be what a study wants.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use study::{Host, TransparentHugePages};

use crate::disk::Disk;
use crate::error::PlaceError;
use crate::journal::current;

/// Pairs of settings of which writing one clears the other (`Documentation/admin-guide/sysctl/vm.rst`).
const CLEARS: [(&str, &str); 2] =
    [("dirty_ratio", "dirty_bytes"), ("dirty_background_ratio", "dirty_background_bytes")];

/// One file and what shall stand in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    /// The study's key below `[host]`.
    pub key: String,
    pub path: PathBuf,
    pub value: String,
    /// Files whose values are lost when this one is written.
    pub lost: Vec<PathBuf>,
}

/// Everything that `host` wants of the machine whose root is `root`, for data below `data_path`.
pub(super) fn all(host: &Host, root: &Path, data_path: &Path) -> Result<Vec<Wanted>, PlaceError> {
    let mut wanted = Vec::new();
    let mut want = |key: &str, path: &str, value: String| {
        let path = root.join(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let pair = CLEARS.iter().find_map(|(a, b)| match &*name {
            name if name == *a => Some(*b),
            name if name == *b => Some(*a),
            _ => None,
        });
        let lost = pair.map(|other| path.with_file_name(other)).into_iter().collect();
        wanted.push(Wanted { key: key.to_owned(), path, value, lost });
    };
    if let Some(on) = host.numa_balancing {
        want("numa_balancing", "proc/sys/kernel/numa_balancing", u8::from(on).to_string());
    }
    if let Some(pages) = host.transparent_huge_pages {
        let word = match pages {
            TransparentHugePages::Always => "always",
            TransparentHugePages::Madvise => "madvise",
            TransparentHugePages::Never => "never",
        };
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        want("transparent_huge_pages", path, word.to_owned());
    }
    if let Some(swappiness) = host.swappiness {
        want("swappiness", "proc/sys/vm/swappiness", swappiness.to_string());
    }
    if let Some(ratio) = host.dirty_ratio {
        want("dirty_ratio", "proc/sys/vm/dirty_ratio", ratio.to_string());
    }
    if let Some(governor) = &host.governor {
        for cpu in frequency_domains(root) {
            let path = format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor");
            want("governor", &path, governor.clone());
        }
    }
    if let Some(scheduler) = &host.io_scheduler {
        let file = Disk::below(data_path)?.scheduler_file();
        let file = file.display().to_string();
        want("io_scheduler", file.trim_start_matches('/'), scheduler.clone());
    }
    for (name, value) in &host.sysctl {
        let path = sysctl_path(name)?;
        want(&format!("sysctl.{name}"), &path, value.to_string());
    }
    if let Some(governor) = &host.governor
        && !wanted.iter().any(|one| one.key == "governor")
    {
        return Err(PlaceError::Limit {
            what: "host.governor".to_owned(),
            why: format!("no processor of this machine has a frequency governor for `{governor}`"),
            next: Some("leave it out; a guest's frequency is its host's affair".to_owned()),
        });
    }
    let mut seen = BTreeSet::new();
    match wanted.iter().find(|one| !seen.insert(&one.path)) {
        None => Ok(wanted),
        Some(twice) => Err(twice.refused("two keys name the same file".to_owned(), None)),
    }
}

/// Processors that have a governor.
fn frequency_domains(root: &Path) -> BTreeSet<String> {
    let listed = fs::read_dir(root.join("sys/devices/system/cpu")).into_iter().flatten();
    let names = listed.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let governed = |name: &String| {
        name.strip_prefix("cpu").is_some_and(|rest| rest.parse::<u32>().is_ok())
            && root
                .join("sys/devices/system/cpu")
                .join(name)
                .join("cpufreq/scaling_governor")
                .exists()
    };
    names.filter(governed).collect()
}

/// `vm.swappiness`, or `net/ipv4/conf/eth0.1/rp_filter` where a part holds a dot, as sysctl(8) has it.
fn sysctl_path(name: &str) -> Result<String, PlaceError> {
    let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(PlaceError::Limit {
            what: format!("host.sysctl.{name}"),
            why: "it is not the name of a kernel setting".to_owned(),
            next: Some("write it as sysctl -a does, such as \"vm.vfs_cache_pressure\"".to_owned()),
        });
    }
    Ok(format!("proc/sys/{path}"))
}

/// Whether this process may write a file that is there.
pub(super) fn check_writable(key: &str, path: &Path) -> Result<(), PlaceError> {
    let refused = |why: String, next: &str| {
        Err(PlaceError::Limit { what: format!("host.{key}"), why, next: Some(next.to_owned()) })
    };
    if !path.exists() {
        let why = format!("{} is not there", path.display());
        return refused(why, "this kernel, or this container, has no such setting; leave it out");
    }
    match rustix::fs::access(path, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(error) => {
            let why = format!("{} cannot be written: {error}", path.display());
            refused(why, "run as root, on the machine itself or in a privileged container")
        }
    }
}

impl Wanted {
    /// Whether the file is there and ours to write, and knows the value.
    pub fn check(&self) -> Result<(), PlaceError> {
        for path in self.lost.iter().chain([&self.path]) {
            check_writable(&self.key, path)?;
        }
        let known = match self.key.as_str() {
            "governor" => {
                let list = self.path.with_file_name("scaling_available_governors");
                fs::read_to_string(list).unwrap_or_default()
            }
            // `none [mq-deadline] bfq`
            _ => fs::read_to_string(&self.path)
                .ok()
                .filter(|text| text.contains('['))
                .unwrap_or_default()
                .replace(['[', ']'], ""),
        };
        let known: Vec<&str> = known.split_ascii_whitespace().collect();
        if known.is_empty() || known.contains(&self.value.as_str()) {
            return Ok(());
        }
        let why = format!("{} knows no `{}`", self.path.display(), self.value);
        Err(self.refused(why, Some(&format!("it knows {}", known.join(", ")))))
    }

    /// Whether the kernel has taken the value.
    pub fn check_in_force(&self) -> Result<(), PlaceError> {
        let words =
            |text: &str| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<String>>();
        let now = current(&self.path).unwrap_or_default();
        if words(&now) == words(&self.value) {
            return Ok(());
        }
        let why = format!("the kernel made `{now}` of `{}` in {}", self.value, self.path.display());
        Err(self.refused(why, None))
    }

    /// The error for this setting.
    pub fn refused(&self, why: String, next: Option<&str>) -> PlaceError {
        let what = format!("host.{}", self.key);
        PlaceError::Limit { what, why, next: next.map(str::to_owned) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use study::Param;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/sys/vm/dirty_ratio", "20\n"),
            ("proc/sys/vm/dirty_bytes", "0\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors",
                "performance powersave\n",
            ),
            ("sys/devices/system/cpu/cpu1/online", "1\n"),
            ("sys/devices/system/cpu/cpuidle/current_driver", "none\n"),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn wanted(host: &Host, root: &Path) -> Result<Vec<Wanted>, PlaceError> {
        all(host, root, Path::new("/"))
    }

    #[test]
    fn keys_become_files_and_values() {
        let dir = tree();
        let host = Host {
            transparent_huge_pages: Some(TransparentHugePages::Never),
            dirty_ratio: Some(30),
            governor: Some("performance".to_owned()),
            sysctl: [("vm.vfs_cache_pressure".to_owned(), Param::Integer(50))].into(),
            ..Host::default()
        };
        let found = wanted(&host, dir.path()).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|one| {
                let path = one.path.strip_prefix(dir.path()).unwrap();
                format!("{} {} {}", one.key, path.display(), one.value)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "transparent_huge_pages sys/kernel/mm/transparent_hugepage/enabled never",
                "dirty_ratio proc/sys/vm/dirty_ratio 30",
                "governor sys/devices/system/cpu/cpu0/cpufreq/scaling_governor performance",
                "sysctl.vm.vfs_cache_pressure proc/sys/vm/vfs_cache_pressure 50",
            ]
        );
        assert_eq!(found[1].lost, [dir.path().join("proc/sys/vm/dirty_bytes")]);
        found[0].check().unwrap();
        found[1].check().unwrap();
        found[2].check().unwrap();
        let missing = found[3].check().unwrap_err();
        assert!(missing.to_string().contains("vfs_cache_pressure is not there"), "{missing}");
        let other = found[0].check_in_force().unwrap_err().to_string();
        assert!(other.contains("the kernel made `madvise` of `never`"), "{other}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_could() {
        let dir = tree();
        let host = Host { governor: Some("turbo".to_owned()), ..Host::default() };
        let error = wanted(&host, dir.path()).unwrap()[0].check().unwrap_err();
        assert!(error.to_string().contains("knows no `turbo`"), "{error}");
        assert_eq!(error.hint().unwrap(), "it knows performance, powersave");
        let none = tempfile::tempdir().unwrap();
        let error = wanted(&host, none.path()).unwrap_err().to_string();
        assert!(error.contains("no processor of this machine has a frequency governor"), "{error}");
        let sysctl = |name: &str| Host {
            dirty_ratio: Some(5),
            sysctl: [(name.to_owned(), Param::Integer(5))].into(),
            ..Host::default()
        };
        for (name, fragment) in [
            ("vm.dirty_ratio", "two keys name the same"),
            ("vm/../kernel/x", "not the name"),
            ("vm.", "not the name"),
        ] {
            let error = wanted(&sysctl(name), dir.path()).unwrap_err().to_string();
            assert!(error.contains(fragment), "{error}");
        }
    }
}
