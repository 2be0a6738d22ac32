//! Whether the tree is what the reference says: keys, types, units, bounds.
//!
//! This runs before serde does, because serde stops at the first type it cannot make and knows
//! neither bounds nor what was probably meant. After it, deserialising cannot fail except by a
//! mistake in this crate, and even then it fails with a place.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::allowance::{BYTES_FORMS, Bytes, CPUS_FORMS, Cpus};
use crate::quantity::{DURATION_FORMS, Millis, PERCENT_FORMS, Percent};
use crate::reference::{Key, Kind, STUDY};
use crate::source::Fault;
use crate::suggest::{allowed, closest, list};
use crate::tree::{Node, found, integer, number, ordered};
use crate::variables;

/// Checks a table against its keys. `path` is its dotted path, empty for the file itself; `span` is
/// where a missing key is reported.
pub(crate) fn table(
    keys: &'static [Key],
    table: &DeTable<'_>,
    path: &str,
    span: Range<usize>,
) -> Result<(), Fault> {
    for (name, node) in ordered(table) {
        match keys.iter().find(|key| key.name == name.get_ref().as_ref()) {
            Some(key) => value(&key.kind, node, &joined(path, key.name))?,
            None => return Err(unknown_key(keys, name.get_ref(), path, name.span())),
        }
    }
    match keys.iter().find(|key| key.default.is_none() && !table.contains_key(key.name)) {
        Some(key) => Err(missing(key, path, span)),
        None => Ok(()),
    }
}

/// Checks one value against its kind. `path` names it in messages.
pub(crate) fn value(kind: &'static Kind, node: &Node<'_>, path: &str) -> Result<(), Fault> {
    let span = node.span();
    let wrong_type = |wanted: &str| {
        Fault::new(
            span.clone(),
            format!("expected `{path}` to be {wanted}, found {}", found(node.get_ref())),
        )
    };
    let out_of_bounds =
        || Fault::new(span.clone(), format!("`{path}` must be a {}", kind.describe()));
    match kind {
        Kind::Text => match node.get_ref().as_str() {
            Some(text) => one_line(text, path, span),
            None => Err(wrong_type("a string").hint("put it in quotes")),
        },
        Kind::Integer(min, max) => match integer(node.get_ref()) {
            Some(n) if (i128::from(*min)..=i128::from(*max)).contains(&n) => Ok(()),
            Some(_) => Err(out_of_bounds()),
            None if node.get_ref().is_integer() => Err(out_of_bounds()),
            None => Err(wrong_type("a whole number").hint(kind.describe())),
        },
        Kind::Whole(min, max) => match integer(node.get_ref()) {
            Some(n) if (i128::from(*min)..=i128::from(*max)).contains(&n) => Ok(()),
            Some(_) => Err(out_of_bounds()),
            None => Err(wrong_type("a whole number").hint(kind.describe())),
        },
        Kind::Numbers => elements(node, wrong_type("an array of whole numbers"), |element| {
            match integer(element.get_ref()).is_some_and(|n| u32::try_from(n).is_ok()) {
                true => Ok(()),
                false => Err("a whole number"),
            }
        }),
        Kind::Texts => elements(node, wrong_type("an array of strings"), |element| {
            match element.get_ref().as_str() {
                Some(text) if one_line(text, path, span.clone()).is_ok() => Ok(()),
                _ => Err("one line of text"),
            }
        }),
        Kind::Bytes => match node.get_ref().as_str().map(str::parse::<Bytes>) {
            Some(Ok(_)) => Ok(()),
            Some(Err(message)) => Err(Fault::new(span, message).hint(BYTES_FORMS)),
            None => Err(wrong_type("a size").hint(BYTES_FORMS)),
        },
        Kind::Cpus => match (node.get_ref(), integer(node.get_ref())) {
            (_, Some(count)) if (1..=8191).contains(&count) => Ok(()),
            (_, Some(_)) => Err(out_of_bounds().hint(CPUS_FORMS)),
            (DeValue::String(text), _) => match text.parse::<Cpus>() {
                Ok(_) => Ok(()),
                Err(message) => Err(Fault::new(span, message).hint(CPUS_FORMS)),
            },
            _ => Err(wrong_type("processors").hint(CPUS_FORMS)),
        },
        Kind::Duration(min, max) => match node.get_ref() {
            DeValue::String(text) => match text.parse::<Millis>() {
                Ok(millis) if (*min..=*max).contains(&millis) => Ok(()),
                Ok(_) => Err(out_of_bounds()),
                Err(message) => Err(Fault::new(span, message).hint(DURATION_FORMS)),
            },
            _ => Err(wrong_type("a duration").hint(DURATION_FORMS)),
        },
        Kind::Percent => match node.get_ref() {
            DeValue::String(text) => match text.parse::<Percent>() {
                Ok(Percent(share)) if share > 0.0 && share < 1.0 => Ok(()),
                Ok(_) => Err(out_of_bounds()),
                Err(message) => Err(Fault::new(span, message).hint(PERCENT_FORMS)),
            },
            _ => Err(wrong_type("a share").hint(PERCENT_FORMS)),
        },
        Kind::Confidence => match number(node.get_ref()) {
            Some(n) if n > 0.5 && n < 1.0 => Ok(()),
            Some(_) => Err(out_of_bounds().hint("0.95 is usual")),
            None => Err(wrong_type("a number").hint(kind.describe())),
        },
        Kind::Positive => match number(node.get_ref()) {
            Some(n) if n > 0.0 && n.is_finite() => Ok(()),
            Some(_) => Err(out_of_bounds()),
            None => Err(wrong_type("a number")),
        },
        Kind::Number(min, max) => match number(node.get_ref()) {
            Some(n) if (*min..=*max).contains(&n) => Ok(()),
            Some(_) => Err(out_of_bounds()),
            None => Err(wrong_type("a number").hint(kind.describe())),
        },
        Kind::Boolean => match node.get_ref().as_bool() {
            Some(_) => Ok(()),
            None => Err(wrong_type("a boolean").hint("`true` or `false`, without quotes")),
        },
        Kind::Word(words) => match node.get_ref().as_str() {
            Some(word) if words.contains(&word) => Ok(()),
            Some(word) => Err(Fault::new(span, format!("`{word}` is not a value of `{path}`"))
                .hint(allowed(word, words.iter().copied()))),
            None => Err(wrong_type("a string").hint(format!("allowed: {}", words.join(", ")))),
        },
        Kind::Table(keys) => match node.get_ref().as_table() {
            Some(inner) => table(keys, inner, path, span),
            None => Err(wrong_type("a table")),
        },
        Kind::Choice(variants) => choice(variants, node, path),
        Kind::Tables(keys) => match node.get_ref().as_array() {
            Some(array) => array.iter().try_for_each(|element| match element.get_ref() {
                DeValue::Table(inner) => table(keys, inner, path, element.span()),
                other => Err(Fault::new(
                    element.span(),
                    format!("expected `{path}` to be tables, found {}", found(other)),
                )),
            }),
            None => Err(wrong_type("an array of tables")
                .hint(format!("write it as `[[{path}]]`, in double brackets"))),
        },
        Kind::Variables => match node.get_ref().as_table() {
            Some(variables) => ordered(variables).into_iter().try_for_each(|(name, value)| {
                variable_name(name.get_ref(), name.span())?;
                variable(value, &joined(path, name.get_ref()))
            }),
            None => Err(wrong_type("a table")),
        },
        Kind::Variable => variable(node, path),
        Kind::Lines => match node.get_ref().as_str() {
            Some(_) => Ok(()),
            None => Err(wrong_type("a string").hint("put it in quotes, `\'\'\'` for many lines")),
        },
        Kind::Params => match node.get_ref().as_table() {
            Some(params) => ordered(params)
                .into_iter()
                .try_for_each(|(name, value)| param(value, &joined(path, name.get_ref()))),
            None => Err(wrong_type("a table")),
        },
        Kind::Param => param(node, path),
        Kind::Special(_) => Ok(()),
    }
}

/// Checks every element of an array; `fits` names what one should be.
fn elements(
    node: &Node<'_>,
    no_array: Fault,
    fits: impl Fn(&Node<'_>) -> Result<(), &'static str>,
) -> Result<(), Fault> {
    let Some(array) = node.get_ref().as_array() else { return Err(no_array) };
    array.iter().try_for_each(|element| {
        fits(element).map_err(|wanted| {
            let what = found(element.get_ref());
            Fault::new(element.span(), format!("expected {wanted}, found {what}"))
        })
    })
}

/// A table of exactly one variant, as `{ host = {} }`.
fn choice(variants: &'static [Key], node: &Node<'_>, path: &str) -> Result<(), Fault> {
    let names = || variants.iter().map(|key| key.name).collect::<Vec<_>>().join(", ");
    let Some(inner) = node.get_ref().as_table() else {
        let word = node.get_ref().as_str().filter(|word| variants.iter().any(|v| v.name == *word));
        let example = word.or(variants.first().map(|key| key.name)).unwrap_or_default();
        return Err(Fault::new(
            node.span(),
            format!("expected `{path}` to be a table, found {}", found(node.get_ref())),
        )
        .hint(format!("write it as `{{ {example} = {{}} }}`; allowed: {}", names())));
    };
    let entries = ordered(inner);
    for (name, _) in &entries {
        if !variants.iter().any(|key| key.name == name.get_ref().as_ref()) {
            return Err(unknown_key(variants, name.get_ref(), path, name.span()));
        }
    }
    match entries.as_slice() {
        [] => Err(Fault::new(node.span(), format!("`{path}` names nothing"))
            .hint(format!("exactly one of: {}", names()))),
        [(name, value_node)] => {
            let variant = variants.iter().find(|key| key.name == name.get_ref().as_ref());
            match variant {
                Some(key) => value(&key.kind, value_node, &joined(path, key.name)),
                None => Ok(()),
            }
        }
        [(first, _), (second, _), ..] => {
            let second_name = second.get_ref();
            Err(Fault::new(
                second.span(),
                format!("`{path}` names both `{}` and `{second_name}`", first.get_ref()),
            )
            .hint(format!(
                "exactly one of: {}; to compare two, name them as levels of `vary = \"{path}\"`",
                names()
            )))
        }
    }
}

/// Whether a name can stand in the `[mysqld]` section and is left to the study to set.
pub(crate) fn variable_name(name: &str, span: Range<usize>) -> Result<(), Fault> {
    let normalised = variables::canonical(name);
    let plain = normalised.strip_prefix("loose_").unwrap_or(&normalised);
    let legal = !plain.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if !legal {
        return Err(Fault::new(span, format!("`{name}` cannot be the name of a server variable"))
            .hint("letters, digits, `_`, `-` and `.`"));
    }
    if variables::is_reserved(name) {
        return Err(Fault::new(span, format!("`{name}` cannot be set in a study"))
            .hint("ceteris gives each instance its own directories, socket, port and log"));
    }
    Ok(())
}

/// Whether a value can stand in the `[mysqld]` section.
fn variable(node: &Node<'_>, path: &str) -> Result<(), Fault> {
    let fault = |message: String| Err(Fault::new(node.span(), message));
    match node.get_ref() {
        DeValue::String(text) if text.chars().any(char::is_control) => {
            fault(format!("`{path}` holds a line break or another control character"))
        }
        DeValue::String(text)
            if path
                .strip_prefix("server.config.")
                .is_some_and(|name| variables::leaves_directory(name, text)) =>
        {
            fault(format!("`{path}` names a file outside of the instance's own directory")).map_err(
                |fault: Fault| {
                    fault.hint(
                        "give a plain name: it stands in the data directory, new for each run",
                    )
                },
            )
        }
        DeValue::String(_) | DeValue::Boolean(_) => Ok(()),
        value @ DeValue::Integer(_) => {
            if integer(value).is_some_and(|n| i64::try_from(n).is_ok()) {
                Ok(())
            } else {
                fault(format!("`{path}` is too large for a number")).map_err(|fault: Fault| {
                    fault.hint("write it as a string; the server reads the same")
                })
            }
        }
        value @ DeValue::Float(_) => {
            if number(value).is_some_and(f64::is_finite) {
                Ok(())
            } else {
                fault(format!("`{path}` is not a finite number"))
            }
        }
        DeValue::Table(_) => fault(format!("expected `{path}` to be one value, found a table"))
            .map_err(|fault: Fault| fault.hint("quote the name of a variable that holds a dot")),
        other => fault(format!("expected `{path}` to be one value, found {}", found(other)))
            .map_err(|fault: Fault| fault.hint("a string, a number or a boolean")),
    }
}

/// Whether a value can be a parameter of a script.
fn param(node: &Node<'_>, path: &str) -> Result<(), Fault> {
    let fits = match node.get_ref() {
        DeValue::String(_) => true,
        value @ DeValue::Integer(_) => integer(value).is_some_and(|n| i64::try_from(n).is_ok()),
        value => number(value).is_some_and(f64::is_finite),
    };
    if fits {
        return Ok(());
    }
    let what = found(node.get_ref());
    let fault = Fault::new(node.span(), format!("`{path}` cannot be {what} of this value"));
    Err(fault.hint("a number or a string"))
}

/// Text that stands in one line of a report: not blank, no control characters.
pub(crate) fn one_line(text: &str, path: &str, span: Range<usize>) -> Result<(), Fault> {
    if text.trim().is_empty() {
        Err(Fault::new(span, format!("`{path}` is empty")))
    } else if text.chars().any(char::is_control) {
        Err(Fault::new(span, format!("`{path}` holds a line break or another control character")))
    } else {
        Ok(())
    }
}

/// The fault for a key that is not in the reference.
pub(crate) fn unknown_key(
    keys: &'static [Key],
    name: &str,
    path: &str,
    span: Range<usize>,
) -> Fault {
    let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    let fault = Fault::new(span, format!("unknown key `{name}`{place}"));
    if keys.is_empty() {
        return fault.hint(format!("`{path}` has no keys yet"));
    }
    let names = || keys.iter().map(|key| key.name);
    if closest(name, names()).is_none() {
        let mut elsewhere = Vec::new();
        paths_of(STUDY, "", &mut elsewhere);
        let suffix = format!(".{name}");
        if let Some(meant) = elsewhere.iter().find(|path| path.ends_with(&suffix)) {
            return fault.hint(format!("did you mean `{meant}`? {}", list(names())));
        }
        if path == "server" {
            return fault
                .hint(format!("a server variable stands in `[server.config]`; {}", list(names())));
        }
    }
    fault.hint(allowed(name, names()))
}

fn missing(key: &Key, path: &str, span: Range<usize>) -> Fault {
    match (path, key.name) {
        ("", "question") => Fault::new(span, "the study asks no question")
            .hint("add a `[[question]]` with `name`, `vary` and `levels`"),
        ("", "workload") => Fault::new(span, "the study has no workload")
            .hint("add a table such as `[workload.oltp_read_write]`"),
        ("", name) => Fault::new(span, format!("the study has no `{name}`"))
            .hint(format!("`{name}` is {}", key.meaning)),
        (path, name) => Fault::new(span, format!("`{name}` is missing in `{path}`")).hint(format!(
            "`{name}` is {}: {}",
            key.kind.describe(),
            key.meaning
        )),
    }
}

/// The dotted path of every key below `keys`, tables themselves left out.
pub(crate) fn paths_of(keys: &'static [Key], path: &str, paths: &mut Vec<String>) {
    for key in keys {
        let here = joined(path, key.name);
        match key.kind {
            Kind::Table(inner) | Kind::Choice(inner) => paths_of(inner, &here, paths),
            _ => paths.push(here),
        }
    }
}

/// `path.name`.
pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
