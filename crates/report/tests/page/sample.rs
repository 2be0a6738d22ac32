//! A small result file for the page's tests: a plain question and one with a sweep, with figures
//! that follow from a formula, so that every test sees the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use serde_json::{Value, json};
use store::*;

const START: i64 = 1_770_000_000_000_000_000;
const WARMUP_S: i32 = 10;

/// What varies between the samples.
pub struct Sample {
    pub title: String,
    pub question: String,
    pub levels: [String; 2],
    pub study_text: String,
    pub measured_s: i32,
    pub answered: bool,
    pub audit_ok: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Sample {
            title: "What does full durability cost?".into(),
            question: "durability".into(),
            levels: ["two".into(), "one".into()],
            study_text: "title = \"What does full durability cost?\"\n[server]\n# a comment\n"
                .into(),
            measured_s: 30,
            answered: true,
            audit_ok: true,
        }
    }
}

impl Sample {
    /// Writes the file: 3 blocks of 2 levels of `question`, 2 blocks of 2 levels × 2 points of
    /// `sweep`, and a failed run.
    pub fn write(&self, path: &Path) -> ResultFile {
        let points = [json!({"load.connections": 8}), json!({"load.connections": 64})];
        let mut file = ResultFile::create(path, &self.header(&points)).unwrap();
        for block in 0..3 {
            for level in 0..2 {
                file.commit_run(&self.run(&self.question, level, &json!({}), block)).unwrap();
            }
        }
        for block in 0..2 {
            for point in &points {
                for level in 0..2 {
                    file.commit_run(&self.run("sweep", level, point, block)).unwrap();
                }
            }
        }
        let mut failed = self.run(&self.question, 1, &json!({}), 3);
        failed.outcome = Outcome::Failed("the server said <no>".into());
        failed.summary = None;
        failed.series.clear();
        failed.histograms.clear();
        file.commit_run(&failed).unwrap();
        if self.answered {
            let answers =
                [self.answer(&self.question, &[json!({})], 3), self.answer("sweep", &points, 2)];
            file.save_answers(&answers).unwrap();
        }
        file
    }

    fn header(&self, points: &[Value]) -> Header {
        let setup =
            json!({"workload": {"oltp_write_only": {"rows": 50_000}}, "load": {"connections": 8}});
        let cells = |points: &[Value]| -> Vec<Value> {
            let mut cells = Vec::new();
            for at in points {
                for level in &self.levels {
                    cells.push(json!({"level": level, "at": at, "setup": setup}));
                }
            }
            cells
        };
        let plan = json!({"seed": 7, "questions": [
            {"name": self.question, "cells": cells(&[json!({})]), "blocks": 3, "max_blocks": 6},
            {"name": "sweep", "cells": cells(points), "blocks": 2, "max_blocks": 2},
        ]});
        let published = json!([
            {"question": self.question, "level": self.levels[0],
             "metric": "transactions_per_second", "value": 500.0, "source": "a post <2018>"},
            {"question": self.question, "level": self.levels[1],
             "metric": "transactions_per_second", "value": 250.0, "source": "a post <2018>"},
        ]);
        Header {
            title: self.title.clone(),
            study_text: self.study_text.clone(),
            overrides: vec!["title=it's mine".into()],
            seed: 7,
            plan_json: plan.to_string(),
            published_json: published.to_string(),
            ceteris_version: "0.1.0".into(),
            created_unix_ns: START,
        }
    }

    fn run(&self, question: &str, level: usize, at: &Value, block: u32) -> RunRecord {
        let connections = at.get("load.connections").and_then(Value::as_f64).unwrap_or(8.0);
        let tps = 1000.0 * connections / 8.0 * [1.0, 0.5][level] * (1.0 + f64::from(block) / 50.0);
        let at_s: Vec<f64> = (1 - WARMUP_S..=self.measured_s).map(f64::from).collect();
        let series = |name: &str, unit: &str, value: &dyn Fn(f64) -> f64| Series {
            name: name.into(),
            unit: unit.into(),
            at_s: at_s.clone(),
            values: at_s.iter().map(|t| value(*t)).collect(),
        };
        let wave = |t: f64| 1.0 + (t * 0.7).sin() / 40.0;
        // As the sampler does: a status series that was always 0 is not there.
        let from_zero = (level == 1)
            .then(|| series("server.status.Innodb_log_waits", "1/s", &|t| 50.0 * wave(t)));
        let mut hdr = Hdr::<u64>::new(3).unwrap();
        for i in 0..20_000u64 {
            hdr.record((8e9 / tps) as u64 * (50 + i % 100) / 100).unwrap();
        }
        let mut hdr_v2 = Vec::new();
        V2Serializer::new().serialize(&hdr, &mut hdr_v2).unwrap();
        let ms = |q: f64| hdr.value_at_quantile(q) as f64 / 1e6;
        let latency = Latency {
            mean_ms: hdr.mean() / 1e6,
            p50_ms: ms(0.5),
            p95_ms: ms(0.95),
            p99_ms: ms(0.99),
            max_ms: hdr.max() as f64 / 1e6,
        };
        let fingerprint: Fingerprint = [
            ("host.cpu.model", "Intel(R) Xeon(R) CPU @ 2.80GHz"),
            ("host.cpu.count", "2"),
            ("host.memory.total_bytes", "25276514304"),
            ("host.kernel.release", "6.1.0-31-amd64"),
            ("server.version", "10.11.11-MariaDB"),
            ("server.variable.innodb_flush_log_at_trx_commit", ["2", "1"][level]),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        RunRecord {
            key: RunKey {
                question: question.into(),
                level: self.levels[level].clone(),
                at: at.to_string(),
                block,
            },
            started_unix_ns: START + i64::from(block) * 60_000_000_000,
            finished_unix_ns: START + i64::from(block) * 60_000_000_000 + 1,
            outcome: Outcome::Finished,
            summary: Some(Summary {
                measured_s: f64::from(self.measured_s),
                transactions: 20_000,
                tps,
                reads: 1,
                writes: 2,
                other: 3,
                errors: BTreeMap::from([("1213".to_owned(), 4)]),
                retries: 4,
                response: latency,
                service: latency,
                generator_user_s: 1.0,
                generator_sys_s: 1.0,
                generator_threads: 1,
                generator_peak: 0.4,
                generator_bound: false,
                steady: level == 0,
                notes: vec!["a note & more".into()],
                instances: Vec::new(),
            }),
            series: [
                series("load.tps", "1/s", &|t| tps * wave(t)),
                series("load.p95", "ms", &|t| 9e3 / tps * wave(t)),
                series("load.p99", "ms", &|t| 12e3 / tps * wave(t)),
                series("host.cpu.user", "fraction", &|t| 0.4 * wave(t)),
                series("server.status.Innodb_os_log_fsyncs", "1/s", &|t| {
                    [1.0, 400.0][level] * wave(t)
                }),
                series("server.status.Com_commit", "1/s", &|t| tps * wave(t)),
                series("server.status.Never_moved", "1/s", &wave),
            ]
            .into_iter()
            .chain(from_zero)
            .collect(),
            histograms: vec![
                Histogram { name: "response".into(), unit: "ns".into(), hdr_v2: hdr_v2.clone() },
                Histogram { name: "service".into(), unit: "ns".into(), hdr_v2 },
            ],
            before: fingerprint.clone(),
            after: fingerprint,
            commands: vec![CommandRecord {
                at_unix_ns: START,
                command: "mariadbd --defaults-file=<instance>/my.cnf".into(),
                took_ms: None,
                status: None,
            }],
            events: vec![Event {
                at_unix_ns: START,
                kind: "phase".into(),
                text: "warm <up>".into(),
            }],
            logs: vec![LogText {
                name: "error.log".into(),
                text: "[Note] </pre><script>\n".into(),
            }],
        }
    }

    fn answer(&self, question: &str, points: &[Value], blocks: u32) -> Answer {
        let effect = |metric: &str, at: &Value, ratio: f64, verdict: &str| AnsweredEffect {
            level: self.levels[1].clone(),
            at: serde_json::from_value(at.clone()).unwrap(),
            metric: metric.into(),
            ratio,
            low: Some(ratio * 0.97),
            high: Some(ratio * 1.03),
            verdict: if self.audit_ok { verdict.into() } else { "confounded".into() },
            blocks,
        };
        let difference = |name: &str, reason: &str| Difference {
            name: name.into(),
            values: BTreeMap::from([
                (self.levels[0].clone(), "2".to_owned()),
                (self.levels[1].clone(), "1".to_owned()),
            ]),
            reason: reason.into(),
        };
        let single = points.len() == 1;
        Answer {
            name: question.into(),
            factor: "server.config.innodb_flush_log_at_trx_commit".into(),
            baseline: self.levels[0].clone(),
            verdict: match (self.audit_ok, single) {
                (false, _) => Some("confounded".into()),
                (true, true) => Some("lower".into()),
                (true, false) => None,
            },
            audit: Audit {
                ok: self.audit_ok,
                unexplained: if self.audit_ok {
                    vec![]
                } else {
                    vec![difference("server.variable.sync_binlog", "no reason is known")]
                },
                factor: vec![difference(
                    "server.variable.innodb_flush_log_at_trx_commit",
                    "the factor itself",
                )],
                consequences: vec![],
                compared: 1184,
            },
            effects: points
                .iter()
                .flat_map(|at| {
                    [effect("tps", at, 0.5, "lower"), effect("p95_ms", at, 2.0, "higher")]
                })
                .collect(),
            runs: vec![],
            margin: 0.01,
            precision: 0.02,
            confidence: 0.95,
            sentence: format!("{question}: transactions per second lower by 50.0 % & so on"),
        }
    }
}
