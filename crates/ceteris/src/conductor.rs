//! The conductor: takes a study from its plan to its answers. The only place that knows packages,
//! targets, the worker, the samplers, the statistics and the result file; none of them knows it.

mod drive;
mod figures;
mod judge;
mod limits;
mod pace;
mod prepare;
mod result_file;
mod run;
mod target;
mod worker_process;

pub use prepare::DATA_SEED;
pub use result_file::default_result_path;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use place::{Cache, CommandLog, Journal, MachineSettings};
use store::{Outcome, ResultFile, RunKey, RunRecord, StoredRun};
use study::{Cell, OnFailure, Plan, PlannedQuestion, Setup, Study};

use crate::failure::{EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, Failure};
use crate::interrupt::Interrupt;
use crate::talk::{Talk, span};
use pace::Pace;
use prepare::{Prepared, Preparer};
use run::{Broken, RunTools};

/// How often a run that died is tried before the study stops.
const ATTEMPTS: u32 = 2;
/// What a run takes besides warm-up and measuring, until this machine has shown it.
pub const OVERHEAD_GUESS: Duration = Duration::from_secs(2);

/// Answers `study` into `path`, going on where an earlier conductor stopped.
pub fn conduct(study: &Study, path: &Path, talk: &Talk) -> Result<u8, Failure> {
    let interrupt = Interrupt::listen()
        .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let plan = plan(study)?;
    let cache = Cache::open()?;
    for leftover in place::clean(&cache)? {
        talk.say(&format!("removed what a killed study left: {}", leftover.describe()));
    }
    let journal = Journal::open(&cache)?;
    let log = CommandLog::default();
    let file = result_file::open_or_create(study, &plan, path, talk)?;
    let placing = place::Tools { cache: &cache, journal: &journal, log: &log };
    let tools = RunTools { placing, talk, interrupt: &interrupt, seed: study.seed };
    let mut conductor = Conductor {
        study,
        plan: &plan,
        tools,
        file,
        preparer: Preparer::default(),
        pace: Pace::new(),
        failed: 0,
    };
    let ended = conductor.all_questions();
    talk.clear();
    let answered = conductor.save_answers();
    match ended {
        Ok(()) => answered.map(|()| EXIT_OK),
        // Whatever failed while stopping, it was the person who stopped it.
        Err(_) if interrupt.raised() => {
            Err(Failure::new("stopped; servers are down and the result file is whole")
                .code(EXIT_INTERRUPTED)
                .hint(go_on_hint()))
        }
        Err(failure) => Err(failure),
    }
}

/// The plan of a study, with the server settings added that its load needs room in.
///
/// # Errors
/// A package that cannot be: told here, since only `place` knows which there are.
pub fn plan(study: &Study) -> Result<Plan, Failure> {
    let mut plan = study.plan();
    for cell in plan.questions.iter().flat_map(|question| &question.cells) {
        place::check_package_name(&cell.setup.server.package)
            .map_err(|error| Failure::from(error).code(EXIT_USAGE))?;
    }
    limits::raise_limits(&mut plan);
    Ok(plan)
}

/// The commands that a run of `setup` takes.
pub fn planned_commands(setup: &Setup, cache: &Cache) -> Result<Vec<String>, Failure> {
    let data = prepare::describe_data(&setup.workload)?;
    Ok(place::planned_commands(setup, &data, prepare::DATA_SEED, cache))
}

/// The placement of a run of `setup` in the form of another tool.
pub fn emitted(setup: &Setup, cache: &Cache, form: place::Emit) -> Result<String, Failure> {
    let data = prepare::describe_data(&setup.workload)?;
    Ok(place::emit(setup, &data, prepare::DATA_SEED, cache, form)?)
}

/// How to go on with this study.
fn go_on_hint() -> String {
    let words = std::env::args_os().filter(|word| word != "--again");
    let line: Vec<String> = words.map(|word| place::quote(&word)).collect();
    format!("finished runs are kept; go on with: {}", line.join(" "))
}

struct Conductor<'a> {
    study: &'a Study,
    plan: &'a Plan,
    tools: RunTools<'a>,
    file: ResultFile,
    preparer: Preparer,
    pace: Pace,
    /// Runs that failed for good in a study that goes on after failures.
    failed: u32,
}

impl Conductor<'_> {
    fn all_questions(&mut self) -> Result<(), Failure> {
        let mut finished = self.file.finished()?;
        if !finished.is_empty() {
            self.tools.talk.say(&format!("{} runs are finished already", finished.len()));
        }
        self.prepare_pending(&finished)?;
        self.pace = Pace::new();
        for index in 0..self.plan.questions.len() {
            self.question(index, &mut finished)?;
        }
        match self.failed {
            0 => Ok(()),
            1 => Err(Failure::new("one run failed; the others were measured").hint(go_on_hint())),
            n => Err(Failure::new(format!("{n} runs failed; the others were measured"))
                .hint(go_on_hint())),
        }
    }

    /// Fetches and loads all that the unfinished blocks need, so that what is missing is told
    /// before hours of measuring and not in their midst.
    fn prepare_pending(&mut self, finished: &BTreeSet<RunKey>) -> Result<(), Failure> {
        for (index, question) in self.plan.questions.iter().enumerate() {
            for cell in &question.cells {
                let is_done = |block| finished.contains(&key(question, cell, block));
                if (0..question.blocks).all(is_done) {
                    continue;
                }
                let prepared = match self.prepare(cell).and_then(|prepared| {
                    self.check_place(cell, &prepared)?;
                    Ok(prepared)
                }) {
                    Ok(prepared) => prepared,
                    // The run itself fails with the same words, and is counted there.
                    Err(failure) if self.goes_on_after(index, &failure) => continue,
                    Err(failure) => return Err(failure),
                };
                if let Some(block) = (0..question.max_blocks).find(|block| is_done(*block)) {
                    self.check_unchanged(&key(question, cell, block), &prepared)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the cell's placement can be had here: told before anything is measured.
    fn check_place(&self, cell: &Cell, prepared: &Prepared) -> Result<(), Failure> {
        let spec = prepared.instance(&cell.setup);
        let instances = self.tools.placing.cache.root();
        let checked = MachineSettings::check(&cell.setup.host, instances)
            .and_then(|()| place::check(&spec, self.tools.placing));
        checked.map_err(|error| {
            let failure = Failure::from(error);
            let message = format!("{} cannot be built: {}", describe(cell), failure.message);
            Failure { message, ..failure }
        })
    }

    /// A study that goes on must go on with the same bytes: a dataset that had to be loaded again,
    /// or a server that was upgraded meanwhile, would confound every answer, hours later.
    fn check_unchanged(&self, earlier: &RunKey, prepared: &Prepared) -> Result<(), Failure> {
        let runs = self.file.runs()?;
        let finished = |run: &&StoredRun| run.key == *earlier && run.outcome == Outcome::Finished;
        let Some(run) = runs.iter().find(finished) else { return Ok(()) };
        let (seen, _) = self.file.fingerprints(run.id)?;
        let dataset_hash = prepared.dataset.as_ref().map(|dataset| dataset.hash());
        let now = [
            ("server package", "place.package.hash", Some(prepared.package.hash.as_str())),
            ("dataset", "place.dataset.hash", dataset_hash),
        ];
        for (what, name, value) in now {
            if seen.get(name).map(String::as_str) != value {
                return Err(Failure::new(format!(
                    "the {what} of {} is not the one that its finished runs had",
                    prepared.package.name
                ))
                .hint("start over with --again; the old result file is kept"));
            }
        }
        Ok(())
    }

    fn prepare(&mut self, cell: &Cell) -> Result<Prepared, Failure> {
        let RunTools { placing, talk, interrupt, .. } = self.tools;
        let prepared = self.preparer.prepare(&cell.setup, placing, talk, interrupt);
        for logged in placing.log.drain() {
            self.file.add_study_command(&run::command_record(logged))?;
        }
        prepared
    }

    /// Runs the blocks of a question until it is answered well enough or its limit is reached.
    fn question(&mut self, index: usize, finished: &mut BTreeSet<RunKey>) -> Result<(), Failure> {
        let planned = &self.plan.questions[index];
        for block in 0..planned.max_blocks {
            if block >= planned.blocks && self.known_well_enough(index)? {
                break;
            }
            for position in self.plan.order(index, block) {
                let cell = &planned.cells[position];
                let key = key(planned, cell, block);
                if finished.contains(&key) {
                    continue;
                }
                match self.cell(index, cell, &key, finished) {
                    Ok(()) => {
                        finished.insert(key);
                    }
                    Err(failure) if self.goes_on_after(index, &failure) => {
                        self.tools.talk.warn(&failure.message);
                        self.failed += 1;
                    }
                    Err(failure) => return Err(failure),
                }
            }
            self.save_answers()?;
        }
        Ok(())
    }

    /// Whether the study goes on after a run that failed for good. A person who stops it stops it.
    fn goes_on_after(&self, index: usize, failure: &Failure) -> bool {
        self.study.questions[index].on_failure == OnFailure::Continue
            && failure.code != EXIT_INTERRUPTED
    }

    fn save_answers(&mut self) -> Result<(), Failure> {
        let answers = judge::answers(self.study, self.plan, &self.file)?;
        Ok(self.file.save_answers(&answers)?)
    }

    fn known_well_enough(&self, index: usize) -> Result<bool, Failure> {
        let question = &self.study.questions[index];
        judge::known_well_enough(question, &self.plan.questions[index], &self.file)
    }

    /// Runs one cell of one block; a run that died is tried once more.
    fn cell(
        &mut self,
        index: usize,
        cell: &Cell,
        key: &RunKey,
        finished: &BTreeSet<RunKey>,
    ) -> Result<(), Failure> {
        let prepared = self.prepare(cell)?;
        self.tools.talk.say(&self.headline(index, cell, key, finished));
        let mut attempt = 1;
        loop {
            let begun = Instant::now();
            let (record, ended) = run::run(&self.tools, cell, key.clone(), &prepared);
            self.tools.talk.clear();
            if ended.is_err() && self.tools.interrupt.raised() {
                return Err(Failure::new("stopped").code(EXIT_INTERRUPTED));
            }
            self.file.commit_run(&record)?;
            match ended {
                Ok(()) => {
                    self.pace.learn(begun.elapsed(), cell);
                    self.tools.talk.say(&outcome_line(&record));
                    return Ok(());
                }
                Err(Broken::Refused(failure)) => {
                    let message =
                        format!("{} cannot be built: {}", describe(cell), failure.message);
                    return Err(Failure { message, ..failure });
                }
                Err(Broken::Died(how)) if attempt == ATTEMPTS => {
                    let message = format!("{} failed {ATTEMPTS} times: {how}", describe(cell));
                    return Err(Failure::new(message).hint(go_on_hint()));
                }
                Err(Broken::Died(how)) => {
                    self.tools.talk.warn(&format!("run failed, trying it once more: {how}"));
                    attempt += 1;
                }
            }
        }
    }

    fn headline(&self, index: usize, cell: &Cell, key: &RunKey, done: &BTreeSet<RunKey>) -> String {
        let planned = &self.plan.questions[index];
        let mut left = Duration::ZERO;
        let mut runs_left = 0;
        for question in &self.plan.questions[index..] {
            // Blocks beyond the first ones are added one at a time, and known of as late.
            let blocks = match question.name == planned.name {
                true => question.blocks.max(key.block + 1),
                false => question.blocks,
            };
            for block in 0..blocks {
                for cell in &question.cells {
                    if !done.contains(&self::key(question, cell, block)) {
                        left += self.pace.expected(cell);
                        runs_left += 1;
                    }
                }
            }
        }
        format!(
            "{}: block {} of {}, {} (run {} of {}, {} elapsed, about {} left)",
            planned.name,
            key.block + 1,
            planned.blocks.max(key.block + 1),
            describe(cell),
            done.len() + 1,
            done.len() + runs_left,
            span(self.pace.begun.elapsed()),
            span(left),
        )
    }
}

/// What a finished run measured, for people.
fn outcome_line(record: &RunRecord) -> String {
    let Some(summary) = &record.summary else { return String::new() };
    let mut line =
        format!("  {:.1} transactions/s, p95 {:.2} ms", summary.tps, summary.response.p95_ms);
    if !summary.instances.is_empty() {
        let each: Vec<String> =
            summary.instances.iter().map(|instance| format!("{:.1}", instance.tps)).collect();
        line.push_str(&format!(" (instances {})", each.join(", ")));
    }
    for note in &summary.notes {
        line.push_str(&format!("; {note}"));
    }
    line
}

/// A cell for people: its level, and its sweep point if there is one.
pub fn describe(cell: &Cell) -> String {
    let mut text = cell.level.clone();
    for (path, value) in &cell.at {
        text.push_str(&format!(", {path} = {value}"));
    }
    text
}

/// The identity of `cell` in `block`.
fn key(question: &PlannedQuestion, cell: &Cell, block: u32) -> RunKey {
    RunKey {
        question: question.name.clone(),
        level: cell.level.clone(),
        at: sweep_point(&cell.at),
        block,
    }
}

/// Canonical JSON of a sweep point: sorted keys, `{}` without a sweep.
fn sweep_point(at: &BTreeMap<String, serde_json::Value>) -> String {
    serde_json::to_string(at).unwrap_or_else(|_| "{}".to_owned())
}
