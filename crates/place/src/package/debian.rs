//! MySQL from Debian unstable, as a root of its own made by `debootstrap`.
//!
//! On the host the server is started through the root's own dynamic loader, so that neither a
//! newer nor an older C library here matters. debootstrap runs in mount and process namespaces of
//! its own: whatever happens to it, nothing stays mounted and nobody goes on working.

use std::ffi::OsString;
use std::path::Path;

use crate::command::{CommandLog, Invocation, executable, find_program};
use crate::error::PlaceError;
use crate::progress::Progress;
use crate::tree;

/// Size of the finished root, for the progress bar; measured in 2026.
const ROOT_BYTES: u64 = 560_000_000;

/// Why nothing can be fetched here, if so.
pub(crate) fn unusable(name: &str) -> Option<PlaceError> {
    for (program, debian) in [("debootstrap", "debootstrap"), ("unshare", "util-linux")] {
        if find_program(program).is_none() {
            return Some(PlaceError::NoProgram {
                program: program.to_owned(),
                purpose: format!("fetch {name}"),
                debian: debian.to_owned(),
            });
        }
    }
    (!rustix::process::geteuid().is_root()).then(|| PlaceError::Unusable {
        name: name.to_owned(),
        why: "debootstrap needs root".to_owned(),
        next: Some("fetch it once as root".to_owned()),
    })
}

/// Makes the root in `dir/tree`; tells where it came from.
pub(super) fn fetch(
    name: &str,
    dir: &Path,
    log: &CommandLog,
    progress: &dyn Progress,
) -> Result<String, PlaceError> {
    let mirror = mirror(name, log)?;
    let root = dir.join("tree");
    progress.begin(&format!("fetching {name}"), "bytes", Some(ROOT_BYTES));
    let made = bootstrap(&root, "unstable", "mysql-server-core", &mirror, log, || {
        progress.advance(tree::disk_usage(&root).min(ROOT_BYTES));
    });
    progress.end();
    made?;
    // Downloaded packages were unpacked; device nodes are the guest's or container's to make.
    tree::remove_tree(&root.join("var/cache/apt/archives"))?;
    let package = Invocation::new("dpkg-query")
        .path_option("admindir", &root.join("var/lib/dpkg"))
        .args(["--show", "--showformat=${Version}", "mysql-server-core"]);
    let version = log.run(package, &root)?.stdout;
    Ok(format!("Debian unstable, mysql-server-core {}", version.trim()))
}

/// Makes a Debian root of the essential packages and `included`, a list with commas.
pub(crate) fn bootstrap(
    root: &Path,
    suite: &str,
    included: &str,
    mirror: &str,
    log: &CommandLog,
    tick: impl FnMut(),
) -> Result<(), PlaceError> {
    let debootstrap = Invocation::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "debootstrap", "--variant=minbase"])
        .args([&format!("--include={included}"), suite])
        .arg(root)
        .arg(mirror);
    let said = log.run_watched(debootstrap, tick)?;
    if said.fine() {
        return Ok(());
    }
    let own_log = std::fs::read_to_string(root.join("debootstrap/debootstrap.log"));
    let with_log =
        crate::command::Said { stderr: said.stderr + &own_log.unwrap_or_default(), ..said };
    with_log.success(root).map(drop)
}

/// Program and leading arguments that start the server of a root.
pub(super) fn server(root: &Path) -> Result<Vec<OsString>, PlaceError> {
    let loader = root.join("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
    let program = root.join("usr/sbin/mysqld");
    for path in [&loader, &program] {
        if !executable(path) {
            return Err(PlaceError::Unusable {
                name: "mysql-9.7".to_owned(),
                why: format!("{} is missing", path.display()),
                next: Some("remove the package from the cache and fetch it again".to_owned()),
            });
        }
    }
    let mut libraries = root.join("usr/lib/x86_64-linux-gnu").into_os_string();
    libraries.push(":");
    libraries.push(root.join("usr/lib/mysql/private"));
    Ok(vec![loader.into(), "--library-path".into(), libraries, program.into()])
}

/// The Debian mirror that this machine's apt is configured with, or `$CETERIS_DEBIAN_MIRROR`.
pub(crate) fn mirror(name: &str, log: &CommandLog) -> Result<String, PlaceError> {
    if let Ok(given) = std::env::var("CETERIS_DEBIAN_MIRROR")
        && !given.is_empty()
    {
        return Ok(given);
    }
    let none = || PlaceError::Unusable {
        name: name.to_owned(),
        why: "apt here knows no Debian mirror".to_owned(),
        next: Some("set CETERIS_DEBIAN_MIRROR to the address of one".to_owned()),
    };
    if find_program("apt-get").is_none() {
        return Err(none());
    }
    let ask = Invocation::new("apt-get").args(["indextargets", "--format", "$(SITE) $(RELEASE)"]);
    let said = log.run(ask, Path::new("/"))?;
    choose_mirror(&said.stdout).ok_or_else(none)
}

/// The first site with a main Debian suite: not a security or updates suite, whose sites carry no
/// `unstable`, and named `debian`, as every full mirror's directory is.
fn choose_mirror(targets: &str) -> Option<String> {
    targets
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .find(|(site, suite)| {
            site.trim_end_matches('/').ends_with("/debian") && !suite.contains("security")
        })
        .map(|(site, _)| site.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_archive_is_chosen_among_apts_sites() {
        let targets = "http://a.example/debian-security bookworm-security\n\
                       https://c.example/tools stable\n\
                       http://b.example/debian/ bookworm\n\
                       http://d.example/debian sid\n";
        assert_eq!(choose_mirror(targets).as_deref(), Some("http://b.example/debian"));
        assert_eq!(choose_mirror("http://e.example/ubuntu noble\n"), None);
        assert_eq!(choose_mirror(""), None);
    }
}
