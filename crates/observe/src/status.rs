//! What each name of `SHOW GLOBAL STATUS` is: a counter that only rises, or a level.
//!
//! Servers do not say. Gauges are listed; every other number is taken as a counter and sampled as
//! its change per second. Facts from the status variable chapters of the MySQL and MariaDB manuals.

/// How a status variable is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// Change per second, in this unit.
    Rate(&'static str),
    /// The value itself, in this unit.
    Level(&'static str),
    /// Not at all: a constant, a setting or a maximum since start.
    Ignored,
}

/// Levels by exact name, in small letters, with their unit.
const LEVELS: &[(&str, &str)] = &[
    ("threads_running", "count"),
    ("threads_connected", "count"),
    ("threads_cached", "count"),
    ("threadpool_threads", "count"),
    ("threadpool_idle_threads", "count"),
    ("open_tables", "count"),
    ("open_table_definitions", "count"),
    ("open_files", "count"),
    ("open_streams", "count"),
    ("prepared_stmt_count", "count"),
    ("memory_used", "bytes"),
    ("global_connection_memory", "bytes"),
    ("innodb_row_lock_current_waits", "count"),
    ("innodb_row_lock_time_avg", "ms"),
    ("innodb_data_pending_fsyncs", "count"),
    ("innodb_data_pending_reads", "count"),
    ("innodb_data_pending_writes", "count"),
    ("innodb_os_log_pending_fsyncs", "count"),
    ("innodb_os_log_pending_writes", "count"),
    ("innodb_num_open_files", "count"),
    ("innodb_history_list_length", "count"),
    ("innodb_checkpoint_age", "bytes"),
    ("innodb_checkpoint_max_age", "bytes"),
    ("innodb_buffer_pool_pages_data", "pages"),
    ("innodb_buffer_pool_pages_dirty", "pages"),
    ("innodb_buffer_pool_pages_free", "pages"),
    ("innodb_buffer_pool_pages_misc", "pages"),
    ("innodb_buffer_pool_pages_old", "pages"),
    ("innodb_buffer_pool_pages_total", "pages"),
    ("innodb_buffer_pool_pages_latched", "pages"),
    ("innodb_buffer_pool_bytes_data", "bytes"),
    ("innodb_buffer_pool_bytes_dirty", "bytes"),
    ("innodb_ibuf_free_list", "pages"),
    ("innodb_ibuf_segment_size", "pages"),
    ("innodb_ibuf_size", "pages"),
    ("innodb_mem_adaptive_hash", "bytes"),
    ("innodb_mem_dictionary", "bytes"),
    ("innodb_mem_total", "bytes"),
    ("innodb_read_views_memory", "bytes"),
    ("innodb_descriptors_memory", "bytes"),
    ("innodb_current_row_locks", "count"),
    ("innodb_redo_log_logical_size", "bytes"),
    ("innodb_redo_log_physical_size", "bytes"),
    ("innodb_redo_log_capacity_resized", "bytes"),
    ("innodb_undo_tablespaces_total", "count"),
    ("innodb_undo_tablespaces_active", "count"),
    ("innodb_encryption_rotation_estimated_iops", "1/s"),
    ("innodb_onlineddl_rowlog_pct_used", "count"),
    ("innodb_onlineddl_pct_progress", "count"),
    ("key_blocks_not_flushed", "count"),
    ("key_blocks_unused", "count"),
    ("key_blocks_used", "count"),
    ("key_blocks_warm", "count"),
    ("aria_pagecache_blocks_not_flushed", "count"),
    ("aria_pagecache_blocks_unused", "count"),
    ("aria_pagecache_blocks_used", "count"),
    ("qcache_free_blocks", "count"),
    ("qcache_free_memory", "bytes"),
    ("qcache_queries_in_cache", "count"),
    ("qcache_total_blocks", "count"),
    ("delayed_insert_threads", "count"),
    ("not_flushed_delayed_rows", "count"),
    ("slave_open_temp_tables", "count"),
    ("replica_open_temp_tables", "count"),
    ("table_open_cache_active_instances", "count"),
    ("mysqlx_worker_threads", "count"),
    ("mysqlx_worker_threads_active", "count"),
];

/// Constants, settings, maxima since start and what only an administrator reads. A trailing `*`
/// stands for any rest.
const IGNORED: &[&str] = &[
    "acl_*",
    "feature_*",
    "uptime*",
    "ssl_*",
    "mysqlx_ssl_*",
    "rsa_*",
    "caching_sha2_*",
    "current_tls_*",
    "compression*",
    "last_query_*",
    "max_used_*",
    "max_memory_used",
    "memory_used_initial",
    "innodb_page_size",
    "innodb_row_lock_time_max",
    "innodb_available_undo_logs",
    "innodb_have_*",
    "innodb_redo_log_uuid",
    "innodb_undo_tablespaces_explicit",
    "innodb_undo_tablespaces_implicit",
    "rpl_semi_sync_*",
    "slaves_*",
    "slave_heartbeat_period",
    "slave_running",
    "tc_log_max_pages_used",
    "tc_log_page_size",
    "mysqlx_port",
    "wsrep_*",
    "performance_schema_session_connect_attrs_longest_seen",
    "innodb_max_trx_id",
    "stack_usage",
    "binlog_snapshot_*",
];

/// Counters of bytes.
const BYTES: &[&str] = &[
    "bytes_received",
    "bytes_sent",
    "innodb_data_read",
    "innodb_data_written",
    "innodb_os_log_written",
    "innodb_lsn_current",
    "innodb_lsn_flushed",
    "innodb_lsn_last_checkpoint",
    "innodb_redo_log_current_lsn",
    "innodb_redo_log_flushed_to_disk_lsn",
    "innodb_redo_log_checkpoint_lsn",
    "binlog_bytes_written",
    "innodb_page_compression_saved",
    "mysqlx_bytes_received",
    "mysqlx_bytes_sent",
];

/// How to sample a status variable.
pub(crate) fn sampling(name: &str) -> Sampling {
    let name = name.to_ascii_lowercase();
    if let Some((_, unit)) = LEVELS.iter().find(|(level, _)| *level == name) {
        return Sampling::Level(unit);
    }
    let ignored = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == **pattern,
    };
    if IGNORED.iter().any(ignored) {
        Sampling::Ignored
    } else if BYTES.contains(&name.as_str()) {
        Sampling::Rate("bytes/s")
    } else {
        Sampling::Rate("1/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rates_and_the_rest_are_told_apart() {
        assert_eq!(sampling("Threads_running"), Sampling::Level("count"));
        assert_eq!(sampling("Innodb_buffer_pool_pages_dirty"), Sampling::Level("pages"));
        assert_eq!(sampling("Innodb_buffer_pool_pages_flushed"), Sampling::Rate("1/s"));
        assert_eq!(sampling("Innodb_buffer_pool_pages_made_young"), Sampling::Rate("1/s"));
        assert_eq!(sampling("Innodb_data_fsyncs"), Sampling::Rate("1/s"));
        assert_eq!(sampling("Bytes_sent"), Sampling::Rate("bytes/s"));
        assert_eq!(sampling("Uptime"), Sampling::Ignored);
        assert_eq!(sampling("Uptime_since_flush_status"), Sampling::Ignored);
    }
}
