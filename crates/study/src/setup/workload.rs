//! What is driven. A family of workloads is a struct of knobs; each workload is a variant.

use serde::{Deserialize, Serialize};

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

impl Default for Oltp {
    fn default() -> Self {
        Oltp { tables: 1, rows: 10_000, range_size: 100, distribution: Distribution::Uniform }
    }
}
