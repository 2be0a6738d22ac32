//! Whom an encrypted connection trusts.
//!
//! From a [`Tls`] of the specification to a rustls connection that has not said anything yet.
//! rustls speaks TLS 1.2 and 1.3 and nothing older.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct,
    Error, InvalidMessage, RootCertStore, SignatureScheme,
};

use crate::spec::{Address, Tls, TlsMode};

/// Why a connection could not be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The server has no TLS.
    #[error("the server does not offer it")]
    NotOffered,
    /// The file of authorities, or this machine's, cannot be used.
    #[error("the authorities in {} cannot be used: {reason}", .from.display())]
    Authorities {
        /// The file, or a description of where this machine has them.
        from: PathBuf,
        /// Why.
        reason: String,
    },
    /// The host is no name that a certificate could be for.
    #[error("{0:?} is not a name that a certificate can be for")]
    Name(String),
    /// The server speaks older versions only, or only ciphers that are given up.
    #[error("the server speaks neither TLS 1.2 nor 1.3 with a cipher of today: {0}")]
    TooOld(String),
    /// The certificate is not one that was asked for.
    #[error("the server's certificate was turned down: {0}")]
    Certificate(Error),
    /// Something else that went wrong.
    #[error("the handshake failed: {0}")]
    Handshake(String),
}

impl TlsError {
    /// The next step for the reader.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            TlsError::NotOffered => {
                "give the server a certificate (ssl_cert, ssl_key), or do without TLS"
            }
            TlsError::Authorities { .. } => "name a PEM file with the certificate of the authority",
            TlsError::Name(_) => "verify_ca does not look at the name",
            TlsError::TooOld(_) => {
                "builds with yaSSL (MySQL 5.5 to 5.7) speak only TLS 1.0 and 1.1, builds with OpenSSL \
                 1.0 (up to MySQL 8.0) no ECDHE: use a Unix socket, or do without TLS"
            }
            TlsError::Certificate(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => {
                "the certificate must hold the host under which it is asked for as a subject \
                 alternative name; verify_ca does not look at it"
            }
            TlsError::Certificate(_) => "is that the authority that signed this certificate?",
            TlsError::Handshake(_) => "the server's error log may say more",
        }
    }

    /// What a failed handshake means.
    pub(crate) fn from_handshake(source: &io::Error) -> Option<TlsError> {
        let error = source.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        Some(match error {
            Some(error @ Error::InvalidCertificate(_)) => TlsError::Certificate(error.clone()),
            Some(
                error @ (Error::PeerIncompatible(_)
                | Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion)
                | Error::AlertReceived(
                    AlertDescription::ProtocolVersion
                    | AlertDescription::HandshakeFailure
                    | AlertDescription::InsufficientSecurity,
                )),
            ) => TlsError::TooOld(error.to_string()),
            Some(error) => TlsError::Handshake(error.to_string()),
            None if source.kind() == io::ErrorKind::UnexpectedEof => {
                TlsError::Handshake("the server closed the connection".into())
            }
            None => return None,
        })
    }
}

/// A TLS connection to `address` before its first byte.
///
/// # Errors
/// Authorities that cannot be read; a host that is no name.
pub(crate) fn begin(tls: &Tls, address: &Address) -> Result<ClientConnection, TlsError> {
    let name = match address {
        // What listens on a socket of this machine is this machine.
        Address::Socket(_) => "localhost",
        Address::Tcp(host, _) => host,
    };
    let name = match ServerName::try_from(name) {
        Ok(name) => name.to_owned(),
        Err(_) if tls.mode == TlsMode::VerifyIdentity => {
            return Err(TlsError::Name(name.to_owned()));
        }
        // The name goes into the greeting only, and an address is left out of that.
        Err(_) => ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()),
    };
    ClientConnection::new(config(tls)?, name)
        .map_err(|error| TlsError::Handshake(error.to_string()))
}

/// Reading a machine's authorities takes longer than a handshake, and there may be thousands of
/// connections; so what was made of them is kept for the life of this process.
static CONFIGS: Mutex<Vec<(Tls, Arc<ClientConfig>)>> = Mutex::new(Vec::new());

fn config(tls: &Tls) -> Result<Arc<ClientConfig>, TlsError> {
    let mut configs = CONFIGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, config)) = configs.iter().find(|(known, _)| known == tls) {
        return Ok(Arc::clone(config));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Handshake(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier::new(tls, provider)?))
        .with_no_client_auth();
    // Every connection pays for a whole handshake, so that all are alike, and none keeps tickets.
    config.resumption = rustls::client::Resumption::disabled();
    let config = Arc::new(config);
    configs.push((tls.clone(), Arc::clone(&config)));
    Ok(config)
}

/// Looks at a server's certificate as closely as was asked.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// `None`: whoever the server is.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    names: bool,
}

impl Verifier {
    fn new(tls: &Tls, provider: Arc<CryptoProvider>) -> Result<Verifier, TlsError> {
        let authorities =
            match tls.mode {
                TlsMode::Disabled | TlsMode::Required => None,
                TlsMode::VerifyCa | TlsMode::VerifyIdentity => {
                    let (roots, from) = roots(tls)?;
                    let built = WebPkiServerVerifier::builder_with_provider(
                        Arc::new(roots),
                        Arc::clone(&provider),
                    )
                    .build();
                    Some(built.map_err(|error| TlsError::Authorities {
                        from,
                        reason: error.to_string(),
                    })?)
                }
            };
        Ok(Verifier { provider, authorities, names: tls.mode == TlsMode::VerifyIdentity })
    }
}

fn roots(tls: &Tls) -> Result<(RootCertStore, PathBuf), TlsError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &tls.ca else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        let from = PathBuf::from("this machine's store");
        if roots.is_empty() {
            let reason = match found.errors.first() {
                Some(error) => error.to_string(),
                None => "there are none (Debian: ca-certificates)".to_owned(),
            };
            return Err(TlsError::Authorities { from, reason });
        }
        return Ok((roots, from));
    };
    let unusable = |reason: String| TlsError::Authorities { from: path.clone(), reason };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| match error {
            rustls::pki_types::pem::Error::Io(error) => unusable(error.to_string()),
            _ => unusable("it is not a PEM file".into()),
        })?;
    if certificates.is_empty() {
        return Err(unusable("it holds no certificate".into()));
    }
    for certificate in certificates {
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    Ok((roots, path.clone()))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            // The name is looked at last, when all else was found good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.authorities {
            Some(authorities) => authorities.verify_tls12_signature(message, certificate, signed),
            // A signature by a key that nobody vouches for proves nothing.
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.authorities {
            Some(authorities) => authorities.verify_tls13_signature(message, certificate, signed),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
