//! From runs to answers: pairs the runs of each block, asks `stats` for effects and verdicts and
//! `observe` for the audit, and says the answer in a sentence. `docs/verdicts.md` is the rule.

use std::collections::BTreeMap;

use observe::{Compared, Kind};
use serde_json::Value;
use stats::{Effect, Verdict};
use store::{
    Answer, AnsweredEffect, Audit, Difference, Outcome, ResultFile, RunLine, StoredRun, Summary,
};
use study::{Level, Plan, PlannedQuestion, Question, Study};

use super::sweep_point;
use crate::failure::Failure;

/// A figure of a run that effects are computed of.
struct Metric {
    /// As in `docs/show.schema.json`.
    name: &'static str,
    /// For people.
    words: &'static str,
    of: fn(&Summary) -> f64,
}

/// The first is the one that a question's own verdict speaks of.
const METRICS: [Metric; 2] = [
    Metric { name: "tps", words: "throughput", of: |summary| summary.tps },
    Metric { name: "p95_ms", words: "p95 response time", of: |summary| summary.response.p95_ms },
];

/// The answers of every question, from what has finished so far.
pub fn answers(study: &Study, plan: &Plan, file: &ResultFile) -> Result<Vec<Answer>, Failure> {
    let runs = file.runs()?;
    let mut answers = Vec::new();
    for (question, planned) in study.questions.iter().zip(&plan.questions) {
        let mine: Vec<&StoredRun> = finished_runs(&runs, &question.name);
        let audit = audit(question, &mine, file)?;
        answers.push(answer(question, planned, &mine, audit));
    }
    Ok(answers)
}

/// Whether every effect's interval is as narrow as the question asks.
pub fn known_well_enough(
    question: &Question,
    planned: &PlannedQuestion,
    file: &ResultFile,
) -> Result<bool, Failure> {
    let runs = file.runs()?;
    let mine = finished_runs(&runs, &question.name);
    let effects = effects(question, planned, &mine, &METRICS[0]);
    let effects: Vec<Effect> = effects.into_iter().map(|(_, effect)| effect).collect();
    Ok(stats::enough(&effects, question.precision.0))
}

fn finished_runs<'a>(runs: &'a [StoredRun], question: &str) -> Vec<&'a StoredRun> {
    let mine = |run: &&StoredRun| run.key.question == question && run.outcome == Outcome::Finished;
    runs.iter().filter(mine).collect()
}

/// Which level at which sweep point an effect is of.
struct Contrast<'a> {
    level: &'a str,
    at: &'a BTreeMap<String, Value>,
}

/// The effects of one metric: all non-baseline levels at all sweep points are one family.
fn effects<'a>(
    question: &Question,
    planned: &'a PlannedQuestion,
    runs: &[&StoredRun],
    metric: &Metric,
) -> Vec<(Contrast<'a>, Effect)> {
    let baseline = &question.levels[0].name;
    let mut figures: BTreeMap<(&str, &str, u32), f64> = BTreeMap::new();
    for run in runs {
        if let Some(summary) = &run.summary {
            let key = (run.key.level.as_str(), run.key.at.as_str(), run.key.block);
            figures.insert(key, (metric.of)(summary));
        }
    }
    let blocks = runs.iter().map(|run| run.key.block + 1).max().unwrap_or(0);
    let mut contrasts = Vec::new();
    let mut family = Vec::new();
    for cell in planned.cells.iter().filter(|cell| &cell.level != baseline) {
        let at = sweep_point(&cell.at);
        let pair = |block| {
            let of = |level: &str| figures.get(&(level, at.as_str(), block)).copied();
            Some((of(baseline)?, of(&cell.level)?))
        };
        family.push((0..blocks).filter_map(pair).collect());
        contrasts.push(Contrast { level: &cell.level, at: &cell.at });
    }
    contrasts.into_iter().zip(stats::effects(&family, question.confidence)).collect()
}

fn answer(
    question: &Question,
    planned: &PlannedQuestion,
    runs: &[&StoredRun],
    audit: Audit,
) -> Answer {
    let mut answered = Vec::new();
    for metric in &METRICS {
        for (contrast, effect) in effects(question, planned, runs, metric) {
            // Of no block there is no ratio; the pair appears with its first block.
            if effect.blocks == 0 {
                continue;
            }
            let verdict = if audit.ok {
                verdict_word(stats::verdict(&effect, question.margin.0))
            } else {
                "confounded"
            };
            answered.push(AnsweredEffect {
                level: contrast.level.to_owned(),
                at: contrast.at.clone(),
                metric: metric.name.to_owned(),
                ratio: effect.ratio,
                low: (effect.blocks > 1).then_some(effect.low),
                high: effect.high.is_finite().then_some(effect.high),
                verdict: verdict.to_owned(),
                blocks: effect.blocks,
            });
        }
    }
    let judged = answered.iter().filter(|e| e.metric == METRICS[0].name);
    let verdict = match judged.collect::<Vec<_>>().as_slice() {
        [only] => Some(only.verdict.clone()),
        [_, ..] if !audit.ok => Some("confounded".to_owned()),
        _ => None,
    };
    let sentence = sentence(question, &answered, &audit) + &caveats(runs);
    Answer {
        name: question.name.clone(),
        factor: question.factor.paths.join(" + "),
        baseline: question.levels[0].name.clone(),
        verdict,
        audit,
        effects: answered,
        runs: runs.iter().filter_map(|run| run_line(run)).collect(),
        margin: question.margin.0,
        precision: question.precision.0,
        confidence: question.confidence,
        sentence,
    }
}

fn run_line(run: &StoredRun) -> Option<RunLine> {
    let summary = run.summary.as_ref()?;
    Some(RunLine {
        level: run.key.level.clone(),
        block: run.key.block,
        at: serde_json::from_str(&run.key.at).unwrap_or_default(),
        tps: summary.tps,
        p95_ms: summary.response.p95_ms,
        errors: summary.errors.clone(),
        steady: summary.steady,
        generator_bound: summary.generator_bound,
    })
}

fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Higher => "higher",
        Verdict::Lower => "lower",
        Verdict::Equivalent => "equivalent",
        Verdict::Undecided => "undecided",
    }
}

/// The answer in a sentence; of a sweep, the span of its effects.
fn sentence(question: &Question, effects: &[AnsweredEffect], audit: &Audit) -> String {
    let factor = question.factor.paths.join(" + ");
    let baseline = &question.levels[0].name;
    if effects.is_empty() {
        return format!("nothing is known of {factor} yet");
    }
    if !audit.ok {
        let names: Vec<&str> = audit.unexplained.iter().take(3).map(|d| d.name.as_str()).collect();
        let more = audit.unexplained.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return format!(
            "confounded: {}{more} differed as well, so no effect of {factor} can be told",
            names.join(", ")
        );
    }
    let mut parts = Vec::new();
    for level in question.levels.iter().skip(1) {
        for metric in &METRICS {
            let mine: Vec<&AnsweredEffect> = effects
                .iter()
                .filter(|e| e.level == level.name && e.metric == metric.name)
                .collect();
            if let Some(said) = said_of(metric, &mine, question) {
                parts.push((called(question, level), said));
            }
        }
    }
    let mut sentence = String::new();
    for (index, (level, said)) in parts.iter().enumerate() {
        let same = index > 0 && parts[index - 1].0 == *level;
        match (index, same) {
            (0, _) => sentence.push_str(&format!("{level} against {baseline}: {said}")),
            (_, true) => sentence.push_str(&format!("; {said}")),
            (_, false) => sentence.push_str(&format!(". {level} against {baseline}: {said}")),
        }
    }
    sentence
}

/// What a quoted sentence must not leave out.
fn caveats(runs: &[&StoredRun]) -> String {
    let count = |of: fn(&Summary) -> bool| {
        runs.iter().filter_map(|run| run.summary.as_ref()).filter(|s| of(s)).count()
    };
    let all = runs.len();
    let mut text = String::new();
    let bound = count(|summary| summary.generator_bound);
    if bound > 0 {
        text.push_str(&format!("; the generator was the bottleneck in {bound} of {all} runs"));
    }
    let unsteady = count(|summary| !summary.steady);
    if unsteady > 0 {
        text.push_str(&format!("; {unsteady} of {all} runs were not steady"));
    }
    text
}

fn said_of(metric: &Metric, effects: &[&AnsweredEffect], question: &Question) -> Option<String> {
    let confidence = 100.0 * question.confidence;
    match effects {
        [] => None,
        [only] => {
            let interval = match (only.low, only.high) {
                (Some(low), Some(high)) => format!(
                    " ({confidence:.0} % interval {} to {}, {} blocks)",
                    percent(low),
                    percent(high),
                    only.blocks
                ),
                _ => " (one block, no interval)".to_owned(),
            };
            Some(match only.verdict.as_str() {
                "equivalent" => format!(
                    "{} is equivalent within ±{:.1} %{interval}",
                    metric.words,
                    100.0 * question.margin.0
                ),
                "undecided" => {
                    format!(
                        "no difference of {} shown, {}{interval}",
                        metric.words,
                        percent(only.ratio)
                    )
                }
                word => {
                    let by = 100.0 * (only.ratio - 1.0).abs();
                    format!("{} {word} by {by:.1} %{interval}", metric.words)
                }
            })
        }
        many => {
            let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
            for effect in many {
                *counts.entry(effect.verdict.as_str()).or_default() += 1;
            }
            let counts: Vec<String> =
                counts.iter().map(|(word, n)| format!("{word} at {n}")).collect();
            let lowest = many.iter().map(|e| e.ratio).fold(f64::INFINITY, f64::min);
            let highest = many.iter().map(|e| e.ratio).fold(0.0, f64::max);
            Some(format!(
                "{} {} of {} sweep points, {} to {}",
                metric.words,
                counts.join(", "),
                many.len(),
                percent(lowest),
                percent(highest)
            ))
        }
    }
}

/// A level for people: `innodb_flush_method = O_DIRECT` where its name is but its value.
fn called(question: &Question, level: &Level) -> String {
    let unnamed = |value: &Value| match value {
        Value::String(text) => *text == level.name,
        other => {
            let written = other.to_string();
            written == level.name
        }
    };
    match (question.factor.paths.as_slice(), level.values.as_slice()) {
        ([path], [value]) if unnamed(value) => {
            let leaf = path.rsplit_once('.').map_or(path.as_str(), |(_, leaf)| leaf);
            format!("{leaf} = {}", level.name)
        }
        _ => level.name.clone(),
    }
}

fn percent(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * (ratio - 1.0)).replace('-', "\u{2212}")
}

fn audit(question: &Question, runs: &[&StoredRun], file: &ResultFile) -> Result<Audit, Failure> {
    let mut compared = Vec::new();
    for run in runs {
        let (before, after) = file.fingerprints(run.id)?;
        compared.push(Compared {
            level: run.key.level.clone(),
            at: run.key.at.clone(),
            block: run.key.block,
            before,
            after,
        });
    }
    let factor = observe::Factor {
        paths: question.factor.paths.clone(),
        levels: question.levels.iter().map(|l| (l.name.clone(), l.values.clone())).collect(),
    };
    let (findings, names) = observe::audit(&factor, &compared);
    let mut audit = Audit { compared: names, ..Audit::default() };
    for finding in findings {
        let list = match finding.kind {
            Kind::Factor => &mut audit.factor,
            Kind::Consequence => &mut audit.consequences,
            Kind::Unexplained => &mut audit.unexplained,
        };
        list.push(Difference {
            name: finding.name,
            values: finding.values,
            reason: finding.reason,
        });
    }
    audit.ok = audit.unexplained.is_empty();
    Ok(audit)
}
