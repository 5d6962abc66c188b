//! Extensible priorities (RFC 9218): who is sent first.
use crate::message::grammar::{list, trim_ows};

/// Section 4: urgency and whether it helps to have a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// Responses share the connection, instead of coming one after another.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Priority {
        Priority { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Reads a Priority field value. "values that are outside of the ranges defined or cannot be parsed are ignored."
    pub fn parse(value: &[u8]) -> Priority {
        let mut priority = Priority::default();
        for member in list(value) {
            let member = member.split(|&byte| byte == b';').next().map_or(&b""[..], trim_ows);
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

/// Priorities of streams that have not begun: one for each, and no more of them than concurrent streams.
#[derive(Debug, Default)]
pub(super) struct Early(Vec<(u32, Priority)>);

impl Early {
    /// Section 7.1: "servers SHOULD buffer the most recently received PRIORITY_UPDATE frame and apply it once the
    /// referenced stream is opened." `false` if there are `most` already.
    pub fn put(&mut self, stream: u32, priority: Priority, most: usize) -> bool {
        let has_room = self.0.len() < most;
        match self.0.iter_mut().find(|(held, _)| *held == stream) {
            Some((_, held)) => *held = priority,
            None if has_room => self.0.push((stream, priority)),
            None => return false,
        }
        true
    }

    /// The priority for a stream that begins; those of streams that never will are forgotten.
    pub fn take(&mut self, stream: u32) -> Option<Priority> {
        if self.0.is_empty() {
            return None;
        }
        let found = self.0.iter().find(|(held, _)| *held == stream).map(|(_, priority)| *priority);
        self.0.retain(|(held, _)| *held > stream);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        found
    }
}

/// A stream that has something to send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub stream: u32,
    pub priority: Priority,
}

/// The stream whose frame comes next: the most urgent; of these the non-incremental ones in the order of their
/// requests, then the incremental ones in turn. `last` had the frame before.
pub(super) fn choose(candidates: impl Iterator<Item = Candidate>, last: u32) -> Option<u32> {
    let rank = |candidate: &Candidate| {
        let Priority { urgency, incremental } = candidate.priority;
        // Round robin: those after the last one come before those up to it.
        (urgency, incremental, incremental && candidate.stream <= last, candidate.stream)
    };
    candidates.min_by_key(rank).map(|candidate| candidate.stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_structured_fields() {
        let parsed = |value: &str| {
            let Priority { urgency, incremental } = Priority::parse(value.as_bytes());
            (urgency, incremental)
        };
        for (value, expected) in [
            ("", (3, false)),
            ("u=0", (0, false)),
            ("u=5, i", (5, true)),
            ("i,u=7", (7, true)),
            ("u=8", (3, false)),
            ("u=-1", (3, false)),
            ("u=1;x=2, i=?0", (1, false)),
            ("u=1, u=2", (2, false)),
            ("\"u=1\"", (3, false)),
        ] {
            assert_eq!(parsed(value), expected, "{value}");
        }
    }

    #[test]
    fn the_urgent_come_first_and_the_incremental_share() {
        let streams = [(1, "u=5"), (3, "i"), (5, "i"), (7, "i"), (9, "u=1")];
        let mut left: Vec<Candidate> =
            streams.map(|(stream, value)| Candidate { stream, priority: Priority::parse(value.as_bytes()) }).to_vec();
        assert_eq!(choose(left.iter().copied(), 0), Some(9));
        left.pop();
        let (mut last, mut order) = (0, Vec::new());
        for _ in 0..5 {
            last = choose(left.iter().copied(), last).unwrap();
            order.push(last);
        }
        assert_eq!(order, [3, 5, 7, 3, 5]);
        left.push(Candidate { stream: 11, priority: Priority::default() });
        assert_eq!(choose(left.iter().copied(), 5), Some(11), "one after another before those that share");
    }

    #[test]
    fn early_priorities_are_bounded_and_end_with_their_streams() {
        let mut early = Early::default();
        let urgent = Priority { urgency: 0, incremental: false };
        assert!(early.put(3, urgent, 2) && early.put(5, urgent, 2) && early.put(3, urgent, 2));
        assert!(!early.put(7, urgent, 2));
        assert_eq!((early.take(1), early.take(3), early.take(5), early.0.len()), (None, Some(urgent), Some(urgent), 0));
    }
}
