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

/// Largest resident memory of a worker process over its life, bytes.
pub fn peak_memory_bytes(
    binary: &Path,
    workload: &Workload,
    spec: &DriveSpec,
) -> Result<f64, Failed> {
    let mut child =
        Command::new(binary).arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let request = json!({ "drive": { "workload": workload, "spec": spec } });
    let mut input = child.stdin.take().ok_or("no standard input")?;
    writeln!(input, "{request}")?;
    let output = child.stdout.take().ok_or("no standard output")?;
    let mut peak_kib = 0.0f64;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if line.starts_with("{\"failed\"") {
            return Err(format!("the worker failed: {line}").into());
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let resident = status.unwrap_or_default().lines().find_map(|line| {
            line.strip_prefix("VmHWM:")?.trim().trim_end_matches(" kB").parse::<f64>().ok()
        });
        peak_kib = peak_kib.max(resident.unwrap_or_default());
    }
    reap(child)?;
    Ok(peak_kib * 1024.0)
}
