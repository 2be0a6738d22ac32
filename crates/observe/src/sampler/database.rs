//! `SHOW GLOBAL STATUS`, once a second on one plain connection for each target.
//!
//! The query's own cost is a few hundred short rows a second, the same for every level.

use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use super::{Counters, Shared};
use crate::status::{Sampling, sampling};

/// How long a server may take to answer before the connection is given up.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Samples until told to end.
pub(super) fn watch(target: &str, opts: Opts, shared: &Shared) {
    let opts = OptsBuilder::from_opts(opts)
        .read_timeout(Some(ANSWER_LIMIT))
        .write_timeout(Some(ANSWER_LIMIT))
        .tcp_connect_timeout(Some(ANSWER_LIMIT));
    let mut counters = Counters::default();
    let mut connection: Option<Conn> = None;
    while shared.next_tick().is_some() {
        let asked = ask(&mut connection, &opts);
        match asked {
            Ok((at_s, rows)) => keep(target, at_s, rows, &mut counters, shared),
            Err(error) => {
                // A new connection at the next tick; until then there is a gap in the series.
                connection = None;
                shared.problem(format!("{target}: status not sampled: {error}"));
            }
        }
    }
}

type Rows = Vec<(String, Option<String>)>;

fn ask(connection: &mut Option<Conn>, opts: &OptsBuilder) -> Result<(f64, Rows), mysql::Error> {
    let open = match connection {
        Some(open) => open,
        None => connection.insert(Conn::new(opts.clone())?),
    };
    let sent = super::monotonic_ns();
    let rows = open.query("SHOW GLOBAL STATUS")?;
    // The server counts somewhere between question and answer.
    let middle = sent + (super::monotonic_ns() - sent) / 2;
    Ok((middle as f64 / 1e9, rows))
}

fn keep(target: &str, at_s: f64, rows: Rows, counters: &mut Counters, shared: &Shared) {
    let mut record = shared.record();
    for (name, value) in rows {
        let Some(value) = value.and_then(|text| text.parse::<f64>().ok()) else { continue };
        let series = format!("{target}.status.{name}");
        match sampling(&name) {
            Sampling::Level(unit) => record.push(at_s, &series, unit, value),
            Sampling::Rate(unit) => {
                if let Some(rate) = counters.rate(&series, at_s, value) {
                    record.push(at_s, &series, unit, rate);
                }
            }
            Sampling::Ignored => {}
        }
    }
}
