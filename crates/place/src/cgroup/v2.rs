//! Version 2: one group of ours for all controllers, in the nearest directory that may hold it.
//!
//! A group that gives controllers to those below it must not hold processes itself (only the root may),
//! so ours can rarely stand directly in the group that ceteris runs in. The nearest one above that
//! is ours to change will do: a slice of systemd, or what was delegated to us. A controller that the
//! directories above do not pass on is switched on there and stays on, as container engines leave
//! it: by itself it limits nobody, and somebody else may have begun to use it.

use std::path::{Path, PathBuf};

use study::ranges;

use super::{GroupPlan, Hierarchies, Limits, Step, Want};
use crate::error::PlaceError;

/// Period of a quota, microseconds: the kernel's default.
const PERIOD_US: usize = 100_000;

/// Adds the group `name` and its limits. `at`: the mount point, and this process's own group.
pub(super) fn add(
    plan: &mut GroupPlan,
    machine: &Hierarchies,
    wants: &[Want],
    at: (&Path, &Path),
    limits: &Limits,
    name: &str,
) -> Result<(), PlaceError> {
    let (point, own) = at;
    let mut refusal = None;
    let candidates = own.ancestors().take_while(|above| above.starts_with(point));
    let mut fitting = None;
    for candidate in candidates {
        match switch_on(machine, wants, point, candidate) {
            Ok(switches) => {
                fitting = Some((candidate.to_owned(), switches));
                break;
            }
            // The nearest one's is the one that the reader can do something about.
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    let Some((parent, switches)) = fitting else {
        return Err(refusal.unwrap_or_else(|| wants[0].forbidden(own)));
    };
    for (file, text) in switches {
        plan.write(file, text);
    }
    let group = parent.join(name);
    plan.group(&group);
    for want in wants {
        limit(plan, *want, &group, limits);
    }
    Ok(())
}

fn limit(plan: &mut GroupPlan, want: Want, group: &Path, limits: &Limits) {
    match want {
        Want::Set => {
            // What is not written is as it is above.
            if let Some(processors) = &limits.processors {
                plan.write(group.join("cpuset.cpus"), ranges(processors));
            }
            if let Some(nodes) = &limits.nodes {
                plan.write(group.join("cpuset.mems"), ranges(nodes));
            }
        }
        Want::Quota => {
            let quota = limits.count() * PERIOD_US;
            plan.write(group.join("cpu.max"), format!("{quota} {PERIOD_US}"));
        }
        Want::Memory => {
            let bytes = limits.memory_bytes.unwrap_or_default().to_string();
            plan.write(group.join("memory.max"), bytes);
            // Not there in a kernel without swap.
            plan.steps.push(Step::WriteAny {
                files: vec![group.join("memory.swap.max")],
                text: "0".to_owned(),
                needed: false,
            });
        }
        Want::Io => plan.steps.push(Step::WriteAny {
            // The first is the scheduler's own, the second that of the cost model.
            files: vec![group.join("io.bfq.weight"), group.join("io.weight")],
            text: limits.io_weight.unwrap_or_default().to_string(),
            needed: true,
        }),
    }
}

/// What must be written so that a group in `parent` has the controllers of `wants`, or why it cannot.
fn switch_on(
    machine: &Hierarchies,
    wants: &[Want],
    point: &Path,
    parent: &Path,
) -> Result<Vec<(PathBuf, String)>, PlaceError> {
    let first = wants[0];
    if !machine.writable(parent) || !machine.writable(&parent.join("cgroup.procs")) {
        return Err(first.forbidden(parent));
    }
    let words = |path: PathBuf| -> Vec<String> {
        let text = machine.read(&path).unwrap_or_default();
        text.split_ascii_whitespace().map(str::to_owned).collect()
    };
    let mut switches: Vec<(PathBuf, String)> = Vec::new();
    for want in wants {
        let name = want.controller(2);
        // From here outwards to the first directory that has the controller itself.
        for directory in parent.ancestors().take_while(|above| above.starts_with(point)) {
            let file = directory.join("cgroup.subtree_control");
            if words(file.clone()).iter().any(|on| on == name) {
                break;
            }
            // Only the root has no type.
            let is_root = !machine.has(&directory.join("cgroup.type"));
            if !is_root && !words(directory.join("cgroup.procs")).is_empty() {
                let why = format!(
                    "{} holds processes itself, so that groups in it cannot have the `{name}` \
                     controller",
                    directory.display()
                );
                let next = format!(
                    "move them into a group below: mkdir {0}/rest; for p in $(cat {0}/cgroup.procs); \
                     do echo $p > {0}/rest/cgroup.procs; done",
                    directory.display()
                );
                return Err(want.refused(why, &next));
            }
            if !machine.writable(&file) {
                let why = format!("{} does not pass the `{name}` controller on", file.display());
                let next = "run as root, or let root delegate it: systemctl edit user@.service, \
                            [Service] Delegate=cpu cpuset io memory pids";
                return Err(want.refused(why, next));
            }
            switches.push((file, format!("+{name}")));
            if words(directory.join("cgroup.controllers")).iter().any(|has| has == name) {
                break;
            }
            if directory == point {
                let why = format!("the kernel has no `{name}` controller of version 2 here");
                let next = "see /proc/cgroups; it may be switched off on the kernel's command line";
                return Err(want.refused(why, next));
            }
        }
    }
    // Outer directories first; a stable sort keeps one directory's in order.
    switches.sort_by_key(|(file, _)| file.components().count());
    Ok(switches)
}
