//! Memory for what is read: a pool of requests, what unfinished heads hold of it, and a buffer for messages and leavings.
use super::head_memory::HeadMemory;
use crate::exchange::buffers::{Pool, Request};

#[derive(Debug)]
pub(super) struct Buffers {
    pool: Pool,
    heads: HeadMemory,
    scratch: Vec<u8>,
}

impl Buffers {
    pub fn new(heads: HeadMemory) -> Buffers {
        Buffers { pool: Pool::default(), heads, scratch: Vec::new() }
    }

    #[inline]
    pub fn take(&mut self) -> Box<Request> {
        self.pool.take()
    }

    /// One that is not read to.
    pub fn take_bare(&mut self) -> Box<Request> {
        self.pool.take_bare()
    }

    /// Gives back what a request had of memory, but for its body (`bodies.rs`).
    #[inline]
    pub fn give(&mut self, mut request: Box<Request>) {
        self.heads.uncount(&mut request);
        self.pool.give(request);
    }

    /// More of a head is to come. Whether all unfinished heads hold too much.
    pub fn count_head(&mut self, request: &mut Request) -> bool {
        self.heads.count(request)
    }

    /// The head is complete.
    #[inline]
    pub fn head_is_complete(&mut self, request: &mut Request) {
        self.heads.uncount(request);
    }

    /// Unfinished heads hold less than their limit again.
    pub fn are_heads_relieved(&self) -> bool {
        self.heads.is_relieved()
    }

    /// `length` bytes to write into, of which nothing is kept.
    pub fn scratch(&mut self, length: usize) -> &mut [u8] {
        self.scratch.resize(length, 0);
        &mut self.scratch
    }

    /// The same as a value, to be given back.
    pub fn take_scratch(&mut self, length: usize) -> Vec<u8> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(length, 0);
        scratch
    }

    pub fn give_scratch(&mut self, scratch: Vec<u8>) {
        self.scratch = scratch;
    }
}
