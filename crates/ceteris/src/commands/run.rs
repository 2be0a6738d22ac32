//! `ceteris run`

use std::path::{Path, PathBuf};

use place::Cache;
use store::{ResultFile, StoreError};

use super::{check_page, colour, print, read_study, write_file};
use crate::cli::RunArgs;
use crate::conductor;
use crate::failure::{Ended, Failure};
use crate::talk::Talk;

/// Answers a study and prints the answer.
pub fn run(args: RunArgs) -> Ended {
    let study = read_study(&args.study)?;
    let path = args.output.unwrap_or_else(|| conductor::default_result_path(&args.study.study));
    if let Some(page) = &args.report {
        if *page == path {
            return Err(Failure::new("the report and the result are to be the same file"));
        }
        check_page(page)?;
    }
    let talk = Talk::new(args.quiet);
    // What would refuse the study refuses it before an old result is moved.
    Cache::open()?;
    if args.again && path.exists() {
        let kept = set_aside(&path)?;
        talk.say(&format!("the old result file is kept as {}", kept.display()));
    }
    let code = conductor::conduct(&study, &path, &talk)?;
    let file = ResultFile::open_read_only(&path)?;
    print(&report::text(&file, colour())?)?;
    if let Some(page) = args.report {
        write_file(&page, &report::html(&file)?)?;
        print(&format!("report: {}\n", page.display()))?;
    }
    Ok(code)
}

/// Renames `name.ceteris` to the first free `name.N.ceteris`.
fn set_aside(path: &Path) -> Result<PathBuf, Failure> {
    // The file of a running study is not pulled from under it; one that cannot be read may go.
    if let Err(error @ StoreError::Claimed(_)) = ResultFile::open(path) {
        return Err(error.into());
    }
    let free = (1..).map(|n| path.with_extension(format!("{n}.ceteris"))).find(|p| !p.exists());
    let kept = free.unwrap_or_else(|| path.with_extension("old.ceteris"));
    std::fs::rename(path, &kept)
        .map_err(|error| Failure::new(format!("cannot rename {}: {error}", path.display())))?;
    Ok(kept)
}
