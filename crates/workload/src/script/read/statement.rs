//! A statement of a step, written out for every copy of the tables in it, and the values that it
//! takes. Places in faults are those within the statement; the caller knows where that stands.

use std::ops::Range;

use study::{Param, allowed};

use super::super::fault::Fault;
use super::super::run::OPERANDS_MAX;
use super::super::sql::{Hole, filled};
use super::super::{Action, Operand};
use super::Reader;

const STATEMENTS_MAX: usize = 100_000;

impl Reader<'_> {
    /// Writes a statement out for every copy of its tables; places are those within `sql`.
    pub(super) fn statement(
        &mut self,
        sql: &str,
        name: &str,
        runs: bool,
        variables: &[(String, usize, bool)],
        copies: &mut u32,
    ) -> Result<Action, Fault> {
        // How many copies there are shows when all holes have been seen.
        let (_, operands) = self.written(sql, 1, variables, copies)?;
        if operands.len() > OPERANDS_MAX {
            return Err(Fault::new(0..sql.len(), format!("more than {OPERANDS_MAX} values")));
        }
        if sql.trim().is_empty() {
            return Err(Fault::new(0..sql.len(), "the statement is empty"));
        }
        let mut all = Vec::new();
        for copy in 1..=(*copies).max(1) {
            let (text, _) = self.written(sql, copy, variables, &mut copies.clone())?;
            let text = text.trim().trim_end_matches(';').trim_end().to_owned();
            all.push(load::Statement { text, name: name.trim().to_owned() });
        }
        // A step that never runs prepares nothing.
        let known = self.statements.windows(all.len()).position(|window| *window == all[..]);
        let first = known.unwrap_or(self.statements.len());
        if known.is_none() && runs {
            self.statements.append(&mut all);
        }
        if self.statements.len() > STATEMENTS_MAX {
            let message = format!("more than {STATEMENTS_MAX} statements, copies counted");
            return Err(Fault::new(0..sql.len(), message));
        }
        Ok(Action::Execute { first, operands })
    }

    fn written(
        &self,
        sql: &str,
        copy: u32,
        variables: &[(String, usize, bool)],
        copies: &mut u32,
    ) -> Result<(String, Vec<Operand>), Fault> {
        let mut operands = Vec::new();
        let text = filled(sql, &mut |hole, span, out| match hole {
            Hole::Text(name) => self.put(name, span, copy, copies, out),
            Hole::Value(name) => {
                operands.push(self.operand(name, span, variables)?);
                out.push('?');
                Ok(())
            }
        })?;
        Ok((text, operands))
    }

    /// Puts a table or a parameter into a statement.
    fn put(
        &self,
        name: &str,
        span: Range<usize>,
        copy: u32,
        copies: &mut u32,
        out: &mut String,
    ) -> Result<(), Fault> {
        if let Some(table) = self.named.iter().find(|table| table.name == name) {
            if table.copies > 0 && *copies > 0 && table.copies != *copies {
                let message =
                    format!("`{name}` has {} copies, another table {copies}", table.copies);
                return Err(Fault::new(span, message)
                    .hint("the tables of a step are drawn together, so they have equally many"));
            }
            *copies = (*copies).max(table.copies);
            out.push_str(&copy_name(name, table.copies, copy));
            return Ok(());
        }
        if let Some(value) = self.params.get(name) {
            *out += &value.to_string();
            return Ok(());
        }
        let known: Vec<&str> = self.named.iter().map(|table| table.name.as_str()).collect();
        let known = known.into_iter().chain(self.params.keys().map(String::as_str));
        Err(Fault::new(span, format!("there is no table or parameter `{name}`"))
            .hint(allowed(name, known)))
    }

    fn operand(
        &self,
        name: &str,
        span: Range<usize>,
        variables: &[(String, usize, bool)],
    ) -> Result<Operand, Fault> {
        if let Some((_, slot, _)) = variables.iter().rev().find(|(known, ..)| known == name) {
            return Ok(Operand::Slot(*slot));
        }
        match self.params.get(name) {
            Some(Param::Integer(value)) => Ok(Operand::Int(*value)),
            Some(Param::Float(value)) => Ok(Operand::Double(*value)),
            Some(Param::Text(text)) => Ok(Operand::Text(text.as_bytes().into())),
            None => {
                let known = variables.iter().map(|(known, ..)| known.as_str());
                let known = known.chain(self.params.keys().map(String::as_str));
                Err(Fault::new(span, format!("there is no value `{name}`"))
                    .hint(allowed(name, known)))
            }
        }
    }
}

/// The name of one of so many copies; 0: the table itself, without a number.
pub(super) fn copy_name(name: &str, copies: u32, copy: u32) -> String {
    if copies == 0 { name.to_owned() } else { format!("{name}{copy}") }
}
