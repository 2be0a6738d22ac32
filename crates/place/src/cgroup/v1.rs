//! Version 1: one hierarchy for each controller, one group of ours in each that is needed.

use std::path::Path;

use study::ranges;

use super::{GroupPlan, Hierarchies, Limits, Want};
use crate::error::PlaceError;

/// Period of a quota, microseconds: the kernel's default.
const PERIOD_US: usize = 100_000;

/// Adds the group `name` of one controller, below this process's `own`, and its limits.
pub(super) fn add(
    plan: &mut GroupPlan,
    machine: &Hierarchies,
    want: Want,
    own: &Path,
    limits: &Limits,
    name: &str,
) -> Result<(), PlaceError> {
    if !machine.writable(own) {
        return Err(want.forbidden(own));
    }
    let group = own.join(name);
    plan.group(&group);
    match want {
        Want::Set => {
            // Both must be given before a process may enter.
            let inherited = |new: &str, old: &str| {
                machine.read(&own.join(new)).or_else(|| machine.read(&own.join(old)))
            };
            let processors = limits.processors.as_ref().map(ranges);
            let processors = processors
                .or_else(|| inherited("cpuset.effective_cpus", "cpuset.cpus"))
                .unwrap_or_default();
            let nodes = limits.nodes.as_ref().map(ranges);
            let nodes = nodes
                .or_else(|| inherited("cpuset.effective_mems", "cpuset.mems"))
                .unwrap_or_default();
            plan.write(group.join("cpuset.cpus"), processors);
            plan.write(group.join("cpuset.mems"), nodes);
        }
        Want::Quota => {
            plan.write(group.join("cpu.cfs_period_us"), PERIOD_US.to_string());
            let quota = limits.count() * PERIOD_US;
            plan.write(group.join("cpu.cfs_quota_us"), quota.to_string());
        }
        Want::Memory => {
            let bytes = limits.memory_bytes.unwrap_or_default().to_string();
            plan.write(group.join("memory.limit_in_bytes"), bytes.clone());
            // Where swap is accounted, memory and swap together may be no more than memory.
            let swap = "memory.memsw.limit_in_bytes";
            if machine.has(&own.join(swap)) {
                plan.write(group.join(swap), bytes);
            } else {
                plan.write(group.join("memory.swappiness"), "0");
            }
        }
        Want::Io => {
            let weight = limits.io_weight.unwrap_or_default().to_string();
            // A root group has statistics of its schedulers, but no weight to be recognised by.
            let file = if machine.has(&own.join("blkio.bfq.io_service_bytes")) {
                "blkio.bfq.weight"
            } else {
                "blkio.weight"
            };
            plan.write(group.join(file), weight);
        }
    }
    Ok(())
}
