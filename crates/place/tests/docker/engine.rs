//! A Docker engine for tests: the one that answers, else a private one that lives as long as this
//! test process (`scripts/with-docker`).

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Held by the process; its standard input closes when the process ends, however it ends.
struct Holder {
    _child: Child,
}

/// Whether an engine answers now. Where none can be had it says SKIPPED and why.
pub fn ready() -> bool {
    static HOLDER: OnceLock<Result<Holder, String>> = OnceLock::new();
    match HOLDER.get_or_init(start) {
        Ok(_) => true,
        Err(why) => {
            // Not `eprintln!`, which the test harness keeps to itself when a test passes.
            let _ = writeln!(std::io::stderr(), "SKIPPED: no Docker engine: {why}");
            false
        }
    }
}

fn start() -> Result<Holder, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/with-docker");
    let mut child = Command::new(script)
        .args(["sh", "-c", "echo \"READY $DOCKER_HOST\"; exec cat >/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut said).map_err(|error| error.to_string())?;
    }
    let Some(host) = said.trim().strip_prefix("READY") else {
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        return Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "));
    };
    let host = host.trim();
    if !host.is_empty() {
        // SAFETY: every test calls this first and waits for it, and nothing in these processes
        // reads the environment but through `std`, which locks it.
        unsafe { std::env::set_var("DOCKER_HOST", host) };
    }
    Ok(Holder { _child: child })
}
