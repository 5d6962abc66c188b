//! The rest of a reply, and what is known about how the client takes it.
use crate::exchange::output::Output;

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

#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub then: Then,
    /// A file waits to be sent, which counts as a descriptor.
    holds_file: bool,
    /// Bytes acknowledged when the deadline was last set.
    acknowledged: u64,
}

impl Outgoing {
    /// `output`: where the rest waits.
    pub fn new(output: &Output, then: Then) -> Outgoing {
        // What a stream sent before is no progress of its rest.
        Outgoing { then, holds_file: output.has_file(), acknowledged: output.acknowledged() }
    }

    pub fn holds_file(&self) -> bool {
        self.holds_file
    }

    /// Whether it held a file until now, which is counted no longer.
    pub fn release_file(&mut self) -> bool {
        std::mem::take(&mut self.holds_file)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_as_progress_once() {
        let mut outgoing = Outgoing::default();
        assert!(!outgoing.has_progressed(99, 100) && outgoing.has_progressed(100, 100));
        assert!(!outgoing.has_progressed(199, 100), "99 since the deadline was set anew");
        assert!(outgoing.has_progressed(200, 100));
    }
}
