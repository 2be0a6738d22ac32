//! Quantities of the command line, as people and sysbench write them. Each function is a parser
//! of one argument; its error is the reason that clap shows.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use load::{Batching, Stage};
use study::{Millis, Percent};

/// Connections that may be asked for: more than one address can have to a port by far.
pub const CONNECTIONS_MAX: u32 = 1_000_000;

/// `60` (seconds, as sysbench has them), `1.5`, `250ms`, `5m`.
pub fn time(text: &str) -> Result<Duration, String> {
    if text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return text.parse::<Millis>().map(Millis::duration);
    }
    let seconds: f64 = text.trim().parse().map_err(|_| {
        "write a number of seconds, or a number and a unit: 60, 250ms, 90s, 5m".to_owned()
    })?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "no such time".to_owned())
}

/// A rate per second, not negative; 0 is the word for none, as in sysbench.
pub fn rate(text: &str) -> Result<f64, String> {
    match text.trim().replace('_', "").parse::<f64>() {
        Ok(rate) if (0.0..=load::RATE_MAX).contains(&rate) => Ok(rate),
        _ => Err("write a number of transactions per second, up to 100 million".to_owned()),
    }
}

/// How many connections.
pub fn connections(text: &str) -> Result<u32, String> {
    match text.trim().replace('_', "").parse() {
        Ok(n @ 1..=CONNECTIONS_MAX) => Ok(n),
        _ => Err(format!("write a whole number from 1 to {CONNECTIONS_MAX}, such as 8000")),
    }
}

/// Whole seconds between two lines.
pub fn report_interval(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| {
        "write whole seconds, 1 or more: lines are told of whole seconds; 0 tells none".to_owned()
    })
}

/// `5%`, or `off`.
pub fn batching(text: &str) -> Result<Batching, String> {
    if text == "off" {
        return Ok(Batching::Off);
    }
    match text.parse::<Percent>() {
        Ok(Percent(share)) if share > 0.0 && share < 1.0 => Ok(Batching::Share(share)),
        Ok(_) => Err("a share lies above 0 % and below 100 %".to_owned()),
        Err(why) => Err(format!("{why}; write `off`, or a share such as 5%")),
    }
}

/// `at=30s,ramp=10s,rate=500,connections=32`
pub fn stage(text: &str) -> Result<Stage, String> {
    let mut stage = Stage::default();
    let mut at = None;
    let mut given: Vec<&str> = Vec::new();
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let key = key.trim();
        if given.contains(&key) {
            return Err(format!("it names `{key}` twice; write a --stage for each"));
        }
        given.push(key);
        match key {
            "at" => at = Some(time(value)?),
            "ramp" => stage.ramp = time(value)?,
            // 0 is a pause here: a stage cannot close the loop.
            "rate" => stage.rate_per_second = Some(rate(value)?),
            "connections" => match value.trim().parse() {
                Ok(n @ 1..=CONNECTIONS_MAX) => stage.connections = Some(n),
                _ => return Err("connections is a whole number above 0".to_owned()),
            },
            other => {
                return Err(format!("`{other}` is none of at, ramp, rate, connections"));
            }
        }
    }
    stage.at = at.ok_or("it lacks `at`, the time at which it begins")?;
    if stage.rate_per_second.is_none() && stage.connections.is_none() {
        return Err("it changes nothing: give rate, connections or both".to_owned());
    }
    Ok(stage)
}

/// Codes of errors, joined by commas; empty for none.
pub fn error_codes(text: &str) -> Result<ErrorCodes, String> {
    if text == "all" {
        return Err("name the codes; ceteris repeats no transaction that it does not know \
                    to be repeatable"
            .to_owned());
    }
    let codes = text.split(',').map(str::trim).filter(|code| !code.is_empty());
    let codes: Result<Vec<u16>, _> = codes.map(str::parse).collect();
    codes.map(ErrorCodes).map_err(|_| "write error codes with commas: 1213,1205".to_owned())
}

/// A list that is one value of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCodes(pub Vec<u16>);

/// One of some words, each of which stands for a value.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    words: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = words.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(names).try_map(move |given| {
        words.iter().find(|(name, _)| *name == given).map(|(_, value)| *value).ok_or("no such word")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        let ms = Duration::from_millis;
        for (text, expected) in
            [("60", ms(60_000)), ("1.5", ms(1500)), ("250ms", ms(250)), ("5m", ms(300_000))]
        {
            assert_eq!(time(text), Ok(expected), "{text}");
        }
        for text in ["", "-1", "1d", "soon", "1e400"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_stage_says_when_and_what() {
        let expected = Stage {
            at: Duration::from_secs(30),
            ramp: Duration::from_secs(10),
            rate_per_second: Some(500.0),
            connections: Some(32),
        };
        assert_eq!(stage("at=30s,ramp=10s,rate=500,connections=32"), Ok(expected));
        assert_eq!(stage("at=1,rate=0").map(|stage| stage.rate_per_second), Ok(Some(0.0)));
        for (text, reason) in [
            ("at=1,connections=0", "above 0"),
            ("at=1,rate=1e9", "100 million"),
            ("rate=5", "lacks `at`"),
            ("at=1", "changes nothing"),
            ("at=1,speed=2", "none of at, ramp"),
            ("at=1,connections=some", "whole number"),
            ("at=1,at=2,connections=5", "`at` twice"),
            ("at=1,rate=5,rate=5", "`rate` twice"),
        ] {
            assert!(stage(text).is_err_and(|why| why.contains(reason)), "{text}");
        }
    }

    #[test]
    fn counts_are_whole_and_say_so() {
        assert_eq!((connections("8000"), connections("8_000")), (Ok(8000), Ok(8000)));
        for text in ["0", "8k", "-1", "1.5", "1000001"] {
            assert!(connections(text).is_err_and(|why| why.contains("whole number")), "{text}");
        }
        assert_eq!((report_interval("0"), report_interval("10")), (Ok(0), Ok(10)));
        for text in ["0.5", "1s", "-1"] {
            assert!(report_interval(text).is_err_and(|why| why.contains("whole seconds")));
        }
    }

    #[test]
    fn shares_and_codes() {
        assert_eq!(batching("off"), Ok(Batching::Off));
        assert_eq!(batching("5%"), Ok(Batching::Share(0.05)));
        assert!(batching("5").is_err() && batching("100%").is_err());
        assert_eq!(error_codes("1213, 1205"), Ok(ErrorCodes(vec![1213, 1205])));
        assert_eq!(error_codes(""), Ok(ErrorCodes(vec![])));
        assert!(error_codes("all").is_err() && error_codes("deadlock").is_err());
    }
}
