//! Text into HTML, numbers into text.
//!
//! Everything that comes from a result file passes through [`Esc`] on its way into the page, or
//! through [`json_for_script`] on its way into the payload. There is no third way in.

use std::fmt::{self, Display, Write};

/// Text, escaped for element content and for double-quoted attributes alike.
pub struct Esc<T>(pub T);

impl<T: Display> Display for Esc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl Write for Escaping<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                let mut rest = text;
                while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '\0']) {
                    self.0.write_str(&rest[..at])?;
                    self.0.write_str(match rest.as_bytes()[at] {
                        b'&' => "&amp;",
                        b'<' => "&lt;",
                        b'>' => "&gt;",
                        b'"' => "&quot;",
                        b'\'' => "&#39;",
                        _ => "\u{fffd}",
                    })?;
                    rest = &rest[at + 1..];
                }
                self.0.write_str(rest)
            }
        }
        write!(Escaping(f), "{}", self.0)
    }
}

/// JSON that can stand inside `<script type="application/json">`: no `<` can end the element, and
/// it is still the same JSON.
pub fn json_for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// A figure with four significant digits and grouped thousands: `12,840`, `7.103`, `0.0213`.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if size != 0.0 && size < 1e-4 {
        return format!("{value:.2e}");
    }
    let decimals = match size {
        s if s >= 999.95 => 0,
        s if s >= 99.995 => 1,
        s if s >= 9.9995 => 2,
        s if s >= 0.99995 || s == 0.0 => 3,
        _ => 4,
    };
    let text = format!("{size:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = if size == 0.0 { "" } else { fraction };
    let sign = if value < 0.0 { "−" } else { "" };
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{dot}{fraction}", grouped(whole))
}

/// A count with grouped thousands.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A ratio as percent change with its sign: `1.034` is `+3.4 %`.
pub fn change(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "–".to_owned();
    }
    let percent = (ratio - 1.0) * 100.0;
    let text = match percent.abs() {
        p if p < 9.995 => format!("{p:.2}"),
        p if p < 99.95 => format!("{p:.1}"),
        p => grouped(&format!("{p:.0}")),
    };
    let zero = text.chars().all(|c| c == '0' || c == '.');
    let sign = if zero {
        "±"
    } else if percent < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{text} %")
}

/// An interval of ratios as percent change; a ratio that is open below ends at `−100 %`.
pub fn change_interval(low: Option<f64>, high: Option<f64>) -> String {
    let low = change(low.unwrap_or(0.0));
    let high = high.map_or_else(|| "+∞".to_owned(), change);
    format!("{low} … {high}")
}

/// Time of day and date in UTC: `2026-02-03 14:05:09`, from nanoseconds since the Unix epoch.
pub fn utc(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days to civil date: Howard Hinnant, "chrono-compatible low-level date algorithms".
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// A length of time for people: `840 ms`, `12.4 s`, `31 min`.
pub fn span(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() => "–".to_owned(),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 120_000.0 => format!("{:.1} s", ms / 1e3),
        ms => format!("{:.0} min", ms / 60e3),
    }
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Least and greatest; `None` of nothing.
pub fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| v.is_finite()).fold(None, |seen, v| match seen {
        None => Some((v, v)),
        Some((low, high)) => Some((low.min(v), high.max(v))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_could_leave_its_place() {
        assert_eq!(
            Esc("</script><b a=\"1\" b='2'>&\0").to_string(),
            "&lt;/script&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;\u{fffd}"
        );
        assert_eq!(Esc(12).to_string(), "12");
        let json = serde_json::to_string("</script><!--").expect("text is JSON");
        let safe = json_for_script(&json);
        assert!(!safe.contains('<'), "{safe}");
        let back: String = serde_json::from_str(&safe).expect("still JSON");
        assert_eq!(back, "</script><!--");
    }

    #[test]
    fn figures_keep_four_digits() {
        for (value, text) in [
            (12840.4, "12,840"),
            (1234567.0, "1,234,567"),
            (999.96, "1,000"),
            (123.45, "123.5"),
            (7.1034, "7.103"),
            (0.02134, "0.0213"),
            (0.0, "0"),
            (-42.0, "−42.00"),
            (0.0000012, "1.20e-6"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(count(1_000), "1,000");
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(change(1.034), "+3.40 %");
        assert_eq!(change(0.28), "−72.0 %");
        assert_eq!(change(13.0), "+1,200 %");
        assert_eq!(change(0.999_999), "±0.00 %");
        assert_eq!(change_interval(None, Some(1.5)), "−100 % … +50.0 %");
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_827_696_000_000_000), "2000-02-29 12:34:56");
        assert_eq!(utc(-1), "1969-12-31 23:59:59");
        assert_eq!(utc(4_102_444_800_000_000_000), "2100-01-01 00:00:00");
    }

    #[test]
    fn medians_and_extents() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, f64::NAN, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(extent([2.0, -1.0, f64::INFINITY]), Some((-1.0, 2.0)));
        assert_eq!(extent([]), None);
    }
}
