//! Why a load failed.

/// Why a load failed. No message holds a password.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The script that describes the tables cannot be read.
    #[error("the script cannot be used\n{0}")]
    Script(#[from] Box<study::StudyError>),
    /// There is nothing to load, or more than ids can name.
    #[error("cannot load {tables} tables of {rows} rows")]
    Size {
        /// Tables asked for.
        tables: u32,
        /// Rows asked for.
        rows: u64,
    },
    /// The server cannot be reached or turned us down.
    #[error("cannot connect to {address}")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        source: Box<mysql::Error>,
    },
    /// The database holds something already.
    #[error("database {database} on {address} already has {tables} tables")]
    Occupied {
        /// Where.
        address: String,
        /// Which.
        database: String,
        /// How many.
        tables: u64,
    },
    /// Somebody else's table stands where one of ours is to be made.
    #[error("database {database} has a table {table}{} that ceteris bench did not create", and(*.others))]
    Foreign {
        /// Which database.
        database: String,
        /// The first such table.
        table: String,
        /// How many more there are.
        others: usize,
    },
    /// A table that was named is not there.
    #[error("database {database} has no table {table}")]
    NoSuchTable {
        /// Which database.
        database: String,
        /// Which table.
        table: String,
    },
    /// The server refused a statement.
    #[error("cannot run {statement:?}")]
    Statement {
        /// Its beginning.
        statement: String,
        /// In the server's words.
        source: Box<mysql::Error>,
    },
    /// The server does not hold what was sent.
    #[error(
        "{table} holds {found_rows} rows with checksum {found_checksum}, but {sent_rows} rows \
             with checksum {sent_checksum} were sent"
    )]
    Mismatch {
        /// Which table.
        table: String,
        /// Rows found.
        found_rows: u64,
        /// Checksum found.
        found_checksum: u64,
        /// Rows sent.
        sent_rows: u64,
        /// Checksum of what was sent.
        sent_checksum: u64,
    },
    /// Ours: a loading thread died.
    #[error("internal error: a loading thread panicked")]
    Internal,
}

/// " and 3 more".
fn and(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" and {others} more") }
}

impl LoadError {
    /// The server's answer to a statement.
    pub(super) fn statement(text: &str, source: mysql::Error) -> LoadError {
        LoadError::Statement { statement: text.to_owned(), source: Box::new(source) }
    }

    /// The next step for the reader, shown as a `hint:` line.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            LoadError::Script(_) => return None,
            LoadError::Size { .. } => {
                "rows must lie between 1 and 2147483647, tables be at least 1"
            }
            LoadError::Connect { source, .. } => match **source {
                mysql::Error::MySqlError(ref said) => match said.code {
                    1040 | 1203 => "raise max_connections of the server",
                    1044 | 1045 => "check user, password and grants",
                    1049 => "the database has not been made on this server",
                    _ => "may this user log in?",
                },
                _ => "is the server up, and does it listen there?",
            },
            LoadError::Occupied { .. } => "drop that database first if its data is not needed",
            LoadError::Foreign { .. } => {
                "name another database, or drop that table yourself if it is not needed"
            }
            LoadError::NoSuchTable { .. } => "nothing was dropped",
            LoadError::Statement { source, .. } => match **source {
                mysql::Error::MySqlError(ref said) if matches!(said.code, 1044 | 1142 | 1227) => {
                    "grant this user what it takes"
                }
                _ => "the server's error log may say more",
            },
            LoadError::Mismatch { .. } => "did somebody else write to the server meanwhile?",
            LoadError::Internal => "please report this",
        };
        Some(hint.to_owned())
    }
}
