//! A workload of the user's own.
//!
//! This crate touches no files: whoever reads the study reads the script too and puts its text
//! here, before anything is planned. So plan, result and request carry the text itself, and a
//! result can be repeated when the file has long changed.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A script of `docs/scripts.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Its path, as written in the study: relative to the study's own directory.
    pub file: Option<String>,
    /// Values in place of those in its `[params]`.
    pub params: BTreeMap<String, Param>,
    /// What it says. Where a study gives this itself, the file is not read.
    pub text: Option<String>,
}

impl Script {
    /// What errors call it.
    pub fn name(&self) -> &str {
        self.file.as_deref().unwrap_or("the script")
    }
}

/// Value of a parameter. Read by hand and not by `serde(untagged)`, which would lose the place of
/// an error.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Param {
    /// A whole number.
    Integer(i64),
    /// A fraction; finite.
    Float(f64),
    /// A piece of SQL, such as a storage engine.
    Text(String),
}

impl Param {
    /// As a command line gives it.
    pub fn from_word(word: &str) -> Param {
        let number = || word.parse().ok().filter(|number: &f64| number.is_finite());
        match word.parse() {
            Ok(integer) => Param::Integer(integer),
            Err(_) => number().map_or_else(|| Param::Text(word.to_owned()), Param::Float),
        }
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Integer(value) => value.fmt(f),
            Param::Float(value) => value.fmt(f),
            Param::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ParamVisitor)
    }
}

struct ParamVisitor;

impl Visitor<'_> for ParamVisitor {
    type Value = Param;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a string")
    }

    fn visit_i64<E: de::Error>(self, integer: i64) -> Result<Param, E> {
        Ok(Param::Integer(integer))
    }

    fn visit_u64<E: de::Error>(self, integer: u64) -> Result<Param, E> {
        i64::try_from(integer).map(Param::Integer).map_err(|_| E::custom("too large a number"))
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<Param, E> {
        if float.is_finite() {
            Ok(Param::Float(float))
        } else {
            Err(E::custom("not a finite number"))
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Param, E> {
        Ok(Param::Text(text.to_owned()))
    }
}
