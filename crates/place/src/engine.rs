//! Docker or Podman, by their command lines.
//!
//! Both understand the same words as far as they are used here; where their JSON differs, both
//! places are looked at. Whatever an engine refuses is told in its own words.

use serde_json::Value;
use study::ContainerEngine;

use crate::command::{CommandLog, Invocation, Said, find_program, full_disk, last_lines};
use crate::error::PlaceError;

/// A container engine that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Engine {
    program: &'static str,
}

/// What an engine says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EngineFacts {
    /// Of the engine, not of its client.
    pub version: String,
    /// Such as `overlay2`.
    pub storage_driver: String,
    /// Such as `cgroupfs` or `systemd`.
    pub cgroup_driver: String,
    /// `1` or `2`.
    pub cgroup_version: String,
    /// Processors of its machine.
    pub cpus: u64,
    /// Memory of its machine.
    pub memory_bytes: u64,
}

/// An image of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Its content's, hexadecimal.
    pub id: String,
}

/// How a container stands, or ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContainerState {
    pub running: bool,
    pub exit_code: i64,
    /// The kernel killed one of its processes for the memory limit.
    pub out_of_memory: bool,
    /// On this machine; 0 where it does not run.
    pub pid: u32,
    /// The engine's own words, where it could not start it.
    pub error: String,
}

impl Engine {
    /// The engine that a study asks for, if it answers.
    ///
    /// # Errors
    /// That it is not installed, or its own words.
    pub fn find(
        wanted: ContainerEngine,
        log: &CommandLog,
    ) -> Result<(Engine, EngineFacts), PlaceError> {
        let programs: &[&'static str] = match wanted {
            ContainerEngine::Auto => &["docker", "podman"],
            ContainerEngine::Docker => &["docker"],
            ContainerEngine::Podman => &["podman"],
        };
        let mut first = None;
        for program in programs {
            let engine = Engine::named(program);
            match engine.facts(log) {
                Ok(facts) => return Ok((engine, facts)),
                // Docker's refusal is the better story, unless only Podman is installed.
                Err(error) => match (&first, &error) {
                    (None, _) | (Some(PlaceError::NoProgram { .. }), PlaceError::Engine { .. }) => {
                        first = Some(error);
                    }
                    _ => {}
                },
            }
        }
        Err(first.unwrap_or_else(|| PlaceError::Other("no container engine is known".to_owned())))
    }

    /// One that need not be here, for writing its commands down.
    pub fn named(program: &'static str) -> Engine {
        Engine { program }
    }

    /// `docker` or `podman`.
    pub fn name(self) -> &'static str {
        self.program
    }

    /// A command of it.
    pub fn command(self, words: &[&str]) -> Invocation {
        Invocation::new(self.program).args(words)
    }

    /// Runs a command of it that must succeed; `what` is what could not be done if it does not.
    pub fn run(
        self,
        what: &str,
        invocation: Invocation,
        log: &CommandLog,
    ) -> Result<Said, PlaceError> {
        let said = log.run_watched(invocation, || ())?;
        match said.fine() {
            true => Ok(said),
            false => Err(self.refused(what, &said)),
        }
    }

    /// The engine's refusal as an error.
    pub fn refused(self, what: &str, said: &Said) -> PlaceError {
        if full_disk(&said.stderr) {
            // Its own directory; where that is, it says in its words.
            return PlaceError::DiskFull { path: format!("{}'s storage", self.program).into() };
        }
        let next = if said.stderr.contains("Cannot connect to the Docker daemon") {
            Some("start it (systemctl start docker), or set DOCKER_HOST".to_owned())
        } else if said.stderr.contains("permission denied while trying to connect") {
            Some("run as root, or as a member of the group `docker`".to_owned())
        } else {
            None
        };
        PlaceError::Engine { what: what.to_owned(), lines: last_lines(&said.stderr, 10), next }
    }

    fn facts(self, log: &CommandLog) -> Result<EngineFacts, PlaceError> {
        if find_program(self.program).is_none() {
            return Err(PlaceError::NoProgram {
                program: self.program.to_owned(),
                purpose: "place a server in a container".to_owned(),
                debian: if self.program == "docker" { "docker.io" } else { "podman" }.to_owned(),
            });
        }
        let what = format!("{} does not answer", self.program);
        // `info` alone tells a client's own facts without an engine, and calls that a success.
        self.run(&what, self.command(&["version", "--format", "{{json .}}"]), log)?;
        let said = self.run(&what, self.command(&["info", "--format", "{{json .}}"]), log)?;
        let info: Value = serde_json::from_str(&said.stdout)
            .map_err(|error| PlaceError::Other(format!("{what}: {error}")))?;
        Ok(facts(&info))
    }

    /// An image that is here.
    ///
    /// # Errors
    /// With the engine's words and how to get it, when it is not.
    pub fn image(self, reference: &str, log: &CommandLog) -> Result<Image, PlaceError> {
        let what = format!("{} has no image `{reference}`", self.program);
        let asked = self.command(&["image", "inspect", "--format", "{{json .}}", reference]);
        let said = self.run(&what, asked, log).map_err(|error| match error {
            PlaceError::Engine { what, lines, next: None } => {
                let next = Some(format!("{} pull {reference}", self.program));
                PlaceError::Engine { what, lines, next }
            }
            other => other,
        })?;
        let image =
            one(&said.stdout).map_err(|error| PlaceError::Other(format!("{what}: {error}")))?;
        let id = image.pointer("/Id").and_then(Value::as_str).unwrap_or_default();
        Ok(Image { id: id.trim_start_matches("sha256:").to_owned() })
    }

    /// What the engine knows of a container or a volume; `None` where there is none.
    pub fn inspect(
        self,
        kind: &str,
        name: &str,
        log: &CommandLog,
    ) -> Result<Option<Value>, PlaceError> {
        let said = log
            .run_watched(self.command(&[kind, "inspect", "--format", "{{json .}}", name]), || ())?;
        if !said.fine() {
            let absent = ["No such", "no such"];
            if absent.iter().any(|words| said.stderr.contains(words)) {
                return Ok(None);
            }
            return Err(self.refused(&format!("{} cannot inspect {name}", self.program), &said));
        }
        one(&said.stdout).map(Some).map_err(|error| {
            PlaceError::Other(format!("{} says of {name} what is no JSON: {error}", self.program))
        })
    }
}

/// One inspected thing; Podman makes a list of some.
fn one(text: &str) -> Result<Value, serde_json::Error> {
    Ok(match serde_json::from_str(text)? {
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        other => other,
    })
}

/// Docker's `info`, or Podman's.
fn facts(info: &Value) -> EngineFacts {
    let value = |paths: [&str; 2]| paths.iter().find_map(|path| info.pointer(path));
    let text = |paths| match value(paths) {
        Some(Value::String(text)) => text.trim_start_matches('v').to_owned(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let number = |paths| value(paths).and_then(Value::as_u64).unwrap_or(0);
    EngineFacts {
        version: text(["/ServerVersion", "/version/Version"]),
        storage_driver: text(["/Driver", "/store/graphDriverName"]),
        cgroup_driver: text(["/CgroupDriver", "/host/cgroupManager"]),
        cgroup_version: text(["/CgroupVersion", "/host/cgroupVersion"]),
        cpus: number(["/NCPU", "/host/cpus"]),
        memory_bytes: number(["/MemTotal", "/host/memTotal"]),
    }
}

/// The state in a container's inspection.
pub(crate) fn state(container: &Value) -> ContainerState {
    let of = |name: &str| container.pointer(&format!("/State/{name}"));
    let flag = |name| of(name).and_then(Value::as_bool).unwrap_or(false);
    ContainerState {
        running: flag("Running"),
        exit_code: of("ExitCode").and_then(Value::as_i64).unwrap_or(-1),
        out_of_memory: flag("OOMKilled"),
        pid: of("Pid").and_then(Value::as_u64).and_then(|pid| pid.try_into().ok()).unwrap_or(0),
        error: of("Error").and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

impl ContainerState {
    /// How it ended, for people. `memory` is its limit.
    pub fn ended(&self, memory: Option<study::Bytes>) -> String {
        if self.out_of_memory {
            let limit =
                memory.map_or("its memory".to_owned(), |limit| format!("{limit} of memory"));
            return format!("killed by the kernel for using more than {limit}");
        }
        match self.exit_code {
            // The shell's convention, which engines follow: 128 and the signal.
            code @ 129..=192 => format!("signal {}", code - 128),
            code => code.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_engines_facts_are_read() {
        let docker = json!({ "ServerVersion": "20.10.24", "Driver": "overlay2", "NCPU": 2,
            "CgroupDriver": "cgroupfs", "CgroupVersion": "1", "MemTotal": 1024 });
        let podman = json!({ "version": { "Version": "4.3.1" },
            "store": { "graphDriverName": "overlay" },
            "host": { "cgroupManager": "systemd", "cgroupVersion": "v2", "cpus": 2,
                      "memTotal": 1024 } });
        let read = facts(&docker);
        assert_eq!((read.version.as_str(), read.cpus, read.memory_bytes), ("20.10.24", 2, 1024));
        assert_eq!(read.cgroup_version, "1");
        let read = facts(&podman);
        assert_eq!((read.version.as_str(), read.storage_driver.as_str()), ("4.3.1", "overlay"));
        assert_eq!((read.cgroup_version.as_str(), read.cpus), ("2", 2));
    }

    #[test]
    fn the_end_of_a_container_is_told_apart() {
        let state = |code: i64, oom: bool| {
            let value = json!({ "State": { "Running": false, "ExitCode": code, "OOMKilled": oom,
                                           "Pid": 0, "Error": "" } });
            super::state(&value)
        };
        let limit = Some(study::Bytes(64 << 20));
        assert_eq!(
            state(137, true).ended(limit),
            "killed by the kernel for using more than 64MiB of memory"
        );
        assert_eq!(state(137, false).ended(limit), "signal 9");
        assert_eq!(state(1, false).ended(None), "1");
    }
}
