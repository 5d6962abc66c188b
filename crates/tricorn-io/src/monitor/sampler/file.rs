//! The file without a name by which the sampler and the arbiter talk: reports in it, and the order of a profile.
//!
//! ```text
//!   0     turn and length of the report on slow requests; the turn says in which of its two areas it stands
//!   64    turn, length and number of the profile's report
//!   128   the order, the arbiter's: number, end, interval, most bytes of a report, and its number again
//!   4096  two areas of 256 KiB, then two of 512 KiB
//! ```
//!
//! A report is written before its head, so that a reader that finds the same head before and after has read what belongs to it.
use rustix::fd::OwnedFd;
use rustix::io;

const AREAS: u64 = 4096;
const SLOW: Section = Section { head: 0, areas: AREAS, length: 256 << 10 };
const PROFILE: Section = Section { head: 64, areas: AREAS + 2 * SLOW.length, length: 512 << 10 };
const ORDER: u64 = 128;

struct Section {
    head: u64,
    areas: u64,
    length: u64,
}

/// The profile that is wanted: until when (monotonic), and how often (nanoseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub number: u64,
    pub end: u64,
    pub interval: u64,
    pub most: usize,
}

pub struct ReportFile<'f> {
    file: &'f OwnedFd,
    slow: u64,
    profile: u64,
}

impl<'f> ReportFile<'f> {
    pub fn new(file: &'f OwnedFd) -> ReportFile<'f> {
        ReportFile { file, slow: 0, profile: 0 }
    }

    pub fn write_slow(&mut self, text: &[u8]) -> io::Result<()> {
        self.write(&SLOW, self.slow + 1, text, None)?;
        self.slow += 1;
        Ok(())
    }

    pub fn write_profile(&mut self, text: &[u8], number: u64) -> io::Result<()> {
        self.write(&PROFILE, self.profile + 1, text, Some(number))?;
        self.profile += 1;
        Ok(())
    }

    fn write(&self, section: &Section, turn: u64, text: &[u8], number: Option<u64>) -> io::Result<()> {
        if text.len() as u64 > section.length {
            return Err(io::Errno::NOSPC);
        }
        let words = [Some(turn), Some(text.len() as u64), number];
        let head: Vec<u8> = words.into_iter().flatten().flat_map(u64::to_ne_bytes).collect();
        write(self.file, text, section.areas + turn % 2 * section.length)?;
        write(self.file, &head, section.head)
    }

    /// The last order. `None`: there was none, or it is being written.
    pub fn order(&self) -> Option<Order> {
        let mut bytes = [0; 40];
        let count = io::retry_on_intr(|| io::pread(self.file, &mut bytes, ORDER)).ok()?;
        let word = |place: usize| bytes.get(8 * place..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
        let number = word(0).filter(|&number| number > 0 && count == bytes.len() && Some(number) == word(4))?;
        Some(Order { number, end: word(1)?, interval: word(2)?, most: usize::try_from(word(3)?).ok()? })
    }
}

fn write(file: &OwnedFd, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = io::retry_on_intr(|| io::pwrite(file, bytes, at))?;
        if count == 0 {
            return Err(io::Errno::NOSPC);
        }
        bytes = &bytes[count..];
        at += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};

    fn words(file: &OwnedFd, count: usize, at: u64) -> Vec<u64> {
        let mut bytes = vec![0; 8 * count];
        let read = io::pread(file, &mut bytes, at).expect("readable");
        bytes[..read].chunks_exact(8).map(|each| u64::from_ne_bytes(each.try_into().expect("eight"))).collect()
    }

    #[test]
    fn reports_take_turns_in_two_areas_and_their_heads_say_which() {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).expect("a file");
        let mut report = ReportFile::new(&file);
        for (turn, text) in [(1, "one"), (2, "other"), (3, "third")] {
            report.write_slow(text.as_bytes()).expect("written");
            report.write_profile(text.as_bytes(), 7).expect("written");
            assert_eq!(words(&file, 2, 0), [turn, text.len() as u64]);
            assert_eq!(words(&file, 3, 64), [turn, text.len() as u64, 7]);
            let mut found = vec![0; text.len()];
            let at = 4096 + 2 * (256 << 10) + turn % 2 * (512 << 10);
            assert_eq!(io::pread(&file, &mut found, at), Ok(text.len()));
            assert_eq!(found, text.as_bytes());
        }
        assert!(report.write_profile(&vec![0; (512 << 10) + 1], 7).is_err());
    }

    #[test]
    fn an_order_counts_when_it_is_whole() {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).expect("a file");
        let report = ReportFile::new(&file);
        assert_eq!(report.order(), None);
        for (last, found) in [(8_u64, None), (9, Some(Order { number: 9, end: 5, interval: 6, most: 7 }))] {
            let bytes: Vec<u8> = [9, 5, 6, 7, last].into_iter().flat_map(u64::to_ne_bytes).collect();
            write(&file, &bytes, ORDER).expect("written");
            assert_eq!(report.order(), found);
        }
    }
}
