//! One run: a cell measured once in one block. Phases: place (with its dataset restored and the
//! server started), warm up, measure, stop.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use load::{DriveEvent, DriveReport, DriveSpec, Second};
use observe::{Sampled, Sampler};
use place::MachineSettings;
use store::{
    CommandRecord, Event, Histogram, InstanceSummary, Latency, Outcome, RunKey, RunRecord, Series,
    Summary,
};
use study::{Cell, Setup};

use super::drive;
use super::figures::Figures;
use super::prepare::{self, Prepared};
use super::target::Target;
use super::worker_process::{Silence, WorkerProcess};
use crate::doubts::{Doubts, doubts};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::seconds;
use crate::talk::Talk;
use crate::worker::protocol::{Reply, Request};

/// Longest that a drive may go on beyond its warm-up and measured time.
const DRIVE_GRACE: Duration = Duration::from_secs(120);

/// How a run that was not measured to its end came about.
pub enum Broken {
    /// The condition cannot be built: trying again will not help.
    Refused(Failure),
    /// Something died on the way: trying again may help.
    Died(String),
}

/// What a run is made with.
pub struct RunTools<'a> {
    pub placing: place::Tools<'a>,
    pub talk: &'a Talk,
    pub interrupt: &'a Interrupt,
    /// Seed of the study; the operations of a run follow from it and from the block.
    pub seed: u64,
}

/// Measures `cell` once. The record is complete also when the run broke off.
pub fn run(
    tools: &RunTools,
    cell: &Cell,
    key: RunKey,
    prepared: &Prepared,
) -> (RunRecord, Result<(), Broken>) {
    let mut record = RunRecord {
        key,
        started_unix_ns: unix_ns(),
        finished_unix_ns: 0,
        outcome: Outcome::Finished,
        summary: None,
        series: Vec::new(),
        histograms: Vec::new(),
        before: BTreeMap::new(),
        after: BTreeMap::new(),
        commands: Vec::new(),
        events: Vec::new(),
        logs: Vec::new(),
    };
    let ended = phases(tools, cell, prepared, &mut record);
    record.commands.extend(tools.placing.log.drain().into_iter().map(command_record));
    record.finished_unix_ns = unix_ns();
    match &ended {
        Ok(()) => {}
        Err(Broken::Refused(failure)) => record.outcome = Outcome::Failed(failure.message.clone()),
        Err(Broken::Died(how)) => record.outcome = Outcome::Failed(how.clone()),
    }
    (record, ended)
}

fn phases(
    tools: &RunTools,
    cell: &Cell,
    prepared: &Prepared,
    record: &mut RunRecord,
) -> Result<(), Broken> {
    begin_phase(tools, record, "place");
    let machine = MachineSettings::apply(&cell.setup.host, tools.placing)
        .map_err(|error| Broken::Refused(error.into()))?;
    let page_cache = match cell.setup.host.drop_caches {
        true => "dropped before the start",
        false => "as it was",
    };
    record.before.insert("host.page_cache".to_owned(), page_cache.to_owned());
    let mut target =
        Target::place(&cell.setup, prepared, tools.placing).map_err(Broken::Refused)?;
    let measured = restore(tools, cell, &mut target, record)
        .and_then(|()| measure(tools, cell, &mut target, record));
    record.logs = target.logs();
    // A server that died is told of by `measure`; that it cannot be stopped any more is no news.
    begin_phase(tools, record, "stop");
    let stopped = target.stop();
    let set_back = machine.set_back().map_err(Failure::from);
    measured?;
    let stopped = stopped.and(set_back);
    if let Err(failure) = stopped {
        // What was measured was measured; the journal still knows what could not be removed.
        tools.talk.warn(&failure.message);
        event(record, "warning", failure.message);
    }
    Ok(())
}

/// The tables of a server that stands already are made anew; a clone needs nothing.
fn restore(
    tools: &RunTools,
    cell: &Cell,
    target: &mut Target,
    record: &mut RunRecord,
) -> Result<(), Broken> {
    if !place::loads_in_place(&cell.setup.placement) {
        return Ok(());
    }
    begin_phase(tools, record, "restore");
    let RunTools { placing, talk, interrupt, .. } = *tools;
    let facts = prepare::fill(&cell.setup, target, true, placing, talk, interrupt)
        .map_err(Broken::Refused)?;
    let facts = facts.into_iter().map(|(name, fact)| (format!("place.data.{name}"), fact));
    record.before.extend(facts);
    Ok(())
}

fn measure(
    tools: &RunTools,
    cell: &Cell,
    target: &mut Target,
    record: &mut RunRecord,
) -> Result<(), Broken> {
    let died = |failure: Failure| Broken::Died(failure.message);
    record.before.extend(target.fingerprint().map_err(died)?);
    let request = drive_request(tools, &cell.setup, target, record.key.block)?;
    let prefix = target.worker_prefix();
    let mut worker = WorkerProcess::start(&request, &prefix, tools.placing.journal.environment())
        .map_err(|error| {
        Broken::Refused(Failure::new(format!("cannot start a worker: {error}")))
    })?;
    record.commands.push(CommandRecord {
        at_unix_ns: unix_ns(),
        command: worker_command(&prefix),
        took_ms: None,
        status: None,
    });
    begin_phase(tools, record, "warm up");
    let sampler = Sampler::start(target.watched(), Some(worker.pid()));
    let mut figures = Figures::default();
    let driven = listen(tools, &cell.setup, target, &mut worker, &mut figures, record);
    let (sampled, problems) = sampler.stop();
    worker.end();
    tools.talk.clear();
    for problem in problems {
        event(record, "warning", problem);
    }
    let (report, seconds) = driven?;
    record.after = target.fingerprint().map_err(died)?;
    keep(record, &cell.setup, &report, &seconds, &sampled);
    record.series.extend(figures.series(report.measure_start_monotonic_ns as f64 / 1e9));
    Ok(())
}

/// How the worker is started, for people.
fn worker_command(prefix: &[String]) -> String {
    let program = match prefix {
        [] => "ceteris".to_owned(),
        words => words.iter().map(|word| place::quote(word.as_ref())).collect::<Vec<_>>().join(" "),
    };
    format!("{program} worker  # told on standard input what to drive")
}

fn drive_request(
    tools: &RunTools,
    setup: &Setup,
    target: &Target,
    block: u32,
) -> Result<Request, Broken> {
    Ok(Request::Drive {
        workload: setup.workload.clone(),
        spec: DriveSpec {
            targets: target.addresses(setup.load.connect).map_err(Broken::Refused)?,
            // All levels of a block get the same operations, each block others.
            seed: tools.seed.wrapping_add(u64::from(block)),
            ..drive::spec(&setup.load)
        },
    })
}

/// Hears the worker out, watching the servers and the person meanwhile.
fn listen(
    tools: &RunTools,
    setup: &Setup,
    target: &mut Target,
    worker: &mut WorkerProcess,
    figures: &mut Figures,
    record: &mut RunRecord,
) -> Result<(DriveReport, Vec<Second>), Broken> {
    let mut seconds: Vec<Second> = Vec::new();
    let mut measuring = false;
    let load_time = setup.load.warmup.duration() + setup.load.measure.duration();
    // Connecting has no limit of its own: thousands of connections that prepare thousands of
    // statements take the time that the server takes, and a lost one is an error.
    let mut limit: Option<Instant> = None;
    loop {
        if tools.interrupt.raised() {
            tools.talk.say("stopping: shutting the servers down");
            return Err(Broken::Died("interrupted".to_owned()));
        }
        if limit.is_some_and(|limit| Instant::now() > limit) {
            let over = DRIVE_GRACE.as_secs();
            return Err(Broken::Died(format!("the worker is {over} s over its time")));
        }
        match worker.listen(Duration::from_millis(100)) {
            Ok(Reply::Driving(DriveEvent::Connected {
                connections,
                threads,
                pinned,
                reactor,
                took_ms,
                ..
            })) => {
                let pins: Vec<String> = pinned.iter().map(ToString::to_string).collect();
                let text = format!(
                    "{connections} connections in {took_ms:.0} ms, {threads} generator threads on \
                     CPUs [{}], {reactor}",
                    pins.join(" ")
                );
                event(record, "generator", text);
                record.before.extend(
                    [
                        ("generator.threads", threads.to_string()),
                        ("generator.cpus", pins.join(",")),
                        ("generator.reactor", reactor),
                    ]
                    .map(|(name, value)| (name.to_owned(), value)),
                );
                limit = Some(Instant::now() + load_time + DRIVE_GRACE);
            }
            Ok(Reply::Driving(DriveEvent::Second(second))) => {
                if second.measured && !measuring {
                    measuring = true;
                    begin_phase(tools, record, "measure");
                }
                tools.talk.live(&seconds::line(&second));
                seconds.push(second);
                figures.read(target);
            }
            // The failure that follows says why.
            Ok(Reply::Driving(DriveEvent::EndedEarly(report))) => event(
                record,
                "partial",
                format!(
                    "{} transactions in {:.3} s until the drive ended",
                    report.transactions, report.measured_s
                ),
            ),
            Ok(Reply::Driven(report)) => return Ok((*report, seconds)),
            Ok(Reply::Failed(why)) => {
                // The server's end, if it ended, is the better story.
                std::thread::sleep(Duration::from_millis(200));
                target.check_alive().map_err(Broken::Died)?;
                return Err(Broken::Died(why));
            }
            Ok(other) => {
                return Err(Broken::Died(format!("the worker answered a drive with {other:?}")));
            }
            Err(Silence::NotYet) => target.check_alive().map_err(Broken::Died)?,
            Err(Silence::Ended(how)) => {
                target.check_alive().map_err(Broken::Died)?;
                return Err(Broken::Died(how));
            }
        }
    }
}

/// Puts the figures of a finished drive into the record.
fn keep(
    record: &mut RunRecord,
    setup: &Setup,
    report: &DriveReport,
    seconds: &[Second],
    sampled: &[Sampled],
) {
    for (name, value) in record.before.clone() {
        if ["generator.", "place.data.", "host.page_cache"].iter().any(|own| name.starts_with(own))
        {
            record.after.insert(name, value);
        }
    }
    let pacing = drive::spec(&setup.load).pacing;
    let Doubts { steady, generator_bound, notes } = doubts(report, seconds, &pacing);
    record.summary = Some(Summary {
        measured_s: report.measured_s,
        transactions: report.transactions,
        tps: report.transactions as f64 / report.measured_s,
        reads: report.reads,
        writes: report.writes,
        other: report.other,
        errors: report.errors.clone(),
        retries: report.retries,
        response: latency(&report.response),
        service: latency(&report.service),
        generator_user_s: report.user_s,
        generator_sys_s: report.sys_s,
        generator_threads: report.threads,
        generator_peak: report.peak_thread_share,
        generator_bound,
        // A record knows no third word: what cannot be said is no doubt.
        steady: steady != Some(false),
        notes,
        instances: report
            .targets
            .iter()
            .map(|target| instance(target, report.measured_s))
            .collect(),
    });
    for (name, encoded) in
        [("response", &report.response_hdr_base64), ("service", &report.service_hdr_base64)]
    {
        match load::decode_base64(encoded) {
            Some(hdr_v2) => record.histograms.push(Histogram {
                name: name.to_owned(),
                unit: "ns".to_owned(),
                hdr_v2,
            }),
            None => event(record, "warning", format!("the {name} histogram is not base64")),
        }
    }
    record.series = seconds::series(seconds, setup.load.warmup.duration().as_secs_f64());
    let zero = report.measure_start_monotonic_ns as f64 / 1e9;
    record.series.extend(sampled.iter().map(|s| Series {
        name: s.name.clone(),
        unit: s.unit.clone(),
        at_s: s.at_monotonic_s.iter().map(|at| at - zero).collect(),
        values: s.values.clone(),
    }));
}

fn instance(target: &load::KindReport, measured_s: f64) -> InstanceSummary {
    InstanceSummary {
        transactions: target.transactions,
        tps: target.transactions as f64 / measured_s,
        response: latency(&target.response),
    }
}

fn latency(from: &load::LatencyMs) -> Latency {
    Latency {
        mean_ms: from.mean,
        p50_ms: from.p50,
        p95_ms: from.p95,
        p99_ms: from.p99,
        max_ms: from.max,
    }
}

fn begin_phase(tools: &RunTools, record: &mut RunRecord, phase: &str) {
    tools.talk.passing(&format!("{phase} ..."));
    event(record, "phase", phase.to_owned());
}

fn event(record: &mut RunRecord, kind: &str, text: String) {
    record.events.push(Event { at_unix_ns: unix_ns(), kind: kind.to_owned(), text });
}

/// A command as the result file keeps it.
pub fn command_record(logged: place::LoggedCommand) -> CommandRecord {
    CommandRecord {
        at_unix_ns: logged.at_unix_ns,
        command: logged.command,
        took_ms: logged.took_ms,
        status: logged.status,
    }
}

/// Now, nanoseconds since the Unix epoch.
pub fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
