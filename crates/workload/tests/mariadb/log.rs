//! The server's general log, taken apart.

use std::collections::{BTreeMap, BTreeSet};

use mysql::prelude::Queryable;

use crate::server::Server;

/// A statement in the log, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Numbers are `?`, and digits within strings and names of tables `#`.
    pub form: String,
    /// In their order.
    pub numbers: Vec<i64>,
    pub table: String,
}

/// What one side sent.
#[derive(Debug, Default)]
pub struct Log {
    /// Texts, but for BEGIN and COMMIT.
    pub prepared: BTreeSet<String>,
    /// In order, by connection.
    pub executed: BTreeMap<u64, Vec<Logged>>,
    /// As they came, by connection.
    pub texts: BTreeMap<u64, Vec<String>>,
}

/// Logs what `work` sends.
pub fn logged(server: &Server, work: impl FnOnce()) -> Log {
    let mut admin = server.admin().unwrap();
    let own: u64 = admin.query_first("SELECT CONNECTION_ID()").unwrap().unwrap();
    for statement in [
        "SET GLOBAL log_output = 'TABLE'",
        "TRUNCATE mysql.general_log",
        "SET GLOBAL general_log = ON",
    ] {
        admin.query_drop(statement).unwrap();
    }
    work();
    admin.query_drop("SET GLOBAL general_log = OFF").unwrap();
    let text = "SELECT thread_id, command_type, CONVERT(argument USING utf8) \
                FROM mysql.general_log";
    let rows: Vec<(u64, String, String)> = admin.query(text).unwrap();
    let mut log = Log::default();
    for (connection, command, text) in rows {
        if connection == own {
            continue;
        }
        match command.as_str() {
            "Prepare" if text != "BEGIN" && text != "COMMIT" => {
                log.prepared.insert(text);
            }
            "Execute" | "Query" if !is_housekeeping(&text) => {
                log.executed.entry(connection).or_default().push(take_apart(&text));
                log.texts.entry(connection).or_default().push(text);
            }
            _ => {}
        }
    }
    log
}

/// What the client libraries say on their own.
fn is_housekeeping(text: &str) -> bool {
    text.starts_with("SET ") || text.starts_with("set ")
}

fn take_apart(text: &str) -> Logged {
    let mut logged = Logged { form: String::new(), numbers: Vec::new(), table: String::new() };
    let mut rest = text.chars().peekable();
    let (mut in_string, mut word) = (false, String::new());
    while let Some(c) = rest.next() {
        let follows_word = !word.is_empty();
        if c == '\'' {
            in_string = !in_string;
        }
        if c.is_ascii_digit() && in_string {
            logged.form.push('#');
        } else if c.is_ascii_digit() && follows_word {
            logged.table.push(c);
            if !logged.form.ends_with('#') {
                logged.form.push('#');
            }
        } else if !in_string
            && (c.is_ascii_digit() || c == '-' && rest.peek().is_some_and(char::is_ascii_digit))
        {
            let mut number = String::from(c);
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                number.push(digit);
            }
            logged.numbers.push(number.parse().unwrap());
            logged.form.push('?');
        } else {
            logged.form.push(c);
        }
        match c.is_alphanumeric() && !in_string {
            true if c.is_ascii_digit() && !follows_word => {}
            true => word.push(c),
            false => word.clear(),
        }
    }
    logged
}

/// The statements of one transaction, of which every connection's log must be made.
pub fn cycle(log: &Log, length: usize) -> Vec<String> {
    let first = log.executed.values().next().expect("a connection that sent something");
    let forms = |list: &[Logged]| list.iter().map(|s| s.form.clone()).collect::<Vec<_>>();
    let cycle = forms(&first[..length]);
    for (connection, statements) in &log.executed {
        assert!(statements.len() >= 10 * length, "only {} statements", statements.len());
        assert!(statements.len().is_multiple_of(length), "{connection}: a part of a transaction");
        for transaction in statements.chunks(length) {
            assert_eq!(forms(transaction), cycle);
        }
    }
    cycle
}

/// Smallest and largest value at each place of each statement.
pub fn bounds(log: &Log) -> BTreeMap<(String, usize), (i64, i64)> {
    let mut bounds = BTreeMap::new();
    for statement in log.executed.values().flatten() {
        for (place, &number) in statement.numbers.iter().enumerate() {
            let entry = bounds.entry((statement.form.clone(), place)).or_insert((number, number));
            *entry = (entry.0.min(number), entry.1.max(number));
        }
    }
    bounds
}

/// Widths of the ranges in each statement that has some.
pub fn widths(log: &Log) -> BTreeMap<String, BTreeSet<i64>> {
    let mut widths: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for statement in log.executed.values().flatten() {
        if statement.form.to_ascii_uppercase().contains("BETWEEN") {
            let found = widths.entry(statement.form.clone()).or_default();
            found.extend(statement.numbers.chunks(2).map(|pair| pair[1] - pair[0]));
        }
    }
    widths
}

pub fn tables(log: &Log) -> BTreeSet<&str> {
    log.executed.values().flatten().map(|statement| statement.table.as_str()).collect()
}
