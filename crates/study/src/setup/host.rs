//! What is set on the machine itself for a run, and set back afterwards.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Param;

/// Kernel settings of this machine during a run; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Automatic NUMA balancing.
    pub numa_balancing: Option<bool>,
    /// Transparent huge pages.
    pub transparent_huge_pages: Option<TransparentHugePages>,
    /// `vm.swappiness`.
    pub swappiness: Option<u32>,
    /// `vm.dirty_ratio`, percent of memory.
    pub dirty_ratio: Option<u32>,
    /// Frequency governor of every processor.
    pub governor: Option<String>,
    /// Scheduler of the disk below the data directory.
    pub io_scheduler: Option<String>,
    /// Whether the page cache is dropped before the server starts.
    pub drop_caches: bool,
    /// Any other `sysctl` by its dotted name.
    pub sysctl: BTreeMap<String, Param>,
}

/// Transparent huge pages of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransparentHugePages {
    /// Wherever possible.
    Always,
    /// Where a program asks.
    Madvise,
    /// Nowhere.
    Never,
}
