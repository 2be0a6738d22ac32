//! Settings of the machine itself (`[host]`): made for a run, set back afterwards, whatever happens.
//!
//! The old value is in the journal before the new one is in the kernel; [`MachineSettings`] sets it
//! back when dropped, `ceteris doctor --clean` when its process was killed. A setting's file is kept
//! locked meanwhile, so that two studies at once can never take each other's value for the
//! machine's own.

mod wanted;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use study::Host;

use self::wanted::{Wanted, all};
use crate::cache::Cache;
use crate::command::CommandLog;
use crate::error::PlaceError;
use crate::invocation::quote;
use crate::journal::{Journal, Made, current, holder};
use crate::tools::Tools;

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// The machine's settings while they are as the study wants them. Dropping it sets them back.
pub struct MachineSettings {
    changed: Vec<Changed>,
    journal: Journal,
    log: CommandLog,
}

struct Changed {
    path: PathBuf,
    old: String,
    /// Held while it is ours to change.
    _lock: File,
}

impl MachineSettings {
    /// Whether the settings of `host` could be made here, for data below `data_path`; changes nothing.
    ///
    /// # Errors
    /// A setting that is not there, knows no such value, or is not ours to change.
    pub fn check(host: &Host, data_path: &Path) -> Result<(), PlaceError> {
        for wanted in all(host, Path::new("/"), data_path)? {
            wanted.check()?;
        }
        if host.drop_caches {
            wanted::check_writable("drop_caches", Path::new(DROP_CACHES))?;
        }
        Ok(())
    }

    /// Makes the settings of `host`; all of them or none.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), a value that the kernel does not take, and a setting that
    /// another study has changed and not set back.
    pub fn apply(host: &Host, tools: Tools) -> Result<MachineSettings, PlaceError> {
        let wanted = all(host, Path::new("/"), &tools.cache.room("instances"))?;
        let mut settings = MachineSettings {
            changed: Vec::new(),
            journal: tools.journal.clone(),
            log: tools.log.clone(),
        };
        for one in &wanted {
            one.check()?;
            for path in one.lost.iter().chain([&one.path]) {
                settings.claim(one, path, tools.cache)?;
            }
            let command = typed(&one.path, &one.value);
            settings.log.did(command, || write(&one.path, &one.value, one))?;
        }
        // Only now, because some settings change each other.
        wanted.iter().try_for_each(Wanted::check_in_force)?;
        Ok(settings)
    }

    /// What [`apply`](Self::apply) does, as a person would type it.
    pub fn planned(host: &Host, data_path: &Path) -> Vec<String> {
        match all(host, Path::new("/"), data_path) {
            Ok(wanted) => wanted.iter().map(|one| typed(&one.path, &one.value)).collect(),
            Err(error) => vec![format!("# {error}")],
        }
    }

    /// Sets everything back, the last first.
    ///
    /// # Errors
    /// The first refusal; what was refused stays in the journal.
    pub fn set_back(mut self) -> Result<(), PlaceError> {
        self.undo()
    }

    /// Writes down what stands in a file, and keeps others from changing it.
    fn claim(&mut self, wanted: &Wanted, path: &Path, cache: &Cache) -> Result<(), PlaceError> {
        if self.changed.iter().any(|changed| changed.path == *path) {
            return Ok(());
        }
        let lock = File::open(path).map_err(PlaceError::io("open", path))?;
        let locked = lock.try_lock();
        let other = holder(cache, &self.journal, path)?;
        match (locked, other) {
            (Ok(()), None) => {}
            (Err(TryLockError::Error(error)), _) => {
                return Err(PlaceError::io("lock", path)(error));
            }
            (_, other) => return Err(taken(wanted, path, other)),
        }
        let old = current(path)
            .ok_or_else(|| wanted.refused(format!("{} cannot be read", path.display()), None))?;
        self.journal.begin(&Made::Setting { path: path.to_owned(), old: old.clone() })?;
        self.changed.push(Changed { path: path.to_owned(), old, _lock: lock });
        Ok(())
    }

    fn undo(&mut self) -> Result<(), PlaceError> {
        let mut first = Ok(());
        while let Some(Changed { path, old, _lock }) = self.changed.pop() {
            let is_back = current(&path).is_some_and(|now| now == old);
            let written = match is_back {
                true => Ok(()),
                false => self.log.did(typed(&path, &old), || {
                    fs::write(&path, &old).map_err(PlaceError::io("set back", &path))
                }),
            };
            let ended =
                written.and_then(|()| self.journal.end(&Made::Setting { path: path.clone(), old }));
            first = first.and(ended);
        }
        first
    }
}

impl Drop for MachineSettings {
    fn drop(&mut self) {
        // Nobody is left to tell; what was refused stays in the journal.
        let _ = self.undo();
    }
}

/// The error for a setting that another study has.
fn taken(wanted: &Wanted, path: &Path, other: Option<(String, bool)>) -> PlaceError {
    let file = path.display();
    match other {
        Some((pid, true)) => wanted.refused(
            format!("the study of process {pid} has changed {file} and not set it back yet"),
            Some("run one study after the other"),
        ),
        Some((_, false)) => wanted.refused(
            format!("a study that was killed has left its value in {file}"),
            Some("ceteris doctor --clean sets it back"),
        ),
        None => wanted.refused(
            format!("another study is changing {file}"),
            Some("run one study after the other"),
        ),
    }
}

/// Just before a server starts: drops the page cache where the study says so.
pub(crate) fn before_start(host: &Host, log: &CommandLog) -> Result<(), PlaceError> {
    if !host.drop_caches {
        return Ok(());
    }
    // Only what is written can be dropped.
    log.did("sync".to_owned(), || {
        rustix::fs::sync();
        Ok(())
    })?;
    let path = Path::new(DROP_CACHES);
    log.did(typed(path, "3"), || fs::write(path, "3").map_err(PlaceError::io("write", path)))
}

/// What [`before_start`] does, as a person would type it.
pub(crate) fn planned_before_start(host: &Host) -> Vec<String> {
    match host.drop_caches {
        true => vec!["sync".to_owned(), typed(Path::new(DROP_CACHES), "3")],
        false => Vec::new(),
    }
}

fn typed(path: &Path, value: &str) -> String {
    format!("echo {} > {}", quote(value.as_ref()), quote(path.as_os_str()))
}

fn write(path: &Path, value: &str, wanted: &Wanted) -> Result<(), PlaceError> {
    fs::write(path, value).map_err(|error| {
        wanted.refused(format!("the kernel refuses `{value}` in {}: {error}", path.display()), None)
    })
}
