//! Packages, datasets and placements: brings a target up, clones its data, tears it down.
//!
//! Called by the conductor. Never measures. Everything that outlives a call (process, directory) is
//! registered in the [`Journal`] before it is made, so that `ceteris doctor` can find what a killed
//! conductor left.

mod allowance;
mod cache;
mod command;
mod dataset;
mod error;
mod initialise;
mod instance;
mod invocation;
mod journal;
mod package;
mod placement;
mod progress;
mod server;
mod settings;
mod tools;
mod tree;
mod user;

pub use allowance::{Allowance, total_allowance};
pub use cache::{Cache, CacheItem};
pub use command::{CommandLog, LoggedCommand};
pub use dataset::{Dataset, DatasetClaim, DatasetKey};
pub use error::PlaceError;
pub use instance::{Channel, Endpoint, Instance, InstanceSpec, STATEMENT_LIMIT};
pub use invocation::quote;
pub use journal::{Journal, Leftover, Made, clean, leftovers};
pub use package::{
    Flavour, Package, PackageListing, Version, check_package_name, list_packages, resolve_package,
};
pub use placement::{
    Emit, FINGERPRINT_NAMES, GuestCommand, GuestSaid, HostInstance, PlacementListing, check, emit,
    list_placements, planned_commands, run_in_guest, start, start_all,
};
pub use progress::{Progress, Quiet};
pub use settings::{LOADING, file_settings};
pub use tools::Tools;
