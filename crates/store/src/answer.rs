//! The answers, in the shape of `ceteris show --format json` (`docs/show.schema.json`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The whole of `ceteris show --format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Show {
    /// Version of this shape: 1.
    pub schema: u32,
    /// The study's title.
    pub study: String,
    /// What a reader must know before any figure; usually nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// In file order.
    pub questions: Vec<Answer>,
}

/// What is known of one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The question's name.
    pub name: String,
    /// The varied path, or paths joined by ` + `.
    pub factor: String,
    /// Name of the baseline level.
    pub baseline: String,
    /// Verdict on the throughput of the whole question when it has exactly one effect of it:
    /// `higher`, `lower`, `equivalent`, `undecided`; `confounded` when the audit failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verdict: Option<String>,
    /// What differed beyond the factor.
    pub audit: Audit,
    /// One for each non-baseline level, sweep point and metric. Empty verdicts when confounded.
    pub effects: Vec<AnsweredEffect>,
    /// Finished runs, in the order in which they ran.
    pub runs: Vec<RunLine>,
    /// Margin, a fraction.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub margin: f64,
    /// Precision asked for, a fraction.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub precision: f64,
    /// Confidence asked for.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub confidence: f64,
    /// The answer in a sentence.
    pub sentence: String,
}

/// The audit of one question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Nothing unexplained differed.
    pub ok: bool,
    /// Differences that neither the factor nor its known consequences explain.
    pub unexplained: Vec<Difference>,
    /// Differences that are the factor itself.
    pub factor: Vec<Difference>,
    /// Differences that follow from the factor, with the reason.
    pub consequences: Vec<Difference>,
    /// Number of observed names compared.
    pub compared: u64,
}

/// One name whose value was not the same everywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Dotted name in the fingerprint.
    pub name: String,
    /// Who saw what: level (or `level, block 3, after`) to value.
    pub values: BTreeMap<String, String>,
    /// Why it is listed where it is.
    pub reason: String,
}

/// One effect and the verdict on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnsweredEffect {
    /// The compared level.
    pub level: String,
    /// Sweep point.
    pub at: BTreeMap<String, Value>,
    /// `tps` or `p95_ms`.
    pub metric: String,
    /// Level over baseline.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub ratio: f64,
    /// Lower end of the interval; `null` where unbounded.
    pub low: Option<f64>,
    /// Upper end of the interval; `null` where unbounded.
    pub high: Option<f64>,
    /// `higher`, `lower`, `equivalent`, `undecided` or `confounded`.
    pub verdict: String,
    /// Blocks behind it.
    pub blocks: u32,
}

/// One finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLine {
    /// Level.
    pub level: String,
    /// Block, from 0.
    pub block: u32,
    /// Sweep point.
    pub at: BTreeMap<String, Value>,
    /// Committed transactions per second.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub tps: f64,
    /// 95th percentile of response time.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub p95_ms: f64,
    /// Errors by code.
    pub errors: BTreeMap<String, u64>,
    /// The measured series was level.
    pub steady: bool,
    /// The generator was the bottleneck.
    pub generator_bound: bool,
}
