//! Hand-made result files, each small enough that its text can be checked by eye: the figures are
//! round and nothing in them is random.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use store::*;

/// 2026-01-02 03:04:05 UTC.
const START: i64 = 1_767_323_045_000_000_000;

/// A result file in the making.
pub struct Case {
    title: &'static str,
    published: Value,
    runs: Vec<RunRecord>,
    answers: Vec<Answer>,
}

/// One effect beside its control.
pub fn plain() -> Case {
    let mut durability = answer("durability", "2", "innodb_flush_log_at_trx_commit");
    durability.verdict = Some("lower".to_owned());
    durability.sentence = "with 1 instead of 2, throughput is lower by 28.2 %, between 25.5 and \
                           30.8 % at 95 % confidence, over 6 blocks"
        .to_owned();
    durability.effects = vec![
        effect("1", json!({}), "tps", 0.718, Some((0.692, 0.745)), "lower"),
        effect("1", json!({}), "p95_ms", 1.62, Some((1.5, 1.75)), "higher"),
    ];
    durability.audit.factor = vec![differed(
        "server.variable.innodb_flush_log_at_trx_commit",
        "it is the factor",
        &[("1", "1"), ("2", "2")],
    )];
    let mut control = answer("control", "a", "innodb_flush_log_at_trx_commit");
    control.verdict = Some("equivalent".to_owned());
    control.sentence = "b and a are equivalent within 5 %".to_owned();
    control.effects = vec![
        effect("b", json!({}), "tps", 1.002, Some((0.99, 1.0142)), "equivalent"),
        effect("b", json!({}), "p95_ms", 0.97, Some((0.9, 1.045)), "undecided"),
    ];
    Case {
        title: "What does full durability cost?",
        published: json!([
            {"question": "durability", "level": "2", "metric": "transactions_per_second",
             "value": 1041.22, "source": "a post of 2018"},
            {"question": "durability", "level": "1", "metric": "transactions_per_second",
             "value": 780.9, "source": "a post of 2018"},
        ]),
        runs: vec![],
        answers: vec![durability, control],
    }
    .measured("durability", &[("2", 1000.0), ("1", 718.0)], &[json!({})], 6)
    .measured("control", &[("a", 1000.0), ("b", 1002.0)], &[json!({})], 6)
}

/// One block, so no interval; runs that were not level, with errors, and one that failed.
pub fn undecided() -> Case {
    let mut one = answer("flush-method", "fsync", "innodb_flush_method");
    one.verdict = Some("undecided".to_owned());
    one.sentence = "undecided after 1 block: no interval yet".to_owned();
    one.effects = vec![effect("O_DIRECT", json!({}), "tps", 1.04, None, "undecided")];
    one.effects[0].blocks = 1;
    let mut case = Case {
        title: "Does O_DIRECT help?",
        published: json!([]),
        runs: vec![],
        answers: vec![one],
    }
    .measured("flush-method", &[("fsync", 500.0), ("O_DIRECT", 520.0)], &[json!({})], 1);
    for line in &mut case.answers[0].runs {
        line.steady = false;
        line.generator_bound = line.level == "fsync";
        line.errors = BTreeMap::from([("1205".to_owned(), 1), ("1213".to_owned(), 4)]);
    }
    let mut failed = case.runs[0].clone();
    failed.key.block = 1;
    failed.outcome = Outcome::Failed("the server said, \"no\"\nand left".to_owned());
    failed.summary = None;
    case.runs.push(failed);
    case
}

/// A second variable was different, which no word of the answer may hide.
pub fn confounded() -> Case {
    let mut case = plain();
    case.answers.truncate(1);
    let answer = &mut case.answers[0];
    answer.verdict = Some("confounded".to_owned());
    answer.sentence = "confounded: sync_binlog differed between the levels as well".to_owned();
    answer.audit.ok = false;
    answer.audit.unexplained = vec![
        differed("server.variable.sync_binlog", "not explained", &[("1", "1"), ("2", "0")]),
        differed(
            "server.variable.optimizer_switch",
            "not explained",
            &[("1", &"index_merge=on,".repeat(40)), ("2", &"index_merge=off,".repeat(40))],
        ),
    ];
    answer.audit.consequences = vec![differed(
        "server.variable.innodb_log_write_ahead_size",
        "the server derives it from the factor",
        &[("1", "512"), ("2", "4096")],
    )];
    for effect in &mut answer.effects {
        effect.verdict = "confounded".to_owned();
    }
    case
}

/// Three levels along two sweep points, with a long level name.
pub fn sweep() -> Case {
    let points = [json!({"load.connections": 8}), json!({"load.connections": 512})];
    let levels = [("bare-metal", 2000.0), ("guest", 1500.0), ("guest-with-pinned-cpus", 1800.0)];
    let mut placement = answer("virtualisation", "bare-metal", "placement");
    placement.sentence = "against bare-metal: guest is lower by 25.0 % at 8 and by 40.0 % at 512 \
                          connections; guest-with-pinned-cpus is undecided"
        .to_owned();
    placement.effects = vec![
        effect("guest", points[0].clone(), "tps", 0.75, Some((0.74, 0.76)), "lower"),
        effect("guest", points[1].clone(), "tps", 0.6, Some((0.55, 0.66)), "lower"),
        effect(levels[2].0, points[0].clone(), "tps", 0.96, Some((0.91, 1.02)), "undecided"),
        effect(levels[2].0, points[1].clone(), "tps", 0.9, Some((0.8, 1.0125)), "undecided"),
    ];
    Case {
        title: "What does a KVM guest cost?",
        published: json!([]),
        runs: vec![],
        answers: vec![placement],
    }
    .measured("virtualisation", &levels, &points, 3)
}

/// A study that has just begun.
pub fn empty() -> Case {
    let mut begun = answer("durability", "2", "innodb_flush_log_at_trx_commit");
    begun.sentence = "no block has finished yet".to_owned();
    begun.audit.compared = 0;
    Case {
        title: "What does full durability cost?",
        published: json!([]),
        runs: vec![],
        answers: vec![begun],
    }
}

impl Case {
    /// Writes the file and opens it as a reader does.
    pub fn write(&self, folder: &Path) -> ResultFile {
        let path = folder.join("case.ceteris");
        let header = Header {
            title: self.title.to_owned(),
            study_text: format!("title = \"{}\"\n", self.title),
            overrides: vec![],
            seed: 7,
            plan_json: json!({"seed": 7, "questions": []}).to_string(),
            published_json: self.published.to_string(),
            ceteris_version: "0.1.0".to_owned(),
            created_unix_ns: START,
        };
        let mut file = ResultFile::create(&path, &header).unwrap();
        for run in &self.runs {
            file.commit_run(run).unwrap();
        }
        file.save_answers(&self.answers).unwrap();
        drop(file);
        ResultFile::open_read_only(&path).unwrap()
    }

    /// The answers, to be bent before they are written.
    pub fn answers(&mut self) -> &mut Vec<Answer> {
        &mut self.answers
    }

    /// The runs, to be bent before they are written.
    pub fn runs(&mut self) -> &mut Vec<RunRecord> {
        &mut self.runs
    }

    /// Adds runs of every level and point; each block is a hundredth faster than the one before.
    fn measured(
        mut self,
        question: &str,
        levels: &[(&str, f64)],
        points: &[Value],
        blocks: u32,
    ) -> Case {
        let answer = self.answers.iter_mut().find(|answer| answer.name == question).unwrap();
        for block in 0..blocks {
            for at in points {
                for (level, tps) in levels {
                    let tps = tps * (1.0 + f64::from(block) / 100.0);
                    let run = run(question, level, at, block, tps);
                    answer.runs.push(RunLine {
                        level: (*level).to_owned(),
                        block,
                        at: serde_json::from_value(at.clone()).unwrap(),
                        tps,
                        p95_ms: 8000.0 / tps,
                        errors: BTreeMap::new(),
                        steady: true,
                        generator_bound: false,
                    });
                    self.runs.push(run);
                }
            }
        }
        self
    }
}

fn run(question: &str, level: &str, at: &Value, block: u32, tps: f64) -> RunRecord {
    let response = Latency {
        mean_ms: 5000.0 / tps,
        p50_ms: 4000.0 / tps,
        p95_ms: 8000.0 / tps,
        p99_ms: 9000.0 / tps,
        max_ms: 20_000.0 / tps,
    };
    let started_unix_ns = START + i64::from(block) * 60_000_000_000;
    RunRecord {
        key: RunKey {
            question: question.to_owned(),
            level: level.to_owned(),
            at: at.to_string(),
            block,
        },
        started_unix_ns,
        finished_unix_ns: started_unix_ns + 20_000_000_000,
        outcome: Outcome::Finished,
        summary: Some(Summary {
            measured_s: 10.0,
            transactions: (tps * 10.0) as u64,
            tps,
            reads: 10,
            writes: 40,
            other: 20,
            errors: BTreeMap::from([("1205".to_owned(), 1), ("1213".to_owned(), 4)]),
            retries: 5,
            response,
            service: response,
            generator_user_s: 0.5,
            generator_sys_s: 0.25,
            generator_threads: 1,
            generator_peak: 0.1,
            generator_bound: false,
            steady: true,
            notes: vec![],
            instances: Vec::new(),
        }),
        series: vec![],
        histograms: vec![],
        before: Fingerprint::new(),
        after: Fingerprint::new(),
        commands: vec![],
        events: vec![],
        logs: vec![],
    }
}

fn answer(name: &str, baseline: &str, variable: &str) -> Answer {
    Answer {
        name: name.to_owned(),
        factor: match variable {
            "placement" => variable.to_owned(),
            variable => format!("server.config.{variable}"),
        },
        baseline: baseline.to_owned(),
        verdict: None,
        audit: Audit { ok: true, compared: 631, ..Audit::default() },
        effects: vec![],
        runs: vec![],
        margin: 0.05,
        precision: 0.02,
        confidence: 0.95,
        sentence: String::new(),
    }
}

fn effect(
    level: &str,
    at: Value,
    metric: &str,
    ratio: f64,
    interval: Option<(f64, f64)>,
    verdict: &str,
) -> AnsweredEffect {
    AnsweredEffect {
        level: level.to_owned(),
        at: serde_json::from_value(at).unwrap(),
        metric: metric.to_owned(),
        ratio,
        low: interval.map(|ends| ends.0),
        high: interval.map(|ends| ends.1),
        verdict: verdict.to_owned(),
        blocks: 6,
    }
}

fn differed(name: &str, reason: &str, values: &[(&str, &str)]) -> Difference {
    Difference {
        name: name.to_owned(),
        values: values.iter().map(|(who, what)| ((*who).to_owned(), (*what).to_owned())).collect(),
        reason: reason.to_owned(),
    }
}
