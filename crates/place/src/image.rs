//! A root file system for a package, made of this machine's own files and without a registry.
//!
//! Containers and Pods start from it. Every path inside is the path outside: the package's command,
//! environment and `--basedir` hold in there as they are, and a server reports the same directories
//! wherever it is placed. `members` says which files those are, `libraries` what the dynamic loader
//! would open for them; added are the few files that a root needs (`/etc/passwd` with the server's
//! user, `/tmp`), and programs that the caller wants to run in there, such as ceteris itself.
//!
//! Kept in the cache as `images/<hash>/root.tar` under the hash of its contents, so that one package
//! on one machine is one image however often it is asked for.

mod libraries;
mod members;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use crate::cache::{Cache, make_directory};
use crate::command::Invocation;
use crate::error::PlaceError;
use crate::package::Package;
use crate::tools::Tools;
use crate::tree;
use crate::user::ServerUser;
use members::Members;

/// Layout of an image; part of every hash.
const FORMAT: &str = "2";
/// Tars that the cache keeps: each holds some 100 MB, and making one again takes seconds.
const KEPT: usize = 6;

/// A root file system in the cache. While a value lives, its file is not removed.
#[derive(Clone, Debug)]
pub struct RootTar {
    /// The tar file, uncompressed.
    pub path: PathBuf,
    /// Of its contents, hexadecimal.
    pub hash: String,
    _lock: Arc<File>,
}

/// A program of this machine that is wanted inside as well, with its libraries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guest {
    /// Where it is.
    pub program: PathBuf,
    /// Its absolute path inside.
    pub at: PathBuf,
}

impl Guest {
    /// The running program as `/ceteris`, so that a worker or an observer can run in there.
    ///
    /// # Errors
    /// When the system does not say which program runs.
    pub fn ceteris() -> Result<Guest, PlaceError> {
        let link = Path::new("/proc/self/exe");
        let program = std::env::current_exe().map_err(PlaceError::io("read", link))?;
        Ok(Guest { program, at: PathBuf::from("/ceteris") })
    }
}

/// The root file system of `package` with `guests`, from the cache or made now.
///
/// # Errors
/// A library that the server lacks, a program that cannot be read, a full disk.
pub fn root_tar(package: &Package, guests: &[Guest], tools: Tools) -> Result<RootTar, PlaceError> {
    // Reading some hundred megabytes to hash them is done once, not before each run: neither a
    // package nor this program changes under a study.
    type Known = Mutex<BTreeMap<(PathBuf, String, Vec<Guest>), RootTar>>;
    static KNOWN: Known = Mutex::new(BTreeMap::new());
    let key = (tools.cache.root().to_owned(), package.hash.clone(), guests.to_vec());
    let mut known = match KNOWN.lock() {
        Ok(known) => known,
        Err(poisoned) => poisoned.into_inner(),
    };
    if let Some(found) = known.get(&key).filter(|found| found.path.is_file()) {
        return Ok(found.clone());
    }
    let made = make(package, guests, tools)?;
    known.insert(key, made.clone());
    Ok(made)
}

fn make(package: &Package, guests: &[Guest], tools: Tools) -> Result<RootTar, PlaceError> {
    let user = ServerUser::find()?;
    let mut members = members::of_package(package, tools.log)?;
    for guest in guests {
        members.add_libraries(&guest.program, tools.log)?;
    }
    let files = generated(&user);
    let hash = hash(&members, guests, &files)?;
    let target = tools.cache.room("images").join(&hash);
    let _claim = tools.cache.lock("images", &hash[..16], || ())?;
    if !target.join("root.tar").is_file() {
        let staging = tools.cache.stage("images")?;
        pack(staging.path(), &members, guests, &files, tools)?;
        staging.finish(&target)?;
        trim(tools.cache, &hash)?;
    }
    let lock_path = target.join("lock");
    let lock = File::options()
        .append(true)
        .open(&lock_path)
        .map_err(PlaceError::io("open", &lock_path))?;
    lock.lock_shared().map_err(PlaceError::io("lock", &lock_path))?;
    // Only the order of removal depends on it.
    let _ = lock.set_modified(SystemTime::now());
    Ok(RootTar { path: target.join("root.tar"), hash, _lock: Arc::new(lock) })
}

/// The files that no package brings, by their path inside.
fn generated(user: &ServerUser) -> Vec<(&'static str, String)> {
    let ServerUser { name, uid, gid, .. } = user;
    vec![
        (
            "etc/passwd",
            format!(
                "root:x:0:0:root:/root:/bin/sh\n{name}:x:{uid}:{gid}::/nonexistent:/bin/false\n"
            ),
        ),
        ("etc/group", format!("root:x:0:\n{name}:x:{gid}:\n")),
        ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
    ]
}

/// BLAKE3 over everything inside: paths, modes, contents and targets of links.
fn hash(
    members: &Members,
    guests: &[Guest],
    files: &[(&str, String)],
) -> Result<String, PlaceError> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |path: &OsStr, what: &[u8]| {
        for part in [path.as_bytes(), what] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    };
    add(OsStr::new("format"), FORMAT.as_bytes());
    for path in members.paths() {
        let meta = path.symlink_metadata().map_err(PlaceError::io("look at", path))?;
        if meta.is_symlink() {
            let target = fs::read_link(path).map_err(PlaceError::io("read", path))?;
            add(path.as_os_str(), target.as_os_str().as_bytes());
            continue;
        }
        add(path.as_os_str(), &meta.permissions().mode().to_le_bytes());
        if meta.is_file() {
            add(path.as_os_str(), tree::hash_file(path)?.as_bytes());
        }
    }
    for guest in guests {
        add(guest.at.as_os_str(), tree::hash_file(&guest.program)?.as_bytes());
    }
    for (path, text) in files {
        add(OsStr::new(path), text.as_bytes());
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Writes `dir/root.tar`: what is made for it, then this machine's files from a list.
fn pack(
    dir: &Path,
    members: &Members,
    guests: &[Guest],
    files: &[(&str, String)],
    tools: Tools,
) -> Result<(), PlaceError> {
    let root = dir.join("root");
    make_directory(&root, 0o755)?;
    let directories = ["dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp"];
    for below in directories {
        let mode = if below.ends_with("tmp") { 0o1777 } else { 0o755 };
        make_directory(&root.join(below), mode)?;
    }
    let place = |at: &Path, mode: u32, write: &dyn Fn(&Path) -> std::io::Result<()>| {
        let path = root.join(at.strip_prefix("/").unwrap_or(at));
        if let Some(above) = path.parent() {
            make_directory(above, 0o755)?;
        }
        write(&path).map_err(PlaceError::io("write", &path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .map_err(PlaceError::io("change the mode of", &path))
    };
    for (at, text) in files {
        place(Path::new(at), 0o644, &|path| fs::write(path, text))?;
    }
    for Guest { program, at } in guests {
        place(at, 0o755, &|path| fs::copy(program, path).map(drop))?;
    }
    let list = dir.join("members");
    // Docker refuses an archive that names a path twice; ours go before the machine's.
    let names: Vec<u8> = members
        .paths()
        .filter_map(|path| path.strip_prefix("/").ok())
        .filter(|path| root.join(path).symlink_metadata().is_err())
        .flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat())
        .collect();
    fs::write(&list, names).map_err(PlaceError::io("write", &list))?;
    let tar = Invocation::new("tar")
        .args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"])
        .path_option("file", &dir.join("root.tar"))
        .arg("--sort=name")
        .path_option("directory", &root)
        .arg(".")
        .args(["--directory=/", "--no-recursion", "--null"])
        .path_option("files-from", &list);
    tools.log.run(tar, dir)?;
    tree::remove_tree(&root)?;
    fs::remove_file(&list).map_err(PlaceError::io("remove", &list))?;
    let lock = dir.join("lock");
    fs::write(&lock, b"").map_err(PlaceError::io("write", &lock))
}

/// Removes the tars that were not used for the longest time, but none that somebody uses.
fn trim(cache: &Cache, keep: &str) -> Result<(), PlaceError> {
    let mut held: Vec<(SystemTime, PathBuf)> = cache
        .finished("images")?
        .into_iter()
        .filter(|(name, _)| name != keep)
        .map(|(_, path)| {
            let used = path.join("lock").metadata().and_then(|meta| meta.modified());
            (used.unwrap_or(SystemTime::UNIX_EPOCH), path)
        })
        .collect();
    held.sort();
    let surplus = (held.len() + 1).saturating_sub(KEPT);
    for (_, path) in held.into_iter().take(surplus) {
        cache.remove_unused("images", &path)?;
    }
    Ok(())
}
