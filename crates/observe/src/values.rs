//! Values and names of server variables in their many spellings.
//!
//! Used by the audit to see whether two levels asked for the same thing, whether the server does
//! what was asked, and which variable an option of the `[mysqld]` section is.

use serde_json::Value;

/// Variables that are one thing under several names, over all supported servers.
const SAME: &[&[&str]] = &[
    &["transaction_isolation", "tx_isolation"],
    &["transaction_read_only", "tx_read_only"],
    &["table_open_cache", "table_cache"],
    &["default_storage_engine", "storage_engine"],
    &["key_buffer_size", "key_buffer"],
    &["sort_buffer_size", "sort_buffer"],
    &["join_buffer_size", "join_buffer"],
    &["read_buffer_size", "record_buffer"],
    &["tmp_table_size", "tmp_memory_table_size"],
    &["tmp_disk_table_size", "max_tmp_disk_table_size"],
    &["character_set_server", "default_character_set"],
    &["collation_server", "default_collation"],
    &["time_zone", "default_time_zone"],
    &["slow_query_log", "log_slow_query", "log_slow_queries"],
    &["slow_query_log_file", "log_slow_query_file"],
    &["long_query_time", "log_slow_query_time"],
    &["min_examined_row_limit", "log_slow_min_examined_row_limit"],
    &["general_log", "log"],
    &["log_warnings", "warnings"],
    &["log_slave_updates", "log_replica_updates"],
    &["myisam_recover_options", "myisam_recover"],
    &["locked_in_memory", "memlock"],
    &["skip_external_locking", "external_locking"],
    &["query_cache_type", "query_cache"],
    &["sync_master_info", "sync_source_info"],
    &["sync_relay_log_info", "sync_applier_metadata"],
    &["authentication_policy", "default_authentication_plugin"],
    &["have_ssl", "ssl"],
    &["core_file", "skip_core_file"],
    &["log_bin", "skip_log_bin"],
    &["host_cache_size", "skip_host_cache"],
];

/// Options that no variable shows, or not on every server: their effect cannot be read back by name.
/// A trailing `*` stands for any rest.
const INVISIBLE: &[&str] = &[
    "binlog_do_db",
    "binlog_ignore_db",
    "performance_schema_consumer_*",
    "replicate_*",
    "character_set_client_handshake",
    "skip_character_set_client_handshake",
    "performance_schema_instrument",
    "plugin_load",
    "plugin_load_add",
    "early_plugin_load",
    "stack_trace",
    "skip_stack_trace",
    "gdb",
    "temp_pool",
    "sysdate_is_now",
    "innodb_status_file",
    "ansi",
    "safe_user_create",
    "symbolic_links",
];

/// An option's name as the server's variables write it: underscores, small letters, without the
/// `loose_` that only says how to take an unknown one.
pub(crate) fn variable_name(option: &str) -> String {
    let name = option.trim().to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("loose_").unwrap_or(&name).to_owned()
}

/// Every variable that the option may be shown as, its own name first.
pub(crate) fn variables_of(option: &str) -> Vec<String> {
    let name = variable_name(option);
    let mut names = vec![name.clone()];
    // `skip_x` and `disable_x` set x to OFF, unless a variable is itself called so.
    for prefix in ["skip_", "disable_", "enable_"] {
        names.extend(name.strip_prefix(prefix).map(str::to_owned));
    }
    for group in SAME {
        if group.iter().any(|same| names.iter().any(|known| known == same)) {
            names.extend(group.iter().map(|same| (*same).to_owned()));
        }
    }
    // The names that replaced `slave` and `master` in MySQL 8.0.26 and later.
    for (old, new) in [("slave", "replica"), ("master", "source")] {
        let renamed: Vec<String> = names
            .iter()
            .flat_map(|known| [known.replace(old, new), known.replace(new, old)])
            .filter(|other| !names.contains(other))
            .collect();
        names.extend(renamed);
    }
    let mut unique = Vec::with_capacity(names.len());
    for one in names {
        if !unique.contains(&one) {
            unique.push(one);
        }
    }
    unique
}

/// Whether an option is known to be shown by no variable.
pub(crate) fn is_invisible(option: &str) -> bool {
    let name = variable_name(option);
    INVISIBLE.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *pattern,
    })
}

/// A value of the study as the `[mysqld]` section writes it.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::Bool(true) => "ON".to_owned(),
        Value::Bool(false) => "OFF".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether two spellings mean the same: `256M` and `268435456`, `ON` and `1`, `10.000000` and `10`,
/// `A,B` and `b,a`.
pub(crate) fn same_value(a: &str, b: &str) -> bool {
    a == b || canonical(a) == canonical(b)
}

fn canonical(value: &str) -> String {
    let text = value.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    match text.as_str() {
        "on" | "true" | "yes" => return "1".to_owned(),
        "off" | "false" | "no" => return "0".to_owned(),
        _ => {}
    }
    if let Some(bytes) = whole_number(&text) {
        return bytes.to_string();
    }
    if let Ok(number) = text.parse::<f64>() {
        return number.to_string();
    }
    let mut parts: Vec<&str> = text.split(',').map(str::trim).collect();
    parts.sort_unstable();
    parts.join(",")
}

/// A whole number with an optional K, M, G, T, P or E for powers of 1024.
fn whole_number(text: &str) -> Option<i128> {
    let shift = match text.as_bytes().last()? {
        b'k' => 10,
        b'm' => 20,
        b'g' => 30,
        b't' => 40,
        b'p' => 50,
        b'e' => 60,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    digits.parse::<i64>().ok().map(|number| i128::from(number) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_value_are_the_same() {
        for (a, b) in [
            ("256M", "268435456"),
            ("1g", "1024M"),
            ("ON", "1"),
            ("true", "YES"),
            ("off", "0"),
            ("10.000000", "10"),
            ("0.5", "0.50"),
            ("STRICT_TRANS_TABLES,ANSI_QUOTES", "ansi_quotes, strict_trans_tables"),
            ("O_DIRECT", "o_direct"),
            ("'x'", "x"),
            ("-1", "-1"),
        ] {
            assert!(same_value(a, b), "{a} {b}");
        }
        for (a, b) in [("256M", "256K"), ("ON", "2"), ("fsync", "O_DIRECT"), ("", "0"), ("1e", "1")]
        {
            assert!(!same_value(a, b), "{a} {b}");
        }
    }

    #[test]
    fn options_without_a_variable_are_known_by_name_or_family() {
        for option in [
            "performance-schema-consumer-events-statements-history",
            "loose_performance_schema_instrument",
            "replicate-wild-do-table",
            "binlog_do_db",
            "Binlog-Ignore-DB",
            "plugin_load_add",
        ] {
            assert!(is_invisible(option), "{option}");
        }
        for option in ["performance_schema", "binlog_format", "replica_net_timeout", "ansi_mode"] {
            assert!(!is_invisible(option), "{option}");
        }
    }

    #[test]
    fn options_become_the_variables_that_show_them() {
        assert_eq!(variable_name("loose-Innodb-IO-capacity"), "innodb_io_capacity");
        let has = |option: &str, variable: &str| {
            assert!(variables_of(option).iter().any(|name| name == variable), "{option}");
        };
        has("transaction-isolation", "tx_isolation");
        has("skip_innodb_doublewrite", "innodb_doublewrite");
        has("skip-log-bin", "log_bin");
        has("skip_name_resolve", "skip_name_resolve");
        has("slave_parallel_workers", "replica_parallel_workers");
        has("log_replica_updates", "log_slave_updates");
        assert_eq!(variables_of("innodb_io_capacity"), ["innodb_io_capacity"]);
    }
}
