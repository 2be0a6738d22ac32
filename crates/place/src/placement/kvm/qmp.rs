//! QEMU's machine protocol: one JSON object a line over a private socket.
//!
//! QEMU greets, is told that its features are not negotiated, and then answers each command with
//! `return` or `error`; events come in between and are of no interest here. Specified in QEMU's
//! `docs/interop/qmp-spec.rst`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take: commands here only look, or say goodbye.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A connection that has been greeted.
pub(super) struct Qmp {
    stream: BufReader<UnixStream>,
}

impl Qmp {
    /// Takes over a fresh connection.
    ///
    /// # Errors
    /// One line, when whoever is there does not speak the protocol in time.
    pub fn greet(stream: UnixStream) -> Result<Qmp, String> {
        stream
            .set_read_timeout(Some(ANSWER_LIMIT))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER_LIMIT)))
            .map_err(|error| error.to_string())?;
        let mut qmp = Qmp { stream: BufReader::new(stream) };
        let greeting = qmp.line()?;
        if greeting.get("QMP").is_none() {
            return Err(format!("QEMU greets with {greeting}"));
        }
        qmp.execute("qmp_capabilities")?;
        Ok(qmp)
    }

    /// Runs a command without arguments.
    ///
    /// # Errors
    /// QEMU's own description, or that it did not answer.
    pub fn execute(&mut self, command: &str) -> Result<Value, String> {
        let request = json!({ "execute": command });
        let said = |error: std::io::Error| format!("{command}: {error}");
        writeln!(self.stream.get_mut(), "{request}").map_err(said)?;
        let start = Instant::now();
        while start.elapsed() < ANSWER_LIMIT {
            let mut answer = self.line().map_err(|error| format!("{command}: {error}"))?;
            if let Some(error) = answer.get("error") {
                let text = error.get("desc").and_then(Value::as_str).unwrap_or("refused");
                return Err(format!("{command}: {text}"));
            }
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
        Err(format!("{command}: only events and no answer"))
    }

    fn line(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Err("QEMU has closed the connection".to_owned()),
            Ok(_) => serde_json::from_str(&line).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The thread of each virtual processor, in order of the processors.
pub(super) fn cpu_threads(answer: &Value) -> Vec<i32> {
    let mut threads: Vec<(u64, i32)> = answer
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|cpu| {
            let thread = i32::try_from(cpu.get("thread-id")?.as_i64()?).ok()?;
            Some((cpu.get("cpu-index")?.as_u64()?, thread))
        })
        .collect();
    threads.sort_unstable();
    threads.into_iter().map(|(_, thread)| thread).collect()
}

/// Counters of `query-blockstats` for the device `name`: operations, bytes and time of the requests
/// that the guest made.
pub(super) fn block_counters(answer: &Value, name: &str) -> Vec<(String, f64)> {
    const COUNTERS: [(&str, &str, f64); 9] = [
        ("rd_operations", "reads", 1.0),
        ("rd_bytes", "read_bytes", 1.0),
        ("rd_total_time_ns", "read_seconds", 1e-9),
        ("wr_operations", "writes", 1.0),
        ("wr_bytes", "write_bytes", 1.0),
        ("wr_total_time_ns", "write_seconds", 1e-9),
        ("flush_operations", "flushes", 1.0),
        ("flush_total_time_ns", "flush_seconds", 1e-9),
        ("failed_wr_operations", "failed_writes", 1.0),
    ];
    let stats = answer
        .as_array()
        .into_iter()
        .flatten()
        .find(|device| device.get("device").and_then(Value::as_str) == Some(name))
        .and_then(|device| device.get("stats"));
    let Some(stats) = stats else { return Vec::new() };
    let found = COUNTERS.iter().filter_map(|(theirs, ours, factor)| {
        Some((format!("qemu.disk.{ours}"), stats.get(theirs)?.as_f64()? * factor))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A QEMU that says these lines, one for the greeting and then one batch for each command.
    fn scripted(batches: &'static [&'static str]) -> UnixStream {
        let (here, there) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut heard = BufReader::new(there.try_clone().unwrap()).lines();
            for (ordinal, batch) in batches.iter().enumerate() {
                if ordinal > 0 {
                    heard.next().unwrap().unwrap();
                }
                (&there).write_all(batch.as_bytes()).unwrap();
            }
        });
        here
    }

    const GREETING: &str = "{\"QMP\":{\"version\":{}}}\n";

    #[test]
    fn events_are_passed_over_and_errors_are_qemus_own() {
        let stream = scripted(&[
            GREETING,
            "{\"return\":{}}\n",
            "{\"event\":\"RESUME\"}\n{\"return\":[{\"cpu-index\":1,\"thread-id\":8},\
             {\"cpu-index\":0,\"thread-id\":9}]}\n",
            "{\"error\":{\"class\":\"GenericError\",\"desc\":\"no such thing\"}}\n",
        ]);
        let mut qmp = Qmp::greet(stream).unwrap();
        assert_eq!(cpu_threads(&qmp.execute("query-cpus-fast").unwrap()), [9, 8]);
        assert_eq!(qmp.execute("nonsense").unwrap_err(), "nonsense: no such thing");
        let error = qmp.execute("quit").unwrap_err();
        assert!(error.starts_with("quit: "), "{error}");
    }

    #[test]
    fn somebody_else_is_not_taken_for_qemu() {
        let error = Qmp::greet(scripted(&["{\"SSH\":2}\n"])).err().unwrap();
        assert_eq!(error, "QEMU greets with {\"SSH\":2}");
    }

    #[test]
    fn counters_are_the_named_devices_own() {
        let answer = json!([
            { "device": "root", "stats": { "rd_operations": 1 } },
            { "device": "data", "stats": { "rd_operations": 7, "wr_total_time_ns": 2_000_000_000_u64 } },
        ]);
        assert_eq!(
            block_counters(&answer, "data"),
            [("qemu.disk.reads".to_owned(), 7.0), ("qemu.disk.write_seconds".to_owned(), 2.0)]
        );
        assert_eq!(block_counters(&answer, "other"), []);
    }
}
