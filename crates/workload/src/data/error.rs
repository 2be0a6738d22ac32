//! Why a load failed.

/// Why a load failed. No message holds a password.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
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

impl LoadError {
    /// The next step for the reader, shown as a `hint:` line.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            LoadError::Size { .. } => {
                "rows must lie between 1 and 2147483647, tables be at least 1"
            }
            LoadError::Connect { .. } => "is the server up, and may this user log in?",
            LoadError::Occupied { .. } => "drop that database first if its data is not needed",
            LoadError::Statement { .. } => "the server's error log may say more",
            LoadError::Mismatch { .. } => "did somebody else write to the server meanwhile?",
            LoadError::Internal => "please report this",
        };
        Some(hint.to_owned())
    }
}
