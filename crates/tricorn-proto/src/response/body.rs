//! The body of one response: how its end is told, and which of the bytes offered are sent.
use super::framing::{Framing, push_hex};

#[derive(Debug, Default)]
pub(super) struct Body {
    framing: Framing,
    /// The last piece was framed as a chunk, which is still open.
    in_chunk: bool,
    sent: u64,
    dropped: u64,
}

impl Body {
    /// The head is written: from here on the framing is fixed.
    #[inline]
    pub fn begin(&mut self, framing: Framing) {
        self.framing = framing;
    }

    #[inline]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Drops bytes that have no place.
    pub fn drop_all(&mut self, len: u64) {
        self.in_chunk = false;
        self.dropped = self.dropped.saturating_add(len);
    }

    /// `len` bytes are offered: how many to send. Appends what must precede them to `out`.
    #[inline]
    pub fn offer(&mut self, out: &mut Vec<u8>, len: u64) -> u64 {
        self.in_chunk = false;
        let send = match &mut self.framing {
            Framing::NoBody => 0,
            Framing::UntilClose => len,
            Framing::Length(remaining) => {
                let send = len.min(*remaining);
                *remaining -= send;
                send
            }
            // RFC 9112 section 7.1: a chunk of no bytes would be the last one.
            Framing::Chunked if len == 0 => 0,
            Framing::Chunked => {
                self.in_chunk = true;
                push_hex(out, len);
                out.extend_from_slice(b"\r\n");
                len
            }
        };
        self.sent = self.sent.saturating_add(send);
        self.dropped = self.dropped.saturating_add(len - send);
        send
    }

    /// What follows the bytes of the piece just sent.
    #[inline]
    pub fn after(&self) -> &'static [u8] {
        if self.in_chunk { b"\r\n" } else { b"" }
    }

    /// Whether no more bytes are sent, whatever is offered.
    pub fn is_full(&self) -> bool {
        matches!(self.framing, Framing::NoBody | Framing::Length(0))
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
