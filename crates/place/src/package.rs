//! Server packages: where a server's files come from (DESIGN section 5).
//!
//! [`resolve_package`] tells the forms of a name apart and leaves each to its file: `catalogue` and
//! `maven` and `debian` fetch what has a name, `local` finds what is on this machine, `archive`
//! unpacks what a person has downloaded, `image` looks at a container engine's, and `probe` asks the program itself what it is.

mod archive;
mod catalogue;
pub(crate) mod debian;
mod image;
mod local;
mod maven;
mod probe;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::command::CommandLog;
use crate::error::PlaceError;
use crate::progress::Progress;

pub(crate) use local::one_line;
pub(crate) use maven::ready_data;
pub(crate) use probe::parse_version;

/// Whose server it is; MySQL includes Percona Server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flavour {
    /// MySQL and what reports itself like it.
    Mysql,
    /// MariaDB.
    Mariadb,
}

/// Version as the program itself reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// `8` in `8.0.12`.
    pub major: u32,
    /// `0` in `8.0.12`.
    pub minor: u32,
    /// `12` in `8.0.12`.
    pub patch: u32,
}

/// A server program ready to be started.
#[derive(Clone, Debug)]
pub struct Package {
    /// As named in the study.
    pub name: String,
    /// Whose.
    pub flavour: Flavour,
    /// Which.
    pub version: Version,
    /// Program and leading arguments that start the server (a dynamic loader may come first).
    pub mysqld: Vec<OsString>,
    /// Environment for it (`LD_LIBRARY_PATH`).
    pub env: Vec<(OsString, OsString)>,
    /// `--basedir`; empty where the server's own default holds (images).
    pub base_dir: PathBuf,
    /// Content hash, hexadecimal: SHA-256 of a catalogue package's pinned file, BLAKE3 of an
    /// archive, an image's own id; else BLAKE3 over the server program and the names and sizes of the files in its
    /// message, SQL and plug-in directories, which is quick enough to be taken each time.
    pub hash: String,
}

/// One line of `ceteris packages list`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PackageListing {
    /// Name to write in a study.
    pub name: String,
    /// Version, where known without fetching.
    pub version: String,
    /// Already in the cache (or on this machine).
    pub present: bool,
    /// Can be used here, by what is present or can be fetched.
    pub usable: bool,
    /// Why not, or where it comes from.
    pub why: String,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// `Version::new(8, 0, 12)` is 8.0.12.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }
}

impl Package {
    /// Whether this is MySQL at or after a version.
    pub(crate) fn mysql_since(&self, major: u32, minor: u32, patch: u32) -> bool {
        self.flavour == Flavour::Mysql && self.version >= Version::new(major, minor, patch)
    }

    /// The image's name, if the package is one.
    pub fn image(&self) -> Option<&str> {
        self.name.strip_prefix(image::PREFIX)
    }

    /// The server program's own file, behind a dynamic loader if there is one.
    pub fn binary(&self) -> PathBuf {
        self.mysqld.last().map(PathBuf::from).unwrap_or_default()
    }
}

/// Finds or fetches the package that a study names (DESIGN section 5).
///
/// # Errors
/// Unknown name (with the known ones), missing client, wrong hash, full disk, foreign archive; the
/// cache is never left half filled.
pub fn resolve_package(
    name: &str,
    cache: &Cache,
    log: &CommandLog,
    progress: &dyn Progress,
) -> Result<Package, PlaceError> {
    match source_of(name)? {
        Source::Installed => local::installed(log),
        Source::Catalogue(entry) => catalogue::resolve(entry, cache, log, progress),
        Source::Directory(path) => local::directory(name, &path, log),
        Source::Archive(path) => archive::resolve(name, &path, cache, log, progress),
        Source::Image(reference) => image::resolve(name, reference, log),
    }
}

/// Whether a name can be a package at all: known to the catalogue, or leading somewhere.
///
/// # Errors
/// Those of [`resolve_package`] that need nothing looked up, [`PlaceError::UnknownPackage`] first.
pub fn check_package_name(name: &str) -> Result<(), PlaceError> {
    source_of(name).map(|_| ())
}

/// The package that a study names, if it is on this machine or in the cache; `None` where it would
/// have to be fetched or unpacked. Changes nothing.
///
/// # Errors
/// As [`resolve_package`].
pub(crate) fn find_package(
    name: &str,
    cache: &Cache,
    log: &CommandLog,
) -> Result<Option<Package>, PlaceError> {
    match source_of(name)? {
        Source::Installed => local::installed(log).map(Some),
        Source::Image(reference) => image::resolve(name, reference, log).map(Some),
        Source::Catalogue(entry) => catalogue::cached(entry, cache, log),
        Source::Directory(path) => local::directory(name, &path, log).map(Some),
        Source::Archive(path) => archive::find(name, &path, cache, log),
    }
}

/// The form of a package's name.
enum Source<'a> {
    Installed,
    Image(&'a str),
    Catalogue(&'static catalogue::Entry),
    Directory(PathBuf),
    Archive(PathBuf),
}

fn source_of(name: &str) -> Result<Source<'_>, PlaceError> {
    if name == "installed" {
        return Ok(Source::Installed);
    }
    if let Some(reference) = name.strip_prefix(image::PREFIX) {
        image::check(name, reference)?;
        return Ok(Source::Image(reference));
    }
    if let Some(entry) = catalogue::find(name) {
        return Ok(Source::Catalogue(entry));
    }
    if let Some(path) = local::path(name) {
        let meta = path.metadata().map_err(PlaceError::io("find", &path))?;
        return Ok(if meta.is_dir() { Source::Directory(path) } else { Source::Archive(path) });
    }
    Err(PlaceError::UnknownPackage {
        name: name.to_owned(),
        known: ["installed"].into_iter().chain(catalogue::NAMES).map(str::to_owned).collect(),
    })
}

/// The catalogue, `installed` and what is cached.
pub fn list_packages(cache: &Cache) -> Vec<PackageListing> {
    let mut listed = vec![local::listing()];
    listed.extend(catalogue::listings(cache));
    listed.extend(archive::listings(cache));
    listed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Quiet;

    #[test]
    fn names_that_lead_nowhere_say_what_would() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let resolve =
            |name: &str| resolve_package(name, &cache, &CommandLog::default(), &Quiet).unwrap_err();
        let error = resolve("mysql-8.0.13");
        assert_eq!(error.to_string(), "there is no server package `mysql-8.0.13`");
        let hint = error.hint().unwrap();
        for name in ["installed", "mysql-5.5.9", "mysql-9.7", "mariadb-11.4.5"] {
            assert!(hint.contains(name), "{hint}");
        }
        let error = resolve("image:--privileged");
        assert!(error.to_string().contains("not the name of an image"));
        let error = resolve("/does/not/exist");
        assert!(matches!(error, PlaceError::Io { .. }), "{error}");
        assert_eq!(cache.usage().unwrap(), []);
    }
}
