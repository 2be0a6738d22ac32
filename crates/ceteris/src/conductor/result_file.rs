//! The result file of a study: found, made, or refused where it holds something else.

use std::path::{Path, PathBuf};

use store::{Header, ResultFile};
use study::{Plan, Study};

use super::run;
use crate::failure::Failure;
use crate::talk::Talk;

/// Of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Opens the result file of `study`, or makes it. A file in which no run has finished is no result
/// yet: it gives way when the study changed.
pub fn open_or_create(
    study: &Study,
    plan: &Plan,
    path: &Path,
    talk: &Talk,
) -> Result<ResultFile, Failure> {
    let plan_json = serde_json::to_string(plan)
        .map_err(|error| Failure::new(format!("the plan cannot be written down: {error}")))?;
    if path.exists() {
        let file = ResultFile::open(path)?;
        let header = file.header()?;
        let same = header.study_text == study.text
            && header.overrides == study.overrides
            && header.plan_json == plan_json;
        if (!same || header.ceteris_version != VERSION) && file.finished()?.is_empty() {
            // It never got as far as a finished run: there is nothing to keep.
            drop(file);
            let removed = std::fs::remove_file(path);
            removed.map_err(|e| Failure::new(format!("cannot replace {}: {e}", path.display())))?;
            return create(study, plan_json, path, talk);
        }
        if header.ceteris_version != VERSION {
            return Err(Failure::new(format!(
                "{} was begun by ceteris {}, this is {VERSION}: two generators in one study",
                path.display(),
                header.ceteris_version
            ))
            .hint("go on with that version, or start over with --again (the old file is kept)"));
        }
        if !same {
            return Err(Failure::new(format!(
                "{} holds results of another version of this study",
                path.display()
            ))
            .hint("name another file with -o, or start over with --again (the old file is kept)"));
        }
        return Ok(file);
    }
    create(study, plan_json, path, talk)
}

fn create(
    study: &Study,
    plan_json: String,
    path: &Path,
    talk: &Talk,
) -> Result<ResultFile, Failure> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|error| {
            Failure::new(format!("cannot make the directory {}: {error}", parent.display()))
        })?;
    }
    let published_json = serde_json::to_string(&study.published)
        .map_err(|error| Failure::new(format!("published figures cannot be kept: {error}")))?;
    talk.say(&format!("results go to {}", path.display()));
    Ok(ResultFile::create(
        path,
        &Header {
            title: study.title.clone(),
            study_text: study.text.clone(),
            overrides: study.overrides.clone(),
            seed: study.seed,
            plan_json,
            published_json,
            ceteris_version: VERSION.to_owned(),
            created_unix_ns: run::unix_ns(),
        },
    )?)
}

/// Where results of `study` go unless told otherwise: `results/NAME.ceteris`.
pub fn default_result_path(study: &Path) -> PathBuf {
    let mut name = study.file_stem().unwrap_or_else(|| "study".as_ref()).to_os_string();
    name.push(".ceteris");
    Path::new("results").join(name)
}
