//! How a command ends: its exit code, and an error with its causes and the next step.

use std::io::Write;
use std::process::ExitCode;

/// Everything needed is there, or the command did what it was asked.
pub const EXIT_OK: u8 = 0;
/// Something failed.
pub const EXIT_FAILED: u8 = 1;
/// The study or an argument is wrong; nothing was started.
pub const EXIT_USAGE: u8 = 2;
/// Stopped by a signal from the user.
pub const EXIT_INTERRUPTED: u8 = 130;

/// An error that a person is going to read.
#[derive(Debug)]
pub struct Failure {
    /// Process exit code.
    pub code: u8,
    /// What went wrong, causes joined by `: `; already starts with `error:` when `rendered`.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
    /// `message` is a complete rendering, to be printed as it is.
    pub rendered: bool,
}

/// Result of every command: the exit code of a good end, or a failure.
pub type Ended = Result<u8, Failure>;

impl Failure {
    /// A failure with exit code 1.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { code: EXIT_FAILED, message: message.into(), hint: None, rendered: false }
    }

    /// Adds the next step.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Changes the exit code.
    pub fn code(mut self, code: u8) -> Failure {
        self.code = code;
        self
    }
}

impl From<study::StudyError> for Failure {
    fn from(error: study::StudyError) -> Failure {
        Failure { code: EXIT_USAGE, message: error.to_string(), hint: None, rendered: true }
    }
}

impl From<place::PlaceError> for Failure {
    fn from(error: place::PlaceError) -> Failure {
        let hint = error.hint();
        Failure { hint, ..Failure::new(chain(&error)) }
    }
}

impl From<store::StoreError> for Failure {
    fn from(error: store::StoreError) -> Failure {
        let hint = error.hint().map(str::to_owned);
        Failure { hint, ..Failure::new(chain(&error)) }
    }
}

/// An error and its causes, joined by `: `; a cause that its parent already quotes is left out.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

/// Prints a failure, if it is one, and gives the process its exit code.
pub fn exit_code(ended: Ended) -> ExitCode {
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let prefix = if failure.rendered { "" } else { "error: " };
            let mut text = format!("{prefix}{}\n", failure.message.trim_end());
            if let Some(hint) = &failure.hint {
                text.push_str(&format!("hint: {hint}\n"));
            }
            // Nobody may be listening; the exit code still tells.
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
            ExitCode::from(failure.code)
        }
    }
}
