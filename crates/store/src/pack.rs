//! How numbers lie in the file: little-endian doubles, zlib. Chosen so that Python's standard
//! library reads it; docs/result-file.md shows how.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// The bytes of some numbers; every bit is kept, also those of NaN.
pub(crate) fn pack(numbers: &[f64]) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    for number in numbers {
        // Writing to a vector cannot fail.
        let _ = packed.write_all(&number.to_le_bytes());
    }
    packed.finish().unwrap_or_default()
}

/// The numbers, or nothing where the bytes are not exactly `points` packed ones. Stops reading at
/// one byte too many: a hostile file cannot blow up in memory.
pub(crate) fn unpack(data: &[u8], points: usize) -> Option<Vec<f64>> {
    let wanted = points.checked_mul(8)?;
    let mut bytes = Vec::new();
    ZlibDecoder::new(data).take(wanted as u64 + 1).read_to_end(&mut bytes).ok()?;
    let (numbers, rest) = bytes.as_chunks::<8>();
    if numbers.len() != points || !rest.is_empty() {
        return None;
    }
    Some(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
}

#[cfg(test)]
mod tests {
    use super::{pack, unpack};

    #[test]
    fn only_the_announced_number_of_doubles_is_taken() {
        let packed = pack(&[1.0, -0.0]);
        assert_eq!(unpack(&packed, 2), Some(vec![1.0, -0.0]));
        for points in [0, 1, 3, usize::MAX] {
            assert_eq!(unpack(&packed, points), None);
        }
        assert_eq!(unpack(&pack(&[]), 0), Some(vec![]));
        assert_eq!(unpack(b"not zlib", 1), None);
    }
}
