//! The machine, the server processes and the generator, from `/proc` and `/sys`.

use std::collections::BTreeSet;

use super::{Counters, Record, SamplerTarget, Shared};
use crate::cgroup::{Groups, Throttling};
use crate::facts::{Root, field};
use crate::mounts::{disk_of, mount_of, mounts};
use crate::process;

/// Bytes in a sector of `/sys/block/*/stat`, whatever the disk's own are.
const SECTOR: f64 = 512.0;

/// Samples until told to end.
pub(super) fn watch(targets: &[SamplerTarget], generator: Option<u32>, shared: &Shared) {
    let mut system = System::new(Root::machine(), targets, generator, shared);
    while let Some(at_s) = shared.next_tick() {
        let gone = system.sample(at_s, &mut shared.record());
        for line in gone {
            shared.problem(line);
        }
    }
}

/// A process to be watched and what its series are called.
struct Watched {
    name: String,
    pid: u32,
    throttling: Option<Throttling>,
}

/// Everything that is looked at each second.
pub(super) struct System {
    root: Root,
    counters: Counters,
    processes: Vec<Watched>,
    /// Name in `/sys/block` and the prefix of its series.
    disks: Vec<(String, String)>,
}

impl System {
    pub(super) fn new(
        root: Root,
        targets: &[SamplerTarget],
        generator: Option<u32>,
        shared: &Shared,
    ) -> System {
        let mounts = mounts(&root);
        let mut processes = Vec::new();
        let mut names = BTreeSet::new();
        let mut disks = Vec::new();
        for target in targets {
            if let Some(pid) = target.pid {
                let throttling =
                    Groups::of(&root, &mounts, pid).and_then(|groups| groups.throttling());
                processes.push(Watched { name: target.name.clone(), pid, throttling });
            }
            let Some(directory) = &target.data_dir else { continue };
            let directory = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.clone());
            let disk = mount_of(&mounts, &directory).and_then(|mount| disk_of(&root, mount));
            match disk {
                Some(disk) if names.insert(disk.clone()) => {
                    let prefix = match disks.len() {
                        0 => "host.disk".to_owned(),
                        _ => format!("host.disk.{disk}"),
                    };
                    disks.push((disk, prefix));
                }
                Some(_) => {}
                None => shared.problem(format!(
                    "{}: no disk below its data directory, so none is sampled",
                    target.name
                )),
            }
        }
        if let Some(pid) = generator {
            processes.push(Watched { name: "generator".to_owned(), pid, throttling: None });
        }
        System { root, counters: Counters::default(), processes, disks }
    }

    /// Takes one sample; gives a line for each process that is gone.
    pub(super) fn sample(&mut self, at_s: f64, record: &mut Record) -> Vec<String> {
        let System { root, counters, processes, disks } = self;
        let mut tick = Tick { at_s, record, counters };
        processors(root, &mut tick);
        memory(root, &mut tick);
        pressure(root, &mut tick);
        for (disk, prefix) in disks {
            disk_statistics(root, disk, prefix, &mut tick);
        }
        let mut gone = Vec::new();
        for watched in processes {
            if !process_usage(root, watched, &mut tick) {
                gone.push(format!("{}: process {} is gone", watched.name, watched.pid));
            }
        }
        gone
    }
}

/// One moment.
struct Tick<'a> {
    at_s: f64,
    record: &'a mut Record,
    counters: &'a mut Counters,
}

impl Tick<'_> {
    fn level(&mut self, name: &str, unit: &str, value: f64) {
        self.record.push(self.at_s, name, unit, value);
    }

    fn rate(&mut self, name: &str, unit: &str, counter: f64) {
        if let Some(rate) = self.counters.rate(name, self.at_s, counter) {
            self.record.push(self.at_s, name, unit, rate);
        }
    }
}

/// `/proc/stat`: fractions of the time of all processors.
fn processors(root: &Root, tick: &mut Tick) {
    let Some(text) = root.read("/proc/stat") else { return };
    if let Some(switches) = field(&text, "ctxt").and_then(|value| value.parse().ok()) {
        tick.rate("host.context_switches", "1/s", switches);
    }
    let Some(line) = field(&text, "cpu") else { return };
    // user nice system idle iowait irq softirq steal; guest time is already in user and nice.
    let times: Vec<f64> = line.split_ascii_whitespace().filter_map(|t| t.parse().ok()).collect();
    let of = |index: usize| times.get(index).copied().unwrap_or(0.0);
    let parts = [
        ("host.cpu.user", of(0) + of(1)),
        ("host.cpu.system", of(2) + of(5) + of(6)),
        ("host.cpu.iowait", of(4)),
        ("host.cpu.steal", of(7)),
        ("host.cpu.idle", of(3)),
    ];
    // Shares of what the kernel accounted, which with few ticks is not quite the elapsed time.
    let changes = parts.map(|(name, now)| tick.counters.rate(name, tick.at_s, now));
    let total: f64 = changes.iter().flatten().sum();
    if total > 0.0 {
        for ((name, _), change) in parts.iter().zip(changes) {
            // A counter that went back (iowait may) counts as nothing.
            tick.level(name, "fraction", change.unwrap_or(0.0) / total);
        }
    }
}

/// `/proc/meminfo`.
fn memory(root: &Root, tick: &mut Tick) {
    let Some(text) = root.read("/proc/meminfo") else { return };
    for (key, name) in [
        ("MemAvailable", "host.memory.available"),
        ("Cached", "host.memory.cached"),
        ("Dirty", "host.memory.dirty"),
        ("Writeback", "host.memory.writeback"),
    ] {
        let kilobytes = field(&text, key).and_then(|value| value.split(' ').next()?.parse().ok());
        if let Some(kilobytes) = kilobytes {
            let kilobytes: f64 = kilobytes;
            tick.level(name, "bytes", kilobytes * 1024.0);
        }
    }
}

/// `/proc/pressure`: the totals are exact where the kernel's own averages are smoothed.
fn pressure(root: &Root, tick: &mut Tick) {
    for resource in ["cpu", "io", "memory"] {
        let Some(text) = root.read(format!("/proc/pressure/{resource}")) else { continue };
        for kind in ["some", "full"] {
            let total =
                field(&text, kind).and_then(|line| line.rsplit_once("total=")?.1.parse().ok());
            if let Some(microseconds) = total {
                let microseconds: f64 = microseconds;
                let name = format!("host.pressure.{resource}.{kind}");
                tick.rate(&name, "fraction", microseconds / 1e6);
            }
        }
    }
}

/// `/sys/block/DISK/stat`, the kernel's `Documentation/block/stat.rst`.
fn disk_statistics(root: &Root, disk: &str, prefix: &str, tick: &mut Tick) {
    let text = root
        .read(format!("/sys/block/{disk}/stat"))
        .or_else(|| root.read(format!("/sys/class/block/{disk}/stat")));
    let Some(text) = text else { return };
    let counters: Vec<f64> = text.split_ascii_whitespace().filter_map(|t| t.parse().ok()).collect();
    for (index, name, unit, factor) in [
        (0, "reads", "1/s", 1.0),
        (2, "read_bytes", "bytes/s", SECTOR),
        (4, "writes", "1/s", 1.0),
        (6, "write_bytes", "bytes/s", SECTOR),
        (9, "busy", "fraction", 1e-3),
        // Since Linux 5.5.
        (15, "flushes", "1/s", 1.0),
    ] {
        if let Some(counter) = counters.get(index) {
            tick.rate(&format!("{prefix}.{name}"), unit, counter * factor);
        }
    }
}

/// One process; false when it is gone.
fn process_usage(root: &Root, watched: &Watched, tick: &mut Tick) -> bool {
    let Some(usage) = process::usage(root, watched.pid) else { return false };
    let name = &watched.name;
    tick.rate(&format!("{name}.cpu.user"), "cores", usage.user_s);
    tick.rate(&format!("{name}.cpu.system"), "cores", usage.system_s);
    tick.level(&format!("{name}.memory.resident"), "bytes", usage.resident_bytes);
    tick.level(&format!("{name}.threads"), "count", usage.threads);
    if let Some((read, written)) = usage.storage.filter(|_| name != "generator") {
        tick.rate(&format!("{name}.io.read_bytes"), "bytes/s", read);
        tick.rate(&format!("{name}.io.write_bytes"), "bytes/s", written);
    }
    if let Some((periods, seconds)) =
        watched.throttling.as_ref().and_then(|throttling| throttling.read(root))
    {
        tick.rate(&format!("{name}.cgroup.throttled_periods"), "1/s", periods);
        tick.rate(&format!("{name}.cgroup.throttled"), "fraction", seconds);
    }
    true
}
