//! Digits without `format!`: numbers in statements that travel as text, and the random strings of the
//! sysbench tables.

use load::Rng;

/// Bytes of the column `c`: ten groups.
pub(crate) const C_BYTES: usize = 10 * 12 - 1;
/// Bytes of the column `pad`: five groups.
pub(crate) const PAD_BYTES: usize = 5 * 12 - 1;

const GROUP_DIGITS: usize = 11;
const GROUP_VALUES: u64 = 100_000_000_000;

/// Groups of eleven digits joined by `-`, as in sysbench 1.x: `N` bytes, which must be a whole number of groups.
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

/// The same of any shape, appended to `text`: `groups` of `width` digits, at most 18.
pub(crate) fn append_digits(rng: &mut Rng, groups: u32, width: u32, text: &mut Vec<u8>) {
    for group in 0..groups {
        if group > 0 {
            text.push(b'-');
        }
        let mut value = rng.below(10_u64.saturating_pow(width));
        let from = text.len();
        text.resize(from + width as usize, b'0');
        for digit in text[from..].iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
}

/// Random numbers of 0.4.12 are below this.
const LEGACY_NUMBERS: u64 = 0x3fff_ffff;

/// Numbers joined by `-`, as in sysbench 0.4.12: of one to ten digits each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers<const COUNT: usize> {
    text: [[u8; 11]; COUNT],
    length: usize,
}

impl<const COUNT: usize> Numbers<COUNT> {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mut numbers = Numbers { text: [[0; 11]; COUNT], length: 0 };
        let bytes = numbers.text.as_flattened_mut();
        for i in 0..COUNT {
            if i > 0 {
                bytes[numbers.length] = b'-';
                numbers.length += 1;
            }
            let (mut digits, value) = ([0; DECIMAL_BYTES], rng.below(LEGACY_NUMBERS));
            let digits = decimal(&mut digits, value);
            bytes[numbers.length..numbers.length + digits.len()].copy_from_slice(digits.as_bytes());
            numbers.length += digits.len();
        }
        numbers
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text.as_flattened()[..self.length]
    }
}

/// Digits of the largest `u64`.
const DECIMAL_BYTES: usize = 20;

/// Appends `value` in decimal.
pub(crate) fn push_decimal(text: &mut String, value: i64) {
    if value < 0 {
        text.push('-');
    }
    text.push_str(decimal(&mut [0; DECIMAL_BYTES], value.unsigned_abs()));
}

/// Digits of a number that is 0 or more.
pub(crate) fn decimal_digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn decimal(digits: &mut [u8; DECIMAL_BYTES], mut value: u64) -> &str {
    let mut from = DECIMAL_BYTES;
    loop {
        from -= 1;
        digits[from] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    // Only digits, which are text.
    std::str::from_utf8(&digits[from..]).unwrap_or_default()
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

    #[test]
    fn numbers_are_written_as_format_would() {
        for value in [0, 7, 10, 99, 100, -1, -2_147_483_648, i64::MAX, i64::MIN] {
            let mut text = String::from("x");
            push_decimal(&mut text, value);
            assert_eq!(text, format!("x{value}"));
            let digits = format!("{}", value.unsigned_abs()).len();
            assert_eq!(decimal_digits(value.unsigned_abs()), digits);
        }
    }

    #[test]
    fn numbers_of_0_4_12_are_joined_and_not_of_one_width() {
        let mut rng = Rng::new(1, 2, 3, 4);
        let mut lengths = std::collections::HashSet::new();
        for _ in 0..2000 {
            let c = Numbers::<10>::draw(&mut rng);
            let text = std::str::from_utf8(c.as_bytes()).unwrap_or_default();
            let numbers: Vec<u64> =
                text.split('-').map(|n| n.parse().unwrap_or(u64::MAX)).collect();
            assert_eq!(numbers.len(), 10, "{text}");
            assert!(numbers.iter().all(|&n| n < LEGACY_NUMBERS), "{text}");
            lengths.insert(text.len());
        }
        assert!(lengths.len() > 3);
        assert!(Numbers::<5>::draw(&mut rng).as_bytes().len() <= 59, "pad is cut at 59");
    }
}
