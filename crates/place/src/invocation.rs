//! A command: what is run, as whom, and how it is started.
//!
//! Commands are spawned on one thread that lives as long as the process: the kernel's
//! parent-death signal, by which no server outlives a killed conductor, fires when the *thread*
//! that spawned the child ends, not when its process does.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};

use crate::child::{Confinement, Preparation};
use crate::user::ServerUser;

/// Writes a command's standard input to its end.
pub(crate) type Writing = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

/// Standard input that is made while the command runs.
struct Feed {
    /// The command that would write the same; never with a password.
    shown: String,
    write: Option<Writing>,
}

/// A command that can be both run and written down.
pub(crate) struct Invocation {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    /// Nothing of the caller's environment but a `PATH`.
    bare: bool,
    user: Option<ServerUser>,
    stdin: Option<PathBuf>,
    feed: Option<Feed>,
    output: Option<std::fs::File>,
    server: bool,
    confinement: Confinement,
}

impl Invocation {
    /// A command with the caller's environment.
    pub fn new(program: impl AsRef<OsStr>) -> Invocation {
        Invocation {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            bare: false,
            user: None,
            stdin: None,
            feed: None,
            output: None,
            server: false,
            confinement: Confinement::default(),
        }
    }

    /// A command from a program and its leading arguments.
    pub fn of(words: &[OsString]) -> Invocation {
        let mut invocation = Invocation::new(words.first().map_or(OsStr::new(""), |word| word));
        invocation.args.extend(words.iter().skip(1).cloned());
        invocation
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.add(arg);
        self
    }

    /// Adds an argument in place, for those that depend on something.
    pub fn add(&mut self, arg: impl AsRef<OsStr>) {
        self.args.push(arg.as_ref().to_owned());
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Adds `--name=value` with a path as the value.
    pub fn path_option(self, name: &str, value: &Path) -> Self {
        let mut arg = OsString::from(format!("--{name}="));
        arg.push(value);
        self.arg(arg)
    }

    /// Sets environment variables.
    pub fn env(mut self, env: &[(OsString, OsString)]) -> Self {
        self.env.extend(env.iter().cloned());
        self
    }

    /// Passes nothing of the caller's environment on: a preloaded library or a locale of the
    /// person who runs the study must not become part of the condition.
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self
    }

    /// Runs it as this user, where we are allowed to.
    pub fn user(mut self, user: &ServerUser) -> Self {
        self.user = Some(user.clone());
        self
    }

    /// Reads standard input from a file.
    pub fn stdin(mut self, path: &Path) -> Self {
        self.stdin = Some(path.to_owned());
        self
    }

    /// Reads standard input from `write`, which stands in the log as the command `shown`.
    pub fn fed(
        mut self,
        shown: impl Into<String>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Self {
        self.feed = Some(Feed { shown: shown.into(), write: Some(Box::new(write)) });
        self
    }

    /// Who writes standard input, if somebody does; asked for once.
    pub fn take_feed(&mut self) -> Option<Writing> {
        self.feed.as_mut().and_then(|feed| feed.write.take())
    }

    /// Writes standard output and error to an open file.
    pub fn output(mut self, file: std::fs::File) -> Self {
        self.output = Some(file);
        self
    }

    /// A long-running server: its own session, so that Ctrl-C at the terminal is the conductor's
    /// to handle; no core files; as many open files as the hard limit allows.
    pub fn server(mut self) -> Self {
        self.server = true;
        self
    }

    /// Runs it under these limits, scheduling and memory policy.
    pub fn confined(mut self, confinement: &Confinement) -> Self {
        self.env.extend(confinement.environment());
        self.confinement = confinement.clone();
        self
    }

    /// As a person would type it.
    pub fn quoted(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        if let Some(feed) = &self.feed {
            words.extend([feed.shown.clone(), "|".to_owned()]);
        }
        words.extend(self.confinement.words());
        if let Some(name) = self.user.as_ref().and_then(ServerUser::switch_name) {
            words.extend(["runuser", "-u", name, "--"].map(str::to_owned));
        }
        if self.bare {
            words.extend(["env", "-i"].map(str::to_owned));
        } else if self.user.is_some() && !self.env.is_empty() {
            words.push("env".to_owned());
        }
        for (name, value) in &self.env {
            words.push(format!("{}={}", name.to_string_lossy(), quote(value)));
        }
        words.push(quote(&self.program));
        words.extend(self.args.iter().map(|arg| quote(arg)));
        if let Some(path) = &self.stdin {
            words.push(format!("< {}", quote(path.as_os_str())));
        }
        words.join(" ")
    }

    /// Starts it.
    pub fn spawn(&mut self) -> io::Result<Child> {
        self.command().and_then(spawn_on_lasting_thread)
    }

    /// The program alone, for errors.
    pub fn program(&self) -> &Path {
        Path::new(&self.program)
    }

    fn command(&mut self) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        if self.bare {
            command.env_clear();
            command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(match &self.stdin {
            Some(path) => Stdio::from(std::fs::File::open(path)?),
            None if self.feed.is_some() => Stdio::piped(),
            None => Stdio::null(),
        });
        match self.output.take() {
            Some(file) => {
                command.stderr(file.try_clone()?);
                command.stdout(file);
            }
            None => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
        }
        let user = self.user.as_ref().and_then(ServerUser::switch_ids);
        let preparation = Preparation::new(self.server, user, &self.confinement)?;
        // SAFETY: between fork and exec only plain system calls are made: no allocation, no lock.
        unsafe {
            command.pre_exec(move || preparation.run());
        }
        Ok(command)
    }
}

type Request = (Command, Sender<io::Result<Child>>);

/// Spawns on the one long-lived thread; see the file's head.
fn spawn_on_lasting_thread(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<Request>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, receiver) = channel::<Request>();
        // Should the thread not start, `receiver` is dropped and every send below fails.
        let _ = std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            while let Ok((mut command, reply)) = receiver.recv() {
                if let Err(unsent) = reply.send(command.spawn())
                    && let Ok(mut child) = unsent.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        });
        Mutex::new(sender)
    });
    let gone = || io::Error::other("the thread that starts processes has ended");
    let (reply, answer) = channel();
    match spawner.lock() {
        Ok(sender) => sender.send((command, reply)),
        Err(poisoned) => poisoned.into_inner().send((command, reply)),
    }
    .map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// A word for a POSIX shell. The credentials of an address, should a mirror's carry some, are left
/// out.
pub fn quote(word: &OsStr) -> String {
    let word = without_credentials(&word.to_string_lossy());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// `https://user:password@host/` without `user:password@`.
fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_an_address_are_not_logged() {
        let quoted = |word: &str| Invocation::new(word).quoted();
        assert_eq!(quoted("https://me:pw@mirror.example/debian"), "https://mirror.example/debian");
        assert_eq!(quoted("https://mirror.example/a@b"), "https://mirror.example/a@b");
    }
}
