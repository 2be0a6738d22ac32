//! The study file: what a person asks, as a tree, and the seeded plan that answers it.
//!
//! A study is a baseline [`Setup`] and one or more [`Question`]s, each of which names one *path* in
//! the setup tree and the values (levels) that the path takes. [`Study::parse`] reads and validates
//! the file, [`Study::plan`] turns it into cells and a seeded order. Called by the conductor and by
//! `ceteris plan`. Never touches the system: no file, no process, no clock.

#[cfg(test)]
mod agreement;
mod allowance;
mod cells;
mod check;
mod design;
mod error;
mod options;
mod page;
mod path;
mod plan;
mod published;
mod quantity;
mod question;
mod random;
mod reference;
mod setup;
mod source;
mod study;
mod suggest;
mod tree;
pub mod variables;

pub use allowance::{Bytes, Cpus, ranges};
pub use error::StudyError;
pub use options::WorkloadOption;
pub use page::reference_markdown;
pub use plan::{Cell, Estimate, Plan, PlannedQuestion};
pub use quantity::{Millis, Percent};
pub use setup::{
    Accelerator, Allocator, Arrivals, Assign, BufferPool, BulkInsert, ConfigValue, Connect,
    ContainerEngine, ContainerNetwork, ContainerStorage, Controller, Disk, DiskAio, DiskBus,
    DiskCache, DiskFormat, Distribution, DockerPlacement, ExternalPlacement, GuestNetwork, Host,
    HostPlacement, HugePages, KubernetesPlacement, KvmPlacement, LegacyDistribution, Load,
    NontrxMode, Numa, NumaPolicy, Oltp, OltpLegacy, OltpReadOnly, OltpReadWrite, OltpUpdateIndex,
    OltpUpdateNonIndex, OltpWriteOnly, OnLost, Param, Placement, PodStorage, Protocol, QosClass,
    Reach, Reactor, Resources, SchedulerClass, Scheduling, Script, SelectRandomPoints,
    SelectRandomRanges, Server, Setup, Stage, TestMode, TransparentHugePages, VolumeKind,
    WorkerSeat, Workload,
};
pub use study::{Factor, Level, OnFailure, Published, Question, Study, SweepAxis};
pub use suggest::allowed;
