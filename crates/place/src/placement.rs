//! Which placement a setup asks for, which of them this machine could use, and what bringing one up
//! would take. Every placement has a file of its own behind [`Instance`]; this one only chooses.

use std::path::Path;

use serde::Serialize;
use study::{Placement, Setup};

use crate::cache::Cache;
use crate::command::{CommandLog, Invocation};
use crate::dataset::DatasetKey;
use crate::error::PlaceError;
use crate::host::start_host;
use crate::instance::{Instance, InstanceSpec};
use crate::invocation::quote;
use crate::journal::Journal;
use crate::package::{PackageListing, find_package};
use crate::settings::{Listen, render};
use crate::user::ServerUser;

/// One line of `ceteris doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacementListing {
    /// `host`, `docker`, `kvm`, `kubernetes` or `external`.
    pub name: String,
    /// A study on this machine can use it.
    pub usable: bool,
    /// What it would use, or why it cannot be used.
    pub why: String,
}

/// Brings an instance up where its setup says.
///
/// # Errors
/// Those of the placement.
pub fn start(
    spec: &InstanceSpec,
    cache: &Cache,
    journal: &Journal,
    log: &CommandLog,
) -> Result<Box<dyn Instance>, PlaceError> {
    match &spec.setup.placement {
        Placement::Host(_) => start_host(spec, cache, journal, log),
    }
}

/// Every placement of the design. Those that this version lacks say so, and whether their engine is
/// here.
pub fn list_placements(packages: &[PackageListing], log: &CommandLog) -> Vec<PlacementListing> {
    let usable: Vec<&str> = packages.iter().filter(|p| p.usable).map(|p| p.name.as_str()).collect();
    let host = match (ServerUser::find(), usable.is_empty()) {
        (Err(error), _) => Err(error.to_string()),
        (Ok(_), true) => Err("no server package can be used, see below".to_owned()),
        (Ok(user), false) => Ok(format!("servers run as the user {}", user.name)),
    };
    let later = |engine: String| Err(format!("not in this version of ceteris yet; {engine}"));
    let docker = answer(log, Invocation::new("docker").args(["version", "--format", "json"]));
    let kubectl = answer(log, Invocation::new("kubectl").args(["version", "-o", "json"]));
    let qemu = answer(log, Invocation::new("qemu-system-x86_64").arg("--version"));
    let kvm = if Path::new("/dev/kvm").exists() { "/dev/kvm is there" } else { "no /dev/kvm" };
    let listed = [
        ("host", host),
        ("docker", later(format!("docker {docker}"))),
        ("kvm", later(format!("qemu-system-x86_64 {qemu}, {kvm}"))),
        ("kubernetes", later(format!("kubectl {kubectl}"))),
        ("external", later("any server that a DSN reaches".to_owned())),
    ];
    listed
        .into_iter()
        .map(|(name, found)| PlacementListing {
            name: name.to_owned(),
            usable: found.is_ok(),
            why: found.unwrap_or_else(|why| why),
        })
        .collect()
}

/// Whether an engine's program is here and answers.
fn answer(log: &CommandLog, asked: Invocation) -> &'static str {
    match log.run_watched(asked, || ()) {
        Ok(said) if said.status.success() => "answers",
        Ok(_) => "is here, but does not answer",
        Err(_) => "is not here",
    }
}

/// The commands that a run of `setup` takes, as a person would type them. `INSTANCE` stands for
/// the private directory and `PORT` for a free port, which only a run has. Nothing is fetched,
/// unpacked or written: of a package that is not here yet only its fetching is told.
pub fn planned_commands(setup: &Setup, data: &str, seed: u64, cache: &Cache) -> Vec<String> {
    let name = &setup.server.package;
    let package = match find_package(name, cache, &CommandLog::default()) {
        Ok(Some(package)) => package,
        Ok(None) => return vec![format!("ceteris packages fetch {}", quote(name.as_ref()))],
        Err(error) => return vec![format!("# {name}: {error}")],
    };
    let key = DatasetKey::new(&package, setup, data, seed);
    let instance = cache.room("instances").join("INSTANCE");
    let snapshot = cache.room("datasets").join(&key.hash).join("data");
    let mut commands = Vec::new();
    let copy = Invocation::new("cp")
        .args(["-a", "--reflink=auto", "--sparse=auto"])
        .arg(snapshot)
        .arg(instance.join("data"));
    commands.push(copy.quoted());
    match render(&setup.server.config, &package, &instance, Listen::Port(0)) {
        Ok(text) => {
            let text = text.replace("port = 0\n", "port = PORT\n");
            let path = instance.join("my.cnf");
            commands.push(format!("cat > {} <<'EOF'\n{text}EOF", path.display()));
        }
        Err(error) => commands.push(format!("# {error}")),
    }
    let mut server = Invocation::of(&package.mysqld)
        .path_option("defaults-file", &instance.join("my.cnf"))
        .bare()
        .env(&package.env);
    if let Ok(user) = ServerUser::find() {
        server = server.user(&user);
    }
    commands.push(server.quoted());
    commands.push("ceteris worker  # told on standard input what to drive".to_owned());
    commands
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn planning_with_an_archive_unpacks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache")).unwrap();
        let archive = dir.path().join("my server.tar.gz");
        std::fs::write(&archive, b"never read as an archive").unwrap();
        let text = "title = \"t\"\n[workload.oltp_read_only]\n\
                    [[question]]\nname = \"q\"\nvary = \"load.connections\"\nlevels = [1, 2]\n";
        let package = format!("server.package={:?}", archive.display().to_string());
        let study = study::Study::parse("s.toml", text, &[package]).unwrap();
        let setup = &study.plan().questions[0].cells[0].setup;
        let commands = planned_commands(setup, "data", 1, &cache);
        assert_eq!(commands, [format!("ceteris packages fetch '{}'", archive.display())]);
        for room in ["packages", "datasets", "instances"] {
            assert_eq!(std::fs::read_dir(cache.room(room)).unwrap().count(), 0, "{room}");
        }
    }
}
