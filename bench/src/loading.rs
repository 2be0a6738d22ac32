//! The first load of a dataset beside sysbench's `prepare`, one table and several: on one server as
//! it is, and as a dataset is first loaded, on a server that ceteris starts for that. Both servers
//! are there all the time, and one of them idle.

use std::time::Instant;

use mysql::prelude::Queryable;

use crate::pairs::interleave;
use crate::sample::Sample;
use crate::server::Server;
use crate::sysbench::Sysbench;
use crate::table::{Bar, Page};
use crate::{Args, Failed};

/// Rows of all tables together.
const ROWS: u64 = 500_000;

/// One table, and four.
pub fn rows(args: &Args, page: &mut Page) -> Result<(), Failed> {
    let server = Server::start(&args.server, "")?;
    let settings = place::LOADING.map(|(name, value)| format!("{name} = {value:?}\n"));
    let loading = Server::start_with(&args.server, &settings.concat())?;
    for tables in [1, 4] {
        let rows = ROWS / u64::from(tables);
        let target = server.target(false)?;
        let peer = || {
            empty(&server)?;
            let seconds = Sysbench {
                script: "oltp_point_select",
                target: &target,
                connections: tables,
                seconds: 0,
                tables,
                rows,
                text: false,
                cpu: None,
            }
            .prepare()?;
            Ok(loaded(seconds))
        };
        let ours = |server: &Server| {
            empty(server)?;
            let knobs =
                serde_json::json!({ "oltp_point_select": { "tables": tables, "rows": rows } });
            let workload: study::Workload = serde_json::from_value(knobs)?;
            let began = Instant::now();
            workload::load_data(&workload, &server.admin_target(), 1, 2, &mut |_| {})?;
            Ok(loaded(began.elapsed().as_secs_f64()))
        };
        for (on, how) in [(&server, "the same server"), (&loading, "a server for loading")] {
            let pairs = interleave(args.pairs, peer, || ours(on))?;
            page.row(
                &format!("first load on {how}, {tables} × {rows} rows, verified: rows"),
                pairs.medians(Sample::rate),
                "rows/s",
                pairs.ratio(Sample::rate),
                Bar::AtLeast(2.0),
            );
        }
    }
    loading.stop()?;
    server.stop()
}

fn loaded(seconds: f64) -> Sample {
    Sample { statements: ROWS as f64, seconds, ..Sample::default() }
}

fn empty(server: &Server) -> Result<(), Failed> {
    let mut admin = server.admin()?;
    admin.query_drop("DROP DATABASE IF EXISTS sbtest")?;
    // Our loader makes the database itself; sysbench wants it to be there. Both find it empty.
    Ok(admin.query_drop("CREATE DATABASE sbtest")?)
}
