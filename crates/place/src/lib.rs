//! Packages, datasets and placements: brings a target up, clones its data, tears it down.
//!
//! Called by the conductor. Never measures. Everything that outlives a call (process, directory) is
//! registered in the [`Journal`] before it is made, so that `ceteris doctor` can find what a killed
//! conductor left.

mod cache;
mod command;
mod dataset;
mod error;
mod host;
mod initialise;
mod instance;
mod invocation;
mod journal;
mod package;
mod placement;
mod progress;
mod server;
mod settings;
mod tree;
mod user;

pub use cache::{Cache, CacheItem};
pub use command::{CommandLog, LoggedCommand};
pub use dataset::{Dataset, DatasetClaim, DatasetKey};
pub use error::PlaceError;
pub use host::{FINGERPRINT_NAMES, HostInstance, start_host};
pub use instance::{Endpoint, Instance, InstanceSpec, STATEMENT_LIMIT};
pub use invocation::quote;
pub use journal::{Journal, Leftover, clean, leftovers};
pub use package::{
    Flavour, Package, PackageListing, Version, check_package_name, list_packages, resolve_package,
};
pub use placement::{PlacementListing, list_placements, planned_commands, start};
pub use progress::{Progress, Quiet};
pub use settings::{LOADING, file_settings};
