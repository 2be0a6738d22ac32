//! Where the password comes from: a file, the terminal, an option file, the environment; never an
//! argument.

use std::io::IsTerminal;
use std::path::Path;

use place::PASSWORD_VARIABLE as VARIABLE;

use super::defaults::Defaults;
use super::dsn::password_hint;
use crate::cli::ServerArgs;
use crate::failure::{EXIT_USAGE, Failure};

/// The password, empty where none is given. `whose` is what a prompt asks for.
pub fn password(args: &ServerArgs, defaults: Defaults, whose: &str) -> Result<String, Failure> {
    if let Some(file) = &args.password_file {
        return from_file(file);
    }
    if args.ask_password {
        return ask(whose);
    }
    if let Some(password) = defaults.password {
        return Ok(password);
    }
    match std::env::var(VARIABLE) {
        Ok(password) => Ok(password),
        Err(std::env::VarError::NotPresent) => Ok(String::new()),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::new(format!("{VARIABLE} is no UTF-8")).code(EXIT_USAGE))
        }
    }
}

/// Refuses sysbench's way of giving it, and the same as an `--option`: an option that is unknown is
/// shown to the person with its value, and one that is known stands in the result.
pub fn refuse_argument(args: &ServerArgs, options: &[(String, String)]) -> Result<(), Failure> {
    let refuse = |what: String| {
        Err(Failure::new(format!("{what} is not accepted")).code(EXIT_USAGE).hint(password_hint()))
    };
    if args.mysql_password.is_some() {
        return refuse("--mysql-password".to_owned());
    }
    match options.iter().find(|(key, _)| names_password(key)) {
        Some((key, _)) => refuse(format!("--option {key}")),
        None => Ok(()),
    }
}

/// `password`, `mysql-password`, `MYSQL_PWD` ...
fn names_password(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    let last = key.rsplit(['_', '.']).next().unwrap_or(&key);
    ["password", "passwd", "pwd", "passphrase"].iter().any(|name| last.ends_with(name))
}

/// The first line, without its end.
fn from_file(path: &Path) -> Result<String, Failure> {
    place::password_of_file(path).map_err(|error| Failure::new(error.to_string()).code(EXIT_USAGE))
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
    fn an_option_that_names_a_password_is_known_by_its_name() {
        for key in ["mysql_password", "mysql-password", "PASSWORD", "mysqlpassword", "mysql_pwd"] {
            assert!(names_password(key), "{key}");
        }
        for key in ["rows", "password_length", "pass", "distribution"] {
            assert!(!names_password(key), "{key}");
        }
    }
}
