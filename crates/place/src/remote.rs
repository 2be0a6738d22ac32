//! A server that ceteris did not start: how it is reached, what it says it is, and its global
//! variables, which are only set where a study allows that, and are set back.

use std::path::{Path, PathBuf};

use mysql::prelude::Queryable;
use study::{ConfigValue, ExternalPlacement};

use crate::dsn::Dsn;
use crate::error::PlaceError;
use crate::instance::Endpoint;
use crate::package::{Package, parse_version};
use crate::password::password;
use crate::settings::render_config_value;

/// A server and how to get in.
pub(crate) struct Remote {
    dsn: Dsn,
    password: String,
}

/// The server's codes for a variable that it does not know, and for one that cannot be set.
const UNKNOWN_VARIABLE: u16 = 1193;
const NOT_SETTABLE: [u16; 2] = [1238, 1621];
const ACCESS_DENIED: u16 = 1045;

impl Remote {
    /// The server of a placement.
    ///
    /// # Errors
    /// What is wrong with the DSN, or the password's file.
    pub fn of(placement: &ExternalPlacement) -> Result<Remote, PlaceError> {
        let dsn = placement.dsn.as_deref().unwrap_or_default();
        Remote::new(dsn, placement.password_file.as_deref().map(Path::new))
    }

    /// The server of a DSN.
    ///
    /// # Errors
    /// As [`Remote::of`].
    pub fn new(dsn: &str, password_file: Option<&Path>) -> Result<Remote, PlaceError> {
        let refuse = |what: String, next: &str| PlaceError::Engine {
            what: format!("placement.external.dsn: {what}"),
            lines: Vec::new(),
            next: Some(next.to_owned()),
        };
        let dsn = Dsn::parse(dsn).map_err(|error| {
            let next = error.hint.clone();
            let secret = "use placement.external.password_file, or CETERIS_PASSWORD";
            refuse(error.to_string(), next.as_deref().unwrap_or(secret))
        })?;
        if dsn.user.is_empty() {
            return Err(refuse("it names no user".into(), "mysql://user@host:3306/"));
        }
        if !dsn.database.is_empty() {
            let next = "leave the database out: ceteris uses one of its own";
            return Err(refuse("it names a database".into(), next));
        }
        if dsn.ssl_mode.is_some() || dsn.ssl_ca.is_some() {
            let next = "use a socket, a private network or a tunnel";
            return Err(refuse("this placement does not encrypt".into(), next));
        }
        Ok(Remote { dsn, password: password(password_file)? })
    }

    /// Where it is, for people.
    pub fn place(&self) -> String {
        self.dsn.place()
    }

    /// How to reach it.
    pub fn endpoint(&self) -> Endpoint {
        let Dsn { user, host, port, socket, .. } = &self.dsn;
        Endpoint {
            socket: socket.clone(),
            tcp: socket.is_none().then(|| (host.clone(), *port)),
            user: user.clone(),
            password: self.password.clone(),
        }
    }

    /// A connection.
    ///
    /// # Errors
    /// The client's or the server's, with a next step.
    pub fn connect(&self) -> Result<mysql::Conn, PlaceError> {
        mysql::Conn::new(self.endpoint().opts()).map_err(|error| {
            let next = match &error {
                mysql::Error::MySqlError(said) if said.code == ACCESS_DENIED => {
                    "the password comes from placement.external.password_file, or CETERIS_PASSWORD"
                }
                _ => "is it running, and does placement.external.dsn say where?",
            };
            PlaceError::Engine {
                what: format!("the external server at {} does not let us in", self.place()),
                lines: vec![error.to_string()],
                next: Some(next.to_owned()),
            }
        })
    }

    /// The server as a package: its own version, and a hash of what it says it is.
    ///
    /// # Errors
    /// The server's.
    pub fn package(&self) -> Result<Package, PlaceError> {
        let asked: Option<(String, String)> = self
            .connect()?
            .query_first("SELECT VERSION(), @@GLOBAL.version_comment")
            .map_err(PlaceError::sql("cannot ask the external server for its version"))?;
        let (version, comment) = asked.unwrap_or_default();
        let (flavour, parsed) =
            parse_version(&format!("Ver {version} {comment}")).ok_or_else(|| {
                PlaceError::Unusable {
                    name: format!("the external server at {}", self.place()),
                    why: format!("it says `{version}` of itself"),
                    next: Some("expected a version such as 8.0.12".to_owned()),
                }
            })?;
        let mut hasher = blake3::Hasher::new();
        for text in [&version, &comment] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        Ok(Package {
            name: "external".to_owned(),
            flavour,
            version: parsed,
            mysqld: Vec::new(),
            env: Vec::new(),
            base_dir: PathBuf::new(),
            hash: hasher.finalize().to_hex().to_string(),
        })
    }
}

/// The value of a global variable, as SQL would set it.
///
/// # Errors
/// [`PlaceError::Setting`] for one that the server does not know.
pub(crate) fn global(connection: &mut mysql::Conn, name: &str) -> Result<String, PlaceError> {
    let value: Result<Option<mysql::Value>, _> =
        connection.query_first(format!("SELECT @@GLOBAL.{name}"));
    let value = value.map_err(|error| blame(name, error))?;
    Ok(match value {
        None | Some(mysql::Value::NULL) => "NULL".to_owned(),
        Some(mysql::Value::Bytes(bytes)) => literal(&String::from_utf8_lossy(&bytes)),
        Some(other) => other.as_sql(false),
    })
}

/// Sets a global variable to a value as [`global`] or [`wanted`] writes it.
///
/// # Errors
/// [`PlaceError::Setting`], with the server's own words.
pub(crate) fn set_global(
    connection: &mut mysql::Conn,
    name: &str,
    value: &str,
) -> Result<(), PlaceError> {
    let set = connection.query_drop(format!("SET GLOBAL {name} = {value}"));
    set.map_err(|error| blame(name, error))
}

/// A study's value as SQL sets it: sizes such as `512M`, which only option files know, in bytes.
pub(crate) fn wanted(value: &ConfigValue) -> String {
    let text = render_config_value(value);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let scale = match text[digits..].to_ascii_uppercase().as_str() {
        "K" => 1_u64 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return literal(&text),
    };
    let bytes = text[..digits].parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    bytes.map_or_else(|| literal(&text), |bytes| bytes.to_string())
}

/// A number as it is, anything else in quotes.
fn literal(text: &str) -> String {
    if !text.is_empty() && text.parse::<f64>().is_ok_and(f64::is_finite) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn blame(name: &str, error: mysql::Error) -> PlaceError {
    let why = match &error {
        mysql::Error::MySqlError(said) if said.code == UNKNOWN_VARIABLE => "it is not known",
        mysql::Error::MySqlError(said) if NOT_SETTABLE.contains(&said.code) => "it is not dynamic",
        mysql::Error::MySqlError(_) => "it is refused",
        _ => return PlaceError::sql(format!("cannot ask the external server for {name}"))(error),
    };
    PlaceError::Setting { name: name.to_owned(), why: format!("{why} there: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_studys_values_become_what_sql_sets() {
        let text = |text: &str| wanted(&ConfigValue::Text(text.to_owned()));
        assert_eq!(text("512M"), (512 << 20).to_string());
        assert_eq!(text("16k"), "16384");
        assert_eq!(text("0.5"), "0.5");
        assert_eq!(text("O_DIRECT"), "'O_DIRECT'");
        assert_eq!(text("a'b\\"), "'a''b\\\\'");
        assert_eq!(text("M"), "'M'");
        assert_eq!(text("inf"), "'inf'");
        assert_eq!(wanted(&ConfigValue::Boolean(true)), "'ON'");
        assert_eq!(wanted(&ConfigValue::Integer(-1)), "-1");
    }

    #[test]
    fn what_a_dsn_must_not_hold_is_told() {
        let refused = |dsn: &str| Remote::new(dsn, None).err().map(|error| error.to_string());
        let told = |dsn: &str, words: &str| {
            assert!(refused(dsn).is_some_and(|error| error.contains(words)), "{dsn}");
        };
        told("mysql://me:s3cret@h/", "holds a password");
        told("mysql://h/", "names no user");
        told("mysql://me@h/mine", "names a database");
        told("mysql://me@h/?ssl-mode=required", "does not encrypt");
        assert_eq!(refused("mysql://me@h:3307/"), None);
    }
}
