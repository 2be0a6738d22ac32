//! A DSN as the load generator takes it: an address, and how to encrypt.
//!
//! What a DSN may hold is `place`'s to read; here it becomes what `load` connects with. No error
//! quotes anything but the name of a parameter.

use load::{Address, Tls, TlsMode};
use place::DsnError;

use crate::failure::{EXIT_USAGE, Failure};

pub use place::DSN_PORT as PORT;

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
    let place::Dsn { user, host, port, socket, database, ssl_mode, ssl_ca } =
        place::Dsn::parse(text).map_err(failure)?;
    let mode = ssl_mode.map(|text| tls_mode(&text)).transpose()?;
    let mode = match (mode, &ssl_ca) {
        (Some(mode), _) => mode,
        (None, None) => TlsMode::Disabled,
        (None, Some(_)) => {
            return Err(wrong("the DSN names an ssl-ca but no ssl-mode")
                .hint("add ssl-mode=verify_ca or ssl-mode=verify_identity"));
        }
    };
    let address = match socket {
        Some(path) => Address::Socket(path),
        None => Address::Tcp(host, port),
    };
    Ok(Dsn { user, address, database, tls: Tls { mode, ca: ssl_ca } })
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(message).code(EXIT_USAGE)
}

fn failure(error: DsnError) -> Failure {
    let failure = wrong(error.message);
    match error.hint {
        _ if error.holds_password => failure.hint(password_hint()),
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn tls_mode(name: &str) -> Result<TlsMode, Failure> {
    MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode).ok_or_else(|| {
        let hint = "allowed: disabled, required, verify_ca, verify_identity; `preferred` is not \
                    among them, because a run should know whether it was encrypted";
        wrong("the DSN's ssl-mode is none").hint(hint)
    })
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
