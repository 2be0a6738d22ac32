//! The disk below a directory: its name, its scheduler.
//!
//! From the device number of the directory and `/sys/dev/block` (`Documentation/block/switching-sched.rst`
//! of the kernel). Called by the host placement and by the machine's settings; changes nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::PlaceError;
use crate::journal::current;

/// A whole disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Disk {
    /// Its name in `/sys/block`.
    pub name: String,
}

impl Disk {
    /// The one below a directory.
    ///
    /// # Errors
    /// When its file system is on no disk (memory, an overlay, the network), or the device is unknown.
    pub fn below(directory: &Path) -> Result<Disk, PlaceError> {
        let meta = directory.metadata().map_err(PlaceError::io("look at", directory))?;
        let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let device = link.canonicalize().map_err(|_| PlaceError::Limit {
            what: "anything of the disk".to_owned(),
            why: format!("{} is on no disk of this machine", directory.display()),
            next: Some("set CETERIS_CACHE to a directory on a disk".to_owned()),
        })?;
        // A partition lies in its disk's directory.
        let partition = device.join("partition").exists();
        let whole = if partition { device.parent().unwrap_or(&device) } else { &device };
        let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Disk { name: name.unwrap_or_default() })
    }

    /// The file that names its schedulers.
    pub fn scheduler_file(&self) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join("queue/scheduler")
    }

    /// The scheduler in force.
    pub fn scheduler(&self) -> Option<String> {
        current(&self.scheduler_file())
    }

    /// Whether the kernel shares it by cost (`io.cost.qos` of the version 2 root group).
    pub fn has_cost_model(&self) -> bool {
        let numbers = fs::read_to_string(Path::new("/sys/block").join(&self.name).join("dev"));
        let numbers = numbers.unwrap_or_default();
        let enabled = |text: String| {
            text.lines().any(|line| line.starts_with(numbers.trim()) && line.contains("enable=1"))
        };
        !numbers.is_empty() && fs::read_to_string("/sys/fs/cgroup/io.cost.qos").is_ok_and(enabled)
    }
}
