//! Quantities as people write them in a study: `"60s"`, `"1.5 %"`.
//!
//! Each has one parser, used by serde and by the study's own check (which adds the place), and one
//! canonical text, so that what is written into a result reads back as the same value.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time in whole milliseconds, written `"250ms"`, `"60s"`, `"5m"` or `"1h"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

/// A share of one hundred, written `"1%"`; held as a fraction (`0.01`).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

/// Longest first, so that the canonical text takes the coarsest unit that fits.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// What a duration may look like, for hints.
pub(crate) const DURATION_FORMS: &str =
    "a number and a unit, one of ms, s, m, h, such as \"250ms\", \"60s\", \"1.5s\", \"5m\"";

/// What a share may look like, for hints.
pub(crate) const PERCENT_FORMS: &str = "a number and a percent sign, such as \"1%\" or \"0.5 %\"";

impl Millis {
    /// From whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Millis(seconds * 1000)
    }

    /// As the standard library's type.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl FromStr for Millis {
    type Err = String;

    /// # Errors
    /// A sentence that says what is wrong with the text.
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split_unit(text)
            .ok_or_else(|| format!("`{text}` is not a duration: no number at its start"))?;
        if unit.is_empty() {
            return Err(format!("the duration `{text}` has no unit"));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("`{unit}` is not a unit of time"));
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let too_long = || format!("the duration `{text}` is too long");
        let whole: u64 = whole.parse().map_err(|_| too_long())?;
        let mut millis = whole.checked_mul(*scale).ok_or_else(too_long)?;
        // Digit by digit in whole numbers: 0.1 h must be 360 000 ms and not one less.
        let mut remaining = *scale;
        for digit in fraction.trim_end_matches('0').bytes() {
            if !remaining.is_multiple_of(10) {
                return Err(format!("the duration `{text}` is finer than a millisecond"));
            }
            remaining /= 10;
            let part = u64::from(digit - b'0') * remaining;
            millis = millis.checked_add(part).ok_or_else(too_long)?;
        }
        Ok(Millis(millis))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let fits = UNITS.iter().find(|(_, scale)| self.0.is_multiple_of(*scale));
        let (unit, scale) = fits.unwrap_or(&("ms", 1));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

impl FromStr for Percent {
    type Err = String;

    /// # Errors
    /// A sentence that says what is wrong with the text.
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split_unit(text)
            .ok_or_else(|| format!("`{text}` is not a share: no number at its start"))?;
        if unit != "%" {
            return Err(format!("the share `{text}` must end in a percent sign"));
        }
        match number.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Percent(number / 100.0)),
            _ => Err(format!("the share `{text}` is too large")),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The shortest text that reads back as the same fraction: 0.07 * 100 is 7.000000000000001,
        // which nobody wrote.
        let scaled = self.0 * 100.0;
        for digits in 0..18 {
            let text = format!("{scaled:.digits$}");
            if text.parse::<f64>().is_ok_and(|read| read / 100.0 == self.0) {
                return write!(f, "{text}%");
            }
        }
        write!(f, "{scaled}%")
    }
}

/// The unsigned decimal number at the start, and the rest without the space between them. Always
/// a digit before and after a decimal point.
fn split_unit(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    if whole == 0 {
        return None;
    }
    let mut end = whole;
    if let Some(rest) = text[whole..].strip_prefix('.') {
        match digits(rest) {
            0 => return None,
            fraction => end += 1 + fraction,
        }
    }
    Some((&text[..end], text[end..].trim_start()))
}

/// Reads a quantity from text alone, so that a bare number is told about units.
struct QuantityVisitor<T> {
    forms: &'static str,
    quantity: std::marker::PhantomData<T>,
}

impl<T: FromStr<Err = String>> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.forms)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let quantity = std::marker::PhantomData;
        d.deserialize_str(QuantityVisitor { forms: DURATION_FORMS, quantity })
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let quantity = std::marker::PhantomData;
        d.deserialize_str(QuantityVisitor { forms: PERCENT_FORMS, quantity })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_as_people_write_them() {
        let cases = [
            ("250ms", 250, "250ms"),
            ("60s", 60_000, "1m"),
            ("90s", 90_000, "90s"),
            ("1.5s", 1_500, "1500ms"),
            ("0.1h", 360_000, "6m"),
            (" 5 m ", 300_000, "5m"),
            ("2h", 7_200_000, "2h"),
            ("0s", 0, "0s"),
            ("1.500s", 1_500, "1500ms"),
        ];
        for (text, millis, canonical) in cases {
            assert_eq!(text.parse(), Ok(Millis(millis)), "{text}");
            assert_eq!(Millis(millis).to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn durations_that_are_none() {
        let cases = [
            ("60", "no unit"),
            ("60 sec", "`sec` is not a unit of time"),
            ("-1s", "no number"),
            ("1.s", "no number"),
            (".5s", "no number"),
            ("", "no number"),
            ("1.0005s", "finer than a millisecond"),
            ("0.5ms", "finer than a millisecond"),
            ("99999999999999999999s", "too long"),
            ("9999999999999999h", "too long"),
            ("1s2", "`s2` is not a unit"),
        ];
        for (text, fragment) in cases {
            let error = text.parse::<Millis>().unwrap_err();
            assert!(error.contains(fragment), "{text}: {error}");
        }
    }

    #[test]
    fn shares_as_people_write_them() {
        for (text, fraction, canonical) in [
            ("1%", 0.01, "1%"),
            ("0.5 %", 0.005, "0.5%"),
            ("7%", 0.07, "7%"),
            ("100%", 1.0, "100%"),
        ] {
            assert_eq!(text.parse(), Ok(Percent(fraction)), "{text}");
            assert_eq!(Percent(fraction).to_string(), canonical, "{text}");
        }
        for text in ["1", "0.01", "%", "one%", "-1%", "1 percent"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_told_about_units() {
        let error = serde_json::from_str::<Millis>("60").unwrap_err().to_string();
        assert!(error.contains("one of ms, s, m, h"), "{error}");
        let error = serde_json::from_str::<Percent>("0.01").unwrap_err().to_string();
        assert!(error.contains("percent sign"), "{error}");
    }

    proptest! {
        #[test]
        fn the_canonical_text_reads_back(millis in 0_u64..10_000_000_000, share in r"[0-9]{1,4}(\.[0-9]{1,6})?") {
            prop_assert_eq!(Millis(millis).to_string().parse(), Ok(Millis(millis)));
            let share: Percent = format!("{share} %").parse().unwrap();
            let text = serde_json::to_string(&share).unwrap();
            prop_assert_eq!(serde_json::from_str::<Percent>(&text).unwrap(), share);
        }

        #[test]
        fn no_text_makes_a_quantity_panic(text in ".*") {
            let _ = text.parse::<Millis>();
            let _ = text.parse::<Percent>();
        }
    }
}
