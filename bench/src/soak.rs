//! Whether a generator stays as small as it began: a long open loop against a real server, its
//! resident memory looked at every ten seconds.
//!
//! What is allocated at the start and touched for the first time later (histograms, buffers) makes
//! the first minutes grow; growth after them is a leak, and more than the bound is an error.

use std::time::{Duration, Instant};

use load::{DriveSpec, Pacing};

use crate::cost::study_workload;
use crate::server::Server;
use crate::{Args, Failed, ceteris};

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(10);

/// What is soaked, and what may come of it.
#[derive(Debug, clap::Args)]
pub struct Soak {
    /// Workload of the soak, a sysbench 1.x variant
    #[arg(long, default_value = "oltp_point_select")]
    pub soak_workload: String,
    /// Seconds of the soak
    #[arg(long, default_value_t = 3600)]
    pub soak_seconds: u64,
    /// Connections of the soak
    #[arg(long, default_value_t = 1000)]
    pub soak_connections: u32,
    /// Transactions per second of the soak's open loop
    #[arg(long, default_value_t = 2000.0)]
    pub soak_rate: f64,
    /// Seconds after which its memory may grow no more
    #[arg(long, default_value_t = 300)]
    pub soak_settled_seconds: u64,
    /// KiB by which it may do so all the same
    #[arg(long, default_value_t = 512)]
    pub soak_growth_kib: u64,
}

/// Seconds since the first look, KiB resident.
type Look = (f64, f64);

/// Soaks and prints what was seen.
///
/// # Errors
/// The memory grew by more than the bound, the drive failed, or the server did not keep up.
pub fn rows(args: &Args) -> Result<(), Failed> {
    let Soak { soak_workload, soak_seconds, soak_connections, soak_rate, .. } = &args.soak;
    let server = Server::start(&args.server, "")?;
    server.fill()?;
    let spec = DriveSpec {
        targets: vec![server.target(false)?],
        connections: *soak_connections,
        measure: Duration::from_secs(*soak_seconds),
        pacing: Pacing { rate_per_second: Some(*soak_rate), ..Pacing::default() },
        ..DriveSpec::default()
    };
    let (mut looks, mut began) = (Vec::<Look>::new(), None);
    let workload = study_workload(soak_workload)?;
    let (_, report) = ceteris::drive_watched(&args.ceteris, &workload, &spec, |pid| {
        let since = began.get_or_insert_with(Instant::now).elapsed();
        if since >= PERIOD * looks.len() as u32
            && let Some(resident) = ceteris::memory_kib(pid, "VmRSS:")
        {
            eprintln!("{:>6.0} s {resident:>9.0} KiB resident", since.as_secs_f64());
            looks.push((since.as_secs_f64(), resident));
        }
    })?;
    server.stop()?;
    let errors: u64 = report.errors.values().sum();
    println!(
        "{soak_workload}, {soak_connections} connections, {soak_rate} transactions/s, \
         {soak_seconds} s: {} transactions, {} never started, {errors} errors, {} retries",
        report.transactions, report.never_started, report.retries
    );
    let seen = judge(&looks, args.soak.soak_settled_seconds as f64)?;
    println!(
        "resident: {:.0} KiB after {} s, {:.0} at the end, {:.0} at most, slope {:+.0} KiB/h",
        seen.settled, args.soak.soak_settled_seconds, seen.last, seen.largest, seen.slope_per_hour
    );
    if seen.largest - seen.settled > args.soak.soak_growth_kib as f64 {
        let (grew, bound) = (seen.largest - seen.settled, args.soak.soak_growth_kib);
        return Err(format!("its memory grew by {grew:.0} KiB, more than {bound}").into());
    }
    let asked = soak_rate * *soak_seconds as f64;
    if (report.transactions as f64) < 0.95 * asked {
        return Err(format!(
            "{} transactions are not the {asked:.0} asked for",
            report.transactions
        )
        .into());
    }
    Ok(())
}

/// Memory once it had settled, KiB.
struct Seen {
    /// At the first look after.
    settled: f64,
    last: f64,
    largest: f64,
    /// Of the least-squares line.
    slope_per_hour: f64,
}

fn judge(looks: &[Look], settled_s: f64) -> Result<Seen, Failed> {
    let after: Vec<Look> = looks.iter().copied().filter(|(at, _)| *at >= settled_s).collect();
    let (&[(_, settled), .., (_, last)], count) = (&after[..], after.len() as f64) else {
        return Err("the soak ended before two looks at its settled memory".into());
    };
    let mean = |of: fn(&Look) -> f64| after.iter().map(of).sum::<f64>() / count;
    let (at, kib) = (mean(|look| look.0), mean(|look| look.1));
    let covariance: f64 = after.iter().map(|look| (look.0 - at) * (look.1 - kib)).sum();
    let variance: f64 = after.iter().map(|look| (look.0 - at).powi(2)).sum();
    let largest = after.iter().map(|look| look.1).fold(settled, f64::max);
    Ok(Seen { settled, last, largest, slope_per_hour: covariance / variance * 3600.0 })
}
