//! `docs/study-file.md`, rendered from the reference: the same table that errors quote.

use crate::check::joined;
use crate::reference::{Key, Kind, STUDY};
use crate::variables::RESERVED;

/// `docs/study-file.md`: the reference of the study file, generated from the table above.
pub fn reference_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut sections = Vec::new();
    collect_sections("", "Top level".to_owned(), "", STUDY, &mut sections);
    for Section { titles, note, keys } in sections {
        page.push_str(&format!("\n## {}\n\n", titles.join(", ")));
        if !note.is_empty() {
            page.push_str(&format!("{note}\n\n"));
        }
        if keys.is_empty() {
            page.push_str("No keys yet.\n");
            continue;
        }
        page.push_str("| key | value | default | meaning |\n| --- | --- | --- | --- |\n");
        for Key { name, kind, default, meaning } in keys {
            let default = default.unwrap_or("**required**");
            page.push_str(&format!("| `{name}` | {} | {default} | {meaning} |\n", kind.describe()));
        }
    }
    let reserved: Vec<String> = RESERVED.iter().map(|name| format!("`{name}`")).collect();
    page.push_str(&format!("\n{VARIABLES}\n{}\n{EPILOGUE}", reserved.join(", ")));
    page
}

struct Section {
    titles: Vec<String>,
    note: &'static str,
    keys: &'static [Key],
}

/// One section for each distinct table; tables with the same keys (the oltp family) share one.
fn collect_sections(
    path: &str,
    title: String,
    note: &'static str,
    keys: &'static [Key],
    sections: &mut Vec<Section>,
) {
    match sections.iter_mut().find(|section| section.keys == keys) {
        Some(section) => section.titles.push(title),
        None => sections.push(Section { titles: vec![title], note, keys }),
    }
    for key in keys {
        let path = joined(path, key.name);
        match key.kind {
            Kind::Table(keys) => {
                collect_sections(&path, format!("`[{path}]`"), "", keys, sections);
            }
            Kind::Choice(keys) => {
                let note = "Exactly one of these.";
                collect_sections(&path, format!("`[{path}.*]`"), note, keys, sections);
            }
            Kind::Tables(keys) => {
                collect_sections(&path, format!("`[[{path}]]`"), "", keys, sections);
            }
            _ => {}
        }
    }
}

const INTRODUCTION: &str = r#"<!-- generated from crates/study/src/reference.rs; CETERIS_BLESS=1 cargo test -p ceteris-study writes it -->
# The study file

A study is a TOML file: a baseline setup (`[server]`, `[placement.*]`, `[host]`,
`[workload.*]`, `[load]`) and one or
more questions. A question names **one path** of the setup and the values (levels) that the path takes;
everything else stays as the baseline says.

```toml
title = "What does full durability cost?"

[server.config]
innodb_buffer_pool_size = "256M"

[workload.oltp_write_only]
tables = 4
rows   = 50_000

[load]
connections = 8

[[question]]
name   = "durability"
vary   = "server.config.innodb_flush_log_at_trx_commit"
levels = [2, 1]
```

- A **path** is dotted: `server.package`, `server.config.innodb_flush_method`, `placement`, `workload`,
  `workload.oltp_write_only.rows`, `load.connections`. In `given`, `sweep` and `at` it is quoted.
- A level of `placement` or `workload` is a table of exactly one key, such as `{ host = {} }`, and replaces
  the baseline's whole.
- `given` is applied first, then the sweep point, then the level.
- `vary` may be a list only with `compound = true`. A path that names a table of several keys, such as
  `load`, is a bundle too and needs `compound`.
- `--set path=value` on the command line replaces a value of the baseline, of `[design]`, `title` or `seed`.
  The value is TOML or a bare word: `--set load.measure=10s`. It is stored with the result. An override that
  every question replaces is an error.
- A duration is a number and one of `ms`, `s`, `m`, `h`. A share ends in `%`.
"#;

const VARIABLES: &str = "\
## `[server.config]`

Any server variable, by its own name, as a string, number or boolean. A name that holds a dot is quoted. \
A value holds no line breaks. ceteris gives \
each instance its own directories, socket, port and log. A file that a log or tablespace setting names \
stands in the data directory: an absolute path or `..` is refused there. These are refused altogether:
";

const EPILOGUE: &str = "
## Limits

A question has at most 1000 cells (levels times sweep points).
";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_page_in_docs_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/study-file.md");
        if std::env::var_os("CETERIS_BLESS").is_some_and(|bless| bless == "1") {
            std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).unwrap();
            std::fs::write(path, reference_markdown()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == reference_markdown(),
            "docs/study-file.md is not current; CETERIS_BLESS=1 cargo test -p ceteris-study writes it"
        );
    }

    /// `docs/workloads.md` is written by hand, and must not forget a workload, a knob or a default.
    #[test]
    fn the_page_on_workloads_names_every_knob_with_its_default() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workloads.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (modern, legacy) = page.split_once("\n## oltp_legacy\n").unwrap();
        let workload = STUDY.iter().find(|key| key.name == "workload").unwrap();
        let Kind::Choice(variants) = workload.kind else { panic!("a choice") };
        assert!(variants.len() >= 12);
        for variant in variants {
            let text = if variant.name == "oltp_legacy" { legacy } else { modern };
            assert!(page.contains(variant.name), "{}", variant.name);
            let Kind::Table(keys) = variant.kind else { panic!("a table") };
            for Key { name, default, .. } in keys {
                let default = default.unwrap();
                let bare = default.trim_matches('`');
                let told = [
                    format!("`{name}` {bare}"),
                    format!("`{name}` is {bare}"),
                    format!("| `{name}` | {default} |"),
                ];
                assert!(
                    told.iter().any(|told| text.contains(told.as_str())),
                    "{}: {name} with its default {default}",
                    variant.name
                );
            }
        }
    }
}
