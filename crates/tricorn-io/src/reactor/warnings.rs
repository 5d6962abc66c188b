//! What went wrong, counted until the log is told: one line of each kind a second at most, however often it happens.
use crate::clock::SECOND;
use crate::config;
use rustix::io::Errno;

/// Something that the log is told of together with others of its kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum Incident {
    /// A connection could not be accepted: no descriptor was left.
    NoDescriptor,
    /// A connection was not accepted: all places were taken, and none could be freed.
    NoPlace,
    /// A connection with an unfinished head was closed to make room.
    HeadClosed,
    /// An unfinished head was refused beyond `head_buffer_total`.
    HeadRefused,
    /// A connection was closed beyond `tls_buffer_total`.
    SessionClosed,
    /// A response was given up after `write_timeout`.
    ReaderLate,
    /// A listener is not in the poller.
    Unwatched(Errno),
    /// A request was turned away beyond `queue_limit`.
    QueueFull,
    /// A request was turned away after `queue_timeout`.
    QueueLate,
}

/// What was short since the log was last told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shortage {
    descriptors: u64,
    places: u64,
    heads_closed: u64,
    heads_refused: u64,
    sessions_closed: u64,
    readers_late: u64,
    unwatched: Option<Errno>,
}

/// Requests that were turned away since the log was last told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Overload {
    full: u64,
    late: u64,
}

/// What clients hold, and how much they may.
pub(super) struct Holdings {
    pub connections: usize,
    pub max_connections: usize,
    /// Descriptors beside those of connections.
    pub beside: usize,
    pub head_buffer_total: usize,
    pub tls_buffer_total: usize,
    /// Seconds.
    pub write_timeout: u64,
}

#[derive(Debug, Default)]
pub(super) struct Warnings {
    shortage: Shortage,
    shortage_told: u64,
    overload: Overload,
    overload_told: u64,
}

impl Warnings {
    pub fn note(&mut self, incident: Incident) {
        match incident {
            Incident::NoDescriptor => self.shortage.descriptors += 1,
            Incident::NoPlace => self.shortage.places += 1,
            Incident::HeadClosed => self.shortage.heads_closed += 1,
            Incident::HeadRefused => self.shortage.heads_refused += 1,
            Incident::SessionClosed => self.shortage.sessions_closed += 1,
            Incident::ReaderLate => self.shortage.readers_late += 1,
            Incident::Unwatched(error) => self.shortage.unwatched = Some(error),
            Incident::QueueFull => self.overload.full += 1,
            Incident::QueueLate => self.overload.late += 1,
        }
    }

    /// What was short, if the log is to be told now.
    #[inline]
    pub fn take_shortage(&mut self, now: u64) -> Option<Shortage> {
        take_due(&mut self.shortage, &mut self.shortage_told, now)
    }

    /// What was turned away, if the log is to be told now.
    #[inline]
    pub fn take_overload(&mut self, now: u64) -> Option<Overload> {
        take_due(&mut self.overload, &mut self.overload_told, now)
    }
}

#[inline]
fn take_due<T: Default + PartialEq>(counts: &mut T, told: &mut u64, now: u64) -> Option<T> {
    if *counts == T::default() || now.saturating_sub(*told) < config::TELL {
        return None;
    }
    *told = now;
    Some(std::mem::take(counts))
}

impl Shortage {
    #[cold]
    pub fn lines(&self, held: &Holdings) -> Vec<String> {
        let Holdings { connections, max_connections, beside, head_buffer_total, tls_buffer_total, write_timeout } =
            held;
        let mut lines = Vec::new();
        if self.descriptors > 0 {
            lines.push(format!(
                "Out of file descriptors ({connections} connections are open; {beside} more are in use for bodies \
                 and files): closing idle connections, or pausing accept. Raise the limit (ulimit -n)."
            ));
        }
        if self.places > 0 {
            lines.push(format!(
                "Too many connections: accept is paused ({connections} of at most {max_connections} are open; \
                 {beside} more descriptors are in use for bodies and files). Raise max_connections, or the \
                 descriptor limit (ulimit -n)."
            ));
        }
        if self.heads_closed > 0 {
            lines.push(format!(
                "Closed {} connections with incomplete request headers to make room for others.",
                self.heads_closed
            ));
        }
        if self.heads_refused > 0 {
            lines.push(format!(
                "Incomplete request headers used more than {head_buffer_total} bytes (head_buffer_total): {} rejected.",
                self.heads_refused
            ));
        }
        if self.sessions_closed > 0 {
            lines.push(format!(
                "TLS sessions buffered more than {tls_buffer_total} bytes (tls_buffer_total): closed {} connections.",
                self.sessions_closed
            ));
        }
        if self.readers_late > 0 {
            lines.push(format!(
                "Connections closed because clients read nothing for {write_timeout} s (write_timeout): {}.",
                self.readers_late
            ));
        }
        if let Some(error) = self.unwatched {
            lines.push(format!("tricorn: cannot watch a listener: {error}; retrying"));
        }
        lines
    }
}

impl Overload {
    /// `limit` and `timeout` are those of the queue.
    #[cold]
    pub fn line(&self, limit: usize, timeout: u64) -> String {
        let seconds = timeout as f64 / SECOND as f64;
        let mut reasons = Vec::new();
        if self.full > 0 {
            reasons.push(format!("{} because {limit} requests were waiting (queue_limit)", self.full));
        }
        if self.late > 0 {
            reasons.push(format!("{} after waiting {seconds} s (queue_timeout)", self.late));
        }
        let reasons = reasons.join(", ");
        format!("Overload: all workers are busy; rejected with 503: {reasons}. Add workers or threads.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_incident_is_told_at_once_and_the_next_ones_together() {
        let mut warnings = Warnings::default();
        let now = 5 * config::TELL;
        assert_eq!(warnings.take_shortage(now), None, "nothing has happened");
        warnings.note(Incident::NoPlace);
        assert_eq!(warnings.take_shortage(now).map(|shortage| shortage.places), Some(1));
        for _ in 0..3 {
            warnings.note(Incident::NoPlace);
            assert_eq!(warnings.take_shortage(now + config::TELL - 1), None);
        }
        assert_eq!(warnings.take_shortage(now + config::TELL).map(|shortage| shortage.places), Some(3));
        assert_eq!(warnings.take_shortage(now + 9 * config::TELL), None);
    }

    #[test]
    fn an_overload_is_told_though_a_shortage_was() {
        let mut warnings = Warnings::default();
        warnings.note(Incident::HeadClosed);
        warnings.note(Incident::QueueLate);
        warnings.note(Incident::QueueFull);
        assert!(warnings.take_shortage(config::TELL).is_some());
        let line =
            warnings.take_overload(config::TELL).map(|overload| overload.line(7, SECOND / 2)).unwrap_or_default();
        assert!(line.contains("1 because 7 requests were waiting (queue_limit), 1 after waiting 0.5 s"), "{line}");
    }

    #[test]
    fn each_kind_of_shortage_has_its_line() {
        let mut warnings = Warnings::default();
        for incident in [
            Incident::NoDescriptor,
            Incident::NoPlace,
            Incident::HeadClosed,
            Incident::HeadRefused,
            Incident::SessionClosed,
            Incident::ReaderLate,
        ] {
            warnings.note(incident);
        }
        warnings.note(Incident::Unwatched(Errno::NOMEM));
        let held = Holdings {
            connections: 4,
            max_connections: 9,
            beside: 2,
            head_buffer_total: 100,
            tls_buffer_total: 200,
            write_timeout: 60,
        };
        let lines = warnings.take_shortage(config::TELL).map(|shortage| shortage.lines(&held)).unwrap_or_default();
        let parts = [
            "4 connections are open; 2",
            "of at most 9 are open; 2 more",
            "1 connections",
            "100 bytes",
            "200 bytes",
            "60 s (write_timeout): 1",
            "watch a listener",
        ];
        assert_eq!(lines.len(), parts.len());
        assert!(lines.iter().zip(parts).all(|(line, part)| line.contains(part)), "{lines:#?}");
    }
}
