//! An empty data directory for a server that is an image: made and secured in containers of it.
//!
//! The steps are those of `crate::initialise`, and so is the securing; only that each program runs
//! in a container without a network, on a directory of this machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use study::{ConfigValue, DockerPlacement};

use super::container::{Container, Recipe};
use super::{by_socket, name_of, write_settings};
use crate::cache::{make_directory, random_hex};
use crate::dataset::{self, Dataset, DatasetKey};
use crate::directory::PrivateDirectory;
use crate::engine::Engine;
use crate::error::PlaceError;
use crate::initialise::secure;
use crate::package::{Flavour, Package};
use crate::server::STOP_LIMIT;
use crate::settings::{self, Listen};
use crate::tools::Tools;
use crate::user::ServerUser;

/// The initialised data directory without data, from the cache or made now.
pub(super) fn empty_dataset(
    engine: Engine,
    package: &Package,
    settings: &BTreeMap<String, ConfigValue>,
    user: &ServerUser,
    tools: Tools,
) -> Result<Dataset, PlaceError> {
    let Tools { cache, journal, .. } = tools;
    let key = DatasetKey::empty(package, settings);
    let _claim = Dataset::claim(cache, &key, || ())?;
    if let Some(found) = Dataset::find(cache, &key)? {
        return Ok(found);
    }
    let mut directory = PrivateDirectory::make(cache, user, journal)?;
    let data = directory.path.join("data");
    make_directory(&data, 0o700)?;
    user.own(&data)?;
    let password = initialise(engine, package, settings, &directory.path, user, tools)?;
    let dataset = dataset::keep(&data, &password, cache, &key, &BTreeMap::new())?;
    directory.remove()?;
    Ok(dataset)
}

fn initialise(
    engine: Engine,
    package: &Package,
    settings: &BTreeMap<String, ConfigValue>,
    dir: &Path,
    user: &ServerUser,
    Tools { journal, log, .. }: Tools,
) -> Result<String, PlaceError> {
    let mut text = settings::render(settings, package, dir, Listen::SocketOnly)?;
    if package.mysql_since(8, 0, 0) {
        // On by default there; the preparation is nobody's to replay.
        text.push_str("disable_log_bin\n");
    }
    write_settings(dir, &text, user)?;
    let recipe = Recipe {
        engine,
        placement: &DockerPlacement::default(),
        package,
        user,
        name: &name_of(dir),
        image: package.image().unwrap_or_default(),
        dir,
        journal: &journal.marker(),
        alone: true,
    };
    let mut maker = Container::make(&recipe, &making(&recipe)?, journal, log)?;
    maker.run_to_end()?;
    maker.remove()?;
    let password = random_hex(16)?;
    let mut server = Container::make(&recipe, &recipe.server(), journal, log)?;
    server.start()?;
    let mut connection = server.await_ready(&by_socket(dir, ""))?;
    secure(package, &mut connection, &password)
        .map_err(PlaceError::sql("cannot secure the new data directory"))?;
    drop(connection);
    server.stop(STOP_LIMIT)?;
    server.remove()?;
    Ok(password)
}

/// The words that make a data directory.
fn making(recipe: &Recipe) -> Result<Vec<OsString>, PlaceError> {
    let package = recipe.package;
    let mut words = recipe.server();
    match package.flavour {
        Flavour::Mysql if package.mysql_since(5, 7, 6) => {
            words.push("--initialize-insecure".into())
        }
        Flavour::Mysql => {
            return Err(PlaceError::Unusable {
                name: package.name.clone(),
                why: format!("MySQL {} cannot make a data directory by itself", package.version),
                next: Some("use an image of MySQL 5.7.6 or later".to_owned()),
            });
        }
        Flavour::Mariadb => {
            // Its old name is a link in every image since 10.4, and the only one before.
            words[0] = "mysql_install_db".into();
            if package.version >= crate::package::Version::new(10, 4, 0) {
                words[0] = "mariadb-install-db".into();
                words.push("--auth-root-authentication-method=normal".into());
            }
            words.extend(["--skip-test-db", "--skip-name-resolve"].map(OsString::from));
        }
    }
    Ok(words)
}
