//! The KVM placement: a server in a QEMU guest, with the bytes that a server here would have.
//!
//! QEMU is driven by its command line (`kvm/machine.rs`) and its machine protocol (`kvm/qmp.rs`). The
//! guest is built by ceteris (`kvm/guest.rs`): a base system, a disk with the package, a disk with the
//! dataset (`kvm/disk.rs`), and a small one that says what to start. In the guest the server's private
//! directory has the same path as here, so that one `my.cnf` serves both.

mod accelerator;
mod cloud;
mod disk;
mod emulator;
mod guest;
mod image;
mod instance;
mod libraries;
mod libvirt;
mod machine;
mod network;
mod qmp;
mod run;
mod seed;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use study::{Accelerator, GuestNetwork, KvmPlacement, Placement};

use super::host::{empty_dataset, free_port, with_setting};
use super::{Emit, Placer, Planned};
use crate::allowance::Allowance;
use crate::cache::Cache;
use crate::command::{CommandLog, find_program};
use crate::directory::PrivateDirectory;
use crate::error::PlaceError;
use crate::initialise::ADMINISTRATOR;
use crate::instance::{Endpoint, Instance, InstanceSpec};
use crate::settings::{self, Listen, file_settings};
use crate::tools::Tools;
use crate::user::ServerUser;
use disk::DataImage;
use emulator::Emulator;
use guest::{Kept, SERVER};
use instance::{KvmInstance, Patience};
use machine::{Boot, Machine, Reach};
use network::{GUEST_PORT, Network};
use qmp::Qmp;

pub use run::{GuestCommand, GuestSaid, run_in_guest};

/// Ports tried before giving up: between asking for a free one and using it, others may come.
const PORT_ATTEMPTS: u32 = 5;

/// A QEMU that has hung up is about to end: so long it may take.
const GIVING_UP: Duration = Duration::from_secs(5);

/// Guests of QEMU.
pub(super) struct Kvm;

impl Placer for Kvm {
    fn check(&self, spec: &InstanceSpec, tools: Tools) -> Result<(), PlaceError> {
        let placement = knobs(&spec.setup.placement)?;
        image::check_programs()?;
        let user = ServerUser::find()?;
        user.check_reach(&tools.cache.room("guests"))?;
        let config = &spec.setup.server.config;
        settings::render(config, &spec.package, tools.cache.root(), Listen::SocketOnly)?;
        if placement.network == GuestNetwork::Tap && find_program("ip").is_none() {
            return Err(PlaceError::NoProgram {
                program: "ip".to_owned(),
                purpose: "make a guest's tap device".to_owned(),
                debian: "iproute2".to_owned(),
            });
        }
        if let Some(path) = &placement.image {
            cloud::look(path, tools)?;
        }
        // Even a cloud image needs the base system where the accelerator is to be tried.
        let built = placement.image.is_none() || placement.accel == Accelerator::Auto;
        guest::unusable(tools.cache).filter(|_| built).map_or(Ok(()), Err)
    }

    fn start(&self, spec: &InstanceSpec, tools: Tools) -> Result<Box<dyn Instance>, PlaceError> {
        self.check(spec, tools)?;
        start(spec, knobs(&spec.setup.placement)?, tools)
            .map_err(|error| with_setting(error, &spec.setup.server.config))
    }

    fn planned(&self, plan: &Planned) -> Vec<String> {
        let Ok(placement) = knobs(&plan.setup.placement) else { return Vec::new() };
        let dir = plan.cache.room("instances").join("INSTANCE");
        let mut commands =
            vec!["# builds a guest with this package, unless the cache has it".to_owned()];
        if let Some(image) = planned_image(plan) {
            let disk = dir.join(disk::disk_name(placement));
            commands.push(disk::clone_command(&image, &disk, placement).quoted());
        }
        if placement.network == GuestNetwork::Tap {
            commands.push("ip tuntap add dev TAP mode tap".to_owned());
        }
        commands.push(with_planned_machine(plan, placement, |machine| machine.command().quoted()));
        commands
    }

    fn emit(&self, plan: &Planned, form: Emit) -> Result<String, PlaceError> {
        match form {
            Emit::Libvirt => {
                let placement = knobs(&plan.setup.placement)?;
                Ok(with_planned_machine(plan, placement, libvirt::domain))
            }
            Emit::Kubernetes => Err(PlaceError::Other(format!(
                "this placement cannot be written for {}",
                form.name()
            ))),
        }
    }
}

fn knobs(placement: &Placement) -> Result<&KvmPlacement, PlaceError> {
    match placement {
        Placement::Kvm(knobs) => Ok(knobs),
        other => Err(PlaceError::Other(format!("`{}` is no guest", other.name()))),
    }
}

/// The dataset's image where a run would have it; its name needs the snapshot's own hash.
fn planned_image(plan: &Planned) -> Option<PathBuf> {
    let user = ServerUser::find().ok()?;
    let found = crate::dataset::Dataset::find(plan.cache, plan.dataset).ok().flatten();
    let hash = found.map_or_else(|| "DATASET".to_owned(), |dataset| dataset.hash().to_owned());
    Some(disk::image_path(plan.cache, &hash, &user))
}

fn with_planned_machine<T>(
    plan: &Planned,
    placement: &KvmPlacement,
    told: impl FnOnce(&Machine) -> T,
) -> T {
    let dir = plan.cache.room("instances").join("INSTANCE");
    let base = guest::base_dir(plan.cache);
    let (system, cidata) = (dir.join(cloud::DISK), dir.join(cloud::SEED));
    let boot = match placement.image {
        Some(_) => Boot::Image { disk: &system, seed: &cidata },
        None => Boot::Built(&base),
    };
    let server = plan.cache.room("guests").join("SERVER").join(SERVER);
    let qemu = guest::qemu_version(&CommandLog::default()).unwrap_or_default();
    let accelerator = match placement.accel {
        Accelerator::Auto => match accelerator::known(plan.cache, &placement.machine, &qemu) {
            Some(answer) if !answer.kvm => Accelerator::Tcg,
            _ => Accelerator::Kvm,
        },
        asked => asked,
    };
    told(&Machine {
        placement,
        accelerator,
        dir: &dir,
        boot,
        server: Some(&server),
        data: Some(&dir.join(disk::disk_name(placement))),
        reach: match placement.network {
            GuestNetwork::User => Reach::Port("PORT"),
            GuestNetwork::Tap => Reach::Tap("TAP"),
        },
    })
}

/// Boots a guest and returns when its server answers a query.
fn start(
    spec: &InstanceSpec,
    placement: &KvmPlacement,
    tools: Tools,
) -> Result<Box<dyn Instance>, PlaceError> {
    let Tools { cache, journal, log } = tools;
    let config = &spec.setup.server.config;
    let user = ServerUser::find()?;
    let image = placement.image.as_ref().map(|path| cloud::look(path, tools)).transpose()?;
    let system_hash = image.as_ref().map(cloud::CloudImage::hash).transpose()?;
    let base = if image.is_none() { Some(guest::base(tools)?) } else { None };
    let accelerator = accelerator::choose(placement, &user, tools)?;
    // This program is its own observer; found by its process, because its file may have been
    // replaced by a newer build since it was started.
    let observer = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let server = guest::server_disk(&spec.package, &observer, &[], &user, tools)?;
    let dataset = match &spec.dataset {
        Some(dataset) => dataset.clone(),
        None => Arc::new(empty_dataset(
            &spec.package,
            &file_settings(config),
            cache,
            &user,
            journal,
            log,
        )?),
    };
    let data = DataImage::of(&dataset, &user, tools)?;
    let mut attempt = 1;
    loop {
        let directory = PrivateDirectory::make(cache, &user, journal)?;
        let dir = directory.path.clone();
        let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let network = Network::make(placement.network, &id, &user, tools)?;
        let tcp = match network.tap() {
            Some(_) => (network.guest().to_owned(), GUEST_PORT),
            None => ("127.0.0.1".to_owned(), free_port()?),
        };
        let endpoint = Endpoint {
            socket: None,
            tcp: Some(tcp),
            user: ADMINISTRATOR.to_owned(),
            password: dataset.password()?,
        };
        seed::write(spec, &dir, &network, &endpoint.password, &user, tools)?;
        let disk = dir.join(disk::disk_name(placement));
        data.clone_to(&disk, placement, &user, tools)?;
        let (system, cidata) = (dir.join(cloud::DISK), dir.join(cloud::SEED));
        if let Some(image) = &image {
            image.prepare(&dir, &user, tools)?;
        }
        let port = endpoint.tcp.as_ref().map_or(String::new(), |(_, port)| port.to_string());
        let machine = Machine {
            placement,
            accelerator,
            dir: &dir,
            boot: match &base {
                Some(base) => Boot::Built(&base.dir),
                None => Boot::Image { disk: &system, seed: &cidata },
            },
            server: Some(&server.dir.join(SERVER)),
            data: Some(&disk),
            reach: network.tap().map_or(Reach::Port(&port), Reach::Tap),
        };
        let runner = accelerator::runner(placement.network, accelerator, &user);
        crate::machine::before_start(&spec.setup.host, log)?;
        let mut emulator = Emulator::start(machine.command(), &dir, runner, journal, log)?;
        // Connected before the guest runs: to it a port without anybody at the other end is at its
        // end.
        let sockets = emulator
            .connect("q")
            .and_then(|qmp| Ok((qmp, emulator.connect("c")?, emulator.connect("o")?)));
        let (qmp, control, observer) = match sockets {
            Ok(sockets) => sockets,
            Err(error) if attempt < PORT_ATTEMPTS && port_was_taken(&error) => {
                attempt += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        let qmp = Qmp::greet(qmp).map_err(|why| match emulator.await_end(GIVING_UP) {
            Some(status) => emulator.failure(status),
            None => PlaceError::Engine {
                what: "QEMU does not answer".to_owned(),
                lines: vec![why],
                next: None,
            },
        });
        let qmp = match qmp {
            Err(error) if attempt < PORT_ATTEMPTS && port_was_taken(&error) => {
                attempt += 1;
                continue;
            }
            greeted => greeted?,
        };
        let qemu = guest::qemu_version(log)?;
        let mut fingerprint = machine_facts(placement, accelerator, &qemu);
        for (name, value) in [
            ("place.package.name", spec.package.name.clone()),
            ("place.package.hash", spec.package.hash.clone()),
            ("place.package.version", spec.package.version.to_string()),
            ("place.package.binary", spec.package.binary().display().to_string()),
            ("place.user", user.name.clone()),
            ("place.dataset.hash", dataset.hash().to_owned()),
            // The image was made of a clone that had the snapshot's hash, and is what it was then.
            ("place.dataset.clone_hash", dataset.hash().to_owned()),
            ("place.placement.guest", base.as_ref().map_or_else(String::new, Kept::name)),
            ("place.placement.image", system_hash.clone().unwrap_or_else(|| "none".to_owned())),
        ] {
            fingerprint.insert(name.to_owned(), value);
        }
        let mut instance = KvmInstance {
            emulator,
            network,
            directory,
            qmp,
            control,
            observer: Some(observer),
            disk,
            endpoint,
            fingerprint,
            allowance: Allowance {
                processors: None,
                cpus: Some(f64::from(placement.cpus)),
                memory_bytes: Some(placement.memory.0),
            },
            _kept: base.into_iter().chain([server, data.kept()]).collect(),
        };
        instance.pin(placement)?;
        instance.await_ready(patience(accelerator, placement.image.is_some()))?;
        return Ok(Box::new(instance));
    }
}

/// A guest under TCG does everything many times slower, and a cloud image starts a whole system.
fn patience(accelerator: Accelerator, whole_system: bool) -> Patience {
    let (boot, ready) = match accelerator {
        Accelerator::Tcg => (240, 600),
        _ => (60, 120),
    };
    let boot = if whole_system { boot * 5 } else { boot };
    Patience { boot: Duration::from_secs(boot), ready: Duration::from_secs(ready) }
}

fn port_was_taken(error: &PlaceError) -> bool {
    matches!(error, PlaceError::Engine { lines, .. }
        if lines.iter().any(|line| line.contains("Could not set up host forwarding rule")))
}

/// The knobs as they took effect, under `place.placement.`.
fn machine_facts(
    placement: &KvmPlacement,
    accelerator: Accelerator,
    qemu: &str,
) -> BTreeMap<String, String> {
    let disk = &placement.disk;
    let network = match placement.network {
        GuestNetwork::User => "user",
        GuestNetwork::Tap => "tap",
    };
    [
        ("kind", "kvm".to_owned()),
        ("accelerator", machine::accelerator_name(accelerator).to_owned()),
        ("emulator", qemu.to_owned()),
        ("cpus", placement.cpus.to_string()),
        ("memory_bytes", placement.memory.0.to_string()),
        ("numa_nodes", placement.numa_nodes.to_string()),
        ("machine", placement.machine.clone()),
        ("disk.format", machine::format_name(disk.format).to_owned()),
        ("disk.cache", machine::cache_name(disk.cache).to_owned()),
        ("disk.aio", machine::aio_name(disk.aio).to_owned()),
        ("disk.bus", machine::bus_name(disk.bus).to_owned()),
        ("network", network.to_owned()),
        ("pin", placement.pin.clone().unwrap_or_else(|| "none".to_owned())),
    ]
    .into_iter()
    .map(|(name, value)| (format!("place.placement.{name}"), value))
    .collect()
}

/// Whether a guest can run here, and what `accel = "auto"` would take.
pub(super) fn listing(log: &CommandLog) -> Result<String, String> {
    let one_line = |error: PlaceError| error.to_string().lines().collect::<Vec<_>>().join("; ");
    image::check_programs().map_err(one_line)?;
    let qemu = guest::qemu_version(log).map_err(one_line)?;
    let cache = Cache::look().map_err(one_line)?;
    if let Some(error) = guest::unusable(&cache) {
        return Err(one_line(error));
    }
    let machine = KvmPlacement::default().machine;
    let accelerator = match accelerator::known(&cache, &machine, &qemu) {
        Some(answer) if answer.kvm => format!("KVM: {}", answer.why),
        Some(answer) => format!("TCG, whose speed means nothing: {}", answer.why),
        None => "/dev/kvm is there, the first guest will tell whether it works".to_owned(),
    };
    Ok(format!("QEMU {qemu}; {accelerator}"))
}
