//! The MySQL client/server protocol without I/O: commands to bytes, bytes to events.
//!
//! Called by `load` once per statement, so nothing here owns a socket, allocates per statement or
//! formats. [`Command`]s are encoded into the caller's buffer; the [`Decoder`] takes bytes in
//! whatever pieces they arrive and keeps only its position between pieces, so that a connection
//! costs tens of bytes and not a buffer. What a server may send is never trusted: malformed input
//! is a [`DecodeError`], never a panic, and never makes us hold more than a bounded message.
//!
//! The dialect is protocol 4.1 with EOF packets (`CLIENT_DEPRECATE_EOF` is not negotiated), which
//! every server from MySQL 5.5 to 9 and MariaDB 10 to 11 speaks alike.

mod command;
mod decoder;
mod first_row;
mod read;
mod reply;
mod template;

pub use command::{Command, MAX_PACKET_PAYLOAD, Param, types_signature};
pub use decoder::{Decoder, Expect, NoRows, RowSink, Step};
pub use first_row::{FirstRow, KEPT_COLUMNS_MAX, Kept};
pub use reply::{DecodeError, MESSAGE_BYTES_MAX, Reply, ServerError, status};
pub use template::Template;
