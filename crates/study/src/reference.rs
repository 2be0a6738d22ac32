//! Every key of the study file, once: name, type, bounds, default and meaning.
//!
//! The one source of what [`crate::check`] allows, of what error hints list, of which paths a
//! question may vary, and of `docs/study-file.md` (see
//! [`crate::page`]). A test compares it with what serde accepts.
//! Bounds stand here rather than in code because a reader of the documentation wants them too.

mod host;
mod load;
mod placement;
mod workload;

use crate::quantity::Millis;
use host::HOST;
use load::LOAD;
use placement::PLACEMENT;
use workload::WORKLOAD;

/// One key of a table of the study file.
#[derive(Debug, PartialEq)]
pub(crate) struct Key {
    /// As written.
    pub(crate) name: &'static str,
    /// What its value may be.
    pub(crate) kind: Kind,
    /// What holds where it is not given; `None` where it must be.
    pub(crate) default: Option<&'static str>,
    /// One sentence for the documentation, without a full stop.
    pub(crate) meaning: &'static str,
}

/// What a value may be.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    /// One line of text, not empty.
    Text,
    /// A whole number within bounds, both included.
    Integer(u64, u64),
    /// A whole number within bounds, both included, that may be negative.
    Whole(i64, i64),
    /// An array of whole numbers.
    Numbers,
    /// An array of one-line texts.
    Texts,
    /// A size.
    Bytes,
    /// Some processors.
    Cpus,
    /// A span of time within bounds, both included.
    Duration(Millis, Millis),
    /// A share above 0 % and below 100 %.
    Percent,
    /// A confidence above 0.5 and below 1.
    Confidence,
    /// A number above 0.
    Positive,
    /// A number within bounds, both included.
    Number(f64, f64),
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A table of these keys.
    Table(&'static [Key]),
    /// A table of exactly one of these keys.
    Choice(&'static [Key]),
    /// An array of tables of these keys.
    Tables(&'static [Key]),
    /// The `[mysqld]` section: any variable name to a string, number or boolean.
    Variables,
    /// One variable of it.
    Variable,
    /// Text of any number of lines.
    Lines,
    /// Parameters of a script: any name to a number or a string.
    Params,
    /// One parameter of it.
    Param,
    /// Read by `question`, which knows what the value depends on; the text is for people.
    Special(&'static str),
}

const fn required(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { name, kind, default: None, meaning }
}

const fn key(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { name, kind, default: Some(default), meaning }
}

/// JSON readers hold numbers as doubles, and a seed that is printed must be the seed that is given.
pub(crate) const SEED_MAX: u64 = (1 << 53) - 1;

/// The setup tree: what a question may vary, sweep or give.
pub(crate) const SETUP: &[Key] = &[SERVER, PLACEMENT, HOST, WORKLOAD, LOAD];

/// The whole file.
pub(crate) const STUDY: &[Key] = &[
    required("title", Kind::Text, "one line that says what is asked"),
    key(
        "seed",
        Kind::Integer(0, SEED_MAX),
        "derived from the text and the overrides",
        "seed of the order of runs and of the data",
    ),
    SERVER,
    PLACEMENT,
    HOST,
    WORKLOAD,
    LOAD,
    key("design", Kind::Table(DESIGN), "see below", "how much is measured, for every question"),
    required("question", Kind::Tables(QUESTION), "a question; one `[[question]]` or more"),
    key(
        "published",
        Kind::Tables(PUBLISHED),
        "none",
        "a figure from a paper or post, shown beside ours",
    ),
];

const SERVER: Key = key(
    "server",
    Kind::Table(&[
        key(
            "package",
            Kind::Text,
            "`installed`",
            "where the server's files come from: a catalogue name such as `mysql-8.0.12` \
             (`ceteris packages list`), `installed`, a directory, an archive, or, in containers, \
             `image:NAME`",
        ),
        key(
            "config",
            Kind::Variables,
            "empty",
            "the `[mysqld]` section by the server's own names; `-` and `_` are the same, and so are \
             small and capital letters",
        ),
    ]),
    "see below",
    "the server program and its configuration",
);

const BLOCKS: Key = key(
    "blocks",
    Kind::Integer(2, 1000),
    "6",
    "blocks always run; a block is every cell of the question once, in random order",
);
const MAX_BLOCKS: Key = key(
    "max_blocks",
    Kind::Integer(2, 10_000),
    "`blocks`, or four times `blocks` where `precision` is given",
    "blocks at most; more than `blocks` are run until `precision` is reached",
);
const MARGIN: Key = key(
    "margin",
    Kind::Percent,
    "`1%`",
    "effects smaller than this are of no practical interest: an interval inside it is `equivalent`",
);
const PRECISION: Key = key(
    "precision",
    Kind::Percent,
    "`margin`, where `max_blocks` alone is given",
    "half width of the interval, relative to the ratio, at which no more blocks are added",
);
const CONFIDENCE: Key =
    key("confidence", Kind::Confidence, "0.95", "confidence of the intervals of one question");

const ON_FAILURE: Key = key(
    "on_failure",
    Kind::Word(&["stop", "continue"]),
    "`stop`",
    "what becomes of the study when a cell cannot be built, or its run died twice: `continue` goes on with \
     the next run, and the study ends as failed",
);

/// How much is measured; each key may stand in a question too and then holds for that question.
pub(crate) const DESIGN: &[Key] = &[BLOCKS, MAX_BLOCKS, MARGIN, PRECISION, CONFIDENCE, ON_FAILURE];

/// One question.
pub(crate) const QUESTION: &[Key] = &[
    required("name", Kind::Text, "names the question in the report; unique"),
    required(
        "vary",
        Kind::Special("path, or list of paths with `compound`"),
        "the one path of the setup that changes",
    ),
    key(
        "compound",
        Kind::Boolean,
        "false",
        "several paths change together; the effect then belongs to the bundle alone",
    ),
    required(
        "levels",
        Kind::Special("array of values, or table of name to value"),
        "two or more values of the path, the first being the baseline; with `compound` each is an \
         array with one value for each path. Equal values are allowed in a table: an A/A control",
    ),
    key(
        "sweep",
        Kind::Special("table of path to array of values"),
        "none",
        "paths taken through several values; levels are compared at each point",
    ),
    key(
        "given",
        Kind::Special("table of path to value"),
        "none",
        "values that replace the baseline's for this question",
    ),
    BLOCKS,
    MAX_BLOCKS,
    MARGIN,
    PRECISION,
    CONFIDENCE,
    ON_FAILURE,
];

/// One figure from elsewhere.
pub(crate) const PUBLISHED: &[Key] = &[
    required("question", Kind::Text, "name of a question of this study"),
    required("level", Kind::Text, "name of one of its levels"),
    key(
        "at",
        Kind::Special("table of path to value"),
        "none",
        "the sweep point, where the question has a sweep",
    ),
    required("metric", Kind::Word(&["transactions_per_second", "p95_ms"]), "what was measured"),
    required("value", Kind::Positive, "the figure, in the metric's unit"),
    required("source", Kind::Text, "where it was published"),
];

impl Kind {
    /// The type, for people: "whole number from 1 to 1000".
    pub(crate) fn describe(&self) -> String {
        match self {
            Kind::Text => "text".to_owned(),
            Kind::Integer(min, max) => format!("whole number from {min} to {max}"),
            Kind::Whole(min, max) => format!("whole number from {min} to {max}"),
            Kind::Numbers => "array of whole numbers".to_owned(),
            Kind::Texts => "array of texts".to_owned(),
            Kind::Bytes => "size such as `512M`, `4GiB`".to_owned(),
            Kind::Cpus => "count, list (`\"0-3,8\"`) or node (`\"node:0\"`)".to_owned(),
            Kind::Duration(min, max) => format!("duration from `{min}` to `{max}`"),
            Kind::Percent => "share above 0% and below 100%".to_owned(),
            Kind::Confidence => "number above 0.5 and below 1".to_owned(),
            Kind::Positive => "number above 0".to_owned(),
            Kind::Number(min, max) => format!("number from {min} to {max}"),
            Kind::Boolean => "`true` or `false`".to_owned(),
            Kind::Word(words) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }
            Kind::Table(_) => "table".to_owned(),
            Kind::Choice(_) => "table of exactly one key".to_owned(),
            Kind::Tables(_) => "array of tables".to_owned(),
            Kind::Variables => "table of variable to value".to_owned(),
            Kind::Lines => "text".to_owned(),
            Kind::Params => "table of parameter to value".to_owned(),
            Kind::Param => "number or string".to_owned(),
            Kind::Variable => "string, number or boolean".to_owned(),
            Kind::Special(text) => (*text).to_owned(),
        }
    }
}
