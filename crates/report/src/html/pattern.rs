//! Names against patterns, for picking a few of many dotted names.

/// A name against a pattern in which `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut last = "";
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = part;
    }
    rest.is_empty() || (pattern.contains('*') && last.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("host.cpu.user", "host.cpu.user", true),
            ("host.cpu.user", "host.cpu.users", false),
            ("host.pressure.*", "host.pressure.io.some", true),
            ("host.disk.*write*", "host.disk.vda.write_bytes", true),
            ("host.disk.*write*", "host.disk.vda.read_bytes", false),
            ("server*.cpu*", "server.1.cpu.user", true),
            ("server*.cpu*", "serve.cpu", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
