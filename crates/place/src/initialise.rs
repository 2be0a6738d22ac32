//! A data directory from nothing: made, secured, and still empty.
//!
//! How one is made depends on the server: MySQL 5.7 and later make it themselves, MariaDB by its
//! install script, older ones bring it ready or are fed their own SQL files. It is secured over a
//! private socket while the network is off, so that there is no moment at which anybody else could
//! log in. The password is made here, travels only over that socket, and lies in one 0600 file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mysql::prelude::Queryable;
use study::ConfigValue;

use crate::cache::random_hex;
use crate::child::Confinement;
use crate::command::{CommandLog, Invocation, executable, find_program, full_disk};
use crate::error::PlaceError;
use crate::instance::Endpoint;
use crate::journal::Journal;
use crate::package::{Flavour, Package, Version, ready_data};
use crate::server::{STOP_LIMIT, Server, environment, socket_of};
use crate::settings::{self, Listen};
use crate::tree;
use crate::user::ServerUser;

/// The administrator's name on every server.
pub(crate) const ADMINISTRATOR: &str = "root";

/// Makes `dir/data`, secures it, and returns the administrator's password. `dir` is a private
/// directory with `tmp`, owned by the server user; the server is down again afterwards.
pub(crate) fn initialise(
    package: &Package,
    settings: &BTreeMap<String, ConfigValue>,
    dir: &Path,
    user: &ServerUser,
    journal: &Journal,
    log: &CommandLog,
) -> Result<String, PlaceError> {
    let preparation = Preparation { package, dir, user, journal, log };
    let mut text = settings::render(settings, package, dir, Listen::SocketOnly)?;
    if package.mysql_since(8, 0, 0) {
        // On by default there; the preparation is nobody's to replay.
        text.push_str("disable_log_bin\n");
    }
    preparation.write("my.cnf", &text)?;
    match package.flavour {
        Flavour::Mysql if package.mysql_since(5, 7, 6) => {
            preparation.run(
                Invocation::of(&package.mysqld)
                    .path_option("defaults-file", &dir.join("my.cnf"))
                    .arg("--initialize-insecure"),
            )?;
        }
        Flavour::Mysql => match ready_data(&package.base_dir, package.version) {
            Some(ready) => {
                let copy = Invocation::new("cp").arg("-a").arg(&ready).arg(dir.join("data"));
                log.run(copy, dir)?;
                tree::own_tree(&dir.join("data"), user)?;
            }
            None => preparation.bootstrap(&["mysql_system_tables", "mysql_system_tables_data"])?,
        },
        Flavour::Mariadb => match install_script(package) {
            Some(script) => preparation.install(&script)?,
            None => preparation.bootstrap(&[
                "{}_system_tables",
                "{}_performance_tables",
                "{}_system_tables_data",
                "maria_add_gis_sp_bootstrap",
                "{}_sys_schema",
            ])?,
        },
    }
    let password = random_hex(16)?;
    let mut server = Server::start(package, dir, user, &Confinement::default(), journal, log)?;
    let open = Endpoint {
        socket: Some(socket_of(dir)),
        tcp: None,
        user: ADMINISTRATOR.to_owned(),
        password: String::new(),
    };
    let mut connection = server.await_ready(&open)?;
    secure(package, &mut connection, &password)
        .map_err(PlaceError::sql("cannot secure the new data directory"))?;
    drop(connection);
    match server.stop(STOP_LIMIT) {
        Some(status) if status.success() => Ok(password),
        Some(status) => Err(server.refused(status)),
        None => Err(PlaceError::Other("the new server ended in an unknown way".to_owned())),
    }
}

struct Preparation<'a> {
    package: &'a Package,
    dir: &'a Path,
    user: &'a ServerUser,
    journal: &'a Journal,
    log: &'a CommandLog,
}

/// MariaDB's own script, in the package first.
fn install_script(package: &Package) -> Option<std::path::PathBuf> {
    let names = ["mariadb-install-db", "mysql_install_db"];
    let places = ["scripts", "bin"];
    places
        .iter()
        .flat_map(|place| names.iter().map(move |name| (place, name)))
        .map(|(place, name)| package.base_dir.join(place).join(name))
        .find(|path| executable(path))
        .or_else(|| {
            // Another server's script would write another server's tables.
            (package.name == "installed")
                .then(|| names.iter().find_map(|name| find_program(name)))
                .flatten()
        })
}

impl Preparation<'_> {
    /// Writes a file that the server user can read.
    fn write(&self, name: &str, text: &str) -> Result<(), PlaceError> {
        let path = self.dir.join(name);
        fs::write(&path, text).map_err(PlaceError::io("write", &path))?;
        self.user.own(&path)
    }

    /// Runs a program as the server user; on failure the server's own lines are the error.
    fn run(&self, invocation: Invocation) -> Result<(), PlaceError> {
        let invocation =
            invocation.bare().env(&environment(self.package, self.journal)).user(self.user);
        let said = self.log.run_watched(invocation, || ())?;
        let status = said.status;
        match said.success(self.dir) {
            Ok(_) => Ok(()),
            Err(PlaceError::Command { lines, .. }) => {
                let own = fs::read(self.dir.join("error.log")).unwrap_or_default();
                let own = String::from_utf8_lossy(&own);
                let words =
                    if own.contains("[ERROR]") { own.into_owned() } else { lines.join("\n") };
                if full_disk(&words) {
                    return Err(PlaceError::DiskFull { path: self.dir.to_owned() });
                }
                Err(PlaceError::Refused {
                    status: crate::command::status_text(status),
                    lines: crate::server::error_lines(&words),
                    setting: None,
                })
            }
            Err(other) => Err(other),
        }
    }

    /// MariaDB's install script.
    fn install(&self, script: &Path) -> Result<(), PlaceError> {
        let mut install = Invocation::new(script)
            .path_option("defaults-file", &self.dir.join("my.cnf"))
            .path_option("basedir", &self.package.base_dir)
            .path_option("datadir", &self.dir.join("data"))
            .args(["--skip-test-db", "--skip-name-resolve"]);
        if self.package.version >= Version::new(10, 4, 0) {
            install = install.arg("--auth-root-authentication-method=normal");
        }
        self.run(install)
    }

    /// Feeds the package's SQL files to the server's bootstrap mode. `{}` in a name stands for
    /// `mariadb` or, in older packages, `mysql`.
    fn bootstrap(&self, names: &[&str]) -> Result<(), PlaceError> {
        let data = self.dir.join("data");
        for dir in [&data, &data.join("mysql"), &data.join("test")] {
            fs::create_dir_all(dir).map_err(PlaceError::io("make", dir))?;
            self.user.own(dir)?;
        }
        let mut sql = String::from("use mysql;\nset @auth_root_socket=NULL;\n");
        sql.push_str("set @current_hostname='localhost';\nset @skip_auth_anonymous=1;\n");
        for name in names {
            sql.push_str(&self.shipped_sql(name)?);
            sql.push('\n');
        }
        self.write("bootstrap.sql", &sql)?;
        let bootstrap = Invocation::of(&self.package.mysqld)
            .path_option("defaults-file", &self.dir.join("my.cnf"))
            .arg("--bootstrap")
            .stdin(&self.dir.join("bootstrap.sql"));
        self.run(bootstrap)
    }

    fn shipped_sql(&self, name: &str) -> Result<String, PlaceError> {
        let base = &self.package.base_dir;
        for share in ["share", "share/mysql", "share/mariadb"] {
            for whose in ["mariadb", "mysql"] {
                let path = base.join(share).join(name.replace("{}", whose) + ".sql");
                if path.is_file() {
                    let bytes = fs::read(&path).map_err(PlaceError::io("read", &path))?;
                    return Ok(String::from_utf8_lossy(&bytes).into_owned());
                }
            }
        }
        Err(PlaceError::Unusable {
            name: self.package.name.clone(),
            why: format!(
                "it has neither an install script nor {}.sql below {}",
                name.replace("{}", "mariadb"),
                base.join("share").display()
            ),
            next: Some("use a complete package of this server".to_owned()),
        })
    }
}

/// Leaves one administrator, by socket and from 127.0.0.1, with this password; no anonymous users,
/// no test database and no grants on what would be called so.
pub(crate) fn secure(
    package: &Package,
    connection: &mut mysql::Conn,
    password: &str,
) -> Result<(), mysql::Error> {
    let others: Vec<(String, String)> = connection.query(
        "SELECT user, host FROM mysql.user WHERE user = '' OR (user = 'root' AND host <> 'localhost')",
    )?;
    for (user, host) in others {
        let host = host.replace('\\', "\\\\").replace('\'', "''");
        connection.query_drop(format!("DROP USER '{user}'@'{host}'"))?;
    }
    connection.query_drop("DROP DATABASE IF EXISTS test")?;
    connection.query_drop("DELETE FROM mysql.db WHERE db LIKE 'test%'")?;
    // The password is hexadecimal, so that it needs no quoting.
    let here = format!("'{ADMINISTRATOR}'@'localhost'");
    let there = format!("'{ADMINISTRATOR}'@'127.0.0.1'");
    let mariadb = package.flavour == Flavour::Mariadb;
    if mariadb && package.version >= Version::new(10, 4, 0) {
        for user in [&there, &here] {
            let verb = if *user == there { "CREATE" } else { "ALTER" };
            connection.query_drop(format!(
                "{verb} USER {user} IDENTIFIED VIA mysql_native_password USING PASSWORD('{password}')"
            ))?;
        }
    } else if package.mysql_since(5, 7, 6) {
        connection.query_drop(format!("CREATE USER {there} IDENTIFIED BY '{password}'"))?;
        connection.query_drop(format!("ALTER USER {here} IDENTIFIED BY '{password}'"))?;
    } else {
        connection.query_drop(format!("CREATE USER {there} IDENTIFIED BY '{password}'"))?;
        connection.query_drop(format!("SET PASSWORD FOR {here} = PASSWORD('{password}')"))?;
    }
    connection.query_drop(format!("GRANT ALL PRIVILEGES ON *.* TO {there} WITH GRANT OPTION"))?;
    connection.query_drop("FLUSH PRIVILEGES")
}
