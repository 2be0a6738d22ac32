//! Encryption between the reactor and the decoder.
//!
//! The reactor moves what is on the wire, the decoder and the sessions know plain bytes; a
//! [`Transport`] stands between them, one for each connection. Without TLS it hands on what it was
//! given: one branch that always goes the same way. With TLS it costs what rustls costs, which
//! includes an allocation per record. Bytes that rustls makes on its own account (the answer to a
//! change of keys) go out with the next command; session tickets are read and forgotten.

use std::io::{self, Read, Write};

use rustls::ClientConnection;

/// See the module.
pub(crate) struct Transport(Option<Box<Encrypted>>);

struct Encrypted {
    tls: ClientConnection,
    /// The server said goodbye; nothing that comes after it counts.
    closed: bool,
}

impl Transport {
    /// Bytes as they are.
    pub(crate) const PLAIN: Transport = Transport(None);

    /// A TLS connection whose handshake is done.
    pub(crate) fn encrypted(tls: ClientConnection) -> Transport {
        Transport(Some(Box::new(Encrypted { tls, closed: false })))
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.is_some()
    }

    /// What the server said, from what came; `scratch` is where it is put if need be. Empty when
    /// only a part of a record has come.
    ///
    /// # Errors
    /// The bytes are not what the server encrypted, or it ended the encrypted connection.
    #[inline]
    pub(crate) fn open<'a>(
        &mut self,
        bytes: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        match &mut self.0 {
            None => Ok(bytes),
            Some(encrypted) => {
                encrypted.open(bytes, scratch)?;
                Ok(scratch)
            }
        }
    }

    /// What has to be sent for the server to read `bytes`; `scratch` as in [`Transport::open`].
    ///
    /// # Errors
    /// The server has ended the encrypted connection.
    #[inline]
    pub(crate) fn seal<'a>(
        &mut self,
        bytes: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        match &mut self.0 {
            None => Ok(bytes),
            Some(encrypted) => {
                encrypted.seal(bytes, scratch)?;
                Ok(scratch)
            }
        }
    }
}

impl Encrypted {
    #[inline(never)]
    fn open(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> io::Result<()> {
        plain.clear();
        while !bytes.is_empty() && !self.closed {
            // rustls takes as much as it has room for, and nothing only after a farewell, which
            // `closed` tells.
            if self.tls.read_tls(&mut bytes)? == 0 {
                break;
            }
            let state = self.tls.process_new_packets().map_err(broken)?;
            let from = plain.len();
            plain.resize(from + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut plain[from..])?;
            self.closed = state.peer_has_closed();
        }
        // What came before the farewell is handed on; the next command then meets the error.
        if self.closed && plain.is_empty() { Err(farewell()) } else { Ok(()) }
    }

    #[inline(never)]
    fn seal(&mut self, bytes: &[u8], sealed: &mut Vec<u8>) -> io::Result<()> {
        sealed.clear();
        if self.closed {
            return Err(farewell());
        }
        self.tls.writer().write_all(bytes)?;
        while self.tls.wants_write() {
            self.tls.write_tls(sealed)?;
        }
        Ok(())
    }
}

#[cold]
fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cold]
fn farewell() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server ended the TLS connection")
}
