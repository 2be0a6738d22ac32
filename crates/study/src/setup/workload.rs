//! What is driven. A family of workloads is a struct of knobs; each workload is a variant.
//!
//! A knob goes by sysbench's name, and a workload has the knobs that it uses and no others, so that
//! a question cannot vary what changes nothing. serde's `flatten` would lose the place of an error,
//! so a macro writes the knobs that the sysbench 1.x tables have in common into each struct.

mod legacy;
mod script;

use serde::{Deserialize, Serialize};

pub use legacy::{LegacyDistribution, NontrxMode, OltpLegacy, TestMode};
pub use script::{Param, Script};

/// What is driven: schema, data and transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// sysbench 1.x `oltp_point_select`.
    OltpPointSelect(Oltp),
    /// sysbench 1.x `oltp_read_only`.
    OltpReadOnly(OltpReadOnly),
    /// sysbench 1.x `oltp_read_write`.
    OltpReadWrite(OltpReadWrite),
    /// sysbench 1.x `oltp_write_only`.
    OltpWriteOnly(OltpWriteOnly),
    /// sysbench 1.x `oltp_insert`.
    OltpInsert(Oltp),
    /// sysbench 1.x `oltp_delete`.
    OltpDelete(Oltp),
    /// sysbench 1.x `oltp_update_index`.
    OltpUpdateIndex(OltpUpdateIndex),
    /// sysbench 1.x `oltp_update_non_index`.
    OltpUpdateNonIndex(OltpUpdateNonIndex),
    /// sysbench 1.x `select_random_points`.
    SelectRandomPoints(SelectRandomPoints),
    /// sysbench 1.x `select_random_ranges`.
    SelectRandomRanges(SelectRandomRanges),
    /// sysbench 1.x `bulk_insert`.
    BulkInsert(BulkInsert),
    /// sysbench 0.4.12 `oltp`.
    OltpLegacy(OltpLegacy),
    /// A script of the user's own.
    Script(Script),
}

/// How row ids are drawn; formulas in `workload`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Every row alike.
    #[default]
    Uniform,
    /// Mean of several uniforms.
    Gaussian,
    /// sysbench 1.0's default: most draws fall in the centre one percent.
    Special,
    /// What sysbench 0.4.12 called `special`.
    #[serde(rename = "special_0_4")]
    Special04,
    /// 80/20, low ids hottest.
    Pareto,
    /// The id's rank to a power, low ids hottest.
    Zipfian,
}

/// A struct of knobs: those of the sysbench 1.x tables and the ones named.
macro_rules! oltp {
    (
        $(#[$about:meta])* $name:ident, tables: $tables:expr;
        $($(#[$meaning:meta])* $knob:ident: $type:ty = $default:expr,)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$meaning])* pub $knob: $type,)*
            /// Rows in each table.
            pub rows: u64,
            /// How row ids are drawn, also the values of `k`.
            pub distribution: Distribution,
            /// Uniforms that `gaussian` and both `special` take the mean of.
            pub rand_spec_iter: u32,
            /// Percent of the rows that are hot in both `special`.
            pub rand_spec_pct: u32,
            /// Percent of the draws that go to them.
            pub rand_spec_res: u32,
            /// Shape of `pareto`.
            pub rand_pareto_h: f64,
            /// Exponent of `zipfian`.
            pub rand_zipfian_exp: f64,
            /// The server numbers the rows; otherwise the client does.
            pub auto_inc: bool,
            /// A plain index in place of the primary key.
            pub secondary: bool,
            /// An index on `k`.
            pub create_secondary: bool,
            /// The tables' storage engine.
            pub mysql_storage_engine: String,
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $($knob: $default,)*
                    rows: 10_000,
                    distribution: Distribution::Uniform,
                    rand_spec_iter: 12,
                    rand_spec_pct: 1,
                    rand_spec_res: 75,
                    rand_pareto_h: 0.2,
                    rand_zipfian_exp: 0.8,
                    auto_inc: true,
                    secondary: false,
                    create_secondary: true,
                    mysql_storage_engine: "innodb".to_owned(),
                }
            }
        }

        impl $name {
            /// The knobs that all workloads on the sysbench 1.x tables have.
            pub fn oltp(&self) -> Oltp {
                let tables: fn(&$name) -> u32 = $tables;
                Oltp {
                    tables: tables(self),
                    rows: self.rows,
                    distribution: self.distribution,
                    rand_spec_iter: self.rand_spec_iter,
                    rand_spec_pct: self.rand_spec_pct,
                    rand_spec_res: self.rand_spec_res,
                    rand_pareto_h: self.rand_pareto_h,
                    rand_zipfian_exp: self.rand_zipfian_exp,
                    auto_inc: self.auto_inc,
                    secondary: self.secondary,
                    create_secondary: self.create_secondary,
                    mysql_storage_engine: self.mysql_storage_engine.clone(),
                }
            }
        }
    };
}

oltp! {
    /// Knobs of `oltp_point_select`, `oltp_insert` and `oltp_delete`, and of all on their tables.
    Oltp, tables: |oltp| oltp.tables;
    /// Number of tables `sbtest1..N`.
    tables: u32 = 1,
}

oltp! {
    /// Knobs of `oltp_read_only`.
    OltpReadOnly, tables: |oltp| oltp.tables;
    /// Number of tables `sbtest1..N`.
    tables: u32 = 1,
    /// Rows that a range statement spans.
    range_size: u32 = 100,
    /// Point selects in a transaction.
    point_selects: u32 = 10,
    /// Simple ranges in a transaction.
    simple_ranges: u32 = 1,
    /// Summed ranges in a transaction.
    sum_ranges: u32 = 1,
    /// Ordered ranges in a transaction.
    order_ranges: u32 = 1,
    /// Ranges of distinct values in a transaction.
    distinct_ranges: u32 = 1,
    /// Any ranges at all.
    range_selects: bool = true,
    /// No BEGIN and COMMIT.
    skip_trx: bool = false,
}

oltp! {
    /// Knobs of `oltp_read_write`.
    OltpReadWrite, tables: |oltp| oltp.tables;
    /// Number of tables `sbtest1..N`.
    tables: u32 = 1,
    /// Rows that a range statement spans.
    range_size: u32 = 100,
    /// Point selects in a transaction.
    point_selects: u32 = 10,
    /// Simple ranges in a transaction.
    simple_ranges: u32 = 1,
    /// Summed ranges in a transaction.
    sum_ranges: u32 = 1,
    /// Ordered ranges in a transaction.
    order_ranges: u32 = 1,
    /// Ranges of distinct values in a transaction.
    distinct_ranges: u32 = 1,
    /// Any ranges at all.
    range_selects: bool = true,
    /// Updates of the indexed column in a transaction.
    index_updates: u32 = 1,
    /// Updates of a column without an index in a transaction.
    non_index_updates: u32 = 1,
    /// Pairs of a delete and an insert in a transaction.
    delete_inserts: u32 = 1,
    /// No BEGIN and COMMIT.
    skip_trx: bool = false,
}

oltp! {
    /// Knobs of `oltp_write_only`.
    OltpWriteOnly, tables: |oltp| oltp.tables;
    /// Number of tables `sbtest1..N`.
    tables: u32 = 1,
    /// Updates of the indexed column in a transaction.
    index_updates: u32 = 1,
    /// Updates of a column without an index in a transaction.
    non_index_updates: u32 = 1,
    /// Pairs of a delete and an insert in a transaction.
    delete_inserts: u32 = 1,
    /// No BEGIN and COMMIT.
    skip_trx: bool = false,
}

oltp! {
    /// Knobs of `oltp_update_index`.
    OltpUpdateIndex, tables: |oltp| oltp.tables;
    /// Number of tables `sbtest1..N`.
    tables: u32 = 1,
    /// Updates that are counted as one transaction, each committed by itself.
    index_updates: u32 = 1,
}

oltp! {
    /// Knobs of `oltp_update_non_index`.
    OltpUpdateNonIndex, tables: |oltp| oltp.tables;
    /// Number of tables `sbtest1..N`.
    tables: u32 = 1,
    /// Updates that are counted as one transaction, each committed by itself.
    non_index_updates: u32 = 1,
}

oltp! {
    /// Knobs of `select_random_points`, which knows one table.
    SelectRandomPoints, tables: |_| 1;
    /// Values of `k` that a statement asks for.
    random_points: u32 = 10,
}

oltp! {
    /// Knobs of `select_random_ranges`, which knows one table.
    SelectRandomRanges, tables: |_| 1;
    /// Ranges of `k` in a statement.
    number_of_ranges: u32 = 10,
    /// Distance between the ends of a range.
    delta: u32 = 5,
}

/// Knobs of `bulk_insert`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BulkInsert {
    /// Tables `sbtest1..N`, at least one for each connection.
    pub tables: u32,
}

impl Default for BulkInsert {
    fn default() -> Self {
        BulkInsert { tables: 64 }
    }
}

impl Workload {
    /// The name as written in the study file, `oltp_read_write` and the like.
    pub fn name(&self) -> &'static str {
        match self {
            Workload::OltpPointSelect(_) => "oltp_point_select",
            Workload::OltpReadOnly(_) => "oltp_read_only",
            Workload::OltpReadWrite(_) => "oltp_read_write",
            Workload::OltpWriteOnly(_) => "oltp_write_only",
            Workload::OltpInsert(_) => "oltp_insert",
            Workload::OltpDelete(_) => "oltp_delete",
            Workload::OltpUpdateIndex(_) => "oltp_update_index",
            Workload::OltpUpdateNonIndex(_) => "oltp_update_non_index",
            Workload::SelectRandomPoints(_) => "select_random_points",
            Workload::SelectRandomRanges(_) => "select_random_ranges",
            Workload::BulkInsert(_) => "bulk_insert",
            Workload::OltpLegacy(_) => "oltp_legacy",
            Workload::Script(_) => "script",
        }
    }

    /// As a command line names it: the path of a script, else the name.
    pub fn called(&self) -> &str {
        match self {
            Workload::Script(script) => script.name(),
            _ => self.name(),
        }
    }

    /// Whether `connections` can drive it, as far as the knobs together decide that.
    ///
    /// # Errors
    /// What is wrong, and what to do about it.
    pub fn check(&self, connections: u32) -> Result<(), (String, &'static str)> {
        let is_empty = match self {
            Workload::OltpReadOnly(k) => {
                let ranges = [k.simple_ranges, k.sum_ranges, k.order_ranges, k.distinct_ranges];
                k.skip_trx && k.point_selects == 0 && (!k.range_selects || ranges == [0; 4])
            }
            Workload::OltpReadWrite(k) => {
                let ranges = [k.simple_ranges, k.sum_ranges, k.order_ranges, k.distinct_ranges];
                let writes = [k.index_updates, k.non_index_updates, k.delete_inserts];
                k.skip_trx
                    && k.point_selects == 0
                    && (!k.range_selects || ranges == [0; 4])
                    && writes == [0; 3]
            }
            Workload::OltpWriteOnly(k) => {
                k.skip_trx && [k.index_updates, k.non_index_updates, k.delete_inserts] == [0; 3]
            }
            Workload::OltpUpdateIndex(k) => k.index_updates == 0,
            Workload::OltpUpdateNonIndex(k) => k.non_index_updates == 0,
            Workload::OltpLegacy(k) => k.is_empty(),
            Workload::BulkInsert(k) if k.tables < connections => {
                return Err((
                    format!(
                        "bulk_insert has a table for each connection, but {connections} \
                         connections and {} tables",
                        k.tables
                    ),
                    "raise workload.bulk_insert.tables",
                ));
            }
            Workload::Script(Script { file: None, text: None, .. }) => {
                return Err((
                    "no script is named".to_owned(),
                    "such as `[workload.script]` with `file = \"orders.toml\"`",
                ));
            }
            _ => false,
        };
        if is_empty {
            return Err((
                format!("a transaction of {} has no statement", self.name()),
                "leave some of its counts above 0",
            ));
        }
        Ok(())
    }
}
