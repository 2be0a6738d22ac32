//! What a server may use, as people write it: `"4GiB"`, `2`, `"0-3,8"`, `"node:0"`.
//!
//! As in `quantity`: one parser for serde and for the study's own check, one canonical text.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes, written `"512M"` or `"4GiB"`; both are binary, as servers read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Which processors: some number of them, these ones, or those of a NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// So many, whichever.
    Count(u32),
    /// These, by the kernel's numbers.
    List(BTreeSet<u32>),
    /// All of this NUMA node.
    Node(u32),
}

/// What a size may look like, for hints.
pub(crate) const BYTES_FORMS: &str = "a whole number and a unit, one of K, M, G, T (or KiB, MiB, GiB, TiB), such as \"512M\", \"4GiB\"";

/// What a choice of processors may look like, for hints.
pub(crate) const CPUS_FORMS: &str =
    "a count such as 4, a list such as \"0-3,8\", or a NUMA node such as \"node:0\"";

/// The kernel's own limit (`CONFIG_NR_CPUS` of the largest distributions).
const CPU_MAX: u32 = 8191;

/// Longest first, so that the canonical text takes the coarsest unit that fits.
const UNITS: [(&str, u64); 4] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl FromStr for Bytes {
    type Err = String;

    /// # Errors
    /// A sentence that says what is wrong with the text.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = (&text[..digits], text[digits..].trim_start());
        if number.is_empty() {
            return Err(format!("`{text}` is not a size: no number at its start"));
        }
        let long = |(name, _): &&(&str, u64)| *name == unit || name[..1] == *unit;
        let scale = match UNITS.iter().find(long) {
            Some((_, scale)) => *scale,
            None if unit.is_empty() => return Err(format!("the size `{text}` has no unit")),
            None => return Err(format!("`{unit}` is not a unit of size")),
        };
        let number: Option<u64> = number.parse().ok();
        let bytes = number.and_then(|number| number.checked_mul(scale));
        bytes.map(Bytes).ok_or_else(|| format!("the size `{text}` is too large"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale)) {
            Some((unit, scale)) => write!(f, "{}{unit}", self.0 / scale),
            // Nothing below a kibibyte can be written in a study.
            None => write!(f, "{}KiB", self.0.div_ceil(1 << 10)),
        }
    }
}

impl FromStr for Cpus {
    type Err = String;

    /// # Errors
    /// A sentence that says what is wrong with the text.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(node) = text.strip_prefix("node:") {
            let node = node.parse().map_err(|_| format!("`{node}` is not the number of a node"))?;
            return Ok(Cpus::Node(node));
        }
        let number = |text: &str| match text.trim().parse::<u32>() {
            Ok(cpu) if cpu <= CPU_MAX => Ok(cpu),
            _ => Err(format!("`{text}` is not the number of a processor")),
        };
        let mut list = BTreeSet::new();
        for part in text.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return Err(format!("`{part}` runs backwards"));
            }
            list.extend(from..=to);
        }
        Ok(Cpus::List(list))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cpus::Count(count) => write!(f, "{count}"),
            Cpus::Node(node) => write!(f, "node:{node}"),
            Cpus::List(list) => f.write_str(&ranges(list)),
        }
    }
}

/// Processors as the kernel lists them: `0-3,8`.
pub fn ranges(list: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in list {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let texts = runs.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct BytesVisitor;
        impl Visitor<'_> for BytesVisitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(BYTES_FORMS)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                text.parse().map_err(E::custom)
            }
        }
        d.deserialize_str(BytesVisitor)
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Cpus::Count(count) => s.serialize_u32(*count),
            other => s.collect_str(other),
        }
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct CpusVisitor;
        impl Visitor<'_> for CpusVisitor {
            type Value = Cpus;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(CPUS_FORMS)
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Cpus, E> {
                match u32::try_from(count) {
                    Ok(count) if (1..=CPU_MAX).contains(&count) => Ok(Cpus::Count(count)),
                    _ => Err(E::custom(format!("{count} is no number of processors"))),
                }
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Cpus, E> {
                self.visit_u64(u64::try_from(count).unwrap_or(0))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Cpus, E> {
                text.parse().map_err(E::custom)
            }
        }
        d.deserialize_any(CpusVisitor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes, canonical) in [
            ("512M", 512 << 20, "512MiB"),
            ("4GiB", 4 << 30, "4GiB"),
            (" 1536 M", 1536 << 20, "1536MiB"),
            ("1024K", 1 << 20, "1MiB"),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
            assert_eq!(Bytes(bytes).to_string(), canonical, "{text}");
            assert_eq!(canonical.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for (text, fragment) in [
            ("512", "no unit"),
            ("4GB", "`GB` is not a unit"),
            ("x", "no number"),
            ("99999999999T", "too large"),
        ] {
            assert!(text.parse::<Bytes>().unwrap_err().contains(fragment), "{text}");
        }
    }

    #[test]
    fn processors_as_people_write_them() {
        let list = |cpus: &[u32]| Cpus::List(cpus.iter().copied().collect());
        for (text, cpus, canonical) in [
            ("0-3,8", list(&[0, 1, 2, 3, 8]), "0-3,8"),
            ("1,0", list(&[0, 1]), "0-1"),
            ("5", list(&[5]), "5"),
            ("node:1", Cpus::Node(1), "node:1"),
        ] {
            assert_eq!(text.parse(), Ok(cpus.clone()), "{text}");
            assert_eq!(cpus.to_string(), canonical, "{text}");
        }
        for (text, fragment) in [
            ("3-1", "backwards"),
            ("", "not the number"),
            ("0-99999", "not the number"),
            ("node:x", "not the number of a node"),
        ] {
            assert!(text.parse::<Cpus>().unwrap_err().contains(fragment), "{text}");
        }
        assert_eq!(serde_json::from_str::<Cpus>("4").unwrap(), Cpus::Count(4));
        assert_eq!(serde_json::to_string(&Cpus::Count(4)).unwrap(), "4");
        assert!(serde_json::from_str::<Cpus>("0").is_err());
    }
}
