//! What the kernel really gave a server: read from `/proc`, compared with what was asked for, told in
//! the fingerprint and as the instance's allowance.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use study::{HostPlacement, NumaPolicy, SchedulerClass, ranges};

use super::condition::{Condition, allocator_name};
use super::topology::{Topology, processors};
use crate::allowance::Allowance;
use crate::cgroup::Hierarchies;
use crate::error::PlaceError;

/// What is in force for a process.
pub(super) struct InForce {
    /// Under `place.placement.`, one line for each setting of the study.
    pub told: BTreeMap<String, String>,
    pub allowance: Allowance,
}

/// Reads it back.
///
/// # Errors
/// When the kernel gave something else than what was asked for.
pub(super) fn read(
    pid: u32,
    host: &HostPlacement,
    condition: &Condition,
    by_quota: bool,
) -> Result<InForce, PlaceError> {
    let proc = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let status = proc("status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned()).unwrap_or_default()
    };
    let allowed = processors(&field("Cpus_allowed_list")).unwrap_or_default();
    let groups = Hierarchies::of(Path::new("/"), &pid.to_string());
    let (quota, memory) = groups.effective();

    let mut told = BTreeMap::from([("kind".to_owned(), "host".to_owned())]);
    let mut keep = |name: &str, asked: Option<String>, found: String| match asked {
        None => Ok(()),
        Some(asked) if asked == found => {
            told.insert(name.to_owned(), found);
            Ok(())
        }
        Some(asked) => Err(PlaceError::Limit {
            what: format!("the server's {name}"),
            why: format!("the kernel made `{found}` of `{asked}`"),
            next: None,
        }),
    };
    let limits = &condition.limits;
    if by_quota {
        let count = limits.processors.as_ref().map(|list| format!("{} by quota", list.len()));
        keep("cpus", count, format!("{} by quota", quota.unwrap_or(f64::INFINITY)))?;
    } else {
        keep("cpus", limits.processors.as_ref().map(ranges), ranges(&allowed))?;
    }
    keep("memory_nodes", limits.nodes.as_ref().map(ranges), field("Mems_allowed_list"))?;
    let page = rustix::param::page_size() as u64;
    keep(
        "memory_bytes",
        // The kernel counts pages.
        limits.memory_bytes.map(|bytes| (bytes / page * page).to_string()),
        memory.map_or("unlimited".to_owned(), |bytes| bytes.to_string()),
    )?;
    keep("io_weight", limits.io_weight.map(|weight| weight.to_string()), groups.io_weight())?;

    let stat = proc("stat");
    let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    // Fields of proc(5), of which the third is the first here.
    let stat = |number: usize| {
        after_name.split_ascii_whitespace().nth(number - 3).unwrap_or_default().to_owned()
    };
    keep("nice", (host.nice != 0).then(|| host.nice.to_string()), stat(19))?;
    let class = match host.scheduler {
        SchedulerClass::Other => None,
        SchedulerClass::Batch => Some("batch"),
        SchedulerClass::Idle => Some("idle"),
    };
    let found = match stat(41).as_str() {
        "3" => "batch".to_owned(),
        "5" => "idle".to_owned(),
        other => format!("policy {other}"),
    };
    keep("scheduler", class.map(str::to_owned), found)?;
    let off = condition.confinement.huge_pages_off.then(|| "off".to_owned());
    // Kernels before 5.0 do not show it; there the call's own answer was enough.
    let enabled = if field("THP_enabled") == "1" { "on" } else { "off" };
    keep("huge_pages", off, enabled.to_owned())?;
    if let Some((policy, nodes)) = &condition.confinement.numa {
        let asked = policy_words(*policy, nodes);
        let found = policies(&proc("numa_maps"));
        // A server may ask for another policy for a part of its memory.
        let here = if found.contains(&asked) { asked.clone() } else { joined(&found) };
        keep("numa", Some(asked), here)?;
    }
    if let Some(library) = &condition.confinement.preload {
        // The loader only grumbles about a library that it cannot load.
        let real = library.canonicalize().unwrap_or_else(|_| library.clone());
        let mapped = proc("maps").contains(&*real.to_string_lossy());
        let found = if mapped { allocator_name(host.allocator) } else { "not loaded" };
        keep("allocator", Some(allocator_name(host.allocator).to_owned()), found.to_owned())?;
    }

    let all = Topology::read().processors();
    let named = told.into_iter().map(|(name, value)| (format!("place.placement.{name}"), value));
    Ok(InForce {
        told: named.collect(),
        allowance: Allowance {
            processors: (allowed != all || limits.processors.is_some()).then_some(allowed),
            cpus: quota,
            memory_bytes: memory,
        },
    })
}

/// A policy as the kernel writes it in `numa_maps`.
fn policy_words(policy: NumaPolicy, nodes: &BTreeSet<u32>) -> String {
    match policy {
        NumaPolicy::Default => "default".to_owned(),
        NumaPolicy::Interleave => format!("interleave:{}", ranges(nodes)),
        NumaPolicy::Bind => format!("bind:{}", ranges(nodes)),
        NumaPolicy::Preferred => format!("prefer:{}", ranges(nodes)),
    }
}

/// The policies of all mappings: the second word of each line.
fn policies(numa_maps: &str) -> BTreeSet<String> {
    numa_maps.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect()
}

fn joined(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_the_kernels_words() {
        let maps = "55f788fc3000 interleave:0-1 file=/usr/bin/cat mapped=2 N0=2\n\
                    7ffc1000 interleave:0-1 stack anon=3 dirty=3 N0=2 N1=1\n\
                    7ffd1000 default file=/x mapped=1\n";
        assert_eq!(joined(&policies(maps)), "default, interleave:0-1");
        let nodes = [0, 1].into();
        assert!(policies(maps).contains(&policy_words(NumaPolicy::Interleave, &nodes)));
        assert_eq!(policy_words(NumaPolicy::Preferred, &[2].into()), "prefer:2");
    }
}
