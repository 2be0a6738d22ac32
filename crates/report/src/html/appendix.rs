//! What stands behind the answers: published figures, the study text, failed runs, every command,
//! event and log.

use std::fmt::Display;

use store::{CommandRecord, LogText, Outcome};

use super::gather::{Material, Trace, at_label, canonical_map};
use super::markup::{Esc, change, count, figure, span, utc};
use super::question::{metric_words, ours};
use super::table::{Row, table};
use crate::published::Published;

/// Bytes of one log in the page; the result file has the rest.
const LOG_BYTES: usize = 12_000;
/// The same for a run that failed, where the log is what one looks for.
const FAILED_LOG_BYTES: usize = 60_000;

/// Published figures beside ours, as ratios.
pub fn published(material: &Material) -> String {
    if material.published.is_empty() {
        return String::new();
    }
    let rows = material.published.iter().map(|published| published_row(material, published));
    let columns = [
        "question",
        "level",
        "metric",
        ">theirs",
        ">ours, median",
        ">ours ÷ theirs",
        ">their change",
        ">our change",
        "source",
    ];
    let body = table("Theirs and ours", &columns, rows);
    format!(
        "<section id=\"published\"><h2>Published figures</h2><p class=\"note\">Other machines, \
         other years: absolute figures need not agree, the change against the baseline should.</p>\
         {body}</section>\n"
    )
}

fn published_row(material: &Material, figure_of: &Published) -> Row {
    let question = material.questions.iter().find(|q| q.name == figure_of.question);
    let mine = question.and_then(|q| ours(q, &figure_of.level, &figure_of.at, &figure_of.metric));
    let baseline = question.and_then(|q| q.levels.first()).filter(|b| **b != figure_of.level);
    // Their change needs their own baseline: same metric, same point, same source.
    let their_baseline = material.published.iter().find(|p| {
        Some(&p.level) == baseline
            && p.question == figure_of.question
            && p.metric == figure_of.metric
            && p.at == figure_of.at
            && p.source == figure_of.source
    });
    let our_baseline = question
        .zip(baseline)
        .and_then(|(q, level)| ours(q, level, &figure_of.at, &figure_of.metric));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let at = at_label(&figure_of.at);
    let at = if at.is_empty() { at } else { format!(", {at}") };
    Row::new()
        .head(&figure_of.question)
        .text(format!("{}{at}", figure_of.level))
        .text(metric_words(&figure_of.metric))
        .number(figure(figure_of.value))
        .number(or_dash(mine.map(figure)))
        .strong(or_dash(mine.map(|mine| format!("{:.2}", mine / figure_of.value))))
        .number(or_dash(their_baseline.map(|base| change(figure_of.value / base.value))))
        .number(or_dash(mine.zip(our_baseline).map(|(mine, base)| change(mine / base))))
        .text(&figure_of.source)
}

/// The study and the records.
pub fn section(material: &Material) -> String {
    let header = &material.header;
    let overrides = if header.overrides.is_empty() {
        "none".to_owned()
    } else {
        let list: Vec<String> =
            header.overrides.iter().map(|o| format!("<code>{}</code>", Esc(o))).collect();
        list.join(", ")
    };
    let mut out = format!(
        "<section id=\"study\"><h2>The study</h2>\
         <dl class=\"meta\"><div><dt>seed</dt><dd><code>{}</code></dd></div>\
         <div><dt>overrides</dt><dd>{overrides}</dd></div>\
         <div><dt>created</dt><dd>{} UTC</dd></div></dl>\
         <pre class=\"study\" tabindex=\"0\" aria-label=\"study text\">\
         <code>{}</code></pre>{}</section>\n",
        header.seed,
        utc(header.created_unix_ns),
        coloured(&header.study_text),
        folded("The plan with its setups, as JSON", &pretty(&header.plan_json)),
    );
    out.push_str("<section id=\"records\"><h2>Commands and logs</h2>");
    out.push_str(&failures(material));
    out.push_str(&commands(material));
    out.push_str(&events(material));
    out.push_str(&logs(material));
    out.push_str("</section>\n");
    out
}

fn folded(summary: impl Display, text: &str) -> String {
    format!(
        "<details><summary>{summary}</summary><pre tabindex=\"0\"><code>{}</code></pre></details>",
        Esc(text)
    )
}

fn pretty(json: &str) -> String {
    serde_json::from_str::<serde_json::Value>(json)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| json.to_owned())
}

/// TOML with its comments, headers and keys set off, line by line: no parser, since the text must
/// be shown as it was given even where it is odd.
fn coloured(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with('#') {
            out.push_str(&format!("<i>{}</i>\n", Esc(line)));
        } else if trimmed.starts_with('[') {
            out.push_str(&format!("<b>{}</b>\n", Esc(line)));
        } else if let Some((key, value)) = line.split_once('=') {
            out.push_str(&format!("<span>{}</span>={}\n", Esc(key), Esc(value)));
        } else {
            out.push_str(&format!("{}\n", Esc(line)));
        }
    }
    out
}

fn label(trace: &Trace) -> String {
    let key = &trace.key;
    let at = canonical_map(&key.at);
    let at = if at.is_empty() { String::new() } else { format!(", {}", at_label(&at)) };
    format!("{} / {}{at}, block {}", key.question, key.level, key.block + 1)
}

fn failures(material: &Material) -> String {
    let items: String = material
        .traces
        .iter()
        .filter_map(|trace| match &trace.outcome {
            Outcome::Failed(why) => Some(format!(
                "<li><b>{}</b> at {}<pre tabindex=\"0\"><code>{}</code></pre></li>",
                Esc(label(trace)),
                utc(trace.started_unix_ns),
                Esc(why)
            )),
            Outcome::Finished => None,
        })
        .collect();
    if items.is_empty() {
        return "<p class=\"note\">no run failed</p>".to_owned();
    }
    format!("<h3>Failed runs</h3><ul class=\"failures\">{items}</ul>")
}

fn command_lines(commands: &[CommandRecord]) -> String {
    let mut out = String::new();
    for command in commands {
        let took = command.took_ms.map_or_else(|| "running".to_owned(), span);
        let status = command.status.as_deref().unwrap_or("");
        out.push_str(&format!("# {}  {took}  {status}\n", &utc(command.at_unix_ns)[11..]));
        out.push_str(command.command.trim_end());
        out.push('\n');
    }
    out
}

fn commands(material: &Material) -> String {
    let total = material.study_commands.len()
        + material.traces.iter().map(|trace| trace.commands.len()).sum::<usize>();
    let mut inner = String::new();
    if !material.study_commands.is_empty() {
        let title = format!("before the runs ({})", material.study_commands.len());
        inner.push_str(&folded(title, &command_lines(&material.study_commands)));
    }
    for trace in material.traces.iter().filter(|trace| !trace.commands.is_empty()) {
        let title = format!("{} ({})", Esc(label(trace)), trace.commands.len());
        inner.push_str(&folded(title, &command_lines(&trace.commands)));
    }
    format!(
        "<details class=\"outer\"><summary>All {} commands</summary>{inner}</details>",
        count(total as u64)
    )
}

fn events(material: &Material) -> String {
    let mut text = String::new();
    let mut total = 0;
    for trace in material.traces.iter().filter(|trace| !trace.events.is_empty()) {
        text.push_str(&format!("{}\n", label(trace)));
        for event in &trace.events {
            total += 1;
            let at = utc(event.at_unix_ns);
            text.push_str(&format!("  {}  {:<8} {}\n", &at[11..], event.kind, event.text));
        }
    }
    if total == 0 {
        return String::new();
    }
    folded(format!("All {} events", count(total)), &text)
}

fn logs(material: &Material) -> String {
    let mut inner = String::new();
    let mut total = 0;
    for trace in &material.traces {
        let limit = match trace.outcome {
            Outcome::Failed(_) => FAILED_LOG_BYTES,
            Outcome::Finished => LOG_BYTES,
        };
        for LogText { name, text } in &trace.logs {
            total += 1;
            let title = format!("{}: {}", Esc(label(trace)), Esc(name));
            inner.push_str(&folded(title, &ends(text, limit)));
        }
    }
    if total == 0 {
        return String::new();
    }
    format!(
        "<details class=\"outer\"><summary>{} server logs</summary>{inner}</details>",
        count(total)
    )
}

/// Begin and end of a long text, cut at lines.
fn ends(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = boundary(text, limit / 2);
    let head = text[..head].rfind('\n').map_or(head, |at| at + 1);
    let tail = boundary(text, text.len() - limit / 2);
    let tail = text[tail..].find('\n').map_or(tail, |at| tail + at + 1);
    format!(
        "{}\n… {} bytes left out here; the result file has them …\n\n{}",
        &text[..head],
        count((tail - head) as u64),
        &text[tail..]
    )
}

/// The last place at or before `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn study_text_is_shown_as_given() {
        let shown = coloured("# <b>\n[server]\nlevels = [\"a<b\"] # x\nodd");
        assert_eq!(
            shown,
            "<i># &lt;b&gt;</i>\n<b>[server]</b>\n\
             <span>levels </span>= [&quot;a&lt;b&quot;] # x\nodd\n"
        );
    }

    #[test]
    fn long_logs_keep_both_ends() {
        let text: String = (0..5000).map(|i| format!("lïne {i}\n")).collect();
        let cut = ends(&text, 1000);
        assert!(cut.len() < 1200);
        assert!(cut.starts_with("lïne 0\n") && cut.ends_with("lïne 4999\n"));
        assert!(cut.contains("bytes left out here"));
        assert_eq!(ends("short", 1000), "short");
    }
}
