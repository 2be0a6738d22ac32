//! The data of the charts, as JSON inside the page. `assets/report.js` is its only reader.

use serde::Serialize;

use super::evidence::{MedianTrack, Role};
use super::gather::{Material, Question, key_of_map, plain};
use super::latency::Curve;
use super::thin::{Num, Track};

/// The root of the payload.
#[derive(Serialize)]
pub struct Payload<'a> {
    /// In the page's order.
    pub questions: Vec<ChartedQuestion<'a>>,
}

/// One question's charts.
#[derive(Serialize)]
pub struct ChartedQuestion<'a> {
    name: &'a str,
    levels: &'a [String],
    /// Label of each sweep point.
    points: Vec<&'a str>,
    /// Value of each sweep point, where the sweep has one axis.
    values: Vec<Option<String>>,
    /// Path of that axis.
    axis: Option<String>,
    margin: f64,
    effects: Vec<ChartedEffect<'a>>,
    runs: Vec<ChartedRun>,
    series: Vec<ChartedSeries<'a>>,
    latency: Vec<ChartedLatency<'a>>,
}

#[derive(Serialize)]
struct ChartedEffect<'a> {
    level: usize,
    point: usize,
    metric: &'a str,
    ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
    verdict: &'a str,
}

#[derive(Serialize)]
struct ChartedRun {
    level: usize,
    point: usize,
    block: u32,
    tps: Num,
    p95: Num,
    p99: Num,
}

#[derive(Serialize)]
struct ChartedSeries<'a> {
    name: &'a str,
    unit: &'a str,
    role: Role,
    moved: Option<Num>,
    telling: bool,
    /// One for each run, in the order of `runs`.
    tracks: &'a [Option<Track>],
    /// One for each cell.
    medians: &'a [MedianTrack],
}

#[derive(Serialize)]
struct ChartedLatency<'a> {
    level: usize,
    point: usize,
    clock: &'a str,
    #[serde(flatten)]
    curve: Curve,
}

impl<'a> Payload<'a> {
    /// From the page's material.
    pub fn of(material: &'a Material) -> Payload<'a> {
        Payload { questions: material.questions.iter().map(charted).collect() }
    }
}

fn charted(question: &Question) -> ChartedQuestion<'_> {
    let answer = question.answer.as_ref();
    let level_of = |name: &str| question.levels.iter().position(|l| l == name);
    let effects = answer.into_iter().flat_map(|answer| &answer.effects).filter_map(|effect| {
        let key = key_of_map(&effect.at);
        Some(ChartedEffect {
            level: level_of(&effect.level)?,
            point: question.points.iter().position(|p| p.key == key)?,
            metric: &effect.metric,
            ratio: effect.ratio,
            low: effect.low,
            high: effect.high,
            verdict: super::question::verdict_of(answer, &effect.verdict),
        })
    });
    ChartedQuestion {
        name: &question.name,
        levels: &question.levels,
        points: question.points.iter().map(|p| p.label.as_str()).collect(),
        values: question.points.iter().map(|p| p.value.as_ref().map(plain)).collect(),
        axis: axis_of(question),
        margin: answer.map_or(0.0, |a| a.margin),
        effects: effects.collect(),
        runs: question
            .runs
            .iter()
            .map(|run| ChartedRun {
                level: run.level,
                point: run.point,
                block: run.stored.key.block,
                tps: Num(run.summary.tps),
                p95: Num(run.summary.response.p95_ms),
                p99: Num(run.summary.response.p99_ms),
            })
            .collect(),
        series: question
            .series
            .iter()
            .map(|set| ChartedSeries {
                name: &set.name,
                unit: &set.unit,
                role: set.role,
                moved: set.moved.map(Num),
                telling: set.telling,
                tracks: &set.tracks,
                medians: &set.medians,
            })
            .collect(),
        latency: question
            .latency
            .iter()
            .map(|cell| ChartedLatency {
                level: cell.level,
                point: cell.point,
                clock: &cell.clock,
                curve: cell.merged.curve(),
            })
            .collect(),
    }
}

/// The path that a sweep with one axis goes along.
pub fn axis_of(question: &Question) -> Option<String> {
    let first = question.points.first()?;
    first.value.as_ref()?;
    let at: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&first.key).ok()?;
    at.keys().next().cloned()
}
