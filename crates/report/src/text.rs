//! The answer for a terminal: what `ceteris show` prints and `ceteris run` ends with.
//!
//! Plain text first: everything that a colour says is said by a word too.

mod chart;
mod lines;

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use store::{Answer, AnsweredEffect, Difference, ResultFile, RunLine, Show};

use crate::html::{change, figure};
use crate::published::Published;
use chart::Chart;
use lines::{cut, cut_alike, length, wrapped};

/// Widest line.
const COLUMNS: usize = 100;
/// Widest and narrowest chart; where there is less room, there is none.
const CHART: std::ops::RangeInclusive<usize> = 15..=33;
/// Consequences listed here; the report lists all.
const CONSEQUENCES: usize = 8;

/// The answers as text, at most 100 columns; `colour` adds ANSI colours, and nothing else.
///
/// # Errors
/// The result file's.
pub fn text(file: &ResultFile, colour: bool) -> crate::Result<String> {
    let failed = file.runs()?.iter().filter(|r| r.outcome != store::Outcome::Finished).count();
    let published: Vec<Published> =
        serde_json::from_str(&file.header()?.published_json).unwrap_or_default();
    Ok(render(&crate::show(file)?, &published, failed, colour))
}

fn render(show: &Show, published: &[Published], failed: usize, colour: bool) -> String {
    let mut out = String::new();
    for caveat in &show.caveats {
        listed(&mut out, "", "caution: ", caveat);
    }
    for line in wrapped(&show.study, COLUMNS) {
        let _ = writeln!(out, "{}", paint(&line, "1", colour));
    }
    let begun = show.questions.iter().any(|answer| !answer.runs.is_empty());
    if !begun {
        out.push_str("\nno run has finished yet\n");
    }
    for answer in &show.questions {
        question(&mut out, answer, published, colour);
    }
    if failed > 0 {
        let _ = writeln!(out, "\n{} failed; the report tells why", counted(failed, "run"));
    }
    if begun {
        out.push_str("\nthe whole report, with every run: ceteris report RESULT -o FILE.html\n");
    }
    out
}

fn question(out: &mut String, answer: &Answer, published: &[Published], colour: bool) {
    let heading = format!("{}: {} against {}", answer.name, answer.factor, answer.baseline);
    out.push('\n');
    for line in wrapped(&heading, COLUMNS) {
        let _ = writeln!(out, "{}", paint(&line, "1", colour));
    }
    listed(out, "  ", "", &answer.sentence);
    if answer.runs.is_empty() {
        return;
    }
    effects(out, answer, colour);
    medians(out, answer);
    audit(out, answer, colour);
    published_figures(out, answer, published);
    for note in notes(answer) {
        listed(out, "  ", "note: ", &note);
    }
}

/// A table for each metric: level, change, interval, verdict, blocks, chart.
fn effects(out: &mut String, answer: &Answer, colour: bool) {
    let longest = answer.effects.iter().map(|effect| length(&name(effect))).max().unwrap_or(0);
    // What stands beside the name: blanks, change, interval, verdict, blocks.
    const BESIDE: usize = 2 + 2 + 9 + 2 + 20 + 2 + 10 + 2 + 6 + 2;
    let room = COLUMNS - BESIDE - longest.clamp(6, COLUMNS - BESIDE);
    let columns = Some(room.min(*CHART.end())).filter(|room| CHART.contains(room));
    let width = longest.clamp(6, COLUMNS - BESIDE);
    let confidence = format!("{:.0} % interval", 100.0 * answer.confidence);
    let mut metrics: Vec<&str> = Vec::new();
    for effect in &answer.effects {
        if !metrics.contains(&effect.metric.as_str()) {
            metrics.push(&effect.metric);
        }
    }
    for metric in &metrics {
        let _ = writeln!(
            out,
            "\n  {metric:<width$}  {:>9}  {confidence:>20}  {:<10}  {:>6}",
            "change", "verdict", "blocks"
        );
        let mine: Vec<&AnsweredEffect> =
            answer.effects.iter().filter(|effect| effect.metric == *metric).collect();
        for effect in &mine {
            let interval = match (effect.low, effect.high) {
                (Some(low), Some(high)) => format!("{} … {}", change(low), change(high)),
                _ => "no interval".to_owned(),
            };
            let verdict = format!("{:<10}", effect.verdict);
            let drawn = columns.map_or_else(String::new, |columns| {
                format!("  {}", Chart::new(&answer.effects, answer.margin, columns).line(effect))
            });
            let _ = writeln!(
                out,
                "  {:<width$}  {:>9}  {interval:>20}  {}  {:>6}{drawn}",
                cut(&name(effect), width),
                change(effect.ratio),
                paint(&verdict, verdict_colour(&effect.verdict), colour),
                effect.blocks,
            );
        }
    }
    if columns.is_some() && !answer.effects.is_empty() {
        // Rounded first: 0.07 is not quite seven hundredths.
        let margin = (1e6 * answer.margin).round() / 1e4;
        let _ = writeln!(out, "  chart: | no effect, · margin of {margin} %, [-o-] interval");
    }
}

fn medians(out: &mut String, answer: &Answer) {
    let mut cells: Vec<(String, Vec<&RunLine>)> = Vec::new();
    let order = order(answer);
    let mut runs: Vec<&RunLine> = answer.runs.iter().collect();
    runs.sort_by_key(|run| {
        let place = |known: &[String], one: &String| known.iter().position(|k| k == one);
        (place(&order.points, &point(&run.at)), place(&order.levels, &run.level))
    });
    for run in runs {
        let cell = named(&run.level, &run.at);
        match cells.last_mut() {
            Some((last, runs)) if *last == cell => runs.push(run),
            _ => cells.push((cell, vec![run])),
        }
    }
    let longest = cells.iter().map(|(cell, _)| length(cell)).max().unwrap_or(0);
    let width = longest.clamp(7, 60);
    let _ =
        writeln!(out, "\n  {:<width$}  {:>10}  {:>10}  {:>5}", "medians", "tps", "p95_ms", "runs");
    for (cell, runs) in cells {
        let of = |figure: fn(&RunLine) -> f64| median(runs.iter().map(|run| figure(run)).collect());
        let _ = writeln!(
            out,
            "  {:<width$}  {:>10}  {:>10}  {:>5}",
            cut(&cell, width),
            figure(of(|run| run.tps)),
            figure(of(|run| run.p95_ms)),
            runs.len()
        );
    }
}

/// Sweep points and levels in the order of the plan: effects are listed in it.
struct Order {
    points: Vec<String>,
    levels: Vec<String>,
}

fn order(answer: &Answer) -> Order {
    let mut order = Order { points: Vec::new(), levels: vec![answer.baseline.clone()] };
    let of_effects = answer.effects.iter().map(|effect| (&effect.at, &effect.level));
    let of_runs = answer.runs.iter().map(|run| (&run.at, &run.level));
    for (at, level) in of_effects.chain(of_runs) {
        let at = point(at);
        if !order.points.contains(&at) {
            order.points.push(at);
        }
        if !order.levels.contains(level) {
            order.levels.push(level.clone());
        }
    }
    order
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let half = figures.len() / 2;
    match figures.as_slice() {
        [] => f64::NAN,
        odd if odd.len() % 2 == 1 => odd[half],
        even => (even[half - 1] + even[half]) / 2.0,
    }
}

fn audit(out: &mut String, answer: &Answer, colour: bool) {
    let audit = &answer.audit;
    let found = match (audit.ok, audit.factor.len(), audit.consequences.len()) {
        (false, ..) => {
            let unexplained = counted(audit.unexplained.len(), "unexplained difference");
            paint(&format!("failed, {unexplained}"), "31", colour)
        }
        (true, 0, 0) => "ok, nothing differed".to_owned(),
        (true, _, 0) => "ok, only the factor differed".to_owned(),
        (true, _, follow) => {
            format!("ok, the factor and {} of it differed", counted(follow, "consequence"))
        }
    };
    let _ = writeln!(out, "\n  audit: {found}, {} names compared", audit.compared);
    for unexplained in &audit.unexplained {
        difference(out, "unexplained", unexplained);
    }
    for consequence in audit.consequences.iter().take(CONSEQUENCES) {
        difference(out, "consequence", consequence);
    }
    if let Some(more @ 1..) = audit.consequences.len().checked_sub(CONSEQUENCES) {
        let _ = writeln!(out, "    and {} more, all in the report", counted(more, "consequence"));
    }
}

/// One difference: who saw what, a line each.
fn difference(out: &mut String, what: &str, difference: &Difference) {
    listed(
        out,
        "    ",
        &format!("{what}: "),
        &format!("{} ({})", difference.name, difference.reason),
    );
    let who: Vec<String> = difference.values.keys().map(|who| cut(who, 40)).collect();
    let width = who.iter().map(|who| length(who)).max().unwrap_or(0);
    let values: Vec<&str> = difference.values.values().map(String::as_str).collect();
    for (who, value) in who.iter().zip(cut_alike(&values, COLUMNS - width - 10)) {
        let _ = writeln!(out, "{}", format!("      {who:<width$}  {value}").trim_end());
    }
}

fn published_figures(out: &mut String, answer: &Answer, published: &[Published]) {
    let published: Vec<&Published> =
        published.iter().filter(|figure| figure.question == answer.name).collect();
    if published.is_empty() {
        return;
    }
    out.push_str("\n  published figures, and ours beside them\n");
    for theirs in &published {
        let at = point(&theirs.at);
        let base = published.iter().find(|figure| {
            figure.level == answer.baseline
                && figure.metric == theirs.metric
                && point(&figure.at) == at
        });
        let (metric, of): (_, fn(&RunLine) -> f64) = match theirs.metric.as_str() {
            "p95_ms" => ("p95_ms", |run| run.p95_ms),
            _ => ("tps", |run| run.tps),
        };
        let runs =
            answer.runs.iter().filter(|run| run.level == theirs.level && point(&run.at) == at);
        let ours = median(runs.map(of).collect());
        let effect = answer.effects.iter().find(|effect| {
            effect.level == theirs.level && effect.metric == metric && point(&effect.at) == at
        });
        let is_base = theirs.level == answer.baseline;
        let their_change = base.filter(|base| !is_base && base.value > 0.0);
        let their_change = their_change.map(|base| change(theirs.value / base.value));
        let our_change = effect.map(|effect| change(effect.ratio));
        let with = |figure: String, change: Option<String>| match change {
            Some(change) => format!("{figure} ({change})"),
            None => figure,
        };
        let line = format!(
            "{metric} {}, ours {}; from {}",
            with(figure(theirs.value), their_change),
            with(figure(ours), our_change),
            theirs.source
        );
        listed(out, "    ", &format!("{}: ", named(&theirs.level, &theirs.at)), &line);
    }
}

/// What a reader should know of the runs before believing them.
fn notes(answer: &Answer) -> Vec<String> {
    let runs = &answer.runs;
    let of = |count: usize| format!("{count} of {}", counted(runs.len(), "run"));
    let mut notes = Vec::new();
    if answer.factor.contains(" + ") {
        notes
            .push("the effect belongs to the bundle of varied paths, not to any part of it".into());
    }
    let unsteady = runs.iter().filter(|run| !run.steady).count();
    if unsteady > 0 {
        notes.push(format!("not steady while measured: {}", of(unsteady)));
    }
    let bound = runs.iter().filter(|run| run.generator_bound).count();
    if bound > 0 {
        notes.push(format!("the generator was the bottleneck in {}", of(bound)));
    }
    let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
    for (code, count) in runs.iter().flat_map(|run| &run.errors) {
        *errors.entry(code).or_default() += count;
    }
    if !errors.is_empty() {
        let errors: Vec<String> =
            errors.iter().map(|(code, count)| format!("{count} × {code}")).collect();
        notes.push(format!("errors by code: {}", errors.join(", ")));
    }
    notes
}

/// `text` after `label`, wrapped, its further lines indented by two more.
fn listed(out: &mut String, indent: &str, label: &str, text: &str) {
    let inner = COLUMNS - indent.len() - 2;
    for (index, line) in wrapped(&format!("{label}{text}"), inner).iter().enumerate() {
        let hang = if index > 0 && !label.is_empty() { "  " } else { "" };
        let _ = writeln!(out, "{indent}{hang}{line}");
    }
}

fn name(effect: &AnsweredEffect) -> String {
    named(&effect.level, &effect.at)
}

/// A level at a sweep point, for people.
fn named(level: &str, at: &BTreeMap<String, Value>) -> String {
    match point(at) {
        at if at.is_empty() => level.to_owned(),
        at => format!("{level}, {at}"),
    }
}

/// A sweep point for people: `connections = 8`; the whole path where two would end alike.
fn point(at: &BTreeMap<String, Value>) -> String {
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let parts: Vec<String> = at
        .iter()
        .map(|(path, value)| {
            let alone = at.keys().filter(|other| last(other) == last(path)).count() == 1;
            let path = if alone { last(path) } else { path.clone() };
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{path} = {value}")
        })
        .collect();
    parts.join(", ")
}

/// `1 run`, `2 runs`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn verdict_colour(verdict: &str) -> &'static str {
    match verdict {
        "higher" | "lower" => "36;1",
        "equivalent" => "32",
        "confounded" => "31",
        _ => "33",
    }
}

fn paint(text: &str, code: &str, colour: bool) -> String {
    if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
