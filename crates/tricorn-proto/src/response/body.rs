//! The body of one response: how its end is told, and which of the bytes offered are sent.
use super::framing::Framing;

/// What is sent of a piece of the body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Portion {
    pub length: u64,
    /// It is one of those after which the end of the body is marked: a chunk, or a frame.
    pub delimited: bool,
}

#[derive(Debug, Default)]
pub(super) struct Body {
    framing: Framing,
    sent: u64,
    dropped: u64,
}

impl Body {
    pub fn of(framing: Framing) -> Body {
        Body { framing, ..Body::default() }
    }

    /// The head is written: from here on the framing is fixed.
    #[inline]
    pub fn begin(&mut self, framing: Framing) {
        self.framing = framing;
    }

    #[inline]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Another response was sent in place of this one, with so many bytes.
    pub fn replaced(&mut self, sent: u64) {
        self.sent = sent;
    }

    /// Drops bytes that have no place.
    pub fn drop_all(&mut self, len: u64) {
        self.dropped = self.dropped.saturating_add(len);
    }

    /// `len` bytes are offered: how many are sent.
    #[inline]
    pub fn offer(&mut self, len: u64) -> Portion {
        let length = match &mut self.framing {
            Framing::None => 0,
            Framing::UntilClose | Framing::Delimited => len,
            Framing::Length(remaining) => {
                let send = len.min(*remaining);
                *remaining -= send;
                send
            }
        };
        self.sent = self.sent.saturating_add(length);
        self.dropped = self.dropped.saturating_add(len - length);
        Portion { length, delimited: self.framing == Framing::Delimited }
    }

    /// Whether no more bytes are sent, whatever is offered.
    pub fn is_full(&self) -> bool {
        matches!(self.framing, Framing::None | Framing::Length(0))
    }

    /// Bytes of the length that are still to come.
    #[inline]
    pub fn missing(&self) -> u64 {
        if let Framing::Length(missing) = self.framing { missing } else { 0 }
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
