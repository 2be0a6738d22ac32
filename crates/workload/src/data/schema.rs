//! The tables that a workload begins with, as sysbench's `prepare` makes them.

use std::sync::Arc;

use study::{NontrxMode, Oltp, OltpLegacy, TestMode, Workload};

use super::LoadError;
use super::row::{Generator, Rows};
use crate::distribution::Law;
use crate::script::{Script, Table, compile};

/// Tables, all alike.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    /// How many.
    pub tables: u32,
    /// Rows to load into each; those of a script have numbers of their own.
    rows: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// `sbtest1..N` of sysbench 1.x.
    Numbered(Oltp),
    /// `sbtest1..N` of `bulk_insert`: two columns and no rows.
    Bulk,
    /// `sbtest` of sysbench 0.4.12.
    Legacy { engine: String },
    /// Of a script.
    Script(Arc<Script>),
}

impl Schema {
    /// # Errors
    /// A script that cannot be read.
    pub(super) fn of(workload: &Workload) -> Result<Schema, LoadError> {
        Ok(match workload {
            Workload::OltpPointSelect(k) | Workload::OltpDelete(k) => Schema::numbered(k.oltp()),
            Workload::OltpReadOnly(k) => Schema::numbered(k.oltp()),
            Workload::OltpReadWrite(k) => Schema::numbered(k.oltp()),
            Workload::OltpWriteOnly(k) => Schema::numbered(k.oltp()),
            Workload::OltpUpdateIndex(k) => Schema::numbered(k.oltp()),
            Workload::OltpUpdateNonIndex(k) => Schema::numbered(k.oltp()),
            Workload::SelectRandomPoints(k) => Schema::numbered(k.oltp()),
            Workload::SelectRandomRanges(k) => Schema::numbered(k.oltp()),
            // Ids that clients make up could meet those that are there.
            Workload::OltpInsert(k) if !k.auto_inc => {
                Schema { rows: 0, ..Schema::numbered(k.oltp()) }
            }
            Workload::OltpInsert(k) => Schema::numbered(k.oltp()),
            Workload::BulkInsert(k) => Schema { tables: k.tables, rows: 0, kind: Kind::Bulk },
            Workload::OltpLegacy(k) => Schema::legacy(k),
            Workload::Script(script) => {
                let script = compile(script).map_err(Box::new)?;
                let tables = u32::try_from(script.tables.len()).unwrap_or(u32::MAX);
                Schema { tables, rows: 0, kind: Kind::Script(Arc::new(script)) }
            }
        })
    }

    fn numbered(oltp: Oltp) -> Schema {
        Schema { tables: oltp.tables, rows: oltp.rows, kind: Kind::Numbered(oltp) }
    }

    fn legacy(k: &OltpLegacy) -> Schema {
        // 0.4.12 truncates its table before it inserts.
        let inserts = k.test_mode == TestMode::Nontrx && k.nontrx_mode == NontrxMode::Insert;
        let rows = if inserts { 0 } else { k.rows };
        Schema { tables: 1, rows, kind: Kind::Legacy { engine: k.mysql_table_engine.clone() } }
    }

    /// The table of a script.
    fn of_script(&self, table: u32) -> Option<&Table> {
        match &self.kind {
            Kind::Script(script) => script.tables.get((table as usize).wrapping_sub(1)),
            _ => None,
        }
    }

    /// Its tables are a script's own.
    pub(super) fn is_script(&self) -> bool {
        matches!(self.kind, Kind::Script(_))
    }

    /// Rows to load into a table.
    pub(super) fn rows(&self, table: u32) -> u64 {
        self.of_script(table).map_or(self.rows, |table| table.rows)
    }

    /// How an INSERT into a table begins.
    pub(super) fn insert(&self, table: u32) -> String {
        let name = self.name(table);
        match self.of_script(table) {
            Some(script) => format!("INSERT INTO {name} ({}) VALUES ", script.columns()),
            None => format!("INSERT INTO {name} (id, k, c, pad) VALUES "),
        }
    }

    /// The columns of a script's table, if a checksum of them tells anything.
    pub(super) fn exact_columns(&self, table: u32) -> Option<Vec<&str>> {
        self.of_script(table).and_then(Table::exact_columns)
    }

    /// Equal text, equal tables and rows.
    pub(super) fn describe(&self) -> String {
        let Schema { tables, rows, kind } = self;
        match kind {
            Kind::Numbered(oltp) => {
                let mut text = format!("{}, {tables} tables of {rows} rows", Rows::RANDOM);
                if *rows > 0 {
                    text += &format!(", k {}", Law::of(oltp).describe());
                }
                for (differs, how) in [
                    (!oltp.auto_inc, ", ids not AUTO_INCREMENT"),
                    (oltp.secondary, ", KEY xid"),
                    (!oltp.create_secondary, ", no index on k"),
                ] {
                    text += if differs { how } else { "" };
                }
                text + &engine_unless_usual(&oltp.mysql_storage_engine)
            }
            Kind::Bulk => format!("bulk_insert tables 1, {tables} tables"),
            Kind::Legacy { engine } => {
                format!("{}, {rows} rows{}", Rows::LEGACY, engine_unless_usual(engine))
            }
            Kind::Script(script) => script.description.clone(),
        }
    }

    /// The rows of its tables, from `seed`.
    pub(super) fn generator(&self, seed: u64) -> Generator {
        let rows = match &self.kind {
            Kind::Numbered(oltp) => Rows::random(oltp.rows, Law::of(oltp)),
            Kind::Bulk | Kind::Legacy { .. } => Rows::Legacy,
            Kind::Script(script) => Rows::Script(Arc::clone(script)),
        };
        Generator::new(seed, rows)
    }

    /// Rows that one connection loads: 0.4.12's index stands before its rows come, so that only
    /// in their order do they make the index that 0.4.12 made.
    pub(super) fn chunk_rows(&self, usual: u64) -> u64 {
        match self.kind {
            Kind::Legacy { .. } => u64::MAX,
            Kind::Numbered(_) | Kind::Bulk | Kind::Script(_) => usual,
        }
    }

    /// Name of a table, which counts from 1.
    pub(super) fn name(&self, table: u32) -> String {
        match self.kind {
            Kind::Numbered(_) | Kind::Bulk => format!("sbtest{table}"),
            Kind::Legacy { .. } => "sbtest".to_owned(),
            Kind::Script(_) => {
                self.of_script(table).map(|one| one.name.clone()).unwrap_or_default()
            }
        }
    }

    /// Statements that make a table before its rows come.
    pub(super) fn create(&self, table: u32) -> Vec<String> {
        let name = self.name(table);
        match &self.kind {
            Kind::Numbered(oltp) => {
                let numbered = if oltp.auto_inc { " AUTO_INCREMENT" } else { "" };
                let key = if oltp.secondary { "KEY xid" } else { "PRIMARY KEY" };
                vec![format!(
                    "CREATE TABLE {name} (id INTEGER NOT NULL{numbered}, \
                     k INTEGER NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
                     pad CHAR(60) NOT NULL DEFAULT '', {key} (id)) ENGINE = {}",
                    quoted(&oltp.mysql_storage_engine)
                )]
            }
            Kind::Bulk => vec![format!(
                "CREATE TABLE {name} (id INTEGER NOT NULL, k INTEGER NOT NULL DEFAULT 0, \
                 PRIMARY KEY (id))"
            )],
            Kind::Legacy { engine } => vec![
                format!(
                    "CREATE TABLE {name} (id INTEGER UNSIGNED NOT NULL AUTO_INCREMENT, \
                     k INTEGER UNSIGNED NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
                     pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id)) ENGINE = {}",
                    quoted(engine)
                ),
                format!("CREATE INDEX k ON {name}(k)"),
            ],
            Kind::Script(_) => {
                self.of_script(table).map(|one| one.create.clone()).unwrap_or_default()
            }
        }
    }

    /// Statements that complete a table after its rows came.
    pub(super) fn complete(&self, table: u32) -> Vec<String> {
        match &self.kind {
            Kind::Numbered(oltp) if oltp.create_secondary => {
                vec![format!("CREATE INDEX k_{table} ON sbtest{table}(k)")]
            }
            _ => self.of_script(table).map(|one| one.after.clone()).unwrap_or_default(),
        }
    }
}

fn engine_unless_usual(engine: &str) -> String {
    match engine.to_ascii_lowercase().as_str() {
        "innodb" => String::new(),
        other => format!(", engine {other}"),
    }
}

/// An identifier.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use study::{BulkInsert, Distribution, OltpReadOnly, OltpWriteOnly, SelectRandomPoints};

    use super::*;

    fn describe(workload: &Workload) -> String {
        Schema::of(workload).unwrap().describe()
    }

    #[test]
    fn workloads_on_the_same_rows_share_their_description() {
        let oltp = Oltp { tables: 1, rows: 30, ..Oltp::default() };
        let text = describe(&Workload::OltpPointSelect(oltp.clone()));
        assert_eq!(text, "oltp rows 1, 1 tables of 30 rows, k uniform");
        let reads = OltpReadOnly { rows: 30, range_size: 7, skip_trx: true, ..Default::default() };
        let writes = OltpWriteOnly { rows: 30, index_updates: 7, ..Default::default() };
        let points = SelectRandomPoints { rows: 30, random_points: 7, ..Default::default() };
        for same in [
            Workload::OltpReadOnly(reads),
            Workload::OltpWriteOnly(writes),
            Workload::SelectRandomPoints(points),
            Workload::OltpInsert(oltp.clone()),
            // Parameters of another distribution.
            Workload::OltpDelete(Oltp { rand_pareto_h: 0.3, ..oltp.clone() }),
            Workload::OltpDelete(Oltp { mysql_storage_engine: "InnoDB".into(), ..oltp }),
        ] {
            assert_eq!(describe(&same), text);
        }
    }

    #[test]
    fn what_changes_tables_or_rows_changes_the_description() {
        let oltp = Oltp { tables: 2, rows: 30, ..Oltp::default() };
        let pareto = Oltp { distribution: Distribution::Pareto, ..oltp.clone() };
        let legacy = OltpLegacy { rows: 30, ..OltpLegacy::default() };
        let nontrx = OltpLegacy { test_mode: TestMode::Nontrx, ..legacy.clone() };
        let all = [
            Workload::OltpDelete(oltp.clone()),
            Workload::OltpDelete(Oltp { tables: 3, ..oltp.clone() }),
            Workload::OltpDelete(Oltp { rows: 31, ..oltp.clone() }),
            Workload::OltpDelete(pareto.clone()),
            Workload::OltpDelete(Oltp { rand_pareto_h: 0.3, ..pareto }),
            Workload::OltpDelete(Oltp { distribution: Distribution::Special, ..oltp.clone() }),
            Workload::OltpDelete(Oltp { distribution: Distribution::Special04, ..oltp.clone() }),
            Workload::OltpDelete(Oltp { auto_inc: false, ..oltp.clone() }),
            Workload::OltpInsert(Oltp { auto_inc: false, ..oltp.clone() }),
            Workload::OltpDelete(Oltp { secondary: true, ..oltp.clone() }),
            Workload::OltpDelete(Oltp { create_secondary: false, ..oltp.clone() }),
            Workload::OltpDelete(Oltp { mysql_storage_engine: "myisam".into(), ..oltp }),
            Workload::BulkInsert(BulkInsert { tables: 2 }),
            Workload::BulkInsert(BulkInsert { tables: 3 }),
            Workload::OltpLegacy(legacy.clone()),
            Workload::OltpLegacy(OltpLegacy { rows: 31, ..legacy.clone() }),
            Workload::OltpLegacy(OltpLegacy { mysql_table_engine: "x".into(), ..legacy.clone() }),
            Workload::OltpLegacy(OltpLegacy { nontrx_mode: NontrxMode::Insert, ..nontrx.clone() }),
        ];
        let mut seen = std::collections::HashSet::new();
        for workload in &all {
            assert!(seen.insert(describe(workload)), "{}", describe(workload));
        }
        let draws = OltpLegacy { dist_pct: 2, read_only: true, ..legacy.clone() };
        assert_eq!(describe(&Workload::OltpLegacy(draws)), describe(&Workload::OltpLegacy(legacy)));
    }

    #[test]
    fn an_engine_cannot_end_its_statement() {
        let engine = "innodb`; DROP TABLE x; --".to_owned();
        let oltp = Oltp { mysql_storage_engine: engine, ..Oltp::default() };
        let text = Schema::of(&Workload::OltpDelete(oltp)).unwrap().create(1).remove(0);
        assert!(text.ends_with("ENGINE = `innodb``; DROP TABLE x; --`"), "{text}");
    }
}
