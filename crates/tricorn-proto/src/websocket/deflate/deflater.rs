//! Compresses our messages (RFC 7692 section 7.2.1).
use super::pool::{ContextPool, Kind, Permit};
use super::{Agreed, TAIL};
use crate::websocket::Role;
use flate2::{Compress, FlushCompress};

#[derive(Debug)]
pub struct Deflater {
    kind: Kind,
    takeover: bool,
    threshold: usize,
    /// `None`: no message was compressed since the context was given back.
    context: Option<(Compress, Permit)>,
}

impl Deflater {
    pub fn new(agreed: &Agreed, role: Role) -> Deflater {
        let (bits, takeover) = match role {
            Role::Server => (agreed.server_bits, agreed.server_context_takeover),
            Role::Client => (agreed.client_bits, agreed.client_context_takeover),
        };
        Deflater {
            // As client of a server that wants 8, which we cannot keep: nothing is compressed.
            threshold: if bits < super::negotiation::MIN_DEFLATE_BITS { usize::MAX } else { agreed.threshold },
            kind: Kind { level: agreed.level, bits },
            takeover,
            context: None,
        }
    }

    /// Whether a message of this length is compressed.
    #[inline]
    pub fn wants(&self, length: usize) -> bool {
        length >= self.threshold
    }

    /// Appends `message` compressed; `false`: it is better sent as it is (too short, or it does not get smaller).
    pub fn deflate(&mut self, message: &[u8], out: &mut Vec<u8>, spare: &mut ContextPool) -> bool {
        if !self.wants(message.len()) {
            return false;
        }
        let start = out.len();
        let (mut context, permit) = match self.context.take() {
            Some((context, permit)) => (context, Some(permit)),
            None => (spare.take_deflate(self.kind), if self.takeover { spare.permit() } else { None }),
        };
        let is_sound = compress(&mut context, message, out);
        let is_smaller = is_sound && out.len() - start < message.len();
        // A context that has seen the message must not be used again unless the peer sees it too. For a short message
        // that does not get smaller it is worth more than the few bytes; a long one has filled the window anyway.
        if let Some(permit) = permit
            && (is_smaller || is_sound && message.len() < WORTH_FORGETTING)
        {
            self.context = Some((context, permit));
            return true;
        }
        let _unkept = spare.give_deflate(self.kind, context);
        if !is_smaller {
            out.truncate(start);
        }
        is_smaller
    }

    /// Gives the context back. The next message is compressed without what went before, which the peer need not know.
    pub fn rest(&mut self, spare: &mut ContextPool) {
        if let Some((context, _permit)) = self.context.take() {
            let _unkept = spare.give_deflate(self.kind, context);
        }
    }
}

/// "Remove 4 octets (that are 0x00 0x00 0xff 0xff) from the tail end." `false`: the library failed, which it does not.
fn compress(context: &mut Compress, mut message: &[u8], out: &mut Vec<u8>) -> bool {
    loop {
        out.reserve((message.len() / 2).clamp(MIN_ROOM, MAX_ROOM));
        let before = context.total_in();
        if context.compress_vec(message, out, FlushCompress::Sync).is_err() {
            return false;
        }
        message = &message[(context.total_in() - before) as usize..];
        // With room left over all was flushed.
        if message.is_empty() && out.len() < out.capacity() {
            break;
        }
    }
    let is_sound = out.ends_with(&TAIL);
    out.truncate(out.len() - if is_sound { TAIL.len() } else { 0 });
    is_sound
}

/// More than six bytes, or zlib writes the flush twice.
const MIN_ROOM: usize = 128;
const MAX_ROOM: usize = 64 * 1024;
/// Bytes.
const WORTH_FORGETTING: usize = 1024;
