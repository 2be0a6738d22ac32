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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ServerConfig, ServerConnection};

    use super::*;
    use crate::spec::{Address, Tls, TlsMode};
    use crate::tls::begin;

    /// What one end has to send.
    fn sent(write: &mut dyn FnMut(&mut Vec<u8>) -> bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        while write(&mut bytes) {}
        bytes
    }

    fn said(server: &mut ServerConnection) -> Vec<u8> {
        sent(&mut |bytes| server.wants_write() && server.write_tls(bytes).unwrap() > 0)
    }

    /// What the server understands of `bytes`.
    fn understood(server: &mut ServerConnection, mut bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        while !bytes.is_empty() {
            server.read_tls(&mut bytes).unwrap();
            let state = server.process_new_packets().unwrap();
            let from = plain.len();
            plain.resize(from + state.plaintext_bytes_to_read(), 0);
            server.reader().read_exact(&mut plain[from..]).unwrap();
        }
        plain
    }

    /// A server and a transport after their handshake; what the server said at its end, its tickets
    /// among that, is still on its way.
    fn pair() -> (ServerConnection, Transport, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let arguments =
            "req -x509 -new -newkey rsa:2048 -nodes -days 2 -subj /CN=t -keyout k -out c";
        let openssl = std::process::Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(dir.path())
            .output();
        assert!(openssl.expect("openssl is installed (scripts/install test)").status.success());
        let certificate = CertificateDer::from_pem_file(dir.path().join("c")).unwrap();
        let key = PrivateKeyDer::from_pem_file(dir.path().join("k")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let mut server = ServerConnection::new(Arc::new(config)).unwrap();
        let tls = Tls { mode: TlsMode::Required, ca: None };
        let mut client = begin(&tls, &Address::Tcp("localhost".into(), 1)).unwrap();
        let mut rest = Vec::new();
        while client.is_handshaking() || server.is_handshaking() {
            let hello = sent(&mut |out| client.wants_write() && client.write_tls(out).unwrap() > 0);
            understood(&mut server, &hello);
            rest = said(&mut server);
            if client.is_handshaking() {
                let mut bytes = &rest[..];
                while !bytes.is_empty() {
                    client.read_tls(&mut bytes).unwrap();
                    client.process_new_packets().unwrap();
                }
            }
        }
        (server, Transport::encrypted(client), rest)
    }

    #[test]
    fn tickets_and_new_keys_pass_unseen() {
        let (mut server, mut transport, tickets) = pair();
        let mut scratch = Vec::new();
        assert!(!tickets.is_empty());
        assert_eq!(transport.open(&tickets, &mut scratch).unwrap(), b"");
        for round in 0..3 {
            let question = transport.seal(b"question", &mut scratch).unwrap();
            assert_eq!(understood(&mut server, question), b"question", "{round}");
            // Asks us to change ours as well.
            server.refresh_traffic_keys().unwrap();
            server.writer().write_all(b"answer").unwrap();
            let answer = said(&mut server);
            assert_eq!(transport.open(&answer, &mut scratch).unwrap(), b"answer", "{round}");
        }
    }

    #[test]
    fn records_that_come_in_pieces_come_out_whole() {
        let (mut server, mut transport, tickets) = pair();
        let (mut scratch, mut plain) = (Vec::new(), Vec::new());
        transport.open(&tickets, &mut scratch).unwrap();
        let long: Vec<u8> = (0..60_000u32).map(|i| i as u8).collect();
        for piece in [1, 7, 4096, usize::MAX] {
            server.writer().write_all(&long).unwrap();
            plain.clear();
            for bytes in said(&mut server).chunks(piece) {
                plain.extend_from_slice(transport.open(bytes, &mut scratch).unwrap());
            }
            assert!(plain == long, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_farewell_is_the_end_but_what_came_before_it_counts() {
        let (mut server, mut transport, tickets) = pair();
        let mut scratch = Vec::new();
        transport.open(&tickets, &mut scratch).unwrap();
        server.writer().write_all(b"last words").unwrap();
        server.send_close_notify();
        let mut bytes = said(&mut server);
        bytes.extend_from_slice(b"whatever comes then");
        assert_eq!(transport.open(&bytes, &mut scratch).unwrap(), b"last words");
        let error = transport.seal(b"question", &mut scratch).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(transport.open(b"more", &mut scratch).is_err());
    }

    #[test]
    fn what_was_not_encrypted_by_the_server_is_an_error() {
        let (mut server, mut transport, tickets) = pair();
        let mut scratch = Vec::new();
        transport.open(&tickets, &mut scratch).unwrap();
        server.writer().write_all(b"answer").unwrap();
        let mut bytes = said(&mut server);
        *bytes.last_mut().unwrap() ^= 1;
        assert!(transport.open(&bytes, &mut scratch).is_err());
    }

    #[test]
    fn without_tls_bytes_pass_as_they_are() {
        let (mut plain, mut scratch) = (Transport::PLAIN, Vec::new());
        assert_eq!(plain.open(b"answer", &mut scratch).unwrap(), b"answer");
        assert_eq!(plain.seal(b"question", &mut scratch).unwrap(), b"question");
        assert_eq!(scratch.capacity(), 0);
    }
}
