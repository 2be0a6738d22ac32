//! Doubles in JSON, which has no word for NaN or the infinities: `serde_json` writes them as
//! `null`. Read back as NaN, so that one figure that could not be computed never makes a whole
//! result file unreadable.

use serde::{Deserialize, Deserializer};

/// A number, or NaN for `null`.
pub(crate) fn or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}
