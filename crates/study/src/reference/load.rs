//! The keys of `[load]`.

use crate::quantity::Millis;

use super::{Key, Kind, key, required};

const DAY: Millis = Millis::from_secs(24 * 3600);
const CONNECTIONS_MAX: u64 = 100_000;

pub(super) const LOAD: Key = key(
    "load",
    Kind::Table(&[
        key(
            "connections",
            Kind::Integer(1, CONNECTIONS_MAX),
            "8",
            "concurrent connections, each running transactions one after the other, until a stage \
             says otherwise",
        ),
        key("warmup", Kind::Duration(Millis(0), DAY), "`10s`", "time driven before measuring"),
        key(
            "measure",
            Kind::Duration(Millis::from_secs(1), Millis::from_secs(7 * 24 * 3600)),
            "`60s`",
            "time measured",
        ),
        key(
            "threads",
            Kind::Integer(1, 1024),
            "chosen by the worker, which says what it chose",
            "threads of the worker",
        ),
        key(
            "connect",
            Kind::Word(&["socket", "tcp"]),
            "`socket`",
            "through the Unix socket, or through TCP on loopback",
        ),
        key(
            "rate",
            Kind::Positive,
            "none: a closed loop",
            "transactions per second that are due over all connections, whether or not the server \
             keeps up (open loop); response times count from when each was due",
        ),
        key(
            "arrivals",
            Kind::Word(&["poisson", "uniform"]),
            "`poisson`",
            "how the starts of an open loop are spread: independent of each other, or evenly",
        ),
        key(
            "think_time",
            Kind::Duration(Millis(0), DAY),
            "`0s`",
            "closed loop: pause of each connection between two transactions",
        ),
        key(
            "stages",
            Kind::Tables(STAGE),
            "none",
            "changes of rate and connections while driving, in the order of their times",
        ),
        key(
            "on_lost",
            Kind::Word(&["fail", "reconnect"]),
            "`fail`",
            "what a lost connection means: the run has failed, or its transaction has and the \
             connection is made again",
        ),
        key(
            "protocol",
            Kind::Word(&["prepared", "text"]),
            "`prepared`",
            "statements are prepared once per connection, or sent as text with their values",
        ),
        key(
            "reactor",
            Kind::Word(&["auto", "epoll", "io_uring"]),
            "`auto`",
            "how the worker waits for answers; `auto` takes io_uring where the kernel allows it",
        ),
        key(
            "batching",
            Kind::Percent,
            "off",
            "share of the median response time that an answer may wait in the worker for others, \
             which saves the worker's CPU and is part of the response time",
        ),
        key(
            "scheduling",
            Kind::Word(&["normal", "batch"]),
            "`batch`",
            "scheduling class of the worker's threads; `batch` threads do not displace the server \
             when they wake",
        ),
    ]),
    "see below",
    "how the workload is driven",
);

const STAGE: &[Key] = &[
    required(
        "at",
        Kind::Duration(Millis(0), Millis::from_secs(8 * 24 * 3600)),
        "when it begins, since the first transaction, so that the warm-up counts",
    ),
    key(
        "ramp",
        Kind::Duration(Millis(0), Millis::from_secs(8 * 24 * 3600)),
        "`0s`",
        "how long the way to the new values takes, in a straight line",
    ),
    key("rate", Kind::Positive, "as before", "new rate, where `load.rate` is given"),
    key(
        "connections",
        Kind::Integer(1, CONNECTIONS_MAX),
        "as before",
        "new number of connections at work; all that are ever needed are opened before the start",
    ),
];
