//! The workloads of the study file and their knobs.

use super::{Key, Kind, key, required};

pub(super) const WORKLOAD: Key = required(
    "workload",
    Kind::Choice(&[
        workload("oltp_point_select", ONE_ROW, "sysbench 1.x `oltp_point_select`"),
        workload("oltp_read_only", READ_ONLY, "sysbench 1.x `oltp_read_only`"),
        workload("oltp_read_write", READ_WRITE, "sysbench 1.x `oltp_read_write`"),
        workload("oltp_write_only", WRITE_ONLY, "sysbench 1.x `oltp_write_only`"),
        workload("oltp_insert", ONE_ROW, "sysbench 1.x `oltp_insert`"),
        workload("oltp_delete", ONE_ROW, "sysbench 1.x `oltp_delete`"),
        workload("oltp_update_index", UPDATE_INDEX, "sysbench 1.x `oltp_update_index`"),
        workload("oltp_update_non_index", UPDATE_NON_INDEX, "sysbench 1.x `oltp_update_non_index`"),
        workload("select_random_points", RANDOM_POINTS, "sysbench 1.x `select_random_points`"),
        workload("select_random_ranges", RANDOM_RANGES, "sysbench 1.x `select_random_ranges`"),
        workload("bulk_insert", BULK_INSERT, "sysbench 1.x `bulk_insert`"),
        workload("oltp_legacy", LEGACY, "sysbench 0.4.12 `oltp`"),
        workload("script", SCRIPT, "a script of your own"),
    ]),
    "what is driven against the server; `docs/workloads.md` says what each one sends",
);

const fn workload(name: &'static str, keys: &'static [Key], meaning: &'static str) -> Key {
    key(name, Kind::Table(keys), "", meaning)
}

/// The keys given, and those that all workloads on the sysbench 1.x tables have.
macro_rules! oltp {
    ($($key:expr),*) => {
        &[
            $($key,)*
            ROWS,
            key(
                "distribution",
                Kind::Word(&["uniform", "special", "special_0_4", "gaussian", "pareto", "zipfian"]),
                "`uniform`",
                "how row ids are drawn, also the values of `k`; sysbench 1.0 itself draws `special`",
            ),
            key(
                "rand_spec_iter",
                Kind::Integer(1, 1000),
                "12",
                "uniforms of which `gaussian` and both `special` take the mean",
            ),
            key(
                "rand_spec_pct",
                Kind::Integer(0, 100),
                "1",
                "percent of the rows that are hot, in both `special`",
            ),
            key(
                "rand_spec_res",
                Kind::Integer(0, 99),
                "75",
                "percent of the draws that go to the hot rows, in both `special`",
            ),
            key("rand_pareto_h", Kind::Number(0.001, 0.999), "0.2", "shape of `pareto`"),
            key("rand_zipfian_exp", Kind::Number(0.0, 100.0), "0.8", "exponent of `zipfian`"),
            key(
                "auto_inc",
                Kind::Boolean,
                "true",
                "`id` is AUTO_INCREMENT; without it, `oltp_insert` begins with empty tables and \
                 numbers the rows itself",
            ),
            key(
                "secondary",
                Kind::Boolean,
                "false",
                "a plain index `xid` on `id` in place of the primary key",
            ),
            key("create_secondary", Kind::Boolean, "true", "an index on `k`, made after loading"),
            key("mysql_storage_engine", Kind::Text, "`innodb`", "storage engine of the tables"),
        ]
    };
}

const TABLES: Key =
    key("tables", Kind::Integer(1, 10_000), "1", "number of tables `sbtest1`, `sbtest2` ...");
// Row ids are a signed INTEGER, as in sysbench.
const ROWS: Key = key("rows", Kind::Integer(1, i32::MAX as u64), "10000", "rows in each table");
const RANGE_SIZE: Key =
    key("range_size", Kind::Integer(1, 1_000_000), "100", "rows that a range statement spans");
const RANGE_SELECTS: Key =
    key("range_selects", Kind::Boolean, "true", "`false` leaves out the ranges of all four kinds");
const SKIP_TRX: Key =
    key("skip_trx", Kind::Boolean, "false", "no BEGIN and COMMIT: each statement commits itself");

const POINT_SELECTS: Key = times("point_selects", "10", "selects of a row by its id");
const SIMPLE_RANGES: Key = times("simple_ranges", "1", "selects of a range");
const SUM_RANGES: Key = times("sum_ranges", "1", "sums over a range");
const ORDER_RANGES: Key = times("order_ranges", "1", "selects of a range, sorted");
const DISTINCT_RANGES: Key = times("distinct_ranges", "1", "selects of a range's distinct values");
const INDEX_UPDATES: Key = times("index_updates", "1", "updates of `k`");
const NON_INDEX_UPDATES: Key = times("non_index_updates", "1", "updates of `c`");
const DELETE_INSERTS: Key =
    times("delete_inserts", "1", "pairs of a delete and an insert of the same id");

/// So many statements in a transaction.
const fn times(name: &'static str, default: &'static str, meaning: &'static str) -> Key {
    key(name, Kind::Integer(0, 10_000), default, meaning)
}

const ONE_ROW: &[Key] = oltp![TABLES];

const READ_ONLY: &[Key] = oltp![
    TABLES,
    RANGE_SIZE,
    POINT_SELECTS,
    SIMPLE_RANGES,
    SUM_RANGES,
    ORDER_RANGES,
    DISTINCT_RANGES,
    RANGE_SELECTS,
    SKIP_TRX
];

const READ_WRITE: &[Key] = oltp![
    TABLES,
    RANGE_SIZE,
    POINT_SELECTS,
    SIMPLE_RANGES,
    SUM_RANGES,
    ORDER_RANGES,
    DISTINCT_RANGES,
    RANGE_SELECTS,
    INDEX_UPDATES,
    NON_INDEX_UPDATES,
    DELETE_INSERTS,
    SKIP_TRX
];

const WRITE_ONLY: &[Key] =
    oltp![TABLES, INDEX_UPDATES, NON_INDEX_UPDATES, DELETE_INSERTS, SKIP_TRX];

const UPDATE_INDEX: &[Key] = oltp![
    TABLES,
    key(
        "index_updates",
        Kind::Integer(1, 10_000),
        "1",
        "updates that count as one transaction; each commits itself",
    )
];

const UPDATE_NON_INDEX: &[Key] = oltp![
    TABLES,
    key(
        "non_index_updates",
        Kind::Integer(1, 10_000),
        "1",
        "updates that count as one transaction; each commits itself",
    )
];

const RANDOM_POINTS: &[Key] =
    oltp![key("random_points", Kind::Integer(1, 10_000), "10", "values of `k` in a statement")];

const RANDOM_RANGES: &[Key] = oltp![
    key("number_of_ranges", Kind::Integer(1, 10_000), "10", "ranges of `k` in a statement"),
    key("delta", Kind::Integer(0, 1_000_000), "5", "distance between the ends of a range")
];

const BULK_INSERT: &[Key] = &[key(
    "tables",
    Kind::Integer(1, 10_000),
    "64",
    "number of tables; each connection fills its own, so there must be as many as connections",
)];

const LEGACY: &[Key] = &[
    key(
        "test_mode",
        Kind::Word(&["simple", "complex", "nontrx"]),
        "`complex`",
        "one point select; 14 reads and 5 writes in a transaction; one statement as `nontrx_mode` \
         says",
    ),
    key(
        "nontrx_mode",
        Kind::Word(&["select", "update_key", "update_nokey", "insert", "delete"]),
        "`select`",
        "the statement of the mode `nontrx`",
    ),
    key("read_only", Kind::Boolean, "false", "leaves out the writes of the mode `complex`"),
    SKIP_TRX,
    key("rows", Kind::Integer(1, i32::MAX as u64), "10000", "rows in the table `sbtest`"),
    key(
        "range_size",
        Kind::Integer(1, 1_000_000),
        "100",
        "rows that a range statement spans; the one with DISTINCT spans one more",
    ),
    POINT_SELECTS,
    SIMPLE_RANGES,
    SUM_RANGES,
    ORDER_RANGES,
    DISTINCT_RANGES,
    times("index_updates", "1", "updates of `k`, without the one that precedes the delete"),
    NON_INDEX_UPDATES,
    key(
        "dist_type",
        Kind::Word(&["uniform", "gaussian", "special"]),
        "`special`",
        "how row ids are drawn, by the formulas of 0.4.12",
    ),
    key(
        "dist_iter",
        Kind::Integer(1, 1000),
        "12",
        "draws of which `gaussian` and `special` take the mean",
    ),
    key("dist_pct", Kind::Integer(0, 100), "1", "percent of the rows that are hot, in `special`"),
    key(
        "dist_res",
        Kind::Integer(0, 99),
        "75",
        "percent of the draws that go to the hot rows, in `special`",
    ),
    key("mysql_table_engine", Kind::Text, "`innodb`", "storage engine of the table"),
];

const SCRIPT: &[Key] = &[
    key(
        "file",
        Kind::Text,
        "none",
        "path of the script, relative to the study; `docs/scripts.md` says what stands in it",
    ),
    key("params", Kind::Params, "empty", "values in place of those of the script's own `[params]`"),
    key(
        "text",
        Kind::Lines,
        "none",
        "the script itself, in place of `file`; results carry it, so that they can be repeated",
    ),
];
