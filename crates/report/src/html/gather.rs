//! Everything that the page shows, read from the result file once and put into the shape in which
//! the page speaks of it: questions with levels, sweep points and runs.
//!
//! Works on a file that a study is still writing: a question without an answer has only its runs.

use std::collections::BTreeMap;

use crate::published::Published;
use serde_json::Value;
use store::{
    Answer, CommandRecord, Event, Fingerprint, Header, LogText, Outcome, ResultFile, RunKey,
    StoredRun, Summary,
};

use super::evidence::{self, SeriesSet};
use super::latency::Merged;

/// The whole page's material.
pub struct Material {
    /// What the file knew before its first run.
    pub header: Header,
    /// In the plan's order, then those that only answers or runs know.
    pub questions: Vec<Question>,
    /// Figures from elsewhere.
    pub published: Vec<Published>,
    /// Fingerprints before the first finished run of each level of each question.
    pub observed: Vec<Observed>,
    /// What each run left besides figures, in the order in which they ran.
    pub traces: Vec<Trace>,
    /// Commands that belong to no run.
    pub study_commands: Vec<CommandRecord>,
    /// What could not be read, a line each.
    pub unread: Vec<String>,
}

/// One question.
pub struct Question {
    /// Its name.
    pub name: String,
    /// Once there is one.
    pub answer: Option<Answer>,
    /// Names, the baseline first.
    pub levels: Vec<String>,
    /// At least one; the only one is `{}` without a sweep.
    pub points: Vec<Point>,
    /// The baseline's setup at the first sweep point, where the plan tells it.
    pub setup: Option<Value>,
    /// Finished runs with figures, in the order in which they ran.
    pub runs: Vec<Run>,
    /// Series worth showing.
    pub series: Vec<SeriesSet>,
    /// By cell: (level, point) and the clock's name.
    pub latency: Vec<CellLatency>,
}

impl Question {
    /// It goes along a sweep.
    pub fn swept(&self) -> bool {
        self.points.len() > 1
    }
}

/// One sweep point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Canonical JSON, as in the runs' keys.
    pub key: String,
    /// For people: `connections = 8`; empty without a sweep.
    pub label: String,
    /// The value, where the sweep has one axis.
    pub value: Option<Value>,
}

/// One finished run.
pub struct Run {
    /// As listed in the file.
    pub stored: StoredRun,
    /// Its figures.
    pub summary: Summary,
    /// Index into the question's levels.
    pub level: usize,
    /// Index into the question's points.
    pub point: usize,
}

/// Merged histograms of one cell.
pub struct CellLatency {
    /// Index into the question's levels.
    pub level: usize,
    /// Index into the question's points.
    pub point: usize,
    /// `response` or `service`.
    pub clock: String,
    /// The histograms.
    pub merged: Merged,
}

/// Conditions as observed before a run.
pub struct Observed {
    /// Whose: `question / level`.
    pub label: String,
    /// Name to value.
    pub fingerprint: Fingerprint,
}

/// What a run left besides figures.
pub struct Trace {
    /// Which run.
    pub key: RunKey,
    /// Begin, nanoseconds since the Unix epoch.
    pub started_unix_ns: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// In order.
    pub commands: Vec<CommandRecord>,
    /// In order.
    pub events: Vec<Event>,
    /// Server logs.
    pub logs: Vec<LogText>,
}

/// Reads a result file.
///
/// # Errors
/// The file's; a plan, a published figure or a histogram that cannot be understood is told in
/// [`Material::unread`] instead, because the rest of the page is worth having without it.
pub fn gather(file: &ResultFile) -> crate::Result<Material> {
    let header = file.header()?;
    let runs = file.runs()?;
    let mut unread = Vec::new();
    let plan: Value = serde_json::from_str(&header.plan_json).unwrap_or_else(|e| {
        unread.push(format!("the plan: {e}"));
        Value::Null
    });
    let published = if header.published_json.trim().is_empty() {
        Vec::new()
    } else {
        serde_json::from_str(&header.published_json).unwrap_or_else(|e| {
            unread.push(format!("the published figures: {e}"));
            Vec::new()
        })
    };

    let mut questions = outline(&plan, file.answers()?, &runs);
    for question in &mut questions {
        question.runs = runs_of(question, &runs);
        question.series = evidence::choose(file, question)?;
        question.latency = latency_of(file, question, &mut unread)?;
    }
    let observed = observed(file, &questions)?;
    let mut traces = Vec::with_capacity(runs.len());
    for run in runs {
        traces.push(Trace {
            commands: file.commands(run.id)?,
            events: file.events(run.id)?,
            logs: file.logs(run.id)?,
            key: run.key,
            started_unix_ns: run.started_unix_ns,
            outcome: run.outcome,
        });
    }
    let study_commands = file.study_commands()?;
    Ok(Material { header, questions, published, observed, traces, study_commands, unread })
}

/// Questions, levels and points in the plan's order; what only answers or runs know comes after.
/// The plan is read as plain JSON, so that a file of a later ceteris, whose setups have more in
/// them, still makes a page.
fn outline(plan: &Value, answers: Vec<Answer>, runs: &[StoredRun]) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    for planned in plan["questions"].as_array().into_iter().flatten() {
        let Some(name) = planned["name"].as_str() else { continue };
        let question = named(&mut questions, name);
        for cell in planned["cells"].as_array().into_iter().flatten() {
            let Some(level) = cell["level"].as_str() else { continue };
            question.setup.get_or_insert_with(|| cell["setup"].clone());
            level_index(question, level);
            point_index(question, &key_of(&cell["at"]));
        }
    }
    for answer in answers {
        let question = named(&mut questions, &answer.name);
        // A baseline that nobody planned can only be a file without a plan: it goes first.
        if !question.levels.contains(&answer.baseline) {
            question.levels.insert(0, answer.baseline.clone());
        }
        for effect in &answer.effects {
            level_index(question, &effect.level);
            point_index(question, &key_of_map(&effect.at));
        }
        question.answer = Some(answer);
    }
    for run in runs {
        let question = named(&mut questions, &run.key.question);
        level_index(question, &run.key.level);
        point_index(question, &canonical(&run.key.at));
    }
    questions
}

fn named<'a>(questions: &'a mut Vec<Question>, name: &str) -> &'a mut Question {
    let at = questions.iter().position(|q| q.name == name).unwrap_or_else(|| {
        questions.push(Question {
            name: name.to_owned(),
            answer: None,
            levels: Vec::new(),
            points: Vec::new(),
            setup: None,
            runs: Vec::new(),
            series: Vec::new(),
            latency: Vec::new(),
        });
        questions.len() - 1
    });
    &mut questions[at]
}

fn level_index(question: &mut Question, level: &str) -> usize {
    question.levels.iter().position(|l| l == level).unwrap_or_else(|| {
        question.levels.push(level.to_owned());
        question.levels.len() - 1
    })
}

fn point_index(question: &mut Question, key: &str) -> usize {
    question.points.iter().position(|p| p.key == key).unwrap_or_else(|| {
        question.points.push(Point::of(key));
        question.points.len() - 1
    })
}

impl Point {
    fn of(key: &str) -> Point {
        let at: BTreeMap<String, Value> = serde_json::from_str(key).unwrap_or_default();
        let one = at.len() == 1;
        Point {
            key: key.to_owned(),
            label: at_label(&at),
            value: at.into_values().next().filter(|_| one),
        }
    }
}

/// A sweep point for people: the last name of each path and its value.
pub fn at_label(at: &BTreeMap<String, Value>) -> String {
    let parts: Vec<String> = at
        .iter()
        .map(|(path, value)| {
            format!("{} = {}", path.rsplit('.').next().unwrap_or(path), plain(value))
        })
        .collect();
    parts.join(", ")
}

/// A value without JSON's quotes.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Canonical JSON of a sweep point. `serde_json` keeps the keys of an object sorted unless some
/// crate asks otherwise, so a map of our own is what sorts here.
pub fn key_of_map(at: &BTreeMap<String, Value>) -> String {
    serde_json::to_string(at).unwrap_or_else(|_| "{}".to_owned())
}

fn key_of(at: &Value) -> String {
    canonical(&at.to_string())
}

fn canonical(at: &str) -> String {
    key_of_map(&canonical_map(at))
}

/// A sweep point from its JSON; empty where it is none.
pub fn canonical_map(at: &str) -> BTreeMap<String, Value> {
    serde_json::from_str(at).unwrap_or_default()
}

fn runs_of(question: &Question, runs: &[StoredRun]) -> Vec<Run> {
    runs.iter()
        .filter(|run| run.key.question == question.name && run.outcome == Outcome::Finished)
        .filter_map(|run| {
            let at = canonical(&run.key.at);
            Some(Run {
                stored: run.clone(),
                summary: run.summary.clone()?,
                level: question.levels.iter().position(|l| *l == run.key.level)?,
                point: question.points.iter().position(|p| p.key == at)?,
            })
        })
        .collect()
}

/// Response times of each cell; service times too where the load was open, since only there do
/// the two clocks tell different things.
fn latency_of(
    file: &ResultFile,
    question: &Question,
    unread: &mut Vec<String>,
) -> crate::Result<Vec<CellLatency>> {
    let mut cells: BTreeMap<(usize, usize, String), Merged> = BTreeMap::new();
    for run in &question.runs {
        let two_clocks = run.summary.response != run.summary.service;
        for histogram in file.histograms(run.stored.id)? {
            if histogram.name == "service" && !two_clocks {
                continue;
            }
            let cell = (run.point, run.level, histogram.name.clone());
            let done = match cells.get_mut(&cell) {
                Some(merged) => merged.add(&histogram),
                None => Merged::of_first(&histogram).map(|merged| {
                    cells.insert(cell, merged);
                }),
            };
            if let Err(why) = done {
                unread.push(format!("a histogram of run {}: {why}", run.stored.id));
            }
        }
    }
    Ok(cells
        .into_iter()
        .map(|((point, level, clock), merged)| CellLatency { level, point, clock, merged })
        .collect())
}

fn observed(file: &ResultFile, questions: &[Question]) -> crate::Result<Vec<Observed>> {
    let mut observed = Vec::new();
    for question in questions {
        for (index, level) in question.levels.iter().enumerate() {
            if let Some(run) = question.runs.iter().find(|run| run.level == index) {
                let (before, _) = file.fingerprints(run.stored.id)?;
                let label = format!("{} / {level}", question.name);
                observed.push(Observed { label, fingerprint: before });
            }
        }
    }
    Ok(observed)
}
