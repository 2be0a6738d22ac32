//! Which of the allowed words was probably meant.

/// The closest of `allowed` by edit distance, where it is close enough to be a slip of the finger:
/// a third of the word, at least one edit.
pub(crate) fn closest<'a>(
    word: &str,
    allowed: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let limit = (word.chars().count() / 3).max(1);
    allowed
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.replace('-', "_")), candidate))
        .filter(|(edits, candidate)| *edits <= limit && *edits < candidate.len())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// "did you mean `x`? allowed: ...", for hints.
pub fn allowed<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    match closest(word, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`? {}", list(names)),
        None => list(names),
    }
}

pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("allowed: {}", names.collect::<Vec<_>>().join(", "))
}

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if left.len().abs_diff(right.len()) > 8 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (i, &l) in left.iter().enumerate() {
        let mut row = Vec::with_capacity(right.len() + 1);
        row.push(i + 1);
        for (j, &r) in right.iter().enumerate() {
            let mut edits =
                (previous[j] + usize::from(l != r)).min(previous[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && l == right[j - 1] && left[i - 1] == r {
                edits = edits.min(before[j - 1] + 1);
            }
            row.push(edits);
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let allowed = ["connections", "warmup", "measure", "threads", "connect"];
        for (word, meant) in [
            ("conections", Some("connections")),
            ("warm-up", Some("warmup")),
            ("mesaure", Some("measure")),
            ("Threads", Some("threads")),
            ("innodb_flush_method", None),
            ("x", None),
        ] {
            assert_eq!(closest(word, allowed), meant, "{word}");
        }
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
