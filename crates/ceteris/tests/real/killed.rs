//! SIGKILL at random moments: of the conductor, of the worker, of the server. Every study is
//! finished by running it again, no finished run is lost, nothing is left.

use std::process::Child;
use std::time::Duration;

use crate::laboratory::{Laboratory, server_installed, small_study};

/// How often each is killed.
const TIMES: u64 = 10;
/// Runs of the study that is killed.
const RUNS: usize = 20;

#[derive(Clone, Copy, PartialEq)]
enum Victim {
    Conductor,
    Worker,
    Server,
}

#[test]
fn a_killed_conductor_loses_at_most_the_run_in_flight() {
    kill_again_and_again(Victim::Conductor);
}

#[test]
fn a_killed_worker_loses_at_most_the_run_in_flight() {
    kill_again_and_again(Victim::Worker);
}

#[test]
fn a_killed_server_loses_at_most_the_run_in_flight() {
    kill_again_and_again(Victim::Server);
}

#[test]
fn ctrl_c_stops_cleanly_and_says_how_to_go_on() {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    lab.write("study.toml", &long_study());
    let mut conductor = lab.start(&["run", "study.toml"]);
    wait_until(&mut conductor, || lab.processes().iter().any(|(_, line)| is_worker(line)));
    std::thread::sleep(Duration::from_millis(700));
    signal(conductor.id(), "INT");
    let ended = conductor.wait().unwrap();
    let talk = std::fs::read_to_string(lab.path("talk.log")).unwrap();
    assert_eq!(ended.code(), Some(130), "{talk}");
    assert!(talk.contains("hint:") && talk.contains("run study.toml"), "{talk}");
    lab.assert_nothing_left();
    lab.show("results/study.ceteris");
}

fn kill_again_and_again(victim: Victim) {
    if !server_installed() {
        return;
    }
    let lab = Laboratory::new();
    lab.write("study.toml", &long_study());
    let mut random = 0x2545_f491_4f6c_dd1d_u64 ^ (victim as u64 + 1);
    let mut kept = Vec::new();
    let mut killed = 0;
    let mut conductor = lab.start(&["run", "study.toml"]);
    // Every try that finds its victim counts; the limit is there to end, not to be reached.
    for _ in 0..TIMES * 10 {
        if killed == TIMES {
            break;
        }
        // xorshift: moments between 0 and 4 s, spread over loading, starting and measuring.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_millis(random % 4000));
        if kill(&lab, &mut conductor, victim) {
            killed += 1;
        }
        let gone = victim == Victim::Conductor || conductor.try_wait().unwrap().is_some();
        if gone {
            conductor.wait().unwrap();
            assert_quiet(&lab);
        }
        if lab.path("results/study.ceteris").exists() {
            let now = runs(&lab);
            for run in &kept {
                assert!(now.contains(run), "a finished run was lost: {run}");
            }
            kept = now;
        }
        if gone {
            if kept.len() == RUNS {
                // Finished before all kills were done: begin again.
                std::fs::remove_dir_all(lab.path("results")).unwrap();
                kept.clear();
            }
            conductor = lab.start(&["run", "study.toml"]);
        }
    }
    assert_eq!(killed, TIMES, "not enough kills hit");
    // Whatever state that left: going on must finish the study.
    conductor.wait().unwrap();
    assert_quiet(&lab);
    lab.succeed(&["run", "study.toml"]);
    let shown = lab.show("results/study.ceteris");
    assert_eq!(shown["questions"][0]["runs"].as_array().unwrap().len(), RUNS);
    let now = runs(&lab);
    assert!(kept.iter().all(|run| now.contains(run)), "a finished run was lost");
    lab.assert_nothing_left();
    assert_eq!(lab.succeed(&["doctor", "--clean", "--format", "json"]).matches("kind").count(), 0);
}

/// Kills the victim if it is there; whether it was.
fn kill(lab: &Laboratory, conductor: &mut Child, victim: Victim) -> bool {
    if conductor.try_wait().unwrap().is_some() {
        return false;
    }
    let of_kind = |is: fn(&str) -> bool| {
        lab.processes().into_iter().find(|(_, line)| is(line)).map(|(pid, _)| pid)
    };
    let pid = match victim {
        Victim::Conductor => Some(conductor.id()),
        Victim::Worker => of_kind(is_worker),
        Victim::Server => of_kind(is_server),
    };
    if let Some(pid) = pid {
        signal(pid, "KILL");
    }
    pid.is_some()
}

fn is_worker(line: &str) -> bool {
    line.trim_end().ends_with("ceteris worker")
}

fn is_server(line: &str) -> bool {
    line.contains("--defaults-file=")
}

/// One question of so many blocks that every phase is hit.
fn long_study() -> String {
    small_study("installed")
        .replace("blocks = 2", &format!("blocks = {}", RUNS / 2))
        .replace("warmup      = \"500ms\"", "warmup      = \"200ms\"")
}

fn runs(lab: &Laboratory) -> Vec<String> {
    let csv = lab.succeed(&["show", "results/study.ceteris", "--format", "csv"]);
    csv.lines().skip(1).filter(|line| line.contains("finished")).map(str::to_owned).collect()
}

fn signal(pid: u32, name: &str) {
    // The process may have ended in between; that is one of the moments under test.
    let _ = std::process::Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .stderr(std::process::Stdio::null())
        .status();
}

fn wait_until(conductor: &mut Child, mut there: impl FnMut() -> bool) {
    for _ in 0..600 {
        if there() {
            return;
        }
        assert!(conductor.try_wait().unwrap().is_none(), "ended before its time");
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("waited in vain");
}

/// Soon after a conductor's end nothing of it runs: the kernel ends the server, the worker sees its
/// input close.
fn assert_quiet(lab: &Laboratory) {
    for _ in 0..100 {
        if lab.processes().is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(lab.processes(), vec![], "orphans");
}
