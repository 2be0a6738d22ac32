//! HDR histograms of latencies in nanoseconds, up to 60 s: three significant digits for
//! transactions, two for statements and whatever else there are many of.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use crate::error::DriveError;
use crate::report::LatencyMs;

/// Longer ones are recorded as this.
pub(crate) const LATENCY_NS_MAX: u64 = 60_000_000_000;

/// An empty histogram, some 200 KiB, all allocated.
///
/// # Errors
/// None that can happen: the bounds are constants.
pub(crate) fn latency_histogram() -> Result<Histogram<u64>, DriveError> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
        .map_err(|error| DriveError::Internal(format!("histogram: {error}")))
}

/// An empty histogram of two significant digits, some 25 KiB. What is shorter than 64 ns, which
/// is a few readings of the clock, counts as 0.
///
/// # Errors
/// None that can happen: the bounds are constants.
pub(crate) fn coarse_histogram() -> Result<Histogram<u64>, DriveError> {
    Histogram::new_with_bounds(64, LATENCY_NS_MAX, 2)
        .map_err(|error| DriveError::Internal(format!("histogram: {error}")))
}

/// The usual figures; zeros of an empty histogram.
pub(crate) fn latency_ms(histogram: &Histogram<u64>) -> LatencyMs {
    // One of two digits has a largest value even then: the end of its lowest bucket.
    if histogram.is_empty() {
        return LatencyMs::default();
    }
    let ms = |ns: u64| ns as f64 / 1e6;
    LatencyMs {
        mean: histogram.mean() / 1e6,
        min: ms(histogram.min()),
        p50: ms(histogram.value_at_quantile(0.5)),
        p90: ms(histogram.value_at_quantile(0.9)),
        p95: ms(histogram.value_at_quantile(0.95)),
        p99: ms(histogram.value_at_quantile(0.99)),
        p999: ms(histogram.value_at_quantile(0.999)),
        max: ms(histogram.max()),
    }
}

/// The standard V2 form, uncompressed, in base64.
pub(crate) fn serialize(histogram: &Histogram<u64>) -> Result<String, DriveError> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| DriveError::Internal(format!("histogram: {error}")))?;
    Ok(encode_base64(&bytes))
}

/// Base64 as the histograms of a report are written.
pub fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads base64 as the histograms of a report are written; `None` if it is none.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    #[test]
    fn figures_are_exact_to_three_digits_and_survive_the_wire() {
        let mut histogram = latency_histogram().unwrap();
        for us in 1..=1000u64 {
            histogram.saturating_record(us * 1000);
        }
        let latency = latency_ms(&histogram);
        for (got, want) in [
            (latency.mean, 0.5005),
            (latency.p50, 0.5),
            (latency.p95, 0.95),
            (latency.p99, 0.99),
            (latency.max, 1.0),
        ] {
            assert!((got / want - 1.0).abs() < 1e-3, "{got} is not {want}");
        }
        let bytes = decode_base64(&serialize(&histogram).unwrap()).unwrap();
        let back: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        assert_eq!(back, histogram);
        assert_eq!(decode_base64("?"), None);
    }

    #[test]
    fn what_is_too_long_is_recorded_as_the_longest() {
        let mut histogram = latency_histogram().unwrap();
        histogram.saturating_record(2 * LATENCY_NS_MAX);
        assert_eq!(histogram.len(), 1);
        assert!((latency_ms(&histogram).max / 60_000.0 - 1.0).abs() < 2e-3);
        assert_eq!(latency_ms(&latency_histogram().unwrap()), LatencyMs::default());
        assert_eq!(latency_ms(&coarse_histogram().unwrap()), LatencyMs::default());
    }
}
