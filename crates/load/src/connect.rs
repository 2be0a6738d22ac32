//! From an address to a socket that is logged in and has prepared its statements.
//!
//! Blocking, and one connection after the other in each thread, so that a start with thousands of
//! connections is no storm that overruns the server's backlog.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use wire::{Command, DecodeError, Decoder, Expect, NoRows, Reply, Step};

use crate::authenticate::authenticate;
use crate::error::DriveError;
use crate::packets::PacketStream;
use crate::socket::PatientSocket;
use crate::spec::Target;
use crate::transport::Transport;
use crate::workload::Statement;

/// A server that has not let us in after so long is given up, and so is one that takes so long to
/// prepare [`PREPARED_TOGETHER`] statements.
const PATIENCE: Duration = Duration::from_secs(30);
/// Preparations that are sent before their answers are read; few enough for the socket's buffers.
const PREPARED_TOGETHER: usize = 16;

/// A connection ready for transactions.
pub(crate) struct Connected {
    /// Its socket, set to not block.
    pub socket: OwnedFd,
    /// What stands between its bytes and what they mean.
    pub transport: Transport,
    /// The server's names for the statements.
    pub statements: Vec<u32>,
}

/// Connects, logs in and prepares `statements`.
///
/// # Errors
/// See [`DriveError`].
pub(crate) fn connect(target: &Target, statements: &[Statement]) -> Result<Connected, DriveError> {
    let socket = PatientSocket::connect(&target.address, PATIENCE)
        .map_err(|source| DriveError::Connect { address: target.address.clone(), source })?;
    let mut stream = PacketStream::new(socket, &target.address);
    authenticate(&mut stream, target)?;
    let mut names = Vec::with_capacity(statements.len());
    for together in statements.chunks(PREPARED_TOGETHER) {
        stream.stream_mut().renew();
        prepare(&mut stream, together, &mut names)?;
    }
    stream.nothing_left()?;
    let (socket, transport) = stream.into_parts();
    Ok(Connected { socket: socket.into_inner(), transport, statements: names })
}

/// Prepares `statements`, all of which are sent before the first answer is read, and appends the
/// server's names for them.
pub(crate) fn prepare<S: Read + Write>(
    stream: &mut PacketStream<S>,
    statements: &[Statement],
    names: &mut Vec<u32>,
) -> Result<(), DriveError> {
    let (mut out, mut decoder) = (Vec::new(), Decoder::new());
    let sequences: Vec<u8> = statements
        .iter()
        .map(|statement| Command::Prepare(statement.text.as_bytes()).encode(&mut out))
        .collect();
    stream.write_all(&out)?;
    for (statement, sequence) in statements.iter().zip(sequences) {
        decoder.expect(Expect::Prepared, sequence);
        let reply = loop {
            let arrived = stream.peek()?;
            let length = arrived.len();
            match decoder.feed(arrived, &mut NoRows) {
                Ok(Step::NeedMore) => stream.take(length),
                Ok(Step::Reply { reply, used }) => {
                    stream.take(used);
                    break reply;
                }
                Err(error) => return Err(stream.protocol(error)),
            }
        };
        match reply {
            Reply::Prepared { statement, .. } => names.push(statement),
            Reply::Err(source) => {
                return Err(DriveError::Prepare {
                    address: stream.address().clone(),
                    statement: statement.text.clone(),
                    source: *source,
                });
            }
            Reply::Ok { .. } | Reply::ResultSet { .. } => {
                return Err(stream.protocol(DecodeError::Malformed("answer to prepare")));
            }
        }
    }
    Ok(())
}
