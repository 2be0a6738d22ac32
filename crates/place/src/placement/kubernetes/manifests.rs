//! What a Pod with a server is made of, as `kubectl create` takes it. Nothing here asks a cluster.
//!
//! A namespace of its own holds everything under fixed names, so that deleting it deletes everything.
//! The Pod has one volume, `/instance`, which is laid out like an instance's directory on a host. It
//! is filled before the server starts: the init container `data` waits for the conductor to send the
//! snapshot. No container probes the server, because a probe is a query that nobody asked for.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use study::{Controller, KubernetesPlacement, QosClass, Reach, Resources, VolumeKind, WorkerSeat};

use super::quantity;
use crate::journal::LABEL;
use crate::user::ServerUser;

/// The instance's directory inside.
pub(super) const INSTANCE: &str = "/instance";
/// Port of the server inside.
pub(super) const PORT: u16 = 3306;
/// Name of the server's container, of its Pod or controller, and of the Service.
pub(super) const SERVER: &str = "server";
/// Name of the container in which the load generator runs.
pub(super) const WORKER: &str = "worker";
/// Name of the init container that the dataset is sent to.
pub(super) const DATA: &str = "data";
/// Label of the server's Pod and its value.
pub(super) const POD_LABEL: (&str, &str) = ("ceteris.role", "server");
/// Where the `my.cnf` is mounted.
const SETTINGS: &str = "/etc/ceteris";
/// Where the statements that open the account are mounted.
const ACCOUNT: &str = "/etc/ceteris-account";
/// Seconds that a container may take to end when its Pod is deleted. The server is told to end
/// before that and waited for; what it has not written by then is thrown away anyway.
const GRACE_SECONDS: u32 = 1;

/// All that goes into the manifests.
pub(super) struct Recipe<'a> {
    pub placement: &'a KubernetesPlacement,
    pub namespace: &'a str,
    /// The journal's id.
    pub journal: &'a str,
    pub image: &'a str,
    /// The words that start the server, but for its options.
    pub command: &'a [String],
    pub env: &'a [(String, String)],
    /// The `my.cnf`.
    pub settings: &'a str,
    /// The statements that the server runs at its start.
    pub account: &'a str,
    pub user: &'a ServerUser,
    /// With `host_path`: the directory of the node, which holds the dataset already.
    pub host_path: Option<PathBuf>,
    /// With `pvc`: its size where the study gives none.
    pub claim_bytes: u64,
}

/// The option file inside.
pub(super) fn settings_path() -> String {
    format!("{SETTINGS}/my.cnf")
}

/// The statements' file inside.
pub(super) fn account_path() -> String {
    format!("{ACCOUNT}/init.sql")
}

/// Requests and limits of each container. `guaranteed` requests its limits; `burstable` requests
/// half of a limit for which the study has no request, because Kubernetes would take the whole one
/// and call the Pod guaranteed.
pub(super) fn resources(placement: &KubernetesPlacement) -> (Resources, Resources) {
    let limits = placement.limits.clone();
    let requests = match placement.qos {
        Some(QosClass::Guaranteed) => limits.clone(),
        Some(QosClass::Burstable) => {
            let given = &placement.requests;
            let half = |given: &Option<String>, limit: &Option<String>, cpu| {
                given.clone().or_else(|| quantity::half(limit.as_deref()?, cpu))
            };
            Resources {
                cpu: half(&given.cpu, &limits.cpu, true),
                memory: half(&given.memory, &limits.memory, false),
            }
        }
        Some(QosClass::BestEffort) | None => placement.requests.clone(),
    };
    (requests, limits)
}

impl Recipe<'_> {
    /// The namespace first, then in the order in which one needs the other.
    pub fn manifests(&self) -> Vec<Value> {
        let mut all = vec![
            json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": self.namespace, "labels": { LABEL: self.journal } },
            }),
            // The default account comes into being some time after the namespace, and Pods are
            // refused until then.
            self.object("ServiceAccount", json!({ "automountServiceAccountToken": false })),
            self.object("ConfigMap", json!({ "data": { "my.cnf": self.settings } })),
            self.object("Secret", json!({ "stringData": { "init.sql": self.account } })),
        ];
        let PodClaim { kind, class, size } = self.claim();
        if kind == VolumeKind::Pvc {
            let mut spec = json!({
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": size } },
            });
            if let Some(class) = class {
                spec["storageClassName"] = json!(class);
            }
            all.push(self.object("PersistentVolumeClaim", json!({ "spec": spec })));
        }
        let controlled = self.placement.controller != Controller::Pod;
        if controlled || self.placement.reach == Reach::NodePort {
            let kind =
                if self.placement.reach == Reach::NodePort { "NodePort" } else { "ClusterIP" };
            all.push(self.object(
                "Service",
                json!({
                    "spec": {
                        "type": kind,
                        "selector": { POD_LABEL.0: POD_LABEL.1 },
                        "ports": [{ "name": "mysql", "port": PORT, "targetPort": PORT }],
                    },
                }),
            ));
        }
        all.push(self.server());
        all
    }

    /// The Pod, or what makes it.
    fn server(&self) -> Value {
        let labels = json!({ POD_LABEL.0: POD_LABEL.1 });
        let template = json!({ "metadata": { "labels": labels }, "spec": self.pod() });
        let kind = match self.placement.controller {
            Controller::Pod => {
                let mut pod = self.object("Pod", template);
                pod["metadata"]["labels"] = labels;
                return pod;
            }
            Controller::Deployment => "Deployment",
            Controller::StatefulSet => "StatefulSet",
        };
        let mut spec = json!({
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": template,
        });
        if kind == "StatefulSet" {
            spec["serviceName"] = json!(SERVER);
        } else {
            spec["strategy"] = json!({ "type": "Recreate" });
        }
        let mut made = self.object(kind, json!({ "spec": spec }));
        made["apiVersion"] = json!("apps/v1");
        made
    }

    fn pod(&self) -> Value {
        let controlled = self.placement.controller != Controller::Pod;
        let mut command = self.command.to_vec();
        command.push(format!("--defaults-file={}", settings_path()));
        let env: Vec<Value> =
            self.env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let mut server = self.container(SERVER, &command);
        server["env"] = json!(env);
        server["ports"] = json!([{ "containerPort": PORT }]);
        server["volumeMounts"] = json!([
            { "name": "instance", "mountPath": INSTANCE },
            { "name": "settings", "mountPath": SETTINGS, "readOnly": true },
            { "name": "account", "mountPath": ACCOUNT, "readOnly": true },
        ]);
        let mut containers = vec![server];
        if self.placement.worker == WorkerSeat::Inside {
            let idle = ["sh", "-c", "while sleep 3600; do :; done"].map(str::to_owned);
            containers.push(self.container(WORKER, &idle));
        }
        let mut pod = json!({
            "serviceAccountName": SERVER,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "dnsPolicy": "Default",
            "restartPolicy": if controlled { "Always" } else { "Never" },
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": self.user.uid,
                "runAsGroup": self.user.gid,
                "fsGroup": self.user.gid,
            },
            "containers": containers,
            "volumes": [
                self.volume(),
                { "name": "settings", "configMap": { "name": SERVER } },
                { "name": "account", "secret": { "secretName": SERVER } },
            ],
        });
        if self.host_path.is_none() {
            let script = format!("until [ -e {INSTANCE}/ready ]; do sleep 0.1; done");
            let wait = ["sh".to_owned(), "-c".to_owned(), script];
            pod["initContainers"] = json!([self.container(DATA, &wait)]);
        }
        if let Some(node) = &self.placement.node {
            // By name and by the scheduler: a `nodeName` would pass it by, and with it the check
            // whether there is room.
            pod["affinity"] = json!({ "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{
                    "matchFields": [
                        { "key": "metadata.name", "operator": "In", "values": [node] },
                    ],
                }] },
            } });
        }
        pod
    }

    /// Any container: a Pod is only guaranteed when all of them are, the waiting one included.
    fn container(&self, name: &str, command: &[String]) -> Value {
        let (requests, limits) = resources(self.placement);
        json!({
            "name": name,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": command,
            "securityContext": { "allowPrivilegeEscalation": false },
            "resources": { "requests": quantities(&requests), "limits": quantities(&limits) },
            "volumeMounts": [{ "name": "instance", "mountPath": INSTANCE }],
        })
    }

    fn volume(&self) -> Value {
        match (self.placement.storage.kind, &self.host_path) {
            (VolumeKind::EmptyDir, _) => json!({ "name": "instance", "emptyDir": {} }),
            (VolumeKind::HostPath, path) => {
                let path = path.as_deref().unwrap_or(Path::new("INSTANCE"));
                // It must be there: one that the node made itself would be empty and root's.
                json!({ "name": "instance", "hostPath": { "path": path, "type": "Directory" } })
            }
            (VolumeKind::Pvc, _) => {
                json!({ "name": "instance", "persistentVolumeClaim": { "claimName": SERVER } })
            }
        }
    }

    fn claim(&self) -> PodClaim {
        let storage = &self.placement.storage;
        // Room for what a server writes beside its tables while it runs.
        let enough = || format!("{}Mi", (self.claim_bytes >> 20) * 2 + 1024);
        PodClaim {
            kind: storage.kind,
            class: storage.class.clone(),
            size: storage.size.clone().unwrap_or_else(enough),
        }
    }

    /// An object of the namespace.
    fn object(&self, kind: &str, mut rest: Value) -> Value {
        rest["apiVersion"] = json!("v1");
        rest["kind"] = json!(kind);
        rest["metadata"] = json!({ "name": SERVER, "namespace": self.namespace });
        rest
    }
}

/// What is claimed of a storage class.
struct PodClaim {
    kind: VolumeKind,
    class: Option<String>,
    size: String,
}

fn quantities(resources: &Resources) -> Value {
    let pairs = [("cpu", &resources.cpu), ("memory", &resources.memory)];
    let given = pairs.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    Value::Object(given.map(|(name, value)| (name.to_owned(), json!(value))).collect())
}
