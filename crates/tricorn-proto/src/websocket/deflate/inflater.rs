//! Decompresses the peer's messages (RFC 7692 section 7.2.2).
use super::{Agreed, BLOCK, ContextPool, TAIL};
use crate::websocket::{Role, Violation};
use flate2::{Decompress, FlushDecompress, Status};

#[derive(Debug)]
pub struct Inflater {
    takeover: bool,
    /// `None`: no compressed message came since the context was given back. A window of full size, whatever was agreed:
    /// it reads all smaller ones, takes no more memory here, and is of use to everybody.
    context: Option<Decompress>,
    /// How much of the tail was read.
    tail: u8,
    /// Last blocks in this message so far.
    last_blocks: u16,
}

/// What came of some input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inflation {
    /// All input was read, and all that it says was written.
    Done,
    /// The room given was filled after `used` bytes of input; there may be more.
    Full { used: usize },
}

impl Inflater {
    pub fn new(agreed: &Agreed, role: Role) -> Inflater {
        let takeover = match role {
            Role::Server => agreed.client_context_takeover,
            Role::Client => agreed.server_context_takeover,
        };
        Inflater { takeover, context: None, tail: 0, last_blocks: 0 }
    }

    /// Inflates `input` to the end of `out`, which grows to `most` bytes and no further.
    pub fn push(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        most: usize,
        spare: &mut ContextPool,
    ) -> Result<Inflation, Violation> {
        let context = self.context.get_or_insert_with(|| spare.take_inflate());
        inflate(context, &mut self.last_blocks, input, out, most)
    }

    /// All of the message's input was read: "Append 4 octets of 0x00 0x00 0xff 0xff to the tail end". Called again after
    /// `Full`, with more room.
    pub fn end(&mut self, out: &mut Vec<u8>, most: usize, spare: &mut ContextPool) -> Result<Inflation, Violation> {
        let context = self.context.get_or_insert_with(|| spare.take_inflate());
        let tail = &TAIL[usize::from(self.tail)..];
        if let Inflation::Full { used } = inflate(context, &mut self.last_blocks, tail, out, most)? {
            self.tail += used as u8;
            return Ok(Inflation::Full { used });
        }
        (self.tail, self.last_blocks) = (0, 0);
        if !self.takeover
            && let Some(context) = self.context.take()
        {
            let _unkept = spare.give_inflate(context);
        }
        Ok(Inflation::Done)
    }
}

fn inflate(
    context: &mut Decompress,
    last_blocks: &mut u16,
    mut input: &[u8],
    out: &mut Vec<u8>,
    most: usize,
) -> Result<Inflation, Violation> {
    let all = input.len();
    loop {
        if out.len() >= most {
            return Ok(Inflation::Full { used: all - input.len() });
        }
        grow(out, most);
        let (read, written) = (context.total_in(), out.len());
        let status = context.decompress_vec(input, out, FlushDecompress::Sync).map_err(|_| Violation::NotDeflate)?;
        let read = (context.total_in() - read) as usize;
        input = &input[read..];
        match status {
            // A last block (section 7.2.3.4): what follows, if only the tail, is a stream of its own.
            Status::StreamEnd if *last_blocks == MAX_LAST_BLOCKS => return Err(Violation::NotDeflate),
            Status::StreamEnd => {
                *last_blocks += 1;
                context.reset(false);
            }
            _ if out.len() == out.capacity() => {}
            _ if input.is_empty() || (read == 0 && out.len() == written) => return Ok(Inflation::Done),
            _ => {}
        }
    }
}

/// Doubles, from a block up to what is allowed.
fn grow(out: &mut Vec<u8>, most: usize) {
    let (length, room) = (out.len(), out.capacity() - out.len());
    if room == 0 {
        out.reserve_exact(length.max(BLOCK).min(most - length));
    }
}

/// Each costs as much as a small message and may be two bytes long; who ends streams ends one per message or flush.
const MAX_LAST_BLOCKS: u16 = 1024;
