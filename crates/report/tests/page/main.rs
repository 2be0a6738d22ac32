//! The HTML page: what it says without JavaScript, that it loads nothing, that nothing in a result
//! file can break out of its place, and that a real browser draws its charts without an error.

#![allow(clippy::unwrap_used)]

mod browser;
mod sample;

use ceteris_report as report;
use sample::Sample;
use serde_json::Value;
use sha2::{Digest, Sha256};

fn page_of(sample: &Sample) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = sample.write(&folder.path().join("sample.ceteris"));
    report::html(&file).unwrap()
}

/// The page without the contents of its scripts and styles.
fn static_part(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some(at) = ["<script", "<style"].iter().filter_map(|tag| rest.find(tag)).min() {
        let end = if rest[at..].starts_with("<script") { "</script>" } else { "</style>" };
        out.push_str(&rest[..at]);
        rest = rest[at..].split_once(end).expect("an element ends").1;
    }
    out + rest
}

fn payload(page: &str) -> Value {
    let open = "<script type=\"application/json\" id=\"payload\">";
    let json = page.split_once(open).unwrap().1.split_once("</script>").unwrap().0;
    assert!(!json.contains('<'), "no element can end inside the payload");
    serde_json::from_str(json).expect("the payload is JSON")
}

#[test]
fn says_everything_without_javascript() {
    let page = static_part(&page_of(&Sample::default()));
    for expected in [
        "<h1>What does full durability cost?</h1>",
        "durability: transactions per second lower by 50.0 % &amp; so on",
        "sweep: transactions per second lower by 50.0 % &amp; so on",
        "<span class=\"badge lower\">",
        "−50.0 %",               // the effect
        "−51.5 % … −48.5 %",     // its interval
        "connections = 64",      // the sweep point
        "1,020",                 // median tps of the baseline
        "<b>✓ passed</b> 1,184", // the audit
        "the factor itself",
        "Intel Xeon @ 2.80GHz · 2 CPUs · 23.5 GiB · kernel 6.1.0-31-amd64",
        "10.11.11-MariaDB",
        "a post &lt;2018&gt;",
        "the server said &lt;no&gt;", // the failed run
        "[Note] &lt;/pre&gt;&lt;script&gt;",
        "warm &lt;up&gt;",
        "<i># a comment</i>", // the study text
        "mariadbd --defaults-file=&lt;instance&gt;/my.cnf",
        "ceteris run study.toml --set &#39;title=it&#39;\\&#39;&#39;s mine&#39;",
        "at 95 % confidence",
    ] {
        assert!(page.contains(expected), "the page lacks {expected:?}");
    }
    // Theirs halves and so does ours: 510 / 250, and both changes.
    assert!(
        page.contains("2.04</td><td class=\"n\">−50.0 %</td><td class=\"n\">−50.0 %"),
        "ratios"
    );
}

#[test]
fn loads_nothing() {
    let page = page_of(&Sample::default());
    assert!(page.contains("default-src 'none'"), "a policy forbids every request");
    let markup = static_part(&page);
    for attribute in ["src=\"", "href=\"", "action=\"", "srcset=\"", "data=\""] {
        for (at, _) in markup.match_indices(attribute) {
            let value = markup[at + attribute.len()..].split('"').next().unwrap();
            assert!(
                value.starts_with('#') || value == "data:,",
                "{attribute}{value} leads out of the page"
            );
        }
    }
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(!style.contains("url(") && !style.contains("@import"));
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> \"'&";
    let sample = Sample {
        title: hostile.into(),
        question: format!("q {hostile}"),
        levels: [format!("a {hostile}"), format!("b {hostile}")],
        study_text: format!("# {hostile}\ntitle = 1 {hostile}\n[{hostile}\n{hostile}"),
        ..Sample::default()
    };
    let page = page_of(&sample);
    assert_eq!(page.matches("<script").count(), 3, "payload, charts, ours");
    assert_eq!(page.matches("</script>").count(), 3);
    let markup = static_part(&page);
    assert!(!markup.contains("<img") && !markup.contains("alert(1)<"), "{markup}");
    let payload = payload(&page);
    assert_eq!(payload["questions"][0]["levels"][1], format!("b {hostile}"));
    browser::check(&page, 9);
}

#[test]
fn payload_holds_what_the_charts_need() {
    let page = page_of(&Sample { measured_s: 1800, ..Sample::default() });
    let payload = payload(&page);
    let question = &payload["questions"][0];
    assert_eq!(question["levels"], serde_json::json!(["two", "one"]));
    assert_eq!(question["runs"].as_array().unwrap().len(), 6);
    assert_eq!(question["effects"][0]["ratio"], 0.5);
    let series = question["series"].as_array().unwrap();
    let roles: Vec<&str> = series.iter().map(|s| s["role"].as_str().unwrap()).collect();
    assert_eq!(roles[..3], ["throughput", "p95", "p99"]);
    for set in series {
        assert_eq!(set["tracks"].as_array().unwrap().len(), 6, "one for each run");
        for track in set["tracks"].as_array().unwrap() {
            let points = track["v"].as_array().unwrap().len();
            assert!((100..=300).contains(&points), "{points} points of {}", set["name"]);
        }
        assert_eq!(set["medians"].as_array().unwrap().len(), 2, "one for each level");
    }
    // Flushes moved 400-fold; commits moved too, but only as throughput did.
    let named = |name: &str| series.iter().find(|s| s["name"] == name);
    assert_eq!(series[3]["name"], "server.status.Innodb_os_log_fsyncs");
    assert_eq!(series[3]["telling"], true);
    assert_eq!(named("server.status.Com_commit").unwrap()["telling"], false);
    // It rose from nothing, and what the sampler left out is drawn as 0.
    let risen = named("server.status.Innodb_log_waits").unwrap();
    assert_eq!(risen["telling"], true);
    let flat = |level: usize| {
        let tracks = risen["medians"].as_array().unwrap().iter();
        let track = tracks.filter(|track| track["level"] == level).map(|track| &track["track"]);
        let values = track.flat_map(|track| track["v"].as_array().unwrap());
        values.clone().count() > 0 && values.clone().all(|value| value.as_f64() == Some(0.0))
    };
    assert!(flat(0) && !flat(1), "{risen}");
    assert!(named("server.status.Never_moved").is_none());
    assert!(named("host.cpu.user").is_some(), "shown although it did not move");
    assert_eq!(question["latency"].as_array().unwrap().len(), 2, "a closed loop has one clock");
    assert_eq!(question["latency"][0]["n"], 60_000);
    let sweep = &payload["questions"][1];
    assert_eq!(sweep["axis"], "load.connections");
    assert_eq!(sweep["values"], serde_json::json!(["8", "64"]));
}

#[test]
fn confounded_answers_have_no_other_verdict() {
    let page = page_of(&Sample { audit_ok: false, ..Sample::default() });
    let markup = static_part(&page);
    assert!(markup.contains("<b>✕ failed</b> 1 of 1,184"));
    assert!(markup.contains("server.variable.sync_binlog"));
    assert!(markup.contains("badge confounded") && !markup.contains("badge lower"));
    assert!(!markup.contains("class=\"headline\""), "no figure stands beside a confounded answer");
}

#[test]
fn unfinished_studies_have_a_page() {
    let page = page_of(&Sample { answered: false, ..Sample::default() });
    assert!(static_part(&page).contains("no answer yet: 6 runs finished"));
    browser::check(&page, 9);

    let folder = tempfile::tempdir().unwrap();
    let header = store::Header {
        title: "nothing yet".into(),
        study_text: String::new(),
        overrides: vec![],
        seed: 1,
        plan_json: "not JSON".into(),
        published_json: "[]".into(),
        ceteris_version: "0.1.0".into(),
        created_unix_ns: 0,
    };
    let file = store::ResultFile::create(&folder.path().join("empty.ceteris"), &header).unwrap();
    let page = report::html(&file).unwrap();
    assert!(page.contains("could not be read: the plan"));
    browser::check(&page, 0);
}

#[test]
fn charts_are_drawn_in_a_browser() {
    // 4 charts of a plain question, 5 of one with a sweep.
    browser::check(&page_of(&Sample::default()), 9);
}

#[test]
fn vendored_charts_are_the_stated_ones() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/echarts");
    let read = |name: &str| std::fs::read(format!("{folder}/{name}")).unwrap();
    let hash: String =
        Sha256::digest(read("echarts.min.js")).iter().map(|byte| format!("{byte:02x}")).collect();
    let stated = String::from_utf8(read("VENDORED.md")).unwrap();
    assert!(stated.contains(&hash), "echarts.min.js is {hash}, which VENDORED.md does not state");
    for licence in ["LICENSE", "NOTICE", "LICENSE-d3", "LICENSE-zrender"] {
        assert!(!read(licence).is_empty(), "{licence}");
    }
}
