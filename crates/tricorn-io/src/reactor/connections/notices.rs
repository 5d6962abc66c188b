//! Lines for the error log, which a thread that holds the GIL writes.
use super::Connections;
use crate::clock::SECOND;
use crate::reactor::warnings::{Holdings, Incident, Shortage};

impl Connections {
    pub fn notice(&mut self, warning: bool, text: impl FnOnce() -> String) {
        self.chores.notice(warning, text);
    }

    /// The error log is told of this, with others of its kind.
    pub fn warn(&mut self, incident: Incident) {
        self.log.warn(incident);
    }

    #[inline]
    pub fn tell_shortage(&mut self, now: u64) {
        if let Some(shortage) = self.log.take_shortage(now) {
            self.tell_all_that_is_short(&shortage);
        }
    }

    #[cold]
    fn tell_all_that_is_short(&mut self, shortage: &Shortage) {
        let held = Holdings {
            connections: self.len(),
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
    pub fn tell_overload(&mut self, now: u64) {
        if let Some(overload) = self.log.take_overload(now) {
            let (limit, timeout) = (self.config.queue_limit, self.config.queue_timeout);
            self.notice(true, || overload.line(limit, timeout));
        }
    }
}
