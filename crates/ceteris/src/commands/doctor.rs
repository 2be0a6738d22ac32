//! `ceteris doctor`: what is usable here and why the rest is not; leftovers of killed studies.

use place::{Cache, CommandLog, Leftover, PackageListing};
use serde::Serialize;

use super::{json, print};
use crate::cli::{DoctorArgs, PlanFormat};
use crate::failure::{EXIT_FAILED, EXIT_OK, Ended};

/// All that doctor found.
#[derive(Serialize)]
struct Findings {
    placements: Vec<place::PlacementListing>,
    packages: Vec<PackageListing>,
    cache: CacheUse,
    leftovers: Vec<Leftover>,
    /// The leftovers were removed.
    cleaned: bool,
}

/// Where the cache is and what it holds.
#[derive(Serialize)]
struct CacheUse {
    path: String,
    bytes: u64,
}

/// Looks around, and cleans when asked. Exit code 1 when leftovers stay.
pub fn doctor(args: DoctorArgs) -> Ended {
    let cache = Cache::open()?;
    let leftovers = if args.clean { place::clean(&cache)? } else { place::leftovers(&cache)? };
    let packages = place::list_packages(&cache);
    let findings = Findings {
        placements: place::list_placements(&packages, &CommandLog::default()),
        packages,
        cache: CacheUse {
            path: cache.root().display().to_string(),
            bytes: cache.usage()?.iter().map(|item| item.bytes).sum(),
        },
        leftovers,
        cleaned: args.clean,
    };
    match args.format {
        PlanFormat::Json => print(&json(&findings)?)?,
        PlanFormat::Text => print(&text(&findings))?,
    }
    Ok(if findings.leftovers.is_empty() || findings.cleaned { EXIT_OK } else { EXIT_FAILED })
}

fn text(findings: &Findings) -> String {
    let mut text = String::from("placements\n");
    for placement in &findings.placements {
        text.push_str(&line(&placement.name, placement.usable, &placement.why));
    }
    text.push_str("\npackages\n");
    for package in &findings.packages {
        text.push_str(&line(&package.name, package.usable, &package.why));
    }
    text.push_str(&format!(
        "\ncache\n  {}, {}\n",
        findings.cache.path,
        crate::talk::bytes(findings.cache.bytes as f64)
    ));
    text.push_str("\nleft by killed studies\n");
    if findings.leftovers.is_empty() {
        text.push_str("  nothing\n");
    }
    for leftover in &findings.leftovers {
        let done = if findings.cleaned { "removed: " } else { "" };
        text.push_str(&format!("  {done}{}\n", leftover.describe()));
    }
    if !findings.leftovers.is_empty() && !findings.cleaned {
        text.push_str("hint: remove them with: ceteris doctor --clean\n");
    }
    text
}

fn line(name: &str, usable: bool, why: &str) -> String {
    format!("  {:<4} {name:<16} {why}\n", if usable { "ok" } else { "no" })
}
