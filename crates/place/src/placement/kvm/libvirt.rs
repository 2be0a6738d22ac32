//! A guest as a domain of libvirt, with the same knobs, for readers who run theirs that way.

use std::fmt::Write;

use study::{Accelerator, DiskBus};

use super::guest::{INITRD, KERNEL, ROOT};
use super::machine::{Boot, KERNEL_ARGUMENTS, Machine, Reach, aio_name, cache_name, format_name};
use super::network::GUEST_PORT;

/// The domain's XML.
pub(super) fn domain(machine: &Machine) -> String {
    let knobs = machine.placement;
    let kind = if machine.accelerator == Accelerator::Tcg { "qemu" } else { "kvm" };
    let path = |path: &std::path::Path| escaped(&path.display().to_string());
    let mut text = format!(
        "<domain type='{kind}'>\n  <name>ceteris</name>\n  <memory unit='b'>{}</memory>\n  \
         <vcpu placement='static'>{}</vcpu>\n",
        knobs.memory.0, knobs.cpus
    );
    if let Some(pin) = &knobs.pin
        && let Ok(study::Cpus::List(list)) = pin.parse()
    {
        text.push_str("  <cputune>\n");
        for (virtual_cpu, cpu) in list.iter().enumerate() {
            let _ = writeln!(text, "    <vcpupin vcpu='{virtual_cpu}' cpuset='{cpu}'/>");
        }
        text.push_str("  </cputune>\n");
    }
    let _ = writeln!(
        text,
        "  <os>\n    <type arch='x86_64' machine='{}'>hvm</type>",
        escaped(&knobs.machine)
    );
    let (system, kind_of_system) = match machine.boot {
        Boot::Built(base) => {
            let _ = write!(
                text,
                "    <kernel>{}</kernel>\n    <initrd>{}</initrd>\n    <cmdline>{}</cmdline>\n",
                path(&base.join(KERNEL)),
                path(&base.join(INITRD)),
                escaped(KERNEL_ARGUMENTS),
            );
            (base.join(ROOT), "raw")
        }
        Boot::Image { disk, .. } => (disk.to_owned(), "qcow2"),
    };
    text.push_str("  </os>\n  <features>\n    <acpi/>\n  </features>\n");
    let mode = if kind == "qemu" { "maximum" } else { "host-passthrough" };
    let _ = writeln!(text, "  <cpu mode='{mode}'>");
    let sockets = knobs.numa_nodes.max(1);
    let _ = writeln!(
        text,
        "    <topology sockets='{sockets}' cores='{}' threads='1'/>",
        (knobs.cpus / sockets).max(1)
    );
    if knobs.numa_nodes > 1 {
        text.push_str("    <numa>\n");
        for node in machine.nodes() {
            let _ = writeln!(
                text,
                "      <cell id='{}' cpus='{}-{}' memory='{}' unit='b'/>",
                node.id, node.first_cpu, node.last_cpu, node.memory_bytes
            );
        }
        text.push_str("    </numa>\n");
    }
    text.push_str("  </cpu>\n  <on_reboot>destroy</on_reboot>\n  <on_crash>destroy</on_crash>\n");
    text.push_str("  <devices>\n");
    let seed = machine.dir.join("seed.tar");
    let disks = [("vdb", "server", machine.server)];
    let _ = write!(
        text,
        "    <disk type='file' device='disk'>\n      <driver name='qemu' type='{kind_of_system}'/>\n      \
         <source file='{}'/>\n      <target dev='vda' bus='virtio'/>\n{}    </disk>\n",
        path(&system),
        if kind_of_system == "raw" { "      <readonly/>\n" } else { "" },
    );
    let disks = disks.into_iter().chain([("vdc", "seed", Some(seed.as_path()))]);
    for (target, serial, file) in disks {
        let Some(file) = file else { continue };
        let _ = write!(
            text,
            "    <disk type='file' device='disk'>\n      <driver name='qemu' type='raw'/>\n      \
             <source file='{}'/>\n      <target dev='{target}' bus='virtio'/>\n      \
             <serial>ceteris-{serial}</serial>\n      <readonly/>\n    </disk>\n",
            path(file)
        );
    }
    if let Some(data) = machine.data {
        let (target, bus) = match knobs.disk.bus {
            DiskBus::VirtioBlk => ("vdd", "virtio"),
            DiskBus::VirtioScsi => ("sda", "scsi"),
        };
        let _ = write!(
            text,
            "    <disk type='file' device='disk'>\n      <driver name='qemu' type='{}' \
             cache='{}' io='{}'/>\n      <source file='{}'/>\n      <target dev='{target}' \
             bus='{bus}'/>\n    </disk>\n",
            format_name(knobs.disk.format),
            cache_name(knobs.disk.cache),
            aio_name(knobs.disk.aio),
            path(data)
        );
        if knobs.disk.bus == DiskBus::VirtioScsi {
            text.push_str("    <controller type='scsi' model='virtio-scsi'/>\n");
        }
    }
    match machine.reach {
        Reach::Tap(name) => {
            let _ = write!(
                text,
                "    <interface type='ethernet'>\n      <target dev='{name}' managed='no'/>\n      \
                 <model type='virtio'/>\n    </interface>\n"
            );
        }
        Reach::Port(port) => {
            let _ = write!(
                text,
                "    <interface type='user'>\n      <!-- with a forwarding of 127.0.0.1:{port} to \
                 port {GUEST_PORT} -->\n      <model type='virtio'/>\n    </interface>\n"
            );
        }
        Reach::Nothing => {}
    }
    text.push_str(
        "    <rng model='virtio'>\n      <backend model='builtin'/>\n    </rng>\n    \
         <serial type='file'>\n      <source path='",
    );
    text.push_str(&path(&machine.dir.join("console.log")));
    text.push_str("'/>\n    </serial>\n  </devices>\n</domain>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use study::{Bytes, Disk, DiskAio, DiskCache, DiskFormat, KvmPlacement};

    use super::*;

    fn xml(placement: &KvmPlacement, reach: Reach) -> String {
        domain(&Machine {
            placement,
            accelerator: Accelerator::Kvm,
            dir: Path::new("/i/a&b"),
            boot: Boot::Built(Path::new("/g")),
            server: Some(Path::new("/g/server.img")),
            data: Some(Path::new("/i/data.raw")),
            reach,
        })
    }

    /// Every element that is opened is closed, in order.
    fn check_nesting(text: &str) {
        let mut open = Vec::new();
        for tag in text.split('<').skip(1).map(|rest| rest.split_once('>').unwrap().0) {
            if tag.starts_with('!') || tag.ends_with('/') {
                continue;
            }
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{text}"),
                None => open.push(tag.split(' ').next().unwrap()),
            }
        }
        assert!(open.is_empty(), "{open:?} in {text}");
    }

    #[test]
    fn every_knob_stands_in_the_domain() {
        let placement = KvmPlacement {
            cpus: 4,
            memory: Bytes(2 << 30),
            numa_nodes: 2,
            pin: Some("4-7".to_owned()),
            disk: Disk {
                format: DiskFormat::Raw,
                cache: DiskCache::None,
                aio: DiskAio::Native,
                bus: DiskBus::VirtioScsi,
            },
            ..KvmPlacement::default()
        };
        let text = xml(&placement, Reach::Tap("TAP"));
        check_nesting(&text);
        for wanted in [
            "<domain type='kvm'>",
            "<memory unit='b'>2147483648</memory>",
            "<vcpupin vcpu='3' cpuset='7'/>",
            "<cell id='1' cpus='2-3' memory='1073741824' unit='b'/>",
            "<driver name='qemu' type='raw' cache='none' io='native'/>",
            "<target dev='sda' bus='scsi'/>",
            "<controller type='scsi' model='virtio-scsi'/>",
            "<kernel>/g/kernel</kernel>",
            "<target dev='TAP' managed='no'/>",
            "/i/a&amp;b/seed.tar",
        ] {
            assert!(text.contains(wanted), "no {wanted} in {text}");
        }
        check_nesting(&xml(&KvmPlacement::default(), Reach::Port("PORT")));
    }
}
