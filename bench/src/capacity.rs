//! What one generator can carry: statements per second of one core, memory for a connection, how
//! punctual an open loop is.

use std::time::Duration;

use load::{DriveSpec, Pacing};

use crate::cost::study_workload;
use crate::pairs::{Ratio, interleave, spread};
use crate::responder::Responder;
use crate::sample::Sample;
use crate::server::{ROWS, Server};
use crate::sysbench::Sysbench;
use crate::table::{Bar, Page};
use crate::{Args, Failed, ceteris};

const CONNECTIONS: u32 = 64;

/// One core drives, another answers.
pub fn rows(args: &Args, page: &mut Page) -> Result<(), Failed> {
    let cpus = std::thread::available_parallelism()?.get();
    if cpus < 2 {
        return Err("one core drives and another answers: two are needed".into());
    }
    let (answers, drives) = (0, cpus - 1);
    let peer = || -> Result<Sample, Failed> {
        let responder = Responder::start(CONNECTIONS as usize, answers)?;
        let target = responder.target();
        let sample = Sysbench {
            script: "oltp_point_select",
            target: &target,
            connections: CONNECTIONS,
            seconds: args.seconds,
            tables: 1,
            rows: ROWS,
            text: false,
            cpu: Some(drives),
        }
        .run()?;
        responder.finish()?;
        Ok(sample)
    };
    let ours = || -> Result<Sample, Failed> {
        let responder = Responder::start(CONNECTIONS as usize, answers)?;
        let spec = DriveSpec {
            targets: vec![responder.target()],
            connections: CONNECTIONS,
            threads: Some(1),
            pin: Some(vec![drives]),
            measure: Duration::from_secs(args.seconds),
            ..DriveSpec::default()
        };
        let (sample, _) =
            ceteris::drive(&args.ceteris, &study_workload("oltp_point_select")?, &spec)?;
        responder.finish()?;
        Ok(sample)
    };
    let pairs = interleave(args.pairs, peer, ours)?;
    page.row(
        &format!("one core against a null responder, {CONNECTIONS} connections: statements"),
        pairs.medians(Sample::rate),
        "statements/s",
        pairs.ratio(Sample::rate),
        Bar::AtLeast(4.0),
    );
    Ok(())
}

/// Resident memory of a worker with 10,000 connections beside one with 100.
pub fn memory(args: &Args, page: &mut Page) -> Result<(), Failed> {
    const MANY: u32 = 10_000;
    const FEW: u32 = 100;
    let resident = |connections: u32| -> Result<f64, Failed> {
        let responder = Responder::start(connections as usize, 0)?;
        let spec = DriveSpec {
            targets: vec![responder.target()],
            connections,
            threads: Some(1),
            measure: Duration::from_secs(args.seconds),
            ..DriveSpec::default()
        };
        let workload = study_workload("oltp_point_select")?;
        let bytes = ceteris::peak_memory_bytes(&args.ceteris, &workload, &spec)?;
        responder.finish()?;
        Ok(bytes)
    };
    let (few, many) = (resident(FEW)?, resident(MANY)?);
    let each_kib = (many - few) / f64::from(MANY - FEW) / 1024.0;
    let ratio = Ratio { median: each_kib / 4.0, low: each_kib / 4.0, high: each_kib / 4.0 };
    page.row(
        &format!("memory of a connection, {MANY} connections, beside the bar of 4 KiB"),
        (4.0, each_kib),
        "KiB",
        ratio,
        Bar::AtMost(1.0),
    );
    Ok(())
}

/// An open loop at half of what saturates the server, beside the scheduler's own floor: how late a
/// thread of the same class wakes that sleeps until an instant, under the same load.
pub fn schedule(args: &Args, page: &mut Page) -> Result<(), Failed> {
    let server = Server::start(&args.server, "")?;
    server.fill()?;
    let spec = |rate_per_second| -> Result<DriveSpec, Failed> {
        Ok(DriveSpec {
            targets: vec![server.target(false)?],
            connections: CONNECTIONS,
            measure: Duration::from_secs(args.seconds),
            pacing: Pacing { rate_per_second, ..Pacing::default() },
            ..DriveSpec::default()
        })
    };
    let workload = study_workload("oltp_point_select")?;
    let (saturated, _) = ceteris::drive(&args.ceteris, &workload, &spec(None)?)?;
    let half = spec(Some(saturated.rate() / 2.0))?;
    let (mut floors, mut errors) = (Vec::new(), Vec::new());
    for _ in 0..args.pairs {
        let floor = std::thread::spawn(floor_ms(args.seconds));
        let (_, report) = ceteris::drive(&args.ceteris, &workload, &half)?;
        if report.schedule_error.max == 0.0 {
            return Err("the drive says nothing of its schedule error".into());
        }
        floors.push(floor.join().map_err(|_| "the sleeper panicked")?);
        errors.push(report.schedule_error.p999);
    }
    let ratios = errors.iter().zip(&floors).map(|(error, floor)| error / floor.max(0.2)).collect();
    page.row(
        "open loop at half of saturation: schedule error p99.9 beside the larger of 200 µs and a \
         sleeping thread's",
        (spread(floors).median, spread(errors).median),
        "ms",
        spread(ratios),
        Bar::AtMost(1.0),
    );
    server.stop()
}

/// 99.9th percentile of how late a sleeper wakes, milliseconds.
fn floor_ms(seconds: u64) -> impl FnOnce() -> f64 {
    move || {
        let until = std::time::Instant::now() + Duration::from_secs(seconds);
        let nap = Duration::from_millis(1);
        let mut late_ms = Vec::new();
        while std::time::Instant::now() < until {
            let due = std::time::Instant::now() + nap;
            std::thread::sleep(nap);
            late_ms.push(due.elapsed().as_secs_f64() * 1e3);
        }
        late_ms.sort_by(f64::total_cmp);
        late_ms[late_ms.len() * 999 / 1000]
    }
}
