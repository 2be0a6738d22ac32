//! Where the password comes from: a file, the environment, the terminal; never an argument.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;

use super::dsn::password_hint;
use crate::cli::ServerArgs;
use crate::failure::{EXIT_USAGE, Failure};

const VARIABLE: &str = "CETERIS_PASSWORD";
/// Bytes of a first line that cannot be a password any more: the file is another, or never ends.
const LINE_MAX: u64 = 64 * 1024;

/// The password, empty where none is given. `whose` is what a prompt asks for.
pub fn password(args: &ServerArgs, whose: &str) -> Result<String, Failure> {
    if let Some(file) = &args.password_file {
        return from_file(file);
    }
    if args.ask_password {
        return ask(whose);
    }
    match std::env::var(VARIABLE) {
        Ok(password) => Ok(password),
        Err(std::env::VarError::NotPresent) => Ok(String::new()),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::new(format!("{VARIABLE} is no UTF-8")).code(EXIT_USAGE))
        }
    }
}

/// Refuses sysbench's way of giving it.
pub fn refuse_argument(args: &ServerArgs) -> Result<(), Failure> {
    match args.mysql_password {
        Some(_) => Err(Failure::new("--mysql-password is not accepted")
            .code(EXIT_USAGE)
            .hint(password_hint())),
        None => Ok(()),
    }
}

/// The first line, without its end.
fn from_file(path: &Path) -> Result<String, Failure> {
    let mut line = String::new();
    let wrong = |why: &str| {
        let message = format!("cannot read the password file {}: {why}", path.display());
        Failure::new(message).code(EXIT_USAGE)
    };
    let read = |file: File| BufReader::new(file.take(LINE_MAX)).read_line(&mut line);
    let bytes = File::open(path).and_then(read).map_err(|error| wrong(&error.to_string()))?;
    if bytes as u64 == LINE_MAX {
        return Err(wrong("its first line is too long"));
    }
    Ok(line.lines().next().unwrap_or_default().to_owned())
}

fn ask(whose: &str) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new("--ask-password needs a terminal to ask on")
            .code(EXIT_USAGE)
            .hint("use --password-file FILE or the environment variable CETERIS_PASSWORD"));
    }
    rpassword::prompt_password(format!("password of {whose}: "))
        .map_err(|error| Failure::new(format!("cannot ask for a password: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let failure = from_file(Path::new("/dev/zero")).err();
        assert!(failure.is_some_and(|failure| failure.message.contains("too long")));
        assert_eq!(from_file(Path::new("/dev/null")).ok(), Some(String::new()));
    }
}
