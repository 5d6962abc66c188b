//! A producer waits for its client: how long, and what counts as progress.
use crate::config::Config;

/// How long a client may take to come nearer.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Bytes that count as progress.
    wanted: u64,
    /// Bytes sent when there was progress last.
    mark: u64,
    deadline: u64,
    /// The end of the call, whatever the progress.
    late: u64,
}

impl Patience {
    /// `sent`: bytes so far. `late`: when the call has to be over.
    pub(super) fn begin(config: &Config, sent: u64, late: u64, now: u64) -> Patience {
        // As for the rest of a reply (`flush_expired`): progress is the minimum rate, not a byte.
        Patience { wanted: config.progress(), mark: sent, deadline: now + config.write_timeout, late }
    }

    /// The call may take as long as it likes.
    pub(crate) fn without_end(self) -> Patience {
        Patience { late: u64::MAX, ..self }
    }

    /// The time until now was not the client's.
    pub(super) fn renew(&mut self, config: &Config, now: u64) {
        self.deadline = now + config.write_timeout;
    }

    /// Notes that so many bytes are sent. Nanoseconds that are left to the client; `None`: its time is over.
    pub(super) fn left(&mut self, config: &Config, sent: u64, now: u64) -> Option<u64> {
        if sent - self.mark >= self.wanted {
            self.mark = sent;
            self.deadline = now + config.write_timeout;
        }
        let end = self.deadline.min(self.late);
        (now < end).then(|| end - now)
    }
}
