//! A server process on this machine, with what the kernel lets it use.

use serde::{Deserialize, Serialize};

use crate::allowance::{Bytes, Cpus};
use crate::setup::Contradiction;

/// A server process on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostPlacement {
    /// Processors of each instance; `None`: all.
    pub cpus: Option<Cpus>,
    /// Memory of each instance; `None`: no limit.
    pub memory: Option<Bytes>,
    /// Share of the disk beside others, 1 to 1000.
    pub io_weight: Option<u32>,
    /// Memory policy of the kernel.
    pub numa: Option<Numa>,
    /// How many servers run at once.
    pub instances: u32,
    /// How instances are bound to processors and nodes.
    pub assign: Assign,
    /// Processors of each instance, with [`Assign::List`].
    pub assign_list: Vec<String>,
    /// What the study's `innodb_buffer_pool_size` means for several instances.
    pub buffer_pool: BufferPool,
    /// Nice level, −20 to 19.
    pub nice: i32,
    /// Scheduling class.
    pub scheduler: SchedulerClass,
    /// Transparent huge pages of the process.
    pub huge_pages: HugePages,
    /// Memory allocator, preloaded.
    pub allocator: Allocator,
}

/// Memory policy of a process (`set_mempolicy(2)`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Numa {
    /// Which.
    pub policy: NumaPolicy,
    /// On these nodes; empty: all, for `interleave` alone.
    pub nodes: Vec<u32>,
}

/// Kind of memory policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumaPolicy {
    /// Local to the processor that asks first.
    #[default]
    Default,
    /// Page by page in turn.
    Interleave,
    /// These nodes and no others.
    Bind,
    /// This node while it has memory.
    Preferred,
}

/// How several instances are bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assign {
    /// Not at all.
    #[default]
    None,
    /// In turn over the nodes, memory too.
    Spread,
    /// One node after the other, memory too.
    Pack,
    /// As listed.
    List,
}

/// What a configured buffer pool means for several instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferPool {
    /// It is divided among them.
    #[default]
    Divided,
    /// Each has so much.
    Each,
}

/// Scheduling class of the server's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerClass {
    /// SCHED_OTHER.
    #[default]
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
}

/// Transparent huge pages of the server process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HugePages {
    /// As the machine has them.
    #[default]
    Default,
    /// None (`PR_SET_THP_DISABLE`).
    Off,
}

/// Memory allocator of the server process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allocator {
    /// What the server is linked with.
    #[default]
    Default,
    /// jemalloc, as installed here.
    Jemalloc,
    /// tcmalloc, as installed here.
    Tcmalloc,
}

impl Default for HostPlacement {
    fn default() -> Self {
        HostPlacement {
            cpus: None,
            memory: None,
            io_weight: None,
            numa: None,
            instances: 1,
            assign: Assign::None,
            assign_list: Vec::new(),
            buffer_pool: BufferPool::Divided,
            nice: 0,
            scheduler: SchedulerClass::Other,
            huge_pages: HugePages::Default,
            allocator: Allocator::Default,
        }
    }
}

impl HostPlacement {
    pub(crate) fn contradiction(&self) -> Option<Contradiction> {
        let found = |key, message: &str, hint| {
            Some(Contradiction { key, message: message.to_owned(), hint })
        };
        let listed = self.assign == Assign::List;
        // With `spread` and `pack` a count says how many of its node an instance gets.
        let counted = matches!(self.cpus, None | Some(Cpus::Count(_)));
        if listed && self.cpus.is_some() || self.assign != Assign::None && !counted {
            let message = "`cpus` and `assign` both say which processors an instance has";
            return found("assign", message, "leave one of them out");
        }
        if listed && self.assign_list.len() != self.instances as usize {
            let message = "`assign_list` does not name the processors of each instance";
            return found("assign_list", message, "one entry for each of `instances`");
        }
        if !listed && !self.assign_list.is_empty() {
            let message = "`assign_list` is given, but `assign` is not `list`";
            return found("assign_list", message, "add `assign = \"list\"`");
        }
        if self.assign_list.iter().any(|cpus| cpus.parse::<Cpus>().is_err()) {
            let message = "`assign_list` names no processors";
            return found("assign_list", message, crate::allowance::CPUS_FORMS);
        }
        let Numa { policy, nodes } = self.numa.as_ref()?;
        match (policy, nodes.as_slice()) {
            (NumaPolicy::Default, [_, ..]) => {
                found("numa", "the default policy takes no nodes", "name another `policy`")
            }
            (NumaPolicy::Bind, []) => {
                found("numa", "`bind` names no nodes", "add `nodes`, such as `nodes = [0]`")
            }
            (NumaPolicy::Preferred, nodes) if nodes.len() != 1 => {
                found("numa", "`preferred` takes one node", "add `nodes = [0]`")
            }
            _ => None,
        }
    }
}
