//! What was short, as the log is told: one line of each kind a second at most, however often it happens.
use super::Reactor;
use crate::config;
use rustix::io::Errno;

/// Counted since the log was last told.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    /// Times that a connection could not be accepted: no descriptor was left.
    pub descriptors: u64,
    /// Times that a connection was not accepted: all places were taken, and none could be freed.
    pub places: u64,
    /// Connections with unfinished heads that were closed to make room.
    pub heads: u64,
    /// Unfinished heads that were refused beyond `head_buffer_total`.
    pub memory: u64,
    /// Why a listener is not in the poller.
    pub unwatched: Option<Errno>,
    told: u64,
}

impl Shortage {
    fn is_none(&self) -> bool {
        self.descriptors + self.places + self.heads + self.memory == 0 && self.unwatched.is_none()
    }
}

impl Reactor {
    #[inline]
    pub(super) fn tell_shortage(&mut self, now: u64) {
        if !self.shortage.is_none() && now.saturating_sub(self.shortage.told) >= config::TELL {
            self.tell_all_that_is_short(now);
        }
    }

    #[cold]
    fn tell_all_that_is_short(&mut self, now: u64) {
        let short = std::mem::replace(&mut self.shortage, Shortage { told: now, ..Shortage::default() });
        let (held, most) = (self.connections(), self.config.max_connections);
        let beside = self.descriptors_beside();
        if short.descriptors > 0 {
            self.notice(true, || {
                format!(
                    "Out of file descriptors ({held} connections are open; {beside} descriptors are in use \
                     for their bodies and files): others are closed, or accepting pauses. Raise the limit (ulimit -n)."
                )
            });
        }
        if short.places > 0 {
            self.notice(true, || {
                format!(
                    "No room for more connections: accepting pauses ({held} are open, of at most {most}; {beside} more \
                     descriptors are in use for their bodies and files). Raise max_connections, or the limit of descriptors (ulimit -n)."
                )
            });
        }
        if short.heads > 0 {
            let count = short.heads;
            self.notice(true, || {
                format!(
                    "{count} connections were closed before their request heads were complete, to make room for others."
                )
            });
        }
        if short.memory > 0 {
            let (count, total) = (short.memory, self.config.head_buffer_total);
            self.notice(true, || {
                format!(
                    "Unfinished request heads took more than {total} bytes (head_buffer_total): {count} were refused."
                )
            });
        }
        if let Some(error) = short.unwatched {
            self.notice(true, || format!("tricorn: a listener cannot be watched: {error}; this is tried again"));
        }
    }
}
