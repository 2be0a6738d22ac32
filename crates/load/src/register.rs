//! What is counted and timed apart: the kinds of transactions, and statements by their names.
//!
//! Made once per drive from the workload; threads then count by index and never look at a name.

use crate::workload::Workload;

/// What a session sends by itself, under these names.
pub(crate) const PROTOCOL: [&str; 5] = ["BEGIN", "COMMIT", "ROLLBACK", "other", "connect"];
/// Index of each in [`PROTOCOL`], and so of its statement in every [`Register`].
pub(crate) const BEGIN: u32 = 0;
/// See [`BEGIN`].
pub(crate) const COMMIT: u32 = 1;
/// See [`BEGIN`].
pub(crate) const ROLLBACK: u32 = 2;
/// Any other statement that is sent by its text.
pub(crate) const OTHER: u32 = 3;
/// No statement: making a lost connection again, with all that its login and preparations take.
pub(crate) const CONNECT: u32 = 4;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Register {
    /// Kinds of transactions, in the workload's order.
    pub kinds: Vec<String>,
    /// Different names of statements: [`PROTOCOL`], then the workload's in its order.
    pub names: Vec<String>,
    /// By statement of the workload: index into `names`.
    pub name_of: Vec<u32>,
    /// Servers that are driven. Kinds are counted apart for each: the slot of a kind is its index
    /// behind those of the targets before, so that the hot path counts by one index.
    pub targets: usize,
}

impl Register {
    /// Of everything that `workload` names.
    pub(crate) fn new<W: Workload>(workload: &W, targets: usize) -> Register {
        let mut names: Vec<String> = PROTOCOL.map(str::to_owned).to_vec();
        let mut index: std::collections::HashMap<String, u32> =
            names.iter().cloned().zip(0..).collect();
        let name_of = workload.statements().into_iter().map(|statement| {
            *index.entry(statement.name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        });
        let name_of = name_of.collect();
        Register { kinds: workload.kinds(), names, name_of, targets }
    }

    /// How many kinds are counted apart, over all targets.
    pub(crate) fn slots(&self) -> usize {
        self.kinds.len() * self.targets
    }

    /// Where the kinds of the target of the connection `ordinal` begin; connections are dealt to
    /// the targets in turn.
    pub(crate) fn first_slot(&self, ordinal: u32) -> usize {
        ordinal as usize % self.targets.max(1) * self.kinds.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::session::Session;
    use crate::workload::{Statement, TransactionError};

    struct Named;

    impl Workload for Named {
        fn statements(&self) -> Vec<Statement> {
            ["point", "range", "point", "COMMIT"]
                .map(|name| Statement { text: String::new(), name: name.to_owned() })
                .to_vec()
        }

        async fn transaction(
            &self,
            _: &mut Session,
            _: usize,
            _: Rng,
        ) -> Result<(), TransactionError> {
            Ok(())
        }
    }

    #[test]
    fn statements_of_one_name_are_one() {
        let register = Register::new(&Named, 1);
        assert_eq!(register.names[..PROTOCOL.len()], PROTOCOL);
        assert_eq!(register.names[PROTOCOL.len()..], ["point", "range"]);
        assert_eq!(register.name_of, [5, 6, 5, COMMIT]);
        assert_eq!(register.kinds, ["transaction"]);
        assert_eq!(register.slots(), 1);
        assert_eq!(
            [BEGIN, COMMIT, ROLLBACK, OTHER, CONNECT].map(|i| PROTOCOL[i as usize]),
            PROTOCOL
        );
    }
}
