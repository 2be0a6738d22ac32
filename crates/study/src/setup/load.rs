//! How the workload is driven.

use serde::{Deserialize, Serialize};

use crate::quantity::Millis;

/// How the workload is driven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// Concurrent connections, each running transactions one after the other (closed loop).
    pub connections: u32,
    /// Time driven before measuring.
    pub warmup: Millis,
    /// Time measured.
    pub measure: Millis,
    /// Worker threads; `None` lets the worker choose and say what it chose.
    pub threads: Option<u32>,
    /// How connections reach the server.
    pub connect: Connect,
}

/// How connections reach the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connect {
    /// The instance's Unix socket.
    #[default]
    Socket,
    /// TCP on loopback.
    Tcp,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            connections: 8,
            warmup: Millis::from_secs(10),
            measure: Millis::from_secs(60),
            threads: None,
            connect: Connect::Socket,
        }
    }
}
