//! A guest from a cloud image of the user's own: its own kernel and system, told by cloud-init's
//! NoCloud seed to mount ceteris's server disk and to do from there what a built guest does.
//!
//! The image is never written to: a run boots an overlay of it. Its network is left to `init.sh`, so
//! that it has the address that the host expects.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::image;
use crate::cache::make_directory;
use crate::command::Invocation;
use crate::error::PlaceError;
use crate::tools::Tools;
use crate::user::ServerUser;

/// The directory that the guest sees as the disk `CIDATA`.
pub(super) const SEED: &str = "cidata";
/// The overlay that a run boots.
pub(super) const DISK: &str = "system.qcow2";

const META_DATA: &str = "instance-id: ceteris\nlocal-hostname: ceteris\n";
const NETWORK_CONFIG: &str = "config: disabled\n";
const USER_DATA: &str = "#cloud-config
ssh_pwauth: false
package_update: false
runcmd:
  - modprobe -a -q virtio_blk virtio_scsi virtio_net virtio_console virtio_rng ext4
  - mkdir -p /srv
  - mount -t ext4 -o ro LABEL=ceteris-server /srv
  - systemd-run --no-block --unit=ceteris /bin/sh /srv/ceteris/init
";

/// The image, if it is there and QEMU can read it; with its format.
pub(super) fn look(path: &str, tools: Tools) -> Result<CloudImage, PlaceError> {
    let path = PathBuf::from(path);
    let path = path.canonicalize().map_err(PlaceError::io("find the cloud image", &path))?;
    let ask = Invocation::new("qemu-img").args(["info", "--output=json"]).arg(&path);
    let said = tools.log.run(ask, &path)?.stdout;
    let told: Value = serde_json::from_str(&said).unwrap_or_default();
    match told.get("format").and_then(Value::as_str) {
        Some(format @ ("qcow2" | "raw")) => Ok(CloudImage { path, format: format.to_owned() }),
        other => Err(PlaceError::Other(format!(
            "the cloud image {} is neither qcow2 nor raw but {}",
            path.display(),
            other.unwrap_or("of no known format")
        ))),
    }
}

/// An image and its format.
pub(super) struct CloudImage {
    path: PathBuf,
    format: String,
}

impl CloudImage {
    /// Content hash, for the fingerprint.
    pub fn hash(&self) -> Result<String, PlaceError> {
        image::hash(&self.path)
    }

    /// Makes the overlay and the seed of a run in its private directory.
    pub fn prepare(&self, dir: &Path, user: &ServerUser, tools: Tools) -> Result<(), PlaceError> {
        let disk = dir.join(DISK);
        let overlay = Invocation::new("qemu-img")
            .args(["create", "-q", "-f", "qcow2", "-F", &self.format, "-b"])
            .arg(&self.path)
            .arg(&disk);
        tools.log.run(overlay, &disk)?;
        user.own(&disk)?;
        let seed = dir.join(SEED);
        make_directory(&seed, 0o700)?;
        user.own(&seed)?;
        for (name, text) in
            [("meta-data", META_DATA), ("network-config", NETWORK_CONFIG), ("user-data", USER_DATA)]
        {
            let path = seed.join(name);
            fs::write(&path, text).map_err(PlaceError::io("write", &path))?;
            user.own(&path)?;
        }
        Ok(())
    }
}
