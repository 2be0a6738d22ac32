//! Where the password comes from: a file, the environment, the terminal; never an argument.

use std::io::IsTerminal;
use std::path::Path;

use place::PASSWORD_VARIABLE as VARIABLE;

use super::dsn::password_hint;
use crate::cli::ServerArgs;
use crate::failure::{EXIT_USAGE, Failure};

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
