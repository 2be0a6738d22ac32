//! A guest's data disk: the dataset as an image in the cache, and for each run a copy-on-write
//! overlay or a copy of it.
//!
//! The image is made once of a clone of the snapshot whose hash was compared, and its own hash is
//! kept beside it and compared before each run: so the disk of a run holds the snapshot's bytes.

use std::fs;
use std::path::{Path, PathBuf};

use study::{DiskFormat, KvmPlacement};

use super::guest::Kept;
use super::image::{self, Image};
use crate::cache::{Cache, make_directory};
use crate::command::Invocation;
use crate::dataset::Dataset;
use crate::error::PlaceError;
use crate::tools::Tools;
use crate::tree;
use crate::user::ServerUser;

/// Room for a run's own writes: logs, temporary tables, growing tables. Costs nothing until used.
const FREE_BYTES: u64 = 4 << 30;
const FORMAT: &str = "1";
const IMAGE: &str = "data.img";
const HASH: &str = "hash";

/// A dataset as an image.
pub(super) struct DataImage {
    kept: Kept,
}

/// The directory of a dataset's image.
pub(super) fn image_path(cache: &Cache, dataset: &str, user: &ServerUser) -> PathBuf {
    cache.room("guests").join(image_name(dataset, user)).join(IMAGE)
}

fn image_name(dataset: &str, user: &ServerUser) -> String {
    let start = dataset.get(..16).unwrap_or(dataset);
    format!("data-{FORMAT}-{start}-{}-{}", user.uid, user.gid)
}

impl DataImage {
    /// The image of `dataset`, from the cache or made now, its bytes compared with those it had.
    pub fn of(dataset: &Dataset, user: &ServerUser, tools: Tools) -> Result<DataImage, PlaceError> {
        let name = image_name(dataset.hash(), user);
        let kept = Kept::find_or_make(tools.cache, &name, |dir| {
            let root = dir.join("root");
            make_directory(&root, 0o700)?;
            make_directory(&root.join("tmp"), 0o700)?;
            user.own(&root.join("tmp"))?;
            dataset.clone_to(&root.join("data"), user, tools.log)?;
            let path = dir.join(IMAGE);
            let free_bytes = FREE_BYTES + dataset.bytes();
            Image { label: "ceteris-data", owner: (user.uid, user.gid), free_bytes, written: true }
                .make(&root, &path, tools)?;
            tree::remove_tree(&root)?;
            let hash_path = dir.join(HASH);
            fs::write(&hash_path, image::hash(&path)?)
                .map_err(PlaceError::io("write", &hash_path))?;
            user.own(&path)
        })?;
        let image = DataImage { kept };
        image.compare(&image.path())?;
        Ok(image)
    }

    /// The image file; QEMU must never write to it.
    pub fn path(&self) -> PathBuf {
        self.kept.dir.join(IMAGE)
    }

    /// Keeps it in the cache.
    pub fn kept(&self) -> Kept {
        self.kept.clone()
    }

    fn compare(&self, copy: &Path) -> Result<(), PlaceError> {
        let path = self.kept.dir.join(HASH);
        let snapshot = fs::read_to_string(&path).map_err(PlaceError::io("read", &path))?;
        let clone = image::hash(copy)?;
        if clone == snapshot {
            return Ok(());
        }
        Err(PlaceError::CloneDiffers { clone, snapshot, path: self.kept.dir.clone() })
    }

    /// Makes the disk of a run at `disk`.
    pub fn clone_to(
        &self,
        disk: &Path,
        placement: &KvmPlacement,
        user: &ServerUser,
        tools: Tools,
    ) -> Result<(), PlaceError> {
        tools.log.run(clone_command(&self.path(), disk, placement), disk)?;
        if placement.disk.format == DiskFormat::Raw {
            self.compare(disk)?;
        }
        user.own(disk)
    }
}

/// The command that makes a run's disk of a dataset's image.
pub(super) fn clone_command(image: &Path, disk: &Path, placement: &KvmPlacement) -> Invocation {
    match placement.disk.format {
        DiskFormat::Qcow2 => Invocation::new("qemu-img")
            .args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"])
            .arg(image)
            .arg(disk),
        DiskFormat::Raw => {
            Invocation::new("cp").args(["--reflink=auto", "--sparse=always"]).arg(image).arg(disk)
        }
    }
}

/// The name of a run's disk in its private directory.
pub(super) fn disk_name(placement: &KvmPlacement) -> &'static str {
    match placement.disk.format {
        DiskFormat::Qcow2 => "data.qcow2",
        DiskFormat::Raw => "data.raw",
    }
}
