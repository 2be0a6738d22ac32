//! What a guest boots: a base system made once by debootstrap with Debian's cloud kernel, and a disk
//! with one server package, its libraries and the observer, each at the path that it has here.
//!
//! Both are kept in the cache's `guests/` under a hash of what they were made of, staged and
//! renamed, so that a killed build leaves nothing. No network, no SSH and no cloud-init are needed:
//! the kernel is booted directly, and what a guest is to do comes on a disk of its own.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::image::Image;
use super::libraries::{libraries, server_files};
use crate::cache::{Cache, make_directory};
use crate::command::{CommandLog, Invocation};
use crate::error::PlaceError;
use crate::package::{Package, debian};
use crate::tools::Tools;
use crate::tree;
use crate::user::ServerUser;

/// Layout of what is kept; part of every name.
const FORMAT: &str = "1";
/// Base systems, server disks and dataset images that are kept of each, those in use apart: a new
/// build of ceteris or of a server makes another disk.
const KEPT_OF_A_KIND: usize = 8;
/// First process of the base system.
const BOOT: &str = include_str!("boot.sh");
/// What it hands over to.
const INIT: &str = include_str!("init.sh");
/// Packages of the base system beside Debian's essential ones.
const INCLUDED: &str = "linux-image-cloud-amd64,iproute2";
/// What no guest reads.
const UNREAD: [&str; 7] = [
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "dev",
];

/// A finished directory of `guests/`, which nobody removes while this value lives.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub dir: PathBuf,
    _lock: Arc<File>,
}

impl Kept {
    /// The directory `name`, from the cache or made now by `make`, which fills a staged one.
    pub fn find_or_make(
        cache: &Cache,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), PlaceError>,
    ) -> Result<Kept, PlaceError> {
        let dir = cache.room("guests").join(name);
        let _claim = cache.lock("guests", name, || ())?;
        if let Some(found) = Kept::find(&dir)? {
            return Ok(found);
        }
        let staging = cache.stage("guests")?;
        make(staging.path())?;
        let lock = staging.path().join("lock");
        fs::write(&lock, b"").map_err(PlaceError::io("write", &lock))?;
        staging.finish(&dir)?;
        trim(cache, &dir)?;
        Kept::find(&dir)?.ok_or_else(|| PlaceError::Other(format!("{} vanished", dir.display())))
    }

    fn find(dir: &Path) -> Result<Option<Kept>, PlaceError> {
        let Ok(lock) = File::options().append(true).open(dir.join("lock")) else { return Ok(None) };
        lock.lock_shared().map_err(PlaceError::io("lock", dir))?;
        // Only the order of removal depends on it.
        let _ = lock.set_modified(std::time::SystemTime::now());
        Ok(Some(Kept { dir: dir.to_owned(), _lock: Arc::new(lock) }))
    }

    /// For fingerprints.
    pub fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Removes what was used the longest ago of the same kind as `made`, beyond [`KEPT_OF_A_KIND`] and
/// unless somebody uses it.
fn trim(cache: &Cache, made: &Path) -> Result<(), PlaceError> {
    let room = cache.room("guests");
    let kind = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.split_once('-').map(|(kind, _)| kind.to_owned())
    };
    let mut held: Vec<_> = fs::read_dir(&room)
        .map_err(PlaceError::io("list", &room))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && path != made && kind(path) == kind(made))
        .map(|path| (path.join("lock").metadata().and_then(|meta| meta.modified()).ok(), path))
        .collect();
    held.sort();
    let beyond = (held.len() + 1).saturating_sub(KEPT_OF_A_KIND);
    for (_, path) in held.into_iter().take(beyond) {
        cache.remove_unused("guests", &path)?;
    }
    Ok(())
}

/// The base system's files in its directory.
pub(super) const KERNEL: &str = "kernel";
pub(super) const INITRD: &str = "initrd";
pub(super) const ROOT: &str = "root.img";
/// The server disk's file in its directory.
pub(super) const SERVER: &str = "server.img";

/// Where the base system is or would be.
pub(super) fn base_dir(cache: &Cache) -> PathBuf {
    cache.room("guests").join(base_name())
}

fn base_name() -> String {
    let suite = suite();
    let recipe = short_hash(&[FORMAT, &suite, INCLUDED, BOOT]);
    format!("base-{suite}-{recipe}")
}

/// Why the base system can neither be found nor made here, if so.
pub(super) fn unusable(cache: &Cache) -> Option<PlaceError> {
    if base_dir(cache).join("lock").exists() {
        return None;
    }
    debian::unusable("the guest's base system")
}

/// The base system, from the cache or made now: about a minute and 100 MB of Debian's packages.
pub(super) fn base(tools: Tools) -> Result<Kept, PlaceError> {
    Kept::find_or_make(tools.cache, &base_name(), |dir| {
        const WHAT: &str = "the guest's base system";
        if let Some(error) = debian::unusable(WHAT) {
            return Err(error);
        }
        let root = dir.join("root");
        let mirror = debian::mirror(WHAT, tools.log)?;
        debian::bootstrap(&root, &suite(), INCLUDED, &mirror, tools.log, || ())?;
        for (link, name) in [("vmlinuz", KERNEL), ("initrd.img", INITRD)] {
            let file = root.join(link).canonicalize().map_err(PlaceError::io("find", &root))?;
            fs::rename(&file, dir.join(name)).map_err(PlaceError::io("move", &file))?;
            open_to_all(&dir.join(name))?;
        }
        for below in UNREAD {
            tree::remove_tree(&root.join(below))?;
        }
        make_directory(&root.join("dev"), 0o755)?;
        make_directory(&root.join("ceteris"), 0o755)?;
        write_script(&root.join("ceteris/boot"), BOOT)?;
        let image = dir.join(ROOT);
        Image { label: "ceteris-root", owner: (0, 0), free_bytes: 0, written: false }
            .make(&root, &image, tools)?;
        open_to_all(&image)?;
        tree::remove_tree(&root)
    })
}

/// The disk with `package`, the observer `program` and `further` files, from the cache or made now.
pub(super) fn server_disk(
    package: &Package,
    program: &Path,
    further: &[PathBuf],
    user: &ServerUser,
    tools: Tools,
) -> Result<Kept, PlaceError> {
    let mut files = server_files(package, tools.log)?;
    let own = Package { env: Vec::new(), ..package.clone() };
    let mut programs = vec![program.to_owned()];
    programs.extend(further.iter().filter(|path| path.is_file()).cloned());
    files.extend(libraries(&programs, &own, true, tools.log)?);
    files.extend(further.iter().cloned());
    let name = server_name(package, &files, program, tools.cache)?;
    Kept::find_or_make(tools.cache, &name, |dir| {
        let root = dir.join("root");
        for below in ["proc", "sys", "dev", "tmp", "etc", "ceteris"] {
            make_directory(&root.join(below), 0o755)?;
        }
        link_as_here(&root)?;
        let instances = tools.cache.room("instances");
        make_directory(&root.join(instances.strip_prefix("/").unwrap_or(&instances)), 0o755)?;
        let passwd = format!(
            "root:x:0:0::/:/bin/sh\n{}:x:{}:{}::/:/bin/false\n",
            user.name, user.uid, user.gid
        );
        let path = root.join("etc/passwd");
        fs::write(&path, passwd).map_err(PlaceError::io("write", &path))?;
        // Libraries go by links here; the guest gets the files under the links' names.
        let copy = |option: &str| {
            Invocation::new("cp").args(["--recursive", "--parents", "--reflink=auto", option])
        };
        let (trees, single): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.is_dir());
        tools.log.run(copy("--dereference").args(single).arg(&root), &root)?;
        if !trees.is_empty() {
            tools.log.run(copy("--no-dereference").args(trees).arg(&root), &root)?;
        }
        let target = root.join("ceteris/ceteris");
        fs::copy(program, &target).map_err(PlaceError::io("copy to", &target))?;
        write_script(&root.join("ceteris/init"), INIT)?;
        let image = dir.join(SERVER);
        Image { label: "ceteris-server", owner: (0, 0), free_bytes: 0, written: false }
            .make(&root, &image, tools)?;
        open_to_all(&image)?;
        tree::remove_tree(&root)
    })
}

/// Where `/lib` is a link to `/usr/lib` here it is one there, so that this root can lie over another.
fn link_as_here(root: &Path) -> Result<(), PlaceError> {
    for name in ["bin", "sbin", "lib", "lib64"] {
        let Ok(target) = fs::read_link(Path::new("/").join(name)) else { continue };
        let target = target.strip_prefix("/").unwrap_or(&target).to_owned();
        make_directory(&root.join(&target), 0o755)?;
        let link = root.join(name);
        std::os::unix::fs::symlink(&target, &link).map_err(PlaceError::io("make", &link))?;
    }
    Ok(())
}

/// Names the server disk by what goes into it: the package by its own hash, what comes from the rest
/// of the system by path, size and time.
fn server_name(
    package: &Package,
    files: &std::collections::BTreeSet<PathBuf>,
    observer: &Path,
    cache: &Cache,
) -> Result<String, PlaceError> {
    let mut words = vec![FORMAT.to_owned(), INIT.to_owned(), package.hash.clone()];
    words.push(cache.room("instances").display().to_string());
    for file in files.iter().map(PathBuf::as_path).chain([observer]) {
        let meta = file.metadata().map_err(PlaceError::io("look at", file))?;
        if file != observer {
            words.push(file.display().to_string());
        }
        if meta.is_file() {
            words.push(format!("{} {} {}", meta.len(), meta.mtime(), meta.mtime_nsec()));
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(format!("server-{}", short_hash(&words)))
}

/// This machine's own suite where it is Debian's, so that guest and host are alike; else the current
/// stable one.
fn suite() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    suite_of(&text).unwrap_or_else(|| "stable".to_owned())
}

fn suite_of(os_release: &str) -> Option<String> {
    let field = |key: &str| {
        let value =
            os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches('"').to_owned())
    };
    (field("ID")? == "debian").then(|| field("VERSION_CODENAME"))?
}

fn short_hash(words: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

fn write_script(path: &Path, text: &str) -> Result<(), PlaceError> {
    fs::write(path, text).map_err(PlaceError::io("write", path))?;
    set_mode(path, 0o755)
}

/// QEMU runs as another user.
fn open_to_all(path: &Path) -> Result<(), PlaceError> {
    set_mode(path, 0o644)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), PlaceError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(PlaceError::io("change the mode of", path))
}

/// What `qemu-system-x86_64 --version` says its version is.
pub(super) fn qemu_version(log: &CommandLog) -> Result<String, PlaceError> {
    let ask = Invocation::new("qemu-system-x86_64").arg("--version");
    let said = log.run(ask, Path::new("/"))?.stdout;
    let version = said.split_once("version ").map_or(said.as_str(), |(_, rest)| rest);
    Ok(version.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debian_machine_gets_a_guest_of_its_own_suite() {
        let debian = "PRETTY_NAME=\"x\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(suite_of(debian).as_deref(), Some("bookworm"));
        assert_eq!(suite_of("ID=ubuntu\nVERSION_CODENAME=noble\n"), None);
        assert_eq!(suite_of(""), None);
    }

    #[test]
    fn words_are_told_apart_from_their_concatenation() {
        assert_ne!(short_hash(&["ab", "c"]), short_hash(&["a", "bc"]));
    }
}
