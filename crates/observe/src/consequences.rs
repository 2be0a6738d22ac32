//! What follows from what: variables that a server derives from others.
//!
//! The audit lists a difference in one of these as a consequence of the factor instead of calling
//! the question confounded. Only derivations that the MySQL and MariaDB manuals state, or that the
//! kernel makes of a server's own request, belong here: a wrong line hides a confounder.

mod placement;

use study::variables::FILE_CHANGING;

pub(crate) use placement::{of_machine, of_placement};

/// One cause and what may follow.
pub(crate) struct Derivation {
    /// The varied server variables, any of them.
    pub(crate) causes: &'static [&'static str],
    /// Names in the fingerprint that may differ then; a trailing `*` stands for any rest. Without
    /// a dot: a server variable.
    pub(crate) derived: &'static [&'static str],
    /// Why.
    pub(crate) reason: &'static str,
}

/// The table. A variable may be a cause in several lines.
pub(crate) const DERIVATIONS: &[Derivation] = &[
    Derivation {
        causes: &["innodb_buffer_pool_size"],
        derived: &[
            "innodb_buffer_pool_instances",
            "innodb_buffer_pool_chunk_size",
            "innodb_buffer_pool_size_max",
            "innodb_buffer_pool_size_auto_min",
            "innodb_page_cleaners",
            "allowance.buffer_pool_bytes",
        ],
        reason: "innodb divides a buffer pool of this size into its own number of parts",
    },
    Derivation {
        causes: &["innodb_buffer_pool_instances", "innodb_buffer_pool_chunk_size"],
        derived: &[
            "innodb_buffer_pool_size",
            "innodb_buffer_pool_chunk_size",
            "innodb_page_cleaners",
            "allowance.buffer_pool_bytes",
        ],
        reason: "the buffer pool's size is rounded to a multiple of chunk size times instances",
    },
    Derivation {
        causes: &["innodb_dedicated_server"],
        derived: &[
            "innodb_buffer_pool_size",
            "innodb_buffer_pool_instances",
            "innodb_buffer_pool_chunk_size",
            "innodb_page_cleaners",
            "innodb_log_file_size",
            "innodb_log_files_in_group",
            "innodb_redo_log_capacity",
            "innodb_flush_method",
            "allowance.buffer_pool_bytes",
        ],
        reason: "a dedicated server sizes buffer pool and redo log, and picks the flush method",
    },
    Derivation {
        causes: &["innodb_log_file_size", "innodb_log_files_in_group", "innodb_redo_log_capacity"],
        derived: &["innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_files_in_group"],
        reason: "size and number of redo log files are one capacity",
    },
    Derivation {
        causes: &["innodb_flush_method"],
        derived: &[
            "innodb_data_file_buffering",
            "innodb_data_file_write_through",
            "innodb_log_file_buffering",
            "innodb_log_file_write_through",
            "innodb_doublewrite",
        ],
        reason: "mariadb maps the flush method to these (MDEV-30136, MDEV-33545)",
    },
    Derivation {
        causes: &["innodb_flush_log_at_trx_commit"],
        derived: &["innodb_log_file_buffering"],
        reason: "mariadb writes its log through the page cache if and only if this is 2",
    },
    Derivation {
        causes: &[
            "innodb_data_file_buffering",
            "innodb_data_file_write_through",
            "innodb_log_file_buffering",
            "innodb_log_file_write_through",
        ],
        derived: &["innodb_flush_method"],
        reason: "mariadb shows the flush method that these amount to",
    },
    Derivation {
        causes: &["innodb_io_capacity"],
        derived: &["innodb_io_capacity_max"],
        reason: "the maximum defaults to twice the capacity",
    },
    Derivation {
        causes: &["innodb_io_capacity_max"],
        derived: &["innodb_io_capacity"],
        reason: "the capacity is lowered to the maximum",
    },
    Derivation {
        causes: &["innodb_max_dirty_pages_pct"],
        derived: &["innodb_max_dirty_pages_pct_lwm"],
        reason: "the low water mark is lowered to the maximum",
    },
    Derivation {
        causes: &["innodb_doublewrite", "innodb_write_io_threads"],
        derived: &["innodb_doublewrite_pages", "innodb_doublewrite_files"],
        reason: "the doublewrite buffer is laid out for the writing threads",
    },
    Derivation {
        causes: &["innodb_buffer_pool_instances", "innodb_page_cleaners"],
        derived: &["innodb_doublewrite_files", "innodb_page_cleaners"],
        reason: "page cleaners and doublewrite files follow the number of buffer pool instances",
    },
    Derivation {
        causes: &["innodb_thread_concurrency", "innodb_adaptive_max_sleep_delay"],
        derived: &["innodb_thread_sleep_delay"],
        reason: "innodb tunes the delay by itself when concurrency is limited",
    },
    Derivation {
        causes: FILE_CHANGING,
        derived: &["place.dataset.*"],
        reason: "the setting changes the files, so each level has its own dataset of the same rows",
    },
    Derivation {
        causes: &["innodb_page_size"],
        derived: &[
            "innodb_log_write_ahead_size",
            "innodb_sort_buffer_size",
            "innodb_max_undo_log_size",
        ],
        reason: "bounded by the page size",
    },
    Derivation {
        causes: &["innodb_checksum_algorithm"],
        derived: &["innodb_checksums", "innodb_log_checksums"],
        reason: "older names for the same choice",
    },
    Derivation {
        causes: &["max_connections"],
        derived: &[
            "open_files_limit",
            "table_open_cache",
            "table_open_cache_instances",
            "table_definition_cache",
            "thread_cache_size",
            "back_log",
            "host_cache_size",
            "innodb_open_files",
            "innodb_concurrency_tickets",
            "performance_schema_*",
            "host.process.limit.nofile",
        ],
        reason: "the server sizes caches, queues and its limit of open files for the connections",
    },
    Derivation {
        causes: &["open_files_limit", "table_open_cache", "table_definition_cache"],
        derived: &[
            "open_files_limit",
            "max_connections",
            "table_open_cache",
            "table_open_cache_instances",
            "table_definition_cache",
            "innodb_open_files",
            "performance_schema_*",
            "host.process.limit.nofile",
        ],
        reason: "table caches, connections and open files share one limit",
    },
    Derivation {
        causes: &["innodb_open_files", "table_open_cache_instances"],
        derived: &["open_files_limit", "table_open_cache", "host.process.limit.nofile"],
        reason: "table caches, connections and open files share one limit",
    },
    Derivation {
        causes: &["performance_schema"],
        derived: &["performance_schema_*", "host.process.limit.nofile"],
        reason: "sizes of the performance schema count only when it is on",
    },
    Derivation {
        causes: &["log_bin"],
        derived: &[
            "log_bin_*",
            "sql_log_bin",
            "log_slave_updates",
            "log_replica_updates",
            "server.plugin.binlog",
        ],
        reason: "follows from the binary log being on or off",
    },
    Derivation {
        causes: &["log_bin", "slow_query_log", "general_log"],
        derived: &["server.version", "version"],
        reason: "the server adds -log to its version when a log is on; the package hash is compared",
    },
    Derivation {
        causes: &["innodb_file_per_table"],
        derived: &["innodb_open_files"],
        reason: "a file for each table needs more open files",
    },
    Derivation {
        causes: &["character_set_server", "collation_server"],
        derived: &[
            "character_set_server",
            "character_set_database",
            "character_set_client",
            "character_set_connection",
            "character_set_results",
            "collation_server",
            "collation_database",
            "collation_connection",
            "default_collation_for_utf8mb4",
        ],
        reason: "character sets and collations default to the server's",
    },
    Derivation {
        causes: &["default_storage_engine"],
        derived: &["storage_engine"],
        reason: "older name for the same choice",
    },
    Derivation {
        causes: &["query_cache_size", "query_cache_type"],
        derived: &["query_cache_size", "query_cache_type"],
        reason: "size and type of the query cache switch each other off",
    },
    Derivation {
        causes: &["thread_handling"],
        derived: &["thread_pool_*", "thread_cache_size"],
        reason: "these belong to the thread handling",
    },
    Derivation {
        causes: &["max_allowed_packet"],
        derived: &["net_buffer_length"],
        reason: "the buffer is bounded by the packet",
    },
    Derivation {
        causes: &["large_pages"],
        derived: &[
            "large_page_size",
            "innodb_buffer_pool_chunk_size",
            "host.process.limit.memlock",
        ],
        reason: "memory is rounded to large pages and locked",
    },
    Derivation {
        causes: &["locked_in_memory"],
        derived: &["locked_in_memory", "host.process.limit.memlock"],
        reason: "the server raises its own limit to lock memory",
    },
    Derivation {
        causes: &["core_file"],
        derived: &["host.process.limit.core", "innodb_buffer_pool_in_core_dump"],
        reason: "the server raises its own limit to write core files",
    },
    Derivation {
        causes: &["tmpdir"],
        derived: &["slave_load_tmpdir", "replica_load_tmpdir"],
        reason: "defaults to the directory for temporary files",
    },
    Derivation {
        causes: &["have_ssl", "ssl_ca", "ssl_cert", "ssl_key", "tls_version"],
        derived: &["have_ssl", "have_openssl", "ssl_*", "tls_*"],
        reason: "follows from transport encryption being on or off",
    },
    Derivation {
        causes: &["plugin_load", "plugin_load_add", "early_plugin_load"],
        derived: &["server.plugin.*", "host.process.library.*"],
        reason: "the loaded plug-ins are the factor",
    },
];

/// What a server or kernel chooses anew by itself, with the reason.
pub(crate) const MOVES_BY_ITSELF: &[(&str, &str)] = &[
    (
        "server.variable.innodb_thread_sleep_delay",
        "innodb tunes it while it runs (innodb_adaptive_max_sleep_delay)",
    ),
    (
        "guest.host.kernel.file_max",
        "the guest's kernel computes it at each boot from the memory that is free then",
    ),
];

/// Whether `name` (a dotted name of the fingerprint) is meant by `pattern`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let name = match pattern.contains('.') {
        true => name,
        false => match name.strip_prefix("server.variable.") {
            Some(variable) => variable,
            None => return false,
        },
    };
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}
