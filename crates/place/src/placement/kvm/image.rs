//! Disk images: an ext4 file system made of a directory without mounting anything, and its hash.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::command::{Invocation, find_program};
use crate::error::PlaceError;
use crate::tools::Tools;
use crate::tree;

/// What is hashed at once; a block of zeros is hashed like a hole.
const BLOCK: usize = 64 << 10;

/// A file system to be made.
pub(super) struct Image<'a> {
    /// By which the guest finds it.
    pub label: &'a str,
    /// User and group of its root directory.
    pub owner: (u32, u32),
    /// Room beyond what the directory holds.
    pub free_bytes: u64,
    /// Whether it will be written to: only then does it need a journal.
    pub written: bool,
}

impl Image<'_> {
    /// Makes `image` of the files in `dir`. Everything is initialised at once, so that no guest
    /// does that while it is measured.
    pub fn make(&self, dir: &Path, image: &Path, tools: Tools) -> Result<(), PlaceError> {
        let held = tree::disk_usage(dir);
        let bytes = (held + held / 8 + (64 << 20) + self.free_bytes).next_multiple_of(1 << 20);
        File::create_new(image)
            .and_then(|file| file.set_len(bytes))
            .map_err(PlaceError::io("make", image))?;
        let (uid, gid) = self.owner;
        let mut make = Invocation::new("mkfs.ext4")
            .args(["-q", "-F", "-m", "0", "-i", "16384", "-L", self.label])
            .arg("-E")
            .arg(format!("lazy_itable_init=0,lazy_journal_init=0,root_owner={uid}:{gid}"));
        if !self.written {
            make = make.args(["-O", "^has_journal"]);
        }
        tools.log.run(make.arg("-d").arg(dir).arg(image), image).map(drop)
    }
}

/// Whether the program that makes file systems is here.
pub(super) fn check_programs() -> Result<(), PlaceError> {
    let needed = [
        ("qemu-system-x86_64", "run a guest", "qemu-system-x86"),
        ("qemu-img", "make a guest's disks", "qemu-utils"),
        ("mkfs.ext4", "make a guest's disks", "e2fsprogs"),
        ("tar", "tell a guest what to start", "tar"),
    ];
    for (program, purpose, debian) in needed {
        if find_program(program).is_none() {
            return Err(PlaceError::NoProgram {
                program: program.to_owned(),
                purpose: purpose.to_owned(),
                debian: debian.to_owned(),
            });
        }
    }
    Ok(())
}

/// The content hash of an image, BLAKE3 over offset and bytes of each 64 KiB block that is not all
/// zeros: a copy with other holes has the same.
pub(super) fn hash(path: &Path) -> Result<String, PlaceError> {
    let mut file = File::open(path).map_err(PlaceError::io("open", path))?;
    hash_file(&mut file).map_err(PlaceError::io("read", path))
}

fn hash_file(file: &mut File) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let length = file.metadata()?.len();
    hasher.update(&length.to_le_bytes());
    let mut block = vec![0; BLOCK];
    let mut at = next_data(file, 0)?;
    while let Some(offset) = at.filter(|offset| *offset < length) {
        file.seek(SeekFrom::Start(offset))?;
        let wanted = usize::try_from(length - offset).unwrap_or(BLOCK).min(BLOCK);
        file.read_exact(&mut block[..wanted])?;
        if block[..wanted].iter().any(|byte| *byte != 0) {
            hasher.update(&offset.to_le_bytes());
            hasher.update(&block[..wanted]);
        }
        at = next_data(file, offset + BLOCK as u64)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// The block in which the next data at or after `offset` begins; `None`: only a hole follows.
fn next_data(file: &File, offset: u64) -> std::io::Result<Option<u64>> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => Ok(Some((data / BLOCK as u64 * BLOCK as u64).max(offset))),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        // A file system that knows no holes: everything is data.
        Err(rustix::io::Errno::INVAL) => Ok(Some(offset)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_hash_sees_every_byte_and_no_hole() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, filled: bool| {
            let path = dir.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_len((1 << 20) + 100).unwrap();
            if filled {
                file.write_all_at(&vec![0; 300 << 10], 0).unwrap();
            }
            file.write_all_at(b"x", 700_000).unwrap();
            path
        };
        let (sparse, full) = (make("sparse", false), make("full", true));
        assert_eq!(hash(&sparse).unwrap(), hash(&full).unwrap());
        for offset in [0, 700_001, (1 << 20) + 99] {
            let before = hash(&sparse).unwrap();
            let file = File::options().write(true).open(&sparse).unwrap();
            file.write_all_at(b"y", offset).unwrap();
            assert_ne!(hash(&sparse).unwrap(), before, "{offset}");
        }
        let longer = File::options().write(true).open(&full).unwrap();
        let before = hash(&full).unwrap();
        longer.set_len(2 << 20).unwrap();
        assert_ne!(hash(&full).unwrap(), before);
    }
}
