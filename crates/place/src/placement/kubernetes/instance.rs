//! A server in a Pod that is up: how it is reached, whether it lives, and how it goes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::cluster::Cluster;
use super::facts;
use super::manifests::{INSTANCE, SERVER, WORKER};
use super::pod::{end, lost, text};
use super::watch::PodWatch;
use crate::allowance::Allowance;
use crate::directory::PrivateDirectory;
use crate::error::PlaceError;
use crate::instance::{Endpoint, Instance};
use crate::journal::{Journal, Made};
use crate::server::{STOP_LIMIT, error_lines, socket_of};

/// Lines of the server's log that are asked for.
const LOG_LINES: &str = "--tail=5000";

/// A journalled namespace and all in it, deleted when dropped.
pub(super) struct Namespace {
    pub name: String,
    cluster: Cluster,
    journal: Journal,
    removed: bool,
}

impl Namespace {
    /// Registers it; the manifests make it.
    pub fn begin(cluster: &Cluster, name: String, journal: &Journal) -> Result<Self, PlaceError> {
        let namespace =
            Namespace { name, cluster: cluster.clone(), journal: journal.clone(), removed: false };
        journal.begin(&namespace.made())?;
        Ok(namespace)
    }

    fn made(&self) -> Made {
        Made::Namespace {
            config: std::env::var("KUBECONFIG").ok(),
            context: self.cluster.context.clone(),
            name: self.name.clone(),
        }
    }

    /// `kubectl` in it.
    pub fn kubectl(&self) -> crate::command::Invocation {
        self.cluster.kubectl().args(["--namespace", &self.name])
    }

    /// Tried once: what cannot be deleted stays in the journal, where `ceteris doctor` finds it.
    pub fn remove(&mut self) -> Result<(), PlaceError> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(());
        }
        let delete = self.cluster.kubectl().args(["delete", "namespace", &self.name]);
        let delete = delete.args(["--ignore-not-found", "--wait=true", "--timeout=120s"]);
        self.cluster.run(delete, &format!("the namespace {} is left", self.name))?;
        self.journal.end(&self.made())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.remove();
    }
}

/// A server in a Pod.
pub(super) struct KubernetesInstance {
    // Dropped in this order: the watch, the Pod with its namespace, the directory on its node.
    pub watch: PodWatch,
    pub namespace: Namespace,
    pub directory: Option<PrivateDirectory>,
    pub cluster: Cluster,
    /// The Pod when it was up.
    pub pod: Value,
    pub endpoint: Endpoint,
    /// Where ceteris is inside, if the worker runs there.
    pub worker: Option<PathBuf>,
    pub pid: Option<u32>,
    pub data_dir: Option<PathBuf>,
    /// The data directory as this machine sees it, where the node is this machine.
    pub storage: Option<PathBuf>,
    pub fingerprint: BTreeMap<String, String>,
}

impl KubernetesInstance {
    fn pod_name(&self) -> &str {
        text(&self.pod, "/metadata/name")
    }

    /// Tells the server to end and waits until it has; says how it did.
    fn end_server(&mut self) -> Result<(), PlaceError> {
        let not_stopped = |status: String, lines| Err(PlaceError::NotStopped { status, lines });
        if let Err(why) = self.alive() {
            let mut said = why.lines().map(str::to_owned);
            let status = said.next().unwrap_or_default();
            return not_stopped(status, said.collect());
        }
        // The server is the first process of its container.
        let told = self.namespace.kubectl().args(["exec", self.pod_name(), "--container", SERVER]);
        self.cluster.say(told.args(["--", "sh", "-c", "kill -TERM 1"]))?;
        let start = Instant::now();
        loop {
            let pod = match self.watch.now() {
                Ok(pod) => pod.unwrap_or_default(),
                Err(why) => return not_stopped(why, Vec::new()),
            };
            match end(&pod, SERVER) {
                Some(end) if end.exit == 0 => return Ok(()),
                Some(end) => {
                    let lines = error_lines(&self.error_log());
                    return not_stopped(format!("{} ({})", end.exit, end.reason), lines);
                }
                None if start.elapsed() > STOP_LIMIT => {
                    return not_stopped("killed".to_owned(), error_lines(&self.error_log()));
                }
                None => self.watch.wait(Duration::from_millis(500)),
            }
        }
    }
}

/// What the server of a Pod has said; also one that was started again since.
pub(super) fn server_log(cluster: &Cluster, namespace: &Namespace, pod: &Value) -> String {
    let logs = namespace.kubectl().args(["logs", text(pod, "/metadata/name")]);
    let mut logs = logs.args(["--container", SERVER, LOG_LINES]);
    let restarts = super::pod::container(pod, SERVER).map(|one| &one["restartCount"]);
    if restarts.and_then(Value::as_u64).unwrap_or(0) > 0 {
        logs = logs.arg("--previous");
    }
    cluster.say(logs).map(|said| said.stdout).unwrap_or_default()
}

impl Instance for KubernetesInstance {
    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn worker_endpoint(&self) -> Endpoint {
        let mut endpoint = self.endpoint();
        if self.worker.is_some() {
            endpoint.socket = Some(socket_of(Path::new(INSTANCE)));
            endpoint.tcp = Some(("127.0.0.1".to_owned(), super::manifests::PORT));
        }
        endpoint
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }

    fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    fn storage(&self) -> Option<&Path> {
        self.storage.as_deref()
    }

    fn dir(&self) -> &Path {
        Path::new(INSTANCE)
    }

    fn fingerprint(&self) -> BTreeMap<String, String> {
        self.fingerprint.clone()
    }

    fn allowance(&self) -> Allowance {
        facts::allowance(&self.pod)
    }

    fn worker_prefix(&self) -> Vec<String> {
        let Some(program) = &self.worker else { return Vec::new() };
        let mut words = vec!["kubectl".to_owned()];
        if let Some(context) = &self.cluster.context {
            words.extend(["--context".to_owned(), context.clone()]);
        }
        words.extend(
            ["--namespace", &self.namespace.name, "exec", "-i", self.pod_name()].map(str::to_owned),
        );
        words.extend(["--container", WORKER, "--"].map(str::to_owned));
        words.push(program.display().to_string());
        words
    }

    fn alive(&mut self) -> Result<(), String> {
        // Before the first report nothing is known that would speak against it.
        let Some(pod) = self.watch.now()? else { return Ok(()) };
        if let Some(ended) = end(&pod, SERVER) {
            let mut said = ended.describe(facts::memory_limit(&pod));
            for line in error_lines(&server_log(&self.cluster, &self.namespace, &pod)) {
                said.push_str("\n  ");
                said.push_str(&line);
            }
            return Err(said);
        }
        lost(&pod).map_or(Ok(()), Err)
    }

    fn error_log(&self) -> String {
        server_log(&self.cluster, &self.namespace, &self.pod)
    }

    fn stop(mut self: Box<Self>) -> Result<(), PlaceError> {
        let ended = self.end_server();
        self.namespace.remove()?;
        if let Some(directory) = &mut self.directory {
            directory.remove()?;
        }
        ended
    }
}
