//! ceteris' own worker, spoken to as the conductor speaks to it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use load::{DriveReport, DriveSpec};
use serde_json::{Value, json};
use study::Workload;

use crate::Failed;
use crate::sample::{Sample, reap};

/// Drives in a worker process; what it cost and what it reported.
pub fn drive(
    binary: &Path,
    workload: &Workload,
    spec: &DriveSpec,
) -> Result<(Sample, DriveReport), Failed> {
    drive_watched(binary, workload, spec, |_| {})
}

/// Largest resident memory of a worker process over its life, bytes.
pub fn peak_memory_bytes(
    binary: &Path,
    workload: &Workload,
    spec: &DriveSpec,
) -> Result<f64, Failed> {
    let mut peak_kib = 0.0f64;
    drive_watched(binary, workload, spec, |pid| {
        peak_kib = peak_kib.max(memory_kib(pid, "VmHWM:").unwrap_or_default());
    })?;
    Ok(peak_kib * 1024.0)
}

/// A figure of a process' memory, as `/proc/PID/status` calls it.
pub fn memory_kib(pid: u32, figure: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Drives, and tells `watch` the worker's process id at everything that it says.
pub fn drive_watched(
    binary: &Path,
    workload: &Workload,
    spec: &DriveSpec,
    mut watch: impl FnMut(u32),
) -> Result<(Sample, DriveReport), Failed> {
    let mut child = Command::new(binary)
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", binary.display()))?;
    let request = json!({ "drive": { "workload": workload, "spec": spec } });
    // Kept open: its end would stop the worker.
    let mut input = child.stdin.take().ok_or("no standard input")?;
    writeln!(input, "{request}")?;
    let output = child.stdout.take().ok_or("no standard output")?;
    let mut report = None;
    for line in BufReader::new(output).lines() {
        let mut reply: Value = serde_json::from_str(&line?)?;
        watch(child.id());
        if let Some(why) = reply.get("failed") {
            return Err(format!("the worker failed: {why}").into());
        }
        if let Some(driven) = reply.get_mut("driven") {
            report = Some(serde_json::from_value::<DriveReport>(driven.take())?);
        }
    }
    let (_, user_s, sys_s) = reap(child)?;
    let report = report.ok_or("the worker said nothing")?;
    let statements = (report.reads + report.writes + report.other) as f64;
    Ok((Sample { statements, seconds: report.measured_s, user_s, sys_s }, report))
}
