//! Packages that a person downloaded: `.tar.gz`, `.tar.xz` and `.tar.zst`, unpacked into the cache
//! under the hash of their content, so that a changed file of the same name is another package.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Package, PackageListing, probe};
use crate::cache::Cache;
use crate::command::{CommandLog, Invocation, find_program};
use crate::error::PlaceError;
use crate::progress::Progress;
use crate::tree;

/// Endings, the option and program by which `tar` reads them, and the Debian package of the latter.
const KINDS: [(&str, &str, &str, &str); 5] = [
    (".tar.gz", "--gzip", "gzip", "gzip"),
    (".tgz", "--gzip", "gzip", "gzip"),
    (".tar.xz", "--xz", "xz", "xz-utils"),
    (".txz", "--xz", "xz", "xz-utils"),
    (".tar.zst", "--zstd", "zstd", "zstd"),
];

/// What the cache keeps beside an unpacked archive.
#[derive(Serialize, Deserialize)]
struct Origin {
    /// Where the archive was.
    archive: PathBuf,
    /// Version that its server reported.
    version: String,
}

/// Finds the archive's tree in the cache or unpacks it.
pub(super) fn resolve(
    name: &str,
    path: &Path,
    cache: &Cache,
    log: &CommandLog,
    progress: &dyn Progress,
) -> Result<Package, PlaceError> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((_, option, program, debian)) =
        KINDS.into_iter().find(|(ending, ..)| file_name.ends_with(ending))
    else {
        return Err(PlaceError::Unusable {
            name: name.to_owned(),
            why: "it is neither a directory nor an archive that ceteris reads".to_owned(),
            next: Some("archives end in .tar.gz, .tar.xz or .tar.zst".to_owned()),
        });
    };
    let hash = tree::hash_file(path)?.to_hex().to_string();
    let target = cache.room("packages").join(&hash);
    let _lock = cache.lock("packages", &hash, || {
        progress.begin(&format!("waiting for another ceteris that unpacks {name}"), "", None);
        progress.end();
    })?;
    if !target.join("origin.json").is_file() {
        for (program, debian) in [("tar", "tar"), (program, debian)] {
            if find_program(program).is_none() {
                return Err(PlaceError::NoProgram {
                    program: program.to_owned(),
                    purpose: format!("unpack {file_name}"),
                    debian: debian.to_owned(),
                });
            }
        }
        unpack(name, path, option, cache, log, progress, &target)?;
    }
    from_tree(name, &target, hash, log)
}

fn unpack(
    name: &str,
    path: &Path,
    option: &str,
    cache: &Cache,
    log: &CommandLog,
    progress: &dyn Progress,
    target: &Path,
) -> Result<(), PlaceError> {
    let staging = cache.stage("packages")?;
    let tree_dir = staging.path().join("tree");
    crate::cache::make_directory(&tree_dir, 0o755)?;
    let tar = Invocation::new("tar")
        .args(["--extract", option, "--no-same-owner", "--strip-components=1"])
        .path_option("file", &path.canonicalize().map_err(PlaceError::io("find", path))?)
        .path_option("directory", &tree_dir);
    progress.begin(&format!("unpacking {name}"), "bytes", None);
    let said = log.run_watched(tar, || progress.advance(tree::disk_usage(&tree_dir)));
    progress.end();
    said?.success(&tree_dir)?;
    tree::open_to_readers(staging.path())?;
    // Probed before it is kept: what holds no server does not enter the cache.
    let package = from_tree(name, staging.path(), String::new(), log)?;
    let origin = Origin {
        archive: path.canonicalize().map_err(PlaceError::io("find", path))?,
        version: package.version.to_string(),
    };
    write_json(&staging.path().join("origin.json"), &origin)?;
    staging.finish(target)?;
    Ok(())
}

/// The archive's package, if the cache holds it already. Nothing is unpacked or locked.
pub(super) fn find(
    name: &str,
    path: &Path,
    cache: &Cache,
    log: &CommandLog,
) -> Result<Option<Package>, PlaceError> {
    let hash = tree::hash_file(path)?.to_hex().to_string();
    let target = cache.room("packages").join(&hash);
    if !target.join("origin.json").is_file() {
        return Ok(None);
    }
    from_tree(name, &target, hash, log).map(Some)
}

fn from_tree(
    name: &str,
    dir: &Path,
    hash: String,
    log: &CommandLog,
) -> Result<Package, PlaceError> {
    let base = dir.join("tree");
    let program = probe::server_below(&base).ok_or_else(|| PlaceError::Unusable {
        name: name.to_owned(),
        why: "the archive holds no bin/mysqld or bin/mariadbd below its one directory".to_owned(),
        next: Some("pack it as servers are published: one directory that holds bin".to_owned()),
    })?;
    let env = probe::own_libraries(&base);
    probe::package(name, vec![program.into()], env, &base, Some(hash), log)
}

/// Writes a value as indented JSON.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), PlaceError> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|error| PlaceError::io("write", path)(error.into()))?;
    std::fs::write(path, text).map_err(PlaceError::io("write", path))
}

/// The archives that the cache holds.
pub(super) fn listings(cache: &Cache) -> Vec<PackageListing> {
    let Ok(rooms) = std::fs::read_dir(cache.room("packages")) else { return Vec::new() };
    let mut listed: Vec<PackageListing> = rooms
        .flatten()
        .filter_map(|entry| {
            let text = std::fs::read(entry.path().join("origin.json")).ok()?;
            let origin: Origin = serde_json::from_slice(&text).ok()?;
            let usable = origin.archive.is_file();
            let archive = origin.archive.display().to_string();
            Some(PackageListing {
                why: match usable {
                    true => format!("unpacked in {}", entry.path().display()),
                    false => format!("unpacked, but {archive} is gone and its hash unknown"),
                },
                name: archive,
                version: origin.version,
                present: true,
                usable,
            })
        })
        .collect();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    listed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::package::{Flavour, find_package, list_packages, resolve_package};
    use crate::progress::Quiet;
    use std::os::unix::fs::PermissionsExt;

    /// A tree with a script that says it is a server.
    fn fake_server(dir: &Path, version: &str) {
        let bin = dir.join(format!("mysql-{version}-linux/bin"));
        std::fs::create_dir_all(&bin).unwrap();
        let script = format!(
            "#!/bin/sh\necho \"mysqld  Ver {version} for Linux on x86_64 (Fake Server)\"\n"
        );
        std::fs::write(bin.join("mysqld"), script).unwrap();
        std::fs::set_permissions(bin.join("mysqld"), std::fs::Permissions::from_mode(0o700))
            .unwrap();
    }

    fn pack(dir: &Path, version: &str, ending: &str) -> PathBuf {
        let archive = dir.join(format!("fake-{version}{ending}"));
        let option = KINDS.iter().find(|kind| kind.0 == ending).unwrap().1;
        let status = std::process::Command::new("tar")
            .args(["-c", option, "-f"])
            .arg(&archive)
            .arg("-C")
            .arg(dir)
            .arg(format!("mysql-{version}-linux"))
            .status()
            .unwrap();
        assert!(status.success());
        archive
    }

    fn fs_names(cache: &Cache) -> Vec<std::ffi::OsString> {
        let room = std::fs::read_dir(cache.room("packages")).unwrap();
        let mut names: Vec<_> = room.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn archives_of_three_kinds_are_unpacked_once_under_their_hash() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache")).unwrap();
        let log = CommandLog::default();
        for (number, ending) in [".tar.gz", ".tar.xz", ".tar.zst"].into_iter().enumerate() {
            let version = format!("8.4.{number}");
            fake_server(dir.path(), &version);
            let archive = pack(dir.path(), &version, ending);
            let name = archive.to_str().unwrap();
            log.drain();
            let before = fs_names(&cache);
            assert!(find_package(name, &cache, &log).unwrap().is_none());
            assert_eq!(fs_names(&cache), before, "looking changes nothing");
            let package = resolve_package(name, &cache, &log, &Quiet).unwrap();
            assert_eq!(package.flavour, Flavour::Mysql);
            assert_eq!(package.version.to_string(), version);
            let expected = blake3::hash(&std::fs::read(&archive).unwrap()).to_hex().to_string();
            assert_eq!(package.hash, expected);
            assert!(package.base_dir.starts_with(cache.room("packages").join(&expected)));
            let mode = package.binary().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o755, "the server user must be able to run it");
            let unpacked = |log: &CommandLog| {
                log.drain().iter().filter(|entry| entry.command.starts_with("tar ")).count()
            };
            assert_eq!(unpacked(&log), 1);
            assert_eq!(resolve_package(name, &cache, &log, &Quiet).unwrap().hash, package.hash);
            assert_eq!(unpacked(&log), 0, "the second time it comes from the cache");
            let found = find_package(name, &cache, &log).unwrap();
            assert_eq!(found.map(|found| found.hash), Some(package.hash));
        }
        let listed = list_packages(&cache);
        assert_eq!(listed.iter().filter(|one| one.name.contains("/fake-8.4.")).count(), 3);
    }

    #[test]
    fn two_who_want_one_archive_unpack_it_once() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache")).unwrap();
        fake_server(dir.path(), "8.4.9");
        let archive = pack(dir.path(), "8.4.9", ".tar.gz");
        let log = CommandLog::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let name = archive.to_str().unwrap();
                    resolve_package(name, &cache, &log, &Quiet).unwrap();
                });
            }
        });
        let commands = log.drain();
        let unpacked = commands.iter().filter(|entry| entry.command.starts_with("tar "));
        assert_eq!(unpacked.count(), 1);
    }

    #[test]
    fn what_is_no_server_archive_leaves_nothing_in_the_cache() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache")).unwrap();
        let log = CommandLog::default();
        let resolve = |path: &Path| {
            resolve_package(path.to_str().unwrap(), &cache, &log, &Quiet).unwrap_err()
        };
        let torn = dir.path().join("torn.tar.gz");
        std::fs::write(&torn, b"this is no archive").unwrap();
        assert!(matches!(resolve(&torn), PlaceError::Command { .. }));

        std::fs::create_dir_all(dir.path().join("mysql-0-linux/docs")).unwrap();
        let empty = pack(dir.path(), "0", ".tar.gz");
        assert!(resolve(&empty).to_string().contains("holds no bin/mysqld"));

        let zip = dir.path().join("server.zip");
        std::fs::write(&zip, b"PK").unwrap();
        assert!(resolve(&zip).hint().unwrap().contains(".tar.zst"));
        let left: Vec<_> = std::fs::read_dir(cache.room("packages"))
            .unwrap()
            .flatten()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with(".lock-"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
