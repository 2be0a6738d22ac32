//! What executes a guest: KVM where a guest really boots under it, else QEMU's own translator.
//!
//! That `/dev/kvm` exists proves nothing: under some hypervisors an ordinary kernel hangs early
//! beneath it. So `auto` boots the base system once and remembers the answer for this QEMU, this
//! kernel and this machine type.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use study::{Accelerator, Bytes, GuestNetwork, KvmPlacement};

use super::emulator::Emulator;
use super::guest::{self, Kept};
use super::machine::{Boot, Machine, Reach};
use crate::cache::Cache;
use crate::directory::PrivateDirectory;
use crate::error::PlaceError;
use crate::tools::Tools;
use crate::user::ServerUser;

/// How long the trial may take; where KVM works it takes two seconds.
const TRIAL_LIMIT: Duration = Duration::from_secs(30);
const DEVICE: &str = "/dev/kvm";
const TUN: &str = "/dev/net/tun";

/// A remembered answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub kvm: bool,
    pub why: String,
}

/// Decides, and boots a trial guest if nobody knows yet.
///
/// # Errors
/// When KVM is asked for and is not there.
pub(super) fn choose(
    placement: &KvmPlacement,
    user: &ServerUser,
    tools: Tools,
) -> Result<Accelerator, PlaceError> {
    match placement.accel {
        Accelerator::Tcg => Ok(Accelerator::Tcg),
        Accelerator::Kvm => {
            openable().map(|()| Accelerator::Kvm).map_err(|why| PlaceError::Engine {
                what: "KVM cannot be used".to_owned(),
                lines: vec![why],
                next: Some("`accel = \"auto\"` or `\"tcg\"`".to_owned()),
            })
        }
        Accelerator::Auto => {
            let answer = match openable() {
                Err(why) => Answer { kvm: false, why },
                Ok(()) => remembered_or_tried(placement, user, tools)?,
            };
            Ok(if answer.kvm { Accelerator::Kvm } else { Accelerator::Tcg })
        }
    }
}

/// The user that QEMU runs as: the servers' own, unless only we may open what it needs.
pub(super) fn runner(
    network: GuestNetwork,
    accelerator: Accelerator,
    user: &ServerUser,
) -> Option<&ServerUser> {
    let closed = |device: &str| user.check_reach(Path::new(device)).is_err();
    let only_ours = accelerator == Accelerator::Kvm && closed(DEVICE)
        || network == GuestNetwork::Tap && closed(TUN);
    (!only_ours).then_some(user)
}

/// What `auto` would take, without trying: `None` when it was never tried.
pub(super) fn known(cache: &Cache, machine: &str, qemu: &str) -> Option<Answer> {
    if let Err(why) = openable() {
        return Some(Answer { kvm: false, why });
    }
    answers(cache).remove(&key(machine, qemu))
}

fn openable() -> Result<(), String> {
    fs::File::options()
        .read(true)
        .write(true)
        .open(DEVICE)
        .map(drop)
        .map_err(|error| format!("{DEVICE}: {error}"))
}

fn remembered_or_tried(
    placement: &KvmPlacement,
    user: &ServerUser,
    tools: Tools,
) -> Result<Answer, PlaceError> {
    let key = key(&placement.machine, &guest::qemu_version(tools.log)?);
    // Held while it is tried, so that several instances try it once.
    let _claim = tools.cache.lock("guests", "accelerator", || ())?;
    let mut all = answers(tools.cache);
    if let Some(answer) = all.get(&key) {
        return Ok(answer.clone());
    }
    let answer = attempt(&placement.machine, &guest::base(tools)?, user, tools)?;
    all.insert(key, answer.clone());
    let path = file(tools.cache);
    let text = serde_json::to_vec_pretty(&all)
        .map_err(|error| PlaceError::io("write", &path)(error.into()))?;
    let partial = path.with_extension("partial");
    fs::write(&partial, text)
        .and_then(|()| fs::rename(&partial, &path))
        .map_err(PlaceError::io("write", &path))?;
    Ok(answer)
}

/// Boots the base system under KVM.
fn attempt(
    machine: &str,
    base: &Kept,
    user: &ServerUser,
    tools: Tools,
) -> Result<Answer, PlaceError> {
    let mut directory = PrivateDirectory::make(tools.cache, user, tools.journal)?;
    let placement = KvmPlacement {
        cpus: 1,
        memory: Bytes(512 << 20),
        machine: machine.to_owned(),
        ..KvmPlacement::default()
    };
    let trial = Machine {
        placement: &placement,
        accelerator: Accelerator::Kvm,
        dir: &directory.path,
        boot: Boot::Built(&base.dir),
        server: None,
        data: None,
        reach: Reach::Nothing,
    };
    let runner = runner(placement.network, Accelerator::Kvm, user);
    let mut emulator =
        Emulator::start(trial.command(), &directory.path, runner, tools.journal, tools.log)?;
    let ended = emulator.await_end(TRIAL_LIMIT);
    emulator.kill();
    let answer = match ended {
        _ if emulator.tried() => Answer { kvm: true, why: "a guest booted under KVM".to_owned() },
        Some(status) => Answer {
            kvm: false,
            why: emulator.failure(status).to_string().lines().collect::<Vec<_>>().join("; "),
        },
        None => {
            let why = format!("a guest did not boot under KVM within {} s", TRIAL_LIMIT.as_secs());
            Answer { kvm: false, why }
        }
    };
    drop(emulator);
    directory.remove()?;
    Ok(answer)
}

fn file(cache: &Cache) -> PathBuf {
    cache.room("guests").join("accelerator.json")
}

fn answers(cache: &Cache) -> BTreeMap<String, Answer> {
    fs::read(file(cache))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

fn key(machine: &str, qemu: &str) -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("qemu {qemu}, linux {}, {machine}", kernel.trim())
}
