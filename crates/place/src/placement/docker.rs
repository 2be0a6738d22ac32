//! Docker placement: a server in a container of Docker or Podman, on a clone of the same dataset.
//!
//! The image is the user's (`image:...`), or made of the package without a registry and kept by the
//! engine as `ceteris-<hash>`. The order is the host placement's: directory, volume and container are
//! journalled before they are made, and dropping what is half made undoes it, the container first.

mod container;
mod initialise;
mod instance;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mysql::prelude::Queryable;
use serde_json::Value;
use study::{Bytes, ContainerNetwork, ContainerStorage, Cpus, DockerPlacement};

use self::container::{Container, IN_LAYER, INNER_PORT, Recipe, Volume, copy_in, create_volume};
use self::instance::DockerInstance;
use super::host::{empty_dataset, free_port, port_was_taken, with_setting};
use super::{Placer, Planned};
use crate::allowance::Allowance;
use crate::cache::make_directory;
use crate::command::{CommandLog, Invocation};
use crate::dataset::Dataset;
use crate::directory::PrivateDirectory;
use crate::engine::{Engine, EngineFacts};
use crate::error::PlaceError;
use crate::image::root_tar;
use crate::initialise::ADMINISTRATOR;
use crate::instance::{Endpoint, Instance, InstanceSpec};
use crate::journal::NAME_PREFIX;
use crate::machine;
use crate::package::{Package, one_line};
use crate::server::socket_of;
use crate::settings::{self, Listen, file_settings};
use crate::tools::Tools;
use crate::user::ServerUser;

/// Ports tried on the machine's own network before giving up.
const PORT_ATTEMPTS: u32 = 5;
/// Less than this no engine gives a container.
const MEMORY_MIN: u64 = 6 << 20;

/// What every image carries that ceteris made, with the hash of its root file system.
const IMAGE_LABEL: &str = "ceteris.image";

/// Containers of Docker or Podman.
pub(super) struct Docker(pub(super) DockerPlacement);

impl Placer for Docker {
    fn check(&self, spec: &InstanceSpec, tools: Tools) -> Result<(), PlaceError> {
        let (engine, facts) = Engine::find(self.0.engine, tools.log)?;
        check_resources(&self.0, engine, &facts)?;
        let user = ServerUser::find()?;
        match spec.package.image() {
            Some(image) => engine.image(image, tools.log).map(drop)?,
            // Its modes are the same inside.
            None => user.check_reach(&spec.package.binary())?,
        }
        let config = &spec.setup.server.config;
        settings::render(config, &spec.package, tools.cache.root(), Listen::SocketOnly).map(drop)
    }

    fn start(&self, spec: &InstanceSpec, tools: Tools) -> Result<Box<dyn Instance>, PlaceError> {
        let instance = start(&self.0, spec, tools);
        let instance = instance.map_err(|error| with_setting(error, &spec.setup.server.config))?;
        Ok(Box::new(instance))
    }

    fn planned(&self, plan: &Planned) -> Vec<String> {
        planned(&self.0, plan)
    }
}

/// One line for `ceteris doctor`.
pub(super) fn listing(log: &CommandLog) -> Result<String, String> {
    match Engine::find(study::ContainerEngine::Auto, log) {
        Ok((engine, facts)) => {
            let filter = format!("label={IMAGE_LABEL}");
            let images = engine.command(&["images", "--quiet", "--filter", &filter]);
            let kept = log.run_watched(images, || ()).map_or(0, |said| said.stdout.lines().count());
            Ok(format!(
                "{} {}, storage {}, cgroups {} by {}, {kept} images of ceteris kept",
                engine.name(),
                facts.version,
                facts.storage_driver,
                facts.cgroup_version,
                facts.cgroup_driver
            ))
        }
        Err(error) => Err(one_line(&error)),
    }
}

/// What the engine would refuse, told before anything is measured.
fn check_resources(
    placement: &DockerPlacement,
    engine: Engine,
    facts: &EngineFacts,
) -> Result<(), PlaceError> {
    let name = engine.name();
    let refuse = |what: String, next: &str| {
        Err(PlaceError::Engine { what, lines: Vec::new(), next: Some(next.to_owned()) })
    };
    if let Some(cpus) = placement.cpus.filter(|cpus| *cpus > facts.cpus as f64) {
        let what = format!("placement.docker.cpus is {cpus} and {name} has {}", facts.cpus);
        return refuse(what, "lower it");
    }
    if let Some(Bytes(memory)) = placement.memory {
        let limits = MEMORY_MIN..=facts.memory_bytes;
        if !limits.contains(&memory) {
            let what = format!(
                "placement.docker.memory is {} and {name} gives from {} to {}",
                Bytes(memory),
                Bytes(MEMORY_MIN),
                Bytes(facts.memory_bytes >> 20 << 20)
            );
            return refuse(what, "choose a size between");
        }
    }
    if let Some(Ok(Cpus::List(list))) = placement.cpuset.as_ref().map(|text| text.parse())
        && let Some(absent) = list.iter().find(|cpu| !online_processors().contains(cpu))
    {
        let what = format!("placement.docker.cpuset names processor {absent}, which is not here");
        return refuse(what, "`nproc --all` counts them, from 0");
    }
    Ok(())
}

/// The processors that this machine has and uses.
fn online_processors() -> BTreeSet<u32> {
    let listed = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    match listed.trim().parse() {
        Ok(Cpus::List(list)) => list,
        _ => BTreeSet::new(),
    }
}

/// The name of the image of a package, imported now if the engine does not have it.
fn image_of(engine: Engine, package: &Package, tools: Tools) -> Result<String, PlaceError> {
    if let Some(image) = package.image() {
        engine.image(image, tools.log)?;
        return Ok(image.to_owned());
    }
    let root = root_tar(package, &[], tools)?;
    let name = format!("{NAME_PREFIX}{}", &root.hash[..16]);
    // So that two who start at once import it once.
    let _claim = tools.cache.lock("images", &format!("{}-{}", engine.name(), name), || ())?;
    match engine.image(&name, tools.log) {
        Ok(_) => return Ok(name),
        Err(PlaceError::Engine { .. }) => {}
        Err(other) => return Err(other),
    }
    let label = format!("LABEL {IMAGE_LABEL}={}", root.hash);
    let import = engine.command(&["import", "--change", &label]).arg(&root.path).arg(&name);
    engine.run("the image cannot be imported", import, tools.log)?;
    Ok(name)
}

fn start(
    placement: &DockerPlacement,
    spec: &InstanceSpec,
    tools: Tools,
) -> Result<DockerInstance, PlaceError> {
    let Tools { cache, journal, log } = tools;
    let config = &spec.setup.server.config;
    let package = &*spec.package;
    let (engine, facts) = Engine::find(placement.engine, log)?;
    let user = ServerUser::find()?;
    // Refused before anything is made.
    settings::render(config, package, cache.root(), Listen::SocketOnly)?;
    let image = image_of(engine, package, tools)?;
    let dataset = match &spec.dataset {
        Some(dataset) => dataset.clone(),
        None => {
            let settings = file_settings(config);
            Arc::new(match package.image() {
                Some(_) => initialise::empty_dataset(engine, package, &settings, &user, tools)?,
                None => empty_dataset(package, &settings, cache, &user, journal, log)?,
            })
        }
    };
    let password = dataset.password()?;
    let directory = PrivateDirectory::make(cache, &user, journal)?;
    let dir = directory.path.clone();
    let name = name_of(&dir);
    let volume = match placement.storage {
        ContainerStorage::Volume => Some(Volume::make(engine, &name, journal, log)?),
        ContainerStorage::Bind | ContainerStorage::Overlay => None,
    };
    let recipe = Recipe {
        engine,
        placement,
        package,
        user: &user,
        name: &name,
        image: &image,
        dir: &dir,
        journal: &journal.marker(),
        alone: false,
    };
    let Stored { mut container, data_dir, clone_hash } = store(&recipe, &dataset, tools)?;
    let mut attempt = 1;
    let port = loop {
        let port = match placement.network {
            ContainerNetwork::Host => free_port()?,
            ContainerNetwork::Bridge | ContainerNetwork::Published => INNER_PORT,
        };
        let listen = match placement.network {
            ContainerNetwork::Host => Listen::Port(port),
            ContainerNetwork::Bridge | ContainerNetwork::Published => Listen::Everywhere(port),
        };
        write_settings(&dir, &settings::render(config, package, &dir, listen)?, &user)?;
        machine::before_start(&spec.setup.host, log)?;
        container.start()?;
        match container.await_ready(&by_socket(&dir, &password)) {
            Ok(_) => break port,
            Err(PlaceError::Refused { lines, .. })
                if attempt < PORT_ATTEMPTS && port_was_taken(&lines) =>
            {
                attempt += 1;
                let log_path = dir.join("error.log");
                fs::remove_file(&log_path).map_err(PlaceError::io("remove", &log_path))?;
            }
            Err(error) => return Err(error),
        }
    };
    let known = container.inspect()?;
    let mut endpoint = by_socket(&dir, &password);
    endpoint.tcp = Some(match placement.network {
        ContainerNetwork::Host => ("127.0.0.1".to_owned(), port),
        ContainerNetwork::Bridge => (address(&known, "IPAddress", engine)?, INNER_PORT),
        ContainerNetwork::Published => ("127.0.0.1".to_owned(), published(&known, engine)?),
    });
    if placement.network != ContainerNetwork::Host {
        // Seen from inside, this machine is the bridge.
        let from = address(&known, "Gateway", engine).unwrap_or_else(|_| "%".to_owned());
        admit(&endpoint, &from)?;
    }
    let fingerprint = instance::fingerprint(&recipe, &facts, &dataset, clone_hash);
    Ok(DockerInstance {
        container,
        _volume: volume,
        directory,
        data_dir,
        endpoint,
        fingerprint,
        allowance: allowance(&known),
    })
}

/// The container of an instance's directory.
fn name_of(dir: &Path) -> String {
    format!("{NAME_PREFIX}{}", dir.file_name().unwrap_or_default().to_string_lossy())
}

/// A container that is not started, with its data in place.
struct Stored {
    container: Container,
    /// On this machine, where it can be seen.
    data_dir: Option<PathBuf>,
    clone_hash: String,
}

/// Makes the container with a copy of the dataset where its placement wants it.
fn store(recipe: &Recipe, dataset: &Dataset, tools: Tools) -> Result<Stored, PlaceError> {
    let Tools { journal, log, .. } = tools;
    let data = recipe.dir.join("data");
    let words = recipe.server();
    let inside = match recipe.placement.storage {
        ContainerStorage::Bind => {
            let clone = dataset.clone_to(&data, recipe.user, log)?;
            let container = Container::make(recipe, &words, journal, log)?;
            return Ok(Stored { container, data_dir: Some(data), clone_hash: clone.hash });
        }
        ContainerStorage::Volume => {
            make_directory(&data, 0o700)?;
            recipe.user.own(&data)?;
            data
        }
        ContainerStorage::Overlay => {
            // Leads nowhere out here and to the container's layer in there.
            std::os::unix::fs::symlink(IN_LAYER, &data).map_err(PlaceError::io("make", &data))?;
            PathBuf::from(IN_LAYER)
        }
    };
    let container = Container::make(recipe, &words, journal, log)?;
    let (clone, data_dir) = container.fill(dataset, &inside)?;
    Ok(Stored { container, data_dir, clone_hash: clone.hash })
}

/// Writes the option file for the server's user alone.
fn write_settings(dir: &Path, text: &str, user: &ServerUser) -> Result<(), PlaceError> {
    let path = dir.join("my.cnf");
    fs::write(&path, text).map_err(PlaceError::io("write", &path))?;
    user.own(&path)
}

fn by_socket(dir: &Path, password: &str) -> Endpoint {
    Endpoint {
        socket: Some(socket_of(dir)),
        tcp: None,
        user: ADMINISTRATOR.to_owned(),
        password: password.to_owned(),
    }
}

/// Lets the administrator in from this machine's address on the container's network, which no
/// snapshot can know of. Not written to a binary log, which would be a part of the condition.
fn admit(endpoint: &Endpoint, from: &str) -> Result<(), PlaceError> {
    let user = format!("'{ADMINISTRATOR}'@'{from}'");
    let failed = PlaceError::sql("cannot let the administrator in over the container's network");
    let admit = || {
        let mut connection = mysql::Conn::new(endpoint.opts())?;
        connection.query_drop("SET SESSION sql_log_bin = 0")?;
        // The password is hexadecimal, so that it needs no quoting.
        connection
            .query_drop(format!("CREATE USER {user} IDENTIFIED BY '{}'", endpoint.password))?;
        connection.query_drop(format!("GRANT ALL PRIVILEGES ON *.* TO {user} WITH GRANT OPTION"))
    };
    admit().map_err(failed)
}

/// `IPAddress` or `Gateway` of the network that a container is in.
fn address(container: &Value, what: &str, engine: Engine) -> Result<String, PlaceError> {
    let networks = container.pointer("/NetworkSettings/Networks").and_then(Value::as_object);
    let found = networks.into_iter().flatten().find_map(|(_, network)| {
        let address = network.get(what)?.as_str()?;
        (!address.is_empty()).then(|| address.to_owned())
    });
    found.ok_or_else(|| PlaceError::Engine {
        what: format!("{} tells no {what} of the container", engine.name()),
        lines: Vec::new(),
        next: None,
    })
}

/// The port of 127.0.0.1 that the engine forwards.
fn published(container: &Value, engine: Engine) -> Result<u16, PlaceError> {
    let path = format!("/NetworkSettings/Ports/{INNER_PORT}~1tcp/0/HostPort");
    let port = container.pointer(&path).and_then(Value::as_str).and_then(|text| text.parse().ok());
    port.ok_or_else(|| PlaceError::Engine {
        what: format!("{} tells no port that it forwards", engine.name()),
        lines: Vec::new(),
        next: None,
    })
}

/// What the engine has set, and not what it was asked for.
fn allowance(container: &Value) -> Allowance {
    let of = |name: &str| container.pointer(&format!("/HostConfig/{name}"));
    let number = |name| of(name).and_then(Value::as_u64).filter(|number| *number > 0);
    let cpuset = of("CpusetCpus").and_then(Value::as_str).filter(|text| !text.is_empty());
    Allowance {
        processors: match cpuset.map(str::parse) {
            Some(Ok(Cpus::List(list))) => Some(list),
            _ => None,
        },
        cpus: number("NanoCpus").map(|nano| nano as f64 / 1e9),
        memory_bytes: number("Memory"),
    }
}

/// What a person would type for one instance.
fn planned(placement: &DockerPlacement, plan: &Planned) -> Vec<String> {
    let Planned { setup, package, dataset, cache } = plan;
    let program =
        if placement.engine == study::ContainerEngine::Podman { "podman" } else { "docker" };
    let (engine, user) = match (Engine::named(program), ServerUser::find()) {
        (engine, Ok(user)) => (engine, user),
        (_, Err(error)) => return vec![format!("# {error}")],
    };
    let dir = cache.room("instances").join("INSTANCE");
    let snapshot = cache.room("datasets").join(&dataset.hash).join("data");
    let name = name_of(&dir);
    let image = package.image().unwrap_or("ceteris-IMAGE");
    let recipe = Recipe {
        engine,
        placement,
        package,
        user: &user,
        name: &name,
        image,
        dir: &dir,
        journal: "JOURNAL",
        alone: false,
    };
    let mut commands = Vec::new();
    if package.image().is_none() {
        let tar = cache.room("images").join("IMAGE/root.tar");
        commands.push(engine.command(&["import"]).arg(tar).arg(image).quoted());
    }
    let listen = match placement.network {
        ContainerNetwork::Host => Listen::Port(0),
        ContainerNetwork::Bridge | ContainerNetwork::Published => Listen::Everywhere(INNER_PORT),
    };
    commands.push(match settings::render(&setup.server.config, package, &dir, listen) {
        Ok(text) => {
            let text = text.replace("port = 0\n", "port = PORT\n");
            format!("cat > {} <<'EOF'\n{text}EOF", dir.join("my.cnf").display())
        }
        Err(error) => format!("# {error}"),
    });
    let create = recipe.create(&recipe.server()).quoted();
    let fill = |target: &Path| copy_in(engine, &name, &snapshot, target).quoted();
    match placement.storage {
        ContainerStorage::Bind => {
            let copy = Invocation::new("cp").args(["-a", "--reflink=auto", "--sparse=auto"]);
            commands.extend([copy.arg(&snapshot).arg(dir.join("data")).quoted(), create]);
        }
        ContainerStorage::Volume => {
            let volume = create_volume(engine, &name, "JOURNAL").quoted();
            commands.extend([volume, create, fill(&dir.join("data"))]);
        }
        ContainerStorage::Overlay => {
            let link = Invocation::new("ln").args(["-s", IN_LAYER]).arg(dir.join("data"));
            commands.extend([link.quoted(), create, fill(Path::new(IN_LAYER))]);
        }
    }
    commands.push(engine.command(&["start", &name]).quoted());
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_engine_set_is_what_is_allowed() {
        let container = json!({ "HostConfig": {
            "NanoCpus": 500_000_000_u64, "CpusetCpus": "0-1", "Memory": 1_073_741_824_u64 } });
        let expected = Allowance {
            processors: Some([0, 1].into()),
            cpus: Some(0.5),
            memory_bytes: Some(1 << 30),
        };
        assert_eq!(allowance(&container), expected);
        let none = json!({ "HostConfig": { "NanoCpus": 0, "CpusetCpus": "", "Memory": 0 } });
        assert_eq!(allowance(&none), Allowance::default());
    }

    #[test]
    fn what_a_machine_does_not_have_is_told_before_the_engine_is_asked() {
        let facts = EngineFacts { cpus: 2, memory_bytes: 1 << 30, ..EngineFacts::default() };
        let check = |placement: DockerPlacement| {
            let engine = Engine::named("docker");
            check_resources(&placement, engine, &facts).err().map(|error| error.to_string())
        };
        let plain = DockerPlacement::default;
        assert_eq!(check(plain()), None);
        let many = check(DockerPlacement { cpus: Some(4.0), ..plain() });
        assert_eq!(many.as_deref(), Some("placement.docker.cpus is 4 and docker has 2"));
        for memory in [1 << 20, 2 << 30] {
            let refused = check(DockerPlacement { memory: Some(Bytes(memory)), ..plain() });
            assert!(refused.is_some_and(|words| words.contains("from 6MiB to 1GiB")), "{memory}");
        }
        let far = check(DockerPlacement { cpuset: Some("0,8000".to_owned()), ..plain() });
        assert!(far.is_some_and(|words| words.contains("processor 8000")));
    }
}
