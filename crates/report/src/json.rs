//! The JSON contract.

use store::{Answer, ResultFile, Show};

/// Version of the contract, `docs/show.schema.json`.
const SCHEMA: u32 = 1;

/// The answers in the shape of `docs/show.schema.json`, which has no place for a figure that is no
/// finite number: an effect without a ratio (no block has both levels yet) is left out, an open
/// end of an interval is absent, and a run without a transaction has rate and percentile 0.
///
/// # Errors
/// The result file's.
pub fn show(file: &ResultFile) -> crate::Result<Show> {
    let questions = file.answers()?.into_iter().map(finite).collect();
    let caveats = crate::caveats::of_file(file)?;
    Ok(Show { schema: SCHEMA, study: file.header()?.title, caveats, questions })
}

fn finite(mut answer: Answer) -> Answer {
    answer.effects.retain(|effect| effect.ratio.is_finite());
    for effect in &mut answer.effects {
        effect.low = effect.low.filter(|low| low.is_finite());
        effect.high = effect.high.filter(|high| high.is_finite());
    }
    for run in &mut answer.runs {
        for figure in [&mut run.tps, &mut run.p95_ms] {
            if !figure.is_finite() {
                *figure = 0.0;
            }
        }
    }
    answer
}
