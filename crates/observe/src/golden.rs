//! The golden trees of `tests/golden`: files of other machines' `/proc`, `/sys` and `/etc`.
//!
//! A test gets a copy of its own. Symbolic links are listed in the tree's file `links` (link, then
//! target) and made in the copy, because not every way that a source tree travels keeps them.

use std::ops::Deref;
use std::path::Path;
use std::process::Command;

use crate::facts::Root;

/// A copy of a golden tree; removed when dropped.
pub(crate) struct Golden {
    pub(crate) dir: tempfile::TempDir,
    root: Root,
}

impl Golden {
    /// Copies the tree `name`.
    pub(crate) fn copy(name: &str) -> Golden {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let copied = Command::new("cp").arg("-a").arg(golden.join(".")).arg(dir.path()).status();
        assert!(copied.is_ok_and(|status| status.success()), "{name} cannot be copied");
        for line in std::fs::read_to_string(golden.join("links")).unwrap_or_default().lines() {
            let (link, target) = line.split_once(' ').expect("a link and its target");
            let link = dir.path().join(link);
            std::fs::create_dir_all(link.parent().expect("a parent")).expect("a directory");
            std::os::unix::fs::symlink(target, &link).expect("a link");
        }
        let root = Root::at(dir.path());
        Golden { dir, root }
    }
}

impl Deref for Golden {
    type Target = Root;

    fn deref(&self) -> &Root {
        &self.root
    }
}
