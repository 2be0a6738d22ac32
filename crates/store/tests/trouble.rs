//! Trouble that a user meets: a full disk, a directory that cannot be written, figures that are no
//! numbers, bytes that are not what they were. Each ends in an error that says what to do, or in
//! nothing worse than the one figure missing.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use ceteris_store::{
    Answer, AnsweredEffect, Audit, Fingerprint, Header, Latency, Outcome, ResultFile, RunKey,
    RunLine, RunRecord, Series, Summary,
};
use proptest::prelude::*;

fn header() -> Header {
    Header {
        title: "Does it?".to_owned(),
        study_text: String::new(),
        overrides: vec![],
        seed: 1,
        plan_json: "{}".to_owned(),
        published_json: "[]".to_owned(),
        ceteris_version: "0.1.0".to_owned(),
        created_unix_ns: 0,
    }
}

fn run(block: u32, figure: f64) -> RunRecord {
    let latency =
        Latency { mean_ms: figure, p50_ms: figure, p95_ms: figure, p99_ms: figure, max_ms: figure };
    RunRecord {
        key: RunKey { question: "q".to_owned(), level: "a".to_owned(), at: "{}".to_owned(), block },
        started_unix_ns: 1,
        finished_unix_ns: 2,
        outcome: Outcome::Finished,
        summary: Some(Summary {
            measured_s: 1.0,
            transactions: 0,
            tps: figure,
            reads: u64::MAX,
            writes: 0,
            other: 0,
            errors: BTreeMap::new(),
            retries: 0,
            response: latency,
            service: latency,
            generator_user_s: figure,
            generator_sys_s: figure,
            generator_threads: 1,
            generator_peak: figure,
            generator_bound: false,
            steady: false,
            notes: vec![],
            instances: Vec::new(),
        }),
        series: vec![],
        histograms: vec![],
        before: Fingerprint::new(),
        after: Fingerprint::new(),
        commands: vec![],
        events: vec![],
        logs: vec![],
    }
}

fn answer(figure: f64) -> Answer {
    Answer {
        name: "q".to_owned(),
        factor: "placement".to_owned(),
        baseline: "a".to_owned(),
        verdict: None,
        audit: Audit::default(),
        effects: vec![AnsweredEffect {
            level: "b".to_owned(),
            at: BTreeMap::new(),
            metric: "tps".to_owned(),
            ratio: figure,
            low: Some(figure),
            high: None,
            verdict: "undecided".to_owned(),
            blocks: 0,
        }],
        runs: vec![RunLine {
            level: "a".to_owned(),
            block: 0,
            at: BTreeMap::new(),
            tps: figure,
            p95_ms: figure,
            errors: BTreeMap::new(),
            steady: true,
            generator_bound: false,
        }],
        margin: figure,
        precision: figure,
        confidence: figure,
        sentence: "nothing is known yet".to_owned(),
    }
}

/// `stats` gives NaN for an effect of which no block has both levels: so it stands in the answers
/// of every question that has not begun.
#[test]
fn figures_that_are_no_numbers_leave_the_rest_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.ceteris");
    let mut file = ResultFile::create(&path, &header()).unwrap();
    for (block, bad) in (0..).zip([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]) {
        file.commit_run(&run(block, bad)).unwrap();
        file.save_answers(&[answer(bad), answer(1.0)]).unwrap();
        let answers = file.answers().unwrap();
        assert!(answers[0].effects[0].ratio.is_nan() && answers[0].runs[0].p95_ms.is_nan());
        assert_eq!(answers[0].effects[0].low, None);
        assert_eq!(answers[1], answer(1.0));
    }
    file.commit_run(&run(9, 2.5)).unwrap();
    let runs = file.runs().unwrap();
    assert_eq!(runs.len(), 4);
    assert!(runs[0].summary.as_ref().unwrap().response.p99_ms.is_nan());
    assert_eq!(runs[3].summary, run(9, 2.5).summary);
}

/// A disk of two megabytes that fills up; needs the right to mount one.
#[test]
fn a_full_disk_keeps_what_was_committed_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path()) else {
        eprintln!("SKIPPED a_full_disk: no right to mount a file system here");
        return;
    };
    let path = disk.0.join("r.ceteris");
    let mut file = ResultFile::create(&path, &header()).unwrap();
    let mut random = 1_u64;
    let mut committed = 0;
    let error = loop {
        let mut big = run(committed, 1.0);
        let noise = (0..8000).map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 11) as f64
        });
        let values: Vec<f64> = noise.collect();
        let (name, unit) = ("load.tps".to_owned(), "1/s".to_owned());
        big.series = vec![Series { name, unit, at_s: values.clone(), values }];
        match file.commit_run(&big) {
            Ok(_) => committed += 1,
            Err(error) => break error,
        }
        assert!(committed < 1000, "the disk never fills");
    };
    assert!(committed > 0);
    assert!(error.hint().unwrap().contains("free some space"), "{error:?}");
    assert_eq!(file.runs().unwrap().len(), committed as usize);
    drop(file);
    let mut file = ResultFile::open(&path).unwrap();
    assert_eq!(file.finished().unwrap().len(), committed as usize);
    // Once there is space again, the same process or the next goes on.
    disk.remount("size=8m");
    file.commit_run(&run(committed, 1.0)).unwrap();
}

/// A copy taken while a study ran, on a medium that cannot be written; needs the right to mount.
#[test]
fn a_copy_on_a_read_only_medium_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (at_home, abroad) = (dir.path().join("r.ceteris"), dir.path().join("disk"));
    std::fs::create_dir(&abroad).unwrap();
    let Some(disk) = SmallDisk::mount(&abroad) else {
        eprintln!("SKIPPED a_copy_on_a_read_only_medium: no right to mount a file system here");
        return;
    };
    let mut file = ResultFile::create(&at_home, &header()).unwrap();
    file.commit_run(&run(0, 1.0)).unwrap();
    let copy = abroad.join("what? 100% a copy.ceteris");
    std::fs::copy(&at_home, &copy).unwrap();
    disk.remount("ro");
    assert_eq!(ResultFile::open_read_only(&copy).unwrap().runs().unwrap().len(), 1);
    assert!(ResultFile::open(&copy).err().unwrap().hint().is_some());
}

struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(dir: &Path) -> Option<SmallDisk> {
        let options = ["-t", "tmpfs", "-o", "size=2m", "tmpfs"];
        let mounted = std::process::Command::new("mount").args(options).arg(dir).output();
        mounted.ok()?.status.success().then(|| SmallDisk(dir.to_owned()))
    }

    fn remount(&self, how: &str) {
        let how = format!("remount,{how}");
        let done = std::process::Command::new("mount").args(["-o", &how]).arg(&self.0).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because the test may still hold a file open on it when it fails.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    // Not even root creates files here.
    let error = ResultFile::create(Path::new("/proc/r.ceteris"), &header()).err().unwrap();
    assert!(error.to_string().contains("/proc"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    for path in [file.join("r.ceteris"), dir.path().join("absent/r.ceteris")] {
        let error = ResultFile::create(&path, &header()).err().unwrap();
        assert!(error.to_string().contains("r.ceteris"), "{error}");
    }
}

/// Truncated and scribbled-over copies: an error or the truth, never a panic.
#[test]
fn damaged_copies_end_in_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.ceteris");
    let mut file = ResultFile::create(&path, &header()).unwrap();
    for block in 0..20 {
        file.commit_run(&run(block, f64::from(block))).unwrap();
    }
    file.save_answers(&[answer(1.0)]).unwrap();
    drop(file);
    let whole = std::fs::read(&path).unwrap();
    let damaged = dir.path().join("damaged.ceteris");
    let (mut refused, mut read) = (0, 0);
    let mut random = 99_u64;
    for attempt in 0..200 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (random >> 20) as usize % whole.len();
        let mut bytes = whole.clone();
        if attempt % 2 == 0 {
            bytes.truncate(at);
        } else {
            let end = (at + 200).min(bytes.len());
            bytes[at..end].fill((random >> 8) as u8);
        }
        std::fs::write(&damaged, bytes).unwrap();
        let all = ResultFile::open_read_only(&damaged).and_then(|file| {
            file.header()?;
            for run in file.runs()? {
                file.series(run.id, &["load.tps"])?;
                file.fingerprints(run.id)?;
                file.events(run.id)?;
            }
            file.answers()
        });
        match all {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(refused > 50 && read > 0, "{refused} refused, {read} read");
}

/// Series sampled at the same moments share their times, and only those.
#[test]
fn a_time_axis_is_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.ceteris");
    let mut file = ResultFile::create(&path, &header()).unwrap();
    let series = |name: &str, first: f64, points: usize| Series {
        name: name.to_owned(),
        unit: "1/s".to_owned(),
        at_s: (0..points).map(|at| first + at as f64).collect(),
        values: (0..points).map(|at| at as f64 / 3.0).collect(),
    };
    let mut given = run(0, 1.0);
    given.series = vec![series("a", 0.0, 9), series("b", 0.0, 9), series("c", 0.5, 9)];
    given.series.push(series("d", 0.0, 8));
    let id = file.commit_run(&given).unwrap();
    given.key.block = 1;
    let second = file.commit_run(&given).unwrap();
    for id in [id, second] {
        assert_eq!(file.series(id, &["a", "b", "c", "d"]).unwrap(), given.series);
    }
    drop(file);
    let db = rusqlite::Connection::open(&path).unwrap();
    let axes: i64 = db.query_row("SELECT count(*) FROM axes", [], |row| row.get(0)).unwrap();
    assert_eq!(axes, 2 * 3, "a and b share one, c and d have their own");
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", "\\PC{0,8}", Just("it's \"quoted\"\0\n".to_owned())]
}

fn any_series() -> impl Strategy<Value = Vec<Series>> {
    prop::collection::btree_map(
        any_text(),
        (any_text(), prop::collection::vec((any::<f64>(), any::<f64>()), 0..20)),
        0..4,
    )
    .prop_map(|named| {
        let series = |(name, (unit, points)): (String, (String, Vec<(f64, f64)>))| Series {
            name,
            unit,
            at_s: points.iter().map(|point| point.0).collect(),
            values: points.iter().map(|point| point.1).collect(),
        };
        named.into_iter().map(series).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever texts and bits a run is made of come back.
    #[test]
    fn any_run_comes_back(
        (question, level, why) in (any_text(), any_text(), any_text()),
        (block, started, finished) in any::<(u32, i64, i64)>(),
        series in any_series(),
        before in prop::collection::btree_map(any_text(), any_text(), 0..6),
        after in prop::collection::btree_map(any_text(), any_text(), 0..6),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.ceteris");
        let mut file = ResultFile::create(&path, &header()).unwrap();
        let given = RunRecord {
            key: RunKey { question, level, at: "{}".to_owned(), block },
            started_unix_ns: started,
            finished_unix_ns: finished,
            outcome: Outcome::Failed(why),
            series,
            before,
            after,
            ..run(0, 1.0)
        };
        let id = file.commit_run(&given).unwrap();
        drop(file);
        let file = ResultFile::open_read_only(&path).unwrap();
        let back = file.runs().unwrap().remove(0);
        prop_assert_eq!(&back.key, &given.key);
        prop_assert_eq!(&back.outcome, &given.outcome);
        prop_assert_eq!(back.summary, given.summary);
        prop_assert_eq!((back.started_unix_ns, back.finished_unix_ns), (started, finished));
        prop_assert_eq!(file.fingerprints(id).unwrap(), (given.before, given.after));
        let names: Vec<&str> = given.series.iter().map(|s| s.name.as_str()).collect();
        let series = file.series(id, &names).unwrap();
        prop_assert_eq!(series.len(), given.series.len());
        for (back, given) in series.iter().zip(&given.series) {
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!((&back.name, &back.unit), (&given.name, &given.unit));
            prop_assert_eq!(bits(&back.at_s), bits(&given.at_s));
            prop_assert_eq!(bits(&back.values), bits(&given.values));
        }
    }
}
