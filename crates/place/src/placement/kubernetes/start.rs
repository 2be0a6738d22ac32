//! Bringing a server up in a Pod: image, namespace, manifests, dataset, server, first query.
//!
//! Whatever fails on the way, the namespace and the directory go when the half-made instance is
//! dropped, and the error carries the cluster's own words: the scheduler's, the kubelet's, the
//! server's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use study::{KubernetesPlacement, QosClass, Reach, VolumeKind, WorkerSeat};

use super::cluster::{Cluster, Node};
use super::image::{self, Image};
use super::instance::{KubernetesInstance, Namespace, server_log};
use super::manifests::{DATA, INSTANCE, PORT, Recipe, SERVER};
use super::pod::{self, text};
use super::watch::PodWatch;
use super::{data_inside, facts, option_file, quantity};
use crate::account::opening_statements;
use crate::cache::short_id;
use crate::command::{full_disk, missing_library};
use crate::dataset::Dataset;
use crate::directory::PrivateDirectory;
use crate::error::PlaceError;
use crate::initialise::ADMINISTRATOR;
use crate::instance::{Endpoint, InstanceSpec};
use crate::journal::NAME_PREFIX;
use crate::parcel;
use crate::placement::host::empty_dataset;
use crate::server::{READY_LIMIT, connect, error_lines};
use crate::settings::file_settings;
use crate::tools::Tools;
use crate::tree::TreeHash;
use crate::user::ServerUser;

/// How long a Pod may take until its containers run: its image may have to be pulled.
const POD_LIMIT: Duration = Duration::from_secs(300);
/// How long the scheduler may find no node: somebody else's Pod may just be going.
const SCHEDULE_LIMIT: Duration = Duration::from_secs(15);
/// How often the warnings of a Pod that does not come up are asked for.
const WARNINGS_EVERY: Duration = Duration::from_secs(10);

/// Brings an instance up and returns when it answers a query.
pub(super) fn start(
    spec: &InstanceSpec,
    placement: &KubernetesPlacement,
    tools: Tools,
) -> Result<KubernetesInstance, PlaceError> {
    let user = ServerUser::find()?;
    // Refused before anything is made.
    option_file(&spec.setup, &spec.package, true)?;
    let dataset = dataset(spec, &user, tools)?;
    let password = dataset.password()?;
    let cluster = Cluster::pinned(placement, tools.log);
    let image = image::provide(&cluster, placement, &spec.package, tools)?;

    // On a volume that is a directory here, the snapshot is cloned as on a host.
    let directory = match placement.storage.kind {
        VolumeKind::HostPath => Some(PrivateDirectory::make(tools.cache, &user, tools.journal)?),
        VolumeKind::EmptyDir | VolumeKind::Pvc => None,
    };
    let host_path = directory.as_ref().map(|made| made.path.clone());
    let data_dir = host_path.as_deref().map(|path| path.join("data"));
    let mut clone = match &data_dir {
        Some(data_dir) => Some(dataset.clone_to(data_dir, &user, tools.log)?),
        None => None,
    };
    if let Some(directory) = host_path.as_deref().filter(|_| image.sends_program) {
        copy_program(&directory.join("ceteris"))?;
    }
    let settings = option_file(&spec.setup, &spec.package, image.made)?;
    let name = format!("{NAME_PREFIX}{}", short_id()?);
    let namespace = Namespace::begin(&cluster, name, tools.journal)?;
    let recipe = |account: &str| {
        Recipe {
            placement,
            namespace: &namespace.name,
            journal: &tools.journal.marker(),
            image: &image.name,
            command: &image.command,
            env: &image.env,
            settings: &settings,
            account,
            user: &user,
            host_path: host_path.clone(),
            claim_bytes: dataset.bytes(),
        }
        .manifests()
    };
    // What is logged can be typed again, but for the password.
    let shown = list(recipe(&opening_statements(&spec.package, "PASSWORD")));
    let sent = list(recipe(&opening_statements(&spec.package, &password)));
    let shown = format!("echo {}", crate::invocation::quote(shown.to_string().as_ref()));
    let create = cluster.kubectl().args(["create", "--filename", "-"]);
    let create = create.fed(shown, move |pipe| pipe.write_all(sent.to_string().as_bytes()));
    cluster.run(create, "the cluster does not take the Pod")?;

    let watch = PodWatch::start(&cluster, &namespace.name)?;
    let mut coming = Coming { cluster, namespace, watch, placement };
    if clone.is_none() {
        let pod = coming.until_runs(DATA)?;
        clone = Some(coming.send(&pod, &image, &dataset)?);
    }
    let pod = coming.until_runs(SERVER)?;
    if let Some(asked) = placement.qos {
        check_class(asked, &pod)?;
    }
    let node = coming.node(&pod);
    let tcp = coming.address(&pod, node.as_ref())?;
    let endpoint =
        Endpoint { socket: None, tcp: Some(tcp), user: ADMINISTRATOR.to_owned(), password };
    let pod = coming.until_answers(&endpoint)?;
    let Coming { cluster, namespace, watch, .. } = coming;

    let kubelet = cluster.kubelet(text(&pod, "/spec/nodeName"));
    let mut fingerprint = facts::fingerprint(placement, &pod, node.as_ref(), kubelet.as_ref());
    fingerprint.extend(
        [
            ("place.package.name", spec.package.name.clone()),
            ("place.package.hash", spec.package.hash.clone()),
            ("place.package.version", spec.package.version.to_string()),
            ("place.package.binary", spec.package.binary().display().to_string()),
            ("place.user", user.name.clone()),
            ("place.dataset.hash", dataset.hash().to_owned()),
            ("place.dataset.clone_hash", clone.map(|clone| clone.hash).unwrap_or_default()),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let inside = placement.worker == WorkerSeat::Inside;
    let pid = facts::process(&pod);
    let through = |pid: u32| PathBuf::from(format!("/proc/{pid}/root{INSTANCE}/data"));
    Ok(KubernetesInstance {
        watch,
        namespace,
        directory,
        cluster,
        pid,
        pod,
        endpoint,
        worker: inside.then_some(image.program),
        storage: data_dir.clone().or(pid.map(through)),
        data_dir,
        fingerprint,
    })
}

/// The snapshot to start on: the study's, or an empty data directory.
fn dataset(
    spec: &InstanceSpec,
    user: &ServerUser,
    Tools { cache, journal, log }: Tools,
) -> Result<Arc<Dataset>, PlaceError> {
    if let Some(dataset) = &spec.dataset {
        return Ok(Arc::clone(dataset));
    }
    if spec.package.image().is_some() {
        return Err(PlaceError::Other(
            "a Pod of a named image starts on a dataset that was loaded elsewhere, and there is none"
                .to_owned(),
        ));
    }
    let settings: BTreeMap<_, _> = file_settings(&spec.setup.server.config);
    empty_dataset(&spec.package, &settings, cache, user, journal, log).map(Arc::new)
}

/// Everything in one, so that it is one command.
fn list(items: Vec<Value>) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

fn copy_program(to: &Path) -> Result<(), PlaceError> {
    let program = std::env::current_exe().map_err(PlaceError::io("find", to))?;
    std::fs::copy(&program, to).map(drop).map_err(PlaceError::io("copy ceteris to", to))
}

/// What lets the init container end.
pub(super) fn release() -> String {
    format!("mkdir -p {INSTANCE}/tmp && : >{INSTANCE}/ready")
}

/// Kubernetes derives the class itself; what it made of the Pod must be what was asked for.
fn check_class(asked: QosClass, pod: &Value) -> Result<(), PlaceError> {
    let (asked, given) = (facts::class_name(asked), text(pod, "/status/qosClass"));
    if asked == given {
        return Ok(());
    }
    Err(PlaceError::Engine {
        what: format!("the Pod is {given} and not {asked}"),
        lines: Vec::new(),
        next: Some("see placement.kubernetes.requests and limits".to_owned()),
    })
}

/// An instance on its way up.
struct Coming<'a> {
    cluster: Cluster,
    watch: PodWatch,
    namespace: Namespace,
    placement: &'a KubernetesPlacement,
}

impl Coming<'_> {
    /// Waits until a container runs.
    fn until_runs(&mut self, container: &str) -> Result<Value, PlaceError> {
        let start = Instant::now();
        let mut homeless: Option<Instant> = None;
        let mut warned = Instant::now();
        loop {
            let pod = self.watch.now().map_err(|why| self.failed(&why))?;
            if let Some(pod) = pod {
                if pod::runs(&pod, container) {
                    return Ok(pod);
                }
                self.check(&pod, container)?;
                match pod::unschedulable(&pod) {
                    None => homeless = None,
                    Some(message) => {
                        let since = homeless.get_or_insert_with(Instant::now);
                        if since.elapsed() > SCHEDULE_LIMIT {
                            return Err(self.unscheduled(&pod, message));
                        }
                    }
                }
            }
            if warned.elapsed() > WARNINGS_EVERY {
                warned = Instant::now();
                self.check_warnings()?;
            }
            if start.elapsed() > POD_LIMIT {
                return Err(self.failed(&format!("it does not run after {POD_LIMIT:?}")));
            }
            self.watch.wait(Duration::from_millis(500));
        }
    }

    /// What a Pod cannot recover from.
    fn check(&self, pod: &Value, container: &str) -> Result<(), PlaceError> {
        if let Some(stuck) = pod::stuck(pod) {
            let about_image = stuck.reason.contains("Image");
            return Err(PlaceError::Engine {
                what: format!(
                    "the container `{}` cannot start ({})",
                    stuck.container, stuck.reason
                ),
                lines: vec![stuck.message],
                next: about_image.then(|| {
                    "is the image on the node, or in a registry that the node reaches? see \
                     placement.kubernetes.image"
                        .to_owned()
                }),
            });
        }
        if container == SERVER && pod::end(pod, SERVER).is_some() {
            return Err(self.refused(pod));
        }
        match pod::end(pod, DATA) {
            Some(end) if end.exit != 0 => Err(self.failed(&format!(
                "the container that waits for the dataset ended ({}, exit {})",
                end.reason, end.exit
            ))),
            _ => pod::lost(pod).map_or(Ok(()), |why| Err(self.failed(&why))),
        }
    }

    /// The server ended instead of answering; its own words say why.
    fn refused(&self, pod: &Value) -> PlaceError {
        let words = server_log(&self.cluster, &self.namespace, pod);
        if let Some((program, library)) = missing_library(&words) {
            return PlaceError::MissingLibrary { program, library };
        }
        if full_disk(&words) {
            return PlaceError::DiskFull { path: INSTANCE.into() };
        }
        let (status, mut lines) = match pod::end(pod, SERVER) {
            Some(end) if end.reason == "OOMKilled" => {
                let described = end.describe(facts::memory_limit(pod));
                (format!("exit {}", end.exit), vec![described])
            }
            Some(end) => (format!("exit {}", end.exit), vec![]),
            None => ("unknown".to_owned(), vec![]),
        };
        lines.extend(error_lines(&words));
        PlaceError::Refused { status, lines, setting: None }
    }

    /// The Pod did not come up; the warnings of its namespace say why, if anybody does.
    fn failed(&self, why: &str) -> PlaceError {
        let mut lines = vec![why.to_owned()];
        lines.extend(self.cluster.warnings(&self.namespace.name));
        PlaceError::Engine { what: "the Pod did not come up".to_owned(), lines, next: None }
    }

    /// Warnings that no waiting will end.
    fn check_warnings(&self) -> Result<(), PlaceError> {
        let warnings = self.cluster.warnings(&self.namespace.name);
        let hopeless = ["hostPath type check failed", "FailedCreate:", "ProvisioningFailed:"];
        let found = |line: &&String| hopeless.iter().any(|words| line.contains(words));
        match warnings.iter().find(found) {
            Some(line) => Err(PlaceError::Engine {
                what: "the Pod did not come up".to_owned(),
                lines: vec![line.clone()],
                next: None,
            }),
            None => Ok(()),
        }
    }

    /// No node had room: which resource was short, what was asked for and what there is.
    fn unscheduled(&self, pod: &Value, message: &str) -> PlaceError {
        let short = pod::short_resources(message);
        let mut lines = vec![message.to_owned()];
        let nodes = self.cluster.nodes(self.placement).unwrap_or_default();
        for resource in &short {
            // As the scheduler counts: the sum over the containers, or the largest init container.
            let of = |list: &str| {
                pod["spec"][list].as_array().cloned().unwrap_or_default().into_iter().map(
                    |container| {
                        let place = format!("/resources/requests/{resource}");
                        quantity::parse(text(&container, &place)).unwrap_or(0.0)
                    },
                )
            };
            let asked = of("containers").sum::<f64>().max(of("initContainers").fold(0.0, f64::max));
            for node in &nodes {
                if let Some(room) = node.allocatable(resource) {
                    let name = node.name();
                    lines.push(format!(
                        "{resource}: {asked} asked for, {room} is all that {name} has to give"
                    ));
                }
            }
        }
        let what = match short.as_slice() {
            [] => "the Pod was not scheduled".to_owned(),
            short => format!("the Pod was not scheduled: not enough {}", short.join(" and ")),
        };
        let next = match short.first() {
            Some(resource) => {
                format!("lower placement.kubernetes.requests.{resource} or its limit")
            }
            None => "`kubectl describe nodes` shows what they refuse".to_owned(),
        };
        PlaceError::Engine { what, lines, next: Some(next) }
    }

    /// Sends the snapshot into the waiting container, compares what arrived, and lets it end.
    fn send(&self, pod: &Value, image: &Image, dataset: &Dataset) -> Result<TreeHash, PlaceError> {
        let exec = || {
            let exec = self.namespace.kubectl().args(["exec", "-i", text(pod, "/metadata/name")]);
            exec.args(["--container", DATA, "--"])
        };
        let what = "the dataset cannot be sent into the Pod";
        let program = image.program.display().to_string();
        if image.sends_program {
            let own =
                std::env::current_exe().map_err(PlaceError::io("find", Path::new("ceteris")))?;
            let script = format!("cat >{program} && chmod 0755 {program}");
            self.cluster.run(exec().args(["sh", "-c", &script]).stdin(&own), what)?;
        }
        let files = dataset.files();
        let pack = crate::command::Invocation::new("ceteris").arg("pack").arg(&files).quoted();
        let unpack = exec().args([program.as_str(), "unpack", &data_inside()]);
        let unpack =
            unpack.fed(pack, move |pipe| parcel::pack(&files, pipe).map_err(std::io::Error::other));
        let said = self.cluster.run(unpack, what)?;
        let hash = said.stdout.trim().to_owned();
        let arrived = dataset.check_copy(TreeHash { hash, bytes: dataset.bytes() })?;
        self.cluster.run(exec().args(["sh", "-c", &release()]), what)?;
        Ok(arrived)
    }

    /// The node that the Pod came to, where we may look at it.
    fn node(&self, pod: &Value) -> Option<Node> {
        let name = text(pod, "/spec/nodeName");
        self.cluster.ask(&["get", "node", name, "--output=json"], "the node").ok().map(Node)
    }

    /// How the server is reached from here.
    fn address(&self, pod: &Value, node: Option<&Node>) -> Result<(String, u16), PlaceError> {
        match self.placement.reach {
            Reach::PodIp => Ok((text(pod, "/status/podIP").to_owned(), PORT)),
            Reach::NodePort => {
                let words = ["--namespace", &self.namespace.name, "get", "service", SERVER];
                let words = [words.as_slice(), &["--output=json"]].concat();
                let service = self.cluster.ask(&words, "the Service cannot be read")?;
                let port = service["spec"]["ports"][0]["nodePort"].as_u64();
                let port = port.and_then(|port| u16::try_from(port).ok());
                node.and_then(Node::address)
                    .zip(port)
                    .ok_or_else(|| self.failed("the Service has no port on a node with an address"))
            }
        }
    }

    /// Waits until a query is answered; tells the Pod as it is then.
    fn until_answers(&mut self, endpoint: &Endpoint) -> Result<Value, PlaceError> {
        let start = Instant::now();
        loop {
            let pod = self.watch.now().map_err(|why| self.failed(&why))?.unwrap_or_default();
            self.check(&pod, SERVER)?;
            let last = match connect(endpoint) {
                Ok(_) => return Ok(pod),
                Err(error) => error,
            };
            if start.elapsed() > READY_LIMIT {
                return Err(self.silent(endpoint, &pod, &last));
            }
            self.watch.wait(Duration::from_millis(50));
        }
    }

    /// The server runs and does not answer, or nothing leads from here to there.
    fn silent(&self, endpoint: &Endpoint, pod: &Value, last: &mysql::Error) -> PlaceError {
        let mut lines = error_lines(&server_log(&self.cluster, &self.namespace, pod));
        lines.push(last.to_string());
        if let mysql::Error::MySqlError(_) = last {
            return PlaceError::NotReady { seconds: READY_LIMIT.as_secs(), lines };
        }
        let at = endpoint.tcp.as_ref().map(|(host, port)| format!("{host}:{port}"));
        PlaceError::Engine {
            what: format!("the Pod runs, but nothing answers at {}", at.unwrap_or_default()),
            lines,
            next: Some(
                "can this machine reach Pods? else set placement.kubernetes.reach = \"node_port\", \
                 or run ceteris on a node"
                    .to_owned(),
            ),
        }
    }
}
