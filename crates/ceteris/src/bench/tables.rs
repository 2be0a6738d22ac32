//! Whose tables are driven: preparing them, dropping them, and looking before a run.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use place::Progress;
use workload::{Cleaned, LoadProgress, Survey, TableState};

use super::{Request, load_failure, place};
use crate::conductor::DATA_SEED;
use crate::failure::{EXIT_INTERRUPTED, EXIT_OK, Ended, Failure};
use crate::interrupt::Interrupt;
use crate::talk::Talk;

/// More tables than this are named by the first and the last.
const NAMED_MAX: usize = 4;

/// What is heard while tables are filled.
enum Heard {
    Progress(LoadProgress),
    Ended(Result<workload::Prepared, workload::LoadError>),
}

/// Makes and fills the tables.
pub fn prepare(request: &Request, talk: &Talk) -> Ended {
    let interrupt = listen()?;
    let target = request.target()?;
    let planned = workload::tables(&request.workload).map_err(|error| load_failure(&error))?;
    let tables = planned.len();
    let rows = planned.first().map_or(0, |table| table.rows);
    let what = match planned.iter().all(|table| table.rows == rows) {
        true if tables == 1 => format!("1 table of {rows} rows"),
        true => format!("{tables} tables of {rows} rows"),
        false => {
            let rows: u64 = planned.iter().map(|table| table.rows).sum();
            format!("{tables} tables, {rows} rows in all,")
        }
    };
    talk.say(&format!("{what} on {}", place(target)));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get()).clamp(2, 8);
    let (workload, target) = (request.workload.clone(), target.clone());
    let (say, hear) = channel();
    // Not joined: filling looks at no flag, so that Ctrl-C ends it with the process. What it had
    // made is listed in the database.
    std::thread::spawn(move || {
        let mut tell = |progress| {
            let _ = say.send(Heard::Progress(progress));
        };
        let threads = u32::try_from(threads).unwrap_or(8);
        let ended = workload::prepare(&workload, &target, DATA_SEED, threads, &mut tell);
        let _ = say.send(Heard::Ended(ended));
    });
    let _step = talk.step_guard();
    let mut begun = false;
    let prepared = loop {
        if interrupt.raised() {
            return Err(Failure::new("stopped before the tables were filled")
                .code(EXIT_INTERRUPTED)
                .hint("the next `prepare` begins anew, `cleanup` removes what there is"));
        }
        match hear.recv_timeout(Duration::from_millis(100)) {
            Ok(Heard::Progress(progress)) => {
                if !begun {
                    begun = true;
                    talk.begin("filling", "rows", Some(progress.total));
                }
                talk.advance(progress.rows);
            }
            Ok(Heard::Ended(ended)) => break ended.map_err(|error| load_failure(&error))?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::new("internal error: the loading thread panicked")
                    .hint("please report this"));
            }
        }
    };
    if begun {
        talk.end();
    }
    if prepared.replaced > 0 {
        let n = prepared.replaced;
        let made_anew = if n == 1 { "1 table" } else { &format!("{n} tables") };
        talk.say(&format!("made anew, of an earlier prepare: {made_anew}"));
    }
    talk.say("all rows are there, counted and checksummed");
    Ok(EXIT_OK)
}

/// Drops what prepare made, or what is named.
pub fn cleanup(request: &Request, talk: &Talk) -> Ended {
    let target = request.target()?;
    let cleaned = if request.tables_named.is_empty() {
        workload::drop_own(target)
    } else {
        workload::drop_named(target, &request.tables_named)
    };
    let Cleaned { dropped, left } = cleaned.map_err(|error| load_failure(&error))?;
    if !left.is_empty() {
        talk.warn(&format!(
            "left alone, as somebody else has made them anew: {}; --tables-named drops them",
            left.join(", ")
        ));
    }
    match dropped.as_slice() {
        [] => talk.say(&format!("nothing to drop on {}", place(target))),
        names => talk.say(&format!("dropped {} on {}", names.join(", "), place(target))),
    }
    Ok(EXIT_OK)
}

/// Looks at the tables before a run and refuses what must not or cannot be driven.
pub fn look(request: &Request, talk: &Talk) -> Result<Survey, Failure> {
    let target = request.target()?;
    let survey =
        workload::survey(&request.workload, target).map_err(|error| load_failure(&error))?;
    let of_state = |wanted| survey.tables.iter().filter(move |table| table.state == wanted);
    let prepare = format!("`ceteris bench {} prepare` makes them", request.workload.called());
    if let Some(missing) = of_state(TableState::Missing).next() {
        let n = of_state(TableState::Missing).count();
        let message =
            format!("{}{} missing on {}", missing.name, and_others(n, "is", "are"), place(target));
        return Err(Failure::new(message)
            .hint(format!("{prepare}, with the same --tables and --rows as the run")));
    }
    if let Some(table) = of_state(TableState::Unfinished).next() {
        let message = format!("{} was not filled to its end", table.name);
        return Err(Failure::new(message).hint(format!("{prepare} anew")));
    }
    let foreign = of_state(TableState::Foreign).count();
    if let Some(table) = of_state(TableState::Foreign).next() {
        let writes = !workload::only_reads(&request.workload);
        if writes && !request.write_foreign_tables {
            let message = format!(
                "{}{} not created by ceteris bench, and {} would change rows",
                table.name,
                and_others(foreign, "was", "were"),
                request.workload.called()
            );
            return Err(Failure::new(message)
                .hint("--write-foreign-tables drives them all the same; reading needs no leave"));
        }
    }
    let planned = workload::tables(&request.workload).map_err(|error| load_failure(&error))?;
    let rows = planned.first().map_or(0, |table| table.rows);
    let short = survey.tables.iter().find(|table| table.max_id.is_some_and(|id| id < rows));
    if let Some(table) = short {
        talk.warn(&format!(
            "{} has ids up to {}, and --rows is {rows}: some statements will find nothing",
            table.name,
            table.max_id.unwrap_or_default()
        ));
    }
    Ok(survey)
}

/// The names of the tables that the workload uses, for people.
pub fn expected(request: &Request) -> Result<String, Failure> {
    let planned = workload::tables(&request.workload).map_err(|error| load_failure(&error))?;
    let names: Vec<&str> = planned.iter().map(|table| table.name.as_str()).collect();
    Ok(match names.as_slice() {
        [] => "no tables".to_owned(),
        [only] => format!("the table {only}"),
        few if few.len() <= NAMED_MAX => format!("the tables {}", few.join(", ")),
        [first, .., last] => format!("the {} tables {first} to {last}", names.len()),
    })
}

/// Listens for Ctrl-C.
pub fn listen() -> Result<Interrupt, Failure> {
    Interrupt::listen().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
}

/// " is", or " and 3 more are".
fn and_others(count: usize, one: &str, more: &str) -> String {
    match count {
        0 | 1 => format!(" {one}"),
        n => format!(" and {} more {more}", n - 1),
    }
}
