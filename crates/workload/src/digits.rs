//! The random strings of the sysbench 1.x tables: groups of eleven digits joined by `-`.

use load::Rng;

/// Bytes of the column `c`: ten groups.
pub(crate) const C_BYTES: usize = 10 * 12 - 1;
/// Bytes of the column `pad`: five groups.
pub(crate) const PAD_BYTES: usize = 5 * 12 - 1;

const GROUP_DIGITS: usize = 11;
const GROUP_VALUES: u64 = 100_000_000_000;

/// A string of `N` bytes, which must be a whole number of groups.
#[inline]
pub(crate) fn digit_groups<const N: usize>(rng: &mut Rng) -> [u8; N] {
    const { assert!((N + 1).is_multiple_of(GROUP_DIGITS + 1)) };
    let mut text = [b'-'; N];
    for group in text.chunks_mut(GROUP_DIGITS + 1) {
        let mut value = rng.below(GROUP_VALUES);
        for digit in group[..GROUP_DIGITS].iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_their_shape_and_every_digit() {
        let mut rng = Rng::new(1, 1, 1, 0);
        let mut counts = [0u32; 10];
        for _ in 0..1000 {
            let c: [u8; C_BYTES] = digit_groups(&mut rng);
            for (i, &byte) in c.iter().enumerate() {
                if i % 12 == 11 {
                    assert_eq!(byte, b'-');
                } else {
                    counts[usize::from(byte - b'0')] += 1;
                }
            }
        }
        let expected = 110_000.0 / 10.0;
        let chi_square: f64 =
            counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi_square < 27.88, "chi-square {chi_square}, p < 0.001 with 9 degrees of freedom");
        let pad: [u8; PAD_BYTES] = digit_groups(&mut rng);
        assert_eq!(pad.split(|&byte| byte == b'-').map(<[u8]>::len).collect::<Vec<_>>(), [11; 5]);
    }
}
