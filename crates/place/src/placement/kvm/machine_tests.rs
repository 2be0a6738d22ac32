//! The command line of a guest, knob by knob.

use study::{Bytes, Disk, GuestNetwork};

use super::*;

fn command(placement: &KvmPlacement, accelerator: Accelerator, reach: Reach) -> String {
    let machine = Machine {
        placement,
        accelerator,
        dir: Path::new("/i/a,b"),
        boot: Boot::Built(Path::new("/g")),
        server: Some(Path::new("/g/server.img")),
        data: Some(Path::new("/i/data")),
        reach,
    };
    machine.command().quoted()
}

fn has(text: &str, words: &str) {
    assert!(text.contains(words), "no `{words}` in {text}");
}

#[test]
fn defaults_are_one_node_and_a_forwarded_port_of_this_machine_alone() {
    let text = command(&KvmPlacement::default(), Accelerator::Kvm, Reach::Port("4000"));
    has(&text, "-machine q35 -accel kvm -cpu host -m 2147483648B -smp 2,sockets=1 ");
    has(&text, "restrict=on,hostfwd=tcp:127.0.0.1:4000-10.0.2.15:3306 ");
    has(&text, "id=data,file=/i/data,format=qcow2,cache=writeback,aio=threads -device virtio-blk");
    has(&text, "file=/g/server.img,format=raw,readonly=on");
    has(&text, "-qmp unix:/i/a,,b/q,server=on");
    assert!(!text.contains("-numa"), "{text}");
}

#[test]
fn every_knob_reaches_qemu() {
    let placement = KvmPlacement {
        cpus: 4,
        memory: Bytes((1 << 30) + (1 << 20)),
        numa_nodes: 2,
        machine: "pc".to_owned(),
        disk: Disk {
            format: DiskFormat::Raw,
            cache: DiskCache::None,
            aio: DiskAio::Native,
            bus: DiskBus::VirtioScsi,
        },
        network: GuestNetwork::Tap,
        ..KvmPlacement::default()
    };
    let text = command(&placement, Accelerator::Tcg, Reach::Tap("ceteris-0123456"));
    has(&text, "-machine pc -accel tcg,thread=multi ");
    has(&text, "-smp 4,sockets=2 ");
    has(
        &text,
        "memory-backend-ram,id=memory0,size=536870912B -numa node,nodeid=0,memdev=memory0,cpus=0-1",
    );
    has(
        &text,
        "memory-backend-ram,id=memory1,size=537919488B -numa node,nodeid=1,memdev=memory1,cpus=2-3",
    );
    has(&text, "format=raw,cache=none,aio=native -device virtio-scsi-pci,id=scsi -device scsi-hd");
    has(&text, "tap,id=net,ifname=ceteris-0123456,script=no");
}

#[test]
fn a_cloud_image_boots_itself_and_finds_its_seed() {
    let placement = KvmPlacement::default();
    let machine = Machine {
        placement: &placement,
        accelerator: Accelerator::Tcg,
        dir: Path::new("/i/a"),
        boot: Boot::Image { disk: Path::new("/i/a/system.qcow2"), seed: Path::new("/i/a/cidata") },
        server: None,
        data: None,
        reach: Reach::Nothing,
    };
    let text = machine.command().quoted();
    assert!(!text.contains("-kernel"), "{text}");
    has(&text, "id=root,file=/i/a/system.qcow2,format=qcow2 ");
    has(&text, "file.driver=vvfat,file.dir=/i/a/cidata,file.label=CIDATA");
}
