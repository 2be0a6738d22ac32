//! What a guest is told: the server's settings, the administrator's account for clients from outside,
//! and the command, as a tar archive that is a disk of the guest.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::network::{GUEST_PORT, Network};
use crate::cache::make_directory;
use crate::command::Invocation;
use crate::error::PlaceError;
use crate::initialise::ADMINISTRATOR;
use crate::instance::InstanceSpec;
use crate::invocation::quote;
use crate::package::Package;
use crate::settings::{self, Listen};
use crate::tools::Tools;
use crate::user::ServerUser;

/// The kernel's default for `fs.nr_open`, which no limit of open files may exceed.
const OPEN_FILES_MAX: u64 = 1 << 20;

/// Writes `seed.tar` in the private directory, which holds the administrator's password.
pub(super) fn write(
    spec: &InstanceSpec,
    dir: &Path,
    network: &Network,
    password: &str,
    user: &ServerUser,
    tools: Tools,
) -> Result<(), PlaceError> {
    let config = &spec.setup.server.config;
    let mut text = settings::render(config, &spec.package, dir, Listen::Port(GUEST_PORT))?;
    // The last value counts. The account cannot be in the dataset, whose bytes are the same for
    // every placement; and clients come from elsewhere, because the network lies between.
    let _ = writeln!(text, "bind_address = {}", network.guest());
    let _ = writeln!(text, "init_file = {}", dir.join("init.sql").display());

    let seed = dir.join("seed");
    make_directory(&seed, 0o700)?;
    let client = &network.client_address;
    for (name, text) in [
        ("my.cnf", text),
        ("init.sql", account(client, password)),
        ("start", start_script(&spec.package, dir, network, user)),
    ] {
        let path = seed.join(name);
        fs::File::options()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
            .map_err(PlaceError::io("write", &path))?;
    }
    let archive = dir.join("seed.tar");
    let pack = Invocation::new("tar")
        .args(["--create", "--mode=go=", "--file"])
        .arg(&archive)
        .arg("-C")
        .arg(&seed)
        .arg(".");
    tools.log.run(pack, &archive)?;
    crate::tree::remove_tree(&seed)?;
    user.own(&archive)
}

/// One statement a line, as servers want it of such a file. The password is hexadecimal, so that it
/// needs no quoting.
fn account(client: &str, password: &str) -> String {
    format!(
        "SET SESSION sql_log_bin = 0;\n\
         CREATE USER '{ADMINISTRATOR}'@'{client}' IDENTIFIED BY '{password}';\n\
         GRANT ALL PRIVILEGES ON *.* TO '{ADMINISTRATOR}'@'{client}' WITH GRANT OPTION;\n"
    )
}

/// The shell's half of the story: names, and the function that becomes the server.
fn start_script(package: &Package, dir: &Path, network: &Network, user: &ServerUser) -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let owner = format!("{}:{}", user.uid, user.gid);
    let mut command = vec!["exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned()];
    for (name, value) in &package.env {
        command.push(format!("{}={}", name.to_string_lossy(), quote(value)));
    }
    command.push(format!("chroot --userspec={owner} --groups= \"$1\""));
    command.extend(package.mysqld.iter().map(|word| quote(word)));
    let mut defaults = std::ffi::OsString::from("--defaults-file=");
    defaults.push(dir.join("my.cnf"));
    command.push(quote(&defaults));
    format!(
        "KIND=server\nDIR={}\nOWNER={owner}\nADDRESS={}\nOPEN_FILES={}\nserve() {{\n    {}\n}}\n",
        quote(OsStr::new(dir)),
        network.guest_address,
        limit.unwrap_or(OPEN_FILES_MAX).min(OPEN_FILES_MAX),
        command.join(" ")
    )
}
