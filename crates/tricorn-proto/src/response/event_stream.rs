//! An event stream (`text/event-stream`): whether its body stands between two events.
//!
//! HTML Standard, section 9.2.5: an event ends with a blank line, and lines end with LF, CR or CRLF. What is written between two
//! events is one of its own; what is cut off there has lost nothing.
use crate::message::FieldList;

/// How far the body of an event stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventStream {
    /// The last bytes of the body. One that has not begun stands between events.
    last: [u8; 3],
    /// A Content-Encoding hides where events end.
    is_encoded: bool,
}

impl EventStream {
    /// The body that these fields announce; `None`: it is no event stream.
    pub(super) fn of(fields: &FieldList) -> Option<EventStream> {
        let (kind, rest) = fields.last(b"content-type")?.split_at_checked(MEDIA_TYPE.len())?;
        let is_one = kind.eq_ignore_ascii_case(MEDIA_TYPE) && matches!(rest, [] | [b';' | b' ' | b'\t', ..]);
        let encoding = fields.last(b"content-encoding");
        let is_encoded = encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity"));
        is_one.then_some(EventStream { last: *b"\n\n\n", is_encoded })
    }

    /// Adds a piece of the body.
    #[inline]
    pub(super) fn add(&mut self, piece: &[u8]) {
        if let Some(last) = piece.last_chunk() {
            self.last = *last;
        } else {
            for byte in piece {
                self.last = [self.last[1], self.last[2], *byte];
            }
        }
    }

    /// Whether the last event is complete, as far as can be seen.
    pub fn is_between_events(&self) -> bool {
        let [before, last, end] = self.last;
        let is_blank = match end {
            b'\r' => matches!(last, b'\n' | b'\r'),
            b'\n' => last == b'\n' || last == b'\r' && matches!(before, b'\n' | b'\r'),
            _ => false,
        };
        is_blank && !self.is_encoded
    }
}

const MEDIA_TYPE: &[u8] = b"text/event-stream";

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(fields: &[(&[u8], &[u8])]) -> Option<EventStream> {
        EventStream::of(&fields.iter().copied().collect())
    }

    #[test]
    fn the_media_type_says_what_it_is() {
        for kind in
            ["text/event-stream", "Text/Event-Stream; charset=utf-8", "text/event-stream;x=y", "text/event-stream "]
        {
            assert!(stream(&[(b"Content-Type", kind.as_bytes())]).is_some(), "{kind}");
        }
        for kind in ["text/event-streams", "text/event-strea", "text/html", "", "application/text/event-stream"] {
            assert_eq!(stream(&[(b"content-type", kind.as_bytes())]), None, "{kind}");
        }
        assert_eq!(stream(&[(b"x-type", b"text/event-stream")]), None);
    }

    #[test]
    fn an_event_ends_with_a_blank_line_whatever_ends_lines() {
        let begun = stream(&[(b"content-type", b"text/event-stream")]).expect("one");
        for (body, is_between) in [
            ("", true),
            ("data: a\n", false),
            ("data: a\n\n", true),
            ("data: a\r\n", false),
            ("data: a\r\n\r\n", true),
            ("data: a\r\r", true),
            ("data: a\r", false),
            ("data: a\n\r\n", true),
            ("data: a\r\n\n", true),
            ("data: a\n\ndata: b", false),
            (": comment\n", false),
            ("\n", true),
        ] {
            for cut in 0..=body.len() {
                let mut stream = begun;
                stream.add(&body.as_bytes()[..cut]);
                stream.add(&body.as_bytes()[cut..]);
                assert_eq!(stream.is_between_events(), is_between, "{body:?}, in two at {cut}");
            }
        }
    }

    #[test]
    fn nothing_is_known_of_an_encoded_one() {
        let kind: (&[u8], &[u8]) = (b"content-type", b"text/event-stream");
        assert!(!stream(&[kind, (b"content-encoding", b"gzip")]).expect("one").is_between_events());
        assert!(stream(&[kind, (b"content-encoding", b"identity")]).expect("one").is_between_events());
    }
}
