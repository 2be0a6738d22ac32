//! The setup tree: the complete description of one condition.
//!
//! Every type here is deserialised from the study file, with unknown keys refused, and serialised
//! into the plan and the result file. Placements and workloads are variants.

mod host;
mod load;
mod placement;
mod workload;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use host::{Host, TransparentHugePages};
pub use load::{Arrivals, Connect, Load, OnLost, Protocol, Reactor, Scheduling, Stage};
pub use placement::{
    Accelerator, Allocator, Assign, BufferPool, ContainerEngine, ContainerNetwork,
    ContainerStorage, Controller, Disk, DiskAio, DiskBus, DiskCache, DiskFormat, DockerPlacement,
    ExternalPlacement, GuestNetwork, HostPlacement, HugePages, KubernetesPlacement, KvmPlacement,
    Numa, NumaPolicy, Placement, PodStorage, QosClass, Reach, Resources, SchedulerClass,
    VolumeKind, WorkerSeat,
};
pub use workload::{
    BulkInsert, Distribution, LegacyDistribution, NontrxMode, Oltp, OltpLegacy, OltpReadOnly,
    OltpReadWrite, OltpUpdateIndex, OltpUpdateNonIndex, OltpWriteOnly, Param, Script,
    SelectRandomPoints, SelectRandomRanges, TestMode, Workload,
};

/// One condition, complete: what a cell of the plan runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The server program and its configuration.
    #[serde(default)]
    pub server: Server,
    /// Where it runs.
    #[serde(default)]
    pub placement: Placement,
    /// Kernel settings of this machine meanwhile.
    #[serde(default)]
    pub host: Host,
    /// What is driven against it.
    pub workload: Workload,
    /// How it is driven.
    #[serde(default)]
    pub load: Load,
}

/// The server program and the `[mysqld]` section it is started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// A catalogue name, `installed`, a directory, an archive, or `image:NAME` in containers.
    pub package: String,
    /// Server variables by their own names, as [`canonical`](crate::variables::canonical) writes them.
    pub config: BTreeMap<String, ConfigValue>,
}

/// A value of the `[mysqld]` section, rendered as the server itself writes it.
///
/// Read by hand and not by `serde(untagged)`, which would lose the place of an error.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ConfigValue {
    /// `ON` or `OFF`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A fraction.
    Float(f64),
    /// Anything else, as given: `4096M`, `O_DIRECT`.
    Text(String),
}

impl<'de> Deserialize<'de> for ConfigValue {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ConfigValueVisitor)
    }
}

struct ConfigValueVisitor;

impl Visitor<'_> for ConfigValueVisitor {
    type Value = ConfigValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or a boolean")
    }

    fn visit_bool<E: de::Error>(self, boolean: bool) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Boolean(boolean))
    }

    fn visit_i64<E: de::Error>(self, integer: i64) -> Result<ConfigValue, E> {
        Ok(ConfigValue::Integer(integer))
    }

    fn visit_u64<E: de::Error>(self, integer: u64) -> Result<ConfigValue, E> {
        match i64::try_from(integer) {
            Ok(integer) => Ok(ConfigValue::Integer(integer)),
            Err(_) => Err(E::custom("too large for a number, write it as a string")),
        }
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<ConfigValue, E> {
        if float.is_finite() {
            Ok(ConfigValue::Float(float))
        } else {
            Err(E::custom("not a finite number"))
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ConfigValue, E> {
        if text.chars().any(char::is_control) {
            return Err(E::custom("a line break or another control character in a variable"));
        }
        Ok(ConfigValue::Text(text.to_owned()))
    }
}

/// Keys of one table that contradict each other.
pub(crate) struct Contradiction {
    /// The key to point at.
    pub(crate) key: &'static str,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: &'static str,
}

impl Default for Server {
    fn default() -> Self {
        Server { package: "installed".to_owned(), config: BTreeMap::new() }
    }
}
