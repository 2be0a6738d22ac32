//! Which file system and which block device a directory is on.
//!
//! From `/proc/self/mountinfo` (proc(5)) and `/sys`; used by the host fingerprint, the cgroup
//! reader and the sampler.

use std::path::{Path, PathBuf};

use crate::facts::Root;

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mount {
    /// `major:minor` of the file system's device.
    pub(crate) device_number: String,
    /// Path inside the file system that is mounted here.
    pub(crate) root: String,
    /// Where it is mounted.
    pub(crate) point: PathBuf,
    /// Options of this mount.
    pub(crate) options: String,
    /// File system type.
    pub(crate) kind: String,
    /// `/dev/vda1`, `tmpfs` and the like.
    pub(crate) source: String,
    /// Options of the file system.
    pub(crate) super_options: String,
}

/// All mounts, in the kernel's order (later ones cover earlier ones).
pub(crate) fn mounts(root: &Root) -> Vec<Mount> {
    let text = root.read("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Mount> {
    // Optional fields of any number stand between the options and the lone dash.
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(2);
    let mut back = back.splitn(3, ' ');
    Some(Mount {
        device_number: front.next()?.to_owned(),
        root: unescape(front.next()?),
        point: PathBuf::from(unescape(front.next()?)),
        options: front.next()?.to_owned(),
        kind: back.next()?.to_owned(),
        source: unescape(back.next()?),
        super_options: back.next().unwrap_or_default().to_owned(),
    })
}

/// Undoes the octal escapes of space, tab, newline and backslash.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal =
            after.get(..3).filter(|digits| digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        match octal {
            Some(digits) if byte == b'\\' => {
                let value = digits.iter().fold(0_u32, |sum, d| sum * 8 + u32::from(d - b'0'));
                bytes.push((value & 0xFF) as u8);
                rest = &after[3..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The mount that holds `directory` (absolute, without symbolic links).
pub(crate) fn mount_of<'a>(mounts: &'a [Mount], directory: &Path) -> Option<&'a Mount> {
    // `max_by_key` gives the last of equals, which is the one on top.
    mounts
        .iter()
        .filter(|mount| directory.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// Name in `/sys/block` of the whole disk behind a mount; `None` for tmpfs, overlay and the like.
pub(crate) fn disk_of(root: &Root, mount: &Mount) -> Option<String> {
    let by_number = PathBuf::from(format!("/sys/dev/block/{}", mount.device_number));
    // btrfs and overlay have device numbers of no device; their source may still name one.
    let by_name = Path::new(&mount.source)
        .strip_prefix("/dev")
        .ok()
        .and_then(|_| {
            std::fs::canonicalize(root.path(&mount.source))
                .ok()
                .or_else(|| Some(PathBuf::from(&mount.source)))
        })
        .and_then(|device| Some(Path::new("/sys/class/block").join(device.file_name()?)));
    let directory = [Some(by_number), by_name]
        .into_iter()
        .flatten()
        .find_map(|link| std::fs::canonicalize(root.path(link)).ok())?;
    let whole = if directory.join("partition").exists() { directory.parent()? } else { &directory };
    Some(whole.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_line_with_and_without_optional_fields() {
        let with = parse(
            "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue",
        );
        let with = with.unwrap();
        assert_eq!(with.device_number, "98:0");
        assert_eq!(with.root, "/mnt1");
        assert_eq!(with.point, Path::new("/mnt 2"));
        assert_eq!((with.options.as_str(), with.kind.as_str()), ("rw,noatime", "ext3"));
        assert_eq!(with.super_options, "rw,errors=continue");
        let without = parse("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw").unwrap();
        assert_eq!((without.source.as_str(), without.super_options.as_str()), ("/dev/vda", "rw"));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn the_longest_and_the_last_mount_wins() {
        let of = |point: &str, source: &str| Mount {
            device_number: "0:1".to_owned(),
            root: "/".to_owned(),
            point: point.into(),
            options: String::new(),
            kind: "ext4".to_owned(),
            source: source.to_owned(),
            super_options: String::new(),
        };
        let all = [of("/", "a"), of("/var", "b"), of("/var/lib", "c"), of("/var", "d")];
        let found = |path: &str| mount_of(&all, Path::new(path)).unwrap().source.clone();
        assert_eq!(found("/var/lib/mysql"), "c");
        assert_eq!(found("/var/log"), "d");
        assert_eq!(found("/variable"), "a");
    }

    #[test]
    fn this_machine_has_a_root_mount() {
        let all = mounts(&Root::machine());
        assert!(mount_of(&all, Path::new("/")).is_some());
    }
}
