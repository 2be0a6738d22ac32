//! Asks a server program what it is, and hashes what it consists of.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Flavour, Package, Version};
use crate::command::{CommandLog, Invocation, executable, missing_library};
use crate::error::PlaceError;
use crate::tree;

/// Where a server program stands below a base directory; MariaDB's own name first.
const PLACES: [&str; 8] = [
    "bin/mariadbd",
    "bin/mysqld",
    "sbin/mariadbd",
    "sbin/mysqld",
    "libexec/mariadbd",
    "libexec/mysqld",
    "usr/sbin/mariadbd",
    "usr/sbin/mysqld",
];

/// The server program below `base`, if there is one.
pub(super) fn server_below(base: &Path) -> Option<PathBuf> {
    PLACES.iter().map(|place| base.join(place)).find(|path| executable(path))
}

/// Library directories of its own that a build below `base` brings along.
pub(super) fn own_libraries(base: &Path) -> Vec<(OsString, OsString)> {
    let found: Vec<PathBuf> = ["lib", "lib/private", "lib/mysql", "bin"]
        .iter()
        .map(|name| base.join(name))
        .filter(|dir| holds_shared_library(dir))
        .collect();
    match std::env::join_paths(&found) {
        Ok(paths) if !found.is_empty() => vec![("LD_LIBRARY_PATH".into(), paths)],
        // A path with a colon cannot be named in this variable at all; the loader then says what
        // it misses.
        _ => Vec::new(),
    }
}

fn holds_shared_library(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|listed| {
        listed.flatten().any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.ends_with(".so") || name.contains(".so.")
        })
    })
}

/// Asks for flavour and version, and completes the package. `hash` is taken where the caller has
/// none.
///
/// # Errors
/// A missing shared library with its Debian package, or that the program is no server.
pub(super) fn package(
    name: &str,
    mysqld: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    base_dir: &Path,
    hash: Option<String>,
    log: &CommandLog,
) -> Result<Package, PlaceError> {
    let ask = Invocation::of(&mysqld).bare().env(&env).args(["--no-defaults", "--version"]);
    let said = log.run_watched(ask, || ())?;
    let words = format!("{}{}", said.stdout, said.stderr);
    if let Some((_, library)) = missing_library(&words) {
        return Err(PlaceError::MissingLibrary { program: name.to_owned(), library });
    }
    let said = said.success(base_dir)?;
    let (flavour, version) = parse_version(&said.stdout).ok_or_else(|| PlaceError::Unusable {
        name: name.to_owned(),
        why: format!("its server program says `{}`", said.stdout.trim()),
        next: Some("expected the version line of mysqld or mariadbd".into()),
    })?;
    let mut package = Package {
        name: name.to_owned(),
        flavour,
        version,
        mysqld,
        env,
        base_dir: base_dir.to_owned(),
        hash: String::new(),
    };
    package.hash = match hash {
        Some(hash) => hash,
        None => content_hash(&package)?,
    };
    Ok(package)
}

/// Flavour and version of `mysqld  Ver 8.0.12 for Linux on x86_64 (MySQL Community Server - GPL)`.
pub(crate) fn parse_version(line: &str) -> Option<(Flavour, Version)> {
    let (_, rest) = line.split_once("Ver ")?;
    let word = rest.split_whitespace().next()?;
    let mut numbers = word.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next()?.ok();
    let version = Version { major: next()?, minor: next()?, patch: next()? };
    let flavour = if line.to_ascii_lowercase().contains("mariadb") {
        Flavour::Mariadb
    } else {
        Flavour::Mysql
    };
    Some((flavour, version))
}

/// BLAKE3 over the program and the listings of the directories that it reads at run time.
fn content_hash(package: &Package) -> Result<String, PlaceError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tree::hash_file(&package.binary())?.as_bytes());
    for name in
        ["share/mysql", "share/mariadb", "share/mysql-8.0", "lib/mysql/plugin", "lib/plugin"]
    {
        tree::listing_hash(&package.base_dir.join(name), &mut hasher);
    }
    if !package.base_dir.join("share/mysql").is_dir() && package.base_dir != Path::new("/usr") {
        tree::listing_hash(&package.base_dir.join("share"), &mut hasher);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn version_lines_of_all_times_are_read() {
        let lines = [
            ("mysqld  Ver 5.5.9 for linux3.0.4 on x86_64 (Source distribution)", "5.5.9"),
            ("./mysqld  Ver 5.7.22 for linux-glibc2.12 on x86_64 (MySQL Community)", "5.7.22"),
            ("/x/mysqld  Ver 8.0.12-4.1 for Linux on x86_64 (Percona Server)", "8.0.12"),
            ("/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "9.7.4"),
        ];
        for (line, version) in lines {
            let (flavour, found) = parse_version(line).unwrap();
            assert_eq!((flavour, found.to_string().as_str()), (Flavour::Mysql, version));
        }
        let line = "mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64";
        assert_eq!(parse_version(line).unwrap(), (Flavour::Mariadb, Version::new(10, 11, 14)));
        assert_eq!(parse_version("GNU bash, version 5.2.15(1)-release"), None);
    }
}
