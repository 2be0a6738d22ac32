//! Packages that are images of a container engine: `image:percona/percona-server:8.0`.
//!
//! The user's registry and credentials are the engine's business: what is not here yet is pulled by
//! the user, so that a study never waits for, or silently moves to, another version of a tag.

use std::path::PathBuf;

use study::ContainerEngine;

use super::{Package, probe};
use crate::command::CommandLog;
use crate::engine::Engine;
use crate::error::PlaceError;

/// How such a name begins.
pub(super) const PREFIX: &str = "image:";
/// Names of the server program, in the image's own `PATH`.
const PROGRAMS: [&str; 2] = ["mysqld", "mariadbd"];

/// Checks what is left of a name without its prefix.
pub(super) fn check(name: &str, reference: &str) -> Result<(), PlaceError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    // One that begins with a dash would be an option of the engine's.
    if reference.starts_with(|c: char| c.is_ascii_alphanumeric()) && reference.chars().all(plain) {
        return Ok(());
    }
    Err(PlaceError::Unusable {
        name: name.to_owned(),
        why: "that is not the name of an image".to_owned(),
        next: Some("such as image:percona/percona-server:8.0".to_owned()),
    })
}

/// Asks the image for its server's version; its hash is the image's own id.
///
/// # Errors
/// The engine's, when it or the image is not here; that the image holds no server.
pub(super) fn resolve(
    name: &str,
    reference: &str,
    log: &CommandLog,
) -> Result<Package, PlaceError> {
    let (engine, _) = Engine::find(ContainerEngine::Auto, log)?;
    let image = engine.image(reference, log)?;
    let mut refusal = None;
    for program in PROGRAMS {
        let asked = engine.command(&["run", "--rm", "--pull", "never", "--network", "none"]);
        let asked = asked.args(["--entrypoint", program, reference, "--no-defaults", "--version"]);
        let said = log.run_watched(asked, || ())?;
        if let Some((flavour, version)) = probe::parse_version(&said.stdout) {
            return Ok(Package {
                name: name.to_owned(),
                flavour,
                version,
                mysqld: vec![program.into()],
                env: Vec::new(),
                // The server's own default, whatever that is in there.
                base_dir: PathBuf::new(),
                hash: image.id,
            });
        }
        let what = format!("the image `{reference}` holds no server that tells its version");
        refusal.get_or_insert(engine.refused(&what, &said));
    }
    Err(refusal.unwrap_or_else(|| PlaceError::Other(format!("{name}: no server program is known"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_images_are_told_from_options() {
        for good in ["mysql", "percona/percona-server:8.0", "localhost:5000/a@sha256:0123"] {
            assert!(check("", good).is_ok(), "{good}");
        }
        for bad in ["", "--privileged", "a b", "a;b"] {
            assert!(check("", bad).is_err(), "{bad}");
        }
    }
}
