//! Reading the kernel's small files under a root.
//!
//! Everything that looks at `/proc` or `/sys` goes through [`Root`], so that tests can put the
//! files of another kernel there. A file that is absent or forbidden is no fact, never an error.

use std::path::{Path, PathBuf};

/// Where `/proc` and `/sys` hang.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// This machine.
    pub(crate) fn machine() -> Root {
        Root(PathBuf::from("/"))
    }

    /// Another tree.
    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Root {
        Root(path.to_owned())
    }

    /// Where an absolute path lies under this root.
    pub(crate) fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.0.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// A whole file, trimmed.
    pub(crate) fn read(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let bytes = std::fs::read(self.path(absolute)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Names in a directory, sorted.
    pub(crate) fn list(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(absolute)) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// The value of `key` in lines of `key: value` or `key value`.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        let value = rest.trim_start().strip_prefix(':').unwrap_or(rest);
        // `MemTotal` must not answer for `Mem`.
        (value.is_empty() || value.starts_with([' ', '\t'])).then(|| value.trim())
    })
}

/// The chosen word of `always [madvise] never`; the text itself where none is marked.
pub(crate) fn bracketed(text: &str) -> &str {
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_key() {
        let text = "MemTotalX: 3\nMemTotal:   16 kB\nnr_throttled 4\nmodel name\t: Some CPU";
        assert_eq!(field(text, "MemTotal"), Some("16 kB"));
        assert_eq!(field(text, "nr_throttled"), Some("4"));
        assert_eq!(field(text, "model name"), Some("Some CPU"));
        assert_eq!(field(text, "Mem"), None);
    }

    #[test]
    fn the_marked_word_is_taken() {
        assert_eq!(bracketed("always [madvise] never"), "madvise");
        assert_eq!(bracketed("none"), "none");
        assert_eq!(bracketed("] odd ["), "] odd [");
    }
}
