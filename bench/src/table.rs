//! The page: a table of rows, each a ratio beside its bar.

use std::fmt::Write as _;
use std::path::Path;

use crate::pairs::Ratio;
use crate::{Args, Failed};

/// Where a ratio must lie.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// No bar is set; for orientation.
    None,
}

/// Rows so far.
pub struct Page {
    head: String,
    rows: Vec<String>,
    missed: u32,
}

impl Page {
    /// An empty page that names machine and programs.
    pub fn new(args: &Args) -> Result<Page, Failed> {
        let machine = machine()?;
        let words: Vec<String> = std::env::args().skip(1).collect();
        let head = format!(
            "Machine: {machine}. Server: {}. Peer: {}. Pairs of runs for each row: {}, each run {} s.\n\
             Command: `make bench{}{}`\n",
            args.server,
            version("sysbench")?,
            args.pairs,
            args.seconds,
            if words.is_empty() { "" } else { " BENCH=" },
            if words.is_empty() { String::new() } else { format!("'{}'", words.join(" ")) },
        );
        eprint!("{head}");
        Ok(Page { head, rows: Vec::new(), missed: 0 })
    }

    /// Adds and shows a row: what, the peer's and our median in `unit`, the ratio, its bar.
    pub fn row(
        &mut self,
        what: &str,
        (peer, ours): (f64, f64),
        unit: &str,
        ratio: Ratio,
        bar: Bar,
    ) {
        let Ratio { median, low, high } = ratio;
        let (bar, met) = match bar {
            Bar::AtMost(most) => (format!("≤ {most:.3}"), Some(median <= most)),
            Bar::AtLeast(least) => (format!("≥ {least:.2}"), Some(median >= least)),
            Bar::None => (String::new(), None),
        };
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "",
        };
        self.missed += u32::from(met == Some(false));
        let row = format!(
            "| {what} | {} | {} | {unit} | {median:.3} | {low:.3} to {high:.3} | {bar} | {verdict} |",
            figure(peer),
            figure(ours),
        );
        if self.rows.is_empty() {
            eprintln!("{HEADER}");
        }
        eprintln!("{row}");
        self.rows.push(row);
    }

    /// Prints the page, if there is anything on it; to a file as well where one is named.
    pub fn finish(self, output: Option<&Path>) -> Result<(), Failed> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut text = format!("{}\n{HEADER}\n", self.head);
        for row in &self.rows {
            writeln!(text, "{row}")?;
        }
        writeln!(text, "\n{} rows, {} bars missed.", self.rows.len(), self.missed)?;
        print!("{text}");
        if let Some(path) = output {
            std::fs::write(path, text)?;
        }
        Ok(())
    }
}

const HEADER: &str = "| what | peer | ceteris | unit | ratio (median) | range | bar | |\n\
                      | --- | ---: | ---: | --- | ---: | --- | --- | --- |";

fn figure(value: f64) -> String {
    match value.abs() {
        big if big >= 1000.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn machine() -> Result<String, Failed> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let virtual_ = if cpus.contains(" hypervisor") { ", virtual" } else { "" };
    let model = model.map_or("unknown CPU", |(_, model)| model);
    Ok(format!("{count} × {model}{virtual_}, Linux {}", kernel.trim()))
}

fn version(program: &str) -> Result<String, Failed> {
    let output = std::process::Command::new(program).arg("--version").output();
    let output = output.map_err(|_| format!("{program} is not installed"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
