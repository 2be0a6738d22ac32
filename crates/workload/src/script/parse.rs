//! Expressions as people write them: `uniform(1, rows)`, `from + range_size - 1`.
//!
//! One pass that reads, looks names up and folds what is known before the run. Nothing is deeper
//! than [`DEPTH_MAX`], so that no text can exhaust the stack.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use study::{Param, allowed};

use super::fault::Fault;
use super::values::{Expr, Operator};
use crate::distribution::{Ids, Law, Special};

const DEPTH_MAX: usize = 32;
/// Bytes of a text that is made up.
const TEXT_BYTES_MAX: i64 = 65_535;

/// The functions, each with what it takes.
const FUNCTIONS: [(&str, &str); 9] = [
    ("uniform", "uniform(low, high)"),
    ("gaussian", "gaussian(low, high) or gaussian(low, high, iterations)"),
    ("special", "special(low, high) or special(low, high, iterations, hot_percent, draws_percent)"),
    ("pareto", "pareto(low, high) or pareto(low, high, h)"),
    ("zipfian", "zipfian(low, high) or zipfian(low, high, exponent)"),
    ("sequence", "sequence(start) or sequence(start, step)"),
    ("digits", "digits(groups) or digits(groups, digits in a group)"),
    ("letters", "letters(length) or letters(least, most)"),
    ("pick", "pick('one', 'another', ...)"),
];

/// What names mean where an expression stands.
pub(super) struct Scope<'s> {
    pub(super) params: &'s BTreeMap<String, Param>,
    /// Variables, the later hiding the earlier: name, slot, whether it is text.
    pub(super) variables: &'s [(String, usize, bool)],
    /// `row` and `copy` mean something: the values of a table's column.
    pub(super) in_column: bool,
    /// Parameters that were looked up.
    pub(super) used: &'s mut BTreeSet<String>,
}

/// What an expression turned out to be.
#[derive(Clone, Debug)]
pub(super) enum Parsed {
    Integer(Expr),
    Text(Expr),
    Float(f64),
}

/// Reads an expression; faults are at places of `text`.
pub(super) fn expression(text: &str, scope: &mut Scope<'_>) -> Result<Parsed, Fault> {
    let mut parser = Parser { text, at: 0, depth: 0, scope };
    let parsed = parser.sum()?;
    parser.skip_blanks();
    if parser.at < text.len() {
        let what = parser.rest().chars().next().unwrap_or(' ');
        let end = parser.at + what.len_utf8();
        return Err(Fault::new(parser.at..end, format!("unexpected `{what}`"))
            .hint("an operator (+ - * / %) or the end of the expression"));
    }
    Ok(parsed)
}

struct Parser<'t, 's, 'p> {
    text: &'t str,
    at: usize,
    depth: usize,
    scope: &'s mut Scope<'p>,
}

impl<'t> Parser<'t, '_, '_> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let there = self.rest().starts_with(wanted);
        self.at += if there { wanted.len_utf8() } else { 0 };
        there
    }

    fn sum(&mut self) -> Result<Parsed, Fault> {
        let operators = [('+', Operator::Add), ('-', Operator::Subtract)];
        self.chain(&operators, Self::product)
    }

    fn product(&mut self) -> Result<Parsed, Fault> {
        let operators =
            [('*', Operator::Multiply), ('/', Operator::Divide), ('%', Operator::Remainder)];
        self.chain(&operators, Self::unary)
    }

    fn chain(
        &mut self,
        operators: &[(char, Operator)],
        next: fn(&mut Self) -> Result<Parsed, Fault>,
    ) -> Result<Parsed, Fault> {
        self.skip_blanks();
        let from = self.at;
        let mut left = next(self)?;
        let mut links = 0;
        loop {
            let found = operators.iter().find(|(sign, _)| self.take(*sign));
            let Some((_, operator)) = found else { return Ok(left) };
            links += 1;
            if links > DEPTH_MAX {
                return Err(self.too_deep());
            }
            self.skip_blanks();
            let right_from = self.at;
            let right = next(self)?;
            let (a, b) = (integer(left, from..right_from)?, integer(right, right_from..self.at)?);
            left = Parsed::Integer(match (a, b) {
                (Expr::Int(a), Expr::Int(b)) => Expr::Int(operator.of(a, b).ok_or_else(|| {
                    Fault::new(from..self.at, "this cannot be computed")
                        .hint("it divides by zero or exceeds a signed 64-bit number")
                })?),
                (a, b) => Expr::Binary(*operator, Box::new(a), Box::new(b)),
            });
        }
    }

    fn too_deep(&self) -> Fault {
        Fault::new(self.at..self.at + 1, "the expression is too long")
            .hint("draw a part of it into a variable of its own")
    }

    fn unary(&mut self) -> Result<Parsed, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.too_deep());
        }
        self.skip_blanks();
        let from = self.at;
        let parsed = if self.take('-') {
            match self.unary()? {
                Parsed::Float(value) => Parsed::Float(-value),
                inner => Parsed::Integer(match integer(inner, from..self.at)? {
                    // The smallest number cannot be written, as in most languages.
                    Expr::Int(value) => Expr::Int(value.saturating_neg()),
                    inner => Expr::Negate(Box::new(inner)),
                }),
            }
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(parsed)
    }

    fn primary(&mut self) -> Result<Parsed, Fault> {
        let from = self.at;
        if self.take('(') {
            let inner = self.sum()?;
            return if self.take(')') { Ok(inner) } else { Err(self.unclosed(from)) };
        }
        match self.rest().chars().next() {
            Some('\'') => self.quoted(from),
            Some(c) if c.is_ascii_digit() => self.number(from),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = name_at(self.rest());
                self.at += name.len();
                if self.take('(') { self.call(name, from) } else { self.name(name, from) }
            }
            Some(c) => Err(Fault::new(from..from + c.len_utf8(), format!("unexpected `{c}`"))
                .hint("a number, a name, a function or a text in single quotes")),
            None => Err(Fault::new(from..from + 1, "the expression ends too soon")
                .hint("a number, a name, a function or a text in single quotes")),
        }
    }

    fn unclosed(&self, from: usize) -> Fault {
        Fault::new(from..from + 1, "this is never closed").hint("add a `)`")
    }

    fn quoted(&mut self, from: usize) -> Result<Parsed, Fault> {
        let mut text = String::new();
        let mut rest = self.rest()[1..].chars().peekable();
        while let Some(c) = rest.next() {
            if c == '\'' && rest.next_if_eq(&'\'').is_none() {
                self.at = self.text.len() - rest.collect::<String>().len();
                return Ok(Parsed::Text(Expr::Text(text.into_bytes().into())));
            }
            text.push(c);
        }
        Err(Fault::new(from..from + 1, "this text is never closed").hint("add a `'`"))
    }

    fn number(&mut self, from: usize) -> Result<Parsed, Fault> {
        let length = self.rest().bytes().take_while(|b| b.is_ascii_digit() || b"._".contains(b));
        let length = length.count();
        let digits = self.rest()[..length].replace('_', "");
        self.at += length;
        if digits.contains('.') {
            let value = digits.parse().ok().filter(|value: &f64| value.is_finite());
            return value.map(Parsed::Float).ok_or_else(|| {
                Fault::new(from..self.at, "this is no number").hint("such as 12 or 0.8")
            });
        }
        digits.parse().map(|value| Parsed::Integer(Expr::Int(value))).map_err(|_| {
            Fault::new(from..self.at, "this number is too large").hint("at most 2^63 - 1")
        })
    }

    fn name(&mut self, name: &str, from: usize) -> Result<Parsed, Fault> {
        let variable = self.scope.variables.iter().rev().find(|(known, ..)| known == name);
        if let Some((_, slot, text)) = variable {
            let slot = Expr::Slot(*slot);
            return Ok(if *text { Parsed::Text(slot) } else { Parsed::Integer(slot) });
        }
        match (name, self.scope.in_column) {
            ("row", true) => return Ok(Parsed::Integer(Expr::Row)),
            ("copy", true) => return Ok(Parsed::Integer(Expr::Copy)),
            _ => {}
        }
        if let Some(param) = self.scope.params.get(name) {
            self.scope.used.insert(name.to_owned());
            return Ok(match param {
                Param::Integer(value) => Parsed::Integer(Expr::Int(*value)),
                Param::Float(value) => Parsed::Float(*value),
                Param::Text(text) => Parsed::Text(Expr::Text(text.as_bytes().into())),
            });
        }
        let at = from..from + name.len();
        if let Some((_, usage)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
            return Err(Fault::new(at, format!("`{name}` is a function")).hint(*usage));
        }
        let mut known: Vec<&str> =
            self.scope.variables.iter().map(|(known, ..)| known.as_str()).collect();
        known.extend(self.scope.params.keys().map(String::as_str));
        if self.scope.in_column {
            known.extend(["row", "copy"]);
        }
        Err(Fault::new(at, format!("there is no `{name}`"))
            .hint(allowed(name, known.iter().copied())))
    }

    fn call(&mut self, name: &str, from: usize) -> Result<Parsed, Fault> {
        let at = from..from + name.len();
        let Some((_, usage)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let names = FUNCTIONS.map(|(known, _)| known);
            return Err(Fault::new(at, format!("there is no function `{name}`"))
                .hint(allowed(name, names.iter().copied())));
        };
        let mut arguments = Vec::new();
        if !self.take(')') {
            loop {
                self.skip_blanks();
                let from = self.at;
                let argument = self.sum()?;
                arguments.push((argument, from..self.at));
                if self.take(')') {
                    break;
                }
                if !self.take(',') {
                    return Err(self.unclosed(at.end));
                }
            }
        }
        function(name, &arguments, at.start..self.at, usage)
    }
}

type Argument = (Parsed, Range<usize>);

fn function(
    name: &str,
    arguments: &[Argument],
    at: Range<usize>,
    usage: &'static str,
) -> Result<Parsed, Fault> {
    let wrong = || Fault::new(at.clone(), format!("`{name}` does not take this")).hint(usage);
    let whole = |index: usize, least: i64, most: i64| {
        let (argument, at) = arguments.get(index).ok_or_else(wrong)?;
        match argument {
            Parsed::Integer(Expr::Int(value)) if (least..=most).contains(value) => Ok(*value),
            Parsed::Integer(Expr::Int(_)) => {
                Err(Fault::new(at.clone(), format!("this must lie between {least} and {most}"))
                    .hint(usage))
            }
            _ => Err(Fault::new(at.clone(), "this must be a whole number known before the run")
                .hint(usage)),
        }
    };
    let shape = |index: usize, default: f64, least: f64, most: f64| {
        let Some((argument, at)) = arguments.get(index) else { return Ok(default) };
        let value = match argument {
            Parsed::Integer(Expr::Int(value)) => *value as f64,
            Parsed::Float(value) => *value,
            _ => f64::NAN,
        };
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        Err(Fault::new(at.clone(), format!("this must be a number between {least} and {most}"))
            .hint(usage))
    };
    let or = |index: usize, default: i64, least: i64, most: i64| match arguments.len() > index {
        true => whole(index, least, most),
        false => Ok(default),
    };
    let draw = |law: Law| -> Result<Parsed, Fault> {
        let low = whole(0, i64::MIN, i64::MAX)?;
        let high = whole(1, i64::MIN, i64::MAX)?;
        // Draws are made with doubles, which hold so many whole numbers.
        match high.checked_sub(low) {
            Some(width @ 0..=0x1f_ffff_ffff_ffff) => {
                let ids = Ids::between(1, width as u64 + 1, law);
                Ok(Parsed::Integer(Expr::Draw { low, ids }))
            }
            _ => Err(Fault::new(at.clone(), format!("nothing lies between {low} and {high}"))
                .hint("the lower end comes first, and the ends are less than 2^53 apart")),
        }
    };
    let count = match name {
        "uniform" => 2..=2,
        "gaussian" | "pareto" | "zipfian" => 2..=3,
        "special" => 2..=5,
        "pick" => 1..=1000,
        _ => 1..=2,
    };
    if !count.contains(&arguments.len()) {
        return Err(wrong());
    }
    Ok(match name {
        "uniform" => draw(Law::Uniform)?,
        "gaussian" => draw(Law::Gaussian { iterations: or(2, 12, 1, 1000)? as u32 })?,
        "special" => draw(Law::Special(Special {
            iterations: or(2, 12, 1, 1000)? as u32,
            hot_percent: or(3, 1, 0, 100)? as u32,
            hot_draws_percent: or(4, 75, 0, 99)? as u32,
        }))?,
        "pareto" => draw(Law::Pareto { h: shape(2, 0.2, 0.001, 0.999)? })?,
        "zipfian" => draw(Law::Zipfian { exponent: shape(2, 0.8, 0.0, 100.0)? })?,
        "sequence" => Parsed::Integer(Expr::Sequence {
            start: whole(0, i64::MIN, i64::MAX)?,
            step: or(1, 1, i64::MIN, i64::MAX)?,
        }),
        "digits" => Parsed::Text(Expr::Digits {
            groups: whole(0, 1, 1000)? as u32,
            width: or(1, 11, 1, 18)? as u32,
        }),
        "letters" => {
            let least = whole(0, 0, TEXT_BYTES_MAX)?;
            let most = or(1, least, least, TEXT_BYTES_MAX)?;
            Parsed::Text(Expr::Letters { least: least as u64, most: most as u64 })
        }
        "pick" => {
            let texts = arguments.iter().map(|(argument, at)| match argument {
                Parsed::Text(Expr::Text(text)) => Ok(text.clone()),
                _ => {
                    Err(Fault::new(at.clone(), "this must be a text in single quotes").hint(usage))
                }
            });
            Parsed::Text(Expr::Pick(texts.collect::<Result<_, _>>()?))
        }
        _ => return Err(wrong()),
    })
}

fn integer(parsed: Parsed, at: Range<usize>) -> Result<Expr, Fault> {
    match parsed {
        Parsed::Integer(expr) => Ok(expr),
        _ => Err(Fault::new(at, "only whole numbers can be computed with")
            .hint("texts and fractions stand alone or as what a function takes")),
    }
}

/// The name that `text` begins with; empty if it begins with none.
pub(super) fn name_at(text: &str) -> &str {
    let is_name = |(at, c): &(usize, char)| {
        c.is_ascii_alphabetic() || *c == '_' || (*at > 0 && c.is_ascii_digit())
    };
    let length = text.char_indices().take_while(is_name).count();
    &text[..length]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use load::Rng;

    use super::*;
    use crate::script::values::{Frame, Place, Value};

    fn read(text: &str) -> Result<Parsed, Fault> {
        let params = BTreeMap::from([
            ("rows".to_owned(), Param::Integer(50)),
            ("theta".to_owned(), Param::Float(0.9)),
        ]);
        let variables = [("from".to_owned(), 0, false), ("name".to_owned(), 1, true)];
        let used = &mut BTreeSet::new();
        let mut scope = Scope { params: &params, variables: &variables, in_column: true, used };
        expression(text, &mut scope)
    }

    fn value(text: &str) -> (Value, String) {
        let (Parsed::Integer(expr) | Parsed::Text(expr)) = read(text).unwrap() else { panic!() };
        let mut frame = Frame::default();
        frame.clear(2);
        frame.slots[0] = Value::Int(7);
        let value = expr.value(&mut frame, Place { number: 4, copy: 3 }, &mut Rng::new(1, 2, 3, 0));
        (value, String::from_utf8(frame.text).unwrap())
    }

    #[test]
    fn numbers_are_computed_as_people_read_them() {
        for (text, number) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3 - -1", 10),
            ("10 - 4 - 3", 3),
            ("17 % 5 / 2", 1),
            ("from + rows - 1", 56),
            ("row * 10 + copy", 53),
            ("1_000 * 2", 2000),
            ("sequence(100, 10)", 140),
            ("uniform(rows, rows)", 50),
            ("zipfian(-3, -3, theta)", -3),
            ("--5", 5),
        ] {
            assert_eq!(value(text).0, Value::Int(number), "{text}");
        }
        assert_eq!(value("from / (from - 7)").0, Value::Null);
        assert_eq!(value("9223372036854775807 + from").0, Value::Null);
    }

    #[test]
    fn texts_have_their_shapes() {
        assert_eq!(value("'it''s'").1, "it's");
        assert_eq!(value("digits(2, 3)").1.len(), 7);
        assert_eq!(value("letters(5)").1.len(), 5);
        assert!((2..=4).contains(&value("letters(2, 4)").1.len()));
        assert!(["a", "b"].contains(&value("pick('a', 'b')").1.as_str()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, at, message, hint) in [
            ("1 +", 3..4, "ends too soon", "a number"),
            ("", 0..1, "ends too soon", "a number"),
            ("(1", 0..1, "never closed", ")"),
            ("uniform(1, rows", 7..8, "never closed", ")"),
            ("1 1", 2..3, "unexpected `1`", "an operator"),
            ("1 + ?", 4..5, "unexpected `?`", "a number"),
            ("2 * rosw", 4..8, "there is no `rosw`", "did you mean `rows`? allowed: from, name"),
            ("uniforn(1, 2)", 0..7, "no function `uniforn`", "did you mean `uniform`?"),
            ("uniform", 0..7, "is a function", "uniform(low, high)"),
            ("uniform(1)", 0..10, "does not take", "uniform(low, high)"),
            ("uniform(9, 1)", 0..13, "nothing lies between", "lower end"),
            ("uniform(1, from)", 11..15, "known before the run", ""),
            ("zipfian(1, 2, 'a')", 14..17, "between 0 and 100", ""),
            ("1 + name", 4..8, "only whole numbers", ""),
            ("theta + 1", 0..8, "only whole numbers", ""),
            ("1 / 0", 0..5, "cannot be computed", "divides by zero"),
            ("'open", 0..1, "never closed", "'"),
            ("99999999999999999999", 0..20, "too large", ""),
            ("1.2.3", 0..5, "no number", ""),
            ("letters(70000)", 8..13, "between 0 and 65535", ""),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.message.contains(message), "{text}: {}", fault.message);
            assert_eq!(fault.span, at, "{text}");
            assert!(fault.hint.unwrap_or_default().contains(hint), "{text}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let alphabet = ["(", ")", "-", "'", "1", "9.", "é", "uniform(", ",", "rows", " ", "%", "_"];
        let mut rng = Rng::new(1, 1, 1, 0);
        for _ in 0..20_000 {
            let length = rng.below(12);
            let text: String = (0..length).map(|_| alphabet[rng.below(13) as usize]).collect();
            let _ = read(&text);
        }
        assert!(read(&"(".repeat(100_000)).is_err());
        assert!(read(&"-".repeat(100_000)).is_err());
        assert!(read(&"1+".repeat(100_000)).is_err());
    }
}
