//! Packages that are on this machine already: `installed`, and a directory of the user's.

use std::path::{Path, PathBuf};

use super::{Package, PackageListing, probe};
use crate::command::{CommandLog, executable, find_program};
use crate::error::PlaceError;
use crate::user::ServerUser;

/// Where distributions put a server that is not in `PATH`.
const PLACES: [&str; 6] = [
    "/usr/sbin",
    "/usr/libexec",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/local/libexec",
    "/usr/local/mysql/bin",
];

/// The system's own server program.
fn find() -> Option<PathBuf> {
    ["mariadbd", "mysqld"].iter().find_map(|name| {
        find_program(name).or_else(|| {
            PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| executable(path))
        })
    })
}

/// `installed`.
pub(super) fn installed(log: &CommandLog) -> Result<Package, PlaceError> {
    let program = find().ok_or_else(|| PlaceError::Unusable {
        name: "installed".to_owned(),
        why: "no mariadbd or mysqld on this machine".to_owned(),
        next: Some("apt-get install mariadb-server, or name another package".to_owned()),
    })?;
    let program = program.canonicalize().map_err(PlaceError::io("find", &program))?;
    // `/usr/sbin/mysqld` has its files below `/usr`.
    let base = program.parent().and_then(Path::parent).unwrap_or(Path::new("/usr")).to_owned();
    probe::package("installed", vec![program.into()], Vec::new(), &base, None, log)
}

/// The listing of `installed`.
pub(super) fn listing() -> PackageListing {
    let asked = installed(&CommandLog::default());
    PackageListing {
        name: "installed".to_owned(),
        version: asked
            .as_ref()
            .map_or_else(|_| String::new(), |package| package.version.to_string()),
        present: find().is_some(),
        usable: asked.is_ok(),
        why: match &asked {
            Ok(package) => format!("{} on this machine", package.binary().display()),
            Err(error) => one_line(error),
        },
    }
}

/// An error and its hint in one line.
pub(crate) fn one_line(error: &PlaceError) -> String {
    let text = error.to_string().lines().map(str::trim).collect::<Vec<_>>().join("; ");
    match error.hint() {
        Some(hint) => format!("{text} ({hint})"),
        None => text,
    }
}

/// The path that a name is, if it is one: absolute, `./`, `../` or `~/`.
pub(super) fn path(name: &str) -> Option<PathBuf> {
    if let Some(rest) = name.strip_prefix("~/") {
        return std::env::var_os("HOME").map(|home| PathBuf::from(home).join(rest));
    }
    ["/", "./", "../"].iter().any(|start| name.starts_with(start)).then(|| PathBuf::from(name))
}

/// A directory that holds a server.
pub(super) fn directory(name: &str, path: &Path, log: &CommandLog) -> Result<Package, PlaceError> {
    let base = path.canonicalize().map_err(PlaceError::io("find", path))?;
    let program = probe::server_below(&base).ok_or_else(|| PlaceError::Unusable {
        name: name.to_owned(),
        why: format!("{} holds no bin/mysqld or bin/mariadbd", base.display()),
        next: Some("name the directory that holds bin, sbin or libexec".to_owned()),
    })?;
    ServerUser::find()?.check_reach(&program)?;
    let env = probe::own_libraries(&base);
    let base = if program.starts_with(base.join("usr")) { base.join("usr") } else { base };
    probe::package(name, vec![program.into()], env, &base, None, log)
}
