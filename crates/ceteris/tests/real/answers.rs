//! A study from its file to its answer and report.

use serde_json::json;

use crate::laboratory::{Laboratory, server_installed, small_study};

#[test]
fn a_study_is_answered_and_leaves_only_its_result() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    lab.write("study.toml", &small_study("installed"));
    let said = lab.succeed(&["run", "study.toml", "--report", "page.html"]);
    assert!(said.contains("innodb_flush_log_at_trx_commit"), "{said}");
    lab.assert_nothing_left();

    let shown = lab.show("results/study.ceteris");
    let question = &shown["questions"][0];
    assert_eq!(question["name"], "durability");
    assert_eq!(question["baseline"], "2");
    assert_eq!(question["audit"]["ok"], true, "{}", question["audit"]);
    assert_eq!(question["runs"].as_array().unwrap().len(), 4);
    for run in question["runs"].as_array().unwrap() {
        assert!(run["tps"].as_f64().unwrap() > 0.0);
        assert!(run["p95_ms"].as_f64().unwrap() > 0.0);
    }
    let effects = question["effects"].as_array().unwrap();
    assert_eq!(effects.len(), 2, "throughput and p95 of one level");
    for effect in effects {
        assert_eq!(effect["level"], "1");
        assert_eq!(effect["at"], json!({}));
        assert_eq!(effect["blocks"], 2);
        let (low, high) = (effect["low"].as_f64().unwrap(), effect["high"].as_f64().unwrap());
        let ratio = effect["ratio"].as_f64().unwrap();
        assert!(low <= ratio && ratio <= high);
    }
    // The factor is what differed, as the server itself says.
    let factor = &question["audit"]["factor"][0];
    assert_eq!(factor["name"], "server.variable.innodb_flush_log_at_trx_commit");

    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("What does full durability cost, in short?"));
    let csv = lab.succeed(&["show", "results/study.ceteris", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 5, "a header and four runs");

    // A finished study is not run again; one that changed is not mixed with the old.
    let again = lab.run(&["run", "study.toml"]);
    assert!(again.status.success());
    assert_eq!(lab.show("results/study.ceteris"), shown);
    lab.write("study.toml", &small_study("installed").replace("blocks = 2", "blocks = 3"));
    let refused = lab.run(&["run", "study.toml"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--again"));
}

#[test]
fn no_password_is_in_any_argument_log_or_result() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    lab.write("study.toml", &small_study("installed"));
    lab.succeed(&["run", "study.toml"]);
    let mut secrets = Vec::new();
    for entry in walk(&lab.path("cache/datasets")) {
        use std::os::unix::fs::PermissionsExt;
        if entry.file_name().is_some_and(|name| name.to_string_lossy().contains("secret")) {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{} is readable by others", entry.display());
            secrets.push(std::fs::read(&entry).unwrap().trim_ascii().to_vec());
        }
    }
    assert!(!secrets.is_empty(), "no secret found, so nothing was tested");
    for file in [lab.path("results/study.ceteris")] {
        let bytes = std::fs::read(&file).unwrap();
        for secret in &secrets {
            assert!(secret.len() >= 16);
            assert!(!bytes.windows(secret.len()).any(|w| w == secret), "{}", file.display());
        }
    }
}

#[test]
fn a_server_that_refuses_its_configuration_speaks_for_itself() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    let study = small_study("installed")
        .replace("[server.config]", "[server.config]\nno_such_variable = 7");
    lab.write("study.toml", &study);
    let output = lab.run(&["run", "study.toml"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("no_such_variable") || complaint.contains("no-such-variable"));
    assert!(complaint.contains("unknown"), "the server's own words: {complaint}");
    lab.assert_nothing_left();
}

#[test]
fn a_sweep_is_one_family_and_blocks_are_added_up_to_the_limit() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    let study = small_study("installed").replace(
        "blocks = 2",
        "blocks = 2\nmax_blocks = 3\nprecision = \"0.01%\"\nsweep = { \"load.connections\" = [1, 2] }",
    );
    lab.write("study.toml", &study);
    lab.succeed(&["run", "study.toml"]);
    let shown = lab.show("results/study.ceteris");
    let question = &shown["questions"][0];
    // No machine knows an effect to a hundredth of a percent after two blocks of a second.
    assert_eq!(question["runs"].as_array().unwrap().len(), 3 * 4);
    assert_eq!(question["effects"].as_array().unwrap().len(), 4, "two metrics at two points");
    assert_eq!(question["audit"]["ok"], true, "{}", question["audit"]);
    lab.assert_nothing_left();
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files.extend(walk(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}

/// The script's text is in the result, so that it no longer matters what becomes of its file.
#[test]
fn a_question_varies_a_parameter_of_a_script() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    let bank = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/bank_transfer.toml");
    let bank = std::fs::read_to_string(bank).unwrap();
    lab.write("bank.toml", &bank);
    let study = small_study("installed")
        .replace("[workload.oltp_write_only]\ntables = 2\nrows   = 1_000", SCRIPT)
        .replace("server.config.innodb_flush_log_at_trx_commit", "workload.script.params.theta")
        .replace("[2, 1]", "[0.5, 0.99]");
    lab.write("study.toml", &study);
    let said = lab.succeed(&["run", "study.toml", "--report", "page.html"]);
    assert!(said.contains("workload.script.params.theta"), "{said}");
    let shown = lab.show("results/study.ceteris");
    let runs = shown["questions"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run["tps"].as_f64().unwrap() > 0.0));
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("bank.toml"), "the condition names the script");

    lab.write("bank.toml", &bank.replace("weight = 3", "weight = 4"));
    let refused = lab.run(&["run", "study.toml"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("another version"));
    lab.write("bank.toml", &bank.replace("weight = 3", "wieght = 3"));
    let refused = lab.run(&["run", "study.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(complaint.contains("bank.toml") && complaint.contains("`weight`?"), "{complaint}");
}

const SCRIPT: &str = "[workload.script]\nfile = \"bank.toml\"\nparams = { accounts = 2_000 }";
