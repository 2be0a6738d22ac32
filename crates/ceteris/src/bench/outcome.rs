//! What a run measured: the JSON contract, `docs/bench.schema.json`. The text is rendered from the
//! same struct, so that both say the same.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use load::{DriveReport, DriveSpec, Fairness, LatencyMs, Second, Target};
use serde::Serialize;
use serde_json::{Value, json};
use study::Workload;
use workload::{Survey, TableState};

use super::figures::{Interval, Kind, Latencies, Latency, Statement};
use crate::doubts::{Doubts, doubts};

/// Number of the contract; a change that breaks readers raises it.
const SCHEMA: u32 = 2;

/// See the module.
#[derive(Serialize)]
pub struct Outcome {
    pub schema: u32,
    pub ceteris: &'static str,
    /// Ctrl-C came before the end.
    pub interrupted: bool,
    /// Why the drive ended before its time, if it did: everything is of the time until then.
    pub ended_early: Option<String>,
    pub server: Server,
    pub workload: Driven,
    pub options: Value,
    pub measured_s: f64,
    pub transactions: u64,
    pub transactions_per_second: f64,
    pub statements: Statements,
    /// By code.
    pub errors: BTreeMap<String, u64>,
    pub retries: u64,
    pub reconnects: u64,
    pub failed: u64,
    pub never_started: u64,
    pub overdue_at_end: u64,
    pub in_flight_at_end: u64,
    pub stalled_at_end: u64,
    pub latency_ms: Latencies,
    pub kinds: Vec<Kind>,
    pub statements_by_name: Vec<Statement>,
    pub fairness: Option<Fairness>,
    pub generator: Generator,
    pub per_second: Vec<Interval>,
    /// Null where that cannot be said: a short run, or one whose stages change the pace.
    pub steady: Option<bool>,
    pub warnings: Vec<String>,
    pub histograms: Encoded,
    /// Response times in nanoseconds.
    #[serde(skip)]
    pub response: Option<Histogram<u64>>,
}

#[derive(Serialize)]
pub struct Server {
    pub version: String,
    pub address: String,
    pub user: String,
    pub database: String,
    pub tls: load::Tls,
}

#[derive(Serialize)]
pub struct Driven {
    pub name: &'static str,
    /// Every knob, those included that were not given.
    pub options: Value,
    pub tables: usize,
    /// How many of them ceteris bench did not create.
    pub foreign_tables: usize,
}

#[derive(Serialize)]
pub struct Statements {
    pub total: u64,
    pub read: u64,
    pub write: u64,
    pub other: u64,
    pub per_second: f64,
}

#[derive(Serialize)]
pub struct Generator {
    pub user_s: f64,
    pub sys_s: f64,
    /// Both, per statement.
    pub cpu_us_per_statement: f64,
    pub threads: u32,
    pub pinned: Vec<usize>,
    pub reactor: String,
    pub scheduling: String,
    pub connect_ms: f64,
    pub peak_thread_share: f64,
    pub peak_thread_wait: f64,
    /// It was the bottleneck.
    pub bound: bool,
    pub schedule_error_ms: Latency,
    pub batch_delay_ms: LatencyMs,
    pub clock_error_ms: LatencyMs,
}

/// HdrHistogram V2, base64, nanoseconds; empty where there is none.
#[derive(Serialize)]
pub struct Encoded {
    pub response_hdr_base64: String,
    pub service_hdr_base64: String,
}

/// How the drive began.
#[derive(Clone, Default)]
pub struct Start {
    pub connect_ms: f64,
    pub threads: u32,
    pub pinned: Vec<usize>,
    pub reactor: String,
}

/// What is told besides the report.
pub struct Circumstances<'a> {
    pub workload: &'a Workload,
    pub spec: &'a DriveSpec,
    pub target: &'a Target,
    pub survey: &'a Survey,
    pub start: Start,
    pub end: End,
}

/// How the drive ended.
pub enum End {
    /// As it was asked to.
    Whole,
    /// By Ctrl-C.
    Interrupted,
    /// By this error.
    Failed(String),
}

impl Outcome {
    /// Of what `report` and `seconds` tell.
    pub fn new(about: Circumstances<'_>, report: DriveReport, seconds: Vec<Second>) -> Outcome {
        let Circumstances { workload, spec, target, survey, start, end } = about;
        let Doubts { steady, generator_bound, notes } = doubts(&report, &seconds, &spec.pacing);
        let total = report.reads + report.writes + report.other;
        let per_second = |count: u64| ratio(count as f64, report.measured_s);
        let foreign = |table: &&workload::FoundTable| table.state == TableState::Foreign;
        let generator = report.generator;
        Outcome {
            schema: SCHEMA,
            ceteris: env!("CARGO_PKG_VERSION"),
            interrupted: matches!(end, End::Interrupted),
            ended_early: match end {
                End::Whole => None,
                End::Interrupted => Some("stopped by Ctrl-C".to_owned()),
                End::Failed(why) => Some(why),
            },
            server: Server {
                version: survey.server_version.clone(),
                address: target.address.to_string(),
                user: target.user.clone(),
                database: target.database.clone(),
                tls: target.tls.clone(),
            },
            workload: Driven {
                name: workload.name(),
                options: knobs(workload),
                tables: survey.tables.len(),
                foreign_tables: survey.tables.iter().filter(foreign).count(),
            },
            options: options(spec),
            measured_s: report.measured_s,
            transactions: report.transactions,
            transactions_per_second: per_second(report.transactions),
            statements: Statements {
                total,
                read: report.reads,
                write: report.writes,
                other: report.other,
                per_second: per_second(total),
            },
            errors: report.errors,
            retries: report.retries,
            reconnects: report.reconnects,
            failed: report.failed,
            never_started: report.never_started,
            overdue_at_end: report.overdue_at_end,
            in_flight_at_end: report.in_flight_at_end,
            stalled_at_end: report.stalled_at_end,
            latency_ms: Latencies {
                response: report.response.into(),
                service: report.service.into(),
            },
            kinds: report.kinds.into_iter().map(Kind::from).collect(),
            statements_by_name: report.statements.into_iter().map(Statement::from).collect(),
            fairness: report.fairness,
            generator: Generator {
                user_s: report.user_s,
                sys_s: report.sys_s,
                cpu_us_per_statement: 1e6 * ratio(report.user_s + report.sys_s, total as f64),
                threads: start.threads,
                pinned: start.pinned,
                reactor: start.reactor,
                scheduling: generator.scheduling,
                connect_ms: start.connect_ms,
                peak_thread_share: report.peak_thread_share,
                peak_thread_wait: report.peak_thread_wait,
                bound: generator_bound,
                schedule_error_ms: report.schedule_error.into(),
                batch_delay_ms: generator.batch_delay,
                clock_error_ms: generator.clock_error,
            },
            per_second: seconds.into_iter().map(Interval::from).collect(),
            steady,
            warnings: notes,
            response: histogram(&report.response_hdr_base64),
            histograms: Encoded {
                response_hdr_base64: report.response_hdr_base64,
                service_hdr_base64: report.service_hdr_base64,
            },
        }
    }
}

/// `a / b`, 0 where there is nothing to divide by.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// The table of the workload's only key.
fn knobs(workload: &Workload) -> Value {
    match serde_json::to_value(workload) {
        Ok(Value::Object(variants)) => variants.into_iter().next().map_or(json!({}), |(_, v)| v),
        _ => json!({}),
    }
}

/// Every option in force, by the names of the flags; times in seconds.
fn options(spec: &DriveSpec) -> Value {
    let pacing = &spec.pacing;
    let stages: Vec<Value> = pacing
        .stages
        .iter()
        .map(|stage| {
            json!({
                "at_s": stage.at.as_secs_f64(),
                "ramp_s": stage.ramp.as_secs_f64(),
                "rate_per_second": stage.rate_per_second,
                "connections": stage.connections,
            })
        })
        .collect();
    json!({
        "connections": spec.connections,
        "workers": spec.threads,
        "time_s": spec.measure.as_secs_f64(),
        "warmup_s": spec.warmup.as_secs_f64(),
        "seed": spec.seed,
        "rate_per_second": pacing.rate_per_second,
        "arrivals": pacing.arrivals,
        "think_time_s": pacing.think.as_secs_f64(),
        "stages": stages,
        "protocol": spec.protocol,
        "on_lost": spec.on_lost,
        "retry_errors": spec.retried_errors,
        "reactor": spec.engine.reactor,
        "batching_share": match spec.engine.batching {
            load::Batching::Off => None,
            load::Batching::Share(share) => Some(share),
        },
        "scheduling": spec.engine.scheduling,
    })
}

fn histogram(base64: &str) -> Option<Histogram<u64>> {
    let bytes = load::decode_base64(base64).filter(|bytes| !bytes.is_empty())?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_in_force_is_left_out() {
        let named = options(&DriveSpec::default());
        // Fields of DriveSpec: the target stands elsewhere, pinning is told as it came out.
        for name in ["connections", "workers", "time_s", "warmup_s", "seed", "protocol", "on_lost"]
        {
            assert!(named.get(name).is_some(), "{name}");
        }
        assert_eq!(named["retry_errors"], json!([1213, 1205, 1020]));
    }
}
