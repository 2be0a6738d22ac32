//! A `[[transaction]]` and its steps: what each draws, sends and keeps, and whether the server's
//! transactions begin and end in turn.

use std::ops::Range;

use study::allowed;
use toml::de::DeTable;

use super::super::fault::Fault;
use super::super::parse::Parsed;
use super::super::values::Expr;
use super::super::{Action, Step, Transaction};
use super::Reader;
use super::nodes::{Node, array, expected, identifier, known, ordered, required, string, strings};

const REPEAT_MAX: i64 = 10_000;
const SLOTS_MAX: usize = 256;

impl Reader<'_> {
    pub(super) fn transaction(&mut self, node: &Node<'_>) -> Result<Transaction, Fault> {
        let table = node.get_ref().as_table().ok_or_else(|| expected(node, "a table"))?;
        known(table, &["name", "weight", "draw", "step"], "a transaction")?;
        let (name, at) = string(required(table, "name", node)?)?;
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(Fault::new(at, "the name is empty or holds a control character"));
        }
        let weight = match table.get("weight") {
            Some(node) => self.constant(node, 0, 1_000_000)? as u64,
            None => 1,
        };
        let (mut variables, mut slots) = (Vec::new(), 0);
        let draw = self.draw(table, &mut variables, &mut slots)?;
        let nodes = array(table, "step")?;
        let (mut steps, mut open) = (Vec::new(), false);
        for node in nodes {
            let step = self.step(node, &mut variables, &mut slots)?;
            for action in (0..step.repeat.min(2)).flat_map(|_| &step.actions) {
                open = match (action, open) {
                    (Action::Begin, false) => true,
                    (Action::Commit | Action::Rollback, true) => false,
                    (Action::Execute { .. }, open) => open,
                    (Action::Begin, true) => {
                        return Err(Fault::new(node.span(), "BEGIN within a transaction"));
                    }
                    _ => return Err(Fault::new(node.span(), "there is no BEGIN before this")),
                };
            }
            steps.push(step);
        }
        if open {
            return Err(Fault::new(node.span(), format!("`{name}` begins and never ends"))
                .hint("add a step with `sql = \"COMMIT\"`"));
        }
        if steps.iter().all(|step| step.repeat == 0 || step.actions.is_empty()) {
            return Err(Fault::new(node.span(), format!("`{name}` has no statement"))
                .hint("add a `[[transaction.step]]` with `sql`"));
        }
        Ok(Transaction { name: name.to_owned(), weight, slots, draw, steps })
    }

    /// Reads `draw`, the variables of which are appended.
    fn draw(
        &mut self,
        table: &DeTable<'_>,
        variables: &mut Vec<(String, usize, bool)>,
        slots: &mut usize,
    ) -> Result<Vec<(usize, Expr)>, Fault> {
        let Some(node) = table.get("draw") else { return Ok(Vec::new()) };
        let draws = node.get_ref().as_table().ok_or_else(|| expected(node, "a table"))?;
        let mut read = Vec::new();
        for (name, node) in ordered(draws) {
            let (expr, is_text) = match self.read(node, variables, false)? {
                Parsed::Integer(expr) => (expr, false),
                Parsed::Text(expr) => (expr, true),
                Parsed::Float(_) => return Err(expected(node, "a whole number or a text")),
            };
            let slot = self.variable(name.get_ref(), name.span(), is_text, variables, slots)?;
            read.push((slot, expr));
        }
        Ok(read)
    }

    fn variable(
        &self,
        name: &str,
        at: Range<usize>,
        is_text: bool,
        variables: &mut Vec<(String, usize, bool)>,
        slots: &mut usize,
    ) -> Result<usize, Fault> {
        identifier(name, at.clone())?;
        if self.params.contains_key(name) {
            return Err(Fault::new(at, format!("`{name}` is a parameter"))
                .hint("give the variable another name"));
        }
        if *slots == SLOTS_MAX {
            return Err(Fault::new(at, format!("more than {SLOTS_MAX} variables")));
        }
        variables.push((name.to_owned(), *slots, is_text));
        *slots += 1;
        Ok(*slots - 1)
    }

    fn step(
        &mut self,
        node: &Node<'_>,
        variables: &mut Vec<(String, usize, bool)>,
        slots: &mut usize,
    ) -> Result<Step, Fault> {
        let table = node.get_ref().as_table().ok_or_else(|| expected(node, "a table"))?;
        known(table, &["name", "sql", "repeat", "draw", "keep"], "a step")?;
        let repeat = match table.get("repeat") {
            Some(node) => self.constant(node, 0, REPEAT_MAX)? as u32,
            None => 1,
        };
        // What a step draws is its own; what it keeps is for those that follow.
        let outer = variables.len();
        let draw = self.draw(table, variables, slots)?;
        let texts = strings(required(table, "sql", node)?)?;
        let names = match table.get("name") {
            Some(node) => strings(node)?,
            None => Vec::new(),
        };
        if !names.is_empty() && names.len() != texts.len() {
            let at = names[0].1.clone();
            let message = format!("{} names for {} statements", names.len(), texts.len());
            return Err(Fault::new(at, message).hint("one for each, in their order"));
        }
        let (mut actions, mut copies) = (Vec::new(), 0);
        for (i, (sql, at)) in texts.iter().enumerate() {
            let name = names.get(i).map_or(*sql, |(name, _)| name);
            actions.push(match sql.trim().to_ascii_uppercase().as_str() {
                "BEGIN" => Action::Begin,
                "COMMIT" => Action::Commit,
                "ROLLBACK" => Action::Rollback,
                _ => self
                    .statement(sql, name, repeat > 0, variables, &mut copies)
                    .map_err(|fault| fault.within(sql, at.clone(), self.text))?,
            });
        }
        variables.truncate(outer);
        let mut keep = Vec::new();
        if let Some(node) = table.get("keep") {
            let written = node.get_ref().as_table().ok_or_else(|| expected(node, "a table"))?;
            if !matches!(actions[..], [Action::Execute { .. }]) {
                return Err(Fault::new(
                    node.span(),
                    "only a step of one statement can keep values",
                ));
            }
            for (name, node) in ordered(written) {
                let is_text = match string(node)? {
                    ("integer", _) => false,
                    ("text", _) => true,
                    (other, at) => {
                        let kinds = ["integer", "text"].into_iter();
                        return Err(Fault::new(at, format!("`{other}` is no kind of value"))
                            .hint(allowed(other, kinds)));
                    }
                };
                let slot = self.variable(name.get_ref(), name.span(), is_text, variables, slots)?;
                keep.push((slot, is_text));
            }
            if keep.len() > wire::KEPT_COLUMNS_MAX {
                let message = format!("more than {} values are kept", wire::KEPT_COLUMNS_MAX);
                return Err(Fault::new(node.span(), message));
            }
        }
        Ok(Step { copies, repeat, draw, actions, keep })
    }
}
