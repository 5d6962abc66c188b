//! What the log is told: one line of each kind a second at most, however often it happens.
use super::Reactor;
use super::shortage::{Overload, Shortage};
use crate::clock::SECOND;
use crate::config;

impl Reactor {
    pub fn notice(&mut self, warning: bool, text: impl FnOnce() -> String) {
        self.chores.notice(warning, text);
    }

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

    /// One line a second at most, however many were turned away.
    pub(super) fn tell_overload(&mut self, now: u64) {
        let Overload { full, late, told } = self.overload;
        if full + late == 0 || now.saturating_sub(told) < config::TELL {
            return;
        }
        self.overload = Overload { told: now, ..Overload::default() };
        let (limit, seconds) = (self.config.queue_limit, self.config.queue_timeout as f64 / SECOND as f64);
        self.notice(true, || {
            let mut reasons = Vec::new();
            if full > 0 {
                reasons.push(format!("{full} found {limit} requests waiting (queue_limit)"));
            }
            if late > 0 {
                reasons.push(format!("{late} had waited for {seconds} s (queue_timeout)"));
            }
            let reasons = reasons.join(", ");
            format!(
                "Overload: every worker is busy; turned away with 503: {reasons}. More workers or threads would help."
            )
        });
    }
}
