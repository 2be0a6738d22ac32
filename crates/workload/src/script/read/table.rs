//! A `[[table]]`: its copies, the statements that make and complete each, and what its rows hold.

use std::ops::Range;

use study::allowed;

use super::super::Table;
use super::super::fault::Fault;
use super::super::parse::Parsed;
use super::super::sql::{Hole, filled};
use super::nodes::{Node, expected, identifier, known, ordered, required, string, strings};
use super::statement::copy_name;
use super::{Named, Reader};

const COPIES_MAX: i64 = 10_000;

impl Reader<'_> {
    /// Reads a `[[table]]` and appends its copies.
    pub(super) fn table(
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
}
