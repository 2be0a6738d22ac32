//! Instructions in user space for one statement, as valgrind's callgrind counts them.
//!
//! A count does not depend on how busy the machine is, so this group is the one that a test can
//! run: it compares with the recorded values below and fails where more than [`MARGIN`] is lost.
//! Each thing is done N times and 2 N times by this program under callgrind; half the difference
//! is free of all that happens once. Readings of the clock, which valgrind turns into calls into
//! the kernel, count as their call alone.

use std::hint::black_box;
use std::process::{Command as Program, Stdio};

use load::StatementProtocol;
use load::rehearsal::Rehearsal;
use wire::{Command, Decoder, Expect, NoRows, Param, Step, Template};

use crate::Failed;
use crate::pairs::Ratio;
use crate::responder;
use crate::server::{ROWS, TABLES};
use crate::table::{Bar, Page};

/// More than the recorded value by this factor is an error. Compilers and C libraries differ by
/// less.
const MARGIN: f64 = 1.1;

/// One thing that is counted.
struct Subject {
    /// As `--repeat` calls it.
    name: &'static str,
    /// As the page calls it.
    what: &'static str,
    /// Instructions when this was last recorded; the release profile, x86-64.
    recorded: f64,
    /// Does it so many times.
    run: fn(u64) -> Result<(), Failed>,
}

const SUBJECTS: [Subject; 6] = [
    Subject {
        name: "encode",
        what: "encode a point select, prepared",
        recorded: 106.0,
        run: encode_prepared,
    },
    Subject {
        name: "encode-text",
        what: "encode a point select, text",
        recorded: 277.0,
        run: encode_text,
    },
    Subject {
        name: "decode",
        what: "decode its answer",
        recorded: 241.0,
        run: |times| decode(1, times),
    },
    Subject {
        name: "decode-100",
        what: "decode an answer of 100 rows",
        recorded: 2914.0,
        run: |times| decode(100, times),
    },
    Subject {
        name: "session",
        what: "a whole point select, prepared",
        recorded: 1201.0,
        run: |times| session(StatementProtocol::Prepared, times),
    },
    Subject {
        name: "session-text",
        what: "a whole point select, text",
        recorded: 1361.0,
        run: |times| session(StatementProtocol::Text, times),
    },
];

/// N of the two runs.
const TIMES: u64 = 10_000;
/// Connections of a session's thread.
const CONNECTIONS: u32 = 64;

/// Does the subject called `name` so many times.
pub fn repeat(name: &str, times: u64) -> Result<(), Failed> {
    let subject = SUBJECTS.iter().find(|subject| subject.name == name);
    (subject.ok_or_else(|| format!("nothing is called {name:?}"))?.run)(times)
}

/// Counts all.
///
/// # Errors
/// One costs more than it did by more than [`MARGIN`]; all are on the page then.
pub fn rows(page: &mut Page) -> Result<(), Failed> {
    if Program::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED instructions: valgrind is not installed");
        return Ok(());
    }
    let mut dearer = Vec::new();
    for Subject { name, what, recorded, .. } in SUBJECTS {
        let once = count(name, TIMES)?;
        let counted = (count(name, 2 * TIMES)? - once) / TIMES as f64;
        let ratio = counted / recorded;
        page.row(
            &format!("{what}, beside the recorded value"),
            (recorded, counted),
            "instructions",
            Ratio { median: ratio, low: ratio, high: ratio },
            Bar::AtMost(MARGIN),
        );
        if ratio > MARGIN {
            dearer.push(format!("{what} costs {counted:.0} instructions, not {recorded:.0}"));
        }
    }
    match dearer.is_empty() {
        true => Ok(()),
        false => Err(dearer.join("; ").into()),
    }
}

/// Instructions of a process that does the subject so many times.
fn count(name: &str, times: u64) -> Result<f64, Failed> {
    let output = Program::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["--repeat", name, &times.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind failed: {said}").into());
    }
    let count = said.lines().find_map(|line| line.split_once("Collected : ")?.1.parse().ok());
    count.ok_or_else(|| format!("valgrind counted nothing: {said}").into())
}

fn encode_prepared(times: u64) -> Result<(), Failed> {
    let mut out = Vec::with_capacity(4096);
    for value in 0..times {
        out.clear();
        let params = [Param::Int(black_box(value as i64))];
        Command::Execute { statement: black_box(1), params: &params, types: false }
            .encode(&mut out);
        black_box(&out);
    }
    Ok(())
}

fn encode_text(times: u64) -> Result<(), Failed> {
    let template = Template::new("SELECT c FROM sbtest1 WHERE id=?");
    let mut out = Vec::with_capacity(4096);
    for value in 0..times {
        out.clear();
        // Six digits, as nearly all ids of the tables that the other groups drive.
        let params = [Param::Int(black_box(100_000 + value as i64))];
        template.encode(&params, true, &mut out);
        black_box(&out);
    }
    Ok(())
}

fn decode(rows: usize, times: u64) -> Result<(), Failed> {
    let answer = responder::answer(rows);
    let mut decoder = Decoder::new();
    for _ in 0..times {
        decoder.expect(Expect::Result, 1);
        match decoder.feed(black_box(&answer), &mut NoRows)? {
            Step::Reply { reply, used } if used == answer.len() => black_box(reply),
            step => return Err(format!("{step:?}").into()),
        };
    }
    Ok(())
}

fn session(protocol: StatementProtocol, times: u64) -> Result<(), Failed> {
    let knobs = serde_json::json!({ "tables": TABLES, "rows": ROWS });
    let reply = &responder::answer(1)[..];
    let rehearsal = Rehearsal { connections: CONNECTIONS, protocol, reply, answers: times };
    Ok(workload::rehearse_point_selects(&serde_json::from_value(knobs)?, rehearsal)?)
}
