//! The kinds of things that outlive a process, how each is recognised as ours and undone.
//!
//! Nothing is undone on the word of a journal line alone: directories must lie below this cache,
//! control groups and devices carry our name, containers, volumes and namespaces our label with the
//! journal's id, and kernel settings are files below `/proc/sys` or `/sys`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::command::{CommandLog, Invocation, Said};
use crate::error::PlaceError;
use crate::invocation::quote;
use crate::remote::{Remote, global, set_global};
use crate::settings::check_name;
use crate::tree;

/// The label that carries the journal's id on everything that an engine keeps for us.
pub(crate) const LABEL: &str = "ceteris.journal";
/// What every name outside of our own directories begins with.
pub(crate) const NAME_PREFIX: &str = "ceteris-";

/// Something that was made and must be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Made {
    /// A directory below the cache's `instances/`.
    Directory {
        /// Where.
        path: PathBuf,
    },
    /// A control group, version 1 or 2.
    Cgroup {
        /// Its directory.
        path: PathBuf,
    },
    /// A kernel setting that was changed.
    Setting {
        /// Its file.
        path: PathBuf,
        /// What stood in it.
        old: String,
    },
    /// A container.
    Container {
        /// `docker` or `podman`.
        engine: String,
        /// Its name.
        name: String,
    },
    /// A volume of a container engine.
    Volume {
        /// `docker` or `podman`.
        engine: String,
        /// Its name.
        name: String,
    },
    /// A namespace of a Kubernetes cluster and all in it.
    Namespace {
        /// What `KUBECONFIG` was; another one leads to another cluster.
        #[serde(default)]
        config: Option<String>,
        /// As `kubectl --context`; `None`: the current one.
        context: Option<String>,
        /// Its name.
        name: String,
    },
    /// A global variable of a server that is not ours.
    Variable {
        /// Where; holds no password.
        dsn: String,
        /// As in the study, absolute.
        password_file: Option<PathBuf>,
        /// Its name.
        name: String,
        /// What it was, as SQL would set it.
        old: String,
    },
    /// A tap device.
    Device {
        /// Its name.
        name: String,
    },
}

impl Made {
    /// One line for people.
    pub fn describe(&self) -> String {
        match self {
            Made::Directory { path } => format!("directory {}", path.display()),
            Made::Cgroup { path } => format!("control group {}", path.display()),
            Made::Setting { path, old } => format!("{} (was {old})", path.display()),
            Made::Container { engine, name } => format!("{engine} container {name}"),
            Made::Volume { engine, name } => format!("{engine} volume {name}"),
            Made::Namespace { name, .. } => format!("kubernetes namespace {name}"),
            Made::Variable { dsn, name, old, .. } => {
                format!("global variable {name} of {} (was {old})", quote(dsn.as_ref()))
            }
            Made::Device { name } => format!("network device {name}"),
        }
    }

    /// Whether it is still there, and ours. `id` is the journal's.
    pub(super) fn remains(&self, cache: &Cache, id: &str) -> bool {
        let log = CommandLog::default();
        let says =
            |invocation: Invocation| log.run_watched(invocation, || ()).ok().filter(Said::fine);
        match self {
            Made::Directory { path } => {
                below_instances(cache, path) && path.symlink_metadata().is_ok()
            }
            Made::Cgroup { path } => ours_by_name(path) && path.is_dir(),
            Made::Setting { path, old } => {
                kernel_file(path) && current(path).is_some_and(|now| now != *old)
            }
            Made::Container { engine, name } => engine_has(
                Invocation::new(engine)
                    .args(["ps", "--all", "--quiet", "--filter", &format!("name=^{name}$")])
                    .args(["--filter", &format!("label={LABEL}={id}")]),
            ),
            Made::Volume { engine, name } => engine_has(
                Invocation::new(engine)
                    .args(["volume", "ls", "--quiet", "--filter", &format!("name=^{name}$")])
                    .args(["--filter", &format!("label={LABEL}={id}")]),
            ),
            Made::Namespace { config, context, name } => says(
                kubectl(context.as_deref())
                    .env(&kubernetes_config(config.as_deref()))
                    .args(["get", "namespace", name, "--ignore-not-found", "--output"])
                    .arg(format!("jsonpath={{.metadata.labels.{}}}", LABEL.replace('.', "\\."))),
            )
            .is_some_and(|said| said.stdout.trim() == id),
            Made::Variable { dsn, password_file, name, old } => {
                // Of a server that does not let us in nobody knows; the journal is then right.
                let now = Remote::new(dsn, password_file.as_deref())
                    .and_then(|remote| remote.connect())
                    .and_then(|mut connection| global(&mut connection, name));
                now.map_or(true, |now| now != *old)
            }
            Made::Device { name } => {
                name.starts_with("ceteris") && Path::new("/sys/class/net").join(name).exists()
            }
        }
    }

    /// Undoes it; [`remains`](Made::remains) was true a moment ago.
    pub(crate) fn undo(&self) -> Result<(), PlaceError> {
        let log = CommandLog::default();
        let run = |invocation: Invocation| log.run(invocation, Path::new("/")).map(drop);
        match self {
            Made::Directory { path } => tree::remove_tree(path),
            Made::Cgroup { path } => remove_cgroup(path),
            Made::Setting { path, old } => {
                fs::write(path, old).map_err(PlaceError::io("set back", path))
            }
            Made::Container { engine, name } => {
                run(Invocation::new(engine).args(["rm", "--force", "--volumes", name]))
            }
            Made::Volume { engine, name } => {
                run(Invocation::new(engine).args(["volume", "rm", "--force", name]))
            }
            Made::Namespace { config, context, name } => run(kubectl(context.as_deref())
                .env(&kubernetes_config(config.as_deref()))
                .args(["delete", "namespace", name, "--wait=true"])),
            Made::Variable { dsn, password_file, name, old } => {
                check_name(name)?;
                let remote = Remote::new(dsn, password_file.as_deref())?;
                set_global(&mut remote.connect()?, name, old)
            }
            Made::Device { name } => run(Invocation::new("ip").args(["link", "delete", name])),
        }
    }
}

/// Whether an engine lists something. One that does not answer now may still have it; one that was
/// removed has nothing any more.
fn engine_has(listing: Invocation) -> bool {
    match CommandLog::default().run_watched(listing, || ()) {
        Ok(said) => !said.fine() || !said.stdout.trim().is_empty(),
        Err(_) => false,
    }
}

/// `kubectl`, in a context.
pub(crate) fn kubectl(context: Option<&str>) -> Invocation {
    let kubectl = Invocation::new("kubectl");
    match context {
        Some(context) => kubectl.args(["--context", context]),
        None => kubectl,
    }
}

/// The environment in which `kubectl` finds the cluster that a namespace was made in.
fn kubernetes_config(config: Option<&str>) -> Vec<(OsString, OsString)> {
    config.map(|config| ("KUBECONFIG".into(), config.into())).into_iter().collect()
}

/// Removes a control group and those below it, once the kernel has let go of their last processes.
pub(crate) fn remove_cgroup(path: &Path) -> Result<(), PlaceError> {
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_cgroup(&entry.path())?;
    }
    let mut tries = 0;
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            // A process that was killed leaves its group a moment after it is gone.
            Err(_) if tries < 100 => tries += 1,
            Err(error) => return Err(PlaceError::io("remove", path)(error)),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a path lies directly below this cache's `instances/`.
fn below_instances(cache: &Cache, path: &Path) -> bool {
    path.parent() == Some(&cache.room("instances"))
        && matches!(path.components().next_back(), Some(std::path::Component::Normal(_)))
}

/// A control group of ours: below a mounted hierarchy, with our name, and no way out of it.
fn ours_by_name(path: &Path) -> bool {
    path.starts_with("/sys/fs/cgroup")
        && !path.components().any(|part| part == std::path::Component::ParentDir)
        && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME_PREFIX))
}

fn kernel_file(path: &Path) -> bool {
    (path.starts_with("/proc/sys") || path.starts_with("/sys"))
        && !path.components().any(|part| part == std::path::Component::ParentDir)
}

/// What a kernel setting is now; of `always [madvise] never` the chosen word.
pub(crate) fn current(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Some(chosen.map_or(text, |(word, _)| word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_recognisably_ours_is_touched() {
        assert!(ours_by_name(Path::new("/sys/fs/cgroup/cpu/ceteris-0a1b")));
        for foreign in
            ["/sys/fs/cgroup/cpu/docker", "/tmp/ceteris-x", "/sys/fs/cgroup/../../ceteris-x"]
        {
            assert!(!ours_by_name(Path::new(foreign)), "{foreign}");
        }
        assert!(kernel_file(Path::new("/proc/sys/vm/swappiness")));
        for foreign in ["/etc/passwd", "/proc/1/mem", "/sys/../etc/passwd"] {
            assert!(!kernel_file(Path::new(foreign)), "{foreign}");
        }
    }

    #[test]
    fn a_line_reads_back_as_what_was_made() -> Result<(), serde_json::Error> {
        for made in [
            Made::Directory { path: "/a b".into() },
            Made::Setting { path: "/proc/sys/vm/swappiness".into(), old: "60".to_owned() },
            Made::Namespace { config: None, context: None, name: "ceteris-1".to_owned() },
        ] {
            let line = serde_json::to_string(&made)?;
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Made>(&line)?, made);
        }
        Ok(())
    }
}
