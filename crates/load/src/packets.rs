//! The packets of a handshake, over a stream that blocks, encrypted or not.
//!
//! Reads no more than a handshake can need from a server that nobody vouches for yet: a packet is
//! limited, and what came too early is an error. Generic over the stream, so that a fuzzer can be
//! the server.

use std::io::{self, Read, Write};

use rustls::ClientConnection;
use wire::DecodeError;

use crate::error::DriveError;
use crate::spec::Address;
use crate::tls::TlsError;
use crate::transport::Transport;

/// Largest packet of a handshake that is read; real ones are some hundred bytes.
const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// A blocking connection, read and written by packets.
pub(crate) struct PacketStream<S> {
    stream: S,
    address: Address,
    /// Of the next packet in either direction.
    sequence: u8,
    transport: Transport,
    /// Where a read puts its bytes.
    raw: Box<[u8]>,
    /// Where they are encrypted and decrypted.
    scratch: Vec<u8>,
    /// What came, in plain; what is before `at` has been taken.
    arrived: Vec<u8>,
    at: usize,
}

impl<S: Read + Write> PacketStream<S> {
    pub(crate) fn new(stream: S, address: &Address) -> PacketStream<S> {
        PacketStream {
            stream,
            address: address.clone(),
            sequence: 0,
            transport: Transport::PLAIN,
            raw: vec![0; READ_BYTES].into(),
            scratch: Vec::new(),
            arrived: Vec::new(),
            at: 0,
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The other end is on this machine, behind a Unix socket.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.address, Address::Socket(_))
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.transport.is_encrypted()
    }

    pub(crate) fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Does the TLS handshake; all after it is encrypted.
    pub(crate) fn encrypt(&mut self, mut tls: ClientConnection) -> Result<(), DriveError> {
        // Somebody between us and the server could have said it, and we would believe that it came
        // encrypted.
        self.nothing_left()?;
        while tls.is_handshaking() {
            match tls.complete_io(&mut self.stream) {
                Ok((0, 0)) => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => {
                    return Err(match TlsError::from_handshake(&error) {
                        Some(source) => DriveError::Tls { address: self.address.clone(), source },
                        None => self.broken(error),
                    });
                }
            }
        }
        self.transport = Transport::encrypted(tls);
        Ok(())
    }

    /// Reads one packet of the handshake.
    pub(crate) fn read_packet(&mut self) -> Result<Vec<u8>, DriveError> {
        let header = self.read_exact(4)?;
        let got = header[3];
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if got != self.sequence {
            let expected = self.sequence;
            return Err(self.protocol(DecodeError::Sequence { expected, got }));
        }
        self.sequence = self.sequence.wrapping_add(1);
        if length > HANDSHAKE_BYTES_MAX {
            return Err(self.protocol(DecodeError::Malformed("handshake: too long")));
        }
        self.read_exact(length)
    }

    /// Writes one packet of the handshake.
    pub(crate) fn write_packet(&mut self, payload: &[u8]) -> Result<(), DriveError> {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.write_all(&[&packet, payload].concat())
    }

    fn read_exact(&mut self, length: usize) -> Result<Vec<u8>, DriveError> {
        while self.arrived.len() - self.at < length {
            self.fill()?;
        }
        let taken = self.arrived[self.at..self.at + length].to_vec();
        self.take(length);
        Ok(taken)
    }

    /// What came and was not taken, at least one byte.
    pub(crate) fn peek(&mut self) -> Result<&[u8], DriveError> {
        while self.at == self.arrived.len() {
            self.fill()?;
        }
        Ok(&self.arrived[self.at..])
    }

    /// `length` bytes of what was seen are done with.
    pub(crate) fn take(&mut self, length: usize) {
        self.at = (self.at + length).min(self.arrived.len());
        if self.at == self.arrived.len() {
            self.arrived.clear();
            self.at = 0;
        }
    }

    /// Whatever else has come was not asked for.
    pub(crate) fn nothing_left(&self) -> Result<(), DriveError> {
        if self.at < self.arrived.len() {
            return Err(self.protocol(DecodeError::Unsolicited));
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), DriveError> {
        let read = match self.stream.read(&mut self.raw) {
            Ok(0) => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => read,
            Err(error) => return Err(self.broken(error)),
        };
        match self.transport.open(&self.raw[..read], &mut self.scratch) {
            Ok(plain) => self.arrived.extend_from_slice(plain),
            Err(error) => return Err(self.broken(error)),
        }
        Ok(())
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<(), DriveError> {
        self.transport
            .seal(bytes, &mut self.scratch)
            .and_then(|sealed| self.stream.write_all(sealed))
            .map_err(|source| self.broken(source))
    }

    pub(crate) fn into_parts(self) -> (S, Transport) {
        (self.stream, self.transport)
    }

    fn broken(&self, source: io::Error) -> DriveError {
        DriveError::Connect { address: self.address.clone(), source }
    }

    pub(crate) fn protocol(&self, source: DecodeError) -> DriveError {
        DriveError::Protocol { address: self.address.clone(), source }
    }
}
