//! A server in a guest, as the conductor sees it.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use study::KvmPlacement;

use super::emulator::Emulator;
use super::guest::Kept;
use super::machine::DATA;
use super::network::Network;
use super::qmp::{Qmp, block_counters, cpu_threads};
use crate::allowance::Allowance;
use crate::command::status_text;
use crate::directory::PrivateDirectory;
use crate::error::PlaceError;
use crate::instance::{Channel, Endpoint, Instance};
use crate::server::{connect, error_lines};

/// How long a server inside may take to shut down, and the guest after it.
const STOP_LIMIT: Duration = Duration::from_secs(120);

/// A guest with a server in it.
pub(super) struct KvmInstance {
    // Dropped in this order: first QEMU, then what it used.
    pub emulator: Emulator,
    pub network: Network,
    pub directory: PrivateDirectory,
    pub qmp: Qmp,
    /// Where the guest hears that it is to stop.
    pub control: UnixStream,
    pub observer: Option<UnixStream>,
    pub disk: PathBuf,
    pub endpoint: Endpoint,
    pub fingerprint: BTreeMap<String, String>,
    pub allowance: Allowance,
    /// What must stay in the cache while it runs.
    pub _kept: Vec<Kept>,
}

/// How long a guest may take to boot, and a server in it to answer.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    pub boot: Duration,
    pub ready: Duration,
}

impl KvmInstance {
    /// Waits until a query is answered.
    pub fn await_ready(&mut self, patience: Patience) -> Result<(), PlaceError> {
        let start = Instant::now();
        while !self.emulator.booted() {
            self.check_runs()?;
            if start.elapsed() > patience.boot {
                return Err(PlaceError::Engine {
                    what: format!("the guest did not boot within {} s", patience.boot.as_secs()),
                    lines: self.emulator.last_words(),
                    next: Some(
                        "where KVM is broken, `accel = \"tcg\"` shows whether it is KVM's fault"
                            .to_owned(),
                    ),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let start = Instant::now();
        loop {
            self.check_runs()?;
            let last = match connect(&self.endpoint) {
                Ok(_) => return Ok(()),
                // A wrong password never becomes right by waiting.
                Err(mysql::Error::MySqlError(error)) if error.code == 1045 => {
                    return Err(PlaceError::sql("cannot log in to the new server")(
                        mysql::Error::MySqlError(error),
                    ));
                }
                Err(error) => error.to_string(),
            };
            if start.elapsed() > patience.ready {
                let mut lines = error_lines(&self.emulator.error_log());
                lines.push(last);
                return Err(PlaceError::NotReady { seconds: patience.ready.as_secs(), lines });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn check_runs(&mut self) -> Result<(), PlaceError> {
        match self.emulator.poll() {
            None => Ok(()),
            Some(status) => Err(self.emulator.failure(status)),
        }
    }

    /// Pins each virtual processor's thread to the processor that the placement lists for it.
    pub fn pin(&mut self, placement: &KvmPlacement) -> Result<(), PlaceError> {
        let Some(text) = &placement.pin else { return Ok(()) };
        let Ok(study::Cpus::List(processors)) = text.parse() else {
            return Err(PlaceError::Other(format!("`{text}` is no list of processors")));
        };
        let cannot = |why: String| PlaceError::Engine {
            what: format!("the virtual processors cannot be pinned to {text}"),
            lines: vec![why],
            next: None,
        };
        let threads = cpu_threads(&self.qmp.execute("query-cpus-fast").map_err(cannot)?);
        if threads.len() != processors.len() {
            return Err(cannot(format!("QEMU has {} of them", threads.len())));
        }
        for (thread, processor) in threads.into_iter().zip(&processors) {
            let mut set = rustix::thread::CpuSet::new();
            if *processor as usize >= rustix::thread::CpuSet::MAX_CPU {
                return Err(cannot(format!("there is no processor {processor}")));
            }
            set.set(*processor as usize);
            rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(thread), &set)
                .map_err(|error| cannot(format!("processor {processor}: {error}")))?;
        }
        self.allowance.processors = Some(processors);
        Ok(())
    }
}

impl Instance for KvmInstance {
    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn pid(&self) -> Option<u32> {
        Some(self.emulator.pid())
    }

    fn data_dir(&self) -> Option<&Path> {
        None
    }

    fn dir(&self) -> &Path {
        &self.directory.path
    }

    fn fingerprint(&self) -> BTreeMap<String, String> {
        self.fingerprint.clone()
    }

    fn allowance(&self) -> Allowance {
        self.allowance.clone()
    }

    fn storage(&self) -> Option<&Path> {
        Some(&self.disk)
    }

    fn observer(&mut self) -> Result<Option<Box<dyn Channel>>, PlaceError> {
        Ok(self.observer.take().map(|channel| Box::new(channel) as Box<dyn Channel>))
    }

    fn figures(&mut self) -> Vec<(String, f64)> {
        match self.qmp.execute("query-blockstats") {
            Ok(answer) => block_counters(&answer, DATA),
            // A guest that is gone is told by `alive`.
            Err(_) => Vec::new(),
        }
    }

    fn alive(&mut self) -> Result<(), String> {
        let Some(status) = self.emulator.poll() else { return Ok(()) };
        let mut said = self.emulator.failure(status).to_string();
        if let Some(status) = self.emulator.server_status() {
            let lines = error_lines(&self.emulator.error_log());
            said = format!("the server in the guest ended ({status})");
            for line in lines.iter().chain(&self.emulator.last_words()) {
                said.push_str("\n  ");
                said.push_str(line);
            }
        }
        Err(said)
    }

    fn error_log(&self) -> String {
        self.emulator.error_log()
    }

    fn stop(mut self: Box<Self>) -> Result<(), PlaceError> {
        let asked = self.emulator.poll().is_none() && self.control.write_all(b"stop\n").is_ok();
        let ended = if asked { self.emulator.await_end(STOP_LIMIT) } else { self.emulator.poll() };
        if ended.is_none() {
            // Says goodbye to its disks; where it does not, it is killed.
            let _ = self.qmp.execute("quit");
            self.emulator.await_end(Duration::from_secs(2));
            self.emulator.kill();
        }
        let clean = match (ended, self.emulator.server_status()) {
            (Some(_), Some(status)) if status == "0" => Ok(()),
            (Some(status), None) => Err(PlaceError::NotStopped {
                status: format!("QEMU: {}", status_text(status)),
                lines: self.emulator.last_words(),
            }),
            (_, status) => Err(PlaceError::NotStopped {
                status: status.unwrap_or_else(|| {
                    format!("the guest did not end within {} s", STOP_LIMIT.as_secs())
                }),
                lines: error_lines(&self.emulator.error_log()),
            }),
        };
        self.network.remove()?;
        self.directory.remove()?;
        clean
    }
}
