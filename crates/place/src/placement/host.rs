//! Host placement: a server process on this machine, in a private directory of its own.
//!
//! Order matters: the directory is journalled before it is made, removed before it is struck from
//! the journal, and the server is dead before its files go. Whatever fails on the way, dropping the
//! half-made instance undoes it.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use study::ConfigValue;

use super::{Placer, Planned};
use crate::allowance::Allowance;
use crate::cache::{Cache, make_directory, short_id};
use crate::command::{CommandLog, Invocation, status_text};
use crate::dataset::{self, Dataset, DatasetKey};
use crate::error::PlaceError;
use crate::initialise::{ADMINISTRATOR, initialise};
use crate::instance::{Endpoint, Instance, InstanceSpec};
use crate::journal::{Journal, Made};
use crate::package::Package;
use crate::server::{STOP_LIMIT, Server, check_socket, error_lines, socket_of};
use crate::settings::{self, Listen, file_settings};
use crate::tools::Tools;
use crate::tree;
use crate::user::ServerUser;

/// Ports tried before giving up: between asking for a free one and using it, others may come.
const PORT_ATTEMPTS: u32 = 5;
/// A complete shutdown may have a large change buffer to merge.
const HALT_LIMIT: Duration = Duration::from_secs(1800);

/// Every name that [`HostInstance`] gives to a fingerprint. The audit's tests read them: a difference
/// in one of them must be the consequence of a factor that the audit knows.
pub const FINGERPRINT_NAMES: [&str; 7] = [
    "place.dataset.clone_hash",
    "place.dataset.hash",
    "place.package.binary",
    "place.package.hash",
    "place.package.name",
    "place.package.version",
    "place.user",
];

/// A server process on this machine, in a private directory of its own.
pub struct HostInstance {
    // Dropped in this order: first the server, then its directory.
    server: Server,
    directory: PrivateDirectory,
    data_dir: PathBuf,
    endpoint: Endpoint,
    fingerprint: BTreeMap<String, String>,
}

/// A journalled directory below `instances/`, removed when dropped.
pub(super) struct PrivateDirectory {
    pub path: PathBuf,
    journal: Journal,
    removed: bool,
}

impl PrivateDirectory {
    pub fn make(cache: &Cache, user: &ServerUser, journal: &Journal) -> Result<Self, PlaceError> {
        let path = cache.room("instances").join(short_id()?);
        check_socket(&path)?;
        user.check_reach(&cache.room("instances"))?;
        journal.begin(&Made::Directory { path: path.clone() })?;
        let directory = PrivateDirectory { path, journal: journal.clone(), removed: false };
        for path in [&directory.path, &directory.path.join("tmp")] {
            make_directory(path, 0o700)?;
            user.own(path)?;
        }
        Ok(directory)
    }

    /// Tried once: what cannot be removed stays in the journal, where `ceteris doctor` finds it.
    pub fn remove(&mut self) -> Result<(), PlaceError> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(());
        }
        tree::remove_tree(&self.path)?;
        self.journal.end(&Made::Directory { path: self.path.clone() })
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.remove();
    }
}

/// Processes on this machine.
pub(super) struct Host;

impl Placer for Host {
    fn check(&self, spec: &InstanceSpec, tools: Tools) -> Result<(), PlaceError> {
        let config = &spec.setup.server.config;
        ServerUser::find()?.check_reach(&spec.package.binary())?;
        settings::render(config, &spec.package, tools.cache.root(), Listen::SocketOnly).map(drop)
    }

    fn start(&self, spec: &InstanceSpec, tools: Tools) -> Result<Box<dyn Instance>, PlaceError> {
        start(spec, tools)
    }

    fn planned(&self, Planned { setup, package, dataset, cache }: &Planned) -> Vec<String> {
        let instance = cache.room("instances").join("INSTANCE");
        let snapshot = cache.room("datasets").join(&dataset.hash).join("data");
        let copy = Invocation::new("cp")
            .args(["-a", "--reflink=auto", "--sparse=auto"])
            .arg(snapshot)
            .arg(instance.join("data"));
        let config = settings::render(&setup.server.config, package, &instance, Listen::Port(0));
        let config = match config {
            Ok(text) => {
                let text = text.replace("port = 0\n", "port = PORT\n");
                format!("cat > {} <<'EOF'\n{text}EOF", instance.join("my.cnf").display())
            }
            Err(error) => format!("# {error}"),
        };
        let mut server = Invocation::of(&package.mysqld)
            .path_option("defaults-file", &instance.join("my.cnf"))
            .bare()
            .env(&package.env);
        if let Ok(user) = ServerUser::find() {
            server = server.user(&user);
        }
        vec![copy.quoted(), config, server.quoted()]
    }
}

/// Brings an instance up and returns when it answers a query.
///
/// Without a dataset it starts on an empty data directory, initialised under those of the setup's
/// settings that change files; that one is itself kept in the cache and cloned.
///
/// # Errors
/// With the server's own error lines when it refuses to start.
pub(super) fn start(
    spec: &InstanceSpec,
    Tools { cache, journal, log }: Tools,
) -> Result<Box<dyn Instance>, PlaceError> {
    let config = &spec.setup.server.config;
    let user = ServerUser::find()?;
    user.check_reach(&spec.package.binary())?;
    // Refused before anything is made.
    settings::render(config, &spec.package, cache.root(), Listen::SocketOnly)?;
    let dataset = match &spec.dataset {
        Some(dataset) => dataset.clone(),
        None => {
            let settings = file_settings(config);
            let empty = empty_dataset(&spec.package, &settings, cache, &user, journal, log);
            Arc::new(empty.map_err(|error| with_setting(error, config))?)
        }
    };
    let directory = PrivateDirectory::make(cache, &user, journal)?;
    let data_dir = directory.path.join("data");
    let clone = dataset.clone_to(&data_dir, &user, log)?;
    let password = dataset.password()?;
    let fingerprint = BTreeMap::from(
        [
            ("place.package.name", spec.package.name.clone()),
            ("place.package.hash", spec.package.hash.clone()),
            ("place.package.version", spec.package.version.to_string()),
            ("place.package.binary", spec.package.binary().display().to_string()),
            ("place.user", user.name.clone()),
            ("place.dataset.hash", dataset.hash().to_owned()),
            ("place.dataset.clone_hash", clone.hash),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let mut attempt = 1;
    loop {
        let port = free_port()?;
        let text = settings::render(config, &spec.package, &directory.path, Listen::Port(port))?;
        let path = directory.path.join("my.cnf");
        fs::write(&path, text).map_err(PlaceError::io("write", &path))?;
        user.own(&path)?;
        let mut server = Server::start(&spec.package, &directory.path, &user, journal, log)?;
        let endpoint = Endpoint {
            socket: Some(socket_of(&directory.path)),
            tcp: Some(("127.0.0.1".to_owned(), port)),
            user: ADMINISTRATOR.to_owned(),
            password: password.clone(),
        };
        match server.await_ready(&endpoint) {
            Ok(_) => {
                return Ok(Box::new(HostInstance {
                    server,
                    directory,
                    data_dir,
                    endpoint,
                    fingerprint,
                }));
            }
            Err(PlaceError::Refused { lines, .. })
                if attempt < PORT_ATTEMPTS && port_was_taken(&lines) =>
            {
                attempt += 1;
                let log_path = directory.path.join("error.log");
                fs::remove_file(&log_path).map_err(PlaceError::io("remove", &log_path))?;
            }
            Err(error) => return Err(with_setting(error, config)),
        }
    }
}

/// The initialised data directory without data, from the cache or made now.
pub(super) fn empty_dataset(
    package: &Package,
    settings: &BTreeMap<String, ConfigValue>,
    cache: &Cache,
    user: &ServerUser,
    journal: &Journal,
    log: &CommandLog,
) -> Result<Dataset, PlaceError> {
    let key = DatasetKey::empty(package, settings);
    let _claim = Dataset::claim(cache, &key, || ())?;
    if let Some(found) = Dataset::find(cache, &key)? {
        return Ok(found);
    }
    let mut directory = PrivateDirectory::make(cache, user, journal)?;
    let data = directory.path.join("data");
    if crate::package::ready_data(&package.base_dir, package.version).is_none() {
        make_directory(&data, 0o700)?;
        user.own(&data)?;
    }
    let password = initialise(package, settings, &directory.path, user, journal, log)?;
    let dataset = dataset::keep(&data, &password, cache, &key, &BTreeMap::new())?;
    directory.remove()?;
    Ok(dataset)
}

/// Names the setting at fault where the server's lines do.
pub(super) fn with_setting(
    error: PlaceError,
    config: &BTreeMap<String, ConfigValue>,
) -> PlaceError {
    match error {
        PlaceError::Refused { status, lines, setting: None } => {
            PlaceError::Refused { status, setting: settings::blamed(config, &lines), lines }
        }
        other => other,
    }
}

pub(super) fn free_port() -> Result<u16, PlaceError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(PlaceError::io("find a free port of", Path::new("127.0.0.1")))
}

fn port_was_taken(lines: &[String]) -> bool {
    lines
        .iter()
        .any(|line| line.contains("Bind on TCP/IP port") || line.contains("server running on port"))
}

impl Instance for HostInstance {
    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn pid(&self) -> Option<u32> {
        Some(self.server.pid())
    }

    fn data_dir(&self) -> Option<&Path> {
        Some(&self.data_dir)
    }

    fn dir(&self) -> &Path {
        &self.directory.path
    }

    fn fingerprint(&self) -> BTreeMap<String, String> {
        self.fingerprint.clone()
    }

    fn allowance(&self) -> Allowance {
        Allowance::default()
    }

    fn alive(&mut self) -> Result<(), String> {
        match self.server.poll() {
            None => Ok(()),
            Some(status) => {
                let lines = error_lines(&self.server.error_log());
                let mut said = format!("the server ended ({})", status_text(status));
                for line in lines {
                    said.push_str("\n  ");
                    said.push_str(&line);
                }
                Err(said)
            }
        }
    }

    fn error_log(&self) -> String {
        self.server.error_log()
    }

    fn halt(&mut self) -> Result<(), PlaceError> {
        let ended = self.server.stop(HALT_LIMIT);
        self.clean_end(ended)
    }

    fn stop(mut self: Box<Self>) -> Result<(), PlaceError> {
        let ended = self.server.stop(STOP_LIMIT);
        // Read before the error log is gone with the rest.
        let clean = self.clean_end(ended);
        self.directory.remove()?;
        clean
    }
}

impl HostInstance {
    /// The error for a server that did not end by itself and with success.
    fn clean_end(&self, ended: Option<ExitStatus>) -> Result<(), PlaceError> {
        match ended {
            Some(status) if status.success() => Ok(()),
            status => Err(PlaceError::NotStopped {
                status: status.map_or_else(|| "unknown".to_owned(), status_text),
                lines: error_lines(&self.server.error_log()),
            }),
        }
    }
}
