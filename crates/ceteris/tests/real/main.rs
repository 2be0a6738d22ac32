//! ceteris as a person runs it: the binary, real servers, real signals.
//!
//! One test at a time (see `laboratory`), since they share the machine's cores. What the machine
//! lacks is skipped with a line that begins with `SKIPPED`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod arguments;
mod bench;
mod confounded;
mod factors;
mod killed;
mod laboratory;
mod placements;
mod private_server;
mod servers;
