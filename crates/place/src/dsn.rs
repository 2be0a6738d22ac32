//! `mysql://user@host:3306/database?socket=/path&ssl-mode=verify_ca&ssl-ca=/path.pem`
//!
//! Read by hand, because a password in it must be refused without being repeated: no error here
//! quotes anything but the name of a parameter. What a mode of encryption means is the reader's.

use std::path::PathBuf;

/// The port that servers listen on unless told otherwise.
pub const PORT: u16 = 3306;
const FORM: &str = "mysql://user@host:3306/database, or \
                    mysql://user@localhost/database?socket=/path/to/mysqld.sock";
const PARAMETERS: &str = "socket, ssl-mode, ssl-ca";

/// What a DSN says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dsn {
    /// Empty where none is named.
    pub user: String,
    /// `localhost` where none is named.
    pub host: String,
    /// Of TCP.
    pub port: u16,
    /// Instead of host and port.
    pub socket: Option<PathBuf>,
    /// Empty where none is named.
    pub database: String,
    /// As written, in small letters and with `_`.
    pub ssl_mode: Option<String>,
    /// Certificate authorities.
    pub ssl_ca: Option<PathBuf>,
}

/// Why a text is no DSN; never repeats it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DsnError {
    /// One line.
    pub message: String,
    /// The next step; where the DSN holds a password, that is the reader's to say.
    pub hint: Option<String>,
    /// The DSN holds a password.
    pub holds_password: bool,
}

fn wrong(message: &str, hint: &str) -> DsnError {
    DsnError { message: message.to_owned(), hint: Some(hint.to_owned()), holds_password: false }
}

fn holds_password() -> DsnError {
    DsnError { message: "the DSN holds a password".to_owned(), hint: None, holds_password: true }
}

impl Dsn {
    /// Reads a DSN.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Dsn, DsnError> {
        let rest = ["mysql://", "mariadb://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| wrong("the DSN does not begin with mysql://", FORM))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may hold a slash that should have been encoded.
        if rest.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
            return Err(holds_password());
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (host, port) = host_and_port(host)?;
        let mut dsn = Dsn {
            user: decoded(user)?,
            host,
            port,
            socket: None,
            database: String::new(),
            ssl_mode: None,
            ssl_ca: None,
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decoded(value)?;
            match key {
                "socket" if value.starts_with('/') => dsn.socket = Some(PathBuf::from(value)),
                "socket" => return Err(wrong("the DSN's socket is no absolute path", FORM)),
                "ssl-mode" | "ssl_mode" => {
                    dsn.ssl_mode = Some(value.to_ascii_lowercase().replace('-', "_"));
                }
                "ssl-ca" | "ssl_ca" => dsn.ssl_ca = Some(PathBuf::from(value)),
                "password" | "pass" => return Err(holds_password()),
                _ => {
                    let message = format!("the DSN has an unknown parameter {key:?}");
                    return Err(wrong(&message, &format!("allowed: {PARAMETERS}")));
                }
            }
        }
        if path.contains('/') {
            return Err(wrong("the DSN names more than a database after its host", FORM));
        }
        dsn.database = decoded(path)?;
        Ok(dsn)
    }

    /// Where it leads, for people: a socket's path, or host and port.
    pub fn place(&self) -> String {
        match &self.socket {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

fn host_and_port(text: &str) -> Result<(String, u16), DsnError> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => {
            port.parse().map_err(|_| wrong("the DSN's port is no number of a port", FORM))?
        }
        None => PORT,
    };
    let host = if host.is_empty() { "localhost".to_owned() } else { decoded(host)? };
    Ok((host, port))
}

/// Replaces `%40` and the like.
fn decoded(text: &str) -> Result<String, DsnError> {
    let bad = || wrong("the DSN holds a `%` that is no encoded character", "write % as %25");
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

    #[test]
    fn a_place_is_what_people_look_for() {
        let place = |text: &str| Dsn::parse(text).unwrap().place();
        assert_eq!(place("mysql://me@db1:3307/"), "db1:3307");
        assert_eq!(place("mysql://me@[::1]/"), "::1:3306");
        assert_eq!(place("mysql://me@localhost/?socket=/run/s"), "/run/s");
    }

    #[test]
    fn a_password_is_refused_and_never_repeated() {
        for text in ["mysql://me:s3cret@h/", "mysql://h/?password=s3cret", "mysql://me:s3/x@h/"] {
            let error = Dsn::parse(text).unwrap_err();
            assert!(error.holds_password && !format!("{error:?}").contains("s3"), "{error:?}");
        }
    }
}
