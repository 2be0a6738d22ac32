//! The journal of what must be undone, and the search for what a killed conductor left.
//!
//! Each conductor has `journal/<id>/entries`, which it keeps locked while it lives and to which it
//! appends one line before it makes something ([`Made`]) and one after it has undone it. Processes
//! are not written down: every one carries `CETERIS_JOURNAL=<id>` in its environment, so that even one
//! that was started a moment before the kill is found. A journal whose lock is free belongs to the dead.
//!
//! [`clean`] trusts no line: what it undoes must be recognisable as ours (`journal/made.rs`).

mod made;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::cache::{Cache, Lock, make_directory, random_hex};
use crate::error::PlaceError;

pub use made::Made;
pub(crate) use made::{LABEL, NAME_PREFIX, current, kubectl, remove_cgroup};

/// The environment variable that every started process carries.
pub(crate) const VARIABLE: &str = "CETERIS_JOURNAL";

/// What one conductor has made and not yet undone. Holds a lock while the conductor lives.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    id: String,
    dir: PathBuf,
    entries: Mutex<Entries>,
}

struct Entries {
    file: File,
    open: Vec<Made>,
}

/// Something that a dead conductor left.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum Leftover {
    /// A process that still runs.
    Process {
        /// Process id.
        pid: u32,
        /// Its command line.
        command: String,
    },
    /// Something else that still is there.
    Made(Made),
}

impl Leftover {
    /// One line for people.
    pub fn describe(&self) -> String {
        match self {
            Leftover::Process { pid, command } => format!("process {pid}: {command}"),
            Leftover::Made(made) => made.describe(),
        }
    }
}

impl Journal {
    /// Opens a journal for this process.
    ///
    /// # Errors
    /// When the cache cannot be written.
    pub fn open(cache: &Cache) -> Result<Journal, PlaceError> {
        // Held so that nobody takes the new journal for a dead one before it is locked.
        let _making = Lock::wait(&cache.root().join(".lock"), || ())?;
        let id = format!("{}-{}", std::process::id(), random_hex(8)?);
        let dir = cache.room("journal").join(&id);
        make_directory(&dir, 0o700)?;
        let path = dir.join("entries");
        let file = File::options()
            .create_new(true)
            .append(true)
            .open(&path)
            .map_err(PlaceError::io("make", &path))?;
        file.try_lock().map_err(|error| PlaceError::io("lock", &path)(error.into()))?;
        let entries = Mutex::new(Entries { file, open: Vec::new() });
        Ok(Journal { inner: Arc::new(Inner { id, dir, entries }) })
    }

    /// Value of the environment variable `CETERIS_JOURNAL` that every started process carries, by
    /// which it is found again.
    pub fn marker(&self) -> String {
        self.inner.id.clone()
    }

    /// Name and value of the environment variable, for the child processes that the conductor
    /// starts itself (the worker).
    pub fn environment(&self) -> (String, String) {
        (VARIABLE.to_owned(), self.marker())
    }

    /// Says that `made` is about to be made.
    pub(crate) fn begin(&self, made: &Made) -> Result<(), PlaceError> {
        let mut entries = self.inner.lock();
        self.inner.append(&mut entries, "begin", made)?;
        entries.open.push(made.clone());
        Ok(())
    }

    /// Says that `made` is undone.
    pub(crate) fn end(&self, made: &Made) -> Result<(), PlaceError> {
        let mut entries = self.inner.lock();
        self.inner.append(&mut entries, "end", made)?;
        entries.open.retain(|open| open != made);
        Ok(())
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        match self.entries.lock() {
            Ok(entries) => entries,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn append(&self, entries: &mut Entries, what: &str, made: &Made) -> Result<(), PlaceError> {
        let path = self.dir.join("entries");
        let text = serde_json::to_string(made)
            .map_err(|error| PlaceError::io("write", &path)(error.into()))?;
        entries
            .file
            .write_all(format!("{what} {text}\n").as_bytes())
            .and_then(|()| entries.file.sync_data())
            .map_err(PlaceError::io("write", &path))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.lock().open.is_empty() {
            // With nothing to undo, a journal that stays is untidy but harmless.
            let _ = fs::remove_file(self.dir.join("entries"));
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// A journal of a dead conductor, locked by us so that no second cleaner takes it.
struct Dead {
    id: String,
    dir: PathBuf,
    made: Vec<Made>,
    _lock: File,
}

fn dead_journals(cache: &Cache) -> Result<Vec<Dead>, PlaceError> {
    let _making = Lock::wait(&cache.root().join(".lock"), || ())?;
    let room = cache.room("journal");
    let mut dead = Vec::new();
    for entry in fs::read_dir(&room).map_err(PlaceError::io("list", &room))?.flatten() {
        let dir = entry.path();
        let path = dir.join("entries");
        let Ok(file) = File::open(&path) else {
            // Died between making the directory and the file, or is just being removed.
            let _ = fs::remove_dir(&dir);
            continue;
        };
        if !locked_soon(&file) {
            continue;
        }
        let text = fs::read(&path).map_err(PlaceError::io("read", &path))?;
        let id = entry.file_name().to_string_lossy().into_owned();
        dead.push(Dead { id, dir, made: unfinished(&text), _lock: file });
    }
    dead.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(dead)
}

/// Takes the lock unless somebody keeps it. One refusal proves nothing: a process that is just being
/// started holds a copy of every descriptor of its parent, locks included, until it executes.
fn locked_soon(file: &File) -> bool {
    const TRIES: u32 = 10;
    (0..TRIES).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        file.try_lock().is_ok()
    })
}

/// What was begun and not ended, the last first: what was made of another thing goes before it. A
/// torn last line was never acted upon.
fn unfinished(text: &[u8]) -> Vec<Made> {
    let mut open: Vec<Made> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(made) = line.strip_prefix(b"begin ").and_then(read) {
            open.push(made);
        } else if let Some(ended) = line.strip_prefix(b"end ").and_then(read) {
            open.retain(|open| *open != ended);
        }
    }
    open.reverse();
    open
}

fn read(json: &[u8]) -> Option<Made> {
    serde_json::from_slice(json).ok()
}

/// Whose journal, beside `own`, says that this kernel setting is changed: the process id, and whether it
/// is alive.
pub(crate) fn holder(
    cache: &Cache,
    own: &Journal,
    setting: &Path,
) -> Result<Option<(String, bool)>, PlaceError> {
    let _making = Lock::wait(&cache.root().join(".lock"), || ())?;
    let room = cache.room("journal");
    let listed = fs::read_dir(&room).map_err(PlaceError::io("list", &room))?;
    for dir in listed.flatten().map(|entry| entry.path()).filter(|dir| *dir != own.inner.dir) {
        let path = dir.join("entries");
        let (Ok(file), Ok(text)) = (File::open(&path), fs::read(&path)) else { continue };
        let holds = |made: &Made| matches!(made, Made::Setting { path, .. } if path == setting);
        if unfinished(&text).iter().any(holds) {
            let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let pid = id.split('-').next().unwrap_or_default().to_owned();
            return Ok(Some((pid, !locked_soon(&file))));
        }
    }
    Ok(None)
}

/// Processes whose environment carries this marker.
fn marked_processes(id: &str) -> Vec<(u32, String)> {
    let Ok(listed) = fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<(u32, String)> = listed
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id() && carries(*pid, id))
        .map(|pid| (pid, command_line(pid)))
        .collect();
    found.sort_unstable();
    found
}

fn carries(pid: u32, id: &str) -> bool {
    let wanted = format!("{VARIABLE}={id}");
    // An unreadable environment belongs to somebody else, a process that ended has none.
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|text| text.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes()))
}

fn command_line(pid: u32) -> String {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = text
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    words.join(" ")
}

/// What dead conductors left in this cache; nothing of a living one is listed.
///
/// # Errors
/// When the journals cannot be read.
pub fn leftovers(cache: &Cache) -> Result<Vec<Leftover>, PlaceError> {
    let mut found = Vec::new();
    for journal in dead_journals(cache)? {
        found.extend(
            marked_processes(&journal.id)
                .into_iter()
                .map(|(pid, command)| Leftover::Process { pid, command }),
        );
        let remaining = journal.made.into_iter().filter(|made| made.remains(cache, &journal.id));
        found.extend(remaining.map(Leftover::Made));
    }
    Ok(found)
}

/// Removes what [`leftovers`] lists; returns what was removed.
///
/// # Errors
/// When something can be neither killed nor removed; its journal then stays for the next attempt.
pub fn clean(cache: &Cache) -> Result<Vec<Leftover>, PlaceError> {
    let mut removed = Vec::new();
    for journal in dead_journals(cache)? {
        // A server that is starting may have children: look again until nobody is left.
        for _ in 0..10 {
            let marked = marked_processes(&journal.id);
            if marked.is_empty() {
                break;
            }
            for (pid, command) in marked {
                if kill(pid, &journal.id)? {
                    removed.push(Leftover::Process { pid, command });
                }
            }
        }
        for made in journal.made.iter().filter(|made| made.remains(cache, &journal.id)) {
            made.undo().map_err(|error| stays(made, &error, &journal.dir))?;
            removed.push(Leftover::Made(made.clone()));
        }
        let entries = journal.dir.join("entries");
        fs::remove_file(&entries).map_err(PlaceError::io("remove", &entries))?;
        fs::remove_dir(&journal.dir).map_err(PlaceError::io("remove", &journal.dir))?;
    }
    Ok(removed)
}

/// The error for what cannot be undone, with a way out for what never can be.
fn stays(made: &Made, error: &PlaceError, journal: &Path) -> PlaceError {
    PlaceError::Engine {
        what: format!("{} cannot be undone", made.describe()),
        lines: error.to_string().lines().map(str::to_owned).collect(),
        next: Some(format!(
            "try again; or undo it by hand and remove {}, which remembers it",
            journal.display()
        )),
    }
}

/// Kills a process that carries the marker and waits until it is gone. The process is held by a
/// descriptor before the marker is looked at, so that a process id that was given to somebody else
/// in between cannot be hit.
fn kill(pid: u32, id: &str) -> Result<bool, PlaceError> {
    let failed = |error: rustix::io::Errno| {
        PlaceError::io("kill process", Path::new(&pid.to_string()))(error.into())
    };
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
    let held = match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
        Ok(held) => held,
        Err(rustix::io::Errno::SRCH) => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    if !carries(pid, id) {
        return Ok(false);
    }
    match rustix::process::pidfd_send_signal(&held, Signal::KILL) {
        Ok(()) => {}
        Err(rustix::io::Errno::SRCH) => return Ok(false),
        Err(error) => return Err(failed(error)),
    }
    // It is nobody's child here that we could wait for; its environment goes when it does.
    for _ in 0..1000 {
        if !carries(pid, id) {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(PlaceError::Other(format!("process {pid} did not end when it was killed")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn begun_and_not_ended_is_unfinished() {
        let [a, b, c] = ["a", "b", "c"].map(|name| Made::Directory { path: name.into() });
        let line = |made| serde_json::to_string(made).unwrap();
        let text = format!(
            "begin {}\nbegin {}\nbegin {}\nend {}\nbegin {{\"kind\":\"dir",
            line(&a),
            line(&b),
            line(&c),
            line(&a)
        );
        assert_eq!(unfinished(text.as_bytes()), [c, b]);
    }

    #[test]
    fn a_living_journal_has_no_leftovers_and_a_dead_one_is_cleaned() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let living = Journal::open(&cache).unwrap();
        let its_own = cache.room("instances").join("living");
        let living_made = Made::Directory { path: its_own.clone() };
        living.begin(&living_made).unwrap();
        fs::create_dir(&its_own).unwrap();
        assert_eq!(leftovers(&cache).unwrap(), []);

        // A journal whose lock nobody holds, with one line that must never be obeyed.
        let outside = tempfile::tempdir().unwrap();
        let left = cache.room("instances").join("left");
        fs::create_dir_all(left.join("data")).unwrap();
        let dead = cache.room("journal").join("1-dead");
        fs::create_dir(&dead).unwrap();
        let up = cache.room("instances").join("..");
        let lines: String = [left.as_path(), outside.path(), up.as_path()]
            .map(|path| Made::Directory { path: path.to_owned() })
            .iter()
            .map(|made| format!("begin {}\n", serde_json::to_string(made).unwrap()))
            .collect();
        fs::write(dead.join("entries"), lines).unwrap();

        let expected = [Leftover::Made(Made::Directory { path: left.clone() })];
        assert_eq!(leftovers(&cache).unwrap(), expected);
        assert_eq!(clean(&cache).unwrap(), expected);
        assert!(!left.exists() && outside.path().exists() && its_own.exists());
        assert!(!dead.exists());
        assert_eq!(clean(&cache).unwrap(), []);

        fs::remove_dir(&its_own).unwrap();
        living.end(&living_made).unwrap();
        drop(living);
        assert_eq!(fs::read_dir(cache.room("journal")).unwrap().count(), 0);
    }

    /// A process that does not outlive its test, however that ends.
    struct Sleeper(std::process::Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn sleeper(marker: &str) -> Sleeper {
        let mut command = std::process::Command::new("sleep");
        Sleeper(command.arg("60").env(VARIABLE, marker).spawn().unwrap())
    }

    #[test]
    fn marked_processes_are_found_and_killed_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let journal = cache.room("journal").join("2-dead");
        fs::create_dir(&journal).unwrap();
        fs::write(journal.join("entries"), b"").unwrap();
        let marked = sleeper("2-dead");
        let other = sleeper("2-dead-not");
        let expected = [Leftover::Process { pid: marked.0.id(), command: "sleep 60".to_owned() }];
        // The kernel shows a new program's environment a moment after it was started.
        while command_line(marked.0.id()) != "sleep 60" || command_line(other.0.id()) != "sleep 60"
        {
            std::thread::yield_now();
        }
        assert_eq!(leftovers(&cache).unwrap(), expected);
        assert_eq!(clean(&cache).unwrap(), expected);
        let ended = |mut sleeper: Sleeper| sleeper.0.try_wait().unwrap();
        assert!(ended(marked).is_some());
        assert!(ended(other).is_none());
        assert!(!journal.exists());
    }
}
