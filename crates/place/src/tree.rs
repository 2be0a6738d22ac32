//! Directory trees: their content hash, their size, their removal.
//!
//! The content hash of a tree is BLAKE3 over its entries in byte order of their relative paths:
//! for each entry a kind byte (`d`, `f`, `l`), the path's length and bytes, and for a file its size
//! and the BLAKE3 of its contents, for a symbolic link its target. Owners, modes, times and holes
//! are not covered: two trees with one hash hold the same bytes under the same names.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::PlaceError;

/// What a tree holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeHash {
    /// Hexadecimal; see the file's head.
    pub hash: String,
    /// Sum of the files' lengths.
    pub bytes: u64,
}

/// What an entry of a tree is.
pub(crate) enum Kind {
    Directory,
    /// Its length.
    File(u64),
    /// Its target.
    Link(PathBuf),
}

/// Every entry below `dir`, sorted, with paths relative to it.
pub(crate) fn entries(dir: &Path) -> Result<Vec<(PathBuf, Kind)>, PlaceError> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let here = dir.join(&below);
        for entry in fs::read_dir(&here).map_err(PlaceError::io("list", &here))? {
            let entry = entry.map_err(PlaceError::io("list", &here))?;
            let path = below.join(entry.file_name());
            let full = entry.path();
            let meta = full.symlink_metadata().map_err(PlaceError::io("look at", &full))?;
            if meta.is_dir() {
                open.push(path.clone());
                found.push((path, Kind::Directory));
            } else if meta.is_symlink() {
                let target = fs::read_link(&full).map_err(PlaceError::io("read", &full))?;
                found.push((path, Kind::Link(target)));
            } else if meta.is_file() {
                found.push((path, Kind::File(meta.len())));
            }
            // Sockets, pipes and devices hold no bytes.
        }
    }
    found.sort_by(|a, b| a.0.as_os_str().as_bytes().cmp(b.0.as_os_str().as_bytes()));
    Ok(found)
}

/// The content hash of a tree, its files read by several threads.
pub(crate) fn hash_tree(dir: &Path) -> Result<TreeHash, PlaceError> {
    let entries = entries(dir)?;
    let next = AtomicUsize::new(0);
    let hashes: Mutex<Vec<Option<blake3::Hash>>> = Mutex::new(vec![None; entries.len()]);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let hash_some = || -> Result<(), PlaceError> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((path, kind)) = entries.get(index) else { return Ok(()) };
            if let Kind::File(_) = kind {
                let hash = hash_file(&dir.join(path))?;
                match hashes.lock() {
                    Ok(mut hashes) => hashes[index] = Some(hash),
                    Err(poisoned) => poisoned.into_inner()[index] = Some(hash),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(hash_some)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => Err(PlaceError::Other("a hashing thread ended early".into())),
        })
    })?;
    let hashes = hashes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut whole = blake3::Hasher::new();
    let mut bytes = 0;
    for ((path, kind), hash) in entries.iter().zip(hashes) {
        let name = path.as_os_str().as_bytes();
        whole.update(match kind {
            Kind::Directory => b"d",
            Kind::File(_) => b"f",
            Kind::Link(_) => b"l",
        });
        whole.update(&(name.len() as u64).to_le_bytes());
        whole.update(name);
        match kind {
            Kind::Directory => {}
            Kind::File(size) => {
                bytes += size;
                whole.update(&size.to_le_bytes());
                if let Some(hash) = hash {
                    whole.update(hash.as_bytes());
                }
            }
            Kind::Link(target) => {
                let target = target.as_os_str().as_bytes();
                whole.update(&(target.len() as u64).to_le_bytes());
                whole.update(target);
            }
        }
    }
    Ok(TreeHash { hash: whole.finalize().to_hex().to_string(), bytes })
}

/// BLAKE3 of a file's contents.
pub(crate) fn hash_file(path: &Path) -> Result<blake3::Hash, PlaceError> {
    let mut hasher = blake3::Hasher::new();
    read_through(path, |bytes| {
        hasher.update(bytes);
    })?;
    Ok(hasher.finalize())
}

/// SHA-256 of a file's contents, hexadecimal.
pub(crate) fn sha256_file(path: &Path) -> Result<String, PlaceError> {
    use sha2::Digest;
    let mut hasher = sha2::Sha256::new();
    read_through(path, |bytes| hasher.update(bytes))?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read_through(path: &Path, mut each: impl FnMut(&[u8])) -> Result<(), PlaceError> {
    let mut file = File::open(path).map_err(PlaceError::io("open", path))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => each(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(PlaceError::io("read", path)(error)),
        }
    }
}

/// Names and sizes of a tree's files, for trees that are too large to read each time. Directories
/// that are closed to others are left out, so that the hash does not depend on who takes it; one
/// that is not there lists as empty.
pub(crate) fn listing_hash(dir: &Path, into: &mut blake3::Hasher) {
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let here = dir.join(&below);
        let public = here.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o5 == 0o5);
        let Ok(listed) = fs::read_dir(&here) else { continue };
        for entry in listed.flatten().filter(|_| public) {
            let path = below.join(entry.file_name());
            match entry.path().symlink_metadata() {
                Ok(meta) if meta.is_dir() => open.push(path),
                Ok(meta) if meta.is_file() => files.push((path, meta.len())),
                _ => {}
            }
        }
    }
    files.sort();
    for (path, size) in files {
        into.update(path.as_os_str().as_bytes());
        into.update(&[0]);
        into.update(&size.to_le_bytes());
    }
}

/// Bytes that a tree occupies on disk; what vanishes meanwhile counts as nothing.
pub(crate) fn disk_usage(dir: &Path) -> u64 {
    let mut total = 0;
    let mut open = vec![dir.to_owned()];
    while let Some(here) = open.pop() {
        let Ok(listed) = fs::read_dir(&here) else { continue };
        for entry in listed.flatten() {
            let Ok(meta) = entry.path().symlink_metadata() else { continue };
            total += meta.blocks() * 512;
            if meta.is_dir() {
                open.push(entry.path());
            }
        }
    }
    total
}

/// Removes a tree, but never what is mounted in it.
///
/// # Errors
/// At a mount point below `dir`, before anything behind it is touched.
pub(crate) fn remove_tree(dir: &Path) -> Result<(), PlaceError> {
    let meta = match dir.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(PlaceError::io("look at", dir)(error)),
    };
    remove_on(dir, &meta, meta.dev())
}

fn remove_on(path: &Path, meta: &fs::Metadata, device: u64) -> Result<(), PlaceError> {
    // On overlayfs files have the device of the layer they lie in, directories that of the whole. A
    // file that something is mounted on cannot be removed anyway.
    if meta.is_dir() && meta.dev() != device {
        return Err(PlaceError::Other(format!("{} is a mount point", path.display())));
    }
    if !meta.is_dir() {
        return gone(fs::remove_file(path), path);
    }
    let listed = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(PlaceError::io("list", path))?,
    };
    for entry in listed {
        let below = entry.map_err(PlaceError::io("list", path))?.path();
        match below.symlink_metadata() {
            Ok(meta) => remove_on(&below, &meta, device)?,
            Err(error) => gone(Err(error), &below)?,
        }
    }
    gone(fs::remove_dir(path), path)
}

/// Somebody else having removed it is as good.
fn gone(result: io::Result<()>, path: &Path) -> Result<(), PlaceError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(PlaceError::io("remove", path)),
    }
}

/// Makes an unpacked package usable by the server user and harmless to everybody: readable, and
/// without set-user-id programs, which a cache that nobody updates must not offer.
pub(crate) fn open_to_readers(dir: &Path) -> Result<(), PlaceError> {
    let settle = |path: &Path| -> Result<(), PlaceError> {
        let meta = path.symlink_metadata().map_err(PlaceError::io("look at", path))?;
        let mode = meta.permissions().mode() & 0o7777;
        let wanted = if meta.is_dir() {
            (mode & 0o755) | 0o755
        } else if meta.is_file() {
            (mode & 0o755) | 0o644 | if mode & 0o111 != 0 { 0o111 } else { 0 }
        } else {
            return Ok(());
        };
        if mode == wanted {
            return Ok(());
        }
        fs::set_permissions(path, fs::Permissions::from_mode(wanted))
            .map_err(PlaceError::io("change the mode of", path))
    };
    settle(dir)?;
    entries(dir)?.iter().try_for_each(|(path, _)| settle(&dir.join(path)))
}

/// Gives a whole tree to a user.
pub(crate) fn own_tree(dir: &Path, user: &crate::user::ServerUser) -> Result<(), PlaceError> {
    user.own(dir)?;
    entries(dir)?.iter().try_for_each(|(path, _)| user.own(&dir.join(path)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_hash_sees_contents_names_and_links_but_no_holes() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        for tree in [&a, &b] {
            fs::create_dir_all(tree.join("sub")).unwrap();
            fs::write(tree.join("sub/x"), b"hello").unwrap();
            std::os::unix::fs::symlink("sub/x", tree.join("link")).unwrap();
        }
        let hash = |tree: &Path| hash_tree(tree).unwrap();
        assert_eq!(hash(&a), hash(&b));
        assert_eq!(hash(&a).bytes, 5);
        fs::write(b.join("sub/x"), b"hellO").unwrap();
        assert_ne!(hash(&a).hash, hash(&b).hash);
        fs::write(b.join("sub/x"), b"hello").unwrap();
        fs::rename(b.join("sub/x"), b.join("sub/y")).unwrap();
        assert_ne!(hash(&a).hash, hash(&b).hash);
        fs::rename(b.join("sub/y"), b.join("sub/x")).unwrap();
        assert_eq!(hash(&a).hash, hash(&b).hash);
        // The same zeros, once written and once a hole.
        fs::write(a.join("zeros"), vec![0; 1 << 16]).unwrap();
        File::create(b.join("zeros")).unwrap().set_len(1 << 16).unwrap();
        assert_eq!(hash(&a), hash(&b));
        fs::create_dir(b.join("empty")).unwrap();
        assert_ne!(hash(&a).hash, hash(&b).hash);
    }

    #[test]
    fn a_listing_sees_names_and_sizes_of_what_everybody_sees() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("share");
        let listing = || {
            let mut hasher = blake3::Hasher::new();
            listing_hash(&tree, &mut hasher);
            hasher.finalize()
        };
        let absent = listing();
        fs::create_dir_all(tree.join("closed")).unwrap();
        fs::set_permissions(&tree, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(tree.join("plugin.so"), b"1").unwrap();
        let one = listing();
        assert_ne!(one, absent);
        fs::write(tree.join("closed/secret"), b"1").unwrap();
        assert_eq!(listing(), one);
        fs::write(tree.join("plugin.so"), b"12").unwrap();
        assert_ne!(listing(), one);
    }

    #[test]
    fn removing_a_tree_leaves_what_a_link_points_to() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        fs::write(&kept, b"1").unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("deep/er")).unwrap();
        std::os::unix::fs::symlink(&kept, tree.join("deep/link")).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && kept.exists());
        remove_tree(&tree).unwrap();
    }

    #[test]
    fn an_unpacked_package_is_readable_and_loses_its_set_user_id() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("su");
        fs::write(&program, b"#!").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4700)).unwrap();
        open_to_readers(dir.path()).unwrap();
        assert_eq!(program.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
        assert_eq!(dir.path().metadata().unwrap().permissions().mode() & 0o7777, 0o755);
    }
}
