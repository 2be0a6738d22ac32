//! The first load of a dataset beside sysbench's `prepare`, one table and several.

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
    // As `ceteris run` starts the server that it loads with; sysbench makes no use of it.
    let server = Server::start(&args.server, "local_infile = true")?;
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
        let ours = || {
            empty(&server)?;
            let knobs =
                serde_json::json!({ "oltp_point_select": { "tables": tables, "rows": rows } });
            let workload: study::Workload = serde_json::from_value(knobs)?;
            let began = Instant::now();
            workload::load_data(&workload, &server.admin_target(), 1, 2, &mut |_| {})?;
            Ok(loaded(began.elapsed().as_secs_f64()))
        };
        let pairs = interleave(args.pairs, peer, ours)?;
        page.row(
            &format!("first load, {tables} × {rows} rows, verified, beside sysbench prepare: rows"),
            pairs.medians(Sample::rate),
            "rows/s",
            pairs.ratio(Sample::rate),
            Bar::AtLeast(2.0),
        );
    }
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
