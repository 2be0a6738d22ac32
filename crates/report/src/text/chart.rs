//! An interval on one line of text: `|` no effect, `·` the margin, `[--o--]` ratio and interval.
//!
//! The axis is the log ratio, so that half and double are equally far from no effect; all charts of
//! a question share it.

use store::AnsweredEffect;

/// The axis that the effects of a question share.
pub struct Chart {
    columns: usize,
    /// Log ratio at either end.
    reach: f64,
    margin: f64,
}

impl Chart {
    /// Wide enough for every interval, and for the margin half as much again.
    pub fn new<'a>(
        effects: impl IntoIterator<Item = &'a AnsweredEffect>,
        margin: f64,
        columns: usize,
    ) -> Chart {
        let ends = effects.into_iter().flat_map(|e| [Some(e.ratio), e.low, e.high]).flatten();
        let logs = ends.filter(|ratio| *ratio > 0.0).map(|ratio| ratio.ln().abs());
        // Never zero: with no margin and ratios of 1 the axis would have no length.
        let least = (1.5 * margin.max(0.0).ln_1p()).max(1e-6);
        Chart { columns, reach: logs.fold(least, f64::max), margin: margin.max(0.0) }
    }

    /// The line, without blanks at its end.
    pub fn line(&self, effect: &AnsweredEffect) -> String {
        let mut line = vec![' '; self.columns];
        line[self.column(1.0 / (1.0 + self.margin))..=self.column(1.0 + self.margin)].fill('·');
        line[self.column(1.0)] = '|';
        if let (Some(low), Some(high)) = (effect.low, effect.high) {
            let (low, high) = (self.column(low), self.column(high));
            if low <= high {
                line[low..=high].fill('-');
                line[low] = '[';
                line[high] = ']';
            }
        }
        line[self.column(effect.ratio)] = 'o';
        line.into_iter().collect::<String>().trim_end().to_owned()
    }

    fn column(&self, ratio: f64) -> usize {
        let middle = (self.columns / 2) as f64;
        let at = middle + ratio.max(f64::MIN_POSITIVE).ln() / self.reach * middle;
        (at.round().max(0.0) as usize).min(self.columns - 1)
    }
}
