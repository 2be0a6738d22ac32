//! One file per command: takes parsed arguments, resolves them, does the work, prints the data on
//! standard output.

pub mod bench;
pub mod doctor;
pub mod observe;
pub mod packages;
pub mod parcel;
pub mod plan;
pub mod report;
pub mod run;
pub mod shell;
pub mod show;

use std::io::{Read, Write};
use std::path::Path;

use study::Study;

use crate::cli::StudyArgs;
use crate::failure::{EXIT_USAGE, Failure};

/// Reads and validates the study that the arguments name.
fn read_study(args: &StudyArgs) -> Result<Study, Failure> {
    let text = std::fs::read_to_string(&args.study).map_err(|error| {
        Failure::new(format!("cannot read the study {}: {error}", args.study.display()))
            .code(EXIT_USAGE)
    })?;
    let mut study = Study::parse(&args.study.display().to_string(), &text, &args.set)?;
    read_scripts(&mut study, &args.study)?;
    Ok(study)
}

/// Puts the texts of its scripts into a study, so that from here on it depends on no other file,
/// and refuses one that cannot be used.
fn read_scripts(study: &mut Study, path: &Path) -> Result<(), Failure> {
    let beside = path.parent().unwrap_or(Path::new(""));
    for script in study.scripts_mut() {
        if let (Some(file), None) = (&script.file, &script.text) {
            script.text = Some(read_script(&beside.join(file))?);
        }
        workload::check_script(&study::Workload::Script(script.clone()))?;
    }
    Ok(())
}

/// Reads the text of a script.
pub fn read_script(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("cannot read the script {}: {error}", path.display()))
            .code(EXIT_USAGE)
            .hint("the path in a study is relative to the study's own directory")
    })
}

/// Prints data; a reader that has gone away (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// A value as indented JSON with a line end.
pub fn json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Failure::new(format!("cannot write JSON: {error}")))
}

/// Refuses a place for the report where another file is, or where none can be: told before hours
/// of measuring and not after them.
fn check_page(path: &Path) -> Result<(), Failure> {
    const PAGE: &[u8] = b"<!doctype html";
    let refuse = |why: String| {
        Err(Failure::new(format!("cannot write a report to {}: {why}", path.display()))
            .code(EXIT_USAGE)
            .hint("name a new file, or an old report, in a directory that exists"))
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if parent.is_some_and(|parent| parent.exists() && !parent.is_dir()) {
        return refuse("its parent is no directory".to_owned());
    }
    let mut start = [0; PAGE.len()];
    match std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) if start.eq_ignore_ascii_case(PAGE) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match parent {
            Some(parent) => std::fs::create_dir_all(parent).or_else(|e| refuse(e.to_string())),
            None => Ok(()),
        },
        _ => refuse("there is a file that is no report".to_owned()),
    }
}

/// Writes a file whole or not at all.
fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    let partial = path.with_file_name(name);
    std::fs::write(&partial, text).map_err(cannot)?;
    std::fs::rename(&partial, path).map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        cannot(error)
    })
}

/// Whether standard output is a terminal that is to be coloured.
fn colour() -> bool {
    use std::io::IsTerminal;
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !dumb && std::env::var_os("NO_COLOR").is_none()
}
