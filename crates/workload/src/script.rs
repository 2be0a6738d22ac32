//! Workloads that are written down and not compiled: a TOML file with tables, rows and weighted
//! transactions. `docs/scripts.md` is its reference.
//!
//! `read` makes a [`Script`] of the text, once: names are looked up, parameters put in and
//! whatever is known before the run is computed, so that a mistake shows before anything is
//! started and with its place in the file. `run` drives it, `rows` makes its data.

mod fault;
mod parse;
mod read;
mod rows;
mod run;
mod sql;
mod values;

use study::StudyError;

use values::Expr;

pub(crate) use run::Driven;

/// A script with its parameters put in.
#[derive(Debug)]
pub(crate) struct Script {
    /// Copies one by one.
    pub(crate) tables: Vec<Table>,
    /// What every connection prepares.
    pub(crate) statements: Vec<load::Statement>,
    /// Equal text, equal tables and rows.
    pub(crate) description: String,
    transactions: Vec<Transaction>,
    /// Sum of the transactions' weights; above 0.
    weight: u64,
}

/// A table, or one copy of it.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// Statements that make it.
    pub(crate) create: Vec<String>,
    pub(crate) rows: u64,
    /// Statements that complete it after its rows came.
    pub(crate) after: Vec<String>,
    /// From 1.
    copy: u32,
    columns: Vec<(String, Expr)>,
}

#[derive(Debug)]
struct Transaction {
    name: String,
    weight: u64,
    /// Variables in all.
    slots: usize,
    draw: Vec<(usize, Expr)>,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    /// Copies of the tables that its statements name, one of which is drawn; 0 where none has any.
    copies: u32,
    repeat: u32,
    draw: Vec<(usize, Expr)>,
    actions: Vec<Action>,
    /// Slots for the columns of the first row, and whether each is text.
    keep: Vec<(usize, bool)>,
}

#[derive(Debug)]
enum Action {
    Begin,
    Commit,
    Rollback,
    Execute {
        /// Number of the statement for the first copy; those for the others follow.
        first: usize,
        operands: Vec<Operand>,
    },
}

/// What stands at a placeholder.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Slot(usize),
    Int(i64),
    Double(f64),
    Text(Box<[u8]>),
}

/// Reads a script whose text has been read from its file.
pub(crate) fn compile(script: &study::Script) -> Result<Script, StudyError> {
    let text = script.text.as_deref().unwrap_or("");
    let name = script.name();
    let read = match &script.text {
        Some(text) => read::script(text, &script.params),
        None => Err(fault::Fault::new(0..0, "the script has not been read")),
    };
    read.map_err(|fault| StudyError::at(name, text, fault.span, fault.message, fault.hint))
}

/// Whether a workload, if it is a script, can be driven and its tables be made.
///
/// # Errors
/// The first thing that is wrong with the script, with its place.
pub fn check_script(workload: &study::Workload) -> Result<(), StudyError> {
    match workload {
        study::Workload::Script(script) => compile(script).map(drop),
        _ => Ok(()),
    }
}
