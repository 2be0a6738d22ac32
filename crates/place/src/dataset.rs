//! Datasets: a loaded data directory kept as a snapshot and cloned for each run.
//!
//! `datasets/<hash>/` holds `data/` (the files as a complete shutdown left them, less what belongs
//! to one server's life: binary logs, buffer pool dump, server uuid, temporary tablespaces),
//! `manifest.json`, `secret` (the administrator's password, mode 0600) and `lock`, held shared by
//! whoever uses the snapshot and touched at each use. The hash in the manifest covers `data/`; each
//! clone is hashed before a server is started on it and must agree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mysql::prelude::Queryable;
use serde::{Deserialize, Serialize};
use study::{ConfigValue, Setup};

use crate::cache::{Cache, Lock};
use crate::command::{CommandLog, Invocation};
use crate::error::PlaceError;
use crate::instance::{Instance, WRITE_LIMIT};
use crate::package::Package;
use crate::settings::{file_settings, render_config_value};
use crate::tree::{self, TreeHash};
use crate::user::ServerUser;

/// Layout of a dataset directory; part of every key.
const FORMAT: &str = "1";

/// What makes two datasets the same bytes: package hash, workload data description, seed and the
/// server settings that change the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetKey {
    /// Human-readable ingredients, in order.
    pub ingredients: BTreeMap<String, String>,
    /// Content hash of the ingredients, hexadecimal; names the directory.
    pub hash: String,
}

/// A snapshot in the cache. While a value lives, its directory is not removed.
#[derive(Clone, Debug)]
pub struct Dataset {
    dir: PathBuf,
    manifest: Manifest,
    _lock: Arc<File>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manifest {
    /// What the key was made of.
    ingredients: BTreeMap<String, String>,
    /// Row counts, checksums and the like, from whoever loaded it.
    facts: BTreeMap<String, String>,
    /// Of `data/`; see `tree`.
    hash: String,
    /// Sum of the lengths of the files of `data/`.
    bytes: u64,
    /// Seconds since the Unix epoch.
    created_unix_s: u64,
}

/// The right to look for a dataset and to make it; given back when dropped or when its process
/// dies.
#[derive(Debug)]
#[must_use = "the claim ends when it is dropped"]
pub struct DatasetClaim {
    _lock: Lock,
}

impl DatasetKey {
    /// Key of the dataset that `setup` needs. `data` describes tables, rows and generator version
    /// (from `workload`).
    pub fn new(package: &Package, setup: &Setup, data: &str, seed: u64) -> DatasetKey {
        let mut ingredients = base_ingredients(package, &file_settings(&setup.server.config));
        ingredients.insert("data".to_owned(), data.to_owned());
        ingredients.insert("seed".to_owned(), seed.to_string());
        DatasetKey::of(ingredients)
    }

    /// Key of the initialised data directory without data.
    pub(crate) fn empty(package: &Package, settings: &BTreeMap<String, ConfigValue>) -> DatasetKey {
        let mut ingredients = base_ingredients(package, settings);
        ingredients.insert("data".to_owned(), "none".to_owned());
        DatasetKey::of(ingredients)
    }

    fn of(ingredients: BTreeMap<String, String>) -> DatasetKey {
        let mut hasher = blake3::Hasher::new();
        for text in ingredients.iter().flat_map(|(name, value)| [name, value]) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        DatasetKey { ingredients, hash: hasher.finalize().to_hex().to_string() }
    }
}

fn base_ingredients(
    package: &Package,
    settings: &BTreeMap<String, ConfigValue>,
) -> BTreeMap<String, String> {
    let mut ingredients = BTreeMap::from([
        ("format".to_owned(), FORMAT.to_owned()),
        ("package".to_owned(), package.hash.clone()),
        ("version".to_owned(), package.version.to_string()),
    ]);
    for (name, value) in settings {
        ingredients.insert(format!("server.config.{name}"), render_config_value(value));
    }
    ingredients
}

impl Dataset {
    /// Waits until nobody else finds, loads or saves the dataset of `key`; `waiting` is called if
    /// somebody does. Held around [`find`](Dataset::find), loading and [`save`](Dataset::save), so
    /// that two who need one dataset load it once. Not needed for using one.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn claim(
        cache: &Cache,
        key: &DatasetKey,
        waiting: impl FnOnce(),
    ) -> Result<DatasetClaim, PlaceError> {
        Ok(DatasetClaim { _lock: cache.lock("datasets", &key.hash[..16], waiting)? })
    }

    /// The snapshot, if the cache holds it whole. One that is damaged counts as absent; saving
    /// replaces it.
    ///
    /// # Errors
    /// When the cache cannot be read.
    pub fn find(cache: &Cache, key: &DatasetKey) -> Result<Option<Dataset>, PlaceError> {
        let dir = cache.room("datasets").join(&key.hash);
        let Ok(lock) = File::options().append(true).open(dir.join("lock")) else { return Ok(None) };
        lock.lock_shared().map_err(PlaceError::io("lock", &dir))?;
        let Ok(text) = fs::read(dir.join("manifest.json")) else { return Ok(None) };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else { return Ok(None) };
        let whole = manifest.ingredients == key.ingredients
            && dir.join("data").is_dir()
            && dir.join("secret").is_file();
        if !whole {
            return Ok(None);
        }
        // Only the order of removal depends on it.
        let _ = lock.set_modified(SystemTime::now());
        Ok(Some(Dataset { dir, manifest, _lock: Arc::new(lock) }))
    }

    /// Stops `instance`, whose tables were loaded and checked, and keeps its data directory as the
    /// snapshot of `key`. `facts` (row counts, checksums) are kept beside it. Appears in the cache
    /// whole or not at all.
    ///
    /// # Errors
    /// When the server does not shut down cleanly, or its files cannot be read, moved or written.
    pub fn save(
        mut instance: Box<dyn Instance>,
        cache: &Cache,
        key: &DatasetKey,
        facts: &BTreeMap<String, String>,
    ) -> Result<Dataset, PlaceError> {
        let endpoint = instance.endpoint();
        // Purged and merged completely, so that no clone starts with work left over from loading.
        mysql::Conn::new(endpoint.opts_within(WRITE_LIMIT))
            .and_then(|mut connection| connection.query_drop("SET GLOBAL innodb_fast_shutdown = 0"))
            .map_err(PlaceError::sql("cannot ask for a complete shutdown"))?;
        instance.halt()?;
        let data = instance.data_dir().map(Path::to_owned).ok_or_else(|| {
            PlaceError::Other("this placement keeps no data directory that could be saved".into())
        })?;
        let dataset = keep(&data, &endpoint.password, cache, key, facts)?;
        instance.stop()?;
        Ok(dataset)
    }

    /// Content hash of the snapshot's files.
    pub fn hash(&self) -> &str {
        &self.manifest.hash
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.manifest.bytes
    }

    /// What was kept beside it: row counts, checksums.
    pub fn facts(&self) -> &BTreeMap<String, String> {
        &self.manifest.facts
    }

    /// The snapshot's own files, to be read only.
    pub(crate) fn files(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The password of the administrator.
    pub(crate) fn password(&self) -> Result<String, PlaceError> {
        let path = self.dir.join("secret");
        fs::read_to_string(&path).map_err(PlaceError::io("read", &path))
    }

    /// Clones the files to `target`, which must not exist, for a server of `user`.
    ///
    /// # Errors
    /// Also when the clone's hash is not the snapshot's.
    pub(crate) fn clone_to(
        &self,
        target: &Path,
        user: &ServerUser,
        log: &CommandLog,
    ) -> Result<TreeHash, PlaceError> {
        let copy = Invocation::new("cp")
            .args(["-a", "--reflink=auto", "--sparse=auto"])
            .arg(self.files())
            .arg(target);
        log.run(copy, target)?;
        tree::own_tree(target, user)?;
        let clone = tree::hash_tree(target)?;
        self.check_copy(clone)
    }

    /// Itself, if the hash of a copy is the snapshot's.
    ///
    /// # Errors
    /// [`PlaceError::CloneDiffers`].
    pub(crate) fn check_copy(&self, copy: TreeHash) -> Result<TreeHash, PlaceError> {
        if copy.hash != self.manifest.hash {
            return Err(PlaceError::CloneDiffers {
                clone: copy.hash,
                snapshot: self.manifest.hash.clone(),
                path: self.dir.clone(),
            });
        }
        Ok(copy)
    }
}

/// Moves `data`, the files of a server that is down, into the cache as the snapshot of `key`.
pub(crate) fn keep(
    data: &Path,
    password: &str,
    cache: &Cache,
    key: &DatasetKey,
    facts: &BTreeMap<String, String>,
) -> Result<Dataset, PlaceError> {
    let staging = cache.stage("datasets")?;
    let kept = staging.path().join("data");
    fs::rename(data, &kept).map_err(PlaceError::io("move", data))?;
    remove_volatile(&kept)?;
    let TreeHash { hash, bytes } = tree::hash_tree(&kept)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let manifest = Manifest {
        ingredients: key.ingredients.clone(),
        facts: facts.clone(),
        hash,
        bytes,
        created_unix_s: since.as_secs(),
    };
    let text = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| PlaceError::io("write", staging.path())(error.into()))?;
    write_private(&staging.path().join("manifest.json"), &text)?;
    write_private(&staging.path().join("secret"), password.as_bytes())?;
    write_private(&staging.path().join("lock"), b"")?;
    fs::set_permissions(staging.path(), fs::Permissions::from_mode(0o700))
        .map_err(PlaceError::io("change the mode of", staging.path()))?;
    // One that somebody uses already is as good, and must not go from under them.
    let _kept = staging.finish(&cache.room("datasets").join(&key.hash))?;
    cache.trim(&key.hash)?;
    Dataset::find(cache, key)?.ok_or_else(|| {
        PlaceError::Other(
            "a damaged snapshot of the same dataset is in use and cannot be replaced".into(),
        )
    })
}

fn write_private(path: &Path, text: &[u8]) -> Result<(), PlaceError> {
    File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text))
        .map_err(PlaceError::io("write", path))
}

/// Removes what belongs to one server's life and not to the data.
fn remove_volatile(data: &Path) -> Result<(), PlaceError> {
    for entry in fs::read_dir(data).map_err(PlaceError::io("list", data))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if name.ends_with(".index") && path.is_file() {
            // A binary or relay log's index names its files, one a line.
            let listed = fs::read_to_string(&path).map_err(PlaceError::io("read", &path))?;
            for log in listed.lines().filter_map(|line| Path::new(line).file_name()) {
                tree::remove_tree(&data.join(log))?;
            }
            tree::remove_tree(&path)?;
            let stem = name.trim_end_matches(".index");
            tree::remove_tree(&data.join(format!("{stem}.state")))?;
            continue;
        }
        let volatile = ["auto.cnf", "ib_buffer_pool", "ibtmp1", "ib_buffer_pool.incomplete"];
        if volatile.contains(&name.as_str()) || name.ends_with(".pid") || name.ends_with(".err") {
            tree::remove_tree(&path)?;
        }
        if name == "#innodb_temp" {
            for session in fs::read_dir(&path).map_err(PlaceError::io("list", &path))?.flatten() {
                tree::remove_tree(&session.path())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn key(data: &str) -> DatasetKey {
        DatasetKey::of(BTreeMap::from([("data".to_owned(), data.to_owned())]))
    }

    fn saved(dir: &Path) -> (Cache, Dataset) {
        let cache = Cache::at(&dir.join("cache")).unwrap();
        let data = cache.room("instances").join("d");
        fs::create_dir_all(data.join("sbtest")).unwrap();
        fs::write(data.join("sbtest/t.ibd"), vec![7; 10_000]).unwrap();
        for volatile in ["auto.cnf", "ib_buffer_pool", "ibtmp1", "host-bin.000001", "host.pid"] {
            fs::write(data.join(volatile), b"x").unwrap();
        }
        fs::write(data.join("host-bin.index"), b"./host-bin.000001\n").unwrap();
        let facts = BTreeMap::from([("rows".to_owned(), "1".to_owned())]);
        let dataset = keep(&data, "hush", &cache, &key("a"), &facts).unwrap();
        (cache, dataset)
    }

    #[test]
    fn a_snapshot_is_found_again_and_its_clone_has_its_hash() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, dataset) = saved(dir.path());
        assert_eq!(dataset.bytes(), 10_000);
        let found = Dataset::find(&cache, &key("a")).unwrap().unwrap();
        assert_eq!(found.hash(), dataset.hash());
        assert_eq!(found.facts()["rows"], "1");
        assert_eq!(found.password().unwrap(), "hush");
        assert!(!format!("{found:?}").contains("hush"));
        assert!(Dataset::find(&cache, &key("b")).unwrap().is_none());
        let mode = found.dir.join("secret").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let user = ServerUser::find().unwrap();
        let log = CommandLog::default();
        let target = dir.path().join("clone");
        assert_eq!(found.clone_to(&target, &user, &log).unwrap().hash, dataset.hash());
        let names: Vec<_> =
            fs::read_dir(&target).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, ["sbtest"], "volatile files are not part of a snapshot");
        assert!(log.drain()[0].command.starts_with("cp -a --reflink=auto --sparse=auto "));
    }

    #[test]
    fn a_damaged_snapshot_is_noticed_when_it_is_cloned() {
        let dir = tempfile::tempdir().unwrap();
        let (_, dataset) = saved(dir.path());
        fs::write(dataset.dir.join("data/sbtest/t.ibd"), vec![8; 10_000]).unwrap();
        let user = ServerUser::find().unwrap();
        let target = dir.path().join("clone");
        let error = dataset.clone_to(&target, &user, &CommandLog::default()).unwrap_err();
        assert!(matches!(error, PlaceError::CloneDiffers { .. }), "{error}");
    }

    #[test]
    fn a_snapshot_without_its_manifest_counts_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, dataset) = saved(dir.path());
        fs::write(dataset.dir.join("manifest.json"), b"{").unwrap();
        assert!(Dataset::find(&cache, &key("a")).unwrap().is_none());
        drop(dataset);
        // Saving again puts a whole one in its place.
        let data = cache.room("instances").join("e");
        fs::create_dir_all(&data).unwrap();
        keep(&data, "p", &cache, &key("a"), &BTreeMap::new()).unwrap();
        assert!(Dataset::find(&cache, &key("a")).unwrap().is_some());
    }

    #[test]
    fn a_snapshot_in_use_is_not_replaced_by_another_of_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, used) = saved(dir.path());
        let data = cache.room("instances").join("e");
        fs::create_dir_all(&data).unwrap();
        fs::write(data.join("other"), b"x").unwrap();
        let second = keep(&data, "p", &cache, &key("a"), &BTreeMap::new()).unwrap();
        assert_eq!(second.hash(), used.hash(), "the first stays");
        assert!(used.dir.join("data/sbtest/t.ibd").exists());
        assert_eq!(cache.usage().unwrap().len(), 1, "and nothing of the second is left");
    }

    #[test]
    fn a_claim_waits_for_the_other_and_only_for_the_same_key() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let first = Dataset::claim(&cache, &key("a"), || panic!("nobody holds it")).unwrap();
        let _other = Dataset::claim(&cache, &key("b"), || panic!("another key")).unwrap();
        let (waits, waiting) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope
                .spawn(|| Dataset::claim(&cache, &key("a"), || waits.send(()).unwrap()).unwrap());
            waiting.recv().unwrap();
            assert!(!second.is_finished());
            drop(first);
            let _second = second.join().unwrap();
        });
    }

    #[test]
    fn keys_differ_by_every_ingredient_and_not_by_where_one_ends() {
        let of = |pairs: &[(&str, &str)]| {
            DatasetKey::of(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
                .hash
        };
        assert_eq!(of(&[("a", "b")]), of(&[("a", "b")]));
        assert_ne!(of(&[("a", "b")]), of(&[("ab", "")]));
        assert_ne!(of(&[("a", "b")]), of(&[("a", "c")]));
    }
}
