//! Debian's sysbench, run as people run it.

use std::process::{Command, Stdio};

use load::{Address, Target};

use crate::Failed;
use crate::sample::{Sample, reap};

/// One run of a sysbench script on tables that exist.
pub struct Sysbench<'a> {
    pub script: &'a str,
    pub target: &'a Target,
    pub connections: u32,
    pub seconds: u64,
    pub tables: u32,
    pub rows: u64,
    /// Text instead of prepared statements.
    pub text: bool,
    /// CPU that it is bound to.
    pub cpu: Option<usize>,
}

impl Sysbench<'_> {
    fn command(&self, action: &str) -> Command {
        let mut command = match self.cpu {
            Some(cpu) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cpu.to_string(), "sysbench"]);
                command
            }
            None => Command::new("sysbench"),
        };
        command
            .arg(self.script)
            .args([
                format!("--tables={}", self.tables),
                format!("--table-size={}", self.rows),
                format!("--threads={}", self.connections),
                format!("--time={}", self.seconds),
                format!("--mysql-user={}", self.target.user),
                format!("--mysql-db={}", self.target.database),
                format!("--db-ps-mode={}", if self.text { "disable" } else { "auto" }),
                "--rand-type=uniform".to_owned(),
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        match &self.target.address {
            Address::Socket(path) => {
                command.arg(format!("--mysql-socket={}", path.display()));
            }
            Address::Tcp(host, port) => {
                command.arg(format!("--mysql-host={host}")).arg(format!("--mysql-port={port}"));
            }
        }
        command.arg(action);
        command
    }

    /// Loads the tables; seconds that it took.
    pub fn prepare(&self) -> Result<f64, Failed> {
        let began = std::time::Instant::now();
        let output = self.command("prepare").output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stdout).into_owned().into());
        }
        Ok(began.elapsed().as_secs_f64())
    }

    /// Drives.
    pub fn run(&self) -> Result<Sample, Failed> {
        let mut child = self.command("run").spawn()?;
        let mut text = String::new();
        if let Some(mut output) = child.stdout.take() {
            std::io::Read::read_to_string(&mut output, &mut text)?;
        }
        let (status, user_s, sys_s) = reap(child)?;
        let number = |label: &str| -> Option<f64> {
            let line = text.lines().find(|line| line.trim_start().starts_with(label))?;
            let word = line.split_ascii_whitespace().nth(label.split(' ').count())?;
            word.trim_end_matches('s').parse().ok()
        };
        match (status.success(), number("queries:"), number("total time:")) {
            (true, Some(statements), Some(seconds)) => {
                Ok(Sample { statements, seconds, user_s, sys_s })
            }
            _ => Err(format!("sysbench failed: {text}").into()),
        }
    }
}
