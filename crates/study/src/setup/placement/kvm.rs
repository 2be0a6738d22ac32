//! A QEMU guest.

use serde::{Deserialize, Serialize};

use crate::allowance::{Bytes, Cpus};
use crate::setup::Contradiction;

/// A QEMU guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KvmPlacement {
    /// Virtual processors of each guest.
    pub cpus: u32,
    /// Memory of each guest.
    pub memory: Bytes,
    /// NUMA nodes that the guest sees; processors and memory are divided evenly.
    pub numa_nodes: u32,
    /// QEMU's machine type.
    pub machine: String,
    /// What executes the guest.
    pub accel: Accelerator,
    /// The disk that holds the data directory.
    pub disk: Disk,
    /// How clients reach the guest.
    pub network: GuestNetwork,
    /// Processors of this machine that the virtual ones are pinned to, in order; `None`: none is.
    pub pin: Option<String>,
    /// A cloud image of your own (qcow2 or raw); `None`: ceteris builds a guest.
    pub image: Option<String>,
    /// How many guests run at once.
    pub instances: u32,
}

/// What executes a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accelerator {
    /// KVM where a guest boots under it, else TCG; told in the result.
    #[default]
    Auto,
    /// The kernel's.
    Kvm,
    /// QEMU's own translator: its speed means nothing beyond this machine.
    Tcg,
}

/// A guest's data disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disk {
    /// Format of the image file.
    pub format: DiskFormat,
    /// QEMU's cache mode.
    pub cache: DiskCache,
    /// How QEMU does input and output.
    pub aio: DiskAio,
    /// What the guest sees.
    pub bus: DiskBus,
}

/// Format of an image file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskFormat {
    /// Copy on write over the snapshot.
    #[default]
    Qcow2,
    /// A plain copy of the snapshot.
    Raw,
}

/// QEMU's cache mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskCache {
    /// O_DIRECT, flushes passed on.
    None,
    /// Page cache, flushes passed on; QEMU's default.
    #[default]
    Writeback,
    /// Page cache, every write flushed.
    Writethrough,
    /// O_DIRECT, every write flushed.
    Directsync,
    /// Page cache, flushes ignored.
    Unsafe,
}

/// How QEMU does input and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskAio {
    /// A pool of threads.
    #[default]
    Threads,
    /// Linux AIO; needs a cache mode with O_DIRECT.
    Native,
    /// io_uring.
    IoUring,
}

/// What kind of disk the guest sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskBus {
    /// virtio-blk.
    #[default]
    VirtioBlk,
    /// virtio-scsi.
    VirtioScsi,
}

/// How clients reach a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestNetwork {
    /// QEMU's user-mode network, a forwarded port of 127.0.0.1.
    #[default]
    User,
    /// A tap device.
    Tap,
}

impl Default for KvmPlacement {
    fn default() -> Self {
        KvmPlacement {
            cpus: 2,
            memory: Bytes(2 << 30),
            numa_nodes: 1,
            machine: "q35".to_owned(),
            accel: Accelerator::Auto,
            disk: Disk::default(),
            network: GuestNetwork::User,
            pin: None,
            image: None,
            instances: 1,
        }
    }
}

impl KvmPlacement {
    pub(crate) fn contradiction(&self) -> Option<Contradiction> {
        let found = |key, message: &str, hint| {
            Some(Contradiction { key, message: message.to_owned(), hint })
        };
        let direct = matches!(self.disk.cache, DiskCache::None | DiskCache::Directsync);
        if self.disk.aio == DiskAio::Native && !direct {
            let message = "`aio = \"native\"` needs a cache mode that goes past the page cache";
            return found("disk", message, "`cache = \"none\"` or `\"directsync\"`");
        }
        if !self.cpus.is_multiple_of(self.numa_nodes) {
            let message = "the processors cannot be divided evenly among the nodes";
            return found("numa_nodes", message, "make `cpus` a multiple of `numa_nodes`");
        }
        let pinned = |text: &String| match text.parse() {
            Ok(Cpus::List(list)) => list.len() == self.cpus as usize,
            _ => false,
        };
        if self.pin.as_ref().is_some_and(|text| !pinned(text)) {
            let message = "`pin` does not list one processor for each virtual one";
            return found("pin", message, "a list such as \"0-3\" with as many as `cpus`");
        }
        None
    }
}
