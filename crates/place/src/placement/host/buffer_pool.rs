//! The study's `innodb_buffer_pool_size` for each of several instances.

use std::collections::BTreeMap;

use study::{BufferPool, ConfigValue, HostPlacement, variables};

use crate::error::PlaceError;
use crate::settings::render_config_value;

const NAME: &str = "innodb_buffer_pool_size";

/// `config` as each instance gets it: a buffer pool that the study gives is divided, in plain bytes.
/// Without one each has the server's default, which is nobody's to divide.
///
/// # Errors
/// A size that cannot be understood.
pub(super) fn divided(
    config: &BTreeMap<String, ConfigValue>,
    host: &HostPlacement,
) -> Result<BTreeMap<String, ConfigValue>, PlaceError> {
    let mut config = config.clone();
    if host.instances < 2 || host.buffer_pool == BufferPool::Each {
        return Ok(config);
    }
    for (name, value) in &mut config {
        if variables::canonical(name) == NAME {
            let text = render_config_value(value);
            let bytes = bytes(&text).ok_or_else(|| PlaceError::Setting {
                name: NAME.to_owned(),
                why: format!("`{text}` is no size that could be divided among the instances"),
            })?;
            let each = bytes / u64::from(host.instances);
            *value = ConfigValue::Text(each.to_string());
        }
    }
    Ok(config)
}

/// A size as servers read it: a number, and one letter for a power of 1024.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1024_u64.pow(power))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn each(size: ConfigValue, host: &HostPlacement) -> Result<ConfigValue, PlaceError> {
        let config = [("innodb-buffer-pool-size".to_owned(), size)].into();
        divided(&config, host).map(|config| config["innodb-buffer-pool-size"].clone())
    }

    fn text(text: &str) -> ConfigValue {
        ConfigValue::Text(text.to_owned())
    }

    #[test]
    fn a_pool_is_divided_where_the_study_says_so() {
        let three = HostPlacement { instances: 3, ..HostPlacement::default() };
        let four_gib = (4_u64 << 30) / 3;
        for size in ["4G", "4096M", "4194304k", "4294967296"] {
            assert_eq!(each(text(size), &three).unwrap(), text(&four_gib.to_string()), "{size}");
        }
        let number = ConfigValue::Integer(3 << 20);
        assert_eq!(each(number, &three).unwrap(), text(&(1 << 20).to_string()));
        let own = HostPlacement { buffer_pool: BufferPool::Each, ..three.clone() };
        assert_eq!(each(text("4G"), &own).unwrap(), text("4G"));
        assert_eq!(each(text("4G"), &HostPlacement::default()).unwrap(), text("4G"));
        let error = each(text("4 gigabytes"), &three).unwrap_err().to_string();
        assert!(error.contains("`4 gigabytes` is no size"), "{error}");
    }
}
