//! The machine and the server, from the fingerprints: a few facts on top, all names below.
//!
//! Fingerprint names belong to `observe` and grow with it, so the selection goes by patterns and
//! leaves out what is not there; the full list shows every name whatever it is.

use std::collections::{BTreeMap, BTreeSet};

use super::gather::{Material, Observed};
use super::markup::{Esc, count};
use super::pattern::matches;

/// Facts shown on top: group, label, and patterns of names, the first that fits being taken.
const FACTS: [(&str, &str, &[&str]); 26] = [
    ("machine", "CPU", &["host.cpu.model"]),
    ("machine", "CPUs", &["host.cpu.count", "host.cpu.online"]),
    ("machine", "cores", &["host.cpu.cores"]),
    ("machine", "governor", &["host.cpu.governor"]),
    ("machine", "boost", &["host.cpu.boost"]),
    ("machine", "no turbo", &["host.cpu.no_turbo"]),
    ("machine", "memory", &["host.memory.total*"]),
    ("machine", "NUMA nodes", &["host.numa.nodes"]),
    ("machine", "NUMA balancing", &["host.kernel.numa_balancing"]),
    ("machine", "transparent huge pages", &["host.huge_pages.enabled"]),
    ("machine", "model", &["host.machine.product"]),
    ("machine", "is virtual", &["host.machine.virtual"]),
    ("system", "system", &["host.system"]),
    ("system", "kernel", &["host.kernel.release"]),
    ("system", "clock", &["host.kernel.clocksource"]),
    ("system", "swappiness", &["host.vm.swappiness"]),
    ("system", "data file system", &["host.data.filesystem"]),
    ("system", "mount options", &["host.data.options"]),
    ("system", "disk", &["host.data.disk.model", "host.data.disk", "host.data.device"]),
    ("system", "I/O scheduler", &["host.data.disk.scheduler"]),
    ("server", "version", &["server.version"]),
    ("server", "package", &["place.package", "place.package*"]),
    ("server", "dataset", &["place.dataset", "place.dataset*"]),
    ("server", "buffer pool", &["server.variable.innodb_buffer_pool_size"]),
    ("server", "flush method", &["server.variable.innodb_flush_method"]),
    ("server", "binary log", &["server.variable.log_bin"]),
];

/// CPU, count and kernel in one line.
pub fn machine_line(material: &Material) -> Option<String> {
    let first = material.observed.first()?;
    let fact = |label: &str| {
        let (_, _, patterns) = FACTS.iter().find(|(_, l, _)| *l == label)?;
        find(first, patterns).map(|(_, value)| value)
    };
    let parts: Vec<String> = [
        fact("CPU").map(tidy_cpu),
        fact("CPUs").map(|n| format!("{n} CPUs")),
        fact("memory").map(|m| readable("memory", m)),
        fact("kernel").map(|k| format!("kernel {k}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The versions of all servers seen.
pub fn server_line(material: &Material) -> Option<String> {
    let versions: BTreeSet<&str> = material
        .observed
        .iter()
        .filter_map(|o| o.fingerprint.get("server.version"))
        .map(String::as_str)
        .collect();
    (!versions.is_empty()).then(|| versions.into_iter().collect::<Vec<_>>().join(", "))
}

fn tidy_cpu(model: &str) -> String {
    model.replace("(R)", "").replace("(TM)", "").replace(" CPU", "")
}

fn find<'a>(observed: &'a Observed, patterns: &[&str]) -> Option<(&'a str, &'a str)> {
    patterns.iter().find_map(|pattern| {
        let fits = |(name, _): &(&String, &String)| matches(pattern, name);
        observed.fingerprint.iter().find(fits).map(|(n, v)| (n.as_str(), v.as_str()))
    })
}

/// Plain bytes are hard to read; everything else stays as it was observed.
fn readable(label: &str, value: &str) -> String {
    let bytes = match (label, value.parse::<u64>()) {
        ("memory" | "buffer pool", Ok(bytes)) if bytes >= 1 << 20 => bytes,
        _ => return value.to_owned(),
    };
    if bytes >= 1 << 30 {
        format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
    } else {
        format!("{} MiB", bytes >> 20)
    }
}

/// The section.
pub fn section(material: &Material) -> String {
    if material.observed.is_empty() {
        return "<section id=\"machine\"><h2>Machine and server</h2><p class=\"note\">nothing was \
                observed: no run has finished</p></section>\n"
            .to_owned();
    }
    let mut out =
        String::from("<section id=\"machine\"><h2>Machine and server</h2><div class=\"facts\">");
    for (group, title) in [("machine", "Machine"), ("system", "System"), ("server", "Server")] {
        let facts: String = FACTS
            .iter()
            .filter(|(g, _, _)| *g == group)
            .filter_map(|(_, label, patterns)| fact(material, label, patterns))
            .collect();
        if !facts.is_empty() {
            out.push_str(&format!("<div><h3>{title}</h3><dl>{facts}</dl></div>"));
        }
    }
    out.push_str("</div>");
    out.push_str(&all_names(material));
    out.push_str("</section>\n");
    out
}

fn fact(material: &Material, label: &str, patterns: &[&str]) -> Option<String> {
    let mut values: Vec<String> = Vec::new();
    let mut name = "";
    for observed in &material.observed {
        if let Some((found, value)) = find(observed, patterns) {
            name = found;
            let value = readable(label, value);
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    (!values.is_empty()).then(|| {
        format!("<dt title=\"{}\">{label}</dt><dd>{}</dd>", Esc(name), Esc(values.join(" / ")))
    })
}

/// Every observed name, with the values of all levels where they differ. Before the first run of
/// each level; what changed during runs is the audit's business.
fn all_names(material: &Material) -> String {
    let names: BTreeSet<&String> =
        material.observed.iter().flat_map(|o| o.fingerprint.keys()).collect();
    let rows: String = names
        .iter()
        .map(|name| {
            let mut seen: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for observed in &material.observed {
                let value = observed.fingerprint.get(*name).map_or("(absent)", String::as_str);
                seen.entry(value).or_default().push(&observed.label);
            }
            let value = if seen.len() == 1 {
                seen.keys().map(|value| format!("<code>{}</code>", Esc(value))).collect()
            } else {
                let items: String = seen
                    .iter()
                    .map(|(value, who)| {
                        format!("<li><code>{}</code> {}</li>", Esc(value), Esc(who.join(", ")))
                    })
                    .collect();
                format!("<ul class=\"values\">{items}</ul>")
            };
            let differs = if seen.len() > 1 { " class=\"differs\"" } else { "" };
            format!(
                "<tr{differs}><th scope=\"row\"><code>{}</code></th><td>{value}</td></tr>\n",
                Esc(name)
            )
        })
        .collect();
    format!(
        "<details><summary>All {} observed names</summary>\
         <div class=\"filter\" data-filter=\"observed\"></div>\
         <div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"observed names\">\
         <table id=\"observed\"><thead><tr><th scope=\"col\">name</th>\
         <th scope=\"col\">value before the first run of each level</th></tr></thead>\
         <tbody>{rows}</tbody></table></div></details>",
        count(names.len() as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_by_pattern_and_bytes_made_readable() {
        let observed = Observed {
            label: "q / a".into(),
            fingerprint: [("host.cpu.model", "X"), ("host.memory.total_bytes", "25276514304")]
                .map(|(n, v)| (n.to_owned(), v.to_owned()))
                .into(),
        };
        assert_eq!(find(&observed, FACTS[0].2), Some(("host.cpu.model", "X")));
        assert_eq!(find(&observed, &["server.*"]), None);
        assert_eq!(readable("memory", "25276514304"), "23.5 GiB");
        assert_eq!(readable("buffer pool", "134217728"), "128 MiB");
        assert_eq!(readable("memory", "24 GB"), "24 GB");
        assert_eq!(readable("kernel", "25276514304"), "25276514304");
    }
}
