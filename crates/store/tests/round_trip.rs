//! What goes in comes out; what is no result file is refused.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use ceteris_store::{
    Answer, Audit, CommandRecord, Event, Header, Histogram, LogText, Outcome, ResultFile, RunKey,
    RunRecord, Series, Summary,
};

fn header() -> Header {
    Header {
        title: "Does it? \u{1f980}".to_owned(),
        study_text: "title = \"Does it?\"\n".to_owned(),
        overrides: vec!["load.connections=64".to_owned()],
        seed: u64::MAX,
        plan_json: "{\"seed\":1}".to_owned(),
        published_json: "[]".to_owned(),
        ceteris_version: "0.1.0".to_owned(),
        created_unix_ns: 1_700_000_000_000_000_000,
    }
}

fn run(block: u32, outcome: Outcome) -> RunRecord {
    let observed = BTreeMap::from([
        ("server.variable.a".to_owned(), "1".to_owned()),
        ("server.variable.b".to_owned(), String::new()),
    ]);
    let mut after = observed.clone();
    after.insert("server.variable.a".to_owned(), "2".to_owned());
    RunRecord {
        key: RunKey {
            question: "durability".to_owned(),
            level: "1".to_owned(),
            at: "{\"load.connections\":8}".to_owned(),
            block,
        },
        started_unix_ns: 5,
        finished_unix_ns: 6,
        summary: (outcome == Outcome::Finished).then(|| Summary {
            measured_s: 4.0,
            transactions: 4000,
            tps: 1000.0,
            reads: 0,
            writes: 16_000,
            other: 8000,
            errors: BTreeMap::from([("1213".to_owned(), 4)]),
            retries: 4,
            response: ceteris_store::Latency { p95_ms: 3.5, ..ceteris_store::Latency::default() },
            service: ceteris_store::Latency::default(),
            generator_user_s: 0.5,
            generator_sys_s: 0.25,
            generator_threads: 1,
            generator_peak: 0.2,
            generator_bound: false,
            steady: true,
            notes: vec!["a note".to_owned()],
            instances: Vec::new(),
        }),
        outcome,
        series: vec![
            Series {
                name: "load.tps".to_owned(),
                unit: "1/s".to_owned(),
                at_s: vec![-0.5, 0.5, 1.5],
                values: vec![f64::MIN_POSITIVE, 1e300, -0.0],
            },
            Series {
                name: "host.cpu.user".to_owned(),
                unit: "fraction".to_owned(),
                at_s: Vec::new(),
                values: Vec::new(),
            },
        ],
        histograms: vec![Histogram {
            name: "response".to_owned(),
            unit: "ns".to_owned(),
            hdr_v2: vec![0, 255, 1],
        }],
        before: observed,
        after,
        commands: vec![CommandRecord {
            at_unix_ns: 7,
            command: "cp -a 'a b' c".to_owned(),
            took_ms: None,
            status: Some("0".to_owned()),
        }],
        events: vec![Event { at_unix_ns: 8, kind: "phase".to_owned(), text: "place".to_owned() }],
        logs: vec![LogText { name: "instance-0/error.log".to_owned(), text: "x\n".to_owned() }],
    }
}

#[test]
fn a_run_comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.ceteris");
    let mut file = ResultFile::create(&path, &header()).unwrap();
    let given = run(0, Outcome::Finished);
    let failed = run(1, Outcome::Failed("server gone".to_owned()));
    let id = file.commit_run(&given).unwrap();
    file.commit_run(&failed).unwrap();
    let study_command = CommandRecord { took_ms: Some(1.5), ..given.commands[0].clone() };
    file.add_study_command(&study_command).unwrap();
    drop(file);

    let file = ResultFile::open_read_only(&path).unwrap();
    assert_eq!(file.header().unwrap(), header());
    let runs = file.runs().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!((runs[0].id, &runs[0].key, &runs[0].outcome), (id, &given.key, &given.outcome));
    assert_eq!(runs[0].summary, given.summary);
    assert_eq!((&runs[1].outcome, &runs[1].summary), (&failed.outcome, &None));
    assert_eq!(file.finished().unwrap(), [given.key.clone()].into());
    let names: Vec<&str> = given.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(file.series(id, &names).unwrap(), given.series);
    assert_eq!(file.series(id, &["absent"]).unwrap(), vec![]);
    assert_eq!(file.series_names(id).unwrap().len(), 2);
    assert_eq!(file.histograms(id).unwrap(), given.histograms);
    assert_eq!(file.fingerprints(id).unwrap(), (given.before, given.after));
    assert_eq!(file.commands(id).unwrap(), given.commands);
    assert_eq!(file.events(id).unwrap(), given.events);
    assert_eq!(file.logs(id).unwrap(), given.logs);
    assert_eq!(file.study_commands().unwrap(), vec![study_command]);
}

#[test]
fn a_cell_is_finished_once_in_a_block_and_may_fail_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = ResultFile::create(&dir.path().join("r.ceteris"), &header()).unwrap();
    file.commit_run(&run(0, Outcome::Failed("once".to_owned()))).unwrap();
    file.commit_run(&run(0, Outcome::Failed("twice".to_owned()))).unwrap();
    file.commit_run(&run(0, Outcome::Finished)).unwrap();
    assert!(file.commit_run(&run(0, Outcome::Finished)).is_err());
    assert_eq!(file.runs().unwrap().len(), 3);
}

#[test]
fn answers_are_replaced_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = ResultFile::create(&dir.path().join("r.ceteris"), &header()).unwrap();
    let answer = |name: &str| Answer {
        name: name.to_owned(),
        factor: "placement".to_owned(),
        baseline: "host".to_owned(),
        verdict: None,
        audit: Audit { ok: true, ..Audit::default() },
        effects: Vec::new(),
        runs: Vec::new(),
        margin: 0.01,
        precision: 0.01,
        confidence: 0.95,
        sentence: "nothing is known yet".to_owned(),
    };
    file.save_answers(&[answer("b"), answer("a")]).unwrap();
    assert_eq!(file.answers().unwrap(), vec![answer("b"), answer("a")]);
    file.save_answers(&[answer("c")]).unwrap();
    assert_eq!(file.answers().unwrap(), vec![answer("c")]);
}

#[test]
fn what_is_no_result_file_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("text"), "not a database, but long enough to be one".repeat(50)).unwrap();
    rusqlite::Connection::open(path("other")).unwrap().execute("CREATE TABLE t (a)", []).unwrap();
    std::fs::write(path("empty"), "").unwrap();
    for name in ["text", "other", "empty"] {
        let before = std::fs::read(path(name)).unwrap();
        let error = ResultFile::open(&path(name)).err().unwrap().to_string();
        assert!(error.contains("no ceteris result file"), "{name}: {error}");
        assert_eq!(std::fs::read(path(name)).unwrap(), before);
    }
    assert!(ResultFile::open(&path("absent")).err().unwrap().hint().is_some());
    assert!(!path("absent").exists());
    drop(ResultFile::create(&path("mine"), &header()).unwrap());
    assert!(ResultFile::create(&path("mine"), &header()).is_err());
}

#[test]
fn a_file_of_a_later_version_is_not_guessed_at() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.ceteris");
    drop(ResultFile::create(&path, &header()).unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 2).unwrap();
    drop(db);
    let error = ResultFile::open_read_only(&path).err().unwrap();
    assert!(error.to_string().contains("schema version 2"), "{error}");
    assert!(error.hint().is_some());
}
