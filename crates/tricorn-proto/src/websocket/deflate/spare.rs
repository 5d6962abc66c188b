//! Contexts and buffers that no message needs just now.
use super::negotiation::{MAX_BITS, MIN_DEFLATE_BITS};
use flate2::{Compress, Compression, Decompress};

/// One per thread. A context that is not to remember anything is taken from here for a message and given back after it.
#[derive(Debug)]
pub struct Spare {
    deflate: Vec<(Kind, Compress)>,
    inflate: Vec<Decompress>,
    /// Where messages are gathered, or compressed before their length is known.
    buffers: Vec<Vec<u8>>,
    /// How many of each are kept.
    most: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub level: u8,
    pub bits: u8,
}

impl Default for Spare {
    fn default() -> Spare {
        Spare::new(DEFAULT_MOST)
    }
}

impl Spare {
    /// Keeps up to `most` contexts of each direction.
    pub fn new(most: usize) -> Spare {
        Spare { deflate: Vec::new(), inflate: Vec::new(), buffers: Vec::new(), most }
    }

    /// How many contexts lie here: deflating, inflating.
    pub fn kept(&self) -> (usize, usize) {
        (self.deflate.len(), self.inflate.len())
    }

    pub(super) fn take_deflate(&mut self, kind: Kind) -> Compress {
        match self.deflate.iter().position(|(kept, _)| *kept == kind) {
            Some(index) => self.deflate.swap_remove(index).1,
            None => Compress::new_with_window_bits(Compression::new(kind.level.into()), false, kind.bits),
        }
    }

    pub(super) fn give_deflate(&mut self, kind: Kind, mut context: Compress) {
        if self.deflate.len() < self.most {
            context.reset();
            self.deflate.push((kind, context));
        }
    }

    /// Windows of full size are kept, since they can inflate everything; smaller ones are made for who keeps them.
    pub(super) fn take_inflate(&mut self, bits: u8) -> Decompress {
        match self.inflate.pop() {
            Some(context) if bits == MAX_BITS => context,
            Some(context) => {
                self.inflate.push(context);
                Decompress::new_with_window_bits(false, bits.max(MIN_DEFLATE_BITS))
            }
            None => Decompress::new_with_window_bits(false, bits.max(MIN_DEFLATE_BITS)),
        }
    }

    pub(super) fn give_inflate(&mut self, bits: u8, mut context: Decompress) {
        if bits == MAX_BITS && self.inflate.len() < self.most {
            context.reset(false);
            self.inflate.push(context);
        }
    }

    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// A large one is not kept.
    pub(crate) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        if (1..=MAX_BUFFER).contains(&buffer.capacity()) && self.buffers.len() < self.most {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }
}

const DEFAULT_MOST: usize = 4;
const MAX_BUFFER: usize = 256 * 1024;
