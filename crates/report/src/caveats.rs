//! What a reader must know before any figure, said in the first line of every form of a report.

use std::collections::{BTreeMap, BTreeSet};

use store::{Fingerprint, Outcome, ResultFile};

/// Of the observed conditions of one run of each level.
pub(crate) fn of<'a>(observed: impl Iterator<Item = &'a Fingerprint>) -> Vec<String> {
    let emulated = observed
        .filter(|seen| seen.get("place.placement.accelerator").is_some_and(|by| by == "tcg"))
        .count();
    let mut caveats = Vec::new();
    if emulated > 0 {
        caveats.push(
            "guests ran under QEMU's own translator (tcg), not under KVM: their speed means nothing \
             beyond this machine"
                .to_owned(),
        );
    }
    caveats
}

/// Of a whole result file: the first finished run of each level tells of its placement.
pub(crate) fn of_file(file: &ResultFile) -> crate::Result<Vec<String>> {
    let mut levels = BTreeSet::new();
    let mut observed: Vec<BTreeMap<String, String>> = Vec::new();
    for run in file.runs()?.iter().filter(|run| run.outcome == Outcome::Finished) {
        if levels.insert((run.key.question.clone(), run.key.level.clone())) {
            observed.push(file.fingerprints(run.id)?.0);
        }
    }
    Ok(of(observed.iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_guest_is_told_and_a_real_one_is_not() {
        let by = |name: &str| {
            Fingerprint::from([("place.placement.accelerator".to_owned(), name.to_owned())])
        };
        assert_eq!(of([by("kvm"), Fingerprint::new()].iter()), Vec::<String>::new());
        let told = of([by("kvm"), by("tcg"), by("tcg")].iter());
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("tcg"));
    }
}
