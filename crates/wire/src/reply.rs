//! What a server answers, and why an answer may be refused.

/// Bytes of a server's error message that are kept; servers themselves cut at 512.
pub const MESSAGE_BYTES_MAX: usize = 512;

/// Status flags that a session looks at.
pub mod status {
    /// A transaction is open.
    pub const IN_TRANS: u16 = 0x0001;
    /// Another result follows this one.
    pub const MORE_RESULTS_EXIST: u16 = 0x0008;
    /// A backslash is a character like any other in strings.
    pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
}

/// One complete answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Done, without rows.
    Ok {
        /// Rows that the statement changed.
        affected_rows: u64,
        /// First value that it generated for an AUTO_INCREMENT column.
        last_insert_id: u64,
        /// See [`status`].
        status: u16,
        /// Warnings.
        warnings: u16,
    },
    /// Refused.
    Err(Box<ServerError>),
    /// Rows, which were shown to the [`crate::RowSink`] as they came.
    ResultSet {
        /// Columns of each row.
        columns: u16,
        /// Rows.
        rows: u64,
        /// See [`status`].
        status: u16,
        /// Warnings.
        warnings: u16,
    },
    /// A statement was prepared.
    Prepared {
        /// The server's name for it.
        statement: u32,
        /// Columns of its result.
        columns: u16,
        /// Placeholders.
        params: u16,
        /// Warnings.
        warnings: u16,
    },
}

impl Reply {
    /// Another reply to the same command follows.
    pub fn more_follow(&self) -> bool {
        match self {
            Reply::Ok { status, .. } | Reply::ResultSet { status, .. } => {
                status & status::MORE_RESULTS_EXIST != 0
            }
            Reply::Err(_) | Reply::Prepared { .. } => false,
        }
    }
}

/// An error that the server sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error {code} ({sqlstate}): {message}")]
pub struct ServerError {
    /// `1213` for a deadlock and so on.
    pub code: u16,
    /// Five characters; `HY000` where the server sent none.
    pub sqlstate: String,
    /// At most [`MESSAGE_BYTES_MAX`] bytes of it, invalid UTF-8 replaced.
    pub message: String,
}

impl ServerError {
    /// Reads an error payload from its first byte (`0xff`) on.
    ///
    /// # Errors
    /// It is none.
    pub fn from_payload(payload: &[u8]) -> Result<ServerError, DecodeError> {
        let &[0xff, c0, c1, ref rest @ ..] = payload else {
            return Err(DecodeError::Malformed("error"));
        };
        let (sqlstate, message) = match rest {
            [b'#', state @ ..] if state.len() >= 5 => state.split_at(5),
            // Before the handshake is through, and in very old servers, there is no state.
            _ => (&b"HY000"[..], rest),
        };
        let message = &message[..message.len().min(MESSAGE_BYTES_MAX)];
        Ok(ServerError {
            code: u16::from_le_bytes([c0, c1]),
            sqlstate: String::from_utf8_lossy(sqlstate).into_owned(),
            message: String::from_utf8_lossy(message).into_owned(),
        })
    }
}

/// Why bytes are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A packet is missing, doubled or of another command.
    #[error("packet out of order: expected number {expected}, got {got}")]
    Sequence {
        /// Expected number.
        expected: u8,
        /// Received number.
        got: u8,
    },
    /// A packet does not hold what it must.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// The server asks for a file of the client, which it never gets.
    #[error("the server asked for a local file (LOAD DATA LOCAL), which is refused")]
    LocalInfile,
    /// Bytes came though nothing had been asked.
    #[error("the server sent bytes that nobody asked for")]
    Unsolicited,
}
