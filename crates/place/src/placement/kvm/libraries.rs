//! The files that make a server run: its package's, and every shared library that it loads from the
//! rest of the system, so that a guest can be given the very bytes that a process here would use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::command::{CommandLog, Invocation};
use crate::error::PlaceError;
use crate::package::Package;

/// Bases that hold far more than a server.
const SYSTEM_BASES: [&str; 3] = ["/", "/usr", "/usr/local"];
/// What a server of such a base reads at run time, beside its program.
const SERVER_PARTS: [&str; 6] =
    ["share/mysql", "share/mariadb", "share/mysql-8.0", "lib/mysql", "lib64/mysql", "lib/plugin"];

/// Files and directories to be copied, each to its own absolute path.
pub(super) fn server_files(
    package: &Package,
    log: &CommandLog,
) -> Result<BTreeSet<PathBuf>, PlaceError> {
    let base = &package.base_dir;
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    let whole = !SYSTEM_BASES.iter().any(|system| base == Path::new(system));
    if !whole {
        let parts = SERVER_PARTS.iter().map(|part| base.join(part));
        files.extend(parts.filter(|part| part.is_dir()));
    } else {
        files.insert(base.clone());
    }
    let words = package.mysqld.iter().map(PathBuf::from);
    files.extend(words.filter(|word| word.is_file() && !word.starts_with(base)));
    files.insert(package.binary());
    // One that comes with its own loader says itself where its libraries are.
    if package.mysqld.len() == 1 {
        files.extend(libraries(&[package.binary()], package, true, log)?);
        files.extend(libraries(&plugins(base), package, false, log)?);
    }
    // What lies in a tree that is copied whole is copied with it.
    files.retain(|file| !whole || file == base || !file.starts_with(base));
    Ok(files)
}

/// Every shared library of these programs, by the dynamic loader's own word.
///
/// # Errors
/// Where `all` are needed: the first that is missing.
pub(super) fn libraries(
    programs: &[PathBuf],
    package: &Package,
    all: bool,
    log: &CommandLog,
) -> Result<BTreeSet<PathBuf>, PlaceError> {
    if programs.is_empty() {
        return Ok(BTreeSet::new());
    }
    // It fails for a static program too, which needs nothing.
    let said =
        log.run_watched(Invocation::new("ldd").bare().env(&package.env).args(programs), || ())?;
    if all && let Some(library) = missing(&said.stdout) {
        return Err(PlaceError::MissingLibrary { program: package.name.clone(), library });
    }
    Ok(listed(&said.stdout))
}

/// Plug-ins below a base; some need what nobody has, and are then not loaded by anybody.
fn plugins(base: &Path) -> Vec<PathBuf> {
    let places = ["lib/mysql/plugin", "lib/plugin", "lib64/mysql/plugin"];
    let mut found: Vec<PathBuf> = places
        .iter()
        .filter_map(|place| std::fs::read_dir(base.join(place)).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "so"))
        .collect();
    found.sort();
    found
}

/// The paths of `libm.so.6 => /lib/libm.so.6 (0x7f)` and `/lib64/ld.so (0x7f)`.
fn listed(said: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| {
        let (before, _) = line.trim().rsplit_once(" (0x")?;
        let path = before.rsplit_once("=> ").map_or(before, |(_, path)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    said.lines().filter_map(path).collect()
}

fn missing(said: &str) -> Option<String> {
    let line = said.lines().find_map(|line| line.trim().strip_suffix(" => not found"))?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_lists_is_what_is_copied() {
        let said = "/opt/a/bin/mysqld:\n\tlinux-vdso.so.1 (0x00007ffc)\n\
                    \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f01)\n\
                    \tlibown.so => /opt/a b/lib/libown.so (0x00007f02)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f03)\n";
        let paths: Vec<PathBuf> = listed(said).into_iter().collect();
        let expected = [
            "/lib/x86_64-linux-gnu/libm.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/opt/a b/lib/libown.so",
        ];
        assert_eq!(paths, expected.map(PathBuf::from));
        assert_eq!(missing(said), None);
        assert_eq!(missing("\tlibaio.so.1 => not found\n").as_deref(), Some("libaio.so.1"));
    }
}
