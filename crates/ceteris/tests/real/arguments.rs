//! Arguments and studies that are wrong, and commands that start nothing.

use serde_json::Value;

use crate::laboratory::{Laboratory, small_study};

#[test]
fn a_wrong_study_is_one_error_with_its_place_and_starts_nothing() {
    let lab = Laboratory::new();
    let wrong = small_study("installed").replace("connections", "conections");
    lab.write("wrong.toml", &wrong);
    let output = lab.run(&["run", "wrong.toml"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("wrong.toml:14:1"), "{complaint}");
    assert!(complaint.contains("connections"), "{complaint}");
    assert_eq!(complaint.matches("error:").count(), 1, "{complaint}");
    assert!(!lab.path("results").exists());
}

#[test]
fn a_wrong_override_points_at_the_override() {
    let lab = Laboratory::new();
    lab.write("study.toml", &small_study("installed"));
    let output = lab.run(&["plan", "study.toml", "--set", "load.connections=many"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("--set"), "{complaint}");
}

#[test]
fn same_seed_same_plan_and_nothing_is_made() {
    let lab = Laboratory::new();
    lab.write("study.toml", &small_study("installed"));
    let once = lab.succeed(&["plan", "study.toml", "--format", "json"]);
    assert_eq!(once, lab.succeed(&["plan", "study.toml", "--format", "json"]));
    let plan: Value = serde_json::from_str(&once).unwrap();
    assert_eq!(plan["questions"][0]["cells"].as_array().unwrap().len(), 2);
    assert_eq!(plan["questions"][0]["order"].as_array().unwrap().len(), 2);
    let commands = plan["questions"][0]["cells"][0]["commands"].as_array().unwrap();
    assert!(commands.iter().any(|c| c.as_str().unwrap().contains("--defaults-file=")));
    let other = lab.succeed(&["plan", "study.toml", "--format", "json", "--set", "seed=7"]);
    assert_ne!(once, other);
    assert!(!lab.path("results").exists());
    assert_eq!(std::fs::read_dir(lab.path("cache")).unwrap().count(), 0);
}

#[test]
fn a_package_that_does_not_exist_names_those_that_do() {
    let lab = Laboratory::new();
    lab.write("study.toml", &small_study("mysql-4.1"));
    for command in ["plan", "run"] {
        let output = lab.run(&[command, "study.toml"]);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains("mysql-8.0.12"), "{complaint}");
    }
    assert!(!lab.path("results").exists());
}

#[test]
fn a_report_is_never_written_over_something_else() {
    let lab = Laboratory::new();
    let precious = lab.write("precious.toml", "keep = \"me\"");
    lab.write("study.toml", &small_study("installed"));
    for report in ["precious.toml", "results/study.ceteris"] {
        let output = lab.run(&["run", "study.toml", "--report", report]);
        assert!(!output.status.success(), "{report}");
        assert!(!lab.path("results/study.ceteris").exists(), "nothing was started");
    }
    assert_eq!(std::fs::read_to_string(precious).unwrap(), "keep = \"me\"");
}

#[test]
fn doctor_speaks_json_of_every_placement() {
    let lab = Laboratory::new();
    let said: Value = serde_json::from_str(&lab.succeed(&["doctor", "--format", "json"])).unwrap();
    let placements = said["placements"].as_array().unwrap();
    let names: Vec<&str> = placements.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["host", "docker", "kvm", "kubernetes", "external"]);
    for placement in placements {
        assert!(placement["usable"].is_boolean());
        assert!(!placement["why"].as_str().unwrap().is_empty());
    }
    assert_eq!(said["leftovers"], serde_json::json!([]));
}

#[test]
fn completions_and_the_man_page_come_from_the_binary() {
    let lab = Laboratory::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(lab.succeed(&["completions", shell]).contains("packages"), "{shell}");
    }
    let page = lab.succeed(&["man"]);
    assert!(page.contains(".TH ceteris"));
    assert!(page.contains("CETERIS RUN"));
    assert!(!page.contains("CETERIS WORKER"), "the worker is not for people");
}

#[test]
fn a_file_that_is_no_result_is_refused() {
    let lab = Laboratory::new();
    lab.write("notes.ceteris", "not a database");
    let output = lab.run(&["show", "notes.ceteris"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("notes.ceteris"));
    let output = lab.run(&["show", "absent.ceteris"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!lab.path("absent.ceteris").exists());
}

#[test]
fn the_plan_of_a_guest_names_qemu_with_every_knob_and_makes_nothing() {
    let lab = Laboratory::new();
    let study = small_study("installed");
    lab.write(
        "study.toml",
        &format!("{study}\n[placement.kvm]\nnuma_nodes = 2\naccel = \"tcg\"\n"),
    );
    let text =
        lab.succeed(&["plan", "study.toml", "--format", "json", "--set", "load.connect=tcp"]);
    let plan: Value = serde_json::from_str(&text).unwrap();
    let commands = plan["questions"][0]["cells"][0]["commands"].to_string();
    for wanted in ["qemu-img create", "qemu-system-x86_64", "-accel tcg", "nodeid=1", ":PORT-"] {
        assert!(commands.contains(wanted), "no {wanted} in {commands}");
    }
    for room in ["guests", "instances"] {
        let held = std::fs::read_dir(lab.path("cache").join(room));
        assert_eq!(held.map_or(0, |held| held.count()), 0, "{room}");
    }
}

#[test]
fn the_observer_answers_on_standard_output_until_its_input_ends() {
    use std::io::Write;
    let lab = Laboratory::new();
    let mut command = lab.command(&["observe"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut observer = command.spawn().unwrap();
    let request = r#"{"fingerprint":{"data_dir":"/","pid_file":"/nowhere"}}"#;
    writeln!(observer.stdin.take().unwrap(), "{request}").unwrap();
    let output = observer.wait_with_output().unwrap();
    assert!(output.status.success());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(answer["fingerprint"]["host.kernel.release"], release.trim());
}
