//! The setup tree: the complete description of one condition.
//!
//! Every type here is deserialised from the study file, with unknown keys refused, and serialised
//! into the plan and the result file. Later placements and workloads become variants here.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::quantity::Millis;

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
    /// A catalogue name, `installed`, a directory or an archive (DESIGN section 5).
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

/// Where the server runs. Externally tagged, so that an error keeps its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// A process on this machine.
    Host(HostPlacement),
}

/// A server process on this machine. CPU, memory and NUMA control arrive with a later issue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostPlacement {}

/// What is driven: schema, data and transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// sysbench 1.x `oltp_point_select`.
    OltpPointSelect(Oltp),
    /// sysbench 1.x `oltp_read_only`.
    OltpReadOnly(Oltp),
    /// sysbench 1.x `oltp_read_write`.
    OltpReadWrite(Oltp),
    /// sysbench 1.x `oltp_write_only`.
    OltpWriteOnly(Oltp),
}

/// Knobs of the sysbench 1.x OLTP family, by their sysbench meanings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Oltp {
    /// Number of tables `sbtest1..N`.
    pub tables: u32,
    /// Rows in each table.
    pub rows: u64,
    /// Rows that a range statement spans.
    pub range_size: u32,
    /// How row ids are drawn.
    pub distribution: Distribution,
}

/// How row ids are drawn; formulas in `workload`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Every row alike.
    #[default]
    Uniform,
    /// sysbench 1.0's default: most draws fall in the centre one percent.
    Special,
    /// Mean of twelve uniforms.
    Gaussian,
    /// 80/20, low ids hottest.
    Pareto,
}

/// How the workload is driven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// Concurrent connections, each running transactions one after the other (closed loop).
    pub connections: u32,
    /// Time driven before measuring.
    pub warmup: Millis,
    /// Time measured.
    pub measure: Millis,
    /// Worker threads; `None` lets the worker choose and say what it chose.
    pub threads: Option<u32>,
    /// How connections reach the server.
    pub connect: Connect,
}

/// How connections reach the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connect {
    /// The instance's Unix socket.
    #[default]
    Socket,
    /// TCP on loopback.
    Tcp,
}

impl Workload {
    /// The name as written in the study file, `oltp_read_write` and the like.
    pub fn name(&self) -> &'static str {
        match self {
            Workload::OltpPointSelect(_) => "oltp_point_select",
            Workload::OltpReadOnly(_) => "oltp_read_only",
            Workload::OltpReadWrite(_) => "oltp_read_write",
            Workload::OltpWriteOnly(_) => "oltp_write_only",
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Server { package: "installed".to_owned(), config: BTreeMap::new() }
    }
}

impl Default for Placement {
    fn default() -> Self {
        Placement::Host(HostPlacement::default())
    }
}

impl Default for Oltp {
    fn default() -> Self {
        Oltp { tables: 1, rows: 10_000, range_size: 100, distribution: Distribution::Uniform }
    }
}

impl Default for Load {
    fn default() -> Self {
        Load {
            connections: 8,
            warmup: Millis::from_secs(10),
            measure: Millis::from_secs(60),
            threads: None,
            connect: Connect::Socket,
        }
    }
}
