//! Contexts and buffers that no message needs just now.
use flate2::{Compress, Compression, Decompress};
use std::sync::Arc;

/// One per thread. A context that is not to remember anything is taken from here for a message and given back after it.
#[derive(Debug)]
pub struct ContextPool {
    deflate: Vec<(Kind, Compress)>,
    inflate: Vec<Decompress>,
    /// Where messages are gathered, or compressed before their length is known.
    buffers: Vec<Vec<u8>>,
    /// How many of each are kept.
    most: usize,
    /// How many deflating contexts may be elsewhere, between messages. The holder of one holds a permit.
    most_remembering: usize,
    permits: Arc<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub level: u8,
    pub bits: u8,
}

/// Gives itself back when it is dropped, with the connection at the latest.
#[derive(Debug)]
pub(super) struct Permit(#[expect(dead_code, reason = "it is held")] Arc<()>);

impl Default for ContextPool {
    fn default() -> ContextPool {
        ContextPool::new(DEFAULT_MOST, DEFAULT_MOST_REMEMBERING)
    }
}

impl ContextPool {
    /// Keeps up to `most` contexts of each direction. Up to `most_remembering` connections keep a deflating context from
    /// one message to the next; any others forget, as if they had agreed to. That bounds what a thread's senders hold.
    pub fn new(most: usize, most_remembering: usize) -> ContextPool {
        ContextPool {
            deflate: Vec::new(),
            inflate: Vec::new(),
            buffers: Vec::new(),
            most,
            most_remembering,
            permits: Arc::default(),
        }
    }

    /// How many contexts lie here: deflating, inflating.
    pub fn kept(&self) -> (usize, usize) {
        (self.deflate.len(), self.inflate.len())
    }

    /// How many connections keep a deflating context.
    pub fn remembering(&self) -> usize {
        Arc::strong_count(&self.permits) - 1
    }

    pub(super) fn take_deflate(&mut self, kind: Kind) -> Compress {
        match self.deflate.iter().position(|(kept, _)| *kept == kind) {
            Some(index) => self.deflate.swap_remove(index).1,
            None => Compress::new_with_window_bits(Compression::new(kind.level.into()), false, kind.bits),
        }
    }

    /// What is not kept comes back, to be dropped by the caller: zlib-rs frees what a reference in it points to, which is
    /// undefined for an argument of a function (Miri: "deallocating while item is strongly protected").
    #[must_use]
    pub(super) fn give_deflate(&mut self, kind: Kind, mut context: Compress) -> Option<Compress> {
        if self.deflate.len() >= self.most {
            return Some(context);
        }
        context.reset();
        self.deflate.push((kind, context));
        None
    }

    pub(super) fn take_inflate(&mut self) -> Decompress {
        self.inflate.pop().unwrap_or_else(|| Decompress::new(false))
    }

    /// As for [`ContextPool::give_deflate`].
    #[must_use]
    pub(super) fn give_inflate(&mut self, mut context: Decompress) -> Option<Decompress> {
        if self.inflate.len() >= self.most {
            return Some(context);
        }
        context.reset(false);
        self.inflate.push(context);
        None
    }

    /// Leave to keep a deflating context after its message, for as long as the permit is held. `None`: enough are kept.
    pub(super) fn permit(&self) -> Option<Permit> {
        (self.remembering() < self.most_remembering).then(|| Permit(Arc::clone(&self.permits)))
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
const DEFAULT_MOST_REMEMBERING: usize = 256;
const MAX_BUFFER: usize = 256 * 1024;
