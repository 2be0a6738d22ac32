//! Small pictures that need no script: the badge of a verdict and an interval with its margin.

use super::markup::Esc;

/// A verdict as word and shape; colour only repeats what they say.
pub fn badge(verdict: &str) -> String {
    let shape = match verdict {
        "higher" => r#"<path d="M8 2.5 14 13H2z"/>"#,
        "lower" => r#"<path d="M8 13.5 2 3h12z"/>"#,
        "equivalent" => r#"<path d="M2 4h12v3H2zM2 9.5h12v3H2z"/>"#,
        "confounded" => {
            r#"<path d="m3.6 1.5 4.4 4.4 4.4-4.4 2.1 2.1L10.1 8l4.4 4.4-2.1 2.1L8 10.1l-4.4 4.4-2.1-2.1L5.9
8 1.5 3.6z"/>"#
        }
        _ => {
            r#"<circle cx="8" cy="8" r="5.2" fill="none" stroke="currentColor" stroke-width="2"
stroke-dasharray="3 2.4"/>"#
        }
    };
    let class = match verdict {
        "higher" | "lower" | "equivalent" | "confounded" => verdict,
        _ => "undecided",
    };
    format!(
        "<span class=\"badge {class}\"><svg viewBox=\"0 0 16 16\" aria-hidden=\"true\">\
         {shape}</svg>{}</span>",
        Esc(verdict)
    )
}

/// An interval to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Ratio.
    pub ratio: f64,
    /// Lower end; open where absent.
    pub low: Option<f64>,
    /// Upper end; open where absent.
    pub high: Option<f64>,
}

const WIDTH: f64 = 180.0;
const HEIGHT: f64 = 20.0;

/// The half width, in log ratio, that shows all of these intervals and the margin.
pub fn reach(intervals: &[Interval], margin: f64) -> f64 {
    let ends = intervals.iter().flat_map(|i| [Some(i.ratio), i.low, i.high]).flatten();
    let widest = ends.filter(|r| r.is_finite() && *r > 0.0).map(|r| r.ln().abs());
    widest.fold((1.0 + margin).ln() * 2.0, f64::max).clamp(0.005, 6.0) * 1.08
}

/// The interval on a log scale that reaches as far to either side as `reach` says: margin shaded,
/// no change as a line. The numbers stand beside it, so screen readers pass it by.
pub fn interval(interval: Interval, margin: f64, reach: f64) -> String {
    let middle = WIDTH / 2.0;
    let x = |ratio: f64| (middle + ratio.ln() / reach * middle).clamp(1.0, WIDTH - 1.0);
    let (from, to) = (x(1.0 / (1.0 + margin)), x(1.0 + margin));
    let mut svg = format!(
        "<svg class=\"interval\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" aria-hidden=\"true\">\
         <rect class=\"margin\" x=\"{from:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\"/>\
         <path class=\"none\" d=\"M{middle} 0V{HEIGHT}\"/>",
        to - from
    );
    if interval.ratio.is_finite() && interval.ratio > 0.0 {
        let low = interval.low.filter(|r| *r > 0.0);
        let high = interval.high.filter(|r| r.is_finite());
        let (left, right) = (low.map_or(0.0, x), high.map_or(WIDTH, x));
        let cap =
            |end: Option<f64>, at: f64| end.map_or(String::new(), |_| format!("M{at:.1} 5V15"));
        svg.push_str(&format!(
            "<path class=\"reach\" d=\"M{left:.1} 10H{right:.1}{}{}\"/>\
             <circle cx=\"{:.1}\" cy=\"10\" r=\"4\"/>",
            cap(low, left),
            cap(high, right),
            x(interval.ratio)
        ));
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn badges_say_the_word_and_escape_it() {
        for verdict in ["higher", "lower", "equivalent", "undecided", "confounded"] {
            let badge = badge(verdict);
            assert!(badge.contains(&format!("badge {verdict}")), "{badge}");
            assert!(badge.ends_with(&format!("</svg>{verdict}</span>")), "{badge}");
        }
        assert!(!badge("<i>").contains("<i>"));
    }

    #[test]
    fn intervals_stay_in_their_box() {
        let open = Interval { ratio: 0.3, low: None, high: None };
        let narrow = Interval { ratio: 1.01, low: Some(1.0), high: Some(1.02) };
        let reach = reach(&[open, narrow], 0.01);
        assert!(reach >= 0.3f64.ln().abs());
        let svg = interval(open, 0.01, reach);
        assert!(svg.contains("M0.0 10H180.0\""), "open ends have no caps: {svg}");
        assert!(interval(narrow, 0.01, reach).matches("5V15").count() == 2);
        let nothing = interval(Interval { ratio: f64::NAN, low: None, high: None }, 0.01, reach);
        assert!(!nothing.contains("circle") && !nothing.contains("NaN"), "{nothing}");
    }
}
