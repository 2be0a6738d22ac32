//! What a child does to itself between fork and exec.
//!
//! It enters its control groups and takes its memory policy and its scheduling while it still has our
//! rights, becomes the server's user, and only then asks to die with its conductor: a change of
//! credentials would clear that wish. Only plain system calls are made here, nothing is allocated and
//! no lock is taken: everything is prepared by [`Confinement::open`] before the fork.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::{Gid, Uid};
use study::{NumaPolicy, SchedulerClass, ranges};

use crate::invocation::quote;

/// How a program runs beyond its arguments. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Confinement {
    /// Directories of the control groups that it enters.
    pub groups: Vec<PathBuf>,
    /// Nice level.
    pub nice: i32,
    /// Scheduling class.
    pub scheduler: SchedulerClass,
    /// Memory policy and its nodes.
    pub numa: Option<(NumaPolicy, BTreeSet<u32>)>,
    /// Whether it gets no transparent huge pages.
    pub huge_pages_off: bool,
    /// A library to preload.
    pub preload: Option<PathBuf>,
}

/// Turns transparent huge pages off and becomes another program; there is no usual tool for it.
const WITHOUT_HUGE_PAGES: &str = "import ctypes,os,sys; \
    ctypes.CDLL(None).prctl(41,1,0,0,0); os.execvp(sys.argv[1],sys.argv[1:])";

impl Confinement {
    /// The words that a person would put before the command; each ends by executing what follows.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        if !self.groups.is_empty() {
            let entries = self.groups.iter().map(|group| {
                let file = group.join("cgroup.procs");
                format!("echo $$ > {}; ", quote(file.as_os_str()))
            });
            let script = format!("{}exec \"$@\"", entries.collect::<String>());
            add(&["sh", "-c", &quote(script.as_ref()), "sh"]);
        }
        if self.nice != 0 {
            add(&["nice", "-n", &self.nice.to_string()]);
        }
        match self.scheduler {
            SchedulerClass::Other => {}
            SchedulerClass::Batch => add(&["chrt", "--batch", "0"]),
            SchedulerClass::Idle => add(&["chrt", "--idle", "0"]),
        }
        if let Some((policy, nodes)) = &self.numa {
            let nodes = ranges(nodes);
            match policy {
                NumaPolicy::Default => {}
                NumaPolicy::Interleave => add(&["numactl", &format!("--interleave={nodes}")]),
                NumaPolicy::Bind => add(&["numactl", &format!("--membind={nodes}")]),
                NumaPolicy::Preferred => add(&["numactl", &format!("--preferred={nodes}")]),
            }
        }
        if self.huge_pages_off {
            add(&["python3", "-c", &quote(WITHOUT_HUGE_PAGES.as_ref())]);
        }
        words
    }

    /// What it adds to the environment.
    pub fn environment(&self) -> Option<(OsString, OsString)> {
        self.preload.as_ref().map(|library| ("LD_PRELOAD".into(), library.into()))
    }

    /// Opens and lays out everything that the child will use.
    fn open(&self) -> io::Result<Prepared> {
        let open = |group: &PathBuf| File::options().write(true).open(group.join("cgroup.procs"));
        Ok(Prepared {
            groups: self.groups.iter().map(open).collect::<io::Result<_>>()?,
            nice: (self.nice != 0).then(|| (self.nice, self.nice.to_string())),
            scheduler: match self.scheduler {
                SchedulerClass::Other => None,
                SchedulerClass::Batch => Some(libc::SCHED_BATCH),
                SchedulerClass::Idle => Some(libc::SCHED_IDLE),
            },
            memory: self.numa.as_ref().map(|(policy, nodes)| {
                let mode = match policy {
                    NumaPolicy::Default => libc::MPOL_DEFAULT,
                    NumaPolicy::Interleave => libc::MPOL_INTERLEAVE,
                    NumaPolicy::Bind => libc::MPOL_BIND,
                    NumaPolicy::Preferred => libc::MPOL_PREFERRED,
                };
                (mode, node_mask(nodes.iter().copied()))
            }),
            huge_pages_off: self.huge_pages_off,
        })
    }
}

/// Nodes as the bits that `set_mempolicy(2)` takes.
fn node_mask(nodes: impl Iterator<Item = u32>) -> Vec<libc::c_ulong> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    let mut mask = Vec::new();
    for node in nodes {
        let word = node as usize / BITS;
        if mask.len() <= word {
            mask.resize(word + 1, 0);
        }
        mask[word] |= 1 << (node as usize % BITS);
    }
    mask
}

/// A [`Confinement`] that is ready for system calls.
struct Prepared {
    groups: Vec<File>,
    nice: Option<(i32, String)>,
    scheduler: Option<libc::c_int>,
    memory: Option<(libc::c_int, Vec<libc::c_ulong>)>,
    huge_pages_off: bool,
}

/// A refused system call: what it was for, and the reason.
type Refusal = (&'static str, Errno);

/// Names what a system call is for.
fn to(what: &'static str) -> impl Fn(Errno) -> Refusal {
    move |error| (what, error)
}

/// Everything between fork and exec.
pub(crate) struct Preparation {
    conductor: Pid,
    server: bool,
    user: Option<(Uid, Gid)>,
    confinement: Prepared,
}

impl Preparation {
    /// For a child of this process; with `user` (its ids), one that becomes that user.
    pub fn new(
        server: bool,
        user: Option<(u32, u32)>,
        confinement: &Confinement,
    ) -> io::Result<Preparation> {
        Ok(Preparation {
            conductor: rustix::process::getpid(),
            server,
            user: user.map(|(uid, gid)| (Uid::from_raw(uid), Gid::from_raw(gid))),
            confinement: confinement.open()?,
        })
    }

    /// Runs in the child. What was refused is said on its standard error, since the parent learns
    /// the error number only.
    pub fn run(&self) -> io::Result<()> {
        self.steps().map_err(|(what, error)| {
            // SAFETY: the child has a standard error of its own, which nobody closes before it ends.
            let told = unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
            for text in ["ceteris: cannot ", what, "\n"] {
                // Nothing is left to try if even that is refused.
                let _ = rustix::io::write(told, text.as_bytes());
            }
            io::Error::from_raw_os_error(error.raw_os_error())
        })
    }

    fn steps(&self) -> Result<(), Refusal> {
        if self.server {
            rustix::process::setsid().map_err(to("begin a session"))?;
        }
        self.confinement.enter(self.server)?;
        if let Some((uid, gid)) = self.user {
            // The thread's, which are the process's: the child has one thread.
            rustix::thread::set_thread_groups(&[]).map_err(to("leave its groups"))?;
            rustix::thread::set_thread_gid(gid).map_err(to("become the server's group"))?;
            rustix::thread::set_thread_uid(uid).map_err(to("become the server's user"))?;
        }
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(to("ask to die with ceteris"))?;
        // The conductor may have died before the line above; then nobody would ever signal.
        if rustix::process::getppid() != Some(self.conductor) {
            return Err(("outlive ceteris", Errno::SRCH));
        }
        if self.server {
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            rustix::process::setrlimit(Resource::Core, none).map_err(to("limit core files"))?;
            let files = rustix::process::getrlimit(Resource::Nofile);
            let all = Rlimit { current: files.maximum, maximum: files.maximum };
            // An unlimited hard limit may exceed what the kernel grants; the old soft limit then stays.
            let _ = rustix::process::setrlimit(Resource::Nofile, all);
        }
        Ok(())
    }
}

impl Prepared {
    /// `own_session`: no other process is in this one's session.
    fn enter(&self, own_session: bool) -> Result<(), Refusal> {
        for group in &self.groups {
            // `0` is the process that writes, in both versions.
            rustix::io::write(group, b"0").map_err(to("enter its control group"))?;
        }
        if let Some((nice, text)) = &self.nice {
            rustix::process::setpriority_process(None, *nice).map_err(to("take its nice level"))?;
            if own_session {
                nice_session(text)?;
            }
        }
        if let Some(class) = self.scheduler {
            let parameters = libc::sched_param { sched_priority: 0 };
            // SAFETY: 0 is this process; the parameters live until the call returns.
            let done = unsafe { libc::sched_setscheduler(0, class, &raw const parameters) };
            checked(done.into()).map_err(to("take its scheduling class"))?;
        }
        if let Some((mode, mask)) = &self.memory {
            // The kernel reads one bit less than it is told.
            let bits = mask.len() * libc::c_ulong::BITS as usize + 1;
            let mask = if mask.is_empty() { std::ptr::null() } else { mask.as_ptr() };
            // SAFETY: the mask has as many words as its number of bits says, or is null, which is
            // the empty one.
            let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, *mode, mask, bits) };
            checked(done).map_err(to("take its memory policy"))?;
        }
        if self.huge_pages_off {
            rustix::thread::disable_transparent_huge_pages(true)
                .map_err(to("turn transparent huge pages off"))?;
        }
        Ok(())
    }
}

/// Where sessions are scheduled as groups, a nice level counts only inside of the session; between
/// sessions the group's own does (sched(7)).
fn nice_session(level: &str) -> Result<(), Refusal> {
    let path = c"/proc/self/autogroup";
    match rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(group) => rustix::io::write(&group, level.as_bytes())
            .map(drop)
            .map_err(to("take the nice level of its session")),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(("open the nice level of its session", error)),
    }
}

/// The error of a call of the C library.
fn checked(result: libc::c_long) -> Result<(), Errno> {
    match result {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::command::{CommandLog, find_program};
    use crate::invocation::Invocation;
    use std::path::Path;

    #[test]
    fn nodes_become_bits() {
        assert_eq!(node_mask([0, 2].into_iter()), [0b101]);
        assert_eq!(node_mask([64].into_iter()), [0, 1]);
        assert!(node_mask(std::iter::empty()).is_empty());
    }

    #[test]
    fn a_child_runs_as_it_is_told_and_what_is_logged_does_the_same() {
        let confinement = Confinement {
            nice: 3,
            scheduler: SchedulerClass::Batch,
            numa: Some((NumaPolicy::Interleave, [0].into())),
            huge_pages_off: true,
            ..Confinement::default()
        };
        let script = "cut -d' ' -f19,41 /proc/self/stat; grep THP_enabled /proc/self/status; \
                      grep -q interleave:0 /proc/self/numa_maps && echo interleaved";
        let log = CommandLog::default();
        let invocation = Invocation::new("sh").arg("-c").arg(script).confined(&confinement);
        let said = log.run(invocation, Path::new("/")).unwrap();
        let words: Vec<&str> = said.stdout.split_ascii_whitespace().collect();
        assert_eq!(words[1..], ["3", "THP_enabled:", "0", "interleaved"]);
        // The test itself may run with a nice level of its own, to which `nice -n` adds.
        assert_eq!(words[0], "3");
        let again = log.drain().remove(0).command;
        let tools = ["numactl", "chrt", "python3"];
        if let Some(missing) = tools.into_iter().find(|tool| find_program(tool).is_none()) {
            eprintln!("SKIPPED: {missing} is not here, the logged command was not repeated");
            return;
        }
        let again = log.run(Invocation::new("sh").arg("-c").arg(again), Path::new("/")).unwrap();
        let again: Vec<&str> = again.stdout.split_ascii_whitespace().collect();
        assert_eq!(again[1..], words[1..]);
    }

    #[test]
    fn the_words_are_a_shells_whatever_a_group_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join(r"it's a\x2dscope");
        std::fs::create_dir(&group).unwrap();
        let confinement = Confinement { groups: vec![group.clone()], ..Confinement::default() };
        let log = CommandLog::default();
        let command = format!("{} echo entered", confinement.words().join(" "));
        let said = log.run(Invocation::new("sh").arg("-c").arg(command), dir.path()).unwrap();
        assert_eq!(said.stdout, "entered\n");
        let entered = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
        assert!(entered.trim().parse::<u32>().is_ok(), "{entered}");
    }

    #[test]
    fn a_refused_step_is_named() {
        let told = tempfile::NamedTempFile::new().unwrap();
        // No machine has so many nodes.
        let confinement =
            Confinement { numa: Some((NumaPolicy::Bind, [1000].into())), ..Confinement::default() };
        let invocation =
            Invocation::new("true").output(told.reopen().unwrap()).confined(&confinement);
        let error = CommandLog::default().start(invocation).unwrap_err();
        assert!(error.to_string().contains("Invalid argument"), "{error}");
        let text = std::fs::read_to_string(told.path()).unwrap();
        assert_eq!(text, "ceteris: cannot take its memory policy\n");
    }
}
