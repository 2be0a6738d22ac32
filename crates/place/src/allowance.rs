//! What instances may use, told alike by every placement, so that the audit can compare a process
//! with a container with a guest.

use std::collections::{BTreeMap, BTreeSet};

/// What one instance may use. `None` means without a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowance {
    /// Processors of this machine that it may run on; `None`: all, or not this machine's.
    pub processors: Option<BTreeSet<u32>>,
    /// CPU time, in processors: a quota, or the number of a guest's virtual processors.
    pub cpus: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// The allowance of a whole target, under `allowance.`: a finding there is an inequality between
/// levels, whatever the names of the settings that made it.
///
/// Processors are counted once however many instances share them: with `P` the union of the
/// instances' processors (all `online` ones where an instance has no list) and `q` an instance's CPU time,
/// `allowance.cpus` = min(|P|, Σ min(q, |P of the instance|)). Memory is the sum of the limits, or
/// `unlimited` as soon as one has none.
pub fn total_allowance(
    instances: &[Allowance],
    online: &BTreeSet<u32>,
) -> BTreeMap<String, String> {
    let of = |one: &Allowance| one.processors.clone().unwrap_or_else(|| online.clone());
    let union: BTreeSet<u32> = instances.iter().flat_map(of).collect();
    let sum: f64 = instances
        .iter()
        .map(|one| one.cpus.unwrap_or(f64::INFINITY).min(of(one).len() as f64))
        .sum();
    let cpus = sum.min(union.len() as f64);
    let memory: Option<u64> = instances.iter().map(|one| one.memory_bytes).sum();
    BTreeMap::from([
        ("allowance.instances".to_owned(), instances.len().to_string()),
        ("allowance.cpus".to_owned(), cpus.to_string()),
        (
            "allowance.memory_bytes".to_owned(),
            memory.map_or("unlimited".to_owned(), |bytes| bytes.to_string()),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(instances: &[Allowance], online: u32) -> String {
        total_allowance(instances, &(0..online).collect())["allowance.cpus"].clone()
    }

    fn on(processors: &[u32]) -> Allowance {
        Allowance { processors: Some(processors.iter().copied().collect()), ..Allowance::default() }
    }

    fn quota(cpus: f64) -> Allowance {
        Allowance { cpus: Some(cpus), memory_bytes: Some(1 << 30), ..Allowance::default() }
    }

    #[test]
    fn processors_are_counted_once_and_quotas_are_summed() {
        assert_eq!(cpus(&[Allowance::default()], 24), "24");
        assert_eq!(cpus(&[on(&[0, 1]), on(&[2, 3])], 24), "4");
        assert_eq!(cpus(&[on(&[0, 1]), on(&[0, 1])], 24), "2");
        assert_eq!(cpus(&[quota(0.5), quota(0.5)], 24), "1");
        assert_eq!(cpus(&[quota(4.0)], 2), "2", "a quota gives no processor that is not there");
        let both = Allowance { cpus: Some(1.0), ..on(&[0, 1]) };
        assert_eq!(cpus(&[both], 24), "1");
    }

    #[test]
    fn memory_is_unlimited_as_soon_as_one_instance_is() {
        let total = |all: &[Allowance]| {
            total_allowance(all, &(0..2).collect())["allowance.memory_bytes"].clone()
        };
        assert_eq!(total(&[quota(1.0), quota(1.0)]), (2_u64 << 30).to_string());
        assert_eq!(total(&[quota(1.0), Allowance::default()]), "unlimited");
    }
}
