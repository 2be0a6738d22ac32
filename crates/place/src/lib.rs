//! Packages, datasets and placements: brings a target up, clones its data, tears it down.
//!
//! Called by the conductor. Never measures. Everything that outlives a call (process, directory) is
//! registered in the [`Journal`] before it is made, so that `ceteris doctor` can find what a killed
//! conductor left.

mod account;
mod allowance;
mod cache;
mod cgroup;
mod child;
mod command;
mod dataset;
mod directory;
mod disk;
mod dsn;
mod engine;
mod error;
mod image;
mod initialise;
mod instance;
mod invocation;
mod journal;
mod machine;
mod package;
mod parcel;
mod password;
mod placement;
mod progress;
mod remote;
mod server;
mod settings;
mod tools;
mod tree;
mod user;

pub use allowance::{Allowance, total_allowance};
pub use cache::{Cache, CacheItem};
pub use command::{CommandLog, LoggedCommand};
pub use dataset::{Dataset, DatasetClaim, DatasetKey};
pub use dsn::{Dsn, DsnError, PORT as DSN_PORT};
pub use error::PlaceError;
pub use image::{Guest, RootTar, root_tar};
pub use instance::{Channel, Endpoint, Instance, InstanceSpec, STATEMENT_LIMIT};
pub use invocation::quote;
pub use journal::{Journal, Leftover, Made, clean, leftovers};
pub use machine::MachineSettings;
pub use package::{
    Flavour, Package, PackageListing, Version, check_package_name, list_packages, resolve_package,
};
pub use parcel::{pack, unpack};
pub use password::{PASSWORD_VARIABLE, password_of_file};
pub use placement::{
    Emit, FINGERPRINT_NAMES, GuestCommand, GuestSaid, HostInstance, PlacementListing, check, emit,
    list_placements, loading_placement, loads_in_place, package_for, planned_commands,
    run_in_guest, start, start_all,
};
pub use progress::{Progress, Quiet};
pub use settings::{LOADING, file_settings};
pub use tools::Tools;
pub use user::ServerUser;
