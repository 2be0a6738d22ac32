//! A page in headless Chromium. The page's script writes into its root element how many charts it
//! has drawn and what went wrong.

use std::path::PathBuf;
use std::process::Command;

/// Asserts that a browser draws so many charts of the page and sees no error. Without a browser it
/// says so on standard error and checks nothing.
pub fn check(page: &str, charts: usize) {
    let Some(browser) = find() else {
        eprintln!("SKIPPED: no chromium in PATH, so no browser has seen this page");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    std::fs::write(&path, page).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}#render=all", path.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let root = dom.split_once("<html").map(|(_, rest)| rest.split('>').next().unwrap_or(""));
    let root = root.unwrap_or_else(|| {
        panic!("the browser gave no page: {}", String::from_utf8_lossy(&output.stderr))
    });
    assert!(!root.contains("data-error"), "the page's script failed: {root}");
    assert!(root.contains(&format!("data-ready=\"{charts} charts\"")), "{charts} expected: {root}");
    // A chart is a drawing of its own: an svg or a canvas inside each place.
    let drawn = dom.matches("data-mounted=\"\"").count();
    assert_eq!(drawn, charts, "places that hold a drawing");
    let body = dom.split_once("<main>").map_or("", |(_, rest)| rest);
    let drawings = body.matches("<canvas").count() + body.matches("xmlns:xlink").count();
    assert!(drawings >= charts, "{drawings} drawings for {charts} charts");
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| {
            ["chromium", "chromium-browser", "google-chrome"].map(|n| folder.join(n))
        })
        .find(|candidate| candidate.is_file())
}
