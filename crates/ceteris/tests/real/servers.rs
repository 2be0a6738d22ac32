//! The same study on every server of the catalogue.

use crate::laboratory::{Laboratory, small_study};

#[test]
fn the_same_study_on_every_server() {
    let servers =
        ["installed", "mysql-5.5.9", "mysql-5.7.22", "mysql-8.0.12", "mysql-9.7", "mariadb-11.4.5"];
    let mut answered = 0;
    for server in servers {
        let lab = Laboratory::on_the_shared_cache();
        let listing: serde_json::Value =
            serde_json::from_str(&lab.succeed(&["packages", "list", "--format", "json"])).unwrap();
        let listed = listing.as_array().unwrap().iter().find(|p| p["name"] == server);
        let listed = listed.unwrap_or_else(|| panic!("{server} is not in the catalogue"));
        if listed["usable"] != true {
            eprintln!("SKIPPED: {server}: {}", listed["why"]);
            continue;
        }
        if !fetched(&lab, server) {
            continue;
        }
        lab.write("study.toml", &small_study(server));
        lab.succeed(&["run", "study.toml"]);
        let shown = lab.show("results/study.ceteris");
        let question = &shown["questions"][0];
        assert_eq!(question["audit"]["ok"], true, "{server}: {}", question["audit"]);
        assert_eq!(question["runs"].as_array().unwrap().len(), 4, "{server}");
        assert_eq!(lab.processes(), vec![], "{server}");
        answered += 1;
        eprintln!("{server}: {}", question["sentence"]);
    }
    assert!(answered > 0, "no server at all could be used");
}

/// Fetches a package, once more if need be. Those of the catalogue are pinned and must be there;
/// what Debian's unstable suite holds today is Debian's to say.
fn fetched(lab: &Laboratory, server: &str) -> bool {
    if server == "installed" {
        return true;
    }
    let fetch = || lab.run(&["packages", "fetch", server]);
    let mut output = fetch();
    if !output.status.success() {
        output = fetch();
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && server == "mysql-9.7" {
        eprintln!("SKIPPED: {server}: {complaint}");
        return false;
    }
    assert!(output.status.success(), "{server}: {complaint}");
    true
}
