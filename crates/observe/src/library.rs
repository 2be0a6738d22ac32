//! Which files a process runs code from: its shared libraries, plug-ins and the program itself.
//!
//! Read before and after a run, so that an upgrade of a library between two blocks is seen. A file
//! goes by its name without directories, because a package or an instance may lie anywhere, and is
//! described by the build id that its linker wrote into it (ELF note `NT_GNU_BUILD_ID`, gABI chapter
//! 5), which is the same wherever and whenever it was unpacked; by size and time where it has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::facts::Root;

/// Program headers that are looked at, and bytes of a note segment: far more than linkers make.
const HEADERS_MAX: usize = 64;
const NOTES_BYTES_MAX: usize = 64 * 1024;

/// File name to what identifies the file, for every file of which code is mapped. Empty when the
/// process is gone or may not be looked at.
pub(crate) fn mapped(root: &Root, pid: u32) -> BTreeMap<String, String> {
    let text = root.read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let paths: BTreeSet<&str> = text.lines().filter_map(code_path).collect();
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in paths {
        let (path, what) = match path.strip_suffix(" (deleted)") {
            // The process still runs the old file, the next one will not.
            Some(path) => (path, "replaced while it was in use".to_owned()),
            None => (path, describe(&root.path(path))),
        };
        if let Some(name) = Path::new(path).file_name() {
            files.entry(name.to_string_lossy().into_owned()).or_default().insert(what);
        }
    }
    let joined = |files: BTreeSet<String>| files.into_iter().collect::<Vec<_>>().join("; ");
    files.into_iter().map(|(name, files)| (name, joined(files))).collect()
}

/// The file of a line of `/proc/PID/maps` (proc(5)), if the mapping is one of code.
fn code_path(line: &str) -> Option<&str> {
    // Address, permissions, offset, device and inode; then the path, which may hold blanks.
    let mut rest = line;
    let mut permissions = "";
    for index in 0..5 {
        let (word, after) = rest.trim_start().split_once(' ')?;
        if index == 1 {
            permissions = word;
        }
        rest = after;
    }
    let path = rest.trim_start();
    // Asynchronous I/O rings and System V segments look like files and are none.
    let file = path.starts_with('/') && !path.starts_with("/[") && !path.starts_with("/SYSV");
    (permissions.contains('x') && file).then_some(path)
}

fn describe(path: &Path) -> String {
    let Ok(file) = File::open(path) else { return "unreadable".to_owned() };
    if let Some(id) = build_id(&file) {
        return format!("build {id}");
    }
    match file.metadata() {
        Ok(meta) => format!("{} bytes of {} s", meta.size(), meta.mtime()),
        Err(_) => "unreadable".to_owned(),
    }
}

/// The build id of a 64-bit little-endian ELF file, hexadecimal.
fn build_id(mut file: &File) -> Option<String> {
    let mut header = [0; 64];
    file.read_exact(&mut header).ok()?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table_at = number(&header, 32, 8)?;
    let entry_bytes = number(&header, 54, 2)? as usize;
    let entries = (number(&header, 56, 2)? as usize).min(HEADERS_MAX);
    for index in 0..entries {
        let mut entry = [0; 56];
        let at = table_at.checked_add((index * entry_bytes) as u64)?;
        file.read_exact_at(&mut entry, at).ok()?;
        const PT_NOTE: u64 = 4;
        if number(&entry, 0, 4)? != PT_NOTE {
            continue;
        }
        let bytes = usize::try_from(number(&entry, 32, 8)?).ok()?.min(NOTES_BYTES_MAX);
        let mut notes = vec![0; bytes];
        file.read_exact_at(&mut notes, number(&entry, 8, 8)?).ok()?;
        if let Some(id) = build_id_of_notes(&notes) {
            return Some(id);
        }
    }
    None
}

fn build_id_of_notes(mut notes: &[u8]) -> Option<String> {
    const NT_GNU_BUILD_ID: u64 = 3;
    let padded = |bytes: u64| usize::try_from(bytes.div_ceil(4) * 4).ok();
    loop {
        let (name_bytes, id_bytes) = (number(notes, 0, 4)?, number(notes, 4, 4)?);
        let kind = number(notes, 8, 4)?;
        let id_at = 12 + padded(name_bytes)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..16)? == b"GNU\0" {
            let id = notes.get(id_at..id_at + usize::try_from(id_bytes).ok()?)?;
            return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(id_at + padded(id_bytes)?..)?;
    }
}

/// The little-endian number of `bytes` bytes at `at`.
fn number(data: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let slice = data.get(at..at.checked_add(bytes)?)?;
    Some(slice.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_code_of_files_counts() {
        let code = "7f10-7f20 r-xp 00026000 fd:01 1184  /usr/lib/x86_64-linux-gnu/libc.so.6";
        assert_eq!(code_path(code), Some("/usr/lib/x86_64-linux-gnu/libc.so.6"));
        let blanks = "7f10-7f20 r-xp 00026000 fd:01 1184     /opt/my server/a b.so (deleted)";
        assert_eq!(code_path(blanks), Some("/opt/my server/a b.so (deleted)"));
        for none in [
            "7f10-7f20 r--p 00026000 fd:01 1184  /usr/lib/x86_64-linux-gnu/libc.so.6",
            "7f10-7f20 rw-s 00000000 00:10 1184  /[aio] (deleted)",
            "7ffd-7ffe r-xp 00000000 00:00 0  [vdso]",
            "7ffd-7ffe r-xp 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(code_path(none), None, "{none}");
        }
    }

    #[test]
    fn a_replaced_library_is_another_and_a_moved_one_is_not() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        std::fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        let see = |directory: &str, content: &[u8], deleted: &str| {
            let directory = tree.path().join(directory);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("libx.so.1"), content).unwrap();
            let path = directory.strip_prefix(tree.path()).unwrap().join("libx.so.1");
            let line = format!("1-2 r-xp 0 fd:01 9 /{}{deleted}\n", path.display());
            std::fs::write(tree.path().join("proc/7/maps"), line).unwrap();
            mapped(&root, 7)["libx.so.1"].clone()
        };
        let elf = |id: u8| {
            let mut file = b"\x7fELF\x02\x01".to_vec();
            file.resize(64, 0);
            file[32] = 64; // Program headers follow at once,
            file[54] = 56; // of this size,
            file[56] = 1; // and there is one:
            file.resize(120, 0);
            file[64] = 4; // notes,
            file[72] = 120; // here,
            file[96] = 40; // so long.
            // A note of another kind stands before it, with a name that is padded.
            file.extend([4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0]);
            file.extend(b"GNU\0\0\0\0\0");
            file.extend([4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
            file.extend(b"GNU\0");
            file.extend([0xab, id, 0, 0]);
            file
        };
        assert_eq!(see("a", &elf(1), ""), "build ab01");
        assert_eq!(see("b/c", &elf(1), ""), "build ab01");
        assert_eq!(see("a", &elf(2), ""), "build ab02");
        assert_eq!(see("a", &elf(2), " (deleted)"), "replaced while it was in use");
        // Cut within its notes: no build id, and no error.
        let cut = see("a", &elf(1)[..150], "");
        assert!(cut.starts_with("150 bytes of "), "{cut}");
    }

    #[test]
    fn this_process_runs_a_c_library() {
        let files = mapped(&Root::machine(), std::process::id());
        let libc = files.iter().find(|(name, _)| name.starts_with("libc"));
        assert!(libc.is_some_and(|(_, what)| what.starts_with("build ")), "{files:?}");
        assert!(mapped(&Root::machine(), u32::MAX).is_empty());
    }
}
