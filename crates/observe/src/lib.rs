//! What is seen of a run: samplers, fingerprints and the audit that compares them.
//!
//! Called by the conductor around and during a run. Changes nothing anywhere.

mod audit;
mod cgroup;
mod consequences;
mod facts;
mod fingerprint;
#[cfg(test)]
mod golden;
mod library;
mod machine;
mod mounts;
mod process;
mod remote;
mod sampler;
mod status;
mod values;

pub use audit::{Compared, Factor, Finding, Kind, audit};
pub use fingerprint::{host_fingerprint, server_fingerprint};
pub use machine::{disk_below, online_processors};
pub use remote::{Remote, serve};
pub use sampler::{Sampled, Sampler, SamplerTarget, monotonic_ns};

/// All that was observed of a run's conditions: dotted name to value.
pub type Fingerprint = std::collections::BTreeMap<String, String>;
