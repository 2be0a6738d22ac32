//! Where a memory allocator's library is, by the dynamic loader's own list.

use std::path::{Path, PathBuf};

use study::Allocator;

use crate::command::{CommandLog, Invocation};
use crate::error::PlaceError;

/// Names of the libraries, the preferred first, and the Debian package that brings one.
fn wanted(allocator: Allocator) -> Option<(&'static [&'static str], &'static str)> {
    match allocator {
        Allocator::Default => None,
        Allocator::Jemalloc => Some((&["libjemalloc.so.2", "libjemalloc.so.1"], "libjemalloc2")),
        Allocator::Tcmalloc => {
            // The full library also profiles; what servers are run with is the small one.
            let names = &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"];
            Some((names, "libtcmalloc-minimal4 (or libtcmalloc-minimal4t64)"))
        }
    }
}

/// The library to preload.
///
/// # Errors
/// When it is not installed, with the Debian package that brings it.
pub(super) fn find(allocator: Allocator, log: &CommandLog) -> Result<Option<PathBuf>, PlaceError> {
    let Some((names, debian)) = wanted(allocator) else { return Ok(None) };
    let program = crate::command::find_program("ldconfig").unwrap_or_else(|| "ldconfig".into());
    let said = log.run(Invocation::new(program).arg("-p"), Path::new("/"))?;
    listed(&said.stdout, names).map(Some).ok_or_else(|| PlaceError::Limit {
        what: "the memory allocator".to_owned(),
        why: format!("the dynamic loader knows no {}", names[0]),
        next: Some(format!("apt-get install {debian}")),
    })
}

/// The first of `names` in the loader's list, for this machine's own kind of program.
fn listed(list: &str, names: &[&str]) -> Option<PathBuf> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "x86-64",
        "aarch64" => "AArch64",
        other => other,
    };
    names.iter().find_map(|wanted| {
        list.lines().find_map(|line| {
            let (name, rest) = line.trim().split_once(" (")?;
            let (kind, path) = rest.split_once(") => ")?;
            (name == *wanted && kind.contains(architecture)).then(|| path.into())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_this_architecture_is_taken() {
        let here = if cfg!(target_arch = "x86_64") { "x86-64" } else { "AArch64" };
        let list = format!(
            "2 libs found in cache `/etc/ld.so.cache'\n\
             \tlibjemalloc.so.2 (libc6) => /lib32/libjemalloc.so.2\n\
             \tlibjemalloc.so.2 (libc6,{here}) => /lib/here/libjemalloc.so.2\n"
        );
        let found = |names: &[&str]| listed(&list, names);
        assert_eq!(found(&["libjemalloc.so.2"]), Some("/lib/here/libjemalloc.so.2".into()));
        assert_eq!(found(&["libtcmalloc.so.4"]), None);
    }
}
