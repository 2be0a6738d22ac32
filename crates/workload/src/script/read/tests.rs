//! What is wrong with a script, and where.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use study::{Param, StudyError};

use crate::script::compile;

const GOOD: &str = "\
[params]
rows = 50
theta = 0.9
[[table]]
name = \"item\"
copies = 2
create = \"CREATE TABLE {table} (id INT, name TEXT)\"
rows = \"rows\"
columns = { id = \"row\", name = \"letters(3)\" }
[[transaction]]
name = \"buy\"
weight = 2
draw = { id = \"uniform(1, rows)\" }
[[transaction.step]]
sql = \"BEGIN\"
[[transaction.step]]
sql = \"SELECT name FROM {item} WHERE id = :id\"
keep = { was = \"text\" }
[[transaction.step]]
draw = { name = \"letters(2)\" }
sql = [\"UPDATE {item} SET name = :name WHERE name = :was\"]
[[transaction.step]]
sql = \"COMMIT\"
";

fn read(text: &str, params: &[(&str, Param)]) -> Result<crate::script::Script, StudyError> {
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    compile(&study::Script {
        file: Some("shop.toml".to_owned()),
        params: params.collect::<BTreeMap<_, _>>(),
        text: Some(text.to_owned()),
    })
}

#[test]
fn a_script_becomes_tables_and_statements() {
    let script = read(GOOD, &[("rows", Param::Integer(7))]).unwrap();
    let tables: Vec<_> = script.tables.iter().map(|table| (&*table.name, table.rows)).collect();
    assert_eq!(tables, [("item1", 7), ("item2", 7)]);
    assert_eq!(script.tables[1].create, ["CREATE TABLE item2 (id INT, name TEXT)"]);
    let texts: Vec<&str> = script.statements.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "SELECT name FROM item1 WHERE id = ?",
            "SELECT name FROM item2 WHERE id = ?",
            "UPDATE item1 SET name = ? WHERE name = ?",
            "UPDATE item2 SET name = ? WHERE name = ?",
        ]
    );
}

/// A piece of the good script, what stands there instead, line and column of the fault, message
/// and hint.
const WRONG: &[(&str, &str, usize, usize, &str, &str)] = &[
    ("[params]", "[param]", 1, 2, "a script has no key `param`", "did you mean `params`?"),
    ("rows = 50", "rows = true", 2, 8, "expected a number or a string", ""),
    ("rows = 50", "rows = ", 2, 8, "", ""),
    ("copies = 2", "copeis = 2", 6, 1, "a table has no key `copeis`", "did you mean `copies`?"),
    ("copies = 2", "copies = 0", 6, 10, "this is 0 and must lie between 1 and 10000", ""),
    ("{table}", "{tabel}", 7, 24, "there is no `tabel`", "did you mean `table`?"),
    ("(id INT", "(:id INT", 7, 33, "takes no values", ""),
    ("rows = \"rows\"", "rows = \"row\"", 8, 9, "there is no `row`", "did you mean `rows`?"),
    ("letters(3)", "letter(3)", 9, 33, "no function `letter`", "did you mean `letters`?"),
    ("name = \"item\"", "name = \"an item\"", 5, 8, "cannot be a name", "letters, digits"),
    ("name = \"item\"", "name = \"rows\"", 5, 8, "means something else", ""),
    ("weight = 2", "weight = \"2.5\"", 12, 10, "whole number known before", "a parameter"),
    ("weight = 2", "weight = 0", 10, 1, "no transaction to run", "[[transaction]]"),
    ("uniform(1, rows)", "uniform(1; rows)", 13, 23, "never closed", ""),
    ("{ id = \"uni", "{ rows = \"uni", 13, 10, "`rows` is a parameter", ""),
    ("sql = \"BEGIN\"", "sqk = \"BEGIN\"", 15, 1, "a step has no key `sqk`", "`sql`?"),
    ("sql = \"BEGIN\"", "repeat = 2", 14, 1, "`sql` is missing here", ""),
    ("sql = \"BEGIN\"", "sql = \"DO 1\"", 22, 1, "there is no BEGIN before this", ""),
    ("sql = \"COMMIT\"", "sql = \"DO 1\"", 10, 1, "`buy` begins and never ends", "COMMIT"),
    (":id\"", ":idd\"", 17, 43, "there is no value `idd`", "did you mean `id`? allowed: id, rows"),
    (":id\"", "?\"", 17, 43, "a `?` is no value", "`:name`"),
    ("FROM {item}", "FROM {itme}", 17, 25, "no table or parameter `itme`", "`item`?"),
    ("was = \"text\"", "was = \"string\"", 18, 16, "`string` is no kind", "integer, text"),
    ("sql = [\"UPD", "name = [\"a\", \"b\"]\nsql = [\"UPD", 21, 9, "2 names for 1 statements", ""),
    // What a step draws is its own.
    ("sql = \"COMMIT\"", "sql = [\"DO :name\", \"COMMIT\"]", 23, 12, "no value `name`", ""),
];

#[test]
fn what_is_wrong_is_told_with_line_column_and_the_allowed_words() {
    assert!(read(GOOD, &[]).is_ok());
    for &(good, wrong, line, column, message, hint) in WRONG {
        let text = GOOD.replacen(good, wrong, 1);
        assert_ne!(text, GOOD, "{good}");
        let error = read(&text, &[]).map(|_| ()).expect_err(wrong);
        assert_eq!((error.line, error.column), (line, column), "{wrong}: {error}");
        assert!(error.message.contains(message), "{wrong}: {error}");
        assert!(error.hint.clone().unwrap_or_default().contains(hint), "{wrong}: {error}");
        assert!(error.to_string().contains("shop.toml:"), "{error}");
    }
}

#[test]
fn parameters_that_are_given_are_checked() {
    for (name, value, message, hint) in [
        ("rosw", Param::Integer(1), "no parameter `rosw`", "did you mean `rows`? allowed: rows"),
        ("rows", Param::Text("many".into()), "`rows` was given as `many`", "a whole number"),
        ("rows", Param::Float(0.5), "`rows` was given as `0.5`", "a whole number"),
        ("theta", Param::Text("x".into()), "`theta` was given as `x`", "a number"),
    ] {
        let error = read(GOOD, &[(name, value)]).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert!(error.hint.clone().unwrap_or_default().contains(hint), "{error}");
    }
    assert!(read(GOOD, &[("theta", Param::Integer(1))]).is_ok());
}

#[test]
fn no_text_makes_it_panic() {
    // Every script that is cut, and every one with a byte taken out.
    for at in 0..GOOD.len() {
        let _ = read(&GOOD[..at], &[]);
        let _ = read(&format!("{}{}", &GOOD[..at], &GOOD[at + 1..]), &[]);
        let _ = read(&format!("{}é{}", &GOOD[..at], &GOOD[at..]), &[]);
    }
    for text in ["", "\u{feff}", "table = 1", "[[table]]", "table = [1]", "transaction = [{}]"] {
        assert!(read(text, &[]).is_err(), "{text}");
    }
}

/// What the documentation shows must work when it is copied.
#[test]
fn the_example_in_the_documentation_is_a_script() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripts.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once("## A script\n\n```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let script = read(example, &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((script.tables.len(), script.statements.len()), (1, 3));
}
