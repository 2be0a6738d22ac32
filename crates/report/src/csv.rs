//! One line per run.

use store::{Outcome, ResultFile, StoredRun};

use crate::html::utc;

const HEADER: &str = "question,level,at,block,started,outcome,tps,p50_ms,p95_ms,p99_ms,max_ms,\
    transactions,reads,writes,other,errors,retries,generator_user_s,generator_sys_s,steady,\
    generator_bound,error";

/// The runs as CSV (RFC 4180, lines ended by a line feed) with a header line. Blocks count from 0,
/// `started` is ISO 8601 in UTC, `errors` is `code=count` joined by `;`. Figures of a run that
/// failed before it measured, and figures that are no finite number, are empty.
///
/// # Errors
/// The result file's.
pub fn csv(file: &ResultFile) -> crate::Result<String> {
    let mut text = format!("{HEADER}\n");
    for run in file.runs()? {
        let fields: Vec<String> = fields(&run).iter().map(|field| quoted(field)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    Ok(text)
}

fn fields(run: &StoredRun) -> Vec<String> {
    let (outcome, error) = match &run.outcome {
        Outcome::Finished => ("finished", ""),
        Outcome::Failed(why) => ("failed", why.as_str()),
    };
    let mut fields = vec![
        run.key.question.clone(),
        run.key.level.clone(),
        run.key.at.clone(),
        run.key.block.to_string(),
        utc(run.started_unix_ns).replace(' ', "T") + "Z",
        outcome.to_owned(),
    ];
    match &run.summary {
        Some(summary) => {
            let latency = &summary.response;
            let errors: Vec<String> =
                summary.errors.iter().map(|(code, count)| format!("{code}={count}")).collect();
            fields.extend([
                number(summary.tps),
                number(latency.p50_ms),
                number(latency.p95_ms),
                number(latency.p99_ms),
                number(latency.max_ms),
                summary.transactions.to_string(),
                summary.reads.to_string(),
                summary.writes.to_string(),
                summary.other.to_string(),
                errors.join(";"),
                summary.retries.to_string(),
                number(summary.generator_user_s),
                number(summary.generator_sys_s),
                summary.steady.to_string(),
                summary.generator_bound.to_string(),
            ]);
        }
        None => fields.extend(std::iter::repeat_n(String::new(), 15)),
    }
    fields.push(error.to_owned());
    fields
}

/// Empty where there is no number: a run without a transaction has no percentile.
fn number(figure: f64) -> String {
    if figure.is_finite() { figure.to_string() } else { String::new() }
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{HEADER, fields, quoted};
    use store::{Outcome, RunKey, StoredRun};

    #[test]
    fn fields_with_commas_quotes_and_line_ends_are_quoted() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted(r#"{"a":1,"b":2}"#), r#""{""a"":1,""b"":2}""#);
        assert_eq!(quoted("two\nlines"), "\"two\nlines\"");
    }

    #[test]
    fn a_failed_run_has_as_many_fields_as_the_header() {
        let run = StoredRun {
            id: 1,
            key: RunKey {
                question: "q".to_owned(),
                level: "l".to_owned(),
                at: "{}".to_owned(),
                block: 0,
            },
            started_unix_ns: 0,
            finished_unix_ns: 1,
            outcome: Outcome::Failed("gone".to_owned()),
            summary: None,
        };
        let fields = fields(&run);
        assert_eq!(fields.len(), HEADER.split(',').count());
        assert_eq!(fields[4], "1970-01-01T00:00:00Z");
        assert_eq!(fields.last().map(String::as_str), Some("gone"));
    }
}
