//! The result for people: first the sections that everybody coming from sysbench reads at once, in
//! its words and order, then what only ceteris tells. A section that has nothing to say is left
//! out.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::figures::Latency;
use super::outcome::Outcome;

/// The whole text. `percentile` 0 shows none in sysbench's section.
pub fn render(outcome: &Outcome, percentile: f64) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = sections(&mut text, outcome, percentile);
    text
}

fn sections(out: &mut String, of: &Outcome, percentile: f64) -> std::fmt::Result {
    if let Some(why) = &of.ended_early {
        writeln!(out, "ended early: {why}")?;
        writeln!(out, "all below is of the {:.3} s measured until then\n", of.measured_s)?;
    }
    counts(out, of)?;
    latency(out, of, percentile)?;
    fairness(out, of)?;
    writeln!(out, "\nPercentiles (ms):")?;
    percentile_head(out, "")?;
    percentile_row(out, "response", &of.latency_ms.response)?;
    percentile_row(out, "service", &of.latency_ms.service)?;
    by_name(out, of)?;
    if !of.errors.is_empty() {
        writeln!(out, "\nErrors by code:")?;
        for (code, count) in &of.errors {
            writeln!(out, "    {code:<36} {count}")?;
        }
    }
    open_loop(out, of)?;
    generator(out, of)?;
    for warning in &of.warnings {
        writeln!(out, "\nwarning: {warning}")?;
    }
    Ok(())
}

fn counts(out: &mut String, of: &Outcome) -> std::fmt::Result {
    let statements = &of.statements;
    writeln!(out, "SQL statistics:\n    queries performed:")?;
    for (name, count) in [
        ("read:", statements.read),
        ("write:", statements.write),
        ("other:", statements.other),
        ("total:", statements.total),
    ] {
        writeln!(out, "        {name:<32} {count}")?;
    }
    let per_s = |count: u64| if of.measured_s > 0.0 { count as f64 / of.measured_s } else { 0.0 };
    let mut rate = |name: &str, count: u64| {
        writeln!(out, "    {:<36} {count:<6} ({:.2} per sec.)", format!("{name}:"), per_s(count))
    };
    rate("transactions", of.transactions)?;
    rate("queries", statements.total)?;
    rate("ignored errors", of.errors.values().sum())?;
    rate("reconnects", of.reconnects)?;
    if of.failed > 0 {
        rate("failed transactions", of.failed)?;
    }
    writeln!(out, "\nGeneral statistics:")?;
    writeln!(out, "    {:<36} {:.4}s", "total time:", of.measured_s)?;
    writeln!(out, "    {:<36} {}", "total number of events:", of.transactions)
}

fn latency(out: &mut String, of: &Outcome, percentile: f64) -> std::fmt::Result {
    let response = &of.latency_ms.response;
    writeln!(out, "\nLatency (ms):")?;
    let mut row = |name: &str, ms: Option<f64>| {
        let ms = ms.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
        writeln!(out, "         {name:<36} {ms:>11}")
    };
    row("min:", response.min)?;
    row("avg:", response.mean)?;
    row("max:", response.max)?;
    if let Some(histogram) = of.response.as_ref().filter(|_| percentile > 0.0) {
        let ms = histogram.value_at_quantile(percentile / 100.0) as f64 / 1e6;
        let ms = response.max.map(|_| ms);
        row(&format!("{percentile}th percentile:"), ms)?;
    }
    row("sum:", response.mean.map(|mean| mean * of.transactions as f64))
}

fn fairness(out: &mut String, of: &Outcome) -> std::fmt::Result {
    let Some(fairness) = &of.fairness else { return Ok(()) };
    writeln!(out, "\nConnections fairness:")?;
    writeln!(
        out,
        "    {:<30} {:.4}/{:.2}, fewest {}, most {}",
        "events (avg/stddev):", fairness.mean, fairness.stddev, fairness.min, fairness.max
    )
}

fn percentile_head(out: &mut String, what: &str) -> std::fmt::Result {
    let heads = ["p50", "p90", "p95", "p99", "p99.9", "max"];
    let heads: Vec<String> = heads.iter().map(|head| format!("{head:>9}")).collect();
    writeln!(out, "    {what:<28}{}", heads.join(" "))
}

fn percentile_row(out: &mut String, name: &str, of: &Latency) -> std::fmt::Result {
    let figures = [of.p50, of.p90, of.p95, of.p99, of.p999, of.max];
    let figures = figures.map(|ms| ms.map_or(format!("{:>9}", "-"), |ms| format!("{ms:>9.3}")));
    writeln!(out, "    {name:<28}{}", figures.join(" "))
}

fn by_name(out: &mut String, of: &Outcome) -> std::fmt::Result {
    if of.kinds.len() > 1 {
        writeln!(out, "\nKinds of transactions (response, ms):")?;
        percentile_head(out, "kind, count")?;
        for kind in &of.kinds {
            let name = format!("{} {}", kind.name, kind.transactions);
            percentile_row(out, &name, &kind.latency_ms.response)?;
        }
    }
    if !of.statements_by_name.is_empty() {
        writeln!(out, "\nStatements (ms):")?;
        percentile_head(out, "statement, count")?;
        for statement in &of.statements_by_name {
            let name = format!("{} {}", statement.name, statement.executions);
            percentile_row(out, &name, &statement.latency_ms)?;
            if !statement.errors.is_empty() {
                writeln!(out, "        errors: {}", joined(&statement.errors))?;
            }
        }
    }
    Ok(())
}

fn joined(errors: &BTreeMap<String, u64>) -> String {
    errors.iter().map(|(code, count)| format!("{code} x {count}")).collect::<Vec<_>>().join(", ")
}

fn open_loop(out: &mut String, of: &Outcome) -> std::fmt::Result {
    if of.options["rate_per_second"].is_null() {
        return Ok(());
    }
    writeln!(out, "\nOpen loop:")?;
    writeln!(out, "    {:<36} {}", "due but never started:", of.never_started)?;
    let overdue = "of them longer than the slowest:";
    writeln!(out, "    {overdue:<36} {}", of.overdue_at_end)?;
    spread(out, "schedule error (ms):", &of.generator.schedule_error_ms)
}

fn generator(out: &mut String, of: &Outcome) -> std::fmt::Result {
    let generator = &of.generator;
    writeln!(out, "\nGenerator:")?;
    let mut row = |name: &str, value: String| writeln!(out, "    {name:<36} {value}");
    let scheduling = match generator.scheduling.as_str() {
        "" => String::new(),
        class => format!(", scheduling {class}"),
    };
    row("threads:", format!("{} ({}{scheduling})", generator.threads, generator.reactor))?;
    row(
        "CPU (user + system):",
        format!(
            "{:.2} s + {:.2} s, {:.2} us per statement",
            generator.user_s, generator.sys_s, generator.cpu_us_per_statement
        ),
    )?;
    row(
        "busiest thread:",
        format!(
            "{:.0} % of a second on CPU, {:.0} % waiting for one",
            100.0 * generator.peak_thread_share,
            100.0 * generator.peak_thread_wait
        ),
    )?;
    let bound = if generator.bound { "yes: the figures above are the generator's" } else { "no" };
    row("generator bound:", bound.to_owned())?;
    spread(out, "delay by batching (ms):", &generator.batch_delay_ms.into())?;
    spread(out, "clock error (ms):", &generator.clock_error_ms.into())
}

/// What is all zero was not measured, or is not worth a line.
fn spread(out: &mut String, name: &str, of: &Latency) -> std::fmt::Result {
    let (Some(p50), Some(p95), Some(p999), Some(max)) = (of.p50, of.p95, of.p999, of.max) else {
        return Ok(());
    };
    writeln!(out, "    {name:<36} p50 {p50:.3}, p95 {p95:.3}, p99.9 {p999:.3}, max {max:.3}")
}

#[cfg(test)]
mod tests {
    use load::{Address, DriveReport, DriveSpec, KindReport, StatementReport, Target};
    use study::{OltpReadWrite, Workload};
    use workload::Survey;

    use super::*;
    use crate::bench::outcome::{Circumstances, End, Start};

    fn rendered(report: DriveReport, end: End) -> String {
        let target = Target {
            address: Address::Socket("/s".into()),
            user: "me".to_owned(),
            password: "never shown".to_owned(),
            database: "t".to_owned(),
            tls: load::Tls::default(),
        };
        let about = Circumstances {
            workload: &Workload::OltpReadWrite(OltpReadWrite::default()),
            spec: &DriveSpec::default(),
            target: &target,
            survey: &Survey { server_version: "8.0".to_owned(), tables: Vec::new() },
            start: Start::default(),
            end,
        };
        render(&Outcome::new(about, report, Vec::new()), 95.0)
    }

    #[test]
    fn only_sections_that_have_something_to_say_are_there() {
        let text = rendered(DriveReport { measured_s: 2.0, ..DriveReport::default() }, End::Whole);
        for absent in [
            "ended early",
            "Kinds of",
            "Statements (",
            "Errors by",
            "Open loop",
            "fairness",
            "failed",
        ] {
            assert!(!text.contains(absent), "{text}");
        }
        assert!(text.contains("\n    transactions:                        0      (0.00 per sec.)"));
    }

    #[test]
    fn kinds_statements_and_errors_have_their_lines() {
        let kind = |name: &str| KindReport {
            name: name.to_owned(),
            transactions: 7,
            ..KindReport::default()
        };
        let errors: BTreeMap<String, u64> = [("1213".to_owned(), 3)].into();
        let report = DriveReport {
            measured_s: 2.0,
            transactions: 14,
            reads: 100,
            writes: 40,
            other: 20,
            errors: errors.clone(),
            kinds: vec![kind("payment"), kind("new order")],
            statements: vec![StatementReport {
                name: "point".to_owned(),
                executions: 5,
                errors,
                ..StatementReport::default()
            }],
            failed: 1,
            ..DriveReport::default()
        };
        let text = rendered(report, End::Failed("the server went away".to_owned()));
        assert!(text.starts_with("ended early: the server went away\n"), "{text}");
        for line in [
            "        total:                           160",
            "    queries:                             160    (80.00 per sec.)",
            "    ignored errors:                      3      (1.50 per sec.)",
            "    failed transactions:                 1 ",
            "    payment 7  ",
            "    new order 7  ",
            "    point 5  ",
            "        errors: 1213 x 3",
            "    1213                                 3",
        ] {
            assert!(text.contains(line), "{line:?} in:\n{text}");
        }
    }
}
