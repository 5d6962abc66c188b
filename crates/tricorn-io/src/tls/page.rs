//! The page that all workers share: the arbiter's bundle, under a sequence lock.
//!
//! Words of 64 bits: magic, sequence, length of the bundle in bytes, then unused ones up to [`HEAD`]; behind them the bundle.
//! The sequence is odd while the arbiter writes, and grows by two with each bundle: a worker compares that one word.
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

/// "TRITLS1\0" read as a big-endian number.
const MAGIC: u64 = 0x5452_4954_4c53_3100;
/// Words before the bundle: a page of the system.
const HEAD: usize = 512;
/// All certificates, keys and lists of a server.
const ROOM: usize = 1 << 20;
/// How often a reader tries while the arbiter writes.
const TRIES: usize = 1000;

pub const TLS_PAGE_BYTES: usize = HEAD * 8 + ROOM;

const MAGIC_AT: usize = 0;
const SEQUENCE: usize = 1;
const LENGTH: usize = 2;

#[derive(Debug, Clone, Copy)]
pub struct Page {
    words: &'static [AtomicU64],
}

impl Page {
    /// `None`: no page is that short.
    pub fn over(words: &'static [AtomicU64]) -> Option<Page> {
        (words.len() * 8 >= TLS_PAGE_BYTES).then_some(Page { words })
    }

    /// A page of this process's own, for tests and embedders.
    pub fn private() -> Page {
        let words: Vec<AtomicU64> = (0..TLS_PAGE_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        Page { words: Vec::leak(words) }
    }

    /// For the arbiter: there is one writer.
    pub fn publish(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() > ROOM {
            return Err(format!(
                "certificates, keys, CAs and lists of revoked certificates are {} bytes together; {ROOM} is the most",
                bytes.len()
            ));
        }
        let sequence = self.words[SEQUENCE].load(Relaxed) | 1;
        self.words[SEQUENCE].store(sequence, Relaxed);
        fence(Release);
        self.words[MAGIC_AT].store(MAGIC, Relaxed);
        self.words[LENGTH].store(bytes.len() as u64, Relaxed);
        for (word, piece) in self.words[HEAD..].iter().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..piece.len()].copy_from_slice(piece);
            word.store(u64::from_ne_bytes(padded), Relaxed);
        }
        self.words[SEQUENCE].store(sequence + 1, Release);
        Ok(())
    }

    /// Changes with every bundle; 0: there was none yet.
    #[inline]
    pub fn sequence(&self) -> u64 {
        self.words[SEQUENCE].load(Acquire)
    }

    /// The bundle and its sequence. `None`: there is none, or the arbiter writes and writes, or was killed while it did.
    pub fn read(&self) -> Option<(u64, Vec<u8>)> {
        for _ in 0..TRIES {
            let before = self.sequence();
            if before == 0 {
                return None;
            }
            if before.is_multiple_of(2) {
                let length = self.words[LENGTH].load(Relaxed) as usize;
                let is_ours = self.words[MAGIC_AT].load(Relaxed) == MAGIC && length <= ROOM;
                let words = self.words[HEAD..].iter().take(length.min(ROOM).div_ceil(8));
                let mut bytes: Vec<u8> = words.flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
                bytes.truncate(length);
                fence(Acquire);
                if self.words[SEQUENCE].load(Relaxed) == before {
                    return is_ours.then_some((before, bytes));
                }
            }
            std::thread::yield_now();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_read_and_what_is_too_long_changes_nothing() {
        let page = Page::private();
        assert_eq!((page.sequence(), page.read()), (0, None));
        for (sequence, length) in [(2, 0), (4, 13), (6, ROOM)] {
            let bytes: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            page.publish(&bytes).expect("there is room");
            assert!(page.read() == Some((sequence, bytes)));
        }
        assert!(page.publish(&vec![0; ROOM + 1]).is_err_and(|error| error.contains("1048576 is the most")));
        assert_eq!(page.sequence(), 6);
    }

    #[test]
    fn a_page_that_is_being_written_is_not_read() {
        let page = Page::private();
        page.publish(b"whole").expect("there is room");
        page.words[SEQUENCE].store(3, Relaxed);
        assert_eq!(page.read(), None);
        page.publish(b"next").expect("there is room");
        assert_eq!(page.read(), Some((4, b"next".to_vec())), "a writer that was killed is no end of the page");
    }

    #[test]
    fn a_reader_never_gets_a_mixture() {
        let page = Page::private();
        page.publish(&[0; 4096]).expect("there is room");
        std::thread::scope(|scope| {
            scope.spawn(|| (1..200u8).for_each(|value| page.publish(&[value; 4096]).expect("there is room")));
            for _ in 0..200 {
                let Some((_, bytes)) = page.read() else { continue };
                assert!(bytes.len() == 4096 && bytes.iter().all(|byte| *byte == bytes[0]));
            }
        });
    }
}
