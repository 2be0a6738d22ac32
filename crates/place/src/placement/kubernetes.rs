//! Kubernetes placement: a server in a Pod, driven by `kubectl` alone.
//!
//! Each instance has a namespace of its own, labelled with the journal's id and deleted afterwards.
//! `manifests` says what is made, `image` which image runs and how it gets there, `watch` hears of
//! the Pod, `pod` and `facts` read what is heard, `instance` is the server that is up; here the steps
//! stand in their order. The snapshot is sent into the Pod's volume while an init container waits
//! for it, and its hash is taken in there, so that every placement starts on the same bytes.

mod cluster;
mod facts;
mod image;
mod instance;
mod manifests;
mod pod;
mod quantity;
mod start;
mod watch;
mod yaml;

use std::path::Path;

use study::{Connect, KubernetesPlacement, Placement, Setup, VolumeKind, WorkerSeat};

use super::{Emit, Placer, Planned};
use crate::account::opening_statements;
use crate::command::{CommandLog, Invocation, last_lines};
use crate::error::PlaceError;
use crate::instance::{Instance, InstanceSpec};
use crate::package::Package;
use crate::settings::{self, Listen};
use crate::tools::Tools;
use crate::user::ServerUser;
use cluster::{Cluster, Node};
use image::Image;
use manifests::{INSTANCE, PORT, Recipe, account_path, resources};

/// Namespace of what is only planned; a valid one, so that the manifests can be tried as they are.
const EXAMPLE: &str = "ceteris-instance";

/// Pods of a cluster.
pub(super) struct Kubernetes;

/// For `ceteris doctor`: the nodes, or why there are none.
pub(super) fn listing(log: &CommandLog) -> Result<String, String> {
    let everywhere = KubernetesPlacement::default();
    let cluster = Cluster::new(&everywhere, log);
    let found = cluster.check().and_then(|()| cluster.nodes(&everywhere));
    match found.map_err(|error| error.to_string())?.as_slice() {
        [] => Err("the cluster has no node that takes Pods".to_owned()),
        [node] => Ok(format!("one node, {} ({})", node.name(), node.info("kubeletVersion"))),
        nodes => Ok(format!("{} nodes", nodes.len())),
    }
}

/// The part of a setup that is ours.
fn placement(setup: &Setup) -> Result<&KubernetesPlacement, PlaceError> {
    match &setup.placement {
        Placement::Kubernetes(placement) => Ok(placement),
        other => Err(PlaceError::Other(format!("`{}` is another placement", other.name()))),
    }
}

impl Placer for Kubernetes {
    fn check(&self, spec: &InstanceSpec, tools: Tools) -> Result<(), PlaceError> {
        let placement = placement(&spec.setup)?;
        option_file(&spec.setup, &spec.package, true)?;
        ServerUser::find()?;
        if placement.worker == WorkerSeat::Outside && spec.setup.load.connect == Connect::Socket {
            return Err(PlaceError::Engine {
                what: "a load generator outside of the Pod cannot reach the server's socket".into(),
                lines: Vec::new(),
                next: Some(
                    "set load.connect = \"tcp\", or placement.kubernetes.worker = \"inside\""
                        .into(),
                ),
            });
        }
        let cluster = Cluster::new(placement, tools.log);
        cluster.check()?;
        let nodes = cluster.nodes(placement)?;
        image::check(placement, &spec.package, &nodes, tools)?;
        check_room(placement, &nodes)?;
        check_storage(placement, &cluster, &nodes)
    }

    fn start(&self, spec: &InstanceSpec, tools: Tools) -> Result<Box<dyn Instance>, PlaceError> {
        let started = start::start(spec, placement(&spec.setup)?, tools);
        let config = &spec.setup.server.config;
        started
            .map(|instance| Box::new(instance) as Box<dyn Instance>)
            .map_err(|error| super::host::with_setting(error, config))
    }

    fn planned(&self, plan: &Planned) -> Vec<String> {
        let Ok(placement) = placement(plan.setup) else { return Vec::new() };
        let image = planned_image(placement, plan.package);
        let cluster = Cluster::new(placement, &CommandLog::default());
        let inside = |words: &[&str]| {
            let exec = cluster.kubectl().args(["--namespace", EXAMPLE, "exec", "-i"]);
            exec.args([manifests::SERVER, "--container", manifests::DATA, "--"]).args(words)
        };
        let mut commands = Vec::new();
        if image.made {
            commands.push(format!("# an image of {} is given to containerd", plan.package.name));
        }
        commands.push(format!(
            "{}  # as `ceteris plan --emit kubernetes` prints them",
            cluster.kubectl().args(["create", "--filename", "-"]).quoted()
        ));
        if placement.storage.kind != VolumeKind::HostPath {
            let snapshot = plan.cache.room("datasets").join(&plan.dataset.hash).join("data");
            let program = image.program.display().to_string();
            let pack = Invocation::new("ceteris").arg("pack").arg(snapshot).quoted();
            commands.push(format!(
                "{pack} | {}",
                inside(&[&program, "unpack", &data_inside()]).quoted()
            ));
            commands.push(inside(&["sh", "-c", &start::release()]).quoted());
        }
        let delete = cluster.kubectl().args(["delete", "namespace", EXAMPLE]);
        commands.push(format!("{}  # afterwards", delete.quoted()));
        commands
    }

    fn emit(&self, plan: &Planned, form: Emit) -> Result<String, PlaceError> {
        if form != Emit::Kubernetes {
            return Err(PlaceError::Other(format!(
                "a Kubernetes placement cannot be written for {}",
                form.name()
            )));
        }
        let placement = placement(plan.setup)?;
        let image = planned_image(placement, plan.package);
        let recipe = Recipe {
            placement,
            namespace: EXAMPLE,
            journal: "JOURNAL",
            image: &image.name,
            command: &image.command,
            env: &image.env,
            settings: &option_file(plan.setup, plan.package, image.made)?,
            account: &opening_statements(plan.package, "PASSWORD"),
            user: &ServerUser::find()?,
            host_path: (placement.storage.kind == VolumeKind::HostPath)
                .then(|| plan.cache.room("instances").join("INSTANCE")),
            claim_bytes: 0,
        };
        Ok(yaml::documents(&recipe.manifests()))
    }
}

/// Where the data directory is inside.
fn data_inside() -> String {
    format!("{INSTANCE}/data")
}

/// The image as far as it is known before it is made.
fn planned_image(placement: &KubernetesPlacement, package: &Package) -> Image {
    match image::named(placement, package) {
        Some(name) => Image::foreign(name, package),
        None => Image::of_package("localhost/ceteris:PACKAGE", package),
    }
}

/// The `my.cnf` inside. The server's log goes to standard output, from where `kubectl logs` has it
/// also when the Pod's volume cannot be reached any more; a foreign image knows its own base directory.
fn option_file(setup: &Setup, package: &Package, made: bool) -> Result<String, PlaceError> {
    let config = &setup.server.config;
    let listen = Listen::Everywhere(PORT);
    let text = settings::render(config, package, Path::new(INSTANCE), listen)?;
    let kept = |line: &&str| {
        !(line.starts_with("log_error = ") || (!made && line.starts_with("basedir = ")))
    };
    let mut text: String = text.lines().filter(kept).flat_map(|line| [line, "\n"]).collect();
    text.push_str(&format!("init_file = {}\n", account_path()));
    Ok(text)
}

/// Refuses what no node could ever give.
fn check_room(placement: &KubernetesPlacement, nodes: &[Node]) -> Result<(), PlaceError> {
    let Some(_) = nodes.first() else {
        return Err(PlaceError::Engine {
            what: "the cluster has no node that takes Pods".to_owned(),
            lines: Vec::new(),
            next: Some("`kubectl get nodes` shows why".to_owned()),
        });
    };
    let (requests, limits) = resources(placement);
    let asked = [
        ("cpu", requests.cpu.or(limits.cpu), "processors"),
        ("memory", requests.memory.or(limits.memory), "bytes of memory"),
    ];
    for (name, text, unit) in asked {
        let Some(text) = text else { continue };
        let Some(wanted) = quantity::parse(&text) else {
            return Err(PlaceError::Engine {
                what: format!("`{text}` is no quantity of {name}"),
                lines: Vec::new(),
                next: Some("as Kubernetes writes it: \"500m\", \"2\", \"512Mi\"".to_owned()),
            });
        };
        let room = |node: &Node| node.allocatable(name).unwrap_or(f64::INFINITY);
        if nodes.iter().all(|node| room(node) < wanted) {
            let lines = nodes.iter().map(|node| {
                format!("{} has {} {unit} to give, {wanted} are asked for", node.name(), room(node))
            });
            return Err(PlaceError::Engine {
                what: format!("no node has enough {name} for the Pod"),
                lines: lines.collect(),
                next: Some(format!("lower placement.kubernetes.requests.{name} or its limit")),
            });
        }
    }
    Ok(())
}

fn check_storage(
    placement: &KubernetesPlacement,
    cluster: &Cluster,
    nodes: &[Node],
) -> Result<(), PlaceError> {
    match placement.storage.kind {
        VolumeKind::EmptyDir => Ok(()),
        VolumeKind::HostPath => match nodes.iter().find(|node| !node.is_here()) {
            None => Ok(()),
            Some(node) => Err(PlaceError::Engine {
                what: "`storage.kind = \"host_path\"` needs a directory that ceteris can make"
                    .into(),
                lines: vec![format!("the node {} is another machine", node.name())],
                next: Some("use `empty_dir` or `pvc`, or run ceteris on the node".to_owned()),
            }),
        },
        VolumeKind::Pvc => {
            let Some(class) = &placement.storage.class else { return Ok(()) };
            let get = ["get", "storageclass", class, "--output=name"];
            let said = cluster.say(cluster.kubectl().args(get))?;
            // Claims may also be met by volumes that were made by hand under a class of no object.
            if said.fine() || has_volume(cluster, class) {
                return Ok(());
            }
            Err(PlaceError::Engine {
                what: format!("the cluster has no storage class `{class}`"),
                lines: last_lines(&said.stderr, 3),
                next: Some("`kubectl get storageclass` lists them".to_owned()),
            })
        }
    }
}

fn has_volume(cluster: &Cluster, class: &str) -> bool {
    let listed = cluster.ask(&["get", "persistentvolumes", "--output=json"], "no volumes");
    listed.is_ok_and(|listed| {
        let of = |volume: &serde_json::Value| volume["spec"]["storageClassName"] == class;
        listed["items"].as_array().is_some_and(|volumes| volumes.iter().any(of))
    })
}
