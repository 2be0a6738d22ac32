//! Which image a Pod runs, and how one that ceteris made comes to the node.
//!
//! An image that the study names is the node's to find. Without one, the package's root file system
//! (`crate::image`) becomes an image of one layer and is handed to containerd, where the node is
//! this machine; a node elsewhere has no other way to it than a registry, and the user is told so.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use study::KubernetesPlacement;

use super::cluster::{Cluster, Node};
use super::manifests::INSTANCE;
use crate::command::{Invocation, find_program};
use crate::error::PlaceError;
use crate::image::{Guest, root_tar};
use crate::package::Package;
use crate::tools::Tools;
use crate::tree::sha256_file;

/// Directories in which foreign images keep their server, beside those of their `PATH`.
const USUAL_PATH: &str = "/usr/sbin:/usr/libexec:/usr/local/mysql/bin:/opt/bitnami/mysql/bin:\
                          /opt/bitnami/mariadb/sbin";
/// The block of a tar archive.
const BLOCK: usize = 512;

/// The image of a Pod.
pub(super) struct Image {
    pub name: String,
    /// The words that start the server inside, but for its options.
    pub command: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Where ceteris is inside.
    pub program: PathBuf,
    /// Whether it has to be sent there first.
    pub sends_program: bool,
    /// Whether it was made of the package by ceteris.
    pub made: bool,
}

/// The image's name as the study gives it, if it does.
pub(super) fn named<'a>(
    placement: &'a KubernetesPlacement,
    package: &'a Package,
) -> Option<&'a str> {
    placement.image.as_deref().or_else(|| package.image())
}

impl Image {
    /// One that the study names: its server is found by its name in there.
    pub fn foreign(name: &str, package: &Package) -> Image {
        let own = package.binary().parent().map(|dir| dir.display().to_string());
        let own = own.filter(|dir| !dir.is_empty()).map_or(String::new(), |dir| format!(":{dir}"));
        let script = format!(
            "PATH=\"$PATH:{USUAL_PATH}{own}\"; for server in mysqld mariadbd; do command -v $server \
             >/dev/null && exec $server \"$@\"; done; echo 'neither mysqld nor mariadbd is in this \
             image' >&2; exit 127"
        );
        Image {
            name: name.to_owned(),
            command: ["sh", "-c", &script, "server"].map(str::to_owned).to_vec(),
            env: Vec::new(),
            program: Path::new(INSTANCE).join("ceteris"),
            sends_program: true,
            made: false,
        }
    }

    /// The one that is made of a package, under this name.
    pub fn of_package(name: &str, package: &Package) -> Image {
        let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
        Image {
            name: name.to_owned(),
            command: package.mysqld.iter().map(text).collect(),
            env: package.env.iter().map(|(name, value)| (text(name), text(value))).collect(),
            program: PathBuf::from("/ceteris"),
            sends_program: false,
            made: true,
        }
    }
}

/// Whether an image could come to the nodes: named, or made here where the only nodes are.
pub(super) fn check(
    placement: &KubernetesPlacement,
    package: &Package,
    nodes: &[Node],
    tools: Tools,
) -> Result<(), PlaceError> {
    if named(placement, package).is_some() {
        return Ok(());
    }
    let why = match nodes.iter().find(|node| !node.is_here()) {
        Some(node) => format!("the node {} is another machine", node.name()),
        None if find_program("ctr").is_none() => "`ctr` is not here to import it".to_owned(),
        None => match containerd(nodes, tools) {
            Ok(()) => return Ok(()),
            Err(why) => why,
        },
    };
    Err(PlaceError::Engine {
        what: format!("an image made of the package {} cannot come to the cluster", package.name),
        lines: vec![why],
        next: Some(format!(
            "make one with `docker import` of a root.tar below {} (a docker placement makes it), \
             `docker push` it to a registry that the cluster reaches, and name it in \
             placement.kubernetes.image",
            tools.cache.room("images").display()
        )),
    })
}

/// Whether the containerd that `ctr` speaks with is the nodes' own, as far as versions tell.
fn containerd(nodes: &[Node], tools: Tools) -> Result<(), String> {
    let said = tools.log.run_watched(Invocation::new("ctr").arg("version"), || ());
    let said = said.map_err(|error| error.to_string())?;
    if !said.fine() {
        return Err(format!("containerd does not answer `ctr version`: {}", said.stderr.trim()));
    }
    let server = said.stdout.split("Server:").nth(1).unwrap_or_default();
    let version = server.lines().find_map(|line| line.trim().strip_prefix("Version:"));
    let version = version.unwrap_or_default().trim();
    for node in nodes {
        let runtime = node.info("containerRuntimeVersion");
        let own = runtime.strip_prefix("containerd://").filter(|own| version.starts_with(*own));
        if own.is_none() {
            return Err(format!(
                "`ctr` speaks with containerd {version}, but the node {} runs {runtime} (the \
                 environment's CONTAINERD_ADDRESS says whom it speaks with)",
                node.name()
            ));
        }
    }
    Ok(())
}

/// The image that the Pod is to run; one made of the package is on the node when this returns.
pub(super) fn provide(
    cluster: &Cluster,
    placement: &KubernetesPlacement,
    package: &Package,
    tools: Tools,
) -> Result<Image, PlaceError> {
    if let Some(name) = named(placement, package) {
        return Ok(Image::foreign(name, package));
    }
    check(placement, package, &cluster.nodes(placement)?, tools)?;
    let root = root_tar(package, &[Guest::ceteris()?], tools)?;
    let name = format!("localhost/ceteris:{}", &root.hash[..16.min(root.hash.len())]);
    let ctr = || Invocation::new("ctr").args(["--namespace", "k8s.io", "images"]);
    let what = "containerd does not take the image";
    let listed = cluster.run(ctr().args(["ls", "-q"]).arg(format!("name=={name}")), what)?;
    if listed.stdout.trim().is_empty() {
        // Kept on the node as the root file system is kept here: under its content's hash.
        let digest = sha256_file(&root.path)?;
        let layer = root.path.clone();
        let shown = format!("# an archive of one layer, {}, as {name}\ncat IMAGE", layer.display());
        let import = ctr().args(["import", "-"]);
        let reference = name.clone();
        let import = import.fed(shown, move |pipe| write_image(&reference, &layer, &digest, pipe));
        cluster.run(import, what)?;
    }
    Ok(Image::of_package(&name, package))
}

/// Writes an image archive as `docker save` does: a manifest, a configuration, a layer.
fn write_image(name: &str, layer: &Path, digest: &str, out: &mut dyn Write) -> io::Result<()> {
    let config = json!({
        "architecture": match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        },
        "os": "linux",
        "config": { "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
    });
    let manifest = json!([
        { "Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"] },
    ]);
    for (name, value) in [("manifest.json", &manifest), ("config.json", &config)] {
        let text = value.to_string();
        write_member(name, text.len() as u64, &mut text.as_bytes(), out)?;
    }
    let mut file = File::open(layer)?;
    let bytes = file.metadata()?.len();
    write_member("layer.tar", bytes, &mut file, out)?;
    out.write_all(&[0; 2 * BLOCK])
}

/// One file of a tar archive (POSIX ustar).
fn write_member(
    name: &str,
    bytes: u64,
    content: &mut dyn io::Read,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(&header(name, bytes)?)?;
    if io::copy(content, out)? != bytes {
        return Err(io::Error::other(format!("{name} changed while it was read")));
    }
    let rest = (bytes % BLOCK as u64) as usize;
    if rest > 0 {
        out.write_all(&vec![0; BLOCK - rest])?;
    }
    Ok(())
}

fn header(name: &str, bytes: u64) -> io::Result<[u8; BLOCK]> {
    let size = format!("{bytes:011o}");
    if size.len() > 11 {
        return Err(io::Error::other(format!("{name} has more than 8 GiB")));
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000644");
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, size.as_bytes());
    put(136, b"00000000000");
    // The sum is taken with blanks in its own place.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Ok(block)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::command::CommandLog;

    #[test]
    fn an_image_archive_is_one_that_tar_reads() {
        let dir = tempfile::tempdir().unwrap();
        let layer = dir.path().join("root.tar");
        std::fs::write(&layer, vec![1; 1000]).unwrap();
        let archive = dir.path().join("image.tar");
        write_image("localhost/a:1", &layer, "abc", &mut File::create(&archive).unwrap()).unwrap();
        let unpack = Invocation::new("tar").arg("-C").arg(dir.path()).arg("-xf").arg(&archive);
        CommandLog::default().run(unpack, dir.path()).unwrap();
        assert_eq!(std::fs::read(dir.path().join("layer.tar")).unwrap(), vec![1; 1000]);
        let read = |name: &str| -> serde_json::Value {
            serde_json::from_slice(&std::fs::read(dir.path().join(name)).unwrap()).unwrap()
        };
        assert_eq!(read("manifest.json")[0]["RepoTags"][0], "localhost/a:1");
        assert_eq!(read("config.json")["rootfs"]["diff_ids"][0], "sha256:abc");
    }
}
