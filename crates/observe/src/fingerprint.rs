//! Fingerprints: effective state, read and never assumed.
//!
//! The conductor takes one before and one after each run. Whatever cannot be equal between two
//! instances of one condition (its port, its socket, its identity) is left out here by name, with
//! the reason; whatever is left in must be equal, and the audit asks why where it is not.

use std::path::Path;

use mysql::prelude::Queryable;

use crate::Fingerprint;
use crate::facts::Root;
use crate::machine;

/// Variables that say who an instance is, where a file or a connection stands, or what a session
/// did, instead of how the server is set. A trailing `*` stands for any rest.
const LEFT_OUT: &[(&str, &str)] = &[
    ("port", "each instance has its own"),
    ("admin_port", "each instance has its own"),
    ("report_port", "follows the port"),
    ("mysqlx_port", "each instance has its own"),
    ("socket", "each instance has its own"),
    ("mysqlx_socket", "each instance has its own"),
    ("pid_file", "each instance has its own"),
    ("server_id", "identity of an instance in replication, which is off"),
    ("server_id_bits", "identity of an instance in replication, which is off"),
    ("server_uuid", "drawn at the first start of a data directory"),
    ("server_uid", "drawn at the first start of a data directory"),
    ("hostname", "identity of the machine, which the host's facts describe"),
    ("wsrep_node_name", "the host name"),
    ("wsrep_start_position", "a position"),
    ("general_log_file", "named after the host; the log is off unless general_log says otherwise"),
    ("slow_query_log_file", "named after the host"),
    ("log_slow_query_file", "named after the host"),
    ("log_slow_queries_file", "named after the host"),
    ("log_bin_basename", "a path; log_bin says whether there is one"),
    ("log_bin_index", "a path; log_bin says whether there is one"),
    ("relay_log", "named after the host"),
    ("relay_log_basename", "named after the host"),
    ("relay_log_index", "named after the host"),
    ("timestamp", "the time of asking"),
    ("system_time_zone", "a name that changes with summer time; time_zone is compared"),
    ("gtid_executed", "a position"),
    ("gtid_purged", "a position"),
    ("gtid_owned", "of the session"),
    ("gtid_next", "of the session"),
    ("gtid_binlog_pos", "a position"),
    ("gtid_binlog_state", "a position"),
    ("gtid_current_pos", "a position"),
    ("gtid_slave_pos", "a position"),
    ("gtid_seq_no", "of the session"),
    ("last_gtid", "of the session"),
    ("last_insert_id", "of the session"),
    ("insert_id", "of the session"),
    ("identity", "of the session"),
    ("rand_seed1", "of the session"),
    ("rand_seed2", "of the session"),
    ("pseudo_thread_id", "of the session"),
    ("pseudo_slave_mode", "of the session"),
    ("pseudo_replica_mode", "of the session"),
    ("error_count", "of the session"),
    ("warning_count", "of the session"),
    ("in_transaction", "of the session"),
    ("in_predicate_subquery", "of the session"),
    ("proxy_user", "of the session"),
    ("external_user", "of the session"),
    ("statement_id", "of the session"),
    ("original_commit_timestamp", "of the session"),
    ("innodb_buffer_pool_load_abort", "a command, not a setting"),
    ("innodb_buffer_pool_load_now", "a command, not a setting"),
    ("innodb_buffer_pool_dump_now", "a command, not a setting"),
    ("innodb_log_checkpoint_now", "a command, not a setting"),
    ("innodb_purge_run_now", "a command, not a setting"),
    ("innodb_purge_stop_now", "a command, not a setting"),
    ("keyring_*", "may hold secrets"),
    ("report_password", "may hold a secret"),
    ("wsrep_sst_auth", "may hold a secret"),
    ("replication_optimize_for_static_plugin_config", "deprecated alias without effect"),
];

/// What this machine is and how it is set, as far as it can bear on a server whose data is in
/// `data_dir` and whose process is `server_pid`: names under `host.`.
///
/// `host.process.` and `host.cgroup.` are the server process's own scheduling, limits, environment
/// and control groups; `host.data.` is the file system and disk of the data directory. Only what
/// should be equal between runs; what cannot be read is absent. Sizes ending in `_bytes` are bytes.
pub fn host_fingerprint(data_dir: &Path, server_pid: Option<u32>) -> Fingerprint {
    machine::facts(&Root::machine(), data_dir, server_pid)
}

/// What the server says of itself: names under `server.` (`server.version`,
/// `server.variable.innodb_io_capacity`). Occurrences of `instance_dir` in values become
/// `<instance>`, so that two instances of one condition look the same.
///
/// Global variables (in small letters) without those that are an instance's identity, plug-ins,
/// components, and whether replication runs.
///
/// # Errors
/// The server's, or the connection's.
pub fn server_fingerprint(
    connection: &mut mysql::Conn,
    instance_dir: &Path,
) -> Result<Fingerprint, mysql::Error> {
    let paths = instance_paths(instance_dir);
    let mut facts = Fingerprint::new();
    let version: Option<String> = connection.query_first("SELECT VERSION()")?;
    facts.insert("server.version".to_owned(), version.unwrap_or_default());

    let variables: Vec<(String, Option<String>)> = connection.query("SHOW GLOBAL VARIABLES")?;
    for (name, value) in variables {
        let name = name.to_ascii_lowercase();
        if left_out(&name).is_none() {
            let value = neutral(&value.unwrap_or_default(), &paths);
            facts.insert(format!("server.variable.{name}"), value);
        }
    }

    // Text and missing columns differ between servers; rows are read by position.
    for row in connection.query::<mysql::Row, _>("SHOW PLUGINS")? {
        let text = |index: usize| row.get_opt::<Option<String>, _>(index)?.ok()?;
        let Some(name) = text(0) else { continue };
        let status = text(1).unwrap_or_default();
        let value = match text(3) {
            Some(library) => format!("{status} ({})", neutral(&library, &paths)),
            None => status,
        };
        facts.insert(format!("server.plugin.{name}"), value);
    }
    // MySQL 8 only; elsewhere there is no such table.
    if let Ok(urns) = connection.query::<String, _>("SELECT component_urn FROM mysql.component") {
        for urn in urns {
            facts.insert(format!("server.component.{urn}"), "installed".to_owned());
        }
    }
    facts.insert("server.replication".to_owned(), replication(connection)?);
    Ok(facts)
}

/// `off`, or how many sources the server is set to follow.
fn replication(connection: &mut mysql::Conn) -> Result<String, mysql::Error> {
    // MySQL 8.4 knows only the new words, MySQL 5 only the old, MariaDB both.
    for statement in ["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"] {
        match connection.query::<mysql::Row, _>(statement) {
            Ok(rows) if rows.is_empty() => return Ok("off".to_owned()),
            Ok(rows) => return Ok(format!("follows {} sources", rows.len())),
            // Not known to this server, or not allowed to us.
            Err(mysql::Error::MySqlError(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok("unknown".to_owned())
}

/// Why a variable is no part of the fingerprint, if it is none.
fn left_out(name: &str) -> Option<&'static str> {
    LEFT_OUT
        .iter()
        .find(|(pattern, _)| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *pattern,
        })
        .map(|(_, reason)| *reason)
}

/// The directory as given and as the kernel resolves it, the longer first.
fn instance_paths(directory: &Path) -> Vec<String> {
    let mut paths = vec![directory.display().to_string()];
    paths.extend(std::fs::canonicalize(directory).map(|path| path.display().to_string()));
    for path in &mut paths {
        path.truncate(path.trim_end_matches('/').len());
    }
    // An empty path, or the root, would stand in every value.
    paths.retain(|path| !path.is_empty());
    paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
    paths.dedup();
    paths
}

/// The value without the instance's own path. Only whole components: `/x/1` is no part of `/x/10`.
fn neutral(value: &str, paths: &[String]) -> String {
    let mut text = value.to_owned();
    for path in paths {
        let mut result = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(path.as_str()) {
            let after = &rest[at + path.len()..];
            let whole = !after.starts_with(|c: char| c.is_alphanumeric() || "-_.".contains(c));
            result.push_str(&rest[..at]);
            result.push_str(if whole { "<instance>" } else { path });
            rest = after;
        }
        result.push_str(rest);
        text = result;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_left_out_and_settings_are_not() {
        for name in
            ["port", "server_uuid", "gtid_executed", "system_time_zone", "keyring_file_data"]
        {
            assert!(left_out(name).is_some(), "{name}");
        }
        for name in [
            "time_zone",
            "gtid_mode",
            "gtid_strict_mode",
            "innodb_io_capacity",
            "report_host",
            "datadir",
        ] {
            assert_eq!(left_out(name), None, "{name}");
        }
    }

    #[test]
    fn paths_of_the_instance_become_neutral() {
        let paths = vec!["/x/1".to_owned()];
        assert_eq!(neutral("/x/1/data/", &paths), "<instance>/data/");
        assert_eq!(neutral("/x/1", &paths), "<instance>");
        assert_eq!(neutral("/x/10/data:/x/1", &paths), "/x/10/data:<instance>");
        assert_eq!(neutral("a=/x/1,b=/x/1/t", &paths), "a=<instance>,b=<instance>/t");
        assert_eq!(neutral("/usr/", &instance_paths(Path::new("/"))), "/usr/");
    }
}
