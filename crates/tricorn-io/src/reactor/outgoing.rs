//! The rest of a reply, and what is known about how the client takes it.
use crate::exchange::outbox::Outbox;
use crate::stream::Stream;

/// What a connection does when all of a response is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Then {
    /// The next request may come.
    Next,
    /// It ends, with a time to linger if the client may still be sending.
    #[default]
    End,
    /// It lingers: more of a refused request is likely to come.
    Linger,
}

impl Then {
    pub fn of(reuse: bool) -> Then {
        if reuse { Then::Next } else { Then::End }
    }
}

/// Something happened to the connection while its outbox was lent: there may be room that made its edge then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HadEvent(pub bool);

#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub outbox: Outbox,
    pub then: Then,
    /// The outbox is with the thread that sends files (`sender.rs`).
    loan: Option<HadEvent>,
    /// The outbox holds a file, which counts as a descriptor.
    holds_file: bool,
    /// Bytes acknowledged when the deadline was last set.
    acknowledged: u64,
}

impl Outgoing {
    pub fn new(outbox: Outbox, then: Then, stream: &Stream) -> Outgoing {
        // What a stream sent before is no progress of its rest.
        let acknowledged = if outbox.sent() > 0 { acknowledged(&outbox, stream) } else { 0 };
        Outgoing { holds_file: outbox.has_file(), outbox, then, loan: None, acknowledged }
    }

    /// Gives the outbox away for a while.
    pub fn lend(&mut self) -> Outbox {
        self.loan = Some(HadEvent(false));
        std::mem::take(&mut self.outbox)
    }

    pub fn is_lent(&self) -> bool {
        self.loan.is_some()
    }

    /// Something happens to the connection. Whether the outbox is away: it is told when that is back.
    pub fn note_event(&mut self) -> bool {
        self.loan = self.loan.map(|_| HadEvent(true));
        self.is_lent()
    }

    /// The outbox is back.
    pub fn give_back(&mut self, outbox: Outbox) -> HadEvent {
        self.outbox = outbox;
        self.loan.take().unwrap_or(HadEvent(true))
    }

    pub fn holds_file(&self) -> bool {
        self.holds_file
    }

    /// Whether it held a file until now, which is counted no longer.
    pub fn release_file(&mut self) -> bool {
        std::mem::take(&mut self.holds_file)
    }

    /// Bytes that the client has.
    pub fn acknowledged(&self, stream: &Stream) -> u64 {
        acknowledged(&self.outbox, stream)
    }

    /// Whether the client acknowledged `wanted` bytes since the deadline was set. `acknowledged`: all so far.
    pub fn has_progressed(&mut self, acknowledged: u64, wanted: u64) -> bool {
        let has_progressed = acknowledged >= self.acknowledged + wanted;
        if has_progressed {
            self.acknowledged = acknowledged;
        }
        has_progressed
    }
}

fn acknowledged(outbox: &Outbox, stream: &Stream) -> u64 {
    outbox.sent().saturating_sub(stream.unacknowledged())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_while_the_outbox_is_away_is_told_when_it_is_back() {
        let mut outgoing = Outgoing::default();
        assert!(!outgoing.note_event());
        let outbox = outgoing.lend();
        assert!(outgoing.is_lent());
        assert_eq!(outgoing.give_back(outbox), HadEvent(false));
        let outbox = outgoing.lend();
        assert!(outgoing.note_event());
        assert_eq!(outgoing.give_back(outbox), HadEvent(true));
        assert!(!outgoing.is_lent());
    }

    #[test]
    fn bytes_count_as_progress_once() {
        let mut outgoing = Outgoing::default();
        assert!(!outgoing.has_progressed(99, 100) && outgoing.has_progressed(100, 100));
        assert!(!outgoing.has_progressed(199, 100), "99 since the deadline was set anew");
        assert!(outgoing.has_progressed(200, 100));
    }
}
