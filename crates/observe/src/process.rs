//! One process: how it may run (for the fingerprint) and what it used (for the sampler).
//!
//! From `/proc/PID` (proc(5)).

use crate::Fingerprint;
use crate::facts::{Root, field};
use crate::library;

/// Environment variables that change how a server allocates or what code it runs.
const ENVIRONMENT: &[&str] =
    &["LD_PRELOAD", "MALLOC_ARENA_MAX", "MALLOC_CONF", "GLIBC_TUNABLES", "TCMALLOC_", "MALLOC_"];

/// `/proc/PID/limits` lines that a server can run into, with our names.
const LIMITS: &[(&str, &str)] = &[
    ("Max open files", "nofile"),
    ("Max locked memory", "memlock"),
    ("Max address space", "address_space"),
    ("Max stack size", "stack"),
    ("Max core file size", "core"),
    ("Max processes", "processes"),
];

/// Fields of `/proc/PID/stat` after the name in parentheses, which may hold spaces: index 0 is the
/// state, field 3 of proc(5).
fn stat_fields(root: &Root, pid: u32) -> Option<Vec<String>> {
    let text = root.read(format!("/proc/{pid}/stat"))?;
    let after_name = &text[text.rfind(')')? + 1..];
    Some(after_name.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Everything that says how the process may run, under `host.process.`. Empty when it is gone.
pub(crate) fn settings(root: &Root, pid: u32) -> Fingerprint {
    let mut facts = Fingerprint::new();
    let mut keep = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(format!("host.process.{name}"), value);
        }
    };
    if let Some(stat) = stat_fields(root, pid) {
        // Fields 19, 40 and 41 of proc(5).
        keep("nice", stat.get(16).cloned());
        keep("realtime_priority", stat.get(37).cloned());
        keep("scheduler", stat.get(38).map(|policy| scheduler_name(policy)));
    }
    if let Some(status) = root.read(format!("/proc/{pid}/status")) {
        let of = |key: &str| field(&status, key).map(str::to_owned);
        keep("cpus_allowed", of("Cpus_allowed_list"));
        keep("memory_nodes_allowed", of("Mems_allowed_list"));
        keep("seccomp", of("Seccomp"));
        keep("no_new_privileges", of("NoNewPrivs"));
        keep("huge_pages_enabled", of("THP_enabled"));
    }
    keep("oom_score_adj", root.read(format!("/proc/{pid}/oom_score_adj")));
    keep("timer_slack_ns", root.read(format!("/proc/{pid}/timerslack_ns")));
    keep("io_scheduling", root.read(format!("/proc/{pid}/io_prio")));
    if let Some(limits) = root.read(format!("/proc/{pid}/limits")) {
        for (line, name) in LIMITS {
            let values = limits.lines().find_map(|text| text.strip_prefix(line));
            let mut words = values.unwrap_or_default().split_ascii_whitespace();
            if let (Some(soft), Some(hard)) = (words.next(), words.next()) {
                keep(&format!("limit.{name}"), Some(format!("{soft} (hard {hard})")));
            }
        }
    }
    if let Some(environment) = root.read(format!("/proc/{pid}/environ")) {
        for variable in environment.split('\0') {
            if let Some((name, value)) = variable.split_once('=')
                && ENVIRONMENT
                    .iter()
                    .any(|known| name == *known || known.ends_with('_') && name.starts_with(known))
            {
                keep(&format!("environment.{name}"), Some(value.to_owned()));
            }
        }
    }
    for (name, file) in library::mapped(root, pid) {
        keep(&format!("library.{name}"), Some(file));
    }
    facts
}

fn scheduler_name(policy: &str) -> String {
    let name = match policy {
        "0" => "other",
        "1" => "fifo",
        "2" => "rr",
        "3" => "batch",
        "5" => "idle",
        "6" => "deadline",
        "7" => "ext",
        unknown => return unknown.to_owned(),
    };
    name.to_owned()
}

/// What a process has used so far, all its threads together, those that ended included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    /// CPU seconds in user space.
    pub(crate) user_s: f64,
    /// CPU seconds in the kernel.
    pub(crate) system_s: f64,
    /// Threads now.
    pub(crate) threads: f64,
    /// Resident bytes now.
    pub(crate) resident_bytes: f64,
    /// Bytes fetched from and sent to storage, where readable.
    pub(crate) storage: Option<(f64, f64)>,
}

/// `None` when the process is gone.
pub(crate) fn usage(root: &Root, pid: u32) -> Option<Usage> {
    let stat = stat_fields(root, pid)?;
    let number = |index: usize| stat.get(index)?.parse::<f64>().ok();
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let io = root.read(format!("/proc/{pid}/io"));
    let storage = io.and_then(|text| {
        let of = |key: &str| field(&text, key)?.parse::<f64>().ok();
        Some((of("read_bytes")?, of("write_bytes")?))
    });
    Some(Usage {
        // Fields 14, 15, 20 and 24 of proc(5).
        user_s: number(11)? / ticks,
        system_s: number(12)? / ticks,
        threads: number(17)?,
        resident_bytes: number(21)? * rustix::param::page_size() as f64,
        storage,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn this_process_is_readable() {
        let pid = std::process::id();
        let facts = settings(&Root::machine(), pid);
        for name in ["nice", "scheduler", "cpus_allowed", "oom_score_adj", "limit.nofile"] {
            assert!(facts.contains_key(&format!("host.process.{name}")), "{name}: {facts:?}");
        }
        let used = usage(&Root::machine(), pid).unwrap();
        assert!(used.threads >= 1.0 && used.resident_bytes > 1e5);
    }

    #[test]
    fn a_process_that_is_gone_is_no_error() {
        assert!(settings(&Root::machine(), u32::MAX).is_empty());
        assert_eq!(usage(&Root::machine(), u32::MAX), None);
    }

    #[test]
    fn names_with_parentheses_and_spaces_do_not_shift_the_fields() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        let line = "7 (a) (b c) S 1 7 7 0 -1 4194560 9 0 0 0 250 125 0 0 20 -5 33 0 99 1000 77 1 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 3 0 0 0";
        std::fs::write(tree.path().join("proc/7/stat"), line).unwrap();
        let root = Root::at(tree.path());
        let used = usage(&root, 7).unwrap();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!((used.user_s, used.system_s), (250.0 / ticks, 125.0 / ticks));
        assert_eq!((used.threads, used.storage), (33.0, None));
        let facts = settings(&root, 7);
        assert_eq!(facts["host.process.nice"], "-5");
        assert_eq!(facts["host.process.scheduler"], "batch");
    }
}
