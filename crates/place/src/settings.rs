//! The `my.cnf` of an instance: the study's settings, then those that ceteris itself decides.
//!
//! What ceteris adds, and nothing else: where files and sockets are (`basedir`, `datadir`, `tmpdir`,
//! `socket`, `pid-file`, `log-error`), where it listens (`port`, `bind-address = 127.0.0.1` or, in a
//! network of its own, `0.0.0.0`; or
//! `skip-networking` while a data directory is prepared), `skip-name-resolve`, for MySQL 5.7 and
//! later `secure-file-priv = NULL`, for MySQL 8.0.11 and later `mysqlx = OFF`. `skip-name-resolve`
//! and `mysqlx` give way to the study's own value. Ours stand last, because the server takes an option's last value.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use study::{ConfigValue, variables};

use crate::error::PlaceError;
use crate::package::Package;

/// The settings of `config` that change the files of a data directory (page size, log file size
/// and count, file layout, character set ...); a dataset is loaded under these.
pub fn file_settings(config: &BTreeMap<String, ConfigValue>) -> BTreeMap<String, ConfigValue> {
    config
        .iter()
        .filter(|(name, _)| variables::changes_files(name))
        .map(|(name, value)| (variables::canonical(name), value.clone()))
        .collect()
}

/// Settings under which a dataset is loaded, beside its [`file_settings`]: they make loading quick,
/// at no durability at all, and leave no trace in the files after a clean shutdown. A load that is
/// cut short is thrown away whole, so there is nothing to be durable for.
pub const LOADING: [(&str, &str); 7] = [
    ("innodb_flush_log_at_trx_commit", "0"),
    ("innodb_doublewrite", "OFF"),
    ("innodb_buffer_pool_size", "512M"),
    ("innodb_flush_method", "O_DIRECT"),
    ("loose_innodb_flush_neighbors", "0"),
    ("max_allowed_packet", "16M"),
    ("local_infile", "ON"),
];

/// How an instance is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// By its socket alone, while its data directory is prepared.
    SocketOnly,
    /// By its socket and this port of 127.0.0.1.
    Port(u16),
    /// By its socket and this port of every address of a network of its own.
    Everywhere(u16),
}

/// The `my.cnf` of an instance in `dir`.
///
/// # Errors
/// A setting that ceteris decides itself, a name that is none, or a value with control characters.
pub(crate) fn render(
    config: &BTreeMap<String, ConfigValue>,
    package: &Package,
    dir: &Path,
    listen: Listen,
) -> Result<String, PlaceError> {
    let mut text = String::from("[mysqld]\n");
    let mut given = Vec::new();
    for (name, value) in config {
        let name = variables::canonical(name);
        check_name(&name)?;
        let rendered = render_config_value(value);
        if rendered.chars().any(char::is_control) {
            return Err(PlaceError::Setting {
                name,
                why: "its value holds a control character".to_owned(),
            });
        }
        if variables::leaves_directory(&name, &rendered) {
            return Err(PlaceError::Setting {
                name,
                why: "it names a file outside of the instance's own directory".to_owned(),
            });
        }
        let _ = writeln!(text, "{name} = {}", quoted(&rendered));
        given.push(name);
    }
    text.push_str("# by ceteris\n");
    let mut own = |name: &str, value: &str| {
        let _ = writeln!(text, "{name} = {}", quoted(value));
    };
    let path = |name: &str| dir.join(name).display().to_string();
    if package.image().is_none() {
        own("basedir", &package.base_dir.display().to_string());
    }
    own("datadir", &path("data"));
    own("tmpdir", &path("tmp"));
    own("socket", &path("s"));
    own("pid_file", &path("pid"));
    own("log_error", &path("error.log"));
    match listen {
        Listen::SocketOnly => own("skip_networking", "1"),
        Listen::Port(port) => {
            own("port", &port.to_string());
            own("bind_address", "127.0.0.1");
        }
        Listen::Everywhere(port) => {
            own("port", &port.to_string());
            own("bind_address", "0.0.0.0");
        }
    }
    let unless_given = |name: &str| !given.iter().any(|given| given == name);
    if unless_given("skip_name_resolve") {
        own("skip_name_resolve", "1");
    }
    if package.mysql_since(5, 7, 0) {
        own("secure_file_priv", "NULL");
    }
    if package.mysql_since(8, 0, 11) {
        if unless_given("mysqlx") {
            own("mysqlx", "OFF");
        } else {
            own("loose_mysqlx_bind_address", "127.0.0.1");
            own("loose_mysqlx_socket", &path("x"));
        }
    }
    Ok(text)
}

/// Whether a name, in its one spelling, is a variable that is left to the study.
pub(crate) fn check_name(name: &str) -> Result<(), PlaceError> {
    let refuse =
        |why: &str| Err(PlaceError::Setting { name: name.to_owned(), why: why.to_owned() });
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return refuse("it is not the name of a server variable");
    }
    if variables::is_reserved(name) {
        return refuse("ceteris decides where an instance keeps its files and who may reach it");
    }
    Ok(())
}

/// A server setting as the `[mysqld]` section writes it.
pub(crate) fn render_config_value(value: &ConfigValue) -> String {
    match value {
        ConfigValue::Boolean(true) => "ON".to_owned(),
        ConfigValue::Boolean(false) => "OFF".to_owned(),
        ConfigValue::Integer(number) => number.to_string(),
        ConfigValue::Float(number) => number.to_string(),
        ConfigValue::Text(text) => text.clone(),
    }
}

/// A value for an option file, where `#` begins a comment, blanks around are lost and `\` escapes.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:;/+@%*=".contains(c);
    if value.chars().all(plain) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\"))
}

/// The study's setting that the server's error lines speak of, if they speak of one.
pub(crate) fn blamed(config: &BTreeMap<String, ConfigValue>, lines: &[String]) -> Option<String> {
    let said = variables::canonical(&lines.join("\n"));
    let mut names: Vec<&String> = config.keys().collect();
    // The longest first: `innodb_log_file_size` also contains `innodb_log_file`.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.into_iter().find(|name| said.contains(&variables::canonical(name))).cloned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::package::{Flavour, Version};

    fn package(flavour: Flavour, version: Version) -> Package {
        Package {
            name: "test".into(),
            flavour,
            version,
            mysqld: vec!["/usr/sbin/mysqld".into()],
            env: Vec::new(),
            base_dir: "/usr".into(),
            hash: "0".into(),
        }
    }

    fn config(pairs: &[(&str, ConfigValue)]) -> BTreeMap<String, ConfigValue> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn the_file_holds_the_studys_settings_first_and_ours_last() {
        let config = config(&[
            ("innodb-buffer-pool-size", ConfigValue::Text("128M".into())),
            ("innodb_flush_log_at_trx_commit", ConfigValue::Integer(2)),
            ("innodb_stats_persistent", ConfigValue::Boolean(false)),
            ("init_connect", ConfigValue::Text(r"SET @a = '#\n'".into())),
        ]);
        let mariadb = package(Flavour::Mariadb, Version::new(10, 11, 14));
        let text = render(&config, &mariadb, Path::new("/i/a"), Listen::Port(4000)).unwrap();
        assert_eq!(
            text,
            "[mysqld]\n\
             init_connect = \"SET @a = '#\\\\n'\"\n\
             innodb_buffer_pool_size = 128M\n\
             innodb_flush_log_at_trx_commit = 2\n\
             innodb_stats_persistent = OFF\n\
             # by ceteris\n\
             basedir = /usr\n\
             datadir = /i/a/data\n\
             tmpdir = /i/a/tmp\n\
             socket = /i/a/s\n\
             pid_file = /i/a/pid\n\
             log_error = /i/a/error.log\n\
             port = 4000\n\
             bind_address = 127.0.0.1\n\
             skip_name_resolve = 1\n"
        );
    }

    #[test]
    fn what_a_version_does_not_know_is_not_written() {
        let lines = |flavour, version, config: &BTreeMap<_, _>| {
            let package = package(flavour, version);
            render(config, &package, Path::new("/i/a"), Listen::SocketOnly).unwrap()
        };
        let none = BTreeMap::new();
        let old = lines(Flavour::Mysql, Version::new(5, 5, 9), &none);
        assert!(!old.contains("mysqlx") && !old.contains("secure_file_priv"));
        assert!(old.contains("skip_networking = 1") && !old.contains("port ="));
        let new = lines(Flavour::Mysql, Version::new(9, 7, 4), &none);
        assert!(new.contains("mysqlx = OFF") && new.contains("secure_file_priv = NULL"));
        let asked = config(&[("mysqlx", ConfigValue::Boolean(true))]);
        let asked = lines(Flavour::Mysql, Version::new(8, 0, 12), &asked);
        assert!(asked.contains("mysqlx = ON") && !asked.contains("mysqlx = OFF"));
        assert!(asked.contains("mysqlx_bind_address = 127.0.0.1"));
    }

    #[test]
    fn settings_that_would_break_the_isolation_are_refused() {
        let package = package(Flavour::Mysql, Version::new(8, 0, 12));
        let refused = |name: &str, value: &str| {
            let config = config(&[(name, ConfigValue::Text(value.into()))]);
            render(&config, &package, Path::new("/i/a"), Listen::Port(1)).unwrap_err().to_string()
        };
        assert!(refused("bind-address", "0.0.0.0").contains("server.config.bind_address"));
        assert!(refused("loose_datadir", "/").contains("ceteris decides"));
        assert!(refused("a]\n[client", "x").contains("not the name"));
        assert!(refused("init_connect", "x\nuser=root").contains("control character"));
        assert!(refused("secure_file_priv", "/").contains("ceteris decides"));
        assert!(refused("log_bin", "/var/x/bin").contains("outside of the instance"));
    }

    #[test]
    fn file_settings_are_those_that_change_files() {
        let config = config(&[
            ("innodb-page-size", ConfigValue::Text("8K".into())),
            ("innodb_flush_log_at_trx_commit", ConfigValue::Integer(2)),
            ("innodb_log_file_size", ConfigValue::Text("64M".into())),
        ]);
        let names: Vec<_> = file_settings(&config).into_keys().collect();
        assert_eq!(names, ["innodb_log_file_size", "innodb_page_size"]);
    }

    #[test]
    fn the_blamed_setting_is_the_longest_that_is_named() {
        let config = config(&[
            ("innodb_log_file", ConfigValue::Integer(1)),
            ("innodb_log_file_sizes", ConfigValue::Integer(1)),
        ]);
        let lines = ["[ERROR] unknown variable 'innodb-log-file-sizes=1'".to_owned()];
        assert_eq!(blamed(&config, &lines).as_deref(), Some("innodb_log_file_sizes"));
        assert_eq!(blamed(&config, &["[ERROR] Aborting".to_owned()]), None);
    }
}
