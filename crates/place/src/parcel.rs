//! A directory tree as one stream of bytes, for a volume that only a program inside of a Pod reaches.
//!
//! `ceteris pack DIR | kubectl exec -i POD -- /ceteris unpack DIR` is how a snapshot comes into a Pod.
//! Not a tar archive: many a server's image has no `tar`, and none could tell the content hash of
//! what arrived. After a first line come the entries in order: a kind byte (`d`, `f`, `l`), the
//! path's length (32 bits, little endian) and bytes; then for a link its target in the same form, for
//! a file its size (64 bits) and its extents (offset, length, bytes) up to one of length 0. `.` ends
//! the stream. Holes stay holes; owners and modes are the receiver's.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::error::PlaceError;
use crate::tree::{Kind, entries, hash_tree};

const FIRST_LINE: &[u8] = b"ceteris parcel 1\n";
/// Longest path that a stream may name; the kernel's own limit.
const PATH_BYTES: u32 = 4096;

/// Writes what is in `dir`.
///
/// # Errors
/// When something cannot be read or the other end does not take it.
pub fn pack(dir: &Path, out: &mut dyn Write) -> Result<(), PlaceError> {
    let listed = entries(dir)?;
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let sent = |error| PlaceError::io("send", dir)(error);
    out.write_all(FIRST_LINE).map_err(sent)?;
    for (path, kind) in listed {
        let byte = match &kind {
            Kind::Directory => b"d",
            Kind::File(_) => b"f",
            Kind::Link(_) => b"l",
        };
        out.write_all(byte).and_then(|()| write_path(&path, &mut out)).map_err(sent)?;
        match kind {
            Kind::Directory => {}
            Kind::Link(target) => write_path(&target, &mut out).map_err(sent)?,
            Kind::File(size) => {
                let path = dir.join(path);
                let mut file = File::open(&path).map_err(PlaceError::io("open", &path))?;
                write_file(&mut file, size, &mut out).map_err(PlaceError::io("send", &path))?;
            }
        }
    }
    out.write_all(b".").and_then(|()| out.flush()).map_err(sent)
}

/// Makes `dir` of a stream and tells the content hash of what is on disk then.
///
/// # Errors
/// When the stream is cut short or is none, or something cannot be written.
pub fn unpack(input: &mut dyn Read, dir: &Path) -> Result<String, PlaceError> {
    fs::create_dir(dir).map_err(PlaceError::io("make", dir))?;
    let mut input = BufReader::with_capacity(1 << 20, input);
    read_entries(&mut input, dir).map_err(PlaceError::io("unpack into", dir))?;
    hash_tree(dir).map(|tree| tree.hash)
}

fn write_path(path: &Path, out: &mut impl Write) -> io::Result<()> {
    let bytes = path.as_os_str().as_bytes();
    out.write_all(&(bytes.len() as u32).to_le_bytes())?;
    out.write_all(bytes)
}

fn write_file(file: &mut File, size: u64, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&size.to_le_bytes())?;
    let mut at = 0;
    while let Some((start, end)) = next_extent(file, at, size)? {
        out.write_all(&start.to_le_bytes())?;
        out.write_all(&(end - start).to_le_bytes())?;
        file.seek(SeekFrom::Start(start))?;
        if io::copy(&mut file.take(end - start), out)? != end - start {
            return Err(io::Error::other("it became shorter"));
        }
        at = end;
    }
    out.write_all(&[0; 16])
}

/// Where the next bytes of a file are that are no hole, if there are more.
fn next_extent(file: &File, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    use rustix::fs::SeekFrom::{Data, Hole};
    use rustix::io::Errno;
    if at >= size {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, Data(at)) {
        Ok(start) if start < size => start,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        // A file system that does not know its holes has none.
        Err(Errno::INVAL) => return Ok(Some((at, size))),
        Err(error) => return Err(error.into()),
    };
    let end = rustix::fs::seek(file, Hole(start))?;
    Ok(Some((start, end.min(size))))
}

fn read_entries(input: &mut impl Read, dir: &Path) -> io::Result<()> {
    let mut first = vec![0; FIRST_LINE.len()];
    input.read_exact(&mut first)?;
    if first != FIRST_LINE {
        return Err(io::Error::other("this is no stream of `ceteris pack`, or another version's"));
    }
    loop {
        let [kind] = read_bytes::<1>(input)?;
        if kind == b'.' {
            return Ok(());
        }
        let path = read_path(input)?;
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(io::Error::other(format!("{} leads outside", path.display())));
        }
        let path = dir.join(path);
        match kind {
            b'd' => fs::create_dir(&path)?,
            b'l' => std::os::unix::fs::symlink(read_path(input)?, &path)?,
            b'f' => read_file(input, &path)?,
            other => return Err(io::Error::other(format!("no entry is of the kind {other}"))),
        }
    }
}

fn read_file(input: &mut impl Read, path: &Path) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.set_len(u64::from_le_bytes(read_bytes(input)?))?;
    loop {
        let start = u64::from_le_bytes(read_bytes(input)?);
        let length = u64::from_le_bytes(read_bytes(input)?);
        if length == 0 {
            return Ok(());
        }
        file.seek(SeekFrom::Start(start))?;
        if io::copy(&mut input.by_ref().take(length), &mut file)? != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn read_path(input: &mut impl Read) -> io::Result<PathBuf> {
    let length = u32::from_le_bytes(read_bytes(input)?);
    if length > PATH_BYTES {
        return Err(io::Error::other(format!("a path of {length} bytes")));
    }
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes)?;
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

fn read_bytes<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn sample(dir: &Path) -> PathBuf {
        let tree = dir.join("tree");
        fs::create_dir_all(tree.join("db/empty")).unwrap();
        fs::write(tree.join("db/t.ibd"), vec![7; 3_000_000]).unwrap();
        fs::write(tree.join("nothing"), b"").unwrap();
        std::os::unix::fs::symlink("db/t.ibd", tree.join("link")).unwrap();
        // Bytes, a hole of a gigabyte, bytes, a hole.
        let mut sparse = File::create(tree.join("sparse")).unwrap();
        sparse.write_all(b"head").unwrap();
        sparse.seek(SeekFrom::Start(1 << 30)).unwrap();
        sparse.write_all(b"tail").unwrap();
        sparse.set_len((1 << 30) + (1 << 20)).unwrap();
        tree
    }

    #[test]
    fn what_arrives_has_the_hash_of_what_was_sent_and_its_holes() {
        let dir = tempfile::tempdir().unwrap();
        let tree = sample(dir.path());
        let mut stream = Vec::new();
        pack(&tree, &mut stream).unwrap();
        assert!(stream.len() < 4_000_000, "a hole was sent as bytes: {}", stream.len());
        let target = dir.path().join("copy");
        let hash = unpack(&mut stream.as_slice(), &target).unwrap();
        assert_eq!(hash, hash_tree(&tree).unwrap().hash);
        assert!(target.join("sparse").metadata().unwrap().blocks() < 1000);
        assert_eq!(fs::read_link(target.join("link")).unwrap(), Path::new("db/t.ibd"));
    }

    #[test]
    fn a_stream_that_is_cut_short_or_leads_outside_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let tree = sample(dir.path());
        let mut stream = Vec::new();
        pack(&tree, &mut stream).unwrap();
        for (nth, length) in [0, 10, 30, 2_000_000, stream.len() - 1].into_iter().enumerate() {
            let target = dir.path().join(format!("cut{nth}"));
            let refused = unpack(&mut &stream[..length], &target);
            assert!(refused.is_err(), "{length} bytes of {} were taken", stream.len());
        }
        let mut outside = FIRST_LINE.to_vec();
        outside.push(b'd');
        write_path(Path::new("../outside"), &mut outside).unwrap();
        outside.push(b'.');
        let error = unpack(&mut outside.as_slice(), &dir.path().join("x")).unwrap_err();
        assert!(error.to_string().contains("leads outside"), "{error}");
        assert!(!dir.path().join("outside").exists());
    }
}
