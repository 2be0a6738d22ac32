//! Loading without redo log, which MySQL 8.0.21 and later allow: `ALTER INSTANCE DISABLE INNODB
//! REDO_LOG`. What would be written twice is written once then, and a server that dies meanwhile has
//! lost its data; so this is for a server of our own whose files nobody else needs, and never for
//! `ceteris bench prepare` on somebody's.

use load::Target;
use mysql::prelude::Queryable;

use super::{LoadError, server};

/// Whether rows are logged while they are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redo {
    /// As always.
    On,
    /// No longer, until [`switch_on`].
    Off,
}

impl Redo {
    /// For the facts of a dataset.
    pub(super) fn fact(self) -> &'static str {
        match self {
            Redo::On => "on while loading",
            Redo::Off => "off while loading, on again before the shutdown",
        }
    }
}

/// Switches the redo log off where server and user allow it.
pub(super) fn switch_off(target: &Target) -> Result<Redo, LoadError> {
    let mut connection = server::open(target, None)?;
    // Whoever knows the variable knows the statement; others have no such log to switch off.
    let status = "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'";
    let found: Option<(String, String)> =
        connection.query_first(status).map_err(|error| LoadError::statement(status, error))?;
    if found.is_none_or(|(_, value)| value != "ON") {
        return Ok(Redo::On);
    }
    // Not everybody may (INNODB_REDO_LOG_ENABLE), and then the rows are logged.
    let switched = connection.query_drop("ALTER INSTANCE DISABLE INNODB REDO_LOG");
    Ok(if switched.is_ok() { Redo::Off } else { Redo::On })
}

/// Switches it on again.
pub(super) fn switch_on(target: &Target) -> Result<(), LoadError> {
    let mut connection = server::open(target, None)?;
    server::run(&mut connection, "ALTER INSTANCE ENABLE INNODB REDO_LOG")
}
