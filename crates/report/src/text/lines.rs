//! Lines that fit a terminal: wrapping, cutting, padding. Widths are in characters.

/// `text` in lines of at most `width`; a longer word stands alone and is cut.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, width)),
        }
    }
    lines
}

/// At most `width` characters on one line, the middle left out where it is longer: names that
/// belong together begin alike, and differ at the end.
pub fn cut(text: &str, width: usize) -> String {
    let text = text.replace(['\n', '\r', '\t', '\x1b'], " ");
    let long = length(&text);
    if long <= width || width == 0 {
        return text;
    }
    let tail = width / 3;
    let head: String = text.chars().take(width - tail - 1).collect();
    let tail: String = text.chars().skip(long - tail).collect();
    format!("{head}…{tail}")
}

/// Values that are too long for `width`, cut so that the place where they begin to differ is seen.
pub fn cut_alike(values: &[&str], width: usize) -> Vec<String> {
    const BEFORE: usize = 12;
    let alike = |at: usize| {
        let mut chars = values.iter().map(|value| value.chars().nth(at));
        let first = chars.next().flatten();
        first.is_some() && chars.all(|char| char == first)
    };
    let longest = values.iter().map(|value| length(value)).max().unwrap_or(0);
    let common = if longest > width { (0..longest).take_while(|at| alike(*at)).count() } else { 0 };
    let skipped = common.saturating_sub(BEFORE);
    let shown = |value: &&str| {
        let rest: String = value.chars().skip(skipped).collect();
        let rest = if skipped > 0 { format!("…{rest}") } else { rest };
        match length(&rest) > width {
            true => rest.chars().take(width - 1).chain(['…']).collect(),
            false => cut(&rest, width),
        }
    };
    values.iter().map(shown).collect()
}

/// Characters, not bytes.
pub fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_and_cuts_to_the_width() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghijkl m", 6), ["abc…kl", "m"]);
        assert_eq!(wrapped("", 7), Vec::<String>::new());
        assert_eq!(cut("abcdefghijkl", 7), "abcd…kl");
        assert_eq!(cut("two\nlines", 20), "two lines");
        assert_eq!(cut("äöü", 3), "äöü");
    }

    #[test]
    fn shows_where_long_values_differ() {
        let (on, off) = (format!("{}on", "x".repeat(50)), format!("{}off", "x".repeat(50)));
        let shown = cut_alike(&[&on, &off], 20);
        assert!(shown[0].ends_with("on") && shown[1].ends_with("off"), "{shown:?}");
        assert!(shown.iter().all(|value| length(value) <= 20));
        assert_eq!(cut_alike(&["1", "2"], 20), ["1", "2"]);
        assert_eq!(cut_alike(&["a", &"b".repeat(30)], 5), ["a", "bbbb…"]);
    }
}
