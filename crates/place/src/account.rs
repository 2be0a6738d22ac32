//! The administrator's account for a server that is reached over a network of its own.
//!
//! A dataset's administrator may log in by the socket and from 127.0.0.1 only, which is right for a
//! process on this machine. A server behind a bridge, in a guest or in a Pod is reached from another
//! address, and must not start on other bytes because of that: the account is opened by the server
//! itself, with `init_file`, once it has started on the clone whose hash was checked.

use crate::initialise::ADMINISTRATOR;
use crate::package::{Flavour, Package};

/// What a server of `package` reads as `init_file`, one statement a line as all versions want it.
/// Holds the password: it belongs into a file that only the server's user reads, or a Secret.
pub(crate) fn opening_statements(package: &Package, password: &str) -> String {
    let account = format!("'{ADMINISTRATOR}'@'%'");
    // The password is hexadecimal, so that it needs no quoting.
    let grant = format!("GRANT ALL PRIVILEGES ON *.* TO {account}");
    if package.flavour == Flavour::Mysql && !package.mysql_since(5, 7, 6) {
        return format!(
            "SET SESSION sql_log_bin = 0;\n\
             {grant} IDENTIFIED BY '{password}' WITH GRANT OPTION;\n"
        );
    }
    let verb = match package.flavour {
        // As `initialise` makes the others: MariaDB's own default could be another plug-in.
        Flavour::Mariadb if package.version >= crate::package::Version::new(10, 4, 0) => {
            format!("IDENTIFIED VIA mysql_native_password USING PASSWORD('{password}')")
        }
        _ => format!("IDENTIFIED BY '{password}'"),
    };
    format!(
        "SET SESSION sql_log_bin = 0;\n\
         CREATE USER IF NOT EXISTS {account} {verb};\n\
         {grant} WITH GRANT OPTION;\n"
    )
}
