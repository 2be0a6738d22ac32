//! The `[client]` section of an option file, as MySQL's own clients read it: whom to call and the
//! password, for people who keep both there. What else the section holds is for those clients.
//!
//! No error here quotes a line: the next one may hold the password.

use std::path::{Path, PathBuf};

use crate::failure::{EXIT_USAGE, Failure};

/// What the section says, as far as it is of use here. `Debug` is left out for the password's sake.
#[derive(Default)]
pub struct Defaults {
    pub user: Option<String>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub socket: Option<PathBuf>,
    pub password: Option<String>,
}

/// Reads `path`, if one is given.
pub fn read(path: Option<&Path>) -> Result<Defaults, Failure> {
    let Some(path) = path else { return Ok(Defaults::default()) };
    let wrong = |why: &str| {
        let message = format!("cannot read the option file {}: {why}", path.display());
        Failure::new(message).code(EXIT_USAGE)
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    parse(&text).map_err(|line| {
        wrong(&format!("line {line} gives no port"))
            .hint("port is a number from 0 to 65535 in its [client] section")
    })
}

/// The section; an error is the number of the line that is wrong.
fn parse(text: &str) -> Result<Defaults, usize> {
    let mut defaults = Defaults::default();
    let mut ours = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            // MariaDB's clients read the second one, too.
            ours = matches!(section.split(']').next(), Some("client" | "client-server"));
            continue;
        }
        // `!include` and the like are directives; other files are not followed.
        if !ours || line.is_empty() || line.starts_with(['#', ';', '!']) {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = unquoted(value.trim());
        match key.trim().replace('_', "-").as_str() {
            "user" => defaults.user = Some(value),
            "host" => defaults.host = Some(value),
            "port" => defaults.port = Some(value.parse().map_err(|_| index + 1)?),
            "socket" => defaults.socket = Some(PathBuf::from(value)),
            "password" => defaults.password = Some(value),
            _ => {}
        }
    }
    Ok(defaults)
}

/// The value without its quotes or the comment behind it, and with its escapes replaced.
fn unquoted(text: &str) -> String {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    let mut value = String::with_capacity(text.len());
    let mut rest = text.chars().skip(usize::from(quote.is_some()));
    while let Some(next) = rest.next() {
        match (next, quote) {
            (next, Some(quote)) if next == quote => return value,
            ('#', None) => break,
            ('\\', _) => match rest.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some('b') => value.push('\u{8}'),
                Some('s') => value.push(' '),
                Some(same @ ('\\' | '"' | '\'')) => value.push(same),
                // An escape that is none stands for itself.
                Some(other) => value.extend(['\\', other]),
                None => value.push('\\'),
            },
            (next, _) => value.push(next),
        }
    }
    value.truncate(value.trim_end().len());
    value
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_client_section_is_read_as_clients_do() {
        let text = "user = outside\n[mysqld]\nport = 1\nuser = mysql\n[client]\n# a comment\n\
                    user=me\nhost = \"db1\"\n port = 3307 # ours\nsocket=/a/b.sock\n\
                    password = 'p#ss \\\\ w\\'rd'\ndefault-character-set = utf8mb4\nquick\n\
                    !includedir /etc/mysql\n[mysqldump]\nuser = dump\n";
        let defaults = parse(text).ok().unwrap();
        assert_eq!(defaults.user.as_deref(), Some("me"));
        assert_eq!(defaults.host.as_deref(), Some("db1"));
        assert_eq!((defaults.port, defaults.socket), (Some(3307), Some("/a/b.sock".into())));
        assert_eq!(defaults.password.as_deref(), Some("p#ss \\ w'rd"));
        let nothing = parse("[mysql]\nuser = me\n").ok().unwrap();
        assert!(nothing.user.is_none() && nothing.password.is_none());
    }

    #[test]
    fn no_error_quotes_the_file() {
        assert_eq!(parse("[client]\npassword=s3cret\nport=s3cret\n").err(), Some(3));
        let failure = read(Some(Path::new("/nonexistent/my.cnf"))).err().unwrap();
        assert!(failure.message.contains("/nonexistent/my.cnf"), "{}", failure.message);
        assert_eq!(failure.code, EXIT_USAGE);
    }
}
