//! Where the server runs: one file for each placement, one variant for each file.
//!
//! Every allowance (`cpus`, `memory`) is of one instance, in every placement alike.

mod docker;
mod external;
mod host;
mod kubernetes;
mod kvm;

use serde::{Deserialize, Serialize};

use super::Contradiction;

pub use docker::{ContainerEngine, ContainerNetwork, ContainerStorage, DockerPlacement};
pub use external::ExternalPlacement;
pub use host::{
    Allocator, Assign, BufferPool, HostPlacement, HugePages, Numa, NumaPolicy, SchedulerClass,
};
pub use kubernetes::{
    Controller, KubernetesPlacement, PodStorage, QosClass, Reach, Resources, VolumeKind, WorkerSeat,
};
pub use kvm::{
    Accelerator, Disk, DiskAio, DiskBus, DiskCache, DiskFormat, GuestNetwork, KvmPlacement,
};

/// Where the server runs. Externally tagged, so that an error keeps its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// A process on this machine.
    Host(HostPlacement),
    /// A container of Docker or Podman.
    Docker(DockerPlacement),
    /// A QEMU guest.
    Kvm(KvmPlacement),
    /// A Pod of a Kubernetes cluster.
    Kubernetes(KubernetesPlacement),
    /// A server that ceteris did not start.
    External(ExternalPlacement),
}

impl Placement {
    /// As written in a study.
    pub fn name(&self) -> &'static str {
        match self {
            Placement::Host(_) => "host",
            Placement::Docker(_) => "docker",
            Placement::Kvm(_) => "kvm",
            Placement::Kubernetes(_) => "kubernetes",
            Placement::External(_) => "external",
        }
    }

    /// What only shows when the keys are together; the first of it.
    pub(crate) fn contradiction(&self) -> Option<Contradiction> {
        match self {
            Placement::Host(host) => host.contradiction(),
            Placement::Docker(docker) => docker.contradiction(),
            Placement::Kvm(kvm) => kvm.contradiction(),
            Placement::Kubernetes(kubernetes) => kubernetes.contradiction(),
            Placement::External(external) => external.contradiction(),
        }
    }

    /// How many servers a target consists of.
    pub fn instances(&self) -> u32 {
        match self {
            Placement::Host(host) => host.instances,
            Placement::Docker(docker) => docker.instances,
            Placement::Kvm(kvm) => kvm.instances,
            Placement::Kubernetes(kubernetes) => kubernetes.instances,
            Placement::External(_) => 1,
        }
    }
}

impl Default for Placement {
    fn default() -> Self {
        Placement::Host(HostPlacement::default())
    }
}
