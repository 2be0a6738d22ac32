//! How clients reach a guest: a port of 127.0.0.1 that QEMU's user-mode network forwards, or a tap
//! device with a private network of two addresses.

use std::path::Path;

use study::GuestNetwork;

use crate::command::Invocation;
use crate::error::PlaceError;
use crate::journal::{Journal, Made};
use crate::tools::Tools;
use crate::user::ServerUser;

/// The server's port inside; every guest has its own.
pub(super) const GUEST_PORT: u16 = 3306;

/// A guest's network.
pub(super) struct Network {
    /// The guest's address with the length of its prefix.
    pub guest_address: String,
    /// Where clients seem to come from, seen from inside.
    pub client_address: String,
    tap: Option<Tap>,
}

/// A journalled tap device, removed when dropped.
struct Tap {
    name: String,
    journal: Journal,
    log: crate::command::CommandLog,
    removed: bool,
}

impl Network {
    /// Makes it for the instance `id`, eight hexadecimal digits.
    pub fn make(
        kind: GuestNetwork,
        id: &str,
        user: &ServerUser,
        tools: Tools,
    ) -> Result<Network, PlaceError> {
        if kind == GuestNetwork::User {
            return Ok(Network {
                guest_address: "10.0.2.15/24".to_owned(),
                client_address: "10.0.2.2".to_owned(),
                tap: None,
            });
        }
        let (host, guest) = link_local(id);
        // A device's name has at most 15 characters.
        let name = format!("ceteris-{}", id.get(..7).unwrap_or(id));
        tools.journal.begin(&Made::Device { name: name.clone() })?;
        let tap = Tap {
            name: name.clone(),
            journal: tools.journal.clone(),
            log: tools.log.clone(),
            removed: false,
        };
        let uid = user.uid.to_string();
        for words in [
            vec!["tuntap", "add", "dev", &name, "mode", "tap", "user", &uid],
            vec!["address", "add", &format!("{host}/30"), "dev", &name],
            vec!["link", "set", &name, "up"],
        ] {
            tools.log.run(Invocation::new("ip").args(words), Path::new("/"))?;
        }
        Ok(Network { guest_address: format!("{guest}/30"), client_address: host, tap: Some(tap) })
    }

    /// The address without its prefix.
    pub fn guest(&self) -> &str {
        self.guest_address.split('/').next().unwrap_or_default()
    }

    /// The tap device, if that is how.
    pub fn tap(&self) -> Option<&str> {
        self.tap.as_ref().map(|tap| tap.name.as_str())
    }

    /// Removes what was made, once QEMU has ended.
    pub fn remove(&mut self) -> Result<(), PlaceError> {
        self.tap.as_mut().map_or(Ok(()), Tap::remove)
    }
}

impl Tap {
    /// Tried once: what cannot be removed stays in the journal.
    fn remove(&mut self) -> Result<(), PlaceError> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(());
        }
        if Path::new("/sys/class/net").join(&self.name).exists() {
            let remove = Invocation::new("ip").args(["link", "delete", &self.name]);
            self.log.run(remove, Path::new("/"))?;
        }
        self.journal.end(&Made::Device { name: self.name.clone() })
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.remove();
    }
}

/// Two addresses of a network of four, which no router forwards (RFC 3927); `id` chooses among
/// 16,000 of them.
fn link_local(id: &str) -> (String, String) {
    let bits = id.get(..4).and_then(|start| u16::from_str_radix(start, 16).ok()).unwrap_or(0);
    // The first and the last 256 addresses of the block are reserved.
    let third = 1 + (bits >> 8) % 254;
    let fourth = (bits & 0x3f) * 4;
    (format!("169.254.{third}.{}", fourth + 1), format!("169.254.{third}.{}", fourth + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_lie_in_one_network_of_four_and_outside_of_what_is_reserved() {
        for id in ["00000000", "ffffffff", "fe3f0000", "12345678"] {
            let (host, guest) = link_local(id);
            let parts = |text: &str| -> Vec<u16> {
                text.split('.').filter_map(|part| part.parse().ok()).collect()
            };
            let (host, guest) = (parts(&host), parts(&guest));
            assert_eq!(host[..3], guest[..3], "{id}");
            assert!((1..=254).contains(&host[2]), "{id}");
            assert_eq!((host[3] % 4, guest[3] % 4), (1, 2), "{id}");
            assert_eq!(host[3] / 4, guest[3] / 4, "{id}");
        }
    }
}
