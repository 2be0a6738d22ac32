//! From the text of a script to a [`Script`]: keys and names are looked up, every expression is
//! read, every statement written out for every copy of its tables.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use study::{Param, allowed};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Fault;
use super::parse::{Parsed, Scope, expression, name_at};
use super::rows::VERSION;
use super::run::OPERANDS_MAX;
use super::sql::{Hole, filled};
use super::values::Expr;
use super::{Action, Operand, Script, Step, Table, Transaction};

type Node<'i> = Spanned<DeValue<'i>>;
type Params = BTreeMap<String, Param>;

const COPIES_MAX: i64 = 10_000;
const STATEMENTS_MAX: usize = 100_000;
const REPEAT_MAX: i64 = 10_000;
const SLOTS_MAX: usize = 256;

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
    /// Reads a `[[table]]` and appends its copies.
    fn table(
        &mut self,
        node: &Node<'_>,
        tables: &mut Vec<Table>,
        description: &mut String,
    ) -> Result<(), Fault> {
        let table = node.get_ref().as_table().ok_or_else(|| expected(node, "a table"))?;
        known(table, &["name", "copies", "create", "rows", "columns", "after"], "a table")?;
        let (name, at) = string(required(table, "name", node)?)?;
        identifier(name, at.clone())?;
        if self.params.contains_key(name) || self.named.iter().any(|other| other.name == name) {
            return Err(Fault::new(at, format!("`{name}` means something else already"))
                .hint("tables and parameters have names of their own"));
        }
        let copies = match table.get("copies") {
            Some(node) => self.constant(node, 1, COPIES_MAX)? as u32,
            None => 0,
        };
        let rows = match table.get("rows") {
            Some(node) => self.constant(node, 0, i64::MAX / 4)? as u64,
            None => 0,
        };
        let mut columns = Vec::new();
        let mut sources = String::new();
        if let Some(node) = table.get("columns") {
            let written = node.get_ref().as_table().ok_or_else(|| expected(node, "a table"))?;
            for (column, node) in ordered(written) {
                identifier(column.get_ref(), column.span())?;
                let expr = match self.read(node, &[], true)? {
                    Parsed::Integer(expr) | Parsed::Text(expr) => expr,
                    Parsed::Float(_) => return Err(expected(node, "a whole number or a text")),
                };
                sources += &format!("; {} = {}", column.get_ref(), &self.text[node.span()]);
                columns.push((column.get_ref().to_string(), expr));
            }
        }
        if rows > 0 && columns.is_empty() {
            return Err(Fault::new(node.span(), "the rows have no columns")
                .hint("such as `columns = { id = \"row\", balance = 1000 }`"));
        }
        let create = strings(required(table, "create", node)?)?;
        let after = table.get("after").map(strings).transpose()?.unwrap_or_default();
        for copy in 1..=copies.max(1) {
            let full = copy_name(name, copies, copy);
            let mut write = |texts: &[(&str, Range<usize>)]| -> Result<Vec<String>, Fault> {
                texts.iter().map(|(sql, at)| self.schema_sql(sql, at, &full, copy)).collect()
            };
            let (create, after) = (write(&create)?, write(&after)?);
            if copy == 1 {
                let all = [&create[..], &after].concat().join("; ");
                *description += &format!("; {copies} x {rows} rows: {all}{sources}");
            }
            tables.push(Table { name: full, create, rows, after, copy, columns: columns.clone() });
        }
        if tables.len() > COPIES_MAX as usize {
            return Err(Fault::new(node.span(), format!("more than {COPIES_MAX} tables")));
        }
        self.named.push(Named { name: name.to_owned(), copies });
        Ok(())
    }

    /// A statement that makes or completes a table.
    fn schema_sql(
        &mut self,
        sql: &str,
        at: &Range<usize>,
        table: &str,
        copy: u32,
    ) -> Result<String, Fault> {
        let (params, used) = (&self.params, &mut self.used);
        let text = filled(sql, &mut |hole, span, out| {
            let (Hole::Text(name) | Hole::Value(name)) = hole;
            match (hole, params.get(name)) {
                (Hole::Text("table"), _) => out.push_str(table),
                (Hole::Text("copy"), _) => *out += &copy.to_string(),
                (Hole::Text(_), Some(value)) => {
                    used.insert(name.to_owned());
                    *out += &value.to_string();
                }
                (Hole::Value(_), _) => {
                    return Err(Fault::new(span, "a statement of a table takes no values")
                        .hint("`{name}` puts a parameter into its text"));
                }
                (Hole::Text(_), None) => {
                    let known = ["table", "copy"].into_iter();
                    let known: Vec<&str> = known.chain(params.keys().map(String::as_str)).collect();
                    return Err(Fault::new(span, format!("there is no `{name}`"))
                        .hint(allowed(name, known.iter().copied())));
                }
            }
            Ok(())
        });
        let text = text.map_err(|fault| fault.within(sql, at.clone(), self.text))?;
        Ok(text.trim().trim_end_matches(';').trim_end().to_owned())
    }

    fn transaction(&mut self, node: &Node<'_>) -> Result<Transaction, Fault> {
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

    /// Writes a statement out for every copy of its tables; places are those within `sql`.
    fn statement(
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

fn copy_name(name: &str, copies: u32, copy: u32) -> String {
    if copies == 0 { name.to_owned() } else { format!("{name}{copy}") }
}

fn ordered<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<toml::de::DeString<'i>>, &'t Node<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn known(table: &DeTable<'_>, keys: &[&str], what: &str) -> Result<(), Fault> {
    for (key, _) in ordered(table) {
        let name = key.get_ref().as_ref();
        if !keys.contains(&name) {
            return Err(Fault::new(key.span(), format!("{what} has no key `{name}`"))
                .hint(allowed(name, keys.iter().copied())));
        }
    }
    Ok(())
}

fn required<'t, 'i>(
    table: &'t DeTable<'i>,
    key: &str,
    at: &Node<'_>,
) -> Result<&'t Node<'i>, Fault> {
    table.get(key).ok_or_else(|| Fault::new(at.span(), format!("`{key}` is missing here")))
}

fn array<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Result<&'t [Node<'i>], Fault> {
    match table.get(key) {
        None => Ok(&[]),
        Some(node) => match node.get_ref() {
            DeValue::Array(array) => Ok(&array[..]),
            _ => Err(expected(node, "an array of tables")
                .hint(format!("write its head in double brackets, `[[{key}]]`"))),
        },
    }
}

fn string<'t>(node: &'t Node<'_>) -> Result<(&'t str, Range<usize>), Fault> {
    let text = node.get_ref().as_str().ok_or_else(|| expected(node, "a string"))?;
    Ok((text, node.span()))
}

/// A string or an array of them.
fn strings<'t>(node: &'t Node<'_>) -> Result<Vec<(&'t str, Range<usize>)>, Fault> {
    match node.get_ref() {
        DeValue::Array(array) => array.iter().map(string).collect(),
        _ => Ok(vec![string(node)?]),
    }
}

fn expected(node: &Node<'_>, what: &str) -> Fault {
    Fault::new(node.span(), format!("expected {what}"))
}

fn identifier(name: &str, at: Range<usize>) -> Result<(), Fault> {
    if !name.is_empty() && name_at(name) == name && name.len() <= 64 {
        return Ok(());
    }
    Err(Fault::new(at, format!("`{name}` cannot be a name"))
        .hint("letters, digits and `_`, a letter first, at most 64"))
}

#[cfg(test)]
mod tests;
