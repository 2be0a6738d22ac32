//! What a study's `placement.host` means for one instance on this machine: its limits, how its process
//! runs, and its settings. Nothing is made here; whatever this machine cannot give is an error, since
//! an instance without a limit of its level would be another condition.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use study::{Allocator, ConfigValue, HostPlacement, HugePages, Numa, NumaPolicy, Placement, Setup};

use super::topology::{Topology, shown};
use super::{allocator, buffer_pool, layout};
use crate::cgroup::{GroupPlan, Hierarchies, Limits};
use crate::child::Confinement;
use crate::command::CommandLog;
use crate::disk::Disk;
use crate::error::PlaceError;

/// One instance's condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub limits: Limits,
    /// Without its control groups, which have no name yet.
    pub confinement: Confinement,
    /// The server's settings.
    pub config: BTreeMap<String, ConfigValue>,
}

impl Condition {
    /// Those of all instances of a setup, by ordinal.
    ///
    /// # Errors
    /// What this machine has not.
    pub fn all(setup: &Setup, log: &CommandLog) -> Result<Vec<Condition>, PlaceError> {
        let Placement::Host(host) = &setup.placement else {
            return Err(PlaceError::Other("this is not a host placement".to_owned()));
        };
        let machine = Topology::read();
        let seats = layout::seats(host, &machine)?;
        let confinement = Confinement {
            nice: host.nice,
            scheduler: host.scheduler,
            huge_pages_off: host.huge_pages == HugePages::Off,
            preload: allocator::find(host.allocator, log)?,
            ..Confinement::default()
        };
        check_nice(host)?;
        let config = buffer_pool::divided(&setup.server.config, host)?;
        let condition = |seat: layout::Seat| {
            let numa = host.numa.as_ref();
            let numa = numa.map(|numa| policy(numa, machine.memory(), seat.nodes.as_ref()));
            Ok(Condition {
                confinement: Confinement { numa: numa.transpose()?, ..confinement.clone() },
                limits: Limits {
                    processors: seat.processors,
                    quota_will_do: seat.counted,
                    nodes: seat.nodes,
                    memory_bytes: host.memory.map(|bytes| bytes.0),
                    io_weight: host.io_weight,
                },
                config: config.clone(),
            })
        };
        seats.into_iter().map(condition).collect()
    }

    /// The control groups that its limits need, called `name`; none where there are no limits.
    pub fn groups(&self, name: &str) -> Result<GroupPlan, PlaceError> {
        if self.limits == Limits::default() {
            return Ok(GroupPlan::default());
        }
        Hierarchies::own().plan(&self.limits, name)
    }
}

/// Whether a share of the disk means anything: only one scheduler, and the cost model of version 2,
/// heed it. `data`: where instances lie.
pub(super) fn check_io_weight(setup: &Setup, data: &Path) -> Result<(), PlaceError> {
    let Placement::Host(HostPlacement { io_weight: Some(_), .. }) = &setup.placement else {
        return Ok(());
    };
    let disk = Disk::below(data)?;
    let scheduler = setup.host.io_scheduler.clone().or_else(|| disk.scheduler());
    if scheduler.as_deref() == Some("bfq") || disk.has_cost_model() {
        return Ok(());
    }
    Err(PlaceError::Limit {
        what: "the server's share of the disk".to_owned(),
        why: format!(
            "the scheduler `{}` of {} knows no shares",
            scheduler.as_deref().unwrap_or("unknown"),
            disk.name
        ),
        next: Some("add `io_scheduler = \"bfq\"` to [host]".to_owned()),
    })
}

/// Only root may be nicer to itself than to others.
fn check_nice(host: &HostPlacement) -> Result<(), PlaceError> {
    let own = rustix::process::getpriority_process(None).unwrap_or(0);
    if host.nice == 0 || host.nice >= own || rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(PlaceError::Limit {
        what: "the server's nice level".to_owned(),
        why: format!("{} is below {own}, which this process has", host.nice),
        next: Some("run as root".to_owned()),
    })
}

/// A policy and its nodes; for interleaving where none is named all that the instance may use:
/// those it is `bound` to, or all that are `there`.
fn policy(
    numa: &Numa,
    there: &BTreeSet<u32>,
    bound: Option<&BTreeSet<u32>>,
) -> Result<(NumaPolicy, BTreeSet<u32>), PlaceError> {
    let usable = bound.unwrap_or(there);
    let asked: BTreeSet<u32> = numa.nodes.iter().copied().collect();
    if let Some(missing) = asked.difference(usable).next() {
        let (why, whose) = match there.contains(missing) {
            true => (format!("`assign` binds an instance to other nodes than {missing}"), "it has"),
            false => (format!("there is no node {missing} with memory"), "this machine has"),
        };
        return Err(PlaceError::Limit {
            what: "the memory policy".to_owned(),
            why,
            next: Some(format!("{whose} {}", shown(usable))),
        });
    }
    match (numa.policy, asked.is_empty()) {
        (NumaPolicy::Interleave, true) => Ok((numa.policy, usable.clone())),
        _ => Ok((numa.policy, asked)),
    }
}

/// As a study writes it.
pub(super) fn allocator_name(allocator: Allocator) -> &'static str {
    match allocator {
        Allocator::Default => "default",
        Allocator::Jemalloc => "jemalloc",
        Allocator::Tcmalloc => "tcmalloc",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn numa(policy: NumaPolicy, nodes: &[u32]) -> Numa {
        Numa { policy, nodes: nodes.to_vec() }
    }

    #[test]
    fn a_policy_stays_on_the_nodes_that_an_instance_has() {
        let there = [0, 1].into();
        let bound = [1].into();
        let interleaved = numa(NumaPolicy::Interleave, &[]);
        assert_eq!(policy(&interleaved, &there, None).unwrap().1, there);
        assert_eq!(policy(&interleaved, &there, Some(&bound)).unwrap().1, bound);
        let zero = numa(NumaPolicy::Bind, &[0]);
        assert_eq!(policy(&zero, &there, None).unwrap().1, [0].into());
        let error = policy(&zero, &there, Some(&bound)).unwrap_err();
        assert!(error.to_string().contains("other nodes than 0"), "{error}");
        assert_eq!(error.hint().unwrap(), "it has 1");
        let error = policy(&numa(NumaPolicy::Preferred, &[7]), &there, None).unwrap_err();
        assert!(error.to_string().contains("no node 7 with memory"), "{error}");
        assert_eq!(error.hint().unwrap(), "this machine has 0-1");
    }
}
