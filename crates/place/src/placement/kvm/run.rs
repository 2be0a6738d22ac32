//! Any command in a guest, to its end: for trying ceteris itself on a machine that this one is not,
//! with several NUMA nodes or control groups of version 2.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use study::KvmPlacement;

use super::emulator::Emulator;
use super::guest::{self, SERVER};
use super::image::{self, Image};
use super::machine::{Boot, Machine, Reach};
use super::{accelerator, disk};
use crate::cache::make_directory;
use crate::command::Invocation;
use crate::directory::PrivateDirectory;
use crate::error::PlaceError;
use crate::invocation::quote;
use crate::package::Package;
use crate::tools::Tools;
use crate::user::ServerUser;

/// Room for what the command writes.
const FREE_BYTES: u64 = 8 << 30;

/// A command and the guest for it.
pub struct GuestCommand<'a> {
    /// Processors, memory, nodes, accelerator.
    pub placement: &'a KvmPlacement,
    /// A server that the guest is to have, with its libraries, where it is here.
    pub package: &'a Package,
    /// The program that stands in the guest as `/ceteris/ceteris`.
    pub program: PathBuf,
    /// Further files and directories that the guest is to have, where they are here.
    pub files: Vec<PathBuf>,
    /// What root's shell runs in the guest.
    pub script: String,
    /// How long it may take, booting included.
    pub limit: Duration,
}

/// How a command in a guest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSaid {
    /// `0`, `1` or `signal 9`.
    pub status: String,
    /// Standard output and error together.
    pub text: String,
}

/// Boots a guest without a network, runs the command in it and waits until it has ended; nothing is
/// left of the guest.
///
/// # Errors
/// When the guest cannot be built, does not boot, or takes longer than the limit.
pub fn run_in_guest(job: &GuestCommand, tools: Tools) -> Result<GuestSaid, PlaceError> {
    image::check_programs()?;
    let user = ServerUser::find()?;
    let base = guest::base(tools)?;
    let accelerator = accelerator::choose(job.placement, &user, tools)?;
    let server = guest::server_disk(job.package, &job.program, &job.files, &user, tools)?;
    let mut directory = PrivateDirectory::make(tools.cache, &user, tools.journal)?;
    let dir = directory.path.clone();

    let empty = dir.join("empty");
    make_directory(&empty, 0o755)?;
    let data = dir.join(disk::disk_name(job.placement));
    let raw = dir.join("data.img");
    Image { label: "ceteris-data", owner: (0, 0), free_bytes: FREE_BYTES, written: true }
        .make(&empty, &raw, tools)?;
    tools.log.run(disk::clone_command(&raw, &data, job.placement), &data)?;
    let start = dir.join("start");
    let serve = format!("exec chroot \"$1\" /bin/sh -c {}", quote(OsStr::new(&job.script)));
    let text = format!("KIND=command\nOPEN_FILES=1048576\nserve() {{\n    {serve}\n}}\n");
    fs::write(&start, text).map_err(PlaceError::io("write", &start))?;
    let archive = dir.join("seed.tar");
    let pack = Invocation::new("tar").args(["--create", "--file"]).arg(&archive);
    tools.log.run(pack.arg("-C").arg(&dir).arg("start"), &archive)?;
    for path in [&data, &raw, &archive] {
        user.own(path)?;
    }

    let machine = Machine {
        placement: job.placement,
        accelerator,
        dir: &dir,
        boot: Boot::Built(&base.dir),
        server: Some(&server.dir.join(SERVER)),
        data: Some(&data),
        reach: Reach::Nothing,
    };
    let runner = accelerator::runner(study::GuestNetwork::User, accelerator, &user);
    let mut emulator = Emulator::start(machine.command(), &dir, runner, tools.journal, tools.log)?;
    let ended = emulator.await_end(job.limit);
    let said = match ended {
        None => Err(PlaceError::Engine {
            what: format!("the guest did not end within {} s", job.limit.as_secs()),
            lines: emulator.last_words(),
            next: None,
        }),
        Some(status) => match emulator.server_status() {
            Some(status) => Ok(GuestSaid { status, text: emulator.error_log() }),
            None => Err(emulator.failure(status)),
        },
    };
    drop(emulator);
    directory.remove()?;
    said
}
