//! What became of the connection while an exchange had it.
//!
//! ```text
//!   Open ──101──▶ Switched ──lose──┐
//!    │ │                           ▼
//!    │ └──────────────lose──────▶ Lost ──take──┐
//!    │ take                                    ▼
//!    └───▶ Taken { lost: None } ──lose──▶ Taken { lost: Some }
//! ```
//!
//! A loss is final; of two the later one in the order of [`Loss`] counts.

/// Why nothing more can be said to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// The client has left, or the connection is broken.
    Gone,
    /// The client did not take the reply in time.
    TimedOut,
    /// The monitor has answered in place of the application.
    AnsweredFor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// `reuse`: the next request may follow, as far as is known.
    Open {
        reuse: bool,
    },
    /// The connection speaks another protocol since the reply.
    Switched,
    /// The application has taken the socket for itself.
    Taken {
        lost: Option<Loss>,
    },
    Lost(Loss),
}

impl Default for Link {
    fn default() -> Link {
        Link::Open { reuse: false }
    }
}

impl Link {
    #[inline]
    pub fn loss(self) -> Option<Loss> {
        match self {
            Link::Lost(loss) | Link::Taken { lost: Some(loss) } => Some(loss),
            Link::Open { .. } | Link::Switched | Link::Taken { lost: None } => None,
        }
    }

    #[inline]
    pub fn is_lost(self) -> bool {
        self.loss().is_some()
    }

    #[inline]
    pub fn is_taken(self) -> bool {
        matches!(self, Link::Taken { .. })
    }

    #[inline]
    pub fn may_reuse(self) -> bool {
        self == Link::Open { reuse: true }
    }

    /// Whether the connection may be used again. Of no effect on one that is not open.
    #[inline]
    pub fn set_reuse(&mut self, may: bool) {
        if let Link::Open { reuse } = self {
            *reuse = may;
        }
    }

    pub fn switch(&mut self) {
        if matches!(self, Link::Open { .. }) {
            *self = Link::Switched;
        }
    }

    /// The application takes the socket. False: it has it already.
    pub fn take(&mut self) -> bool {
        let is_new = !self.is_taken();
        *self = Link::Taken { lost: self.loss() };
        is_new
    }

    pub fn lose(&mut self, why: Loss) {
        let loss = self.loss().map_or(why, |before| before.max(why));
        *self = if self.is_taken() { Link::Taken { lost: Some(loss) } } else { Link::Lost(loss) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_lost_is_not_used_again() {
        let mut link = Link::default();
        link.set_reuse(true);
        assert!(link.may_reuse() && !link.is_lost());
        link.lose(Loss::Gone);
        link.set_reuse(true);
        assert!(!link.may_reuse() && link.is_lost());
        link.switch();
        assert_eq!(link, Link::Lost(Loss::Gone));
    }

    #[test]
    fn an_answer_of_the_monitor_outweighs_every_other_loss() {
        let mut link = Link::default();
        for (loss, counts) in [
            (Loss::TimedOut, Loss::TimedOut),
            (Loss::Gone, Loss::TimedOut),
            (Loss::AnsweredFor, Loss::AnsweredFor),
            (Loss::Gone, Loss::AnsweredFor),
        ] {
            link.lose(loss);
            assert_eq!(link.loss(), Some(counts));
        }
    }

    #[test]
    fn a_socket_is_taken_once_and_stays_taken() {
        let mut link = Link::Open { reuse: true };
        assert!(link.take() && !link.take());
        link.set_reuse(true);
        assert!(!link.may_reuse() && !link.is_lost());
        link.lose(Loss::Gone);
        assert!(link.is_taken() && link.is_lost());
        let mut lost = Link::Lost(Loss::TimedOut);
        assert!(lost.take());
        assert_eq!(lost, Link::Taken { lost: Some(Loss::TimedOut) });
    }
}
