//! How an address reads in a message.

use std::fmt;

use crate::spec::Address;

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Socket(path) => write!(f, "{}", path.display()),
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_person_would_write_it() {
        assert_eq!(Address::Socket("/run/s.sock".into()).to_string(), "/run/s.sock");
        assert_eq!(Address::Tcp("db1".into(), 3306).to_string(), "db1:3306");
        assert_eq!(Address::Tcp("::1".into(), 3306).to_string(), "[::1]:3306");
    }
}
