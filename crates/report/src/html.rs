//! The page: one self-contained HTML file that works offline, prints, and tells its sentences,
//! tables, audit and study text without JavaScript too; only the charts need it.
//!
//! [`gather`] reads the result file once. [`question`], [`machine`] and [`appendix`] write the
//! static parts; [`payload`] the data from which `assets/report.js` draws with Apache ECharts,
//! which is vendored under `assets/echarts`. A content security policy in the page forbids every
//! request.

mod appendix;
mod evidence;
mod gather;
mod glyph;
mod latency;
mod machine;
mod markup;
mod pattern;
mod payload;
mod question;
mod table;
mod tables;
mod thin;

use gather::Material;
use markup::{Esc, count, json_for_script};
pub(crate) use markup::{change, figure, utc};
use store::ResultFile;

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
const ECHARTS: &str = include_str!("../assets/echarts/echarts.min.js");
const ECHARTS_NOTICE: &str = include_str!("../assets/echarts/NOTICE");

/// One self-contained page that works offline.
pub fn html(file: &ResultFile) -> crate::Result<String> {
    Ok(page(&gather::gather(file)?))
}

fn page(material: &Material) -> String {
    let title = Esc(&material.header.title);
    let payload = serde_json::to_string(&payload::Payload::of(material))
        .unwrap_or_else(|_| r#"{"questions":[]}"#.to_owned());
    let mut out = String::with_capacity(ECHARTS.len() + payload.len() + (1 << 18));
    out.push_str(&format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" 
  content="default-src 'none'; style-src 'unsafe-inline'; 
  script-src 'unsafe-inline'; img-src data:">
<meta name="generator" content="ceteris {version}">
<title>{title} · ceteris</title>
<link rel="icon" href="data:,">
<style>
{STYLE}</style>
</head>
<body>
<a class="skip" href="#answers">skip to the answers</a>
<header>
{caveats}<p class="brand"><span><b>ceteris</b> report</span></p>
<h1>{title}</h1>
<dl class="meta">{meta}</dl>
</header>
<nav aria-label="contents">{contents}</nav>
<main>
"##,
        version = Esc(&material.header.ceteris_version),
        meta = meta(material),
        caveats = question::caveats(material),
        contents = contents(material),
    ));
    out.push_str(&question::answers(material));
    for (index, question) in material.questions.iter().enumerate() {
        out.push_str(&question::section(index, question));
    }
    out.push_str(&appendix::published(material));
    out.push_str(&machine::section(material));
    out.push_str(&appendix::section(material));
    out.push_str("</main>\n");
    out.push_str(&footer(material));
    out.push_str("<script type=\"application/json\" id=\"payload\">");
    out.push_str(&json_for_script(&payload));
    out.push_str("</script>\n<!--\n");
    out.push_str(&ECHARTS_NOTICE.replace("--", "- -"));
    out.push_str("\n-->\n<script>");
    out.push_str(ECHARTS);
    out.push_str("</script>\n<script>\n");
    out.push_str(SCRIPT);
    out.push_str("</script>\n</body>\n</html>\n");
    out
}

/// What, when, where in one line of facts.
fn meta(material: &Material) -> String {
    let runs: usize = material.questions.iter().map(|q| q.runs.len()).sum();
    let started = material.traces.first().map(|t| t.started_unix_ns);
    let when = started.unwrap_or(material.header.created_unix_ns);
    let mut facts = vec![("server", machine::server_line(material))];
    facts.push(("machine", machine::machine_line(material)));
    facts
        .push(("measured", Some(format!("{} UTC, {} runs", &utc(when)[..16], count(runs as u64)))));
    facts.push(("ceteris", Some(material.header.ceteris_version.clone())));
    let facts = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    facts
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", Esc(value)))
        .collect()
}

fn contents(material: &Material) -> String {
    let mut links = vec![("answers".to_owned(), "answers".to_owned())];
    for (index, question) in material.questions.iter().enumerate() {
        links.push((format!("question-{index}"), question.name.clone()));
    }
    if !material.published.is_empty() {
        links.push(("published".into(), "published figures".into()));
    }
    for (id, label) in
        [("machine", "machine and server"), ("study", "study"), ("records", "commands and logs")]
    {
        links.push((id.into(), label.into()));
    }
    links.into_iter().map(|(id, label)| format!("<a href=\"#{id}\">{}</a> ", Esc(label))).collect()
}

fn footer(material: &Material) -> String {
    let confidences: Vec<String> = material
        .questions
        .iter()
        .filter_map(|q| q.answer.as_ref())
        .map(|answer| format!("{:.0} %", answer.confidence * 100.0))
        .collect();
    let confidence = match confidences.as_slice() {
        [first, rest @ ..] if rest.iter().all(|c| c == first) => first.as_str(),
        _ => "the asked",
    };
    format!(
        r#"<footer>
<div>
<h2>How to run it again</h2>
<p>Save <a href="\#study">the study</a> as <code>study.toml</code>, then</p>
<pre><code>ceteris plan study.toml{overrides}
ceteris run study.toml{overrides}</code></pre>
<p>Order and data follow from the seed <code>{seed}</code>. The commands that made each condition
are in <a href="\#records">commands and logs</a>.</p>
</div>
<div>
<h2>How a verdict is reached</h2>
<ol>
<li>Each block runs every condition once, in random order; an effect is the ratio to the baseline
within the same block, so a drifting machine hits all levels alike.</li>
<li>The interval is Student's t over the blocks' log ratios, at {confidence} confidence over all
effects of one metric in the question (Holm).</li>
<li><b>Equivalent</b>: the whole interval lies inside the margin, the difference that the study
calls of no practical interest.</li>
<li><b>Higher</b> or <b>lower</b>: the interval excludes no change and is not wholly inside the
margin. <b>Undecided</b>: none of these; more blocks are needed.</li>
<li><b>Confounded</b>: the audit found that something besides the factor differed, so no verdict
is given.</li>
</ol>
</div>
<p class="colophon">Made by ceteris {version} from the result file alone. Charts by Apache ECharts
6.1.0, Apache-2.0. This page loads nothing.</p>
</footer>
"#,
        overrides = material
            .header
            .overrides
            .iter()
            .map(|o| format!(" --set {}", Esc(shell_word(o))))
            .collect::<String>(),
        seed = material.header.seed,
        version = Esc(&material.header.ceteris_version),
    )
    .replace("\\#", "#")
}

/// Quoted for a shell where it needs to be.
fn shell_word(text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%+@".contains(c);
    if !text.is_empty() && text.chars().all(harmless) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
