//! `mysql://user@host:3306/database?socket=/path&ssl-mode=verify_ca&ssl-ca=/path.pem`
//!
//! Read by hand, because a password in it must be refused without being repeated: no error here
//! quotes anything but the name of a parameter.

use std::path::PathBuf;

use load::{Address, Tls, TlsMode};

use crate::failure::{EXIT_USAGE, Failure};

/// The port that servers listen on unless told otherwise.
pub const PORT: u16 = 3306;
const FORM: &str = "mysql://user@host:3306/database, or \
                    mysql://user@localhost/database?socket=/path/to/mysqld.sock";
const PARAMETERS: &str = "socket, ssl-mode, ssl-ca";
const MODES: [(&str, TlsMode); 4] = [
    ("disabled", TlsMode::Disabled),
    ("required", TlsMode::Required),
    ("verify_ca", TlsMode::VerifyCa),
    ("verify_identity", TlsMode::VerifyIdentity),
];

/// What a DSN says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dsn {
    /// Empty where none is named.
    pub user: String,
    pub address: Address,
    /// Empty where none is named.
    pub database: String,
    pub tls: Tls,
}

/// Where a password belongs.
pub fn password_hint() -> &'static str {
    "arguments are seen by everybody on the machine: use --password-file FILE, the environment \
     variable CETERIS_PASSWORD, or --ask-password"
}

/// Reads a DSN.
pub fn parse(text: &str) -> Result<Dsn, Failure> {
    let rest = ["mysql://", "mariadb://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let rest = rest.ok_or_else(|| wrong("the DSN does not begin with mysql://").hint(FORM))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may hold a slash that should have been encoded.
    if rest.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
        return Err(wrong("the DSN holds a password").hint(password_hint()));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = host_and_port(host)?;
    let mut address = Address::Tcp(host, port);
    let mut tls = Tls::default();
    let mut mode = None;
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = decoded(value)?;
        match key {
            "socket" if value.starts_with('/') => address = Address::Socket(PathBuf::from(value)),
            "socket" => return Err(wrong("the DSN's socket is no absolute path").hint(FORM)),
            "ssl-mode" | "ssl_mode" => mode = Some(tls_mode(&value)?),
            "ssl-ca" | "ssl_ca" => tls.ca = Some(PathBuf::from(value)),
            "password" | "pass" => {
                return Err(wrong("the DSN holds a password").hint(password_hint()));
            }
            _ => {
                let message = format!("the DSN has an unknown parameter {key:?}");
                return Err(wrong(message).hint(format!("allowed: {PARAMETERS}")));
            }
        }
    }
    tls.mode = match (mode, &tls.ca) {
        (Some(mode), _) => mode,
        (None, None) => TlsMode::Disabled,
        (None, Some(_)) => {
            return Err(wrong("the DSN names an ssl-ca but no ssl-mode")
                .hint("add ssl-mode=verify_ca or ssl-mode=verify_identity"));
        }
    };
    if path.contains('/') {
        return Err(wrong("the DSN names more than a database after its host").hint(FORM));
    }
    Ok(Dsn { user: decoded(user)?, address, database: decoded(path)?, tls })
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(message).code(EXIT_USAGE)
}

fn host_and_port(text: &str) -> Result<(String, u16), Failure> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => {
            port.parse().map_err(|_| wrong("the DSN's port is no number of a port").hint(FORM))?
        }
        None => PORT,
    };
    let host = if host.is_empty() { "localhost".to_owned() } else { decoded(host)? };
    Ok((host, port))
}

fn tls_mode(text: &str) -> Result<TlsMode, Failure> {
    let name = text.to_ascii_lowercase().replace('-', "_");
    MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode).ok_or_else(|| {
        let hint = "allowed: disabled, required, verify_ca, verify_identity; `preferred` is not \
                    among them, because a run should know whether it was encrypted";
        wrong("the DSN's ssl-mode is none").hint(hint)
    })
}

/// Replaces `%40` and the like.
fn decoded(text: &str) -> Result<String, Failure> {
    let bad = || wrong("the DSN holds a `%` that is no encoded character").hint("write % as %25");
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let digits = part.get(..2).ok_or_else(bad)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp(host.to_owned(), port)
    }

    #[test]
    fn what_people_write_is_understood() {
        for (text, user, address, database) in [
            ("mysql://me@db1:3307/test", "me", tcp("db1", 3307), "test"),
            ("mysql://db1", "", tcp("db1", 3306), ""),
            ("mysql://me@[::1]:3307/", "me", tcp("::1", 3307), ""),
            ("mysql://me@[::1]/t", "me", tcp("::1", 3306), "t"),
            ("mysql://a%40b@/t%2fu", "a@b", tcp("localhost", 3306), "t/u"),
            ("mysql://me@localhost/t?socket=/a/b", "me", Address::Socket("/a/b".into()), "t"),
            ("mariadb://me@h/t?socket=%2Fa", "me", Address::Socket("/a".into()), "t"),
        ] {
            let dsn = parse(text).unwrap();
            assert_eq!(
                dsn,
                Dsn { user: user.into(), address, database: database.into(), tls: Tls::default() }
            );
        }
    }

    #[test]
    fn encryption_is_asked_for_by_mode() {
        let dsn = parse("mysql://h/t?ssl-mode=VERIFY-CA&ssl-ca=/ca.pem").unwrap();
        assert_eq!(dsn.tls, Tls { mode: TlsMode::VerifyCa, ca: Some("/ca.pem".into()) });
        assert_eq!(parse("mysql://h?ssl-mode=required").unwrap().tls.mode, TlsMode::Required);
        assert!(parse("mysql://h?ssl-ca=/ca.pem").unwrap_err().message.contains("no ssl-mode"));
        assert!(parse("mysql://h?ssl-mode=preferred").is_err());
    }

    #[test]
    fn a_password_is_refused_and_never_repeated() {
        for text in [
            "mysql://me:s3cret@h/t",
            "mysql://me:s3cret/x@h/t",
            "mysql://:s3cret@h",
            "mysql://h/t?password=s3cret",
            "mysql://me:s3cret",
            "mysql://h/t?socket=s3cret",
            "me:s3cret@h",
            "mysql://me%s3cret@h",
            "mysql://h/t?ssl-mode=s3cret",
            "mysql://h/t/s3cret",
        ] {
            let failure = parse(text).unwrap_err();
            assert_eq!(failure.code, EXIT_USAGE, "{text}");
            assert!(!format!("{failure:?}").contains("s3cret"), "{failure:?}");
        }
        let failure = parse("mysql://me:s3cret@h/t").unwrap_err();
        assert!(failure.hint.unwrap().contains("--password-file"));
    }

    #[test]
    fn an_unknown_parameter_is_told_with_those_that_are_known() {
        let failure = parse("mysql://h/t?charset=x").unwrap_err();
        assert!(failure.message.contains("charset"));
        assert!(failure.hint.unwrap().contains("ssl-mode"));
    }
}
