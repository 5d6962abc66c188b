//! The bulletin: what the arbiter says of the server, as text that any worker can pass on.
//!
//! It lies behind the history, in the same memory. Two copies, of which one counts, as with the ledger: neither the writer nor a
//! reader waits for the other, wherever the arbiter is stopped.
//!
//! ```text
//!   0        how often it was written; the last bit says which copy counts
//!   8 …      two copies: the length in bytes, then the text
//! ```
//!
//! Only pages with text in them take memory.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Most bytes of the text.
pub const MOST: usize = (COPY - 1) * 8;

const FIRST: usize = 8;
/// Words of one copy.
const COPY: usize = 8192;
pub(super) const WORDS: usize = FIRST + 2 * COPY;
/// How often a reader tries again. Each time the text has changed meanwhile.
const TRIES: usize = 16;

#[derive(Debug, Clone, Copy)]
pub struct Bulletin {
    words: &'static [AtomicU64],
}

impl Bulletin {
    /// There are [`WORDS`] of them.
    pub(super) fn of(words: &'static [AtomicU64]) -> Bulletin {
        Bulletin { words }
    }

    /// Replaces the text; whether there is room for it. There is one writer, the arbiter.
    pub fn write(&self, text: &[u8]) -> bool {
        if text.len() > MOST {
            return false;
        }
        let turn = self.words[0].load(Relaxed).wrapping_add(1);
        // A reader that sees words of this text in the copy that counted before must see that another counts.
        fence(Release);
        let copy = self.copy(turn);
        copy[0].store(text.len() as u64, Relaxed);
        for (word, bytes) in copy[1..].iter().zip(text.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Relaxed);
        }
        self.words[0].store(turn, Release);
        true
    }

    /// The text; `None`: there is none, or it changes all the time.
    pub fn read(&self) -> Option<Vec<u8>> {
        for _ in 0..TRIES {
            let turn = self.words[0].load(Acquire);
            let copy = self.copy(turn);
            // Not believed: a worker may have written anything.
            let length = (copy[0].load(Relaxed) as usize).min(MOST);
            let words = copy[1..].iter().take(length.div_ceil(8));
            let mut text: Vec<u8> = words.flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
            text.truncate(length);
            fence(Acquire);
            if self.words[0].load(Relaxed) == turn {
                return Some(text).filter(|text| !text.is_empty());
            }
        }
        None
    }

    fn copy(&self, turn: u64) -> &'static [AtomicU64] {
        let start = FIRST + (turn & 1) as usize * COPY;
        &self.words[start..start + COPY]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulletin() -> Bulletin {
        Bulletin::of(Vec::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect()))
    }

    #[test]
    fn the_last_text_is_read() {
        let bulletin = bulletin();
        assert_eq!(bulletin.read(), None);
        for length in [1, 8, 9, MOST, 3] {
            let text = vec![b'a' + (length % 7) as u8; length];
            assert!(bulletin.write(&text));
            assert!(bulletin.read() == Some(text), "{length} bytes");
        }
        assert!(!bulletin.write(&[0; MOST + 1]));
        assert_eq!(bulletin.read().map(|text| text.len()), Some(3), "what has no room changes nothing");
        assert!(bulletin.write(b""));
        assert_eq!(bulletin.read(), None);
    }

    #[test]
    fn a_writer_that_was_stopped_midway_leaves_the_text_of_before() {
        let bulletin = bulletin();
        bulletin.write(b"whole");
        bulletin.copy(2)[0].store(u64::MAX, Relaxed);
        assert_eq!(bulletin.read().as_deref(), Some(b"whole".as_slice()));
    }

    #[test]
    fn a_length_that_is_none_harms_no_reader() {
        let bulletin = bulletin();
        bulletin.words[FIRST].store(u64::MAX, Relaxed);
        assert_eq!(bulletin.read().map(|text| text.len()), Some(MOST));
    }

    #[test]
    fn what_is_read_is_one_text_while_another_is_written() {
        let bulletin = bulletin();
        bulletin.write(&[0; 64]);
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                for round in 0..2000u32 {
                    bulletin.write(&[round as u8; 64]);
                }
            });
            while !writer.is_finished() {
                if let Some(text) = bulletin.read() {
                    assert!(text.iter().all(|byte| *byte == text[0]), "{text:?}");
                }
            }
        });
    }
}
