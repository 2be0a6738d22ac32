//! What a payload is put together from.

/// A length-encoded integer, taken off the front; `None` if it is cut or none.
pub(crate) fn length(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    let size = match first {
        0..=0xfa => {
            *bytes = rest;
            return Some(u64::from(first));
        }
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
    };
    let (value, rest) = rest.split_at_checked(size)?;
    *bytes = rest;
    Some(value.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}
