//! The file without a name by which a worker and the arbiter talk: the sampler's reports, the order of a profile, stacks.
//!
//! ```text
//!   0     turn and length of the report on slow requests; the turn says in which of its two areas it stands
//!   64    turn, length and number of the profile's report
//!   128   the order, the arbiter's: number, end, interval, most bytes of a report, and its number again
//!   4096  two areas of 256 KiB, then two of 512 KiB
//!   2 MiB stacks of threads, which faulthandler writes on from where the arbiter has put the file's offset
//!   3 MiB stacks of what waits, which Python writes
//! ```
//!
//! The layout is known here alone: workers and the arbiter's Python use [`Reports`]. The arbiter believes nothing in it. A report is written before its head, so that a reader that finds the same head before and after has read what belongs to it.
use rustix::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use rustix::fs::{MemfdFlags, SeekFrom, ftruncate, memfd_create, seek};
use rustix::io;
use tricorn_sys::clock;
use tricorn_sys::fds::with_borrowed;

const AREAS: u64 = 4096;
const SLOW: Section = Section { head: 0, areas: AREAS, length: 256 << 10 };
const PROFILE: Section = Section { head: 64, areas: AREAS + 2 * SLOW.length, length: 512 << 10 };
const ORDER: u64 = 128;
/// Stacks are at the end of the file: to cut it off there forgets them.
const STACKS: u64 = 2 << 20;
/// faulthandler's text is shorter than what lies between: a hundred threads of a hundred frames.
const WAITING: u64 = 3 << 20;
const MOST_WAITING: usize = 256 << 10;
/// How often a report is read that is replaced meanwhile.
const TURNS: usize = 4;

#[derive(Debug, Clone, Copy)]
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

/// The file as the arbiter reads it, and as Python of the worker writes it. Its descriptor belongs to Python; negative: there is none.
#[derive(Debug, Clone, Copy)]
pub struct Reports(RawFd);

impl Reports {
    pub fn new(fd: RawFd) -> Reports {
        Reports(fd)
    }

    /// Makes such a file.
    pub fn create() -> io::Result<OwnedFd> {
        let file = memfd_create("tricorn-reports", MemfdFlags::CLOEXEC)?;
        forget_stacks(file.as_fd())?;
        Ok(file)
    }

    /// Forgets stacks, and has faulthandler write where they belong: it has the same open file.
    pub fn forget_stacks(self) -> io::Result<()> {
        self.with(forget_stacks)
    }

    /// The stacks of threads: at most so many bytes.
    pub fn stacks(self, most: usize) -> Vec<u8> {
        let mut found = self.read(|file| read(file, most.min((WAITING - STACKS) as usize), STACKS));
        // What waits stands far behind it, and between them nothing.
        found.truncate(found.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        found
    }

    /// The stacks of what waits; empty: Python has not come to it.
    pub fn waiting(self) -> Vec<u8> {
        self.read(|file| read(file, MOST_WAITING, WAITING))
    }

    /// For the worker: writes the stacks of what waits.
    pub fn write_waiting(self, text: &[u8]) -> io::Result<()> {
        let text = text.get(..MOST_WAITING).unwrap_or(text);
        self.with(|file| {
            write(file, text, WAITING)?;
            // An answer that came too late may have been longer.
            ftruncate(file, WAITING + text.len() as u64)
        })
    }

    /// Orders a profile of so many nanoseconds; 0: ends the one that goes on. The order's number, which no other has.
    pub fn order(self, nanos: u64, rate: u64, most: u64) -> io::Result<u64> {
        let now = clock::now();
        let words = [now, now.saturating_add(nanos), clock::SECOND / rate.max(1), most, now];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        self.with(|file| write(file, &bytes, ORDER))?;
        Ok(now)
    }

    /// The last report on slow requests; empty: there is none yet.
    pub fn slow(self) -> Vec<u8> {
        self.read(|file| report(file, SLOW, None, || {}))
    }

    /// The last report for the order of this number, which may go on; empty: there is none.
    pub fn profile(self, number: u64) -> Vec<u8> {
        self.read(|file| report(file, PROFILE, Some(number), || {}))
    }

    fn read(self, work: impl FnOnce(BorrowedFd<'_>) -> Vec<u8>) -> Vec<u8> {
        self.with(|file| Ok(work(file))).unwrap_or_default()
    }

    fn with<T>(self, work: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
        if self.0 < 0 { Err(io::Errno::BADF) } else { with_borrowed(self.0, work) }
    }
}

fn forget_stacks(file: BorrowedFd<'_>) -> io::Result<()> {
    ftruncate(file, STACKS)?;
    seek(file, SeekFrom::Start(STACKS)).map(drop)
}

/// A report whose head is the same before and after. `meanwhile` is called between.
fn report(file: BorrowedFd<'_>, section: Section, number: Option<u64>, mut meanwhile: impl FnMut()) -> Vec<u8> {
    let size = if number.is_some() { 24 } else { 16 };
    for _ in 0..TURNS {
        let head = read(file, size, section.head);
        let word = |place: usize| head.get(8 * place..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
        let (Some(turn @ 1..), Some(length)) = (word(0), word(1)) else { break };
        if head.len() < size || (number.is_some() && word(2) != number) {
            break;
        }
        let text = read(file, length.min(section.length) as usize, section.areas + turn % 2 * section.length);
        meanwhile();
        if read(file, size, section.head) == head {
            return text;
        }
    }
    Vec::new()
}

/// As many bytes as there are. The writer may cut the file off at any time.
fn read(file: BorrowedFd<'_>, most: usize, at: u64) -> Vec<u8> {
    let mut bytes = vec![0; most];
    let mut count = 0;
    while let Ok(some @ 1..) = io::retry_on_intr(|| io::pread(file, &mut bytes[count..], at + count as u64)) {
        count += some;
    }
    bytes.truncate(count);
    bytes
}

fn write(file: impl AsFd, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = io::retry_on_intr(|| io::pwrite(&file, bytes, at))?;
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
    use rustix::fd::AsRawFd;

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

    fn reports() -> (OwnedFd, Reports) {
        let file = Reports::create().expect("a file");
        let reports = Reports::new(file.as_raw_fd());
        (file, reports)
    }

    #[test]
    fn the_arbiter_reads_what_the_sampler_has_written_last() {
        let (file, reports) = reports();
        assert_eq!((reports.slow(), reports.profile(7)), (vec![], vec![]));
        assert_eq!(Reports::new(-1).slow(), b"");
        let mut sampler = ReportFile::new(&file);
        for text in [b"one".as_slice(), b"other", b"third"] {
            sampler.write_slow(text).expect("written");
            sampler.write_profile(text, 7).expect("written");
            assert_eq!(
                (reports.slow(), reports.profile(7), reports.profile(8)),
                (text.to_vec(), text.to_vec(), vec![])
            );
        }
    }

    #[test]
    fn a_report_that_is_replaced_while_it_is_read_is_read_again() {
        let (file, _) = reports();
        let mut sampler = ReportFile::new(&file);
        sampler.write_profile(b"the first one", 7).expect("written");
        let mut others = [b"another".as_slice(), b"the last one"].into_iter();
        let replace = || {
            if let Some(text) = others.next() {
                sampler.write_profile(text, 7).expect("written");
            }
        };
        assert_eq!(report(file.as_fd(), PROFILE, Some(7), replace), b"the last one");
    }

    #[test]
    fn orders_have_numbers_of_their_own_and_are_read_whole() {
        let (file, reports) = reports();
        let sampler = ReportFile::new(&file);
        let first = reports.order(2_000_000_000, 100, 5000).expect("written");
        let found = sampler.order().expect("an order");
        assert_eq!(
            (found.number, found.end - first, found.interval, found.most),
            (first, 2_000_000_000, 10_000_000, 5000)
        );
        assert!(reports.order(1, 0, 1).expect("written") > first);
    }

    #[test]
    fn stacks_that_are_shorter_than_those_before_have_nothing_of_them() {
        let (file, reports) = reports();
        for (stacks, waiting) in [("a long story of threads", "and of greenlets"), ("a word", ""), ("two", "tasks")] {
            reports.forget_stacks().expect("a file");
            assert_eq!((reports.stacks(4096), reports.waiting()), (vec![], vec![]));
            // As faulthandler writes: at the offset that the arbiter and the worker share.
            io::write(&file, stacks.as_bytes()).expect("written");
            reports.write_waiting(b"an answer of before that was longer").expect("written");
            reports.write_waiting(waiting.as_bytes()).expect("written");
            assert_eq!((reports.stacks(4096), reports.waiting()), (stacks.into(), waiting.into()));
            assert_eq!(reports.stacks(2), stacks.as_bytes()[..2]);
        }
    }

    #[test]
    fn a_worker_that_cuts_the_file_off_or_fills_it_with_rubbish_is_not_believed() {
        let (file, reports) = reports();
        write(&file, &[0xff; 4096], 0).expect("written");
        assert_eq!(reports.slow().len(), SLOW.length as usize, "no more than its area");
        for size in [0, 8, 16, 70, 4096] {
            ftruncate(&file, size).expect("shorter");
            let (slow, profile) = (reports.slow(), reports.profile(u64::MAX));
            assert_eq!((slow, profile, reports.stacks(4096), reports.waiting()), (vec![], vec![], vec![], vec![]));
        }
    }
}
