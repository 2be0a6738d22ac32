//! From an address to a socket that is logged in and has prepared its statements.
//!
//! Blocking, and one connection after the other in each thread, so that a start with thousands of
//! connections is no storm that overruns the server's backlog.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use wire::{Command, DecodeError, Decoder, Expect, NoRows, Reply, Step};

use crate::authenticate::authenticate;
use crate::error::DriveError;
use crate::spec::{Address, Target};
use crate::workload::Statement;

/// A server that says nothing for so long while we connect is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest packet of a handshake that is read; real ones are some hundred bytes.
const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;
/// Preparations that are sent before their answers are read; few enough for the socket's buffers.
const PREPARED_TOGETHER: usize = 16;

/// A connection ready for transactions.
pub(crate) struct Connected {
    /// Its socket, set to not block.
    pub socket: OwnedFd,
    /// The server's names for the statements.
    pub statements: Vec<u32>,
}

/// Connects, logs in and prepares `statements`.
///
/// # Errors
/// See [`DriveError`].
pub(crate) fn connect(target: &Target, statements: &[Statement]) -> Result<Connected, DriveError> {
    let mut stream = PacketStream::open(&target.address)?;
    authenticate(&mut stream, target)?;
    let statements = prepare(&mut stream, statements)?;
    Ok(Connected { socket: stream.into_socket()?, statements })
}

fn prepare(stream: &mut PacketStream, statements: &[Statement]) -> Result<Vec<u32>, DriveError> {
    let mut names = Vec::with_capacity(statements.len());
    let (mut out, mut buffer, mut decoder) = (Vec::new(), vec![0; 16 * 1024], Decoder::new());
    for together in statements.chunks(PREPARED_TOGETHER) {
        out.clear();
        let sequences: Vec<u8> = together
            .iter()
            .map(|statement| Command::Prepare(statement.text.as_bytes()).encode(&mut out))
            .collect();
        stream.write_all(&out)?;
        let (mut filled, mut at) = (0, 0);
        for (statement, sequence) in together.iter().zip(sequences) {
            decoder.expect(Expect::Prepared, sequence);
            let reply = loop {
                if at == filled {
                    filled = stream.read_some(&mut buffer)?;
                    at = 0;
                }
                match decoder.feed(&buffer[at..filled], &mut NoRows) {
                    Ok(Step::NeedMore) => at = filled,
                    Ok(Step::Reply { reply, used }) => {
                        at += used;
                        break reply;
                    }
                    Err(error) => return Err(stream.protocol(error)),
                }
            };
            match reply {
                Reply::Prepared { statement, .. } => names.push(statement),
                Reply::Err(source) => {
                    return Err(DriveError::Prepare {
                        address: stream.address.clone(),
                        statement: statement.text.clone(),
                        source: *source,
                    });
                }
                Reply::Ok { .. } | Reply::ResultSet { .. } => {
                    return Err(stream.protocol(DecodeError::Malformed("answer to prepare")));
                }
            }
        }
        if at < filled {
            return Err(stream.protocol(DecodeError::Unsolicited));
        }
    }
    Ok(names)
}

/// A blocking connection, read and written by packets.
pub(crate) struct PacketStream {
    socket: Socket,
    address: Address,
    sequence: u8,
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl PacketStream {
    fn open(address: &Address) -> Result<PacketStream, DriveError> {
        let socket = match address {
            Address::Socket(path) => UnixStream::connect(path).and_then(|socket| {
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Ok(Socket::Unix(socket))
            }),
            Address::Tcp(host, port) => {
                TcpStream::connect((host.as_str(), *port)).and_then(|socket| {
                    socket.set_nodelay(true)?;
                    socket.set_read_timeout(Some(PATIENCE))?;
                    socket.set_write_timeout(Some(PATIENCE))?;
                    Ok(Socket::Tcp(socket))
                })
            }
        };
        match socket {
            Ok(socket) => Ok(PacketStream { socket, address: address.clone(), sequence: 0 }),
            Err(source) => Err(DriveError::Connect { address: address.clone(), source }),
        }
    }

    /// The other end is on this machine, behind a Unix socket.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.socket, Socket::Unix(_))
    }

    /// Reads one packet of the handshake.
    pub(crate) fn read_packet(&mut self) -> Result<Vec<u8>, DriveError> {
        let mut header = [0; 4];
        self.read_exact(&mut header)?;
        let [a, b, c, got] = header;
        if got != self.sequence {
            let expected = self.sequence;
            return Err(self.protocol(DecodeError::Sequence { expected, got }));
        }
        self.sequence = self.sequence.wrapping_add(1);
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        if length > HANDSHAKE_BYTES_MAX {
            return Err(self.protocol(DecodeError::Malformed("handshake: too long")));
        }
        let mut payload = vec![0; length];
        self.read_exact(&mut payload)?;
        Ok(payload)
    }

    /// Writes one packet of the handshake.
    pub(crate) fn write_packet(&mut self, payload: &[u8]) -> Result<(), DriveError> {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.write_all(&[&packet, payload].concat())
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), DriveError> {
        let done = match &mut self.socket {
            Socket::Unix(socket) => socket.read_exact(bytes),
            Socket::Tcp(socket) => socket.read_exact(bytes),
        };
        done.map_err(|source| self.broken(source))
    }

    fn read_some(&mut self, bytes: &mut [u8]) -> Result<usize, DriveError> {
        loop {
            let read = match &mut self.socket {
                Socket::Unix(socket) => socket.read(bytes),
                Socket::Tcp(socket) => socket.read(bytes),
            };
            match read {
                Ok(0) => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broken(error)),
            }
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), DriveError> {
        let done = match &mut self.socket {
            Socket::Unix(socket) => socket.write_all(bytes),
            Socket::Tcp(socket) => socket.write_all(bytes),
        };
        done.map_err(|source| self.broken(source))
    }

    fn into_socket(self) -> Result<OwnedFd, DriveError> {
        let address = self.address;
        match self.socket {
            Socket::Unix(socket) => socket.set_nonblocking(true).map(|()| socket.into()),
            Socket::Tcp(socket) => socket.set_nonblocking(true).map(|()| socket.into()),
        }
        .map_err(|source| DriveError::Connect { address, source })
    }

    fn broken(&self, source: io::Error) -> DriveError {
        let source = if source.kind() == io::ErrorKind::WouldBlock {
            // A socket's timeout calls itself "temporarily unavailable".
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {} s", PATIENCE.as_secs()),
            )
        } else {
            source
        };
        DriveError::Connect { address: self.address.clone(), source }
    }

    fn protocol(&self, source: DecodeError) -> DriveError {
        DriveError::Protocol { address: self.address.clone(), source }
    }
}
