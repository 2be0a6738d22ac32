//! Root file systems made of packages: unpacked, entered with `chroot`, and the server asked.
//!
//! Packages that are not in the cache of this machine are SKIPPED, and so is all of it without root.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use ceteris_place::{
    Cache, CommandLog, Guest, Journal, Package, Quiet, Tools, list_packages, resolve_package,
    root_tar,
};

/// Runs a package's server in a root with nothing of the environment but the package's own.
fn version_in(root: &Path, package: &Package) -> String {
    let said = Command::new("chroot")
        .arg(root)
        .args(&package.mysqld)
        .args(["--no-defaults", "--version"])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin")
        .envs(package.env.iter().cloned())
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn a_server_runs_in_the_root_that_was_made_for_it() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: chroot needs root");
        return;
    }
    let here = Cache::look().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(&dir.path().join("cache")).unwrap();
    let (journal, log) = (Journal::open(&cache).unwrap(), CommandLog::default());
    let tools = Tools { cache: &cache, journal: &journal, log: &log };
    let present: Vec<String> = if here.root().is_dir() {
        list_packages(&here).into_iter().filter(|p| p.present && p.usable).map(|p| p.name).collect()
    } else {
        Vec::new()
    };
    if present.is_empty() {
        eprintln!("SKIPPED: no server package on this machine");
    }
    for name in present {
        let package = resolve_package(&name, &here, &log, &Quiet).unwrap();
        let made = root_tar(&package, &[], tools).unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let tar = Command::new("tar").arg("-xf").arg(&made.path).arg("-C").arg(&root).status();
        assert!(tar.unwrap().success());
        let version = version_in(&root, &package);
        assert!(version.contains(&package.version.to_string()), "{name}: {version}");
        // The messages that a server cannot start without are where its base directory says.
        let share = root.join(package.base_dir.strip_prefix("/").unwrap()).join("share");
        let found =
            Command::new("find").arg(&share).args(["-name", "errmsg.sys"]).output().unwrap();
        assert!(!found.stdout.is_empty(), "{name}: no errmsg.sys below {}", share.display());
        let passwd = std::fs::read_to_string(root.join("etc/passwd")).unwrap();
        assert!(passwd.contains("mysql:x:") || passwd.contains("nobody:x:"), "{passwd}");
        std::fs::remove_dir_all(&root).unwrap();
    }
}

#[test]
fn an_image_is_made_once_and_again_when_its_guest_changes() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(&dir.path().join("cache")).unwrap();
    let (journal, log) = (Journal::open(&cache).unwrap(), CommandLog::default());
    let tools = Tools { cache: &cache, journal: &journal, log: &log };
    let package = match resolve_package("installed", &cache, &log, &Quiet) {
        Ok(package) => package,
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            return;
        }
    };
    let tars = |log: &CommandLog| {
        log.drain().iter().filter(|one| one.command.starts_with("tar --create")).count()
    };
    let guest = |program: &str| Guest { program: program.into(), at: "/opt/guest".into() };
    let one = root_tar(&package, &[guest("/bin/true")], tools).unwrap();
    assert_eq!(tars(&log), 1);
    assert_eq!(root_tar(&package, &[guest("/bin/true")], tools).unwrap().hash, one.hash);
    assert_eq!(log.drain(), [], "what is known is not even looked at again");
    let other = root_tar(&package, &[guest("/bin/false")], tools).unwrap();
    assert_ne!(other.hash, one.hash);
    assert_eq!(tars(&log), 1);
    let held: BTreeSet<String> = cache
        .usage()
        .unwrap()
        .into_iter()
        .filter(|item| item.room == "images")
        .map(|item| item.name)
        .collect();
    assert_eq!(held, BTreeSet::from([one.hash.clone(), other.hash.clone()]));
    let listed = Command::new("tar").arg("-tvf").arg(&one.path).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let line = |path: &str| listed.lines().find(|line| line.ends_with(path)).map(str::to_owned);
    assert!(line(" ./opt/guest").is_some_and(|line| line.starts_with("-rwxr-xr-x")));
    assert!(line(" ./tmp/").is_some_and(|line| line.starts_with("drwxrwxrwt")));
    assert!(listed.lines().all(|line| line.split_whitespace().nth(1) == Some("0/0")));
    // An engine refuses an archive that names a path twice.
    let names: Vec<&str> =
        listed.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
    let plain = |name: &&str| name.trim_start_matches("./").trim_end_matches('/').to_owned();
    assert_eq!(names.iter().map(plain).collect::<BTreeSet<_>>().len(), names.len());
    let server: PathBuf = package.binary().strip_prefix("/").unwrap().to_owned();
    assert!(line(&format!(" {}", server.display())).is_some());
}
