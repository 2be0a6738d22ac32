//! Figures from papers and posts, as the header of a result file keeps them.

use std::collections::BTreeMap;

use serde_json::Value;

/// A figure from elsewhere, as the study file gives it.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Published {
    /// Name of the question.
    pub question: String,
    /// Name of the level.
    pub level: String,
    /// Sweep point.
    #[serde(default)]
    pub at: BTreeMap<String, Value>,
    /// `transactions_per_second` or `p95_ms`.
    pub metric: String,
    /// In the metric's unit.
    pub value: f64,
    /// Where it was published.
    pub source: String,
}
