//! Quantities as Kubernetes writes them: `500m`, `2`, `1.5`, `512Mi`, `1G`, `1e3`.

/// What a suffix multiplies by.
const SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];

/// Processors or bytes; `None` for what is no quantity.
pub(super) fn parse(text: &str) -> Option<f64> {
    let (number, factor) = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| text.strip_suffix(suffix).map(|number| (number, *factor)))
        .unwrap_or((text, 1.0));
    let plain = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let number = number.chars().all(plain).then(|| number.parse::<f64>().ok()).flatten()?;
    Some(number * factor).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Half of a quantity, in thousandths for processors and whole bytes for memory.
pub(super) fn half(text: &str, cpu: bool) -> Option<String> {
    let half = parse(text)? / 2.0;
    Some(if cpu { format!("{}m", (half * 1e3).ceil()) } else { format!("{}", half.ceil()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        for (text, value) in [
            ("500m", 0.5),
            ("2", 2.0),
            ("1.5", 1.5),
            ("0", 0.0),
            ("64Mi", 67_108_864.0),
            ("1G", 1e9),
            ("1e3", 1000.0),
            ("1E", 1e18),
            ("100k", 1e5),
        ] {
            assert_eq!(parse(text), Some(value), "{text}");
        }
        for text in ["", "m", "two", "-1", "1Xi", "inf", "NaN", "1 Gi"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(half("1", true).as_deref(), Some("500m"));
        assert_eq!(half("1Gi", false).as_deref(), Some("536870912"));
    }
}
