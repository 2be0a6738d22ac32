//! The shared libraries of a program, as its own dynamic loader finds them.
//!
//! The loader is asked by `LD_TRACE_LOADED_OBJECTS`, which is what `ldd` does, so that run paths,
//! `LD_LIBRARY_PATH` and a loader that comes first in the command count as they do when the program
//! really starts. What a server opens only later is named to it as preloaded: its plug-ins.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::command::{CommandLog, Invocation};
use crate::error::PlaceError;

/// Opened by the C library itself when a name is looked up; built into it since glibc 2.34.
const BY_NAME: [&str; 3] = ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"];

/// Absolute paths of what `program` (with the loader's words before it, if any) and `plugins` load.
///
/// # Errors
/// [`PlaceError::MissingLibrary`] for one of the program's own; a plug-in that lacks one cannot be
/// loaded outside either.
pub(super) fn of(
    program: &[OsString],
    env: &[(OsString, OsString)],
    plugins: &[PathBuf],
    log: &CommandLog,
) -> Result<Vec<PathBuf>, PlaceError> {
    let own = trace(program, env, &[], log)?;
    if let Some(library) = own.missing.first() {
        let program = program.last().map(|word| word.to_string_lossy().into_owned());
        return Err(PlaceError::MissingLibrary {
            program: program.unwrap_or_default(),
            library: library.clone(),
        });
    }
    let mut found = own.found;
    if !plugins.is_empty() {
        found.extend(trace(program, env, plugins, log)?.found);
    }
    let beside: Vec<PathBuf> = found
        .iter()
        .filter(|path| path.file_name().is_some_and(|name| name == "libc.so.6"))
        .filter_map(|path| path.parent())
        .flat_map(|dir| BY_NAME.map(|name| dir.join(name)))
        .filter(|path| path.exists())
        .collect();
    found.extend(beside);
    Ok(found)
}

/// What the loader says that it would open.
#[derive(Debug, Default, PartialEq)]
struct Traced {
    found: Vec<PathBuf>,
    missing: Vec<String>,
}

fn trace(
    program: &[OsString],
    env: &[(OsString, OsString)],
    plugins: &[PathBuf],
    log: &CommandLog,
) -> Result<Traced, PlaceError> {
    let mut env = env.to_vec();
    env.push(("LD_TRACE_LOADED_OBJECTS".into(), "1".into()));
    if !plugins.is_empty() {
        // A path with a blank or a colon cannot be named to the loader.
        let plain = |path: &&PathBuf| !path.to_string_lossy().contains([' ', ':']);
        let words: Vec<&Path> = plugins.iter().filter(plain).map(PathBuf::as_path).collect();
        let joined = std::env::join_paths(words)
            .map_err(|error| PlaceError::Other(format!("the plug-ins cannot be named: {error}")))?;
        env.push(("LD_PRELOAD".into(), joined));
    }
    // A program without a loader runs: it should then only tell its version.
    let asked = Invocation::of(program).bare().env(&env).args(["--no-defaults", "--version"]);
    Ok(parse(&log.run_watched(asked, || ())?.stdout))
}

/// Lines such as `libm.so.6 => /lib/libm.so.6 (0x7f..)`, `/lib64/ld.so (0x7f..)` and
/// `libx.so => not found`.
fn parse(text: &str) -> Traced {
    let mut traced = Traced::default();
    for line in text.lines().filter(|line| line.starts_with('\t')).map(str::trim) {
        let (name, path) = line.split_once(" => ").unwrap_or(("", line));
        if path == "not found" {
            traced.missing.push(name.to_owned());
            continue;
        }
        let path = path.rsplit_once(" (").map_or(path, |(path, _)| path);
        // `linux-vdso.so.1` is the kernel's and no file.
        for path in [name, path].into_iter().filter(|path| path.starts_with('/')) {
            traced.found.push(PathBuf::from(path));
        }
    }
    traced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffe)\n\
                    \tlibaio.so.1 => /lib/x/libaio.so.1 (0x00007ff3)\n\
                    \tlibgone.so.9 => not found\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007ff3)\n\
                    mysqld  Ver 8.0.12 for Linux\n";
        let found = ["/lib/x/libaio.so.1", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        let missing = vec!["libgone.so.9".to_owned()];
        assert_eq!(parse(text), Traced { found: found.to_vec(), missing });
    }
}
