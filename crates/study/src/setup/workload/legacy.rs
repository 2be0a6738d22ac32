//! Knobs of sysbench 0.4.12's `oltp`, by its own names without their `oltp-`.

use serde::{Deserialize, Serialize};

/// Knobs of `oltp_legacy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OltpLegacy {
    /// Which transactions.
    pub test_mode: TestMode,
    /// Which statement, in the mode `nontrx`.
    pub nontrx_mode: NontrxMode,
    /// No writes, in the mode `complex`.
    pub read_only: bool,
    /// No BEGIN and COMMIT, in the mode `complex`.
    pub skip_trx: bool,
    /// Rows in the table `sbtest`.
    pub rows: u64,
    /// Rows that a range statement spans, but for the one with DISTINCT, which spans one more.
    pub range_size: u32,
    /// Point selects in a transaction.
    pub point_selects: u32,
    /// Simple ranges in a transaction.
    pub simple_ranges: u32,
    /// Summed ranges in a transaction.
    pub sum_ranges: u32,
    /// Ordered ranges in a transaction.
    pub order_ranges: u32,
    /// Ranges of distinct values in a transaction.
    pub distinct_ranges: u32,
    /// Updates of the indexed column in a transaction, without the one that goes with the delete.
    pub index_updates: u32,
    /// Updates of a column without an index in a transaction.
    pub non_index_updates: u32,
    /// How row ids are drawn.
    pub dist_type: LegacyDistribution,
    /// Draws that `gaussian` and `special` take the mean of.
    pub dist_iter: u32,
    /// Percent of the rows that are hot in `special`.
    pub dist_pct: u32,
    /// Percent of the draws that go to them.
    pub dist_res: u32,
    /// The table's storage engine.
    pub mysql_table_engine: String,
}

/// What a transaction of `oltp_legacy` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestMode {
    /// One point select.
    Simple,
    /// 14 reads and 5 writes between BEGIN and COMMIT.
    #[default]
    Complex,
    /// One statement of the kind that `nontrx_mode` names.
    Nontrx,
}

/// The statement of the mode `nontrx`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NontrxMode {
    /// A row by its id.
    #[default]
    Select,
    /// Of the indexed column.
    UpdateKey,
    /// Of a column without an index.
    UpdateNokey,
    /// Into a table that is empty at first.
    Insert,
    /// Of each row once.
    Delete,
}

/// How `oltp_legacy` draws row ids; formulas in `workload`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LegacyDistribution {
    /// Every row alike.
    Uniform,
    /// Mean of several draws.
    Gaussian,
    /// Most draws fall in the centre one percent.
    #[default]
    Special,
}

impl Default for OltpLegacy {
    fn default() -> Self {
        OltpLegacy {
            test_mode: TestMode::Complex,
            nontrx_mode: NontrxMode::Select,
            read_only: false,
            skip_trx: false,
            rows: 10_000,
            range_size: 100,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            index_updates: 1,
            non_index_updates: 1,
            dist_type: LegacyDistribution::Special,
            dist_iter: 12,
            dist_pct: 1,
            dist_res: 75,
            mysql_table_engine: "innodb".to_owned(),
        }
    }
}

impl OltpLegacy {
    /// A transaction would have no statement.
    pub(super) fn is_empty(&self) -> bool {
        let ranges = [self.simple_ranges, self.sum_ranges, self.order_ranges, self.distinct_ranges];
        self.test_mode == TestMode::Complex
            && self.read_only
            && self.skip_trx
            && self.point_selects == 0
            && ranges == [0; 4]
    }
}
