//! The figures of a result as the JSON contract has them: in milliseconds, and null where nothing
//! was measured. The generator's own reports say 0 there, which in a result would look as if a
//! server had answered in no time.

use std::collections::BTreeMap;

use load::{KindReport, LatencyMs, Second, StatementReport, ThreadUse};
use serde::Serialize;

/// Milliseconds; null where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// Both clocks of a transaction.
#[derive(Serialize)]
pub struct Latencies {
    pub response: Latency,
    pub service: Latency,
}

/// One kind of transaction.
#[derive(Serialize)]
pub struct Kind {
    pub name: String,
    pub transactions: u64,
    pub retries: u64,
    pub latency_ms: Latencies,
}

/// Statements of one name, or the making of lost connections (`connect`).
#[derive(Serialize)]
pub struct Statement {
    pub name: String,
    pub executions: u64,
    /// By code.
    pub errors: BTreeMap<String, u64>,
    pub latency_ms: Latency,
}

/// One second of the drive, or less where something cut it.
#[derive(Serialize)]
pub struct Interval {
    pub at_s: u32,
    pub end_s: f64,
    pub length_s: f64,
    pub measured: bool,
    pub connections: u32,
    pub transactions: u64,
    pub reads: u64,
    pub writes: u64,
    pub other: u64,
    pub errors: BTreeMap<String, u64>,
    pub retries: u64,
    pub queued: Option<u64>,
    pub late_ms_max: Option<f64>,
    pub response_ms: Latency,
    pub threads: Vec<ThreadUse>,
}

impl From<LatencyMs> for Latency {
    fn from(of: LatencyMs) -> Latency {
        // Everything that is recorded takes a nanosecond at least.
        let measured = |ms: f64| (of.max > 0.0).then_some(ms);
        Latency {
            mean: measured(of.mean),
            min: measured(of.min),
            p50: measured(of.p50),
            p90: measured(of.p90),
            p95: measured(of.p95),
            p99: measured(of.p99),
            p999: measured(of.p999),
            max: measured(of.max),
        }
    }
}

impl From<KindReport> for Kind {
    fn from(of: KindReport) -> Kind {
        Kind {
            name: of.name,
            transactions: of.transactions,
            retries: of.retries,
            latency_ms: Latencies { response: of.response.into(), service: of.service.into() },
        }
    }
}

impl From<StatementReport> for Statement {
    fn from(of: StatementReport) -> Statement {
        let latency_ms = of.latency.into();
        Statement { name: of.name, executions: of.executions, errors: of.errors, latency_ms }
    }
}

impl From<Second> for Interval {
    fn from(of: Second) -> Interval {
        Interval {
            at_s: of.at_s,
            end_s: of.end_s,
            length_s: of.length_s,
            measured: of.measured,
            connections: of.connections,
            transactions: of.transactions,
            reads: of.reads,
            writes: of.writes,
            other: of.other,
            errors: of.errors,
            retries: of.retries,
            queued: of.queued,
            late_ms_max: of.late_ms_max,
            response_ms: of.response.into(),
            threads: of.threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_null_and_not_zero() {
        assert_eq!(Latency::from(LatencyMs::default()), Latency::default());
        let some = LatencyMs { mean: 2.0, max: 3.0, ..LatencyMs::default() };
        let some = Latency::from(some);
        assert_eq!((some.mean, some.min, some.max), (Some(2.0), Some(0.0), Some(3.0)));
    }
}
