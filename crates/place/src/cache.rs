//! Where packages, datasets and instances live.
//!
//! `packages/<name or hash>/` server files, `datasets/<hash>/` snapshots, `images/<hash>/` root file
//! systems for containers, `guests/<name>/` disks of guests, `instances/<short id>/` what runs now,
//! `journal/<id>/` what must be undone. Everything in the first four appears by rename of a finished
//! `.partial-*` directory, which its maker keeps locked: what a dead maker left is removed when the
//! cache is next opened, what a living one makes is left alone.
//!
//! The cache is bounded: see [`Cache::trim`].

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use crate::error::PlaceError;
use crate::tree;

/// Snapshots kept without regard to their size; see [`Cache::trim`].
const DATASETS_BYTES_FREE: u64 = 10 << 30;

/// The cache directory and its rooms: `packages/`, `datasets/`, `images/`, `guests/`, `instances/`,
/// `journal/`.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// One thing that the cache holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheItem {
    /// `packages`, `datasets`, `images`, `guests` or `instances`.
    pub room: String,
    /// Directory name within the room.
    pub name: String,
    /// Bytes on disk.
    pub bytes: u64,
}

/// An advisory lock on a file; released when dropped and when its process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// A directory that is being made; removed unless [finished](Staging::finish).
pub(crate) struct Staging {
    path: PathBuf,
    done: bool,
    _lock: File,
}

impl Cache {
    /// `$CETERIS_CACHE`, else `/var/cache/ceteris` for root (an unprivileged server must be able to
    /// reach its directory, which `/root` does not allow), else `$XDG_CACHE_HOME/ceteris`.
    ///
    /// # Errors
    /// As [`Cache::at`].
    pub fn open() -> Result<Cache, PlaceError> {
        Cache::at(&default_root()?)
    }

    /// The cache where [`Cache::open`] finds it, for looking only: nothing is made or removed.
    ///
    /// # Errors
    /// When there is no place for one.
    pub fn look() -> Result<Cache, PlaceError> {
        Ok(Cache { root: default_root()? })
    }

    /// A cache at a given place, made if it is not there; removes what dead processes left half
    /// made.
    ///
    /// # Errors
    /// When the place cannot be written, or its rooms lie on different file systems.
    pub fn at(root: &Path) -> Result<Cache, PlaceError> {
        make_directory(root, 0o755)?;
        let root = root.canonicalize().map_err(PlaceError::io("find", root))?;
        let cache = Cache { root };
        for (room, mode) in [
            ("packages", 0o755),
            ("datasets", 0o700),
            ("images", 0o755),
            ("guests", 0o755),
            ("instances", 0o755),
            ("journal", 0o700),
        ] {
            make_directory(&cache.root.join(room), mode)?;
        }
        let device = |room: &str| {
            let path = cache.root.join(room);
            path.metadata().map(|meta| meta.dev()).map_err(PlaceError::io("look at", &path))
        };
        if device("instances")? != device("datasets")? {
            return Err(PlaceError::Other(format!(
                "{0}/instances and {0}/datasets are on different file systems, so that nothing \
                 can be cloned between them",
                cache.root.display()
            )));
        }
        cache.sweep()?;
        Ok(cache)
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn room(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Everything in the cache with its size, by room and name.
    ///
    /// # Errors
    /// When a room cannot be listed.
    pub fn usage(&self) -> Result<Vec<CacheItem>, PlaceError> {
        let mut items = Vec::new();
        for room in ["packages", "datasets", "images", "guests", "instances"] {
            for (name, path) in self.finished(room)? {
                let bytes = tree::disk_usage(&path);
                items.push(CacheItem { room: room.to_owned(), name, bytes });
            }
        }
        items.sort_by(|a, b| (&a.room, &a.name).cmp(&(&b.room, &b.name)));
        Ok(items)
    }

    /// Keeps the cache bounded: while the snapshots together take more than 10 GiB and more than
    /// half of what they and the free space together are, the one that was not used for the longest
    /// time is removed. One that a living process uses, and `keep`, are never removed. Packages are
    /// few and dear to fetch, and are never removed by themselves. Returns what was removed.
    ///
    /// # Errors
    /// When the datasets cannot be listed or removed.
    pub(crate) fn trim(&self, keep: &str) -> Result<Vec<String>, PlaceError> {
        let room = self.room("datasets");
        let mut held = Vec::new();
        for (name, path) in self.finished("datasets")? {
            let used = path.join("lock").metadata().and_then(|meta| meta.modified());
            let bytes = tree::disk_usage(&path);
            held.push((used.unwrap_or(SystemTime::UNIX_EPOCH), bytes, name, path));
        }
        held.sort();
        let mut total: u64 = held.iter().map(|dataset| dataset.1).sum();
        let free = rustix::fs::statvfs(&room).map_or(u64::MAX / 2, |fs| fs.f_bavail * fs.f_frsize);
        let limit = DATASETS_BYTES_FREE.max((total.saturating_add(free)) / 2);
        let mut removed = Vec::new();
        for (_, bytes, name, path) in held {
            if total <= limit {
                break;
            }
            if name != keep && self.remove_unused("datasets", &path)? {
                total -= bytes;
                removed.push(name);
            }
        }
        Ok(removed)
    }

    /// Removes a dataset, an image, or something else with a lock file, that nobody uses; tells whether
    /// it did.
    pub(crate) fn remove_unused(&self, room: &str, path: &Path) -> Result<bool, PlaceError> {
        let lock_path = path.join("lock");
        let lock = match File::open(&lock_path) {
            Ok(lock) => lock,
            // Without a lock file it is not a finished one.
            Err(_) => return tree::remove_tree(path).map(|()| true),
        };
        if lock.try_lock().is_err() {
            return Ok(false);
        }
        // Renamed first, so that it is gone as a whole even if we die while removing.
        let staging = self.stage(room)?;
        let aside = staging.path().join("removed");
        fs::rename(path, &aside).map_err(PlaceError::io("rename", path))?;
        Ok(true)
    }

    /// Names and paths of the finished directories of a room.
    pub(crate) fn finished(&self, room: &str) -> Result<Vec<(String, PathBuf)>, PlaceError> {
        let room = self.room(room);
        let listed = fs::read_dir(&room).map_err(PlaceError::io("list", &room))?;
        Ok(listed
            .flatten()
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
            .filter(|(name, path)| !name.starts_with('.') && path.is_dir())
            .collect())
    }

    /// A directory in the making in one of the rooms.
    pub(crate) fn stage(&self, room: &str) -> Result<Staging, PlaceError> {
        Staging::new(&self.room(room), &self.root)
    }

    /// Waits for the lock of this name in a room; `waiting` is called if somebody else holds it.
    pub(crate) fn lock(
        &self,
        room: &str,
        name: &str,
        waiting: impl FnOnce(),
    ) -> Result<Lock, PlaceError> {
        Lock::wait(&self.room(room).join(format!(".lock-{name}")), waiting)
    }

    /// Removes what dead processes left half made.
    fn sweep(&self) -> Result<(), PlaceError> {
        let _making = Lock::wait(&self.root.join(".lock"), || ())?;
        for room in ["packages", "datasets", "images", "guests"] {
            let room = self.room(room);
            for entry in fs::read_dir(&room).map_err(PlaceError::io("list", &room))?.flatten() {
                if !entry.file_name().to_string_lossy().starts_with(".partial-") {
                    continue;
                }
                let path = entry.path();
                let Ok(directory) = File::open(&path) else { continue };
                if directory.try_lock().is_ok() {
                    tree::remove_tree(&path)?;
                }
            }
        }
        Ok(())
    }
}

impl Lock {
    /// Waits for the lock on `path`; `waiting` is called if somebody else holds it.
    pub fn wait(path: &Path, waiting: impl FnOnce()) -> Result<Lock, PlaceError> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(PlaceError::io("open", path))?;
        if file.try_lock().is_err() {
            waiting();
            file.lock().map_err(PlaceError::io("lock", path))?;
        }
        Ok(Lock { _file: file })
    }
}

impl Staging {
    fn new(room: &Path, root: &Path) -> Result<Staging, PlaceError> {
        // Between making the directory and locking it, a sweep must not see it.
        let _making = Lock::wait(&root.join(".lock"), || ())?;
        let path = room.join(format!(".partial-{}", short_id()?));
        fs::create_dir(&path).map_err(PlaceError::io("make", &path))?;
        let lock = File::open(&path).map_err(PlaceError::io("open", &path))?;
        lock.try_lock().map_err(|error| PlaceError::io("lock", &path)(error.into()))?;
        Ok(Staging { path, done: false, _lock: lock })
    }

    /// Where it is being made.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the finished directory in its place, in one step and durably. What stood there before
    /// is replaced, unless somebody holds a lock on its `lock` file: then that one stays, this one
    /// goes, and the answer is false.
    pub fn finish(mut self, target: &Path) -> Result<bool, PlaceError> {
        let directory = File::open(&self.path).map_err(PlaceError::io("open", &self.path))?;
        rustix::fs::syncfs(&directory)
            .map_err(|error| PlaceError::io("write back", &self.path)(error.into()))?;
        // Held until the new one is in place: who waits for it then finds the old one gone.
        let old = File::open(target.join("lock")).ok();
        if old.as_ref().is_some_and(|old| old.try_lock().is_err()) {
            return Ok(false);
        }
        if target.symlink_metadata().is_ok() {
            tree::remove_tree(target)?;
        }
        fs::rename(&self.path, target).map_err(PlaceError::io("rename to", target))?;
        self.done = true;
        if let Some(room) = target.parent() {
            File::open(room)
                .and_then(|room| room.sync_all())
                .map_err(PlaceError::io("write back", room))?;
        }
        Ok(true)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.done {
            // What cannot be removed now is removed when the cache is next opened.
            let _ = tree::remove_tree(&self.path);
        }
    }
}

/// Makes a directory with this mode, whatever the umask; one that stands keeps its own mode.
pub(crate) fn make_directory(path: &Path, mode: u32) -> Result<(), PlaceError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_directory(above, 0o755)?;
    }
    match fs::create_dir(path) {
        // Another process was quicker.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        made => made.map_err(PlaceError::io("make", path))?,
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(PlaceError::io("change the mode of", path))
}

/// Random bytes of the kernel, hexadecimal.
pub(crate) fn random_hex(bytes: usize) -> Result<String, PlaceError> {
    use std::io::Read;
    let source = Path::new("/dev/urandom");
    let mut buffer = vec![0; bytes];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut buffer))
        .map_err(PlaceError::io("read", source))?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Eight characters: long enough to be unique, short enough for a socket path.
pub(crate) fn short_id() -> Result<String, PlaceError> {
    random_hex(4)
}

/// Where the cache is unless a caller says otherwise.
fn default_root() -> Result<PathBuf, PlaceError> {
    let given =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(root) = std::env::var_os("CETERIS_CACHE").filter(|root| !root.is_empty()) {
        return Ok(root.into());
    }
    if rustix::process::geteuid().is_root() {
        return Ok("/var/cache/ceteris".into());
    }
    let root = given("XDG_CACHE_HOME")
        .or_else(|| given("HOME").map(|home| home.join(".cache")))
        .ok_or_else(|| {
            PlaceError::Other("no place for a cache: neither CETERIS_CACHE nor HOME is set".into())
        })?;
    Ok(root.join("ceteris"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn partial_directories_of_the_dead_are_removed_and_those_of_the_living_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let dead = cache.room("packages").join(".partial-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("half"), b"x").unwrap();
        let living = cache.stage("datasets").unwrap();
        let again = Cache::at(dir.path()).unwrap();
        assert!(!dead.exists());
        assert!(living.path().exists());
        fs::write(living.path().join("whole"), b"x").unwrap();
        let target = again.room("datasets").join("d");
        living.finish(&target).unwrap();
        assert!(target.join("whole").exists());
        let dropped = cache.stage("packages").unwrap().path().to_owned();
        assert!(!dropped.exists());
        let names: Vec<_> =
            cache.usage().unwrap().into_iter().map(|item| (item.room, item.name)).collect();
        assert_eq!(names, [("datasets".to_owned(), "d".to_owned())]);
    }

    #[test]
    fn a_used_dataset_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let dataset = cache.room("datasets").join("d");
        fs::create_dir(&dataset).unwrap();
        fs::write(dataset.join("lock"), b"").unwrap();
        let user = File::open(dataset.join("lock")).unwrap();
        user.lock_shared().unwrap();
        assert!(!cache.remove_unused("datasets", &dataset).unwrap());
        assert!(dataset.exists());
        drop(user);
        assert!(cache.remove_unused("datasets", &dataset).unwrap());
        assert!(!dataset.exists());
        assert_eq!(fs::read_dir(cache.room("datasets")).unwrap().count(), 0);
    }

    #[test]
    fn the_cache_is_open_to_the_server_user_and_its_secrets_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("new")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(cache.root()), 0o755);
        assert_eq!(mode(&cache.room("instances")), 0o755);
        assert_eq!(mode(&cache.room("datasets")), 0o700);
        assert_eq!(mode(&cache.room("journal")), 0o700);
    }
}
