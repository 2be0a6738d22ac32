//! The handshake: from the server's greeting to its OK.
//!
//! Packets and scrambles are `mysql_common`'s; this file is the conversation around them, blocking,
//! once per connection. The password leaves this process scrambled, or encrypted with the server's
//! key, or in clear over a Unix socket or TLS, and appears in no error. The server is not trusted:
//! what it sends may be anything, and it may not go on for ever.

use std::io::{Read, Write};

use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthMoreData, AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::MySerialize;
use wire::{DecodeError, ServerError};

use crate::error::DriveError;
use crate::packets::PacketStream;
use crate::server_key::checked_key;
use crate::spec::{Target, TlsMode};
use crate::tls::{TlsError, begin};

/// What we can do; `CLIENT_FOUND_ROWS` stays off, so that an UPDATE that changes nothing affects
/// nothing, and `CLIENT_DEPRECATE_EOF` too, because the decoder reads the older form.
fn wanted() -> CapabilityFlags {
    CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_LONG_FLAG
        | CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
}

/// Why a plug-in is not used.
const UNKNOWN: &str = "this plug-in is not known here";
/// utf8mb4_general_ci, which all servers since 5.5.3 know.
const COLLATION: u8 = 45;
/// Largest packet that we may send, told to the server.
const PACKET_BYTES_MAX: u32 = 1 << 30;

/// A server has so many packets to let us in or not. The longest honest way has four for each
/// plug-in, and MariaDB may try several for one user.
const ROUNDS_MAX: usize = 32;

/// Logs in on a fresh connection.
///
/// # Errors
/// See [`DriveError`].
pub(crate) fn authenticate<S: Read + Write>(
    stream: &mut PacketStream<S>,
    target: &Target,
) -> Result<(), DriveError> {
    let greeting = stream.read_packet()?;
    if greeting.first() == Some(&0xff) {
        return Err(refused(target, &greeting));
    }
    let bad_greeting = || protocol(target, DecodeError::Malformed("greeting"));
    if !has_sane_nonce(&greeting) {
        return Err(bad_greeting());
    }
    let handshake: HandshakePacket<'_> =
        ParseBuf(&greeting).parse(()).map_err(|_| bad_greeting())?;
    let offered = handshake.capabilities();
    if !offered.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        return Err(protocol(target, DecodeError::Malformed("greeting: no protocol 4.1")));
    }
    let mut capabilities = wanted() & offered;
    let database = Some(target.database.as_bytes()).filter(|name| !name.is_empty());
    // Said without a name, it makes old servers take the plug-in's name for the database's.
    capabilities.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, database.is_some());
    if target.tls.mode != TlsMode::Disabled {
        capabilities |= CapabilityFlags::CLIENT_SSL;
        encrypt(stream, target, offered, capabilities)?;
    }
    let mut login = Login {
        target,
        nonce: handshake.nonce(),
        local: stream.is_local(),
        encrypted: stream.is_encrypted(),
        plugin: AuthPlugin::MysqlNativePassword,
        procedure: AuthProc::MysqlNativePassword(Default::default()),
    };
    // A plug-in that we cannot begin with is left to the server to ask for again by name.
    match handshake.auth_plugin() {
        Some(plugin @ (AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password)) => {
            login.begin(plugin.into_owned())?;
        }
        _ => login.begin(AuthPlugin::MysqlNativePassword)?,
    }
    let nonce = login.nonce.clone();
    let scramble = login.step(&nonce)?.unwrap_or_default();
    let response = HandshakeResponse::new(
        Some(scramble),
        (8, 0, 0), // only chooses utf8mb4, which all since 5.5.3 know
        Some(target.user.as_bytes()),
        database,
        Some(login.plugin.clone()),
        capabilities,
        None,
        PACKET_BYTES_MAX,
    );
    let mut packet = Vec::new();
    response.serialize(&mut packet);
    stream.write_packet(&packet)?;
    for _ in 0..ROUNDS_MAX {
        let packet = stream.read_packet()?;
        let answer = match packet.first() {
            Some(0x00) => return Ok(()),
            Some(0xff) => return Err(refused(target, &packet)),
            Some(0x01) => {
                let more: AuthMoreData<'_> = ParseBuf(&packet)
                    .parse(())
                    .map_err(|_| protocol(target, DecodeError::Malformed("authentication")))?;
                login.answer(more.data())?
            }
            Some(0xfe) if packet.len() > 1 => {
                let switch: AuthSwitchRequest<'_> = ParseBuf(&packet)
                    .parse(())
                    .map_err(|_| protocol(target, DecodeError::Malformed("authentication")))?;
                login.switch(&switch)?
            }
            Some(0xfe) => return Err(login.impossible("mysql_old_password", "it is not safe")),
            _ => return Err(protocol(target, DecodeError::Malformed("authentication"))),
        };
        if let Some(answer) = answer {
            stream.write_packet(&answer)?;
        }
    }
    Err(protocol(target, DecodeError::Malformed("authentication: no end")))
}

/// Whether a greeting gives its nonce a length that `mysql_common` can count with: it takes the byte
/// for a signed one and subtracts, which some lengths beyond 127 do not survive. Real ones are 21.
fn has_sane_nonce(greeting: &[u8]) -> bool {
    // After the version: the connection's number (4), the nonce's begin (8 and a zero),
    // capabilities (2), collation (1), status (2), more capabilities (2).
    const AFTER_VERSION: usize = 20;
    let version_end = greeting.iter().skip(1).position(|&byte| byte == 0);
    let length = version_end.and_then(|end| greeting.get(1 + end + 1 + AFTER_VERSION));
    length.is_some_and(|&length| length < 128)
}

/// Asks for TLS, as the first thing that we say.
fn encrypt<S: Read + Write>(
    stream: &mut PacketStream<S>,
    target: &Target,
    offered: CapabilityFlags,
    capabilities: CapabilityFlags,
) -> Result<(), DriveError> {
    let failed = |source| DriveError::Tls { address: target.address.clone(), source };
    if !offered.contains(CapabilityFlags::CLIENT_SSL) {
        return Err(failed(TlsError::NotOffered));
    }
    let tls = begin(&target.tls, &target.address).map_err(failed)?;
    let mut packet = Vec::new();
    SslRequest::new(capabilities, PACKET_BYTES_MAX, COLLATION).serialize(&mut packet);
    stream.write_packet(&packet)?;
    stream.encrypt(tls)
}

/// One login under way.
struct Login<'t> {
    target: &'t Target,
    nonce: Vec<u8>,
    local: bool,
    encrypted: bool,
    plugin: AuthPlugin<'static>,
    procedure: AuthProc,
}

impl Login<'_> {
    fn begin(&mut self, plugin: AuthPlugin<'static>) -> Result<(), DriveError> {
        self.procedure = plugin.init().map_err(|_| self.impossible(&name(&plugin), UNKNOWN))?;
        self.plugin = plugin;
        Ok(())
    }

    /// Answers what the server says beyond its first challenge.
    fn answer(&mut self, data: &[u8]) -> Result<Option<Vec<u8>>, DriveError> {
        let with_keys =
            matches!(self.plugin, AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password);
        // These two send either one byte or their key.
        if with_keys && data.len() > 1 {
            let key = checked_key(data, self.target.password.len())
                .map_err(|reason| self.impossible(&name(&self.plugin), reason))?;
            return self.step(key.as_bytes());
        }
        self.step(data)
    }

    /// Answers a challenge of the plug-in under way.
    fn step(&mut self, challenge: &[u8]) -> Result<Option<Vec<u8>>, DriveError> {
        let secret = Secret {
            password: self.target.password.as_bytes(),
            nonce: &self.nonce,
            local: self.local,
            encrypted: self.encrypted,
        };
        match self.procedure.run(secret, challenge) {
            Ok(Response::Next { packet } | Response::Last { packet }) => Ok(packet),
            Err(error) => Err(self.impossible(&name(&self.plugin), &error.to_string())),
        }
    }

    /// Begins anew with the plug-in that the server wants for this user.
    fn switch(&mut self, request: &AuthSwitchRequest<'_>) -> Result<Option<Vec<u8>>, DriveError> {
        let plugin = request.auth_plugin().into_owned();
        match &plugin {
            // The kernel tells the server who we are; there is nothing to say.
            AuthPlugin::Other(other)
                if self.local && matches!(&other[..], b"unix_socket" | b"auth_socket") =>
            {
                return Ok(Some(Vec::new()));
            }
            AuthPlugin::MysqlOldPassword => {
                return Err(self.impossible("mysql_old_password", "it is not safe"));
            }
            AuthPlugin::MysqlClearPassword if !self.encrypted => {
                let reason = "a password is not sent in clear without TLS";
                return Err(self.impossible("mysql_clear_password", reason));
            }
            // `mysql_common` has a name for it and, as built here, no more.
            AuthPlugin::Parsec => return Err(self.impossible("parsec", UNKNOWN)),
            _ => {}
        }
        self.nonce = request.plugin_data().to_vec();
        self.begin(plugin)?;
        let nonce = self.nonce.clone();
        // An empty answer is an answer, too: the server waits for a packet.
        self.step(&nonce).map(|answer| Some(answer.unwrap_or_default()))
    }

    fn impossible(&self, plugin: &str, reason: &str) -> DriveError {
        DriveError::Authentication {
            address: self.target.address.clone(),
            user: self.target.user.clone(),
            plugin: plugin.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// What a plug-in may know.
struct Secret<'a> {
    password: &'a [u8],
    nonce: &'a [u8],
    local: bool,
    encrypted: bool,
}

impl Context for Secret<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }
    fn is_ipc_transport(&self) -> bool {
        self.local
    }
    fn is_tls_transport(&self) -> bool {
        self.encrypted
    }
    fn scramble(&self) -> &[u8] {
        self.nonce
    }
    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

fn name(plugin: &AuthPlugin<'_>) -> String {
    String::from_utf8_lossy(plugin.as_bytes()).into_owned()
}

fn refused(target: &Target, payload: &[u8]) -> DriveError {
    match ServerError::from_payload(payload) {
        Ok(source) => DriveError::Refused {
            address: target.address.clone(),
            user: target.user.clone(),
            source,
        },
        Err(error) => protocol(target, error),
    }
}

fn protocol(target: &Target, source: DecodeError) -> DriveError {
    DriveError::Protocol { address: target.address.clone(), source }
}
