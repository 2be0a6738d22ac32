//! One table: rows of cells that escape what they are given, in a box of its own to scroll in.

use std::fmt::Display;

use super::markup::Esc;

/// A row in the making.
#[derive(Default)]
pub struct Row(String);

impl Row {
    /// An empty row.
    pub fn new() -> Row {
        Row::default()
    }

    /// The cell that names the row.
    pub fn head(self, text: impl Display) -> Row {
        self.cell(&format!("<th scope=\"row\">{}</th>", Esc(text)))
    }

    /// The same, of markup that has been escaped.
    pub fn head_markup(self, markup: &str) -> Row {
        self.cell(&format!("<th scope=\"row\">{markup}</th>"))
    }

    /// Text.
    pub fn text(self, text: impl Display) -> Row {
        self.cell(&format!("<td>{}</td>", Esc(text)))
    }

    /// Text, where there is such a column.
    pub fn text_if(self, column: bool, text: impl Display) -> Row {
        if column { self.text(text) } else { self }
    }

    /// A number.
    pub fn number(self, number: impl Display) -> Row {
        self.cell(&format!("<td class=\"n\">{}</td>", Esc(number)))
    }

    /// The number that the row is about.
    pub fn strong(self, number: impl Display) -> Row {
        self.cell(&format!("<td class=\"n strong\">{}</td>", Esc(number)))
    }

    /// A number that should be nought.
    pub fn alarm(self, n: usize) -> Row {
        if n == 0 {
            self.number(0)
        } else {
            self.cell(&format!("<td class=\"n\"><span class=\"flag\">{n}</span></td>"))
        }
    }

    /// Markup that has been escaped.
    pub fn markup(self, markup: &str) -> Row {
        self.cell(&format!("<td>{markup}</td>"))
    }

    fn cell(mut self, cell: &str) -> Row {
        self.0.push_str(cell);
        self
    }
}

/// The columns' names, one with `>` before it being a column of numbers, and an empty one absent.
pub fn table(caption: &str, columns: &[&str], rows: impl IntoIterator<Item = Row>) -> String {
    let caption = Esc(caption);
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\
         <table><caption>{caption}</caption><thead><tr>"
    );
    for column in columns.iter().filter(|column| !column.is_empty()) {
        match column.strip_prefix('>') {
            Some(name) => {
                out.push_str(&format!("<th scope=\"col\" class=\"n\">{}</th>", Esc(name)))
            }
            None => out.push_str(&format!("<th scope=\"col\">{}</th>", Esc(column))),
        }
    }
    out.push_str("</tr></thead><tbody>");
    for Row(cells) in rows {
        out.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    out + "</tbody></table></div>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_escape_and_absent_columns_are_absent() {
        let row = Row::new().head("<a>").text_if(false, "no").number("1 & 2").alarm(0).alarm(3);
        let table = table("\"t\"", &["name", "", ">n", ">z", ">bad"], [row]);
        assert!(table.contains("aria-label=\"&quot;t&quot;\""), "{table}");
        assert!(table.contains(
            "<tr><th scope=\"row\">&lt;a&gt;</th><td class=\"n\">1 &amp; 2</td>\
             <td class=\"n\">0</td>\
             <td class=\"n\"><span class=\"flag\">3</span></td></tr>"
        ));
        assert_eq!(table.matches("scope=\"col\"").count(), 4);
    }
}
