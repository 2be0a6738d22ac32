//! Which transaction a connection is in the middle of.
//!
//! Written by the connection's task, one plain cell each; read by the thread's loop at the end of
//! the window, for the ages of what is in flight, and at the end of the drain, for what is given up.

/// When a transaction began, CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    /// When it was due.
    pub intended_ns: u64,
    /// When its first attempt began.
    pub started_ns: u64,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flight {
    /// No transaction: the first has not begun, or the last has ended.
    #[default]
    Grounded,
    /// An attempt is under way that has been counted as begun and not yet as anything else.
    Attempt(Begun),
    /// The latest attempt has failed and has been counted as repeated; it is being rolled back,
    /// and the next has not begun.
    RollingBack(Begun),
}

/// How long a transaction in flight has lasted, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age {
    /// From its intended start.
    pub response_ns: u64,
    /// From its actual start.
    pub service_ns: u64,
}

impl Flight {
    /// The transaction in flight, if there is one.
    pub(crate) fn begun(self) -> Option<Begun> {
        match self {
            Flight::Grounded => None,
            Flight::Attempt(begun) | Flight::RollingBack(begun) => Some(begun),
        }
    }

    /// Age of the transaction in flight, if there is one.
    pub(crate) fn age(self, now_ns: u64) -> Option<Age> {
        self.begun().map(|begun| Age {
            response_ns: now_ns.saturating_sub(begun.intended_ns),
            service_ns: now_ns.saturating_sub(begun.started_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_ages_from_its_start_through_all_attempts() {
        let begun = Begun { intended_ns: 10, started_ns: 30 };
        let age = Some(Age { response_ns: 40, service_ns: 20 });
        assert_eq!(Flight::Attempt(begun).age(50), age);
        assert_eq!(Flight::RollingBack(begun).age(50), age);
        assert_eq!(Flight::Grounded.age(50), None);
    }
}
