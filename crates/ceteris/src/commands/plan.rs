//! `ceteris plan`: everything that `run` would do, without doing it.

use std::time::Duration;

use place::Cache;
use serde::Serialize;
use study::{Plan, Study};

use super::{json, print, read_study};
use crate::cli::{EmitForm, PlanArgs, PlanFormat};
use crate::conductor::{self, OVERHEAD_GUESS, describe};
use crate::failure::{EXIT_OK, EXIT_USAGE, Ended, Failure};
use crate::talk::span;

/// The plan as JSON.
#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    study: &'a str,
    seed: u64,
    /// Seconds, should every question be answered after its first `blocks` blocks.
    estimate_s: f64,
    /// Seconds, should every question need its `max_blocks`.
    estimate_max_s: f64,
    questions: Vec<PrintedQuestion<'a>>,
}

#[derive(Serialize)]
struct PrintedQuestion<'a> {
    name: &'a str,
    factor: &'a [String],
    blocks: u32,
    max_blocks: u32,
    cells: Vec<PrintedCell<'a>>,
    /// For each of the first `blocks` blocks, positions in `cells`.
    order: Vec<Vec<usize>>,
}

#[derive(Serialize)]
struct PrintedCell<'a> {
    #[serde(flatten)]
    cell: &'a study::Cell,
    /// What would be run for it, in order; `INSTANCE` stands for its private directory.
    commands: Vec<String>,
}

/// Prints the plan; changes nothing.
pub fn plan(args: PlanArgs) -> Ended {
    let study = read_study(&args.study)?;
    let plan = conductor::plan(&study)?;
    let cache = Cache::look()?;
    if let Some(form) = args.emit {
        return emitted(&plan, &cache, form);
    }
    let printed = printed(&study, &plan, &cache)?;
    match args.format {
        PlanFormat::Json => print(&json(&printed)?)?,
        PlanFormat::Text => print(&text(&study, &printed))?,
    }
    Ok(EXIT_OK)
}

/// Prints every different setup of the plan that the other tool could bring up.
fn emitted(plan: &Plan, cache: &Cache, form: EmitForm) -> Ended {
    let (form, placement) = match form {
        EmitForm::Libvirt => (place::Emit::Libvirt, "kvm"),
        EmitForm::Kubernetes => (place::Emit::Kubernetes, "kubernetes"),
    };
    let mut written: Vec<String> = Vec::new();
    for cell in plan.questions.iter().flat_map(|question| &question.cells) {
        if cell.setup.placement.name() == placement {
            let text = conductor::emitted(&cell.setup, cache, form)?;
            if !written.contains(&text) {
                print(&text)?;
                written.push(text);
            }
        }
    }
    match written.is_empty() {
        true => Err(Failure::new(format!("no cell of this study is placed by `{placement}`"))
            .code(EXIT_USAGE)),
        false => Ok(EXIT_OK),
    }
}

fn printed<'a>(study: &'a Study, plan: &'a Plan, cache: &Cache) -> Result<Printed<'a>, Failure> {
    let estimate = plan.estimate(OVERHEAD_GUESS);
    let questions = plan.questions.iter().zip(&study.questions).enumerate();
    let questions = questions.map(|(index, (planned, question))| {
        let cells = planned.cells.iter().map(|cell| {
            let commands = conductor::planned_commands(&cell.setup, cache)?;
            Ok(PrintedCell { cell, commands })
        });
        Ok(PrintedQuestion {
            name: &planned.name,
            factor: &question.factor.paths,
            blocks: planned.blocks,
            max_blocks: planned.max_blocks,
            cells: cells.collect::<Result<_, Failure>>()?,
            order: (0..planned.blocks).map(|block| plan.order(index, block)).collect(),
        })
    });
    Ok(Printed {
        schema: 1,
        study: &study.title,
        seed: plan.seed,
        estimate_s: estimate.time.as_secs_f64(),
        estimate_max_s: estimate.max_time.as_secs_f64(),
        questions: questions.collect::<Result<_, Failure>>()?,
    })
}

fn text(study: &Study, printed: &Printed) -> String {
    let mut text = format!("{}\n\n", study.title);
    for question in &printed.questions {
        text.push_str(&format!(
            "question {}: vary {}, {} blocks",
            question.name,
            question.factor.join(" + "),
            question.blocks
        ));
        if question.max_blocks > question.blocks {
            text.push_str(&format!(", up to {} until precise enough", question.max_blocks));
        }
        text.push('\n');
        for (position, cell) in question.cells.iter().enumerate() {
            let load = &cell.cell.setup.load;
            text.push_str(&format!(
                "  cell {position}: {} ({} on {}, {} connections, {} + {})\n",
                describe(cell.cell),
                cell.cell.setup.workload.name(),
                cell.cell.setup.server.package,
                load.connections_max(),
                span(load.warmup.duration()),
                span(load.measure.duration()),
            ));
        }
        for (block, order) in question.order.iter().enumerate() {
            let order: Vec<String> = order.iter().map(ToString::to_string).collect();
            text.push_str(&format!("  block {}: cells {}\n", block + 1, order.join(" ")));
        }
        text.push_str("  commands of cell 0:\n");
        for command in question.cells.iter().take(1).flat_map(|cell| &cell.commands) {
            text.push_str(&format!("{command}\n"));
        }
        text.push('\n');
    }
    let seconds = |s: f64| span(Duration::from_secs_f64(s));
    text.push_str(&format!("seed {}, about {}", printed.seed, seconds(printed.estimate_s)));
    if printed.estimate_max_s > printed.estimate_s {
        text.push_str(&format!(" to {}", seconds(printed.estimate_max_s)));
    }
    text.push_str(", besides fetching packages and loading datasets\n");
    text.push_str("all cells' commands: ceteris plan --format json\n");
    text
}
