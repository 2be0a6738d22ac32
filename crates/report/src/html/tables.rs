//! A question's tables: effects, medians, latency, audit, runs. They hold every figure of the
//! charts.

use store::{Answer, AnsweredEffect, Difference, InstanceSummary, Summary};

use super::gather::{Point, Question, Run, at_label};
use super::glyph::{self, Interval};
use super::latency::PERCENTILES;
use super::markup::{Esc, change, change_interval, count, extent, figure, median};
use super::question::{level_badge, metric_words, verdict_of};
use super::table::{Row, table};

/// Every effect with its interval, picture and verdict.
pub fn effects(question: &Question) -> String {
    let Some(answer) = question.answer.as_ref().filter(|a| !a.effects.is_empty()) else {
        return String::new();
    };
    let interval_of = |e: &AnsweredEffect| Interval { ratio: e.ratio, low: e.low, high: e.high };
    let intervals: Vec<Interval> = answer.effects.iter().map(interval_of).collect();
    let reach = glyph::reach(&intervals, answer.margin);
    let rows = answer.effects.iter().map(|effect| {
        Row::new()
            .head(metric_words(&effect.metric))
            .text_if(question.swept(), at_label(&effect.at))
            .text(&effect.level)
            .strong(change(effect.ratio))
            .number(change_interval(effect.low, effect.high))
            .markup(&glyph::interval(interval_of(effect), answer.margin, reach))
            .markup(&glyph::badge(verdict_of(Some(answer), &effect.verdict)))
            .number(effect.blocks)
    });
    let interval = format!(">{:.0} % interval", answer.confidence * 100.0);
    let scale = format!("{} … {}", change((-reach).exp()), change(reach.exp()));
    let at = at_column(question);
    let columns = ["metric", at, "level", ">change", &interval, &scale, "verdict", ">blocks"];
    table(&format!("Effects against {}", answer.baseline), &columns, rows)
}

fn at_column(question: &Question) -> &'static str {
    if question.swept() { "at" } else { "" }
}

/// What each level did, at each sweep point.
pub fn medians(question: &Question) -> String {
    if question.runs.is_empty() {
        return "<p class=\"note\">no run has finished yet</p>".to_owned();
    }
    let mut rows = Vec::new();
    for (point, Point { label, .. }) in question.points.iter().enumerate() {
        for level in 0..question.levels.len() {
            let runs: Vec<&Summary> = question
                .runs
                .iter()
                .filter(|run| run.level == level && run.point == point)
                .map(|run| &run.summary)
                .collect();
            if !runs.is_empty() {
                let row = Row::new().head_markup(&level_badge(question, level));
                rows.push(median_row(row.text_if(question.swept(), label), &runs));
            }
        }
    }
    let columns = [
        "level",
        at_column(question),
        ">runs",
        ">tps",
        ">lowest … highest",
        ">p50 ms",
        ">p95 ms",
        ">p99 ms",
        ">errors",
        ">retries",
        ">not steady",
        ">generator bound",
    ];
    table("Medians of the runs", &columns, rows)
}

/// What each of several instances did; nothing where every run had one.
pub fn instances(question: &Question) -> String {
    let mut rows = Vec::new();
    for (point, Point { label, .. }) in question.points.iter().enumerate() {
        for level in 0..question.levels.len() {
            let cell = |run: &&Run| run.level == level && run.point == point;
            let runs: Vec<&Summary> =
                question.runs.iter().filter(cell).map(|run| &run.summary).collect();
            let most = runs.iter().map(|s| s.instances.len()).max().unwrap_or(0);
            for ordinal in 0..most {
                let own: Vec<&InstanceSummary> =
                    runs.iter().filter_map(|s| s.instances.get(ordinal)).collect();
                let of = |pick: &dyn Fn(&InstanceSummary) -> f64| {
                    let values: Vec<f64> = own.iter().map(|one| pick(one)).collect();
                    figure(median(&values).unwrap_or(f64::NAN))
                };
                let row = Row::new()
                    .head_markup(&level_badge(question, level))
                    .text_if(question.swept(), label)
                    .number(ordinal)
                    .strong(of(&|one| one.tps))
                    .number(of(&|one| one.response.p50_ms))
                    .number(of(&|one| one.response.p95_ms))
                    .number(of(&|one| one.response.p99_ms));
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let at = at_column(question);
    let columns = ["level", at, ">instance", ">tps", ">p50 ms", ">p95 ms", ">p99 ms"];
    table("Instances, medians of the runs", &columns, rows)
}

fn median_row(row: Row, runs: &[&Summary]) -> Row {
    let of = |pick: &dyn Fn(&Summary) -> f64| {
        let values: Vec<f64> = runs.iter().map(|s| pick(s)).collect();
        figure(median(&values).unwrap_or(f64::NAN))
    };
    let range = extent(runs.iter().map(|s| s.tps))
        .map_or(String::new(), |(low, high)| format!("{} … {}", figure(low), figure(high)));
    row.number(runs.len())
        .strong(of(&|s| s.tps))
        .number(range)
        .number(of(&|s| s.response.p50_ms))
        .number(of(&|s| s.response.p95_ms))
        .number(of(&|s| s.response.p99_ms))
        .number(count(runs.iter().flat_map(|s| s.errors.values()).sum()))
        .number(count(runs.iter().map(|s| s.retries).sum()))
        .alarm(runs.iter().filter(|s| !s.steady).count())
        .alarm(runs.iter().filter(|s| s.generator_bound).count())
}

/// Percentiles of each cell.
pub fn latency(question: &Question) -> String {
    let clocks = question.latency.iter().any(|cell| cell.clock != "response");
    let rows = question.latency.iter().map(|cell| {
        let mut row = Row::new()
            .head_markup(&level_badge(question, cell.level))
            .text_if(question.swept(), &question.points[cell.point].label)
            .text_if(clocks, &cell.clock);
        for (quantile, _) in PERCENTILES {
            row = row.number(cell.merged.quantile_ms(quantile).map_or("–".to_owned(), figure));
        }
        row.number(figure(cell.merged.max_ms())).number(count(cell.merged.len()))
    });
    let percentiles = PERCENTILES.map(|(_, name)| format!(">{name}"));
    let mut columns = vec!["level", at_column(question), if clocks { "clock" } else { "" }];
    columns.extend(percentiles.iter().map(String::as_str));
    columns.extend([">max", ">transactions"]);
    let what = if clocks { "Latency" } else { "Response time" };
    table(&format!("{what}, ms, all runs of a level merged"), &columns, rows)
}

/// What was compared and what differed.
pub fn audit(question: &Question) -> String {
    let Some(Answer { audit, .. }) = &question.answer else { return String::new() };
    let compared = count(audit.compared);
    let verdict = if audit.ok {
        format!(
            "<p class=\"audit ok\"><b>✓ passed</b> {compared} observed names compared between the \
             levels, before and after each run: nothing differs beyond the factor and what follows \
             from it</p>"
        )
    } else {
        format!(
            "<p class=\"audit failed\"><b>✕ failed</b> {} of {compared} observed names differ, and \
             neither the factor nor its known consequences explain it</p>",
            audit.unexplained.len()
        )
    };
    format!(
        "<h3>Audit</h3>{verdict}{}{}{}",
        differences("Unexplained", &audit.unexplained),
        differences("The factor itself", &audit.factor),
        differences("Follows from the factor", &audit.consequences),
    )
}

fn differences(title: &str, found: &[Difference]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let rows = found.iter().map(|difference| {
        let values: String = difference
            .values
            .iter()
            .map(|(who, value)| format!("<li>{}: <code>{}</code></li>", Esc(who), Esc(value)))
            .collect();
        Row::new()
            .head_markup(&format!("<code>{}</code>", Esc(&difference.name)))
            .markup(&format!("<ul class=\"values\">{values}</ul>"))
            .text(&difference.reason)
    });
    table(title, &["name", "seen", "why it is listed here"], rows)
}

/// Every run, folded away.
pub fn runs(question: &Question) -> String {
    if question.runs.is_empty() {
        return String::new();
    }
    let rows = question.runs.iter().enumerate().map(|(order, run)| {
        let s = &run.summary;
        let errors: Vec<String> =
            s.errors.iter().map(|(code, n)| format!("{code}: {}", count(*n))).collect();
        let errors = if errors.is_empty() { "none".to_owned() } else { errors.join(", ") };
        Row::new()
            .number(order + 1)
            .number(run.stored.key.block + 1)
            .markup(&level_badge(question, run.level))
            .text_if(question.swept(), &question.points[run.point].label)
            .strong(figure(s.tps))
            .number(figure(s.response.p50_ms))
            .number(figure(s.response.p95_ms))
            .number(figure(s.response.p99_ms))
            .text(errors)
            .number(count(s.retries))
            .number(format!("{:.0} %", s.generator_peak * 100.0))
            .text(s.notes.join("; "))
    });
    let columns = [
        ">run",
        ">block",
        "level",
        at_column(question),
        ">tps",
        ">p50 ms",
        ">p95 ms",
        ">p99 ms",
        "errors",
        ">retries",
        ">generator peak",
        "notes",
    ];
    format!(
        "<details data-print><summary>All {} runs</summary>{}</details>",
        question.runs.len(),
        table("Runs in the order in which they ran", &columns, rows)
    )
}
