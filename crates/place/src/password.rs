//! Where the password of a server that is not ours comes from: a file, else the environment; never
//! an argument, which everybody on the machine can read.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::PlaceError;

/// The environment variable that may hold it.
pub const PASSWORD_VARIABLE: &str = "CETERIS_PASSWORD";
/// Bytes of a first line that cannot be a password any more: the file is another, or never ends.
const LINE_MAX: u64 = 64 * 1024;

/// The first line of a file, without its end.
///
/// # Errors
/// When it cannot be read, or its first line is none.
pub fn password_of_file(path: &Path) -> Result<String, PlaceError> {
    let mut line = String::new();
    let wrong = |why: &str| {
        PlaceError::Other(format!("cannot read the password file {}: {why}", path.display()))
    };
    let read = |file: File| BufReader::new(file.take(LINE_MAX)).read_line(&mut line);
    let bytes = File::open(path).and_then(read).map_err(|error| wrong(&error.to_string()))?;
    if bytes as u64 == LINE_MAX {
        return Err(wrong("its first line is too long"));
    }
    Ok(line.lines().next().unwrap_or_default().to_owned())
}

/// The password of a file, or of the environment where no file is named; empty where neither is.
pub(crate) fn password(file: Option<&Path>) -> Result<String, PlaceError> {
    match (file, std::env::var(PASSWORD_VARIABLE)) {
        (Some(file), _) => password_of_file(file),
        (None, Ok(password)) => Ok(password),
        (None, Err(std::env::VarError::NotPresent)) => Ok(String::new()),
        (None, Err(std::env::VarError::NotUnicode(_))) => {
            Err(PlaceError::Other(format!("{PASSWORD_VARIABLE} is no UTF-8")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let error = password_of_file(Path::new("/dev/zero")).err();
        assert!(error.is_some_and(|error| error.to_string().contains("too long")));
        assert_eq!(password_of_file(Path::new("/dev/null")).ok(), Some(String::new()));
    }
}
