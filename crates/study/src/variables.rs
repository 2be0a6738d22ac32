//! What a study may set of a server's variables, and which of them change a data directory.
//!
//! The one list of each: checks point at the line of the study, placements refuse what reaches them
//! another way, datasets are loaded under the file-changing ones, and the audit expects their
//! differences. Names here are as [`canonical`] writes them.

/// Variables that ceteris sets itself for every instance, or that would turn a server into something
/// else than a server. Sorted.
pub const RESERVED: &[&str] = &[
    "admin_address",
    "admin_port",
    "aria_log_dir_path",
    "basedir",
    "bind_address",
    "bootstrap",
    "character_sets_dir",
    "chroot",
    "console",
    "daemonize",
    "datadir",
    "defaults_extra_file",
    "defaults_file",
    "extra_port",
    "gdb",
    "help",
    "init_file",
    "initialize",
    "initialize_insecure",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_temp_tablespaces_dir",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "lc_messages_dir",
    "log_error",
    "mysqlx_bind_address",
    "mysqlx_port",
    "mysqlx_socket",
    "no_defaults",
    "pid_file",
    "plugin_dir",
    "port",
    "replica_load_tmpdir",
    "secure_file_priv",
    "skip_grant_tables",
    "skip_networking",
    "slave_load_tmpdir",
    "socket",
    "tmpdir",
    "user",
    "validate_config",
    "verbose",
    "version",
];

/// Variables that change the files of a data directory when it is made or loaded. Sorted.
pub const FILE_CHANGING: &[&str] = &[
    "aria_log_file_size",
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "default_table_encryption",
    "innodb_autoextend_increment",
    "innodb_checksum_algorithm",
    "innodb_compression_algorithm",
    "innodb_compression_default",
    "innodb_compression_level",
    "innodb_data_file_path",
    "innodb_default_row_format",
    "innodb_encrypt_log",
    "innodb_encrypt_tables",
    "innodb_extend_and_initialize",
    "innodb_file_format",
    "innodb_file_per_table",
    "innodb_fill_factor",
    "innodb_large_prefix",
    "innodb_log_block_size",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "innodb_redo_log_encrypt",
    "innodb_temp_data_file_path",
    "innodb_undo_log_encrypt",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
];

/// Variables whose value names files that a server writes; relative to its data directory unless
/// the value leaves it. Sorted.
pub const FILE_NAMING: &[&str] = &[
    "aria_log_path",
    "audit_log_file",
    "general_log_file",
    "innodb_buffer_pool_filename",
    "innodb_data_file_path",
    "innodb_doublewrite_dir",
    "innodb_doublewrite_file",
    "innodb_parallel_doublewrite_path",
    "innodb_temp_data_file_path",
    "log",
    "log_basename",
    "log_bin",
    "log_bin_index",
    "log_isam",
    "log_slow_queries",
    "log_slow_query_file",
    "log_tc",
    "master_info_file",
    "relay_log",
    "relay_log_index",
    "relay_log_info_file",
    "server_audit_file_path",
    "slow_query_log_file",
];

/// A variable's one name: `Innodb-Page-Size` is `innodb_page_size`.
pub fn canonical(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

/// The name without `loose_`, which only says how to take an unknown one.
fn bare(name: &str) -> String {
    let name = canonical(name);
    name.strip_prefix("loose_").map(str::to_owned).unwrap_or(name)
}

/// Whether a study may not set it; any spelling, abbreviations included, which servers accept.
pub fn is_reserved(name: &str) -> bool {
    // Short or known beginnings are variables of their own.
    const OWN: [&str; 2] = ["innodb", "mysqlx"];
    let name = bare(name);
    let abbreviates = name.len() >= 5 && !OWN.contains(&name.as_str());
    RESERVED.iter().any(|r| *r == name || (abbreviates && r.starts_with(&name)))
}

/// Whether it changes the files of a data directory; any spelling, and also as `skip_x`, which sets
/// x to off.
pub fn changes_files(name: &str) -> bool {
    let name = bare(name);
    let negated = ["skip_", "disable_", "enable_"].iter().find_map(|p| name.strip_prefix(p));
    [Some(name.as_str()), negated].into_iter().flatten().any(|name| FILE_CHANGING.contains(&name))
}

/// Whether the value of this variable names a file outside of the data directory, where one run's
/// files would meet the next run's.
pub fn leaves_directory(name: &str, value: &str) -> bool {
    // `ibdata1:12M;/elsewhere/ibdata2:10M` names several files, each with its size.
    let names = || value.split(';').map(|file| file.trim().trim_matches(['"', '\'']));
    let outside = |file: &str| file.starts_with('/') || file.split(['/', ':']).any(|p| p == "..");
    FILE_NAMING.contains(&bare(name).as_str()) && names().any(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_canonical_and_apart() {
        for list in [RESERVED, FILE_CHANGING, FILE_NAMING] {
            assert!(list.is_sorted());
            assert!(list.iter().all(|name| canonical(name) == *name));
        }
        // What a study may not set needs no rule for how it may be set.
        assert!(FILE_CHANGING.iter().chain(FILE_NAMING).all(|name| !is_reserved(name)));
    }

    #[test]
    fn names_count_in_any_spelling() {
        assert_eq!(canonical("Innodb-Page-Size"), "innodb_page_size");
        assert!(is_reserved("loose-Secure-File-Priv") && !is_reserved("innodb_page_size"));
        assert!(is_reserved("skip_grant_table") && is_reserved("Skip-Networkin"));
        assert!(
            !is_reserved("mysqlx") && !is_reserved("innodb") && !is_reserved("skip_name_resolve")
        );
        assert!(changes_files("loose_Innodb-Page-Size"));
        assert!(changes_files("skip-innodb-file-per-table"));
        assert!(!changes_files("innodb_flush_method"));
    }

    #[test]
    fn files_outside_of_the_data_directory_are_seen() {
        for (name, value) in [
            ("log_bin", "/var/lib/x/bin"),
            ("Log-Bin", "../bin"),
            ("loose_innodb_doublewrite_dir", "/tmp"),
            ("general_log_file", "logs/../../general.log"),
            ("innodb_data_file_path", "ibdata1:12M;/x/ibdata2:10M:autoextend"),
            ("innodb_data_file_path", "../ibdata1:12M"),
            ("relay_log_index", " '/x' "),
        ] {
            assert!(leaves_directory(name, value), "{name} = {value}");
        }
        for (name, value) in [
            ("log_bin", "bin"),
            ("log_bin", "ON"),
            ("slow_query_log_file", "logs/slow..log"),
            ("innodb_data_file_path", "ibdata1:12M:autoextend"),
            ("ssl_ca", "/etc/ssl/ca.pem"),
        ] {
            assert!(!leaves_directory(name, value), "{name} = {value}");
        }
    }
}
