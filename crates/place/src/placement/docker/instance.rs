//! A running container as the conductor sees it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use study::{ContainerNetwork, ContainerStorage};

use super::container::{Container, Recipe, Volume};
use crate::allowance::Allowance;
use crate::dataset::Dataset;
use crate::directory::PrivateDirectory;
use crate::engine::EngineFacts;
use crate::error::PlaceError;
use crate::instance::{Endpoint, Instance};
use crate::placement::host::HALT_LIMIT;
use crate::server::{STOP_LIMIT, error_lines};

/// A server in a container, with its private directory.
pub(super) struct DockerInstance {
    // Dropped in this order: a volume cannot go before its container.
    pub container: Container,
    pub _volume: Option<Volume>,
    pub directory: PrivateDirectory,
    pub data_dir: Option<PathBuf>,
    pub endpoint: Endpoint,
    pub fingerprint: BTreeMap<String, String>,
    pub allowance: Allowance,
}

/// What only this placement knows of a condition.
pub(super) fn fingerprint(
    recipe: &Recipe,
    facts: &EngineFacts,
    dataset: &Dataset,
    clone_hash: String,
) -> BTreeMap<String, String> {
    let Recipe { engine, placement, package, user, image, .. } = recipe;
    let network = match placement.network {
        ContainerNetwork::Host => "host",
        ContainerNetwork::Bridge => "bridge",
        ContainerNetwork::Published => "published",
    };
    let storage = match placement.storage {
        ContainerStorage::Bind => "bind",
        ContainerStorage::Volume => "volume",
        ContainerStorage::Overlay => "overlay",
    };
    [
        ("package.name", package.name.clone()),
        ("package.hash", package.hash.clone()),
        ("package.version", package.version.to_string()),
        ("package.binary", package.binary().display().to_string()),
        ("user", user.name.clone()),
        ("dataset.hash", dataset.hash().to_owned()),
        ("dataset.clone_hash", clone_hash),
        ("placement.kind", "docker".to_owned()),
        ("placement.engine", engine.name().to_owned()),
        ("placement.engine_version", facts.version.clone()),
        ("placement.image", (*image).to_owned()),
        ("placement.network", network.to_owned()),
        ("placement.storage", storage.to_owned()),
        ("placement.storage_driver", facts.storage_driver.clone()),
        ("placement.cgroup_driver", facts.cgroup_driver.clone()),
        ("placement.cgroup_version", facts.cgroup_version.clone()),
        ("placement.security_opt", placement.security_opt.join(" ")),
    ]
    .map(|(name, value)| (format!("place.{name}"), value))
    .into()
}

impl Instance for DockerInstance {
    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn pid(&self) -> Option<u32> {
        self.container.pid()
    }

    fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    fn dir(&self) -> &Path {
        &self.directory.path
    }

    fn fingerprint(&self) -> BTreeMap<String, String> {
        self.fingerprint.clone()
    }

    fn allowance(&self) -> Allowance {
        self.allowance.clone()
    }

    fn alive(&mut self) -> Result<(), String> {
        if self.container.runs() {
            return Ok(());
        }
        let (_, status) = self.container.ended();
        let mut said = format!("the container ended ({status})");
        for line in error_lines(&self.container.error_log()) {
            said.push_str("\n  ");
            said.push_str(&line);
        }
        Err(said)
    }

    fn error_log(&self) -> String {
        self.container.error_log()
    }

    fn halt(&mut self) -> Result<(), PlaceError> {
        self.container.stop(HALT_LIMIT)
    }

    fn stop(mut self: Box<Self>) -> Result<(), PlaceError> {
        // Read before the error log is gone with the rest.
        let clean = self.container.stop(STOP_LIMIT);
        self.container.remove()?;
        self.directory.remove()?;
        clean
    }
}
