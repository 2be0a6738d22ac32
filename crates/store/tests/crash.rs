//! Death and power cuts: whatever a writer said it had committed is in the file afterwards, and
//! the file is whole.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ceteris_store::ResultFile;

/// The example that commits until it dies, built beside this test.
fn writer(path: &Path) -> Child {
    let test = std::env::current_exe().unwrap();
    let program: PathBuf = test.ancestors().nth(2).unwrap().join("examples/commit_forever");
    Command::new(program).arg(path).stdout(Stdio::piped()).spawn().unwrap()
}

/// Blocks in the file, which must be whole and without a gap.
fn blocks(path: &Path) -> u32 {
    let file = ResultFile::open_read_only(path).unwrap();
    let runs = file.runs().unwrap();
    for (expected, run) in runs.iter().enumerate() {
        assert_eq!(run.key.block, expected as u32);
        let series = file.series(run.id, &["load.tps"]).unwrap();
        assert_eq!(series[0].values.len(), 5000, "a run is there wholly or not at all");
        let (before, after) = file.fingerprints(run.id).unwrap();
        assert_eq!((before.len(), after.len()), (300, 300));
    }
    drop(file);
    let check: String = rusqlite::Connection::open(path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    runs.len() as u32
}

#[test]
fn a_killed_writer_loses_nothing_that_it_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("study.ceteris");
    let mut random = 88_172_645_463_325_252_u64;
    let mut kept = 0;
    for _ in 0..10 {
        let mut child = writer(&path);
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // After some commits, at a random moment of the next.
        for _ in 0..=random % 3 {
            kept = said.next().unwrap().unwrap().parse::<u32>().unwrap() + 1;
        }
        std::thread::sleep(Duration::from_micros(random % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        kept = said.map(|line| line.unwrap().parse::<u32>().unwrap() + 1).last().unwrap_or(kept);
        let found = blocks(&path);
        assert!(found >= kept, "{kept} were committed, {found} are there");
        kept = found;
    }
    // Nothing of the dead writers refuses a new one.
    drop(ResultFile::open(&path).unwrap());
}

#[test]
fn a_copy_as_a_power_cut_leaves_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("study.ceteris");
    let mut child = writer(&path);
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    for copy in 0..10 {
        let committed = said.next().unwrap().unwrap().parse::<u32>().unwrap() + 1;
        // A power cut stops everything at one moment: so does SIGSTOP for our purpose.
        signal(&child, "STOP");
        let cut = dir.path().join(format!("cut{copy}.ceteris"));
        std::fs::copy(&path, &cut).unwrap();
        for side in ["-journal", "-wal"] {
            let beside = dir.path().join(format!("study.ceteris{side}"));
            if beside.exists() {
                std::fs::copy(beside, dir.path().join(format!("cut{copy}.ceteris{side}"))).unwrap();
            }
        }
        signal(&child, "CONT");
        let found = blocks(&cut);
        assert!(found >= committed, "{committed} were committed, {found} are there");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// File first, then its log, as `cp study.ceteris*` does, while the writer goes on.
#[test]
fn a_copy_of_a_living_file_with_its_log_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("study.ceteris");
    let mut child = writer(&path);
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    for copy in 0..10 {
        let committed = said.next().unwrap().unwrap().parse::<u32>().unwrap() + 1;
        let cut = dir.path().join(format!("cut{copy}.ceteris"));
        std::fs::copy(&path, &cut).unwrap();
        let wal = dir.path().join("study.ceteris-wal");
        std::fs::copy(wal, dir.path().join(format!("cut{copy}.ceteris-wal"))).unwrap();
        let found = blocks(&cut);
        assert!(found >= committed, "{committed} were committed, {found} are there");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_reader_that_never_ends_does_not_hold_up_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("study.ceteris");
    let mut child = writer(&path);
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    said.next().unwrap().unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    let mut query = reader.prepare("SELECT name FROM fingerprints").unwrap();
    let mut rows = query.query([]).unwrap();
    assert!(rows.next().unwrap().is_some());
    for _ in 0..20 {
        said.next().unwrap().unwrap();
    }
    assert!(rows.next().unwrap().is_some());
    drop(rows);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_closed_file_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("study.ceteris");
    let mut child = writer(&path);
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    said.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(ResultFile::open(&path).unwrap());
    for side in ["-journal", "-wal", "-shm"] {
        assert!(!dir.path().join(format!("study.ceteris{side}")).exists(), "{side} is left");
    }
    let header = std::fs::read(&path).unwrap();
    assert_eq!(
        header[18..20],
        [1, 1],
        "closed in rollback mode, readable where nothing can be written"
    );
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("study.ceteris");
    let mut child = writer(&path);
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    said.next().unwrap().unwrap();
    let refused = ResultFile::open(&path).err().unwrap();
    assert!(refused.to_string().contains("another ceteris is writing"), "{refused}");
    assert!(refused.hint().is_some());
    assert!(!ResultFile::open_read_only(&path).unwrap().runs().unwrap().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    drop(ResultFile::open(&path).unwrap());
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    assert!(sent.unwrap().success());
}
