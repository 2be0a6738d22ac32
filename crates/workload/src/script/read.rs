//! From the text of a script to a [`Script`]: keys and names are looked up, every expression is
//! read, every statement written out for every copy of its tables.
//!
//! Here: the file as a whole, its parameters, and single values. What a `[[table]]`, a
//! `[[transaction]]` and a statement within it hold is read by the files below; `nodes` are the
//! questions that all ask of the TOML.

mod nodes;
mod statement;
mod table;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};

use study::{Param, allowed};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use nodes::{Node, array, expected, identifier, known, ordered};

use super::fault::Fault;
use super::parse::{Parsed, Scope, expression};
use super::rows::VERSION;
use super::values::Expr;
use super::{Script, Transaction};

type Params = BTreeMap<String, Param>;

/// A `[[table]]` before its copies are made.
struct Named {
    name: String,
    /// 0: the table itself, without a number.
    copies: u32,
}

struct Reader<'t> {
    text: &'t str,
    params: Params,
    /// Parameters that tables and rows depend on.
    used: BTreeSet<String>,
    named: Vec<Named>,
    statements: Vec<load::Statement>,
}

pub(super) fn script(text: &str, given: &BTreeMap<String, Param>) -> Result<Script, Fault> {
    let parsed = DeTable::parse(text).map_err(|error| {
        Fault::new(error.span().unwrap_or(0..0), error.message().replace('\n', ", "))
    })?;
    let file = parsed.get_ref();
    known(file, &["params", "table", "transaction"], "a script")?;
    let params = params(file, given)?;
    let (used, named, statements) = Default::default();
    let mut reader = Reader { text, params, used, named, statements };
    let (mut tables, mut description) = (Vec::new(), VERSION.to_owned());
    for node in array(file, "table")? {
        reader.table(node, &mut tables, &mut description)?;
    }
    for name in &reader.used {
        if let Some(value) = reader.params.get(name) {
            description += &format!("; {name} = {value}");
        }
    }
    let mut transactions: Vec<Transaction> = Vec::new();
    let nodes = array(file, "transaction")?;
    for node in nodes {
        let transaction = reader.transaction(node)?;
        if transactions.iter().any(|earlier| earlier.name == transaction.name) {
            let message = format!("two transactions are named `{}`", transaction.name);
            return Err(Fault::new(node.span(), message).hint("reports tell them by their names"));
        }
        transactions.push(transaction);
    }
    let weight = transactions.iter().map(|transaction| transaction.weight).sum();
    if weight == 0 {
        let at = nodes.first().map_or(0..0, Spanned::span);
        return Err(Fault::new(at, "the script has no transaction to run")
            .hint("add a `[[transaction]]` with `name` and a `[[transaction.step]]` with `sql`"));
    }
    let statements = reader.statements;
    Ok(Script { tables, statements, description, transactions, weight })
}

fn params(file: &DeTable<'_>, given: &BTreeMap<String, Param>) -> Result<Params, Fault> {
    let (mut params, mut at) = (Params::new(), 0..0);
    if let Some(node) = file.get("params") {
        at = node.span();
        let table = node.get_ref().as_table().ok_or_else(|| expected(node, "a table"))?;
        for (name, node) in ordered(table) {
            identifier(name.get_ref(), name.span())?;
            params.insert(name.get_ref().to_string(), param(node)?);
        }
    }
    for (name, value) in given {
        let Some(default) = params.get_mut(name) else {
            let message = format!("the script has no parameter `{name}`, which it was given");
            return Err(
                Fault::new(at, message).hint(allowed(name, params.keys().map(String::as_str)))
            );
        };
        *default = match (&*default, value) {
            (Param::Integer(_), Param::Integer(_)) | (Param::Float(_), Param::Float(_)) => {
                value.clone()
            }
            (Param::Float(_), Param::Integer(value)) => Param::Float(*value as f64),
            (Param::Text(_), value) => Param::Text(value.to_string()),
            (Param::Integer(_), _) => {
                return Err(Fault::new(at, format!("`{name}` was given as `{value}`"))
                    .hint("a whole number, as the script's own value is"));
            }
            (Param::Float(_), Param::Text(_)) => {
                return Err(Fault::new(at, format!("`{name}` was given as `{value}`"))
                    .hint("a number, as the script's own value is"));
            }
        };
    }
    Ok(params)
}

fn param(node: &Node<'_>) -> Result<Param, Fault> {
    match node.get_ref() {
        DeValue::String(text) => Ok(Param::Text(text.to_string())),
        DeValue::Integer(written) => i64::from_str_radix(written.as_str(), written.radix())
            .map(Param::Integer)
            .map_err(|_| expected(node, "a signed 64-bit number")),
        DeValue::Float(written) => {
            let value = written.as_str().parse().ok().filter(|value: &f64| value.is_finite());
            value.map(Param::Float).ok_or_else(|| expected(node, "a finite number"))
        }
        _ => Err(expected(node, "a number or a string")),
    }
}

impl Reader<'_> {
    /// A whole number that is known before the run, within bounds.
    fn constant(&mut self, node: &Node<'_>, least: i64, most: i64) -> Result<i64, Fault> {
        let fault = |message: String| {
            Fault::new(node.span(), message).hint("a number, a parameter, or computed from these")
        };
        match self.read(node, &[], false)? {
            Parsed::Integer(Expr::Int(value)) if (least..=most).contains(&value) => Ok(value),
            Parsed::Integer(Expr::Int(value)) => {
                Err(fault(format!("this is {value} and must lie between {least} and {most}")))
            }
            _ => Err(fault("this must be a whole number known before the run".to_owned())),
        }
    }

    /// An expression: a string that holds one, or a number.
    fn read(
        &mut self,
        node: &Node<'_>,
        variables: &[(String, usize, bool)],
        in_column: bool,
    ) -> Result<Parsed, Fault> {
        let DeValue::String(text) = node.get_ref() else {
            return match param(node)? {
                Param::Integer(value) => Ok(Parsed::Integer(Expr::Int(value))),
                Param::Float(value) => Ok(Parsed::Float(value)),
                Param::Text(_) => Err(expected(node, "an expression")),
            };
        };
        let mut used = BTreeSet::new();
        let mut scope = Scope { params: &self.params, variables, in_column, used: &mut used };
        let parsed = expression(text, &mut scope)
            .map_err(|fault| fault.within(text, node.span(), self.text))?;
        if in_column {
            self.used.append(&mut used);
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests;
