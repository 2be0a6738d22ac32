//! What follows from where a server runs, and from the settings of its machine.
//!
//! A placement brings its own kernel, control group, file system and limits: these are listed as
//! consequences of the factor. What it may *use* (`allowance.*`) is another matter: between levels of one
//! question it must be equal or be the factor, whatever else differs.

use crate::audit::Kind;
use crate::consequences::matches;

/// Names that follow from another placement, and why.
const OF_PLACEMENT: &[(&[&str], &str)] = &[
    (&["guest.*"], "a guest has its own kernel and its own devices"),
    (&["host.process.*"], "the server is a process of another kind there, under other limits"),
    (
        &["host.cgroup.*"],
        "each placement has its own control group; what it may use is compared apart",
    ),
    (&["host.data.*"], "each placement has its own file system; the disk below is compared apart"),
    (&["generator.*"], "the generator stands beside the server"),
    (
        &["place.user", "place.package.binary"],
        "the placement starts the same program in its own way",
    ),
    (
        &[
            "datadir",
            "basedir",
            "tmpdir",
            "socket",
            "pid_file",
            "log_error",
            "plugin_dir",
            "lc_messages_dir",
            "character_sets_dir",
            "slave_load_tmpdir",
            "replica_load_tmpdir",
            "secure_file_priv",
            "init_file",
            "bind_address",
            "general_log_file",
            "slow_query_log_file",
            "innodb_data_home_dir",
            "innodb_log_group_home_dir",
            "mecab_rc_file",
            "wsrep_data_home_dir",
            "wsrep_node_name",
            "report_host",
        ],
        "paths and addresses are the placement's own",
    ),
    (
        &[
            "thread_pool_size",
            "innodb_page_cleaners",
            "innodb_buffer_pool_instances",
            "innodb_parallel_read_threads",
            "innodb_read_io_threads",
            "innodb_purge_threads",
            "innodb_log_writer_threads",
            "innodb_doublewrite_files",
            "temptable_max_ram",
        ],
        "the server counts the processors and the memory that it sees",
    ),
    (
        &[
            "open_files_limit",
            "table_open_cache",
            "table_definition_cache",
            "innodb_open_files",
            "performance_schema_*",
        ],
        "the server sizes its caches by the limit of open files",
    ),
    (
        &["innodb_log_write_ahead_size"],
        "the server follows the block size of the disk that it sees",
    ),
    (&["innodb_use_native_aio"], "the kernel or the file system there refuses native aio"),
];

/// Keys of a placement that bear on more than `place.placement.*`, what they bear on, and why.
const OF_KEY: &[(&[&str], &[&str], &str)] = &[
    (
        &["cpus", "cpuset", "pin", "assign", "assign_list", "limits", "requests", "qos"],
        &["allowance.cpus", "host.cgroup.cpu*", "host.process.*", "guest.*"],
        "the processors are the factor",
    ),
    (
        &["cpus", "cpuset", "pin", "assign", "assign_list", "limits"],
        &[
            "thread_pool_size",
            "open_files_limit",
            "innodb_page_cleaners",
            "innodb_buffer_pool_instances",
            "innodb_parallel_read_threads",
            "innodb_read_io_threads",
            "innodb_purge_threads",
            "innodb_log_writer_threads",
            "innodb_doublewrite_files",
        ],
        "the server sizes itself by the processors that it sees",
    ),
    (
        &["memory", "limits", "requests", "qos"],
        &["allowance.memory_bytes", "host.cgroup.memory*", "host.process.*", "guest.*"],
        "the memory is the factor",
    ),
    (
        &["instances", "buffer_pool"],
        &["allowance.*", "server.*", "host.*", "place.*", "guest.*", "generator.*"],
        "several instances, each with its own part",
    ),
    (&["io_weight"], &["host.cgroup.*"], "the weight is the control group's"),
    (
        &["numa", "numa_nodes"],
        &["host.process.*", "host.cgroup.cpuset*", "guest.*"],
        "the nodes are the factor",
    ),
    (
        &["nice", "scheduler", "huge_pages", "allocator"],
        &["host.process.*"],
        "the setting is the process's",
    ),
    (
        &["storage", "disk", "image"],
        &[
            "host.data.*",
            "allowance.disk",
            "guest.*",
            "innodb_use_native_aio",
            "innodb_log_write_ahead_size",
        ],
        "the data lie elsewhere",
    ),
    (
        &["security_opt"],
        &["host.process.*", "innodb_use_native_aio"],
        "the kernel grants other calls",
    ),
    (
        &["network", "reach", "worker"],
        &["bind_address", "generator.*"],
        "the way to the server is the factor",
    ),
    (&["machine", "accel"], &["guest.*", "host.process.*"], "the guest's machine is the factor"),
    (&["node", "context", "controller"], &["host.*", "allowance.disk"], "another node"),
];

/// Keys of `[host]`, what shows them, and what follows.
const OF_MACHINE: &[(&str, &[&str], &[&str])] = &[
    ("numa_balancing", &["host.kernel.numa_balancing"], &[]),
    (
        "transparent_huge_pages",
        &["host.huge_pages.enabled"],
        &["host.huge_pages.*", "host.process.huge_pages*"],
    ),
    ("swappiness", &["host.vm.swappiness"], &["host.cgroup.memory.swappiness"]),
    ("dirty_ratio", &["host.vm.dirty_ratio"], &["host.vm.dirty_bytes"]),
    ("governor", &["host.cpu.governor"], &["host.cpu.*"]),
    ("io_scheduler", &["host.data.disk.scheduler"], &["host.data.disk.*"]),
    ("drop_caches", &["host.page_cache"], &[]),
    ("sysctl", &["host.kernel.*", "host.vm.*", "host.network.*"], &["host.cgroup.memory.*"]),
];

fn any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Where a difference in `name` belongs when `path`, at or below `placement`, is the factor.
pub(crate) fn of_placement(path: &str, name: &str) -> Option<(Kind, String)> {
    let found = |kind: Kind, reason: &str| Some((kind, reason.to_owned()));
    if name.starts_with("place.placement.") {
        return found(Kind::Factor, "the factor");
    }
    // `placement.docker.cpus` is one key; `placement` and `placement.docker` are the whole.
    let Some(key) = path.split('.').nth(2) else {
        if name.starts_with("allowance.") {
            let reason = "the levels may not use the same: give them equal processors, memory, \
                          buffer pool and disk, or ask about that alone";
            return found(Kind::Unexplained, reason);
        }
        let rule = OF_PLACEMENT.iter().find(|(names, _)| any(names, name));
        return rule.and_then(|(_, reason)| found(Kind::Consequence, reason));
    };
    let rule = OF_KEY.iter().find(|(keys, names, _)| keys.contains(&key) && any(names, name));
    rule.and_then(|(_, _, reason)| match name.starts_with("allowance.") {
        true => found(Kind::Factor, reason),
        false => found(Kind::Consequence, reason),
    })
}

/// The same when `path`, at or below `host`, is the factor.
pub(crate) fn of_machine(path: &str, name: &str) -> Option<(Kind, String)> {
    let key = path.split('.').nth(1);
    let rules = OF_MACHINE.iter().filter(|(own, ..)| key.is_none_or(|key| key == *own));
    for (_, shown, derived) in rules {
        if any(shown, name) {
            return Some((Kind::Factor, "the factor".to_owned()));
        }
        if any(derived, name) {
            return Some((Kind::Consequence, "the kernel derives it from the factor".to_owned()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(path: &str, name: &str) -> Option<Kind> {
        of_placement(path, name).map(|(kind, _)| kind)
    }

    #[test]
    fn another_placement_may_have_its_own_kernel_but_not_more_memory() {
        assert_eq!(kind("placement", "place.placement.kind"), Some(Kind::Factor));
        assert_eq!(kind("placement", "guest.host.kernel.release"), Some(Kind::Consequence));
        assert_eq!(kind("placement", "host.cgroup.cpu.quota"), Some(Kind::Consequence));
        assert_eq!(kind("placement", "allowance.memory_bytes"), Some(Kind::Unexplained));
        assert_eq!(kind("placement", "allowance.disk"), Some(Kind::Unexplained));
        for strict in [
            "place.package.hash",
            "place.dataset.hash",
            "server.variable.innodb_flush_method",
            "server.variable.max_connections",
            "host.kernel.release",
        ] {
            assert_eq!(kind("placement", strict), None, "{strict}");
        }
    }

    #[test]
    fn one_key_explains_what_it_bears_on_and_no_more() {
        assert_eq!(kind("placement.host.cpus", "allowance.cpus"), Some(Kind::Factor));
        assert_eq!(kind("placement.host.cpus", "allowance.memory_bytes"), None);
        let derived = kind("placement.host.assign", "server.variable.open_files_limit");
        assert_eq!(derived, Some(Kind::Consequence));
        assert_eq!(
            kind("placement.docker.storage", "host.data.filesystem"),
            Some(Kind::Consequence)
        );
        assert_eq!(kind("placement.docker.network", "host.data.filesystem"), None);
        assert_eq!(kind("placement.kvm.disk", "server.variable.innodb_page_size"), None);
        assert_eq!(kind("placement.kvm.disk.cache", "place.placement.disk"), Some(Kind::Factor));
    }

    #[test]
    fn a_setting_of_the_machine_explains_itself() {
        let kind = |path, name| of_machine(path, name).map(|(kind, _)| kind);
        assert_eq!(kind("host.swappiness", "host.vm.swappiness"), Some(Kind::Factor));
        assert_eq!(kind("host.swappiness", "host.vm.dirty_ratio"), None);
        assert_eq!(kind("host", "host.vm.dirty_ratio"), Some(Kind::Factor));
        let huge = kind("host.transparent_huge_pages", "host.process.huge_pages_enabled");
        assert_eq!(huge, Some(Kind::Consequence));
    }
}
