//! An instance's private directory, which holds data, socket and logs.

use std::path::PathBuf;

use crate::cache::{Cache, make_directory, short_id};
use crate::error::PlaceError;
use crate::journal::{Journal, Made};
use crate::server::check_socket;
use crate::tree;
use crate::user::ServerUser;

/// A journalled directory below `instances/`, removed when dropped.
pub(crate) struct PrivateDirectory {
    pub path: PathBuf,
    journal: Journal,
    removed: bool,
}

impl PrivateDirectory {
    pub fn make(cache: &Cache, user: &ServerUser, journal: &Journal) -> Result<Self, PlaceError> {
        let path = cache.room("instances").join(short_id()?);
        check_socket(&path)?;
        user.check_reach(&cache.room("instances"))?;
        journal.begin(&Made::Directory { path: path.clone() })?;
        let directory = PrivateDirectory { path, journal: journal.clone(), removed: false };
        for path in [&directory.path, &directory.path.join("tmp")] {
            make_directory(path, 0o700)?;
            user.own(path)?;
        }
        Ok(directory)
    }

    /// Tried once: what cannot be removed stays in the journal, where `ceteris doctor` finds it.
    pub fn remove(&mut self) -> Result<(), PlaceError> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(());
        }
        tree::remove_tree(&self.path)?;
        self.journal.end(&Made::Directory { path: self.path.clone() })
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.remove();
    }
}
