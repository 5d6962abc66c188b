//! Who else serves what comes by the listeners.

/// The workers that a connection at the listeners may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// This one.
    Alone,
    /// This one and its siblings. What a worker has taken it keeps: it takes nothing that a sibling could serve at once.
    Siblings,
    /// The same, and requests that wait can be handed over.
    OneQueue,
}

impl Company {
    /// `siblings`: others listen there. `channel`: there is one to them.
    pub fn of(siblings: bool, channel: bool) -> Company {
        match (siblings, channel) {
            (false, _) => Company::Alone,
            (true, false) => Company::Siblings,
            (true, true) => Company::OneQueue,
        }
    }

    #[inline]
    pub fn is_alone(self) -> bool {
        self == Company::Alone
    }
}
