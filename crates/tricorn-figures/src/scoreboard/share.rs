//! Bytes that one holder has of what a gauge counts for all: of responses, of sessions.
use super::{Scoreboard, Word};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use tricorn_sys::fork::is_child;

/// Given back when it is dropped, whatever ended its holder. Any thread may have it.
#[derive(Debug)]
pub struct Share {
    gauge: &'static AtomicU64,
    bytes: usize,
}

impl Share {
    pub fn new(board: Scoreboard, of: Word) -> Share {
        Share { gauge: &board.words[of as usize], bytes: 0 }
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if is_child() {
            return; // the gauge is shared, and the parent holds what it held
        }
        if bytes > before {
            self.gauge.fetch_add((bytes - before) as u64, Relaxed);
        } else if bytes < before {
            self.gauge.fetch_sub((before - bytes) as u64, Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
