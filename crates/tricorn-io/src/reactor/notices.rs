//! Lines for the error log, which a thread that holds the GIL writes.
use super::Reactor;
use super::warnings::{Holdings, Shortage};
use crate::clock::SECOND;

impl Reactor {
    pub fn notice(&mut self, warning: bool, text: impl FnOnce() -> String) {
        self.chores.notice(warning, text);
    }

    #[inline]
    pub(super) fn tell_shortage(&mut self, now: u64) {
        if let Some(shortage) = self.log.take_shortage(now) {
            self.tell_all_that_is_short(&shortage);
        }
    }

    #[cold]
    fn tell_all_that_is_short(&mut self, shortage: &Shortage) {
        let held = Holdings {
            connections: self.connections(),
            max_connections: self.config.max_connections,
            beside: self.descriptors_beside(),
            head_buffer_total: self.config.head_buffer_total,
            tls_buffer_total: self.config.tls.as_ref().map_or(0, |tls| tls.buffer_total),
            write_timeout: self.config.write_timeout / SECOND,
        };
        for line in shortage.lines(&held) {
            self.notice(true, || line);
        }
    }

    #[inline]
    pub(super) fn tell_overload(&mut self, now: u64) {
        if let Some(overload) = self.log.take_overload(now) {
            let (limit, timeout) = (self.config.queue_limit, self.config.queue_timeout);
            self.notice(true, || overload.line(limit, timeout));
        }
    }
}
