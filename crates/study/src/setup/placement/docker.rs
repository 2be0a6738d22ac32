//! A container of Docker or Podman.

use serde::{Deserialize, Serialize};

use crate::allowance::{Bytes, Cpus};
use crate::setup::Contradiction;

/// A container of Docker or Podman. The image is `server.package` where that names one, else built
/// from the package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DockerPlacement {
    /// Whose command line.
    pub engine: ContainerEngine,
    /// CPU time of each container, in processors (a quota); `None`: no limit.
    pub cpus: Option<f64>,
    /// Processors of each container, by the kernel's numbers; `None`: all.
    pub cpuset: Option<String>,
    /// Memory of each container; `None`: no limit.
    pub memory: Option<Bytes>,
    /// How clients reach it.
    pub network: ContainerNetwork,
    /// Where its data directory is.
    pub storage: ContainerStorage,
    /// As `--security-opt`, such as `seccomp=unconfined`.
    pub security_opt: Vec<String>,
    /// How many containers run at once.
    pub instances: u32,
}

/// Whose command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerEngine {
    /// Docker where it answers, else Podman.
    #[default]
    Auto,
    /// `docker`.
    Docker,
    /// `podman`.
    Podman,
}

/// How clients reach a container by TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerNetwork {
    /// The machine's own network, no translation.
    #[default]
    Host,
    /// The container's address on the engine's bridge.
    Bridge,
    /// A port of 127.0.0.1 that the engine forwards.
    Published,
}

/// Where a container's data directory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerStorage {
    /// A directory of this machine.
    #[default]
    Bind,
    /// A volume of the engine.
    Volume,
    /// The container's own writable layer.
    Overlay,
}

impl Default for DockerPlacement {
    fn default() -> Self {
        DockerPlacement {
            engine: ContainerEngine::Auto,
            cpus: None,
            cpuset: None,
            memory: None,
            network: ContainerNetwork::Host,
            storage: ContainerStorage::Bind,
            security_opt: Vec::new(),
            instances: 1,
        }
    }
}

impl DockerPlacement {
    pub(crate) fn contradiction(&self) -> Option<Contradiction> {
        let list = |text: &String| matches!(text.parse::<Cpus>(), Ok(Cpus::List(_)));
        self.cpuset.as_ref().filter(|text| !list(text)).map(|text| Contradiction {
            key: "cpuset",
            message: format!("`{text}` lists no processors"),
            hint: "a list such as \"0-3,8\"",
        })
    }
}
