//! The public key that a server sends for a password, before anything is done with it.
//!
//! `mysql_common` encrypts with it, and trusts it: a key that is cut short makes it panic, and a
//! huge one makes it count for hours. So here the key is walked through once, and only one that is
//! whole and of a size in use goes on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

/// Bits of a modulus; servers make keys of 2048.
const MODULUS_BITS: std::ops::RangeInclusive<usize> = 1024..=16_384;
/// Bytes of an exponent; it is 65537 everywhere.
const EXPONENT_BYTES_MAX: usize = 4;
/// What OAEP adds to a text (two hashes of SHA-1 and two bytes).
const PADDING_BYTES: usize = 42;

/// The key in PEM, made anew from what was understood of `pem`, for a password of so many bytes.
///
/// # Errors
/// Why it cannot be used.
pub(crate) fn checked_key(pem: &[u8], password_bytes: usize) -> Result<String, &'static str> {
    const BAD: &str = "the server sent something else than an RSA public key";
    let key = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| BAD)?;
    let modulus = modulus(&key).ok_or(BAD)?;
    let bits = 8 * modulus.len() - modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
    if !MODULUS_BITS.contains(&bits) {
        return Err("the server's RSA key is of a size that is not in use");
    }
    // The text ends in a zero byte. `mysql_common` counts a byte less for some sizes, hence `- 1`.
    if password_bytes + 1 + PADDING_BYTES > bits / 8 - 1 {
        return Err("the password is too long for the server's RSA key");
    }
    let body = STANDARD.encode(&key);
    Ok(format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n"))
}

/// The modulus, without leading zeros, of a key that is well formed in all its parts.
fn modulus(key: &[u8]) -> Option<&[u8]> {
    const INTEGER: u8 = 0x02;
    const BITS: u8 = 0x03;
    const SEQUENCE: u8 = 0x30;
    let mut outer = key;
    let mut info = element(SEQUENCE, &mut outer)?;
    element(SEQUENCE, &mut info)?;
    let (unused, mut bits) = element(BITS, &mut info)?.split_first()?;
    let mut numbers = element(SEQUENCE, &mut bits)?;
    let modulus = stripped(element(INTEGER, &mut numbers)?);
    let exponent = stripped(element(INTEGER, &mut numbers)?);
    let rests = [outer, info, bits, numbers];
    let whole = *unused == 0 && rests.iter().all(|rest| rest.is_empty());
    (whole && !exponent.is_empty() && exponent.len() <= EXPONENT_BYTES_MAX).then_some(modulus)
}

/// Takes one DER element with this tag off the front; its content.
fn element<'a>(tag: u8, der: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&[found, first], rest) = der.split_first_chunk()?;
    let (length, rest) = match first {
        0x00..=0x7f => (usize::from(first), rest),
        0x81 => rest.split_first().map(|(&byte, rest)| (usize::from(byte), rest))?,
        0x82 => {
            let (&bytes, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(bytes)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *der = rest;
    (found == tag).then_some(content)
}

fn stripped(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Made with `openssl genrsa 1024 | openssl rsa -pubout`.
    const KEY: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDSPQA+fqox1IRI/BaZsbP01f6p\n\
m94br+GdQXfeDJV0lbd0W1HflC5l+UkUeOyM60rUNGr1qcGIB31YZP7zFSkaIgH/\n\
S6XnICzIr9FN8fKanbdwwPTgjXf8BavkucZyyTy40s9KnWsmomOC0SMPwyhGfy1M\n\
LuMbS//w0oT5SYMq9wIDAQAB\n\
-----END PUBLIC KEY-----\n";

    #[test]
    fn a_real_key_passes_and_comes_out_as_it_went_in() {
        let checked = checked_key(KEY.as_bytes(), 10).unwrap();
        let der = |pem: &str| SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).unwrap();
        assert_eq!(der(&checked), der(KEY));
    }

    #[test]
    fn a_password_that_does_not_fit_is_told() {
        assert!(checked_key(KEY.as_bytes(), 84).is_ok());
        let error = checked_key(KEY.as_bytes(), 85).unwrap_err();
        assert!(error.contains("too long"), "{error}");
    }

    /// Wherever it is cut and whichever byte is another, the answer is an error or a key that
    /// encrypts; what is behind this check must not see any other.
    #[test]
    fn no_damaged_key_gets_through_to_a_panic() {
        let key = SubjectPublicKeyInfoDer::from_pem_slice(KEY.as_bytes()).unwrap().to_vec();
        let pem = |der: &[u8]| {
            let body = STANDARD.encode(der);
            format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
        };
        for end in 0..key.len() {
            assert!(checked_key(pem(&key[..end]).as_bytes(), 10).is_err(), "cut at {end}");
        }
        let mut passed = 0;
        for at in 0..key.len() {
            for value in [0x00, 0x01, 0x7f, 0x80, 0x81, 0x84, 0xff] {
                let mut damaged = key.clone();
                damaged[at] = value;
                if let Ok(checked) = checked_key(pem(&damaged).as_bytes(), 10) {
                    mysql_common::crypto::encrypt(&[7; 11], checked.as_bytes()).unwrap();
                    passed += 1;
                }
            }
        }
        assert!(passed > 0, "damage to the modulus alone is not to be seen");
    }
}
