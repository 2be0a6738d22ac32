//! Which files of this machine belong into a package's root file system.
//!
//! Of a package only what a server reads: its program, messages and SQL (`share`), libraries and
//! plug-ins (`lib`); not its clients, its tests or its debug twin. Where the base directory is shared
//! with everything else that is installed (`/usr`), only the server's own directories of it.
//!
//! Every directory and symbolic link on the way to a file is taken as it is, so that `/lib` inside is
//! a link where it is one here, and a path resolves in there as it does outside.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::libraries;
use crate::command::{CommandLog, find_program};
use crate::error::PlaceError;
use crate::package::Package;

/// What a server reads below a base directory of its own.
const OWN: [&str; 3] = ["share", "lib", "lib64"];
/// What a server reads below a base directory that it shares.
const SHARED: [&str; 10] = [
    "share/mysql",
    "share/mysql-8.0",
    "share/mysql-8.4",
    "share/mariadb",
    "share/percona-server",
    "lib/mysql",
    "lib/mariadb",
    "lib64/mysql",
    "lib64/mariadb",
    "lib/plugin",
];
/// What the C library and OpenSSL read at run time, where it is here.
const SYSTEM: [&str; 5] = [
    "/etc/ld.so.cache",
    // Without it the server's `system_time_zone` would differ from the one outside.
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
    "/usr/lib/ssl/openssl.cnf",
    "/bin/sh",
];
/// Programs by which a person, `kubectl cp` or an init container can work in there.
const PROGRAMS: [&str; 8] = ["sh", "cat", "chmod", "chown", "cp", "mkdir", "sleep", "tar"];
/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

/// Absolute paths, none of which leads through a link.
#[derive(Debug, Default)]
pub(super) struct Members {
    paths: BTreeSet<PathBuf>,
}

/// What `package` needs to run.
pub(super) fn of_package(package: &Package, log: &CommandLog) -> Result<Members, PlaceError> {
    let mut members = Members::default();
    let base = &package.base_dir;
    let shared = base.ends_with("usr") || base == Path::new("/usr/local");
    let wanted: &[&str] = if shared { &SHARED } else { &OWN };
    for below in wanted.iter().map(|below| base.join(below)).filter(|below| below.is_dir()) {
        members.add_tree(&below)?;
    }
    // Behind a dynamic loader the program is not the first word.
    for word in
        package.mysqld.iter().map(Path::new).filter(|word| word.is_absolute() && word.is_file())
    {
        members.add(word)?;
    }
    let plugins: Vec<PathBuf> =
        members.paths().filter(|path| plugin(path)).map(Path::to_owned).collect();
    for library in libraries::of(&package.mysqld, &package.env, &plugins, log)? {
        members.add(&library)?;
    }
    for path in SYSTEM.iter().map(Path::new).filter(|path| path.exists()) {
        members.add(path)?;
    }
    for program in PROGRAMS.iter().filter_map(|name| find_program(name)) {
        members.add(&program)?;
        members.add_libraries(&program, log)?;
    }
    Ok(members)
}

/// A shared library that a server opens when it is told to.
fn plugin(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("so"))
        && path.parent().is_some_and(|above| above.ends_with("plugin"))
}

impl Members {
    /// In byte order, each directory before what it holds.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path)
    }

    /// Adds the libraries of a program of this machine.
    pub fn add_libraries(&mut self, program: &Path, log: &CommandLog) -> Result<(), PlaceError> {
        for library in libraries::of(&[program.into()], &[], &[], log)? {
            self.add(&library)?;
        }
        Ok(())
    }

    /// Adds what stands at an absolute path, and every directory and link on the way to it. Tells
    /// where it really is.
    pub fn add(&mut self, path: &Path) -> Result<PathBuf, PlaceError> {
        let mut real = PathBuf::from("/");
        let mut pending: Vec<OsString> = reversed(path);
        let mut links = 0;
        while let Some(part) = pending.pop() {
            if part == ".." {
                real.pop();
                continue;
            }
            let here = real.join(&part);
            let meta = here.symlink_metadata().map_err(PlaceError::io("find", &here))?;
            self.paths.insert(here.clone());
            if !meta.is_symlink() {
                real = here;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                let looped = rustix::io::Errno::LOOP.into();
                return Err(PlaceError::io("follow", path)(looped));
            }
            let target = fs::read_link(&here).map_err(PlaceError::io("read", &here))?;
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            pending.extend(reversed(&target));
        }
        Ok(real)
    }

    /// Adds a directory and all below it that everybody may read; what is closed to others is
    /// closed to the server too.
    fn add_tree(&mut self, dir: &Path) -> Result<(), PlaceError> {
        let mut open = vec![self.add(dir)?];
        while let Some(here) = open.pop() {
            for entry in fs::read_dir(&here).map_err(PlaceError::io("list", &here))? {
                let path = entry.map_err(PlaceError::io("list", &here))?.path();
                let meta = path.symlink_metadata().map_err(PlaceError::io("look at", &path))?;
                let mode = meta.permissions().mode();
                if meta.is_symlink() {
                    // One that leads nowhere is nothing that a server reads.
                    if path.exists() {
                        self.add(&path)?;
                    }
                } else if meta.is_dir() && mode & 0o5 == 0o5 {
                    self.paths.insert(path.clone());
                    open.push(path);
                } else if meta.is_file() && mode & 0o4 == 0o4 {
                    self.paths.insert(path);
                }
            }
        }
        Ok(())
    }
}

/// A path's parts, the last first, without its root.
fn reversed(path: &Path) -> Vec<OsString> {
    use std::path::Component::{Normal, ParentDir};
    path.components()
        .filter(|part| matches!(part, Normal(_) | ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .rev()
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_link_on_the_way_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("usr/lib")).unwrap();
        fs::write(top.join("usr/lib/libx.so.1.2"), b"x").unwrap();
        std::os::unix::fs::symlink("usr/lib", top.join("lib")).unwrap();
        std::os::unix::fs::symlink("libx.so.1.2", top.join("usr/lib/libx.so.1")).unwrap();
        let mut members = Members::default();
        let real = members.add(&top.join("usr/../lib/libx.so.1")).unwrap();
        assert_eq!(real, top.join("usr/lib/libx.so.1.2"));
        let below: Vec<_> =
            members.paths().filter_map(|path| path.strip_prefix(&top).ok()).collect();
        let wanted = ["", "lib", "usr", "usr/lib", "usr/lib/libx.so.1", "usr/lib/libx.so.1.2"];
        assert_eq!(below, wanted.map(Path::new));

        std::os::unix::fs::symlink("circle", top.join("circle")).unwrap();
        assert!(members.add(&top.join("circle")).is_err());
    }

    #[test]
    fn a_tree_is_taken_without_what_is_closed_and_what_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let share = top.join("share");
        for name in ["english", "closed"] {
            fs::create_dir_all(share.join(name)).unwrap();
            fs::write(share.join(name).join("errmsg.sys"), b"x").unwrap();
        }
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&share.join("english"), 0o755);
        mode(&share.join("english/errmsg.sys"), 0o644);
        mode(&share.join("closed"), 0o700);
        std::os::unix::fs::symlink("nowhere", share.join("dangling")).unwrap();
        let mut members = Members::default();
        members.add_tree(&share).unwrap();
        let below: Vec<_> =
            members.paths().filter_map(|path| path.strip_prefix(&share).ok()).collect();
        assert_eq!(below, ["", "english", "english/errmsg.sys"].map(Path::new));
    }
}
