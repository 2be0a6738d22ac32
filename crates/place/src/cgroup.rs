//! Control groups for instances, version 1 and version 2, and both at once.
//!
//! [`Hierarchies::plan`] says which directories would be made and what would be written, without
//! making anything: `check` asks it for permission, `plan` prints it, [`Cgroup::make`] carries it out.
//! Groups are made below the one that this process is in, so that whatever confines ceteris confines
//! its servers too. A controller belongs to version 1 where it is mounted there, else to version 2
//! (`Documentation/admin-guide/cgroup-v1` and `cgroup-v2.rst` of the kernel).

mod hierarchies;
mod v1;
mod v2;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::CommandLog;
use crate::error::PlaceError;
use crate::invocation::quote;
use crate::journal::{Journal, Made, remove_cgroup};

pub(crate) use hierarchies::Hierarchies;

/// What an instance is limited to; the default is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Processors.
    pub processors: Option<BTreeSet<u32>>,
    /// Whether CPU time worth so many processors would do where they cannot be chosen.
    pub quota_will_do: bool,
    /// Memory nodes.
    pub nodes: Option<BTreeSet<u32>>,
    /// Memory in bytes, without any swap.
    pub memory_bytes: Option<u64>,
    /// Share of the disk, 1 to 1000; others have 100.
    pub io_weight: Option<u32>,
}

/// One kind of limit, for which one controller is responsible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    /// Certain processors, certain memory nodes.
    Set,
    /// CPU time.
    Quota,
    Memory,
    Io,
}

impl Want {
    /// The controller's name in either version.
    fn controller(self, version: u8) -> &'static str {
        match (self, version) {
            (Want::Set, _) => "cpuset",
            (Want::Quota, _) => "cpu",
            (Want::Memory, _) => "memory",
            (Want::Io, 1) => "blkio",
            (Want::Io, _) => "io",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Want::Set => "processors",
            Want::Quota => "CPU time",
            Want::Memory => "memory",
            Want::Io => "share of the disk",
        }
    }

    fn refused(self, why: String, next: &str) -> PlaceError {
        PlaceError::Limit {
            what: format!("the server's {}", self.name()),
            why,
            next: Some(next.to_owned()),
        }
    }
}

impl Limits {
    /// What must be asked of the kernel; `chosen`: the processors themselves, not the time.
    fn wants(&self, chosen: bool) -> Vec<Want> {
        let processors = self.processors.is_some();
        let wants = [
            (self.nodes.is_some() || processors && chosen, Want::Set),
            (processors && !chosen, Want::Quota),
            (self.memory_bytes.is_some(), Want::Memory),
            (self.io_weight.is_some(), Want::Io),
        ];
        wants.into_iter().filter_map(|(wanted, want)| wanted.then_some(want)).collect()
    }

    /// The number of processors, for a quota.
    fn count(&self) -> usize {
        self.processors.as_ref().map_or(0, BTreeSet::len)
    }
}

/// One thing to do, in order.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Make a group.
    Make(PathBuf),
    /// Write to a file that is there.
    Write(PathBuf, String),
    /// Write to each of these that is there, and at least to one if `needed`.
    WriteAny { files: Vec<PathBuf>, text: String, needed: bool },
}

/// What limiting an instance takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupPlan {
    steps: Vec<Step>,
    /// Whether CPU time is limited where processors were asked for.
    pub by_quota: bool,
}

impl GroupPlan {
    fn group(&mut self, path: &Path) {
        let make = Step::Make(path.to_owned());
        // Controllers of version 1 may be mounted together.
        if !self.steps.contains(&make) {
            self.steps.push(make);
        }
    }

    fn write(&mut self, file: PathBuf, text: impl Into<String>) {
        self.steps.push(Step::Write(file, text.into()));
    }

    /// The groups that a process must enter.
    pub fn groups(&self) -> Vec<PathBuf> {
        let made = self.steps.iter().filter_map(|step| match step {
            Step::Make(path) => Some(path.clone()),
            _ => None,
        });
        made.collect()
    }

    /// As a person would type it.
    pub fn commands(&self) -> Vec<String> {
        self.steps.iter().flat_map(Step::commands).collect()
    }
}

impl Step {
    fn commands(&self) -> Vec<String> {
        let path = |path: &Path| quote(path.as_os_str());
        match self {
            Step::Make(group) => vec![format!("mkdir {}", path(group))],
            Step::Write(file, text) => {
                vec![format!("echo {} > {}", quote(text.as_ref()), path(file))]
            }
            Step::WriteAny { files, text, .. } => {
                let each = files.iter().map(|file| {
                    let file = path(file);
                    format!("[ ! -e {file} ] || echo {} > {file}", quote(text.as_ref()))
                });
                each.collect()
            }
        }
    }
}

/// The groups of one instance; removed when dropped, after the server ended.
pub(crate) struct Cgroup {
    made: Vec<PathBuf>,
    journal: Journal,
}

impl Cgroup {
    /// Carries a plan out. What was made is removed when a later step fails.
    pub fn make(
        plan: &GroupPlan,
        journal: &Journal,
        log: &CommandLog,
    ) -> Result<Cgroup, PlaceError> {
        let mut cgroup = Cgroup { made: Vec::new(), journal: journal.clone() };
        for step in &plan.steps {
            if let Step::Make(path) = step {
                journal.begin(&Made::Cgroup { path: path.clone() })?;
                // Before it is there: removing what was never made is no error.
                cgroup.made.push(path.clone());
            }
            log.did(step.commands().join("; "), || step.carry_out())?;
        }
        Ok(cgroup)
    }

    /// How many processes the kernel has killed because a group's memory was used up.
    pub fn memory_kills(&self) -> u64 {
        let counts = self.made.iter().flat_map(|group| {
            ["memory.oom_control", "memory.events"].map(|file| {
                let text = fs::read_to_string(group.join(file)).unwrap_or_default();
                let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
                count.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0)
            })
        });
        counts.sum()
    }

    /// Removes what was made, the last first. What cannot be removed stays in the journal.
    pub fn remove(&mut self) -> Result<(), PlaceError> {
        let mut first = Ok(());
        while let Some(path) = self.made.pop() {
            let removed = remove_cgroup(&path)
                .and_then(|()| self.journal.end(&Made::Cgroup { path: path.clone() }));
            first = first.and(removed);
        }
        first
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.remove();
    }
}

impl Step {
    fn carry_out(&self) -> Result<(), PlaceError> {
        match self {
            Step::Make(path) => {
                fs::create_dir(path).map_err(PlaceError::io("make the control group", path))
            }
            Step::Write(file, text) => write(file, text),
            Step::WriteAny { files, text, needed } => {
                let there: Vec<&PathBuf> = files.iter().filter(|file| file.exists()).collect();
                if there.is_empty() && *needed {
                    return Err(PlaceError::Other(format!(
                        "the kernel has none of {}",
                        files
                            .iter()
                            .map(|file| file.display().to_string())
                            .collect::<Vec<_>>()
                            .join(", ")
                    )));
                }
                there.into_iter().try_for_each(|file| write(file, text))
            }
        }
    }
}

/// In one call, as the kernel wants it; never makes a file.
fn write(file: &Path, text: &str) -> Result<(), PlaceError> {
    use std::io::Write;
    fs::File::options()
        .write(true)
        .open(file)
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .map_err(|source| PlaceError::Limit {
            what: "a control group".to_owned(),
            why: format!("the kernel refuses `{text}` in {}: {source}", file.display()),
            next: None,
        })
}

#[cfg(test)]
#[path = "cgroup/tests.rs"]
mod tests;
