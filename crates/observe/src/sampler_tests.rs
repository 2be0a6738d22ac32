//! The sampler on a made-up machine, on this one, and on a server that does not answer.

#![allow(clippy::unwrap_used)]

use std::fs;

use super::system::System;
use super::*;
use crate::facts::Root;
use crate::golden::Golden;

fn value(record: &Record, name: &str) -> f64 {
    let series = record.series.get(name).unwrap_or_else(|| panic!("no {name}"));
    *series.values.last().unwrap()
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}");
}

/// A golden tree, whose counters the test moves on.
fn moving_tree() -> tempfile::TempDir {
    Golden::copy("linux-6.1-cgroup2").dir
}

#[test]
fn counters_become_rates_and_levels_stay() {
    let tree = moving_tree();
    let write = |path: &str, text: &str| {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let stat = |user: u64, system: u64| {
        format!("4711 (mysqld) S 1 1 1 0 -1 0 9 0 0 0 {user} {system} 0 0 20 0 39 0 9 9 500 1 1 1")
    };
    write("proc/stat", "cpu  100 10 50 800 20 1 2 5 0 0\ncpu0 1 1 1 1\nctxt 1000\n");
    write(
        "proc/pressure/io",
        "some avg10=9.0 avg60=9 avg300=9 total=1000000\nfull avg10=0 avg60=0 avg300=0 total=500000\n",
    );
    write("proc/4711/stat", &stat(1000, 500));
    let shared = Shared::default();
    let target = SamplerTarget {
        name: "server".to_owned(),
        pid: Some(4711),
        data_dir: Some("/srv/i/data".into()),
        connection: None,
        inside: None,
    };
    let root = Root::at(tree.path());
    let mut system = System::new(root, &[target], Some(4242), &shared);
    let mut record = Record::default();
    let gone = system.sample(10.0, &mut record);
    assert_eq!(gone, ["generator: process 4242 is gone"]);
    assert!(!record.series.contains_key("host.cpu.user"));
    close(value(&record, "host.memory.dirty"), 12.0 * 1024.0);
    close(value(&record, "host.memory.writeback"), 0.0);
    close(value(&record, "server.threads"), 39.0);

    write("proc/stat", "cpu  180 20 60 880 30 1 2 15 0 0\ncpu0 1 1 1 1\nctxt 5000\n");
    write(
        "proc/pressure/io",
        "some avg10=9.0 avg60=9 avg300=9 total=1500000\nfull avg10=0 avg60=0 avg300=0 total=500000\n",
    );
    write("proc/4711/stat", &stat(1300, 550));
    write("proc/4711/io", "read_bytes: 4096\nwrite_bytes: 28192\n");
    write(
        "sys/fs/cgroup/ceteris.slice/mysqld.service/cpu.stat",
        "nr_periods 220\nnr_throttled 17\nthrottled_usec 1350000\n",
    );
    write("sys/devices/pci/block/nvme0n1/stat", "30 0 1000 5 60 0 2600 9 0 1700 14 0 0 0 0 26 3\n");
    system.sample(12.0, &mut record);
    // 200 ticks went by: 90 user and nice, 10 system, 80 idle, 10 iowait, 10 steal.
    close(value(&record, "host.cpu.user"), 0.45);
    close(value(&record, "host.cpu.system"), 0.05);
    close(value(&record, "host.cpu.idle"), 0.40);
    close(value(&record, "host.cpu.iowait"), 0.05);
    close(value(&record, "host.cpu.steal"), 0.05);
    close(value(&record, "host.context_switches"), 2000.0);
    close(value(&record, "host.pressure.io.some"), 0.25);
    close(value(&record, "host.pressure.io.full"), 0.0);
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    close(value(&record, "server.cpu.user"), 300.0 / ticks / 2.0);
    close(value(&record, "server.cpu.system"), 50.0 / ticks / 2.0);
    close(value(&record, "server.io.write_bytes"), 10_000.0);
    close(value(&record, "server.cgroup.throttled_periods"), 5.0);
    close(value(&record, "server.cgroup.throttled"), 0.5);
    close(value(&record, "host.disk.reads"), 10.0);
    close(value(&record, "host.disk.read_bytes"), 51_200.0);
    close(value(&record, "host.disk.write_bytes"), 256_000.0);
    close(value(&record, "host.disk.busy"), 0.5);
    close(value(&record, "host.disk.flushes"), 10.0);
    assert_eq!(record.series["host.disk.busy"].at_monotonic_s, [12.0]);
    assert!(shared.record().problems.is_empty());
}

#[test]
fn a_counter_that_went_back_makes_a_gap_and_not_a_number() {
    let mut counters = Counters::default();
    assert_eq!(counters.rate("x", 1.0, 100.0), None);
    assert_eq!(counters.rate("x", 2.0, 150.0), Some(50.0));
    assert_eq!(counters.rate("x", 3.0, 10.0), None);
    assert_eq!(counters.rate("x", 5.0, 30.0), Some(10.0));
    assert_eq!(counters.rate("x", 5.0, 40.0), None);
}

#[test]
fn silent_status_series_are_left_out_and_others_kept() {
    let mut record = Record::default();
    for (name, value) in
        [("server.status.A", 0.0), ("server.status.B", 1.0), ("host.cpu.steal", 0.0)]
    {
        record.push(1.0, name, "1/s", value);
        record.push(2.0, name, "1/s", 0.0);
    }
    record.push(3.0, "host.cpu.steal", "fraction", f64::NAN);
    let kept: Vec<String> = telling(record.series).into_iter().map(|s| s.name).collect();
    assert_eq!(kept, ["host.cpu.steal", "server.status.B"]);
}

#[test]
fn this_machine_is_sampled_on_whole_seconds() {
    let target = SamplerTarget {
        name: "server".to_owned(),
        pid: Some(std::process::id()),
        data_dir: Some(std::env::temp_dir()),
        connection: None,
        inside: None,
    };
    let started = monotonic_ns();
    let sampler = Sampler::start(vec![target], Some(std::process::id()));
    // As many ticks as the machine gives; three at least, however slow it is.
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let record = sampler.shared.record();
        if record.series.get("host.memory.cached").is_some_and(|s| s.values.len() >= 3) {
            break;
        }
    }
    let (series, problems) = sampler.stop();
    let of = |name: &str| {
        series.iter().find(|series| series.name == name).unwrap_or_else(|| panic!("no {name}"))
    };
    let total: f64 = ["user", "system", "iowait", "steal", "idle"]
        .iter()
        .map(|part| of(&format!("host.cpu.{part}")).values[0])
        .sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    for name in ["server.cpu.user", "generator.cpu.system", "generator.memory.resident"] {
        assert!(!of(name).values.is_empty());
    }
    let times = &of("host.memory.cached").at_monotonic_s;
    assert!(times[0] * 1e9 >= started as f64);
    assert!(times.windows(2).all(|pair| pair[1].floor() > pair[0].floor()), "{times:?}");
    let allowed = |line: &String| line.contains("no disk below its data directory");
    assert!(problems.iter().all(allowed), "{problems:?}");
}

/// A server that accepts and says nothing: the machine's series go on and `stop` comes back.
#[test]
fn a_server_that_does_not_answer_blinds_nobody() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let opts = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port);
    let target = SamplerTarget {
        name: "server".to_owned(),
        pid: None,
        data_dir: None,
        connection: Some(opts.into()),
        inside: None,
    };
    let sampler = Sampler::start(vec![target], None);
    loop {
        std::thread::sleep(Duration::from_millis(100));
        if sampler.shared.record().series.contains_key("host.cpu.idle") {
            break;
        }
    }
    let waiting = sampler.threads.iter().filter(|thread| !thread.is_finished()).count();
    assert_eq!(waiting, 2, "the question is still open");
    let (series, _) = sampler.stop();
    assert!(series.iter().any(|series| series.name == "host.cpu.idle"));
    assert!(!series.iter().any(|series| series.name.contains(".status.")));
}

#[test]
fn a_server_that_is_not_there_is_a_line_and_no_failure() {
    let opts = mysql::OptsBuilder::new().socket(Some("/nonexistent/socket"));
    let target = SamplerTarget {
        name: "server".to_owned(),
        pid: Some(u32::MAX),
        data_dir: None,
        connection: Some(opts.into()),
        inside: None,
    };
    let sampler = Sampler::start(vec![target], None);
    loop {
        std::thread::sleep(Duration::from_millis(100));
        if sampler.shared.record().problems.len() >= 2 {
            break;
        }
    }
    let (_, problems) = sampler.stop();
    assert!(problems.iter().any(|line| line.starts_with("server: status not sampled: ")));
    assert!(problems.contains(&format!("server: process {} is gone", u32::MAX)));
}
