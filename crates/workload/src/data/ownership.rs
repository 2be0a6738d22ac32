//! Whose tables are these? Preparing, surveying and dropping tables in a database that other
//! people may use too.
//!
//! What `prepare` makes is listed in a table `ceteris_bench` beside it, and each table carries a
//! mark in its comment that the list repeats. A table is ours only if both agree: one that somebody
//! dropped and made anew under the same name (as `sysbench prepare` does) has lost the mark. The
//! list is written before a table is created, so that an interrupted prepare leaves nothing of
//! which we do not know.

use std::collections::BTreeMap;

use load::Target;
use mysql::Conn;
use mysql::prelude::Queryable;
use study::Workload;

use super::{DataFacts, LoadError, LoadProgress, describe_data, fill_database, server, tables};

/// Name of the list.
pub const OWNERSHIP_TABLE: &str = "ceteris_bench";
/// How a mark begins.
const MARK: &str = "ceteris bench ";
/// The list's own comment: a table of that name without it is somebody else's.
const LIST_COMMENT: &str = "tables that `ceteris bench` made here and may drop";
/// Databases of the server's own, in which nothing of ours has any business.
const SYSTEM_DATABASES: [&str; 4] = ["mysql", "information_schema", "performance_schema", "sys"];
/// Tables whose largest id is looked up; more would take longer than it tells.
const LOOKED_INTO_MAX: usize = 256;

/// What a database holds of a workload's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// As the server calls itself.
    pub server_version: String,
    /// The workload's tables, in its order.
    pub tables: Vec<FoundTable>,
}

/// One table of a workload in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTable {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub state: TableState,
    /// Largest row id, where the table has some and was looked into; those of scripts are not.
    pub max_id: Option<u64>,
}

/// Whose a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// There is none of that name.
    Missing,
    /// We made and filled it.
    Ours,
    /// We made it and did not come to the end of filling it.
    Unfinished,
    /// Somebody else made it.
    Foreign,
}

/// What a prepare did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Tables of an earlier prepare that gave way.
    pub replaced: usize,
    /// What was verified.
    pub facts: DataFacts,
}

/// What a cleanup did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Dropped.
    pub dropped: Vec<String>,
    /// Listed as ours, but made anew by somebody else since; left alone.
    pub left: Vec<String>,
}

/// Looks at the tables of `workload`; changes nothing.
///
/// # Errors
/// The server's. A database that does not exist has no tables.
pub fn survey(workload: &Workload, target: &Target) -> Result<Survey, LoadError> {
    let mut connection = server::open(target, None)?;
    let version: Option<String> = first(&mut connection, "SELECT VERSION()")?;
    let names = table_names(workload)?;
    let mut tables = Vec::with_capacity(names.len());
    if !server::exists(&mut connection, server::database(target))? {
        let missing = |name| FoundTable { name, state: TableState::Missing, max_id: None };
        tables.extend(names.into_iter().map(missing));
        return Ok(Survey { server_version: version.unwrap_or_default(), tables });
    }
    let mut connection = server::connect(target)?;
    let register = Register::read(&mut connection, server::database(target))?;
    for name in names {
        let state = register.state(&name);
        let mut max_id = None;
        let looked_into =
            tables.len() < LOOKED_INTO_MAX && !matches!(workload, Workload::Script(_));
        if state != TableState::Missing && looked_into {
            // A table that is quite another has no ids; its statements will say so.
            let id = connection.query_first(format!("SELECT MAX(id) FROM {}", quoted(&name)));
            max_id = id.unwrap_or_default().flatten();
        }
        tables.push(FoundTable { name, state, max_id });
    }
    Ok(Survey { server_version: version.unwrap_or_default(), tables })
}

/// Makes and fills the tables of `workload`, also beside others. Those of an earlier prepare give
/// way; a table that somebody else made is an error, and then nothing is changed.
///
/// # Errors
/// As [`super::load_data`]. What was made until then is listed, and the next prepare or
/// [`drop_own`] removes it.
pub fn prepare(
    workload: &Workload,
    target: &Target,
    seed: u64,
    threads: u32,
    on_progress: &mut dyn FnMut(LoadProgress),
) -> Result<Prepared, LoadError> {
    let database = server::database(target);
    refuse_system(database)?;
    let mut connection = server::open(target, None)?;
    if !server::exists(&mut connection, database)? {
        server::run(&mut connection, &format!("CREATE DATABASE {}", quoted(database)))?;
    }
    let mut connection = server::connect(target)?;
    let register = Register::read(&mut connection, database)?;
    let names = table_names(workload)?;
    let of_state = |wanted: &[TableState]| -> Vec<&String> {
        names.iter().filter(|name| wanted.contains(&register.state(name))).collect()
    };
    let in_the_way = |table: &str, others| LoadError::Foreign {
        database: database.to_owned(),
        table: table.to_owned(),
        others,
    };
    let foreign = of_state(&[TableState::Foreign]);
    if let Some(first) = foreign.first() {
        return Err(in_the_way(first, foreign.len() - 1));
    }
    if !register.kept && register.found.contains_key(OWNERSHIP_TABLE) {
        return Err(in_the_way(OWNERSHIP_TABLE, 0));
    }
    server::run(&mut connection, &create_list())?;
    let replaced = of_state(&[TableState::Ours, TableState::Unfinished]);
    for name in &replaced {
        server::run(&mut connection, &format!("DROP TABLE {}", quoted(name)))?;
    }
    let mark: Option<String> = first(&mut connection, "SELECT UUID()")?;
    let mark = format!("{MARK}{}", mark.unwrap_or_default());
    let text = format!(
        "REPLACE INTO {OWNERSHIP_TABLE} (table_name, mark, workload, rows_of, state, created) \
         VALUES (?, ?, ?, ?, 'loading', UTC_TIMESTAMP())"
    );
    let rows = describe_data(workload)?;
    for name in &names {
        let values = (name.as_str(), mark.as_str(), workload.name(), rows.as_str());
        connection.exec_drop(&text, values).map_err(|error| LoadError::statement(&text, error))?;
    }
    let facts = fill_database(workload, target, seed, threads, Some(&mark), on_progress)?;
    let text = format!("UPDATE {OWNERSHIP_TABLE} SET state = 'ready' WHERE mark = ?");
    connection
        .exec_drop(&text, (mark.as_str(),))
        .map_err(|error| LoadError::statement(&text, error))?;
    Ok(Prepared { replaced: replaced.len(), facts })
}

/// Drops every table of the database that is ours, and the list of them. The database stays.
///
/// # Errors
/// The server's.
pub fn drop_own(target: &Target) -> Result<Cleaned, LoadError> {
    let mut cleaned = Cleaned::default();
    let database = server::database(target);
    let mut connection = server::open(target, None)?;
    if !server::exists(&mut connection, database)? {
        return Ok(cleaned);
    }
    let mut connection = server::connect(target)?;
    let register = Register::read(&mut connection, database)?;
    for name in register.listed.keys() {
        match register.state(name) {
            TableState::Ours | TableState::Unfinished => {
                server::run(&mut connection, &format!("DROP TABLE {}", quoted(name)))?;
                cleaned.dropped.push(name.clone());
            }
            TableState::Foreign => cleaned.left.push(name.clone()),
            TableState::Missing => {}
        }
    }
    if register.kept {
        server::run(&mut connection, &format!("DROP TABLE {OWNERSHIP_TABLE}"))?;
    }
    Ok(cleaned)
}

/// Drops these tables, whoever made them, and strikes them off the list.
///
/// # Errors
/// The server's; a table that is not there, or is a view, is one, and then none is dropped.
pub fn drop_named(target: &Target, names: &[String]) -> Result<Cleaned, LoadError> {
    let database = server::database(target);
    refuse_system(database)?;
    let mut connection = server::connect(target)?;
    let register = Register::read(&mut connection, database)?;
    let is_table = |name: &String| register.found.get(name).is_some_and(|found| found.is_table);
    if let Some(missing) = names.iter().find(|name| !is_table(name)) {
        let (database, table) = (database.to_owned(), missing.clone());
        return Err(LoadError::NoSuchTable { database, table });
    }
    let mut cleaned = Cleaned::default();
    for name in names {
        server::run(&mut connection, &format!("DROP TABLE {}", quoted(name)))?;
        if register.kept && name != OWNERSHIP_TABLE {
            let text = format!("DELETE FROM {OWNERSHIP_TABLE} WHERE table_name = ?");
            connection
                .exec_drop(&text, (name.as_str(),))
                .map_err(|error| LoadError::statement(&text, error))?;
        }
        cleaned.dropped.push(name.clone());
    }
    Ok(cleaned)
}

/// Nothing is made or dropped where the server keeps its own tables.
fn refuse_system(database: &str) -> Result<(), LoadError> {
    if SYSTEM_DATABASES.iter().any(|name| database.eq_ignore_ascii_case(name)) {
        return Err(LoadError::System { database: database.to_owned() });
    }
    Ok(())
}

fn table_names(workload: &Workload) -> Result<Vec<String>, LoadError> {
    Ok(tables(workload)?.into_iter().map(|table| table.name).collect())
}

/// The list, and what the database holds.
struct Register {
    /// There is a list, and it is ours.
    kept: bool,
    /// Name to mark, and whether the table was filled to its end.
    listed: BTreeMap<String, (String, bool)>,
    /// Everything in the database that has a table's name, views too.
    found: BTreeMap<String, Found>,
}

/// What stands under a table's name.
struct Found {
    comment: String,
    /// Not a view, nor a sequence.
    is_table: bool,
}

impl Register {
    fn read(connection: &mut Conn, database: &str) -> Result<Register, LoadError> {
        let text = "SELECT table_name, table_comment, table_type IN ('BASE TABLE', \
                    'SYSTEM VERSIONED') FROM information_schema.tables WHERE table_schema = ?";
        let rows: Vec<(String, String, bool)> = connection
            .exec(text, (database,))
            .map_err(|error| LoadError::statement(text, error))?;
        let found: BTreeMap<String, Found> = rows
            .into_iter()
            .map(|(name, comment, is_table)| (name, Found { comment, is_table }))
            .collect();
        let mut listed = BTreeMap::new();
        let kept = found.get(OWNERSHIP_TABLE).is_some_and(|list| list.comment == LIST_COMMENT);
        if kept {
            let text = format!("SELECT table_name, mark, state FROM {OWNERSHIP_TABLE}");
            let rows: Vec<(String, String, String)> =
                connection.query(&text).map_err(|error| LoadError::statement(&text, error))?;
            for (name, mark, state) in rows {
                listed.insert(name, (mark, state == "ready"));
            }
        }
        Ok(Register { kept, listed, found })
    }

    fn state(&self, name: &str) -> TableState {
        match (self.found.get(name), self.listed.get(name)) {
            (None, _) => TableState::Missing,
            // A line without a mark would make every table without a comment ours.
            (Some(found), Some((mark, ready)))
                if found.comment == *mark && mark.starts_with(MARK) =>
            {
                if *ready {
                    TableState::Ours
                } else {
                    TableState::Unfinished
                }
            }
            _ => TableState::Foreign,
        }
    }
}

fn create_list() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {OWNERSHIP_TABLE} (table_name VARCHAR(64) NOT NULL, \
         mark VARCHAR(64) NOT NULL, workload VARCHAR(64) NOT NULL, rows_of TEXT NOT NULL, \
         state VARCHAR(16) NOT NULL, created DATETIME NOT NULL, PRIMARY KEY (table_name)) \
         ENGINE = InnoDB COMMENT = '{LIST_COMMENT}'"
    )
}

fn first<T: mysql::prelude::FromRow>(
    connection: &mut Conn,
    text: &str,
) -> Result<Option<T>, LoadError> {
    connection.query_first(text).map_err(|error| LoadError::statement(text, error))
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, Found> {
        let found = |comment: &str| Found { comment: comment.to_owned(), is_table: true };
        pairs.into_iter().map(|(name, comment)| (name.to_owned(), found(comment))).collect()
    }

    #[test]
    fn a_table_is_ours_only_if_list_and_mark_agree() {
        let register = Register {
            kept: true,
            listed: [
                ("sbtest1", ("ceteris bench a", true)),
                ("sbtest2", ("ceteris bench a", false)),
                ("sbtest3", ("ceteris bench a", true)),
                ("sbtest4", ("ceteris bench a", true)),
                ("sbtest7", ("", true)),
            ]
            .into_iter()
            .map(|(name, (mark, ready))| (name.to_owned(), (mark.to_owned(), ready)))
            .collect(),
            found: tables([
                ("sbtest1", "ceteris bench a"),
                ("sbtest2", "ceteris bench a"),
                ("sbtest3", ""),
                ("sbtest5", "ceteris bench a"),
                ("sbtest7", ""),
            ]),
        };
        for (name, state) in [
            ("sbtest1", TableState::Ours),
            ("sbtest2", TableState::Unfinished),
            ("sbtest3", TableState::Foreign),
            ("sbtest4", TableState::Missing),
            ("sbtest5", TableState::Foreign),
            ("sbtest6", TableState::Missing),
            ("sbtest7", TableState::Foreign),
        ] {
            assert_eq!(register.state(name), state, "{name}");
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
