//! One container: what it is made of, made, started, watched, and removed whatever happens.
//!
//! Its private directory is mounted at the path that it has outside, so that socket, option file and
//! error log are where the host placement has them. The data directory is always `DIR/data` inside:
//! a plain part of that directory, a volume mounted there, or a link to the container's own layer.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit};
use serde_json::Value;
use study::{Bytes, ContainerNetwork, ContainerStorage, DockerPlacement};

use crate::command::{CommandLog, Invocation, full_disk, missing_library};
use crate::dataset::Dataset;
use crate::engine::{ContainerState, Engine, state};
use crate::error::PlaceError;
use crate::instance::Endpoint;
use crate::journal::{Journal, LABEL, Made, VARIABLE};
use crate::package::Package;
use crate::server::{READY_LIMIT, connect, error_lines, socket_of};
use crate::tree::{self, TreeHash};
use crate::user::ServerUser;

/// Where a server listens that has a network of its own.
pub(super) const INNER_PORT: u16 = 3306;
/// The data directory in a container's own layer.
pub(super) const IN_LAYER: &str = "/ceteris-data";

/// What a container is made of.
pub(super) struct Recipe<'a> {
    pub engine: Engine,
    pub placement: &'a DockerPlacement,
    pub package: &'a Package,
    pub user: &'a ServerUser,
    /// Also the name of its volume, if it has one.
    pub name: &'a str,
    pub image: &'a str,
    /// The private directory.
    pub dir: &'a Path,
    /// The journal's id.
    pub journal: &'a str,
    /// Without any network, for preparations.
    pub alone: bool,
}

impl Recipe<'_> {
    /// The command that makes it, to run `words` with the package's environment.
    pub fn create(&self, words: &[OsString]) -> Invocation {
        let DockerPlacement { cpus, cpuset, memory, network, storage, security_opt, .. } =
            self.placement;
        let ServerUser { uid, gid, .. } = self.user;
        let mut create = self.engine.command(&["create", "--pull", "never", "--name", self.name]);
        let mut option = |name: &str, value: &str| {
            create.add(name);
            create.add(value);
        };
        option("--label", &format!("{LABEL}={}", self.journal));
        option("--env", &format!("{VARIABLE}={}", self.journal));
        for (name, value) in &self.package.env {
            option("--env", &format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
        }
        option("--user", &format!("{uid}:{gid}"));
        // As a server on the host has them: no core files, as many open files as the hard limit
        // allows. An engine's own default would change what the server makes of it.
        option("--ulimit", "core=0");
        if let Some(files) = getrlimit(Resource::Nofile).maximum {
            option("--ulimit", &format!("nofile={files}:{files}"));
        }
        if self.engine.name() == "podman" {
            // Docker has no such limits by default; Podman has one that thousands of threads reach,
            // and one beyond what the kernel can give, which it may not be allowed to set.
            option("--pids-limit", "-1");
            let threads = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
            let threads = threads.trim().parse().unwrap_or(32_768_u64);
            let limit = getrlimit(Resource::Nproc).maximum.unwrap_or(threads).min(threads);
            option("--ulimit", &format!("nproc={limit}:{limit}"));
        }
        match network {
            _ if self.alone => option("--network", "none"),
            ContainerNetwork::Host => option("--network", "host"),
            ContainerNetwork::Bridge | ContainerNetwork::Published => {
                option("--network", "bridge");
                // The server's name of the machine stays what it is outside.
                if let Ok(hostname) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
                    option("--hostname", hostname.trim());
                }
            }
        }
        if *network == ContainerNetwork::Published && !self.alone {
            // The engine chooses the port, so that it cannot be taken.
            option("--publish", &format!("127.0.0.1::{INNER_PORT}"));
        }
        if let Some(cpus) = cpus {
            option("--cpus", &cpus.to_string());
        }
        if let Some(cpuset) = cpuset {
            option("--cpuset-cpus", cpuset);
        }
        if let Some(Bytes(memory)) = memory {
            option("--memory", &memory.to_string());
            // No swap beyond it: a limit that is half on disk is none to compare with.
            option("--memory-swap", &memory.to_string());
        }
        for security in security_opt {
            option("--security-opt", security);
        }
        let dir = self.dir.display();
        option("--mount", &format!("type=bind,source={dir},target={dir}"));
        if *storage == ContainerStorage::Volume && !self.alone {
            option("--mount", &format!("type=volume,source={},target={dir}/data", self.name));
        }
        if let Some(program) = words.first() {
            option("--entrypoint", &program.to_string_lossy());
        }
        create.arg(self.image).args(words.iter().skip(1))
    }

    /// The words that start the server.
    pub fn server(&self) -> Vec<OsString> {
        let mut words = self.package.mysqld.clone();
        let mut defaults = OsString::from("--defaults-file=");
        defaults.push(self.dir.join("my.cnf"));
        // It must be the first of the server's own options.
        words.push(defaults);
        words
    }
}

/// A volume of an engine, removed when dropped.
pub(super) struct Volume {
    engine: Engine,
    name: String,
    journal: Journal,
    log: CommandLog,
}

impl Volume {
    pub fn make(
        engine: Engine,
        name: &str,
        journal: &Journal,
        log: &CommandLog,
    ) -> Result<Volume, PlaceError> {
        let volume =
            Volume { engine, name: name.to_owned(), journal: journal.clone(), log: log.clone() };
        journal.begin(&volume.made())?;
        engine.run(
            "a volume cannot be made",
            create_volume(engine, name, &journal.marker()),
            log,
        )?;
        Ok(volume)
    }

    fn made(&self) -> Made {
        Made::Volume { engine: self.engine.name().to_owned(), name: self.name.clone() }
    }
}

/// The command that makes a volume.
pub(super) fn create_volume(engine: Engine, name: &str, journal: &str) -> Invocation {
    engine.command(&["volume", "create", "--label", &format!("{LABEL}={journal}"), name])
}

impl Drop for Volume {
    fn drop(&mut self) {
        let remove = self.engine.command(&["volume", "rm", "--force", &self.name]);
        // What cannot be removed stays in the journal, where `ceteris doctor` finds it.
        if self.log.run_watched(remove, || ()).is_ok_and(|said| said.fine()) {
            let _ = self.journal.end(&self.made());
        }
    }
}

/// A container, removed when dropped.
pub(super) struct Container {
    engine: Engine,
    name: String,
    dir: PathBuf,
    memory: Option<Bytes>,
    /// Its first process, while it runs.
    process: Option<(u32, OwnedFd)>,
    /// It was asked to end, and did.
    stopped: bool,
    removed: bool,
    journal: Journal,
    log: CommandLog,
}

impl Container {
    /// Makes one that is not started yet.
    pub fn make(
        recipe: &Recipe,
        words: &[OsString],
        journal: &Journal,
        log: &CommandLog,
    ) -> Result<Container, PlaceError> {
        let container = Container {
            engine: recipe.engine,
            name: recipe.name.to_owned(),
            dir: recipe.dir.to_owned(),
            memory: recipe.placement.memory,
            process: None,
            stopped: false,
            removed: false,
            journal: journal.clone(),
            log: log.clone(),
        };
        journal.begin(&container.made())?;
        recipe.engine.run("a container cannot be made", recipe.create(words), log)?;
        Ok(container)
    }

    fn made(&self) -> Made {
        Made::Container { engine: self.engine.name().to_owned(), name: self.name.clone() }
    }

    /// Copies a snapshot into the container, where it becomes `target`, and checks that it arrived
    /// as it was. Tells its hash, and where the copy is on this machine, if it can be seen.
    pub fn fill(
        &self,
        dataset: &Dataset,
        target: &Path,
    ) -> Result<(TreeHash, Option<PathBuf>), PlaceError> {
        let copy = copy_in(self.engine, &self.name, &dataset.files(), target);
        self.engine.run("the dataset cannot be copied into the container", copy, &self.log)?;
        let there = format!("{}:{}", self.name, target.display());
        if let Some(path) = self.seen_from_here(target)? {
            return Ok((dataset.check_copy(tree::hash_tree(&path)?)?, Some(path)));
        }
        // What the engine keeps out of sight comes back to be looked at.
        let back = self.dir.join("check");
        let fetch = self.engine.command(&["cp"]).arg(format!("{there}/.")).arg(&back);
        self.engine.run("the dataset cannot be read back", fetch, &self.log)?;
        let hash = tree::hash_tree(&back)?;
        tree::remove_tree(&back)?;
        Ok((dataset.check_copy(hash)?, None))
    }

    /// The path on this machine of a path inside that is on a volume or in the container's layer.
    fn seen_from_here(&self, inside: &Path) -> Result<Option<PathBuf>, PlaceError> {
        let container = self.inspect()?;
        let mounts = container.pointer("/Mounts").and_then(Value::as_array);
        let on_volume = mounts.into_iter().flatten().find_map(|mount| {
            let destination = mount.pointer("/Destination")?.as_str()?;
            let volume = mount.pointer("/Type")?.as_str()? == "volume";
            (volume && Path::new(destination) == inside)
                .then(|| mount.pointer("/Source")?.as_str().map(PathBuf::from))?
        });
        let in_layer = || {
            let upper = container.pointer("/GraphDriver/Data/UpperDir")?.as_str()?;
            Some(Path::new(upper).join(inside.strip_prefix("/").ok()?))
        };
        Ok(on_volume.or_else(in_layer).filter(|path| std::fs::read_dir(path).is_ok()))
    }

    /// What the engine knows of it.
    pub fn inspect(&self) -> Result<Value, PlaceError> {
        let found = self.engine.inspect("container", &self.name, &self.log)?;
        found.ok_or_else(|| PlaceError::Engine {
            what: format!("the container {} is gone", self.name),
            lines: Vec::new(),
            next: Some("somebody removed it while ceteris used it".to_owned()),
        })
    }

    /// Starts it; also again after it has ended.
    pub fn start(&mut self) -> Result<(), PlaceError> {
        let start = self.engine.command(&["start", &self.name]);
        self.engine.run("the container cannot be started", start, &self.log)?;
        let pid = state(&self.inspect()?).pid;
        // Held by a descriptor, so that its number cannot become another's. One that has ended
        // already has none, which is found out by whoever waits for it.
        self.process = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|raw| rustix::process::pidfd_open(raw, PidfdFlags::empty()).ok())
            .map(|held| (pid, held));
        Ok(())
    }

    /// Runs it to its end and tells what it said.
    pub fn run_to_end(&mut self) -> Result<(), PlaceError> {
        let run = self.engine.command(&["start", "--attach", &self.name]);
        let said = self.log.run_watched(run, || ())?;
        let state = state(&self.inspect()?);
        match state.exit_code {
            0 if said.fine() => Ok(()),
            _ => {
                let own = self.error_log();
                Err(self.refused(&state, &format!("{own}{}{}", said.stdout, said.stderr)))
            }
        }
    }

    /// Process id on this machine, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|(pid, _)| *pid)
    }

    /// Whether it runs; costs one system call.
    pub fn runs(&self) -> bool {
        let Some((_, held)) = &self.process else { return false };
        let mut watched = [PollFd::new(held, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The descriptor becomes readable when the process ends.
        !matches!(rustix::event::poll(&mut watched, Some(&at_once)), Ok(1))
    }

    /// How it ended: `0`, `signal 9`, or that the kernel killed it for its memory.
    pub fn ended(&self) -> (ContainerState, String) {
        // The engine learns of an end a moment after the kernel knows it.
        let begun = Instant::now();
        loop {
            let quiet = CommandLog::default();
            let found = self.engine.inspect("container", &self.name, &quiet);
            match found.ok().flatten().map(|container| state(&container)) {
                Some(state) if state.running && begun.elapsed() < Duration::from_secs(5) => {}
                Some(state) => {
                    let text = state.ended(self.memory);
                    return (state, text);
                }
                None => {
                    let gone = ContainerState { exit_code: -1, ..ContainerState::default() };
                    return (gone, "somebody removed the container".to_owned());
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a query is answered through the socket.
    pub fn await_ready(&self, endpoint: &Endpoint) -> Result<mysql::Conn, PlaceError> {
        let start = Instant::now();
        let mut nap = Duration::from_millis(5);
        let mut last = String::new();
        loop {
            if !self.runs() {
                let (state, _) = self.ended();
                return Err(self.refused(&state, &self.error_log()));
            }
            if socket_of(&self.dir).exists() {
                match connect(endpoint) {
                    Ok(connection) => return Ok(connection),
                    // A wrong password never becomes right by waiting.
                    Err(mysql::Error::MySqlError(error)) if error.code == 1045 => {
                        let error = mysql::Error::MySqlError(error);
                        return Err(PlaceError::sql("cannot log in to the new server")(error));
                    }
                    Err(error) => last = error.to_string(),
                }
            }
            if start.elapsed() > READY_LIMIT {
                let mut lines = error_lines(&self.error_log());
                lines.extend(Some(last).filter(|last| !last.is_empty()));
                return Err(PlaceError::NotReady { seconds: READY_LIMIT.as_secs(), lines });
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(100));
        }
    }

    /// The error for a container that ended by itself; `said` is what its program said.
    fn refused(&self, state: &ContainerState, said: &str) -> PlaceError {
        if state.out_of_memory {
            return PlaceError::Engine {
                what: format!("the server was {}", state.ended(self.memory)),
                lines: error_lines(said),
                next: Some(
                    "raise placement.docker.memory, or lower innodb_buffer_pool_size".to_owned(),
                ),
            };
        }
        if let Some((program, library)) = missing_library(said) {
            return PlaceError::MissingLibrary { program, library };
        }
        if full_disk(said) {
            return PlaceError::DiskFull { path: self.dir.clone() };
        }
        let mut lines = error_lines(said);
        lines.extend(Some(state.error.clone()).filter(|words| !words.is_empty()));
        PlaceError::Refused { status: state.ended(self.memory), lines, setting: None }
    }

    /// The server's own log; where it did not come to write one, what the container printed.
    pub fn error_log(&self) -> String {
        let bytes = std::fs::read(self.dir.join("error.log")).unwrap_or_default();
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if text.trim().is_empty() {
            let logs = self.engine.command(&["logs", &self.name]);
            if let Ok(said) = CommandLog::default().run_watched(logs, || ()) {
                let _ = write!(text, "{}{}", said.stdout, said.stderr);
            }
        }
        text
    }

    /// Asks it to end, and kills it when it has not after `limit`. Tells how it ended: nothing for
    /// a clean shutdown.
    pub fn stop(&mut self, limit: Duration) -> Result<(), PlaceError> {
        if self.stopped {
            return Ok(());
        }
        let ran = self.runs();
        if ran {
            let seconds = limit.as_secs().to_string();
            let stop = self.engine.command(&["stop", "-t", &seconds, &self.name]);
            // Told by the state that it leaves.
            let _ = self.log.run_watched(stop, || ());
        }
        let (state, status) = self.ended();
        self.process = None;
        self.stopped = ran && state.exit_code == 0 && !state.out_of_memory;
        if self.stopped {
            return Ok(());
        }
        Err(PlaceError::NotStopped { status, lines: error_lines(&self.error_log()) })
    }

    /// Removes it, running or not. Tried once: what cannot be removed stays in the journal.
    pub fn remove(&mut self) -> Result<(), PlaceError> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(());
        }
        let remove = self.engine.command(&["rm", "--force", "--volumes", &self.name]);
        let said = self.log.run_watched(remove, || ())?;
        // Somebody else having removed it is as good.
        if !said.fine() && !said.stderr.to_lowercase().contains("no such container") {
            return Err(self.engine.refused("the container cannot be removed", &said));
        }
        self.journal.end(&self.made())
    }
}

/// The command that copies a snapshot's `data` to `target` inside of a container. Owners are kept,
/// also that of the directory itself: one that is not there yet is named, into one that is there (a
/// volume is) Docker lays the whole. Podman must be led to the volume itself, and gives what it
/// copies to the container's user.
pub(super) fn copy_in(engine: Engine, name: &str, data: &Path, target: &Path) -> Invocation {
    let there = |path: &Path| format!("{name}:{}", path.display());
    let copy = engine.command(&["cp"]);
    match target.parent().filter(|_| target.file_name() == data.file_name()) {
        None => copy.arg(data).arg(there(target)),
        Some(above) if engine.name() == "docker" => copy.arg(data).arg(there(above)),
        Some(_) => copy.arg(data.join(".")).arg(there(target)),
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.remove();
    }
}
