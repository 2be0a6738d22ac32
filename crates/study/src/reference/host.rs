//! The keys of `[host]`.

use super::{Key, Kind, key};

const AS_IS: &str = "left as it is";

pub(super) const HOST: Key = key(
    "host",
    Kind::Table(&[
        key("numa_balancing", Kind::Boolean, AS_IS, "automatic NUMA balancing"),
        key(
            "transparent_huge_pages",
            Kind::Word(&["always", "madvise", "never"]),
            AS_IS,
            "transparent huge pages",
        ),
        key("swappiness", Kind::Integer(0, 200), AS_IS, "`vm.swappiness`"),
        key("dirty_ratio", Kind::Integer(1, 100), AS_IS, "`vm.dirty_ratio`, percent of memory"),
        key("governor", Kind::Text, AS_IS, "frequency governor of every processor"),
        key("io_scheduler", Kind::Text, AS_IS, "scheduler of the disk below the data directory"),
        key("drop_caches", Kind::Boolean, "false", "drop the page cache before each start"),
        key("sysctl", Kind::Params, "empty", "any other `sysctl`, by its quoted dotted name"),
    ]),
    "see below",
    "kernel settings of this machine during a run; every old value is set back afterwards",
);
