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
            groups: Vec::new(),
            nice: host.nice,
            scheduler: host.scheduler,
            numa: host.numa.as_ref().map(|numa| policy(numa, &machine)).transpose()?,
            huge_pages_off: host.huge_pages == HugePages::Off,
            preload: allocator::find(host.allocator, log)?,
        };
        check_nice(host)?;
        let config = buffer_pool::divided(&setup.server.config, host)?;
        let conditions = seats.into_iter().map(|seat| Condition {
            limits: Limits {
                processors: seat.processors,
                quota_will_do: seat.counted,
                nodes: seat.nodes,
                memory_bytes: host.memory.map(|bytes| bytes.0),
                io_weight: host.io_weight,
            },
            confinement: confinement.clone(),
            config: config.clone(),
        });
        Ok(conditions.collect())
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
        what: "share of the disk".to_owned(),
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
        what: "nice level".to_owned(),
        why: format!("{} is below {own}, which this process has", host.nice),
        next: Some("run as root".to_owned()),
    })
}

/// A policy and its nodes, all for interleaving where none is named.
fn policy(numa: &Numa, machine: &Topology) -> Result<(NumaPolicy, BTreeSet<u32>), PlaceError> {
    let there = machine.memory();
    let asked: BTreeSet<u32> = numa.nodes.iter().copied().collect();
    if let Some(missing) = asked.difference(there).next() {
        return Err(PlaceError::Limit {
            what: "memory policy".to_owned(),
            why: format!("there is no node {missing} with memory"),
            next: Some(format!("nodes of this machine are {}", shown(there))),
        });
    }
    match (numa.policy, asked.is_empty()) {
        (NumaPolicy::Interleave, true) => Ok((numa.policy, there.clone())),
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
