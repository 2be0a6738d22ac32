//! Manifests as YAML, for people: what `kubectl` is given is JSON, which it takes as well.

use serde_json::Value;

/// Documents, each after a `---`.
pub(super) fn documents(values: &[Value]) -> String {
    let mut text = String::new();
    for value in values {
        text.push_str("---\n");
        write(value, 0, &mut text);
    }
    text
}

/// Writes a value that begins on a line of its own.
fn write(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (nth, (key, value)) in map.iter().enumerate() {
                // The first key of a list's entry stands behind its dash.
                if nth > 0 || !text.ends_with("- ") {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str(&scalar(key));
                text.push(':');
                write_beside(value, indent, text);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for entry in list {
                text.push_str(&" ".repeat(indent));
                text.push_str("- ");
                match entry {
                    Value::Object(map) if !map.is_empty() => write(entry, indent + 2, text),
                    _ => {
                        text.push_str(&flow(entry));
                        text.push('\n');
                    }
                }
            }
        }
        _ => {
            text.push_str(&" ".repeat(indent));
            text.push_str(&flow(value));
            text.push('\n');
        }
    }
}

/// Writes a value after `key:`.
fn write_beside(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            write(value, indent + 2, text);
        }
        Value::Array(list) if list.iter().any(|entry| entry.is_object()) => {
            text.push('\n');
            write(value, indent, text);
        }
        Value::String(lines) if block(lines) => {
            text.push_str(" |\n");
            for line in lines.lines() {
                if !line.is_empty() {
                    text.push_str(&" ".repeat(indent + 2));
                    text.push_str(line);
                }
                text.push('\n');
            }
        }
        _ => {
            text.push(' ');
            text.push_str(&flow(value));
            text.push('\n');
        }
    }
}

/// Text that reads best as it is, line by line.
fn block(text: &str) -> bool {
    text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n'])
        && text.chars().all(|c| c == '\n' || !c.is_control())
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        // JSON is YAML.
        other => other.to_string(),
    }
}

/// Text without quotes where nobody could take it for anything else.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(plain)
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if word { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn manifests_read_like_those_that_people_write() {
        let value = json!({
            "kind": "Pod",
            "metadata": { "labels": {}, "name": "a" },
            "spec": {
                "args": ["--x=1", "true", "sh"],
                "containers": [
                    { "env": [{ "name": "A", "value": "1" }], "name": "server" },
                    { "name": "b" },
                ],
                "data": { "my.cnf": "[mysqld]\n\nport = 3306\n", "odd": "a\tb\n" },
                "ok": true,
                "port": 3306,
            },
        });
        let expected = "\
---
kind: Pod
metadata:
  labels: {}
  name: a
spec:
  args: [\"--x=1\", \"true\", sh]
  containers:
  - env:
    - name: A
      value: \"1\"
    name: server
  - name: b
  data:
    my.cnf: |
      [mysqld]

      port = 3306
    odd: \"a\\tb\\n\"
  ok: true
  port: 3306
";
        assert_eq!(documents(&[value]), expected);
    }
}
