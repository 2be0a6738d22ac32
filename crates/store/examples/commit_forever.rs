//! Commits small runs to a result file until it is killed; the crash tests kill it.
//!
//! usage: commit_forever FILE

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use ceteris_store::{Header, Outcome, ResultFile, RunKey, RunRecord, Series, StoreError};

fn main() -> Result<(), StoreError> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let path = Path::new(&path);
    let mut file = if path.exists() {
        ResultFile::open(path)?
    } else {
        ResultFile::create(
            path,
            &Header {
                title: "crash".to_owned(),
                study_text: String::new(),
                overrides: Vec::new(),
                seed: 1,
                plan_json: "{}".to_owned(),
                published_json: "[]".to_owned(),
                ceteris_version: "0".to_owned(),
                created_unix_ns: 0,
            },
        )?
    };
    let first = file.runs()?.len() as u32;
    for block in first.. {
        let values: Vec<f64> = (0..5000).map(|i| f64::from(i ^ block).sin()).collect();
        let observed = |i: u32| (format!("server.variable.v{i}"), format!("{}", i * block));
        let before: BTreeMap<String, String> = (0..300).map(observed).collect();
        file.commit_run(&RunRecord {
            key: RunKey {
                question: "q".to_owned(),
                level: "l".to_owned(),
                at: "{}".to_owned(),
                block,
            },
            started_unix_ns: i64::from(block),
            finished_unix_ns: i64::from(block) + 1,
            outcome: Outcome::Finished,
            summary: None,
            series: vec![Series {
                name: "load.tps".to_owned(),
                unit: "1/s".to_owned(),
                at_s: values.clone(),
                values,
            }],
            histograms: Vec::new(),
            after: before.clone(),
            before,
            commands: Vec::new(),
            events: Vec::new(),
            logs: Vec::new(),
        })?;
        // Said only after the commit: what was heard must be in the file.
        let _ = writeln!(std::io::stdout(), "{block}");
    }
    Ok(())
}
