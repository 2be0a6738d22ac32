//! The seeded plan: which cells a study has and in what order each block runs them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::random;
use crate::setup::Setup;

/// Every cell of every question. Same study, same plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Seed that the order follows from.
    pub seed: u64,
    /// In file order.
    pub questions: Vec<PlannedQuestion>,
}

/// The cells of one question: levels × sweep points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedQuestion {
    /// The question's name.
    pub name: String,
    /// Sweep-point major, level minor: `cells[point * levels + level]`.
    pub cells: Vec<Cell>,
    /// Blocks always run.
    pub blocks: u32,
    /// Blocks at most.
    pub max_blocks: u32,
}

/// One setup: one level at one sweep point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The level's name.
    pub level: String,
    /// Sweep point, path to value; empty without a sweep.
    pub at: BTreeMap<String, Value>,
    /// The complete condition.
    pub setup: Setup,
}

/// How long a plan takes, dataset loading left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Runs, where every question stops at `blocks`.
    pub runs: u64,
    /// Time of these runs.
    pub time: Duration,
    /// Runs, where every question goes on to `max_blocks`.
    pub max_runs: u64,
    /// Time of these runs.
    pub max_time: Duration,
}

impl Plan {
    /// The order in which `block` (from 0) of question `question` visits its cells: a permutation
    /// of `0..cells.len()`, a function of the seed, the question's name and the block alone, so
    /// that a resumed study and one that is given more blocks go on in the same order. Empty where
    /// there is no such question.
    pub fn order(&self, question: usize, block: u32) -> Vec<usize> {
        let Some(question) = self.questions.get(question) else { return Vec::new() };
        // By name and not by number: another question added before this one changes nothing here.
        let mut name = random::Fnv::new();
        name.write(question.name.as_bytes());
        let seed = random::mixed(self.seed ^ random::mixed(name.finish() ^ u64::from(block)));
        let mut stream = random::SplitMix::new(seed);
        let mut order: Vec<usize> = (0..question.cells.len()).collect();
        // Fisher and Yates, from the top.
        for last in (1..order.len()).rev() {
            let chosen = stream.below(last as u64 + 1) as usize;
            order.swap(last, chosen);
        }
        order
    }

    /// How long the runs take: warm-up and measurement as the cells say, and `overhead_per_run`
    /// for placing, starting and stopping. Loading datasets comes on top. Saturates.
    pub fn estimate(&self, overhead_per_run: Duration) -> Estimate {
        let mut estimate =
            Estimate { runs: 0, time: Duration::ZERO, max_runs: 0, max_time: Duration::ZERO };
        for question in &self.questions {
            let cells = question.cells.len() as u64;
            let block = question.cells.iter().fold(Duration::ZERO, |sum, cell| {
                let load = &cell.setup.load;
                [load.warmup.duration(), load.measure.duration(), overhead_per_run]
                    .into_iter()
                    .fold(sum, Duration::saturating_add)
            });
            estimate.runs += cells * u64::from(question.blocks);
            estimate.time = estimate.time.saturating_add(block.saturating_mul(question.blocks));
            estimate.max_runs += cells * u64::from(question.max_blocks);
            estimate.max_time =
                estimate.max_time.saturating_add(block.saturating_mul(question.max_blocks));
        }
        estimate
    }
}
