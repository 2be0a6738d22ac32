//! The virtual machine as QEMU's command line, and the same as a domain of libvirt.
//!
//! Pure: planning prints what a run would start, from the same definition.

use std::path::Path;

use study::{Accelerator, DiskAio, DiskBus, DiskCache, DiskFormat, KvmPlacement};

use super::guest::{INITRD, KERNEL, ROOT};
use super::network::GUEST_PORT;
use crate::command::Invocation;

/// Names of the ports between guest and host; `init.sh` knows them.
pub(super) const CONTROL: &str = "ceteris.control";
pub(super) const OBSERVER: &str = "ceteris.observer";
const LOG: &str = "ceteris.log";

/// What a data disk is called in QEMU's answers.
pub(super) const DATA: &str = "data";

/// A machine to be started, with everything decided.
pub(super) struct Machine<'a> {
    pub placement: &'a KvmPlacement,
    /// KVM or TCG.
    pub accelerator: Accelerator,
    /// Private directory: sockets, console, disks of the run.
    pub dir: &'a Path,
    pub boot: Boot<'a>,
    /// The package's disk; without one the guest boots and powers off.
    pub server: Option<&'a Path>,
    pub data: Option<&'a Path>,
    /// Port of 127.0.0.1, or a tap device.
    pub reach: Reach<'a>,
}

/// What it boots.
#[derive(Clone, Copy)]
pub(super) enum Boot<'a> {
    /// The base system in this directory: a kernel, its initial RAM disk and a disk.
    Built(&'a Path),
    /// The disk of a cloud image, by its own boot loader, and a directory with a NoCloud seed.
    Image { disk: &'a Path, seed: &'a Path },
}

/// The kernel's command line. It reboots at once when it panics, which ends QEMU.
pub(super) const KERNEL_ARGUMENTS: &str =
    "root=/dev/vda ro fastboot init=/ceteris/boot console=ttyS0 loglevel=4 net.ifnames=0 panic=-1";

/// How clients reach it.
#[derive(Clone, Copy)]
pub(super) enum Reach<'a> {
    /// `PORT` while only planned.
    Port(&'a str),
    Tap(&'a str),
    Nothing,
}

pub(super) fn accelerator_name(accelerator: Accelerator) -> &'static str {
    match accelerator {
        Accelerator::Auto => "auto",
        Accelerator::Kvm => "kvm",
        Accelerator::Tcg => "tcg",
    }
}

pub(super) fn format_name(format: DiskFormat) -> &'static str {
    match format {
        DiskFormat::Qcow2 => "qcow2",
        DiskFormat::Raw => "raw",
    }
}

pub(super) fn cache_name(cache: DiskCache) -> &'static str {
    match cache {
        DiskCache::None => "none",
        DiskCache::Writeback => "writeback",
        DiskCache::Writethrough => "writethrough",
        DiskCache::Directsync => "directsync",
        DiskCache::Unsafe => "unsafe",
    }
}

pub(super) fn aio_name(aio: DiskAio) -> &'static str {
    match aio {
        DiskAio::Threads => "threads",
        DiskAio::Native => "native",
        DiskAio::IoUring => "io_uring",
    }
}

pub(super) fn bus_name(bus: DiskBus) -> &'static str {
    match bus {
        DiskBus::VirtioBlk => "virtio-blk",
        DiskBus::VirtioScsi => "virtio-scsi",
    }
}

impl Machine<'_> {
    /// The whole command.
    pub fn command(&self) -> Invocation {
        let file = |name: &str| self.dir.join(name).display().to_string();
        let mut command = Invocation::new("qemu-system-x86_64")
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            .args(["-machine", &self.placement.machine]);
        command = match self.accelerator {
            // Five levels of page tables are slow to emulate and good for nothing here.
            Accelerator::Tcg => {
                command.args(["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"])
            }
            _ => command.args(["-accel", "kvm", "-cpu", "host"]),
        };
        command = command.args(self.processors());
        command = match self.boot {
            Boot::Built(base) => command
                .arg("-kernel")
                .arg(base.join(KERNEL))
                .arg("-initrd")
                .arg(base.join(INITRD))
                .args(["-append", KERNEL_ARGUMENTS])
                .args(disk("root", &base.join(ROOT), "format=raw,readonly=on")),
            Boot::Image { disk: system, seed } => {
                let seed = comma(&seed.display().to_string());
                command
                    .args(disk("root", system, "format=qcow2"))
                    .arg("-drive")
                    .arg(format!(
                        "if=none,id=cidata,format=raw,readonly=on,file.driver=vvfat,\
                         file.dir={seed},file.label=CIDATA"
                    ))
                    .args(["-device", "virtio-blk-pci,drive=cidata"])
            }
        };
        if let Some(server) = self.server {
            command = command.args(disk("server", server, "format=raw,readonly=on"));
            command =
                command.args(disk("seed", &self.dir.join("seed.tar"), "format=raw,readonly=on"));
        }
        if let Some(data) = self.data {
            command = command.args(self.data_disk(data));
        }
        command = match self.reach {
            Reach::Port(port) => command.args([
                "-netdev".to_owned(),
                // Nothing but this port: the guest reaches neither this machine nor any other.
                format!(
                    "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:{GUEST_PORT}"
                ),
                "-device".to_owned(),
                "virtio-net-pci,netdev=net".to_owned(),
            ]),
            Reach::Tap(name) => command.args([
                "-netdev".to_owned(),
                format!("tap,id=net,ifname={name},script=no,downscript=no"),
                "-device".to_owned(),
                "virtio-net-pci,netdev=net".to_owned(),
            ]),
            Reach::Nothing => command,
        };
        command = command.args(["-device", "virtio-rng-pci", "-device", "virtio-serial-pci"]);
        for (id, name, backend) in [
            ("control", CONTROL, format!("socket,path={},server=on,wait=off", comma(&file("c")))),
            ("observer", OBSERVER, format!("socket,path={},server=on,wait=off", comma(&file("o")))),
            ("log", LOG, format!("file,path={}", comma(&file("error.log")))),
        ] {
            let (kind, rest) = backend.split_once(',').unwrap_or((&backend, ""));
            command = command
                .args(["-chardev".to_owned(), format!("{kind},id={id},{rest}")])
                .args(["-device".to_owned(), format!("virtserialport,chardev={id},name={name}")]);
        }
        command
            .args(["-serial".to_owned(), format!("file:{}", file("console.log"))])
            .args(["-qmp".to_owned(), format!("unix:{},server=on,wait=off", comma(&file("q")))])
    }

    /// Memory, processors and the nodes that both are divided among.
    fn processors(&self) -> Vec<String> {
        let KvmPlacement { cpus, memory, numa_nodes, .. } = self.placement;
        let mut words = vec!["-m".to_owned(), format!("{}B", memory.0)];
        words.extend(["-smp".to_owned(), format!("{cpus},sockets={numa_nodes}")]);
        if *numa_nodes < 2 {
            return words;
        }
        for node in self.nodes() {
            words.extend([
                "-object".to_owned(),
                format!("memory-backend-ram,id=memory{},size={}B", node.id, node.memory_bytes),
                "-numa".to_owned(),
                format!(
                    "node,nodeid={0},memdev=memory{0},cpus={1}-{2}",
                    node.id, node.first_cpu, node.last_cpu
                ),
            ]);
        }
        words
    }

    /// The NUMA nodes; the last takes what does not divide.
    pub fn nodes(&self) -> Vec<Node> {
        let KvmPlacement { cpus, memory, numa_nodes, .. } = self.placement;
        let count = (*numa_nodes).max(1);
        // QEMU wants whole pages, and kernels whole sections.
        let each = memory.0 / u64::from(count) / (1 << 20) * (1 << 20);
        let per_node = (cpus / count).max(1);
        (0..count)
            .map(|id| Node {
                id,
                first_cpu: id * per_node,
                last_cpu: (id + 1) * per_node - 1,
                memory_bytes: match id + 1 == count {
                    true => memory.0 - each * u64::from(count - 1),
                    false => each,
                },
            })
            .collect()
    }

    fn data_disk(&self, data: &Path) -> Vec<String> {
        let knobs = &self.placement.disk;
        let options = format!(
            "format={},cache={},aio={}",
            format_name(knobs.format),
            cache_name(knobs.cache),
            aio_name(knobs.aio)
        );
        let mut words = disk(DATA, data, &options);
        if knobs.bus == DiskBus::VirtioScsi {
            words.truncate(2);
            words.extend(
                ["-device", "virtio-scsi-pci,id=scsi", "-device", "scsi-hd,bus=scsi.0,drive=data"]
                    .map(str::to_owned),
            );
        }
        words
    }
}

/// One NUMA node of a guest.
pub(super) struct Node {
    pub id: u32,
    pub first_cpu: u32,
    pub last_cpu: u32,
    pub memory_bytes: u64,
}

fn disk(id: &str, path: &Path, options: &str) -> Vec<String> {
    let path = comma(&path.display().to_string());
    vec![
        "-drive".to_owned(),
        format!("if=none,id={id},file={path},{options}"),
        "-device".to_owned(),
        format!("virtio-blk-pci,drive={id},serial=ceteris-{id}"),
    ]
}

/// In QEMU's option lists a comma is doubled.
fn comma(path: &str) -> String {
    path.replace(',', ",,")
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
