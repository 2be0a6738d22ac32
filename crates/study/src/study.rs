//! The study as the rest of the house sees it, and the way from text to it.
//!
//! Reading has four steps, each of which stops at the first fault: parse the file, put the
//! overrides into its tree, check the tree against the reference, read the questions one by one.

use std::collections::BTreeMap;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::StudyError;
use crate::path::{Path, resolve};
use crate::plan::{Cell, Plan, PlannedQuestion};
use crate::quantity::Percent;
use crate::question::{self, Asked};
use crate::reference::{DESIGN, Kind, SEED_MAX, SETUP, STUDY};
use crate::setup::{Script, Setup, Workload};
use crate::source::{Fault, Sources};
use crate::tree::{self, Node};

use crate::{cells, check, published, random};

/// A study, read and validated: every setup that any question needs has been built once.
#[derive(Clone, Debug)]
pub struct Study {
    /// One line that says what is asked.
    pub title: String,
    /// The file's text as given; stored with the result.
    pub text: String,
    /// `--set path=value`, in the order given; stored with the result.
    pub overrides: Vec<String>,
    /// Seed of order and data; the file's `seed`, else derived from the text and the overrides.
    pub seed: u64,
    /// The baseline setup, overrides applied.
    pub baseline: Setup,
    /// In file order.
    pub questions: Vec<Question>,
    /// Figures from elsewhere, shown beside ours.
    pub published: Vec<Published>,
    /// The cells of each question, as [`Cell`] says.
    cells: Vec<Vec<Cell>>,
}

/// One question: the factor, its levels and how much is known before it is answered.
#[derive(Clone, Debug)]
pub struct Question {
    /// Unique in the study.
    pub name: String,
    /// What varies.
    pub factor: Factor,
    /// At least two; the first is the baseline.
    pub levels: Vec<Level>,
    /// Paths taken along several values; cells are their cross product.
    pub sweep: Vec<SweepAxis>,
    /// Overrides of the baseline for this question, path to value.
    pub given: BTreeMap<String, Value>,
    /// Blocks always run.
    pub blocks: u32,
    /// Blocks at most, when `precision` is not reached sooner. At least `blocks`; unless given, it
    /// is `blocks` without a `precision` and four times that with one.
    pub max_blocks: u32,
    /// Half width of the interval, relative to the ratio, at which no more blocks are added;
    /// `margin` unless given. Of no effect where `max_blocks` equals `blocks`.
    pub precision: Percent,
    /// Effects inside `1/(1+margin) .. 1+margin` are of no practical interest.
    pub margin: Percent,
    /// Confidence of the intervals over the whole question, `0.95` unless given.
    pub confidence: f64,
    /// What a run that failed for good does to the study.
    pub on_failure: OnFailure,
}

/// What a run that failed for good does to the study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The study stops.
    #[default]
    Stop,
    /// The next run is made; the study fails at its end.
    Continue,
}

/// The path or, when `compound`, paths that a question varies.
#[derive(Clone, Debug)]
pub struct Factor {
    /// Dotted paths in the setup tree; one unless `compound`.
    pub paths: Vec<String>,
    /// The effect belongs to the bundle of paths, not to any part of it.
    pub compound: bool,
}

/// One value of the factor.
#[derive(Clone, Debug)]
pub struct Level {
    /// Given, or the value itself written out.
    pub name: String,
    /// One value for each path of the factor, in its order.
    pub values: Vec<Value>,
}

/// A path taken through several values.
#[derive(Clone, Debug)]
pub struct SweepAxis {
    /// Dotted path in the setup tree.
    pub path: String,
    /// At least one, distinct.
    pub values: Vec<Value>,
}

/// A figure from a paper or post.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Name of a question of this study.
    pub question: String,
    /// Name of one of its levels.
    pub level: String,
    /// Sweep point, path to value; empty when the question has no sweep.
    #[serde(default)]
    pub at: BTreeMap<String, Value>,
    /// `transactions_per_second` or `p95_ms`.
    pub metric: String,
    /// In the metric's unit.
    pub value: f64,
    /// Where it was published.
    pub source: String,
}

impl Study {
    /// Reads a study.
    ///
    /// `name` is what errors call the text (usually its path). Each override is `path=value`, the
    /// value as in TOML or a bare word.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column in `text` (or the override at fault).
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Study, StudyError> {
        let mut sources = Sources::new();
        sources.add(name, text);
        let bases: Vec<usize> = overrides.iter().map(|text| sources.add("--set", text)).collect();
        read(text, overrides, &bases, &sources).map_err(|fault| sources.error(fault))
    }

    /// The scripts of all setups, for whoever reads their files to put in their texts.
    pub fn scripts_mut(&mut self) -> impl Iterator<Item = &mut Script> {
        let cells = self.cells.iter_mut().flatten().map(|cell| &mut cell.setup);
        cells.chain([&mut self.baseline]).filter_map(|setup| match &mut setup.workload {
            Workload::Script(script) => Some(script),
            _ => None,
        })
    }

    /// The cells and their seeded order. A pure function of the study.
    pub fn plan(&self) -> Plan {
        let questions = self.questions.iter().zip(&self.cells);
        Plan {
            seed: self.seed,
            questions: questions
                .map(|(question, cells)| PlannedQuestion {
                    name: question.name.clone(),
                    cells: cells.clone(),
                    blocks: question.blocks,
                    max_blocks: question.max_blocks,
                })
                .collect(),
        }
    }
}

fn read(
    text: &str,
    overrides: &[String],
    bases: &[usize],
    sources: &Sources<'_>,
) -> Result<Study, Fault> {
    let parsed = DeTable::parse(text).map_err(|error| Fault::toml(&error, 0))?;
    let mut document = parsed.into_inner();
    if let Some(server) = document.get_mut("server") {
        tree::normalise(server, &["server"])?;
    }
    let mut replaced = Vec::with_capacity(overrides.len());
    for (text, base) in overrides.iter().zip(bases) {
        let (path, node) = read_override(text, *base)?;
        path.fits(&document)?;
        tree::insert(&mut document, &path.segments, path.span.clone(), node)?;
        replaced.push(path);
    }
    check::table(STUDY, &document, "", 0..0)?;

    let setup_tree: DeTable<'_> = document
        .iter()
        .filter(|(key, _)| SETUP.iter().any(|known| known.name == key.get_ref().as_ref()))
        .map(|(key, node)| (key.clone(), node.clone()))
        .collect();
    let baseline = cells::setup(setup_tree.clone(), 0..0)?;

    let design = document.get("design").and_then(|node| node.get_ref().as_table());
    let mut asked: Vec<Asked> = Vec::new();
    for node in array(&document, "question") {
        let name = node.get_ref().get("name");
        let one = question::read(node, &setup_tree, design, sources)?;
        if asked.iter().any(|earlier| earlier.question.name == one.question.name) {
            let at = name.map_or(node.span(), Spanned::span);
            return Err(Fault::new(at, format!("two questions are named `{}`", one.question.name))
                .hint("a name stands for one answer in the report"));
        }
        asked.push(one);
    }
    if asked.is_empty() {
        return Err(Fault::new(
            document.get("question").map_or(0..0, Spanned::span),
            "the study asks no question",
        )
        .hint("add a `[[question]]` with `name`, `vary` and `levels`"));
    }
    for path in &replaced {
        refuse_without_effect(path, &document, &asked)?;
    }

    let mut questions = Vec::with_capacity(asked.len());
    let mut cells = Vec::with_capacity(asked.len());
    for one in asked {
        questions.push(one.question);
        cells.push(one.cells);
    }
    let published = array(&document, "published")
        .iter()
        .map(|figure| published::read(figure, &questions))
        .collect::<Result<Vec<_>, _>>()?;

    let title = document.get("title").and_then(|node| node.get_ref().as_str()).unwrap_or_default();
    let seed = document.get("seed").and_then(|node| tree::integer(node.get_ref()));
    Ok(Study {
        title: title.to_owned(),
        text: text.to_owned(),
        overrides: overrides.to_vec(),
        seed: match seed.and_then(|seed| u64::try_from(seed).ok()) {
            Some(seed) => seed,
            None => derived_seed(text, overrides),
        },
        baseline,
        questions,
        published,
        cells,
    })
}

/// The elements of an array of tables, none where there is none.
fn array<'t, 'i>(document: &'t DeTable<'i>, key: &str) -> &'t [Node<'i>] {
    document.get(key).and_then(|node| node.get_ref().as_array()).map_or(&[], |array| &array[..])
}

/// Reads `path=value`. What is not TOML is a bare word, as shells and people leave out quotes;
/// what begins like a quoted string, array or table is meant to be one.
fn read_override(text: &str, base: usize) -> Result<(Path, Node<'_>), Fault> {
    let Some((path_text, value_text)) = text.split_once('=') else {
        return Err(Fault::new(base..base + text.len(), format!("`{text}` is not path=value"))
            .hint("such as --set load.measure=10s"));
    };
    let path = resolve(STUDY, path_text, base..base + path_text.len())?;
    if let Kind::Tables(_) = path.kind {
        return Err(Fault::new(path.span, format!("`{}` cannot be overridden", path.text))
            .hint("name a path of the baseline, such as `load.measure`, or of `design`"));
    }
    let value = value_text.trim();
    let leading = value_text.len() - value_text.trim_start().len();
    let value_base = base + path_text.len() + 1 + leading;
    let node = match DeValue::parse(value) {
        Ok(node) => tree::shifted(node, value_base),
        Err(error) if value.starts_with(['"', '\'', '[', '{']) => {
            return Err(Fault::toml(&error, value_base));
        }
        Err(_) => Spanned::new(value_base..value_base + value.len(), DeValue::String(value.into())),
    };
    let node = question::checked(&path, node)?;
    Ok((path, node))
}

/// An override that every question replaces by a value of its own would be stored with the result
/// and believed, though nothing was measured with it.
fn refuse_without_effect(
    path: &Path,
    document: &DeTable<'_>,
    asked: &[Asked],
) -> Result<(), Fault> {
    let replaced = match path.parts()[..] {
        ["design", key] if DESIGN.iter().any(|known| known.name == key) => {
            array(document, "question").iter().all(|question| question.get_ref().get(key).is_some())
        }
        _ => asked.iter().all(|one| one.paths.iter().any(|own| own.covers(path))),
    };
    if replaced {
        return Err(Fault::new(
            path.span.clone(),
            format!("overriding `{}` has no effect: every question sets it itself", path.text),
        )
        .hint("change it in the file"));
    }
    Ok(())
}

/// A seed for a study that names none: the same on every machine and in every version.
fn derived_seed(text: &str, overrides: &[String]) -> u64 {
    let mut hash = random::Fnv::new();
    hash.write(text.as_bytes());
    for text in overrides {
        // A byte that no text holds, so that moving text from one override to the next shows.
        hash.write(&[0xff]);
        hash.write(text.as_bytes());
    }
    random::mixed(hash.finish()) & SEED_MAX
}
