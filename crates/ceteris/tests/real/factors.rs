//! Factors that change more than a variable: the files of a data directory, its rows, the server
//! itself. What follows from them is listed, and the question is answered all the same.

use serde_json::Value;

use crate::laboratory::{Laboratory, server_installed, small_study};

const FACTOR: &str = "vary   = \"server.config.innodb_flush_log_at_trx_commit\"\nlevels = [2, 1]";

/// Answers the small study with another factor; gives its question.
fn answered(lab: &Laboratory, package: &str, factor: &str) -> Value {
    let study = small_study(package);
    assert!(study.contains(FACTOR));
    lab.write("study.toml", &study.replace(FACTOR, factor));
    lab.succeed(&["run", "study.toml"]);
    let question = lab.show("results/study.ceteris")["questions"][0].clone();
    assert_eq!(question["audit"]["ok"], true, "{factor}: {}", question["audit"]);
    assert_eq!(question["runs"].as_array().unwrap().len(), 4);
    assert!(question["verdict"].is_string());
    question
}

fn consequences(question: &Value) -> Vec<&str> {
    let listed = question["audit"]["consequences"].as_array().unwrap();
    listed.iter().map(|difference| difference["name"].as_str().unwrap()).collect()
}

#[test]
fn a_page_size_changes_the_files() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    let factor = "vary = \"server.config.innodb_page_size\"\nlevels = [\"16K\", \"8K\"]";
    let question = answered(&lab, "installed", factor);
    assert!(consequences(&question).contains(&"place.dataset.hash"), "{question}");
    lab.assert_nothing_left();
}

#[test]
fn a_number_of_rows_changes_the_data() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    let factor = "vary = \"workload.oltp_write_only.rows\"\nlevels = [1_000, 2_000]";
    let question = answered(&lab, "installed", factor);
    assert!(consequences(&question).contains(&"place.dataset.hash"), "{question}");
    lab.assert_nothing_left();
}

#[test]
fn a_number_of_connections_is_a_factor_like_any_other() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    // More than a server admits unless told otherwise.
    let question = answered(&lab, "installed", "vary = \"load.connections\"\nlevels = [8, 200]");
    assert_eq!(question["factor"], "load.connections");
    lab.assert_nothing_left();
}

#[test]
fn one_server_against_another() {
    let lab = Laboratory::on_the_shared_cache();
    let listing: Value =
        serde_json::from_str(&lab.succeed(&["packages", "list", "--format", "json"])).unwrap();
    let usable = |name: &str| {
        let listed = listing.as_array().unwrap().iter().find(|p| p["name"] == name);
        listed.is_some_and(|p| p["usable"] == true)
    };
    let (old, new) = ("mysql-5.7.22", "mysql-8.0.12");
    if !usable(old) || !usable(new) {
        eprintln!("SKIPPED: {old} and {new} are not both usable here");
        return;
    }
    let factor = format!("vary = \"server.package\"\nlevels = [\"{old}\", \"{new}\"]");
    let question = answered(&lab, old, &factor);
    assert!(consequences(&question).contains(&"server.version"), "{question}");
    assert_eq!(lab.processes(), vec![]);
}
