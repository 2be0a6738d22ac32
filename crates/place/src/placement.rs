//! The placements: which one a setup asks for, which of them this machine can use, and what bringing
//! one up would take. Each has a file of its own behind [`Placer`]; this one only chooses.

mod docker;
mod external;
mod host;
mod kubernetes;
mod kvm;
#[cfg(test)]
mod mock;

use serde::Serialize;
use study::{ContainerEngine, DockerPlacement, Placement, Setup};

use crate::cache::Cache;
use crate::command::CommandLog;
use crate::dataset::DatasetKey;
use crate::error::PlaceError;
use crate::instance::{Instance, InstanceSpec};
use crate::invocation::quote;
use crate::machine::MachineSettings;
use crate::package::{Package, PackageListing, find_package, resolve_package};
use crate::progress::Progress;
use crate::remote::Remote;
use crate::tools::Tools;
use crate::user::ServerUser;

pub use host::{FINGERPRINT_NAMES, HostInstance};
pub use kvm::{GuestCommand, GuestSaid, run_in_guest};

/// One way to bring servers up.
pub(crate) trait Placer {
    /// Whether an instance could be brought up at all: engine, rights, resources. Asked before
    /// anything of a study is measured, once for each cell; makes nothing.
    ///
    /// # Errors
    /// What is missing, with a next step.
    fn check(&self, spec: &InstanceSpec, tools: Tools) -> Result<(), PlaceError>;

    /// Brings one instance up and returns when it answers a query; nothing is left when it fails.
    ///
    /// # Errors
    /// With the words of whatever refused.
    fn start(&self, spec: &InstanceSpec, tools: Tools) -> Result<Box<dyn Instance>, PlaceError>;

    /// Whether the dataset is loaded into the running instance itself, instead of a snapshot of
    /// it being cloned for each run.
    fn loads_in_place(&self) -> bool {
        false
    }

    /// The commands that bringing an instance up takes, as a person would type them.
    fn planned(&self, plan: &Planned) -> Vec<String>;

    /// The same in the form of another tool.
    ///
    /// # Errors
    /// When this placement has none of that form.
    fn emit(&self, _plan: &Planned, form: Emit) -> Result<String, PlaceError> {
        Err(PlaceError::Other(format!("this placement cannot be written for {}", form.name())))
    }
}

/// What planning knows. `INSTANCE` stands for a private directory and `PORT` for a free port, which
/// only a run has.
pub(crate) struct Planned<'a> {
    /// The condition.
    pub setup: &'a Setup,
    /// The server program, which is here.
    pub package: &'a Package,
    /// The dataset that it would start on.
    pub dataset: &'a DatasetKey,
    /// Where packages, datasets and instances would be.
    pub cache: &'a Cache,
}

/// Other tools' forms of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// A domain of libvirt.
    Libvirt,
    /// Manifests of Kubernetes.
    Kubernetes,
}

impl Emit {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Emit::Libvirt => "libvirt",
            Emit::Kubernetes => "kubernetes",
        }
    }
}

/// One line of `ceteris doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacementListing {
    /// `host`, `docker`, `kvm`, `kubernetes` or `external`.
    pub name: String,
    /// A study on this machine can use it.
    pub usable: bool,
    /// What it would use, or why it cannot be used.
    pub why: String,
}

/// The one place that knows which placement is which.
fn placer(placement: &Placement) -> Result<Box<dyn Placer>, PlaceError> {
    match placement {
        Placement::Host(_) => Ok(Box::new(host::Host)),
        Placement::Docker(docker) => Ok(Box::new(docker::Docker(docker.clone()))),
        Placement::External(external) => Ok(Box::new(external::External(external.clone()))),
        Placement::Kubernetes(_) => Ok(Box::new(kubernetes::Kubernetes)),
        Placement::Kvm(_) => Ok(Box::new(kvm::Kvm)),
    }
}

/// An image is a package only where containers are, and this machine's page cache can be dropped only
/// before the start of a server that is surely on it.
fn check_form(spec: &InstanceSpec) -> Result<(), PlaceError> {
    let placement = &spec.setup.placement;
    let elsewhere = matches!(placement, Placement::Kubernetes(_) | Placement::External(_));
    if spec.setup.host.drop_caches && elsewhere {
        return Err(PlaceError::Engine {
            what: format!("host.drop_caches does nothing for a server in `{}`", placement.name()),
            lines: Vec::new(),
            next: Some("remove it, or place the server in host, docker or kvm".to_owned()),
        });
    }
    let containers =
        matches!(spec.setup.placement, Placement::Docker(_) | Placement::Kubernetes(_));
    match spec.package.image() {
        Some(_) if !containers => {
            Err(PlaceError::NeedsContainer { name: spec.package.name.clone() })
        }
        _ => Ok(()),
    }
}

/// Whether the dataset is loaded into the running target itself, because the placement cannot be
/// given a clone: then no snapshot is made, and `InstanceSpec::dataset` is not looked at.
pub fn loads_in_place(placement: &Placement) -> bool {
    placer(placement).is_ok_and(|placer| placer.loads_in_place())
}

/// Where the dataset of a package is loaded: on this machine, unless the package is an image, whose
/// server only runs in a container.
pub fn loading_placement(package: &Package, placement: &Placement) -> Placement {
    if package.image().is_none() {
        return Placement::default();
    }
    let engine = match placement {
        Placement::Docker(docker) => docker.engine,
        _ => ContainerEngine::Auto,
    };
    Placement::Docker(DockerPlacement { engine, ..DockerPlacement::default() })
}

/// The package of a setup: what `server.package` names, or what an external server says it is.
///
/// # Errors
/// As [`resolve_package`]; those of reaching the external server.
pub fn package_for(
    setup: &Setup,
    cache: &Cache,
    log: &CommandLog,
    progress: &dyn Progress,
) -> Result<Package, PlaceError> {
    match &setup.placement {
        Placement::External(external) => Remote::of(external)?.package(),
        _ => resolve_package(&setup.server.package, cache, log, progress),
    }
}

/// Whether the instances of `spec` could be brought up; makes nothing.
///
/// # Errors
/// Those of the placement.
pub fn check(spec: &InstanceSpec, tools: Tools) -> Result<(), PlaceError> {
    check_form(spec)?;
    placer(&spec.setup.placement)?.check(spec, tools)
}

/// Brings an instance up where its setup says.
///
/// # Errors
/// Those of the placement.
pub fn start(spec: &InstanceSpec, tools: Tools) -> Result<Box<dyn Instance>, PlaceError> {
    check_form(spec)?;
    placer(&spec.setup.placement)?.start(spec, tools)
}

/// Brings up every instance that the setup of `spec` asks for, in order; none is left when one
/// refuses.
///
/// # Errors
/// Those of the placement, with the instance's number where there are several.
pub fn start_all(spec: &InstanceSpec, tools: Tools) -> Result<Vec<Box<dyn Instance>>, PlaceError> {
    check_form(spec)?;
    start_each(&*placer(&spec.setup.placement)?, spec, tools)
}

fn start_each(
    placer: &dyn Placer,
    spec: &InstanceSpec,
    tools: Tools,
) -> Result<Vec<Box<dyn Instance>>, PlaceError> {
    let count = spec.setup.placement.instances();
    let mut instances = Vec::new();
    for ordinal in 0..count {
        let spec = InstanceSpec { ordinal, ..spec.clone() };
        match placer.start(&spec, tools) {
            Ok(instance) => instances.push(instance),
            Err(error) => {
                for instance in instances {
                    // The reason why the next one did not come up is the better story.
                    let _ = instance.stop();
                }
                return Err(match count {
                    1 => error,
                    _ => PlaceError::Instance { ordinal, count, error: Box::new(error) },
                });
            }
        }
    }
    Ok(instances)
}

/// Every placement of the design. Those that this version lacks say so, and whether their engine is
/// here.
pub fn list_placements(packages: &[PackageListing], log: &CommandLog) -> Vec<PlacementListing> {
    let usable: Vec<&str> = packages.iter().filter(|p| p.usable).map(|p| p.name.as_str()).collect();
    let host = match (ServerUser::find(), usable.is_empty()) {
        (Err(error), _) => Err(error.to_string()),
        (Ok(_), true) => Err("no server package can be used, see below".to_owned()),
        (Ok(user), false) => {
            Ok(format!("servers run as the user {}, {}", user.name, host::limits()))
        }
    };
    let listed = [
        ("host", host),
        ("docker", docker::listing(log)),
        ("kvm", kvm::listing(log)),
        ("kubernetes", kubernetes::listing(log)),
        ("external", Ok("any server that placement.external.dsn reaches".to_owned())),
    ];
    listed
        .into_iter()
        .map(|(name, found)| PlacementListing {
            name: name.to_owned(),
            usable: found.is_ok(),
            why: found.unwrap_or_else(|why| why),
        })
        .collect()
}

/// The commands that a run of `setup` takes, as a person would type them. `INSTANCE` stands for
/// the private directory and `PORT` for a free port, which only a run has. Nothing is fetched,
/// unpacked or written: of a package that is not here yet only its fetching is told.
pub fn planned_commands(setup: &Setup, data: &str, seed: u64, cache: &Cache) -> Vec<String> {
    if let Placement::External(external) = &setup.placement {
        return external::planned(external, &setup.server);
    }
    let name = &setup.server.package;
    let package = match find_package(name, cache, &CommandLog::default()) {
        Ok(Some(package)) => package,
        Ok(None) => return vec![format!("ceteris packages fetch {}", quote(name.as_ref()))],
        Err(error) => return vec![format!("# {name}: {error}")],
    };
    let dataset = DatasetKey::new(&package, setup, data, seed);
    let plan = Planned { setup, package: &package, dataset: &dataset, cache };
    let mut commands = MachineSettings::planned(&setup.host, &cache.room("instances"));
    commands.extend(match placer(&setup.placement) {
        Ok(placer) => placer.planned(&plan),
        Err(error) => vec![format!("# {error}")],
    });
    commands.push("ceteris worker  # told on standard input what to drive".to_owned());
    commands
}

/// A run's placement in the form of another tool.
///
/// # Errors
/// When the package is not here yet, or the placement has no such form.
pub fn emit(
    setup: &Setup,
    data: &str,
    seed: u64,
    cache: &Cache,
    form: Emit,
) -> Result<String, PlaceError> {
    let name = &setup.server.package;
    let Some(package) = find_package(name, cache, &CommandLog::default())? else {
        return Err(PlaceError::Other(format!("the package `{name}` is not here yet")));
    };
    let dataset = DatasetKey::new(&package, setup, data, seed);
    placer(&setup.placement)?
        .emit(&Planned { setup, package: &package, dataset: &dataset, cache }, form)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn planning_with_an_archive_unpacks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache")).unwrap();
        let archive = dir.path().join("my server.tar.gz");
        std::fs::write(&archive, b"never read as an archive").unwrap();
        let text = "title = \"t\"\n[workload.oltp_read_only]\n\
                    [[question]]\nname = \"q\"\nvary = \"load.connections\"\nlevels = [1, 2]\n";
        let package = format!("server.package={:?}", archive.display().to_string());
        let study = study::Study::parse("s.toml", text, &[package]).unwrap();
        let setup = &study.plan().questions[0].cells[0].setup;
        let commands = planned_commands(setup, "data", 1, &cache);
        assert_eq!(commands, [format!("ceteris packages fetch '{}'", archive.display())]);
        for room in ["packages", "datasets", "images", "instances"] {
            assert_eq!(std::fs::read_dir(cache.room(room)).unwrap().count(), 0, "{room}");
        }
    }
}
