//! A Pod of a Kubernetes cluster.

use serde::{Deserialize, Serialize};

use crate::setup::Contradiction;

/// A Pod of a Kubernetes cluster, in a namespace of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KubernetesPlacement {
    /// `kubectl --context`; `None`: the current one.
    pub context: Option<String>,
    /// The image; `None`: `server.package` names it.
    pub image: Option<String>,
    /// What makes the Pod.
    pub controller: Controller,
    /// Derives equal requests and limits, requests below limits, or none.
    pub qos: Option<QosClass>,
    /// What the scheduler reserves.
    pub requests: Resources,
    /// What the kernel enforces.
    pub limits: Resources,
    /// Name of the node; `None`: the scheduler chooses.
    pub node: Option<String>,
    /// Where the data directory is.
    pub storage: PodStorage,
    /// Where the load generator runs.
    pub worker: WorkerSeat,
    /// How a generator outside reaches the Pod.
    pub reach: Reach,
    /// How many Pods run at once.
    pub instances: u32,
}

/// What makes a Pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// Nothing else.
    #[default]
    Pod,
    /// A Deployment of one replica, with a Service.
    Deployment,
    /// A StatefulSet of one replica, with a Service.
    StatefulSet,
}

/// Quality of service that Kubernetes derives from requests and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QosClass {
    /// No requests, no limits.
    BestEffort,
    /// Requests below limits, or limits missing.
    Burstable,
    /// Requests equal to limits.
    Guaranteed,
}

/// Requests or limits, as Kubernetes writes quantities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resources {
    /// `"500m"` or `"2"`.
    pub cpu: Option<String>,
    /// `"512Mi"`.
    pub memory: Option<String>,
}

/// Where a Pod's data directory is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PodStorage {
    /// Which kind of volume.
    pub kind: VolumeKind,
    /// With `pvc`: the storage class; `None`: the cluster's default.
    pub class: Option<String>,
    /// With `pvc`: its size.
    pub size: Option<String>,
}

/// Kind of volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeKind {
    /// A directory of the node that dies with the Pod.
    #[default]
    EmptyDir,
    /// A directory of the node.
    HostPath,
    /// A claim on a storage class.
    Pvc,
}

/// Where the load generator runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerSeat {
    /// On this machine.
    #[default]
    Outside,
    /// In the Pod, over the server's socket.
    Inside,
}

/// How a generator outside reaches a Pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// By the Pod's own address.
    #[default]
    PodIp,
    /// By a NodePort.
    NodePort,
}

impl Default for KubernetesPlacement {
    fn default() -> Self {
        KubernetesPlacement {
            context: None,
            image: None,
            controller: Controller::Pod,
            qos: None,
            requests: Resources::default(),
            limits: Resources::default(),
            node: None,
            storage: PodStorage::default(),
            worker: WorkerSeat::Outside,
            reach: Reach::PodIp,
            instances: 1,
        }
    }
}

impl Resources {
    /// Neither is given.
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }
}

impl KubernetesPlacement {
    pub(crate) fn contradiction(&self) -> Option<Contradiction> {
        let found = |key, message: &str, hint| {
            Some(Contradiction { key, message: message.to_owned(), hint })
        };
        let Resources { cpu, memory } = &self.limits;
        match self.qos {
            Some(QosClass::Guaranteed) if cpu.is_none() || memory.is_none() => {
                let message = "`guaranteed` needs a limit of cpu and of memory";
                found("qos", message, "add `limits = { cpu = \"2\", memory = \"2Gi\" }`")
            }
            Some(QosClass::Guaranteed)
                if !self.requests.is_empty() && self.requests != self.limits =>
            {
                let message = "`guaranteed` requests what `limits` says, but `requests` differs";
                found("requests", message, "leave `requests` out")
            }
            Some(QosClass::BestEffort) if !(self.limits.is_empty() && self.requests.is_empty()) => {
                let message = "`best_effort` has neither requests nor limits";
                found("qos", message, "leave `requests` and `limits` out, or `qos`")
            }
            Some(QosClass::Burstable) if self.limits.is_empty() && self.requests.is_empty() => {
                let message = "`burstable` has a request or a limit";
                found("qos", message, "add `requests = { cpu = \"250m\" }`")
            }
            _ => None,
        }
    }
}
