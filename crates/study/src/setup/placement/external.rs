//! A server that ceteris did not start.

use serde::{Deserialize, Serialize};

use crate::setup::Contradiction;

/// A server that ceteris did not start: nothing on it is changed beyond ceteris's own database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExternalPlacement {
    /// `mysql://user@host:3306/` or `mysql://user@localhost/?socket=/path`; no password in it. Must be given.
    pub dsn: Option<String>,
    /// A file whose first line is the password.
    pub password_file: Option<String>,
    /// Whether `server.config` may be set by `SET GLOBAL`, and is set back afterwards.
    pub allow_set_global: bool,
}

impl ExternalPlacement {
    pub(crate) fn contradiction(&self) -> Option<Contradiction> {
        self.dsn.is_none().then(|| Contradiction {
            key: "dsn",
            message: "the external server has no address".to_owned(),
            hint: "add `dsn = \"mysql://user@host:3306/\"`",
        })
    }
}
