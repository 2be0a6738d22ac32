//! External placement: a server that ceteris did not start and does not stop.
//!
//! Nothing on it is changed but ceteris's own database, into which the conductor loads the dataset
//! once, and, where the study allows it, the global variables of `server.config`: each old value is
//! journalled before it is changed and set back at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use study::{ConfigValue, ExternalPlacement, Server};

use super::{Placer, Planned};
use crate::allowance::Allowance;
use crate::error::PlaceError;
use crate::instance::{Endpoint, Instance, InstanceSpec};
use crate::invocation::quote;
use crate::journal::{Journal, Made};
use crate::remote::{Remote, global, set_global, wanted};
use crate::settings::check_name;
use crate::tools::Tools;

/// How often the server is asked whether it is still there: the load itself notices sooner.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// A server that is there already.
pub(super) struct External(pub(super) ExternalPlacement);

impl Placer for External {
    fn check(&self, spec: &InstanceSpec, _: Tools) -> Result<(), PlaceError> {
        check_study(&self.0, &spec.setup.server)?;
        let mut connection = Remote::of(&self.0)?.connect()?;
        for name in spec.setup.server.config.keys() {
            global(&mut connection, &study::variables::canonical(name))?;
        }
        Ok(())
    }

    fn start(&self, spec: &InstanceSpec, tools: Tools) -> Result<Box<dyn Instance>, PlaceError> {
        check_study(&self.0, &spec.setup.server)?;
        let remote = Remote::of(&self.0)?;
        let package = remote.package()?;
        let fingerprint = [
            ("package.name", package.name),
            ("package.hash", package.hash),
            ("package.version", package.version.to_string()),
            ("placement.kind", "external".to_owned()),
            ("placement.server", remote.place()),
        ]
        .map(|(name, value)| (format!("place.{name}"), value))
        .into();
        let mut variables = SetVariables::none(&self.0, tools.journal);
        variables.set(&remote, &spec.setup.server.config)?;
        let watch = Watch { connection: remote.connect()?, asked: Instant::now() };
        let endpoint = remote.endpoint();
        Ok(Box::new(ExternalInstance { endpoint, fingerprint, variables, watch }))
    }

    fn planned(&self, plan: &Planned) -> Vec<String> {
        planned(&self.0, &plan.setup.server)
    }

    fn loads_in_place(&self) -> bool {
        true
    }
}

/// What a person would type. No package is needed to tell it.
pub(super) fn planned(placement: &ExternalPlacement, server: &Server) -> Vec<String> {
    let remote = match Remote::of(placement) {
        Ok(remote) => remote,
        Err(error) => return vec![format!("# {error}")],
    };
    let Endpoint { socket, tcp, user, .. } = remote.endpoint();
    let mut client = format!("mysql --user={}", quote(user.as_ref()));
    if let Some(socket) = socket {
        client.push_str(&format!(" --socket={}", quote(socket.as_os_str())));
    }
    if let Some((host, port)) = tcp {
        client.push_str(&format!(" --host={} --port={port}", quote(host.as_ref())));
    }
    let set = server.config.iter().map(|(name, value)| {
        let name = study::variables::canonical(name);
        let statement = format!("SET GLOBAL {name} = {}", wanted(value));
        format!("{client} --execute={}", quote(statement.as_ref()))
    });
    let mut commands: Vec<String> = set.collect();
    if commands.is_empty() {
        commands.push(format!("{client}  # used as it is"));
    }
    commands
}

/// What a study cannot ask of a server that it does not start.
fn check_study(placement: &ExternalPlacement, server: &Server) -> Result<(), PlaceError> {
    if server.package != Server::default().package {
        return Err(PlaceError::Unusable {
            name: server.package.clone(),
            why: "an external server is what it is".to_owned(),
            next: Some("remove server.package, or choose another placement".to_owned()),
        });
    }
    if let Some(name) = server.config.keys().next().filter(|_| !placement.allow_set_global) {
        return Err(PlaceError::Engine {
            what: format!("server.config.{name} would change a server that is not ours"),
            lines: Vec::new(),
            next: Some("add `allow_set_global = true` to placement.external, or remove it".into()),
        });
    }
    server.config.keys().try_for_each(|name| check_name(&study::variables::canonical(name)))
}

/// The global variables that were changed, set back when dropped.
struct SetVariables {
    dsn: String,
    password_file: Option<PathBuf>,
    journal: Journal,
    changed: Vec<Made>,
}

impl SetVariables {
    fn none(placement: &ExternalPlacement, journal: &Journal) -> SetVariables {
        SetVariables {
            dsn: placement.dsn.clone().unwrap_or_default(),
            // Whoever cleans up stands somewhere else.
            password_file: placement
                .password_file
                .as_ref()
                .map(|file| std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file))),
            journal: journal.clone(),
            changed: Vec::new(),
        }
    }

    /// Sets each of `config`; what was set before an error is set back when this is dropped.
    fn set(
        &mut self,
        remote: &Remote,
        config: &BTreeMap<String, ConfigValue>,
    ) -> Result<(), PlaceError> {
        if config.is_empty() {
            return Ok(());
        }
        let mut connection = remote.connect()?;
        for (name, value) in config {
            let name = study::variables::canonical(name);
            let made = Made::Variable {
                dsn: self.dsn.clone(),
                password_file: self.password_file.clone(),
                old: global(&mut connection, &name)?,
                name: name.clone(),
            };
            self.journal.begin(&made)?;
            match set_global(&mut connection, &name, &wanted(value)) {
                Ok(()) => self.changed.push(made),
                Err(error) => {
                    // Refused: nothing was changed.
                    self.journal.end(&made)?;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Sets all back, the last first, going on at an error; the first is told.
    fn undo(&mut self) -> Result<(), PlaceError> {
        let mut first = Ok(());
        while let Some(made) = self.changed.pop() {
            let undone = made.undo().and_then(|()| self.journal.end(&made));
            if first.is_ok() {
                first = undone;
            }
        }
        first
    }
}

impl Drop for SetVariables {
    fn drop(&mut self) {
        // What cannot be set back stays in the journal, where `ceteris doctor` finds it.
        let _ = self.undo();
    }
}

/// A connection that only asks whether somebody is there.
struct Watch {
    connection: mysql::Conn,
    asked: Instant,
}

struct ExternalInstance {
    endpoint: Endpoint,
    fingerprint: BTreeMap<String, String>,
    variables: SetVariables,
    watch: Watch,
}

impl Instance for ExternalInstance {
    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn data_dir(&self) -> Option<&Path> {
        None
    }

    /// None: nothing of it is ours.
    fn dir(&self) -> &Path {
        Path::new("")
    }

    fn fingerprint(&self) -> BTreeMap<String, String> {
        self.fingerprint.clone()
    }

    /// Not known: without a limit as far as we can see.
    fn allowance(&self) -> Allowance {
        Allowance::default()
    }

    fn alive(&mut self) -> Result<(), String> {
        if self.watch.asked.elapsed() < ASK_EVERY {
            return Ok(());
        }
        self.watch.asked = Instant::now();
        self.watch
            .connection
            .ping()
            .map_err(|error| format!("the external server does not answer any more: {error}"))
    }

    fn error_log(&self) -> String {
        String::new()
    }

    fn stop(mut self: Box<Self>) -> Result<(), PlaceError> {
        self.variables.undo()
    }
}
