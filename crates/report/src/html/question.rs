//! A question's part of the page: the answer's banner, what was asked, and the places of its
//! charts. The tables are in [`tables`].

use std::collections::BTreeMap;

use serde_json::Value;
use store::{Answer, AnsweredEffect};

use super::gather::{Material, Question, key_of_map, plain};
use super::markup::{Esc, change, count, median};
use super::{glyph, tables};

/// The verdict as shown: a confounded answer has no other.
pub fn verdict_of<'a>(answer: Option<&Answer>, verdict: &'a str) -> &'a str {
    match answer {
        Some(answer) if !answer.audit.ok => "confounded",
        _ if verdict.is_empty() => "undecided",
        _ => verdict,
    }
}

/// What must be known before any figure: the first lines of the page.
pub fn caveats(material: &Material) -> String {
    let observed = material.observed.iter().map(|observed| &observed.fingerprint);
    let lines = crate::caveats::of(observed);
    lines
        .iter()
        .map(|line| format!("<p class=\"warning\" role=\"note\">{}</p>", Esc(line)))
        .collect()
}

/// The answers, one banner for each question.
pub fn answers(material: &Material) -> String {
    let banners: String = material
        .questions
        .iter()
        .enumerate()
        .map(|(index, question)| banner(index, question))
        .collect();
    let unread: String = material
        .unread
        .iter()
        .map(|line| format!("<p class=\"warning\">could not be read: {}</p>", Esc(line)))
        .collect();
    format!(
        "<section id=\"answers\" aria-label=\"answers\">{unread}{banners}\
         <noscript><p class=\"note\">The charts need JavaScript; every figure behind them is in \
         the tables.</p></noscript></section>\n"
    )
}

fn banner(index: usize, question: &Question) -> String {
    let name = Esc(&question.name);
    let Some(answer) = &question.answer else {
        return format!(
            "<article class=\"answer\"><h2><a href=\"#question-{index}\">{name}</a></h2>\
             <p class=\"sentence\">no answer yet: {} runs finished</p></article>",
            question.runs.len()
        );
    };
    let badges = match (&answer.verdict, answer.audit.ok) {
        (_, false) => glyph::badge("confounded"),
        (Some(verdict), _) => glyph::badge(verdict),
        (None, _) => tally(answer),
    };
    // One effect of throughput can be drawn beside its sentence; of many, the chart below tells.
    let tps: Vec<&AnsweredEffect> =
        answer.effects.iter().filter(|e| e.metric == "tps" && e.blocks > 0).collect();
    let picture = match tps.as_slice() {
        [only] if answer.audit.ok => format!(
            "<p class=\"headline{}\"><strong>{}</strong><span>{}<br>{} … {}</span></p>",
            // What is not shown to be a difference must not shout like one.
            if matches!(only.verdict.as_str(), "higher" | "lower") { "" } else { " unsure" },
            change(only.ratio),
            metric_words("tps"),
            change(only.low.unwrap_or(0.0)),
            only.high.map_or_else(|| "+∞".to_owned(), change),
        ),
        _ => String::new(),
    };
    format!(
        "<article class=\"answer\"><div>\
         <h2><a href=\"#question-{index}\">{name}</a></h2>{badges}</div>\
         <p class=\"sentence\">{}</p>{picture}</article>",
        Esc(&answer.sentence)
    )
}

/// How often which verdict on throughput: `3 lower, 1 undecided`.
fn tally(answer: &Answer) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for effect in answer.effects.iter().filter(|e| e.metric == "tps") {
        *counts.entry(verdict_of(Some(answer), &effect.verdict)).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|(verdict, n)| {
            format!("<span class=\"tally\">{n} × {}</span> ", glyph::badge(verdict))
        })
        .collect()
}

/// Everything about one question.
pub fn section(index: usize, question: &Question) -> String {
    let name = Esc(&question.name);
    let swept = question.swept();
    let mut out = format!("<section id=\"question-{index}\" class=\"question\"><h2>{name}</h2>");
    out.push_str(&asked(question));
    let latency = if question.latency.is_empty() {
        String::new()
    } else {
        let explained = "all runs of a level merged; each gridline is one nine more";
        chart(index, "latency", "Latency by percentile", explained)
    };
    if !question.runs.is_empty() {
        let effect = if swept { "Effect along the sweep" } else { "Effect" };
        out.push_str("<div class=\"pair\">");
        if swept {
            let explained =
                "median of the blocks; the band goes from the lowest to the highest run";
            out.push_str(&chart(index, "sweep", "Along the sweep", explained));
        }
        let explained = "change against the baseline, with interval; the margin is shaded";
        out.push_str(&chart(index, "effects", effect, explained));
        let explained = "a line joins the runs of one block; the bar is the median";
        out.push_str(&chart(index, "runs", "Every run", explained));
        if swept {
            out.push_str(&latency);
        }
        out.push_str("</div>");
    }
    out.push_str(&tables::effects(question));
    out.push_str(&tables::medians(question));
    out.push_str(&tables::instances(question));
    if question.series.iter().any(|s| s.tracks.iter().any(Option::is_some)) {
        let explained = "thin: each run; bold: median of the level's runs; shaded: warm-up, not \
                         counted. Of a long run each step shows its lowest and its highest second";
        out.push_str(&chart(index, "time", "Over time", explained));
    }
    if !question.latency.is_empty() {
        let table = tables::latency(question);
        out.push_str(&if swept {
            table
        } else {
            format!("<div class=\"pair\">{latency}{table}</div>")
        });
    }
    out.push_str(&tables::audit(question));
    out.push_str(&tables::runs(question));
    out.push_str("</section>\n");
    out
}

/// A place for a chart. The script fills it when it scrolls into view.
fn chart(index: usize, kind: &str, title: &str, explained: &str) -> String {
    format!(
        "<figure class=\"needs-script {kind}\"><figcaption><h3>{title}</h3>\
         <p>{explained}</p></figcaption>\
         <div class=\"controls\"></div>\
         <div class=\"chart\" data-chart=\"{kind}\" data-question=\"{index}\" \
         role=\"img\" aria-label=\"chart: {title}; its figures are in the tables\"></div></figure>"
    )
}

/// What was asked: the factor, its levels, and the condition it was asked under.
fn asked(question: &Question) -> String {
    let mut out = String::from("<p class=\"asked\">");
    if let Some(answer) = &question.answer {
        let paths: Vec<String> =
            answer.factor.split(" + ").map(|path| format!("<code>{}</code>", Esc(path))).collect();
        out.push_str(&format!("varies {}: ", paths.join(" + ")));
    }
    for (index, level) in question.levels.iter().enumerate() {
        let role = if index == 0 { " <small>baseline</small>" } else { "" };
        let between = if index == 0 { "" } else { " against " };
        out.push_str(&format!(
            "{between}<b class=\"level l{}\">{}</b>{role}",
            index % 6,
            Esc(level)
        ));
    }
    out.push_str("</p>");
    if question.answer.as_ref().is_some_and(|a| a.factor.contains(" + ")) {
        out.push_str(
            "<p class=\"note\">compound: the effect belongs to the bundle, not to any part</p>",
        );
    }
    let mut facts: Vec<String> = Vec::new();
    if let Some(setup) = &question.setup {
        facts.extend(condition(setup));
    }
    if let Some(answer) = &question.answer {
        facts.push(format!(
            "margin ±{:.1} %, {:.0} % confidence",
            answer.margin * 100.0,
            answer.confidence * 100.0
        ));
    }
    if !facts.is_empty() {
        out.push_str(&format!("<p class=\"condition\">{}</p>", Esc(facts.join(" · "))));
    }
    out
}

/// The baseline's workload and load in a few words, whatever keys they have.
fn condition(setup: &Value) -> Vec<String> {
    let mut facts = Vec::new();
    for (name, knobs) in setup["workload"].as_object().into_iter().flatten() {
        let knobs: Vec<String> = knobs
            .as_object()
            .into_iter()
            .flatten()
            // What is not set, and the text of a script, which the plan in the result tells.
            .filter(|(_, value)| {
                !value.is_null() && !value.as_str().is_some_and(|text| text.contains('\n'))
            })
            .map(|(key, value)| {
                format!("{key} {}", value.as_u64().map_or_else(|| plain(value), count))
            })
            .collect();
        facts.push(format!("{name} ({})", knobs.join(", ")));
    }
    for (key, value) in setup["load"].as_object().into_iter().flatten() {
        if !value.is_null() {
            facts.push(format!("{} {}", key.replace('_', " "), plain(value)));
        }
    }
    facts
}

/// A level's name with the mark that it has in the charts.
pub fn level_badge(question: &Question, level: usize) -> String {
    format!("<b class=\"level l{}\">{}</b>", level % 6, Esc(&question.levels[level]))
}

/// The metric in words.
pub fn metric_words(metric: &str) -> &str {
    match metric {
        "tps" | "transactions_per_second" => "transactions per second",
        "p95_ms" => "p95 response time",
        other => other,
    }
}

/// The median of a cell's runs in a published metric's unit.
pub fn ours(
    question: &Question,
    level: &str,
    at: &BTreeMap<String, Value>,
    metric: &str,
) -> Option<f64> {
    let key = key_of_map(at);
    let level = question.levels.iter().position(|l| l == level)?;
    let point = question.points.iter().position(|p| p.key == key)?;
    let values: Vec<f64> = question
        .runs
        .iter()
        .filter(|run| run.level == level && run.point == point)
        .filter_map(|run| match metric {
            "transactions_per_second" | "tps" => Some(run.summary.tps),
            "p95_ms" => Some(run.summary.response.p95_ms),
            _ => None,
        })
        .collect();
    median(&values)
}
