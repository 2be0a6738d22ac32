//! Why a load failed.

use std::fmt;

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
        source: Said,
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
    /// The database is one of the server's own.
    #[error("database {database} is the server's own: ceteris bench makes and drops nothing in it")]
    System {
        /// Which.
        database: String,
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
        source: Said,
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

/// What the server or the way to it said, without the `mysql` crate's names for its own errors.
#[derive(Debug)]
pub struct Said(Box<mysql::Error>);

impl From<mysql::Error> for Said {
    fn from(error: mysql::Error) -> Said {
        Said(Box::new(error))
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            mysql::Error::MySqlError(said) => {
                write!(f, "error {} ({}): {}", said.code, said.state, said.message)
            }
            mysql::Error::DriverError(error) => error.fmt(f),
            mysql::Error::IoError(error) => error.fmt(f),
            mysql::Error::TlsError(error) => error.fmt(f),
            other => other.fmt(f),
        }
    }
}

impl std::error::Error for Said {}

impl LoadError {
    /// The server's answer to a statement.
    pub(super) fn statement(text: &str, source: mysql::Error) -> LoadError {
        LoadError::Statement { statement: text.to_owned(), source: source.into() }
    }

    /// The next step for the reader, shown as a `hint:` line.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            LoadError::Script(_) => return None,
            LoadError::Size { .. } => {
                "rows must lie between 1 and 2147483647, tables be at least 1"
            }
            LoadError::Connect { source, .. } => match *source.0 {
                mysql::Error::MySqlError(ref said) => match said.code {
                    1040 | 1203 => "raise max_connections of the server",
                    1044 | 1045 => "check user, password and grants",
                    1049 => "the database has not been made on this server",
                    _ => "may this user log in?",
                },
                mysql::Error::DriverError(mysql::DriverError::TlsNotSupported) => {
                    "the server offers no encryption: give it a certificate, or do without TLS"
                }
                mysql::Error::TlsError(_) => {
                    "encryption failed: is the certificate meant for this host and signed by the \
                     authority that was named?"
                }
                _ => "is the server up, and does it listen there?",
            },
            LoadError::Occupied { .. } => "drop that database first if its data is not needed",
            LoadError::Foreign { .. } => {
                "name another database, or drop that table yourself if it is not needed"
            }
            LoadError::System { .. } => "name another database, such as sbtest",
            LoadError::NoSuchTable { .. } => "nothing was dropped",
            LoadError::Statement { source, .. } => match *source.0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_said_is_told_in_its_words_alone() {
        let denied = mysql::MySqlError {
            state: "28000".into(),
            message: "Access denied for user 'me'@'h' (using password: YES)".into(),
            code: 1045,
        };
        let said = Said::from(mysql::Error::MySqlError(denied)).to_string();
        assert_eq!(
            said,
            "error 1045 (28000): Access denied for user 'me'@'h' (using password: YES)"
        );
        let error = LoadError::Connect {
            address: "h:3306".into(),
            source: mysql::Error::DriverError(mysql::DriverError::TlsNotSupported).into(),
        };
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        assert!(source.starts_with("Client requires"), "{source}");
        assert!(error.hint().is_some_and(|hint| hint.contains("certificate")));
    }
}
