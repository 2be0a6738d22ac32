//! What every placement works with.

use crate::cache::Cache;
use crate::command::CommandLog;
use crate::journal::Journal;

/// The cache, the journal and the list of commands of one study.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// Packages, datasets, images, private directories.
    pub cache: &'a Cache,
    /// What must be undone.
    pub journal: &'a Journal,
    /// Every external command that was run.
    pub log: &'a CommandLog,
}
