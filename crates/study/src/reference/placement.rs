//! The keys of `[placement.*]`.

use super::{Key, Kind, key};

const INSTANCES: Key =
    key("instances", Kind::Integer(1, 64), "1", "servers that run at once and are driven at once");
const MEMORY: Key = key("memory", Kind::Bytes, "no limit", "memory of each instance");

pub(super) const PLACEMENT: Key = key(
    "placement",
    Kind::Choice(&[
        key("host", Kind::Table(HOST), "chosen", "a process on this machine"),
        key("docker", Kind::Table(DOCKER), "see below", "a container of Docker or Podman"),
        key("kvm", Kind::Table(KVM), "see below", "a QEMU guest"),
        key("kubernetes", Kind::Table(KUBERNETES), "see below", "a Pod of a Kubernetes cluster"),
        key("external", Kind::Table(EXTERNAL), "see below", "a server that ceteris did not start"),
    ]),
    "`{ host = {} }`",
    "where the server runs; allowances are of one instance",
);

const HOST: &[Key] = &[
    key("cpus", Kind::Cpus, "all", "processors of each instance"),
    MEMORY,
    key("io_weight", Kind::Integer(10, 1000), "the kernel's", "share of the disk beside others"),
    key(
        "numa",
        Kind::Table(NUMA),
        "none",
        "memory policy of the kernel, set before the server starts",
    ),
    INSTANCES,
    key(
        "assign",
        Kind::Word(&["none", "spread", "pack", "list"]),
        "`none`",
        "binds instances to processors and the memory of their nodes: in turn over the nodes, one \
         node after the other, or as `assign_list` says; each has a count of `cpus` of its node to \
         itself, or shares all of it",
    ),
    key(
        "assign_list",
        Kind::Texts,
        "none",
        "with `assign = \"list\"`: the processors of each instance, such as \
         `[\"node:0\", \"node:1\"]` or `[\"0-3\", \"4-7\"]`",
    ),
    key(
        "buffer_pool",
        Kind::Word(&["divided", "each"]),
        "`divided`",
        "whether the study's `innodb_buffer_pool_size` is that of all instances together or of each",
    ),
    key("nice", Kind::Whole(-20, 19), "0", "nice level"),
    key(
        "scheduler",
        Kind::Word(&["other", "batch", "idle"]),
        "`other`",
        "scheduling class of the server's threads",
    ),
    key(
        "huge_pages",
        Kind::Word(&["default", "off"]),
        "`default`",
        "transparent huge pages of the process",
    ),
    key(
        "allocator",
        Kind::Word(&["default", "jemalloc", "tcmalloc"]),
        "`default`",
        "memory allocator, preloaded",
    ),
];

const NUMA: &[Key] = &[
    key(
        "policy",
        Kind::Word(&["default", "interleave", "bind", "preferred"]),
        "`default`",
        "as `set_mempolicy(2)` has them",
    ),
    key(
        "nodes",
        Kind::Numbers,
        "none",
        "of these nodes; `interleave` takes all where none is given",
    ),
];

const DOCKER: &[Key] = &[
    key(
        "engine",
        Kind::Word(&["auto", "docker", "podman"]),
        "`auto`",
        "whose command line; `auto` takes Docker where it answers, else Podman",
    ),
    key("cpus", Kind::Positive, "no limit", "CPU time of each container, in processors (a quota)"),
    key("cpuset", Kind::Text, "all", "processors of each container, such as `0-3,8`"),
    MEMORY,
    key(
        "network",
        Kind::Word(&["host", "bridge", "published"]),
        "`host`",
        "the machine's own network, the container's address on the engine's bridge, or a port of \
         127.0.0.1 that the engine forwards; bears on `load.connect = \"tcp\"`",
    ),
    key(
        "storage",
        Kind::Word(&["bind", "volume", "overlay"]),
        "`bind`",
        "data directory on a directory of this machine, a volume of the engine, or the container's \
         own layer",
    ),
    key("security_opt", Kind::Texts, "none", "as `--security-opt`, such as `seccomp=unconfined`"),
    INSTANCES,
];

const KVM: &[Key] = &[
    key("cpus", Kind::Integer(1, 512), "2", "virtual processors of each guest"),
    key("memory", Kind::Bytes, "`2GiB`", "memory of each guest"),
    key(
        "numa_nodes",
        Kind::Integer(1, 16),
        "1",
        "NUMA nodes that the guest sees; processors and memory are divided evenly",
    ),
    key("machine", Kind::Text, "`q35`", "QEMU's machine type"),
    key(
        "accel",
        Kind::Word(&["auto", "kvm", "tcg"]),
        "`auto`",
        "what executes the guest; `auto` takes KVM where a guest boots under it",
    ),
    key("disk", Kind::Table(DISK), "see below", "the disk that holds the data directory"),
    key(
        "network",
        Kind::Word(&["user", "tap"]),
        "`user`",
        "QEMU's user-mode network with a forwarded port of 127.0.0.1, or a tap device",
    ),
    key("pin", Kind::Text, "none", "processors that the virtual ones are pinned to, such as `0-3`"),
    key("image", Kind::Text, "built by ceteris", "path of a cloud image of your own"),
    INSTANCES,
];

const DISK: &[Key] = &[
    key(
        "format",
        Kind::Word(&["qcow2", "raw"]),
        "`qcow2`",
        "copy on write over the snapshot, or a plain copy of it",
    ),
    key(
        "cache",
        Kind::Word(&["none", "writeback", "writethrough", "directsync", "unsafe"]),
        "`writeback`",
        "QEMU's cache mode",
    ),
    key(
        "aio",
        Kind::Word(&["threads", "native", "io_uring"]),
        "`threads`",
        "QEMU's way to the disk",
    ),
    key("bus", Kind::Word(&["virtio_blk", "virtio_scsi"]), "`virtio_blk`", "what the guest sees"),
];

const KUBERNETES: &[Key] = &[
    key("context", Kind::Text, "the current one", "as `kubectl --context`"),
    key("image", Kind::Text, "`server.package`, or one made of it", "the server's image"),
    key(
        "controller",
        Kind::Word(&["pod", "deployment", "stateful_set"]),
        "`pod`",
        "a bare Pod, or one made by a controller, with a Service",
    ),
    key(
        "qos",
        Kind::Word(&["best_effort", "burstable", "guaranteed"]),
        "what requests and limits make it",
        "quality of service: `guaranteed` requests what `limits` says, `best_effort` has neither",
    ),
    key("requests", Kind::Table(RESOURCES), "none", "what the scheduler reserves for each Pod"),
    key("limits", Kind::Table(RESOURCES), "none", "what the kernel enforces on each Pod"),
    key("node", Kind::Text, "the scheduler's choice", "name of the node"),
    key("storage", Kind::Table(POD_STORAGE), "see below", "where the data directory is"),
    key(
        "worker",
        Kind::Word(&["outside", "inside"]),
        "`outside`",
        "whether the load generator runs here, or in the Pod over the server's socket",
    ),
    key(
        "reach",
        Kind::Word(&["pod_ip", "node_port"]),
        "`pod_ip`",
        "how a generator outside reaches the Pod",
    ),
    INSTANCES,
];

const RESOURCES: &[Key] = &[
    key("cpu", Kind::Text, "none", "as Kubernetes writes it: `500m`, `2`"),
    key("memory", Kind::Text, "none", "as Kubernetes writes it: `512Mi`"),
];

const POD_STORAGE: &[Key] = &[
    key(
        "kind",
        Kind::Word(&["empty_dir", "host_path", "pvc"]),
        "`empty_dir`",
        "a directory of the node that dies with the Pod, one of ceteris's own, or a claim",
    ),
    key("class", Kind::Text, "the cluster's default", "with `pvc`: the storage class"),
    key("size", Kind::Text, "enough for the dataset", "with `pvc`: as Kubernetes writes it"),
];

const EXTERNAL: &[Key] = &[
    key(
        "dsn",
        Kind::Text,
        "none; must be given",
        "`mysql://user@host:3306/` or `mysql://user@localhost/?socket=/path`, without a password",
    ),
    key(
        "password_file",
        Kind::Text,
        "the environment's `CETERIS_PASSWORD`, else none",
        "a file whose first line is the password",
    ),
    key(
        "allow_set_global",
        Kind::Boolean,
        "false",
        "whether `server.config` may be set by `SET GLOBAL`; it is set back afterwards",
    ),
];
