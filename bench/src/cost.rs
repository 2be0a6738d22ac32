//! What the generator burns for a statement, and what it draws from a saturated server that shares
//! its CPUs: beside sysbench, and beside a bare loop as the limit.

use load::{Batching, DriveSpec, Engine, StatementProtocol};
use std::time::Duration;
use study::Workload;

use crate::bare::{self, Way};
use crate::pairs::interleave;
use crate::sample::Sample;
use crate::server::{ROWS, Server, TABLES};
use crate::sysbench::Sysbench;
use crate::table::{Bar, Page};
use crate::{Args, Failed, ceteris};

/// One condition.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// As sysbench and the study file call it.
    workload: &'static str,
    connections: u32,
    tcp: bool,
    text: bool,
}

const fn on_socket(workload: &'static str, connections: u32) -> Condition {
    Condition { workload, connections, tcp: false, text: false }
}

/// The rows of the design.
pub const SHORT: &[Condition] = &[
    on_socket("oltp_point_select", 8),
    on_socket("oltp_point_select", 64),
    on_socket("oltp_point_select", 512),
];

/// Every combination of workload, protocol and way at the usual sizes.
pub const ALL: &[Condition] = &{
    let mut all = [on_socket("oltp_point_select", 8); 36];
    let workloads = ["oltp_point_select", "oltp_read_only", "oltp_read_write"];
    let connections = [8, 64, 512];
    let mut at = 0;
    while at < all.len() {
        all[at] = Condition {
            workload: workloads[at / 12],
            connections: connections[at % 12 / 4],
            tcp: at % 4 / 2 == 1,
            text: at % 2 == 1,
        };
        at += 1;
    }
    all
};

/// Bars at a number of connections (DESIGN section 7): user CPU, all CPU, all CPU with batching,
/// throughput. They are set for point selects by prepared statements over a Unix socket.
fn bars(condition: Condition) -> [Bar; 4] {
    let Condition { workload: "oltp_point_select", tcp: false, text: false, connections } =
        condition
    else {
        return [Bar::None; 4];
    };
    let user = Bar::AtMost(0.125);
    match connections {
        8 => [user, Bar::AtMost(0.8), Bar::None, Bar::AtLeast(1.0)],
        64 => [user, Bar::AtMost(0.6), Bar::AtMost(0.4), Bar::AtLeast(1.1)],
        512 => [user, Bar::AtMost(0.25), Bar::AtMost(0.15), Bar::AtLeast(1.4)],
        _ => [Bar::None; 4],
    }
}

/// Measures every condition.
pub fn rows(args: &Args, conditions: &[Condition], page: &mut Page) -> Result<(), Failed> {
    let server = Server::start(&args.server, "")?;
    server.fill()?;
    for &condition in conditions {
        one(args, &server, condition, page)?;
    }
    server.stop()
}

fn one(args: &Args, server: &Server, condition: Condition, page: &mut Page) -> Result<(), Failed> {
    let Condition { workload, connections, tcp, text } = condition;
    let target = server.target(tcp)?;
    let peer = Sysbench {
        script: workload,
        target: &target,
        connections,
        seconds: args.seconds,
        tables: TABLES,
        rows: ROWS,
        text,
        cpu: None,
    };
    let ours = |batching| -> Result<Sample, Failed> {
        let spec = DriveSpec {
            targets: vec![target.clone()],
            connections,
            measure: Duration::from_secs(args.seconds),
            engine: Engine { batching, ..Engine::default() },
            protocol: match text {
                true => StatementProtocol::Text,
                false => StatementProtocol::Prepared,
            },
            ..DriveSpec::default()
        };
        Ok(ceteris::drive(&args.ceteris, &study_workload(workload)?, &spec)?.0)
    };
    let way = if tcp { "TCP" } else { "socket" };
    let protocol = if text { ", text" } else { "" };
    let name = format!("{}, {connections} connections, {way}{protocol}", &workload[5..]);
    let [user, cpu, batched, rate] = bars(condition);

    let pairs = interleave(args.pairs, || peer.run(), || ours(Batching::Off))?;
    let mut row = |what: &str, figure: fn(&Sample) -> f64, unit, bar| {
        let what = format!("{name}: {what}");
        page.row(&what, pairs.medians(figure), unit, pairs.ratio(figure), bar);
    };
    row("user CPU", Sample::user_us, "µs/statement", user);
    row("user + system CPU", Sample::cpu_us, "µs/statement", cpu);
    row("throughput", Sample::rate, "statements/s", rate);

    let pairs = interleave(args.pairs, || peer.run(), || ours(Batching::Share(0.05)))?;
    let what = format!("{name}: user + system CPU, batching 5 %");
    let (medians, ratio) = (pairs.medians(Sample::cpu_us), pairs.ratio(Sample::cpu_us));
    page.row(&what, medians, "µs/statement", ratio, batched);

    if workload == "oltp_point_select" && !tcp && !text {
        for bare in [Way::Epoll, Way::Ring] {
            let limit = || bare::drive(bare, &target, connections, args.seconds);
            let pairs = interleave(args.pairs, limit, || ours(Batching::Off))?;
            let what = format!("{name}: user + system CPU beside a bare {bare:?} loop");
            let (medians, ratio) = (pairs.medians(Sample::cpu_us), pairs.ratio(Sample::cpu_us));
            // The bar is the cheaper of the two, which is epoll at most sizes; both are shown.
            page.row(&what, medians, "µs/statement", ratio, Bar::AtMost(1.25));
        }
    }
    Ok(())
}

/// A workload on the tables of [`Server::fill`].
pub fn study_workload(name: &str) -> Result<Workload, Failed> {
    let knobs = serde_json::json!({ name: { "tables": TABLES, "rows": ROWS } });
    Ok(serde_json::from_value(knobs)?)
}
