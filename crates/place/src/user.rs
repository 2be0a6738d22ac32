//! The unprivileged user that servers run as.
//!
//! Root runs servers as `mysql` where that user exists, else as `nobody`; anybody else runs them as
//! themselves. Servers refuse to run as root for good reason, and a study must not either.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::error::PlaceError;

/// Who runs servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUser {
    /// Name for people.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Whether we have to switch to it.
    switch: bool,
}

impl ServerUser {
    /// Finds the user for this process.
    ///
    /// # Errors
    /// For root where neither user exists.
    pub fn find() -> Result<ServerUser, PlaceError> {
        let passwd = Path::new("/etc/passwd");
        let text = std::fs::read_to_string(passwd).map_err(PlaceError::io("read", passwd))?;
        let own_uid = rustix::process::geteuid();
        if own_uid.is_root() {
            return ["mysql", "nobody"]
                .into_iter()
                .find_map(|wanted| entry(&text, |name, _| name == wanted))
                .map(|(name, uid, gid)| ServerUser { name, uid, gid, switch: true })
                .ok_or_else(|| {
                    PlaceError::Other(
                        "neither a user `mysql` nor a user `nobody` exists to run servers".into(),
                    )
                });
        }
        let uid = own_uid.as_raw();
        let name = entry(&text, |_, id| id == uid).map_or_else(|| uid.to_string(), |found| found.0);
        Ok(ServerUser { name, uid, gid: rustix::process::getegid().as_raw(), switch: false })
    }

    /// User and group id to switch to, if we have to.
    pub fn switch_ids(&self) -> Option<(u32, u32)> {
        self.switch.then_some((self.uid, self.gid))
    }

    /// The name to switch to, if we have to.
    pub fn switch_name(&self) -> Option<&str> {
        self.switch.then_some(self.name.as_str())
    }

    /// Gives a path to this user.
    pub(crate) fn own(&self, path: &Path) -> Result<(), PlaceError> {
        if self.switch {
            std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
                .map_err(PlaceError::io("change the owner of", path))?;
        }
        Ok(())
    }

    /// Whether this user may enter every directory above `path` and read `path` itself.
    ///
    /// # Errors
    /// Names the first directory that is closed to it.
    pub(crate) fn check_reach(&self, path: &Path) -> Result<(), PlaceError> {
        let path = path.canonicalize().map_err(PlaceError::io("find", path))?;
        let mut above: Vec<&Path> = path.ancestors().collect();
        above.reverse();
        for step in above {
            let meta = step.metadata().map_err(PlaceError::io("look at", step))?;
            let mode = meta.permissions().mode();
            let granted = if meta.uid() == self.uid {
                mode >> 6
            } else if meta.gid() == self.gid {
                mode >> 3
            } else {
                mode
            };
            let wanted = if meta.is_dir() { 0o1 } else { 0o4 };
            if self.uid != 0 && granted & wanted != wanted {
                return Err(PlaceError::Unreachable {
                    user: self.name.clone(),
                    closed: step.to_owned(),
                    path,
                });
            }
        }
        Ok(())
    }
}

/// The first entry of a passwd file that fits.
fn entry(passwd: &str, fits: impl Fn(&str, u32) -> bool) -> Option<(String, u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        fits(name, uid).then(|| (name.to_owned(), uid, gid))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn entries_are_found_by_name_and_by_id() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nmysql:x:102:105::/nonexistent:/x\n";
        assert_eq!(entry(passwd, |name, _| name == "mysql"), Some(("mysql".to_owned(), 102, 105)));
        assert_eq!(entry(passwd, |_, uid| uid == 0), Some(("root".to_owned(), 0, 0)));
        assert_eq!(entry(passwd, |_, uid| uid == 7), None);
    }

    #[test]
    fn a_closed_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        let user =
            ServerUser { name: "stranger".into(), uid: 4_000_000, gid: 4_000_000, switch: false };
        let set = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(0o700);
        let error = user.check_reach(&open).unwrap_err();
        assert!(matches!(error, PlaceError::Unreachable { closed, .. } if closed == dir.path()));
        set(0o755);
        user.check_reach(&open).unwrap();
    }
}
