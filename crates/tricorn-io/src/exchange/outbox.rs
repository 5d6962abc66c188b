//! Bytes that could not be sent at once: segments that keep their owner's bytes, sent as the client takes them.
//!
//! An outbox sends what lies in memory. What lies in a file, and what is being written to one, is for jobs (`output/files.rs`): they
//! work without the lock of the output, and [`Outbox::flush`] ends where they begin.
use super::overflow::{Full, Held, Overflow, Store};
pub use super::segments::SharedBytes;
use super::segments::{Segment, Segments};
use crate::disk::{DiskFile, Reserved};
use crate::scoreboard::Share;
use crate::stream::Stream;
use rustix::io::{self, Errno};
use std::io::IoSlice;
use std::sync::Arc;

/// The outcome of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Everything is with the kernel.
    Empty,
    /// The kernel takes no more for now.
    Blocked,
    /// The next bytes are in a file, or on their way to one.
    Disk,
    /// The peer is gone.
    Gone,
    /// A file to be sent ended early, or cannot be read: the response cannot be completed.
    Truncated,
}

/// An ordered queue of output. Bounded by its users: see `buffering.rs`.
#[derive(Default)]
pub struct Outbox {
    segments: Segments,
    /// Bytes waiting, those of files not counted (they are not in memory).
    in_memory: usize,
    sent: u64,
    /// Made when the first bytes go to disk.
    overflow: Option<Box<Overflow>>,
    /// Counts `in_memory`, once the outbox has one.
    share: Option<Share>,
}

/// Bytes on their way to the disk.
pub(super) struct Storing {
    pub segments: Vec<Segment>,
    /// The file, if it is made.
    pub file: Option<Arc<DiskFile>>,
    /// Where they belong.
    pub at: u64,
    /// Counts what the file takes.
    pub reserved: Arc<Reserved>,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outbox({} segments, {} bytes)", self.segments.len(), self.in_memory)
    }
}

/// Small pieces are gathered into one segment up to this size.
const GATHER: usize = 16 * 1024;

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether a descriptor is held for what waits.
    pub fn has_file(&self) -> bool {
        self.segments.iter().any(|segment| matches!(segment, Segment::File { .. } | Segment::Storing { .. }))
    }

    /// Bytes waiting in memory.
    pub fn in_memory(&self) -> usize {
        self.in_memory
    }

    /// Some of what waits is in the outbox's own file, or on its way there.
    pub fn is_on_disk(&self) -> bool {
        self.overflow.is_some()
    }

    /// From now on what waits in memory is counted among what all responses hold.
    pub fn share(&mut self, held: &Arc<Held>) {
        self.share.get_or_insert_with(|| held.share()).set(self.in_memory);
    }

    fn recount(&mut self) {
        if let Some(share) = &mut self.share {
            share.set(self.in_memory);
        }
    }

    /// Bytes handed to the kernel through this outbox.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.push_all([bytes]);
    }

    /// The same of several, one behind the other: memory is taken once for all.
    pub fn push_all<const N: usize>(&mut self, parts: [&[u8]; N]) {
        let count: usize = parts.iter().map(|part| part.len()).sum();
        if count == 0 {
            return;
        }
        self.in_memory += count;
        if let Some(Segment::Owned { bytes: last, .. }) = self.segments.back_mut()
            && last.len() + count <= GATHER
        {
            parts.iter().for_each(|part| last.extend_from_slice(part));
            return;
        }
        self.segments.push_back(Segment::Owned { bytes: parts.concat(), at: 0 });
    }

    /// Queues `bytes[at..end]` without copying.
    pub fn push_shared(&mut self, bytes: SharedBytes, at: usize, end: usize) {
        if at < end {
            self.in_memory += end - at;
            self.segments.push_back(Segment::Shared { bytes, at, end });
        }
    }

    /// Queues `left` bytes of a file, from an offset on.
    pub fn push_file(&mut self, file: Arc<DiskFile>, at: u64, left: u64) {
        if left > 0 {
            self.segments.push_back(Segment::File { file, at, left });
        }
    }

    /// Sends as much as the kernel takes of what lies in memory. Owners of shared bytes that are done with go to `spent`.
    pub fn flush(&mut self, stream: &Stream, spent: &mut Vec<SharedBytes>) -> Flush {
        self.flush_some(stream, spent, usize::MAX).unwrap_or(Flush::Disk)
    }

    /// The same until about `most` bytes were sent, which is `None`: more can be sent. A client that reads as fast as we send
    /// would otherwise keep the thread for as long as there is something.
    pub fn flush_some(&mut self, stream: &Stream, spent: &mut Vec<SharedBytes>, most: usize) -> Option<Flush> {
        let flush = self.send_some(stream, spent, most);
        self.recount();
        flush
    }

    fn send_some(&mut self, stream: &Stream, spent: &mut Vec<SharedBytes>, most: usize) -> Option<Flush> {
        let end = self.sent.saturating_add(most as u64);
        while let Some(front) = self.segments.front() {
            if front.bytes().is_none() {
                return Some(Flush::Disk);
            }
            let room = end.saturating_sub(self.sent);
            if room == 0 {
                return None;
            }
            match self.send_memory(stream, usize::try_from(room).unwrap_or(usize::MAX)) {
                Ok(count) => self.advance(count, spent),
                Err(Errno::AGAIN) => return Some(Flush::Blocked),
                Err(Errno::INTR) => {}
                Err(_) => return Some(Flush::Gone),
            }
        }
        Some(Flush::Empty)
    }

    /// Gives every owner back, sent or not.
    pub fn clear(&mut self, spent: &mut Vec<SharedBytes>) {
        self.in_memory = 0;
        self.recount();
        self.overflow = None;
        spent.extend(self.segments.take_from(0).filter_map(Segment::into_shared));
    }

    /// One system call for leading segments in memory: as many as fit one call and make up to `room` bytes.
    fn send_memory(&self, stream: &Stream, mut room: usize) -> io::Result<usize> {
        const MOST: usize = 16;
        let mut slices = [IoSlice::new(&[]); MOST];
        let mut count = 0;
        for segment in self.segments.iter().take(MOST) {
            let Some(bytes) = segment.bytes().filter(|_| room > 0) else { break };
            let bytes = &bytes[..bytes.len().min(room)];
            slices[count] = IoSlice::new(bytes);
            room -= bytes.len();
            count += 1;
        }
        stream.send_slices(&slices[..count])
    }

    fn advance(&mut self, mut count: usize, spent: &mut Vec<SharedBytes>) {
        self.sent += count as u64;
        while count > 0 {
            let (done, used) = match self.segments.front_mut() {
                Some(Segment::Owned { bytes, at }) => step(at, bytes.len(), count),
                Some(Segment::Shared { at, end, .. }) => step(at, *end, count),
                Some(Segment::File { .. } | Segment::Storing { .. }) | None => return,
            };
            self.in_memory -= used;
            count -= used;
            if !done {
                return;
            }
            spent.extend(self.segments.pop_front().and_then(Segment::into_shared));
        }
    }
}

/// For the job that sends from files.
impl Outbox {
    /// What is sent next, if that lies in a file: the file, where, and how many bytes.
    #[inline]
    pub(super) fn file_in_front(&self) -> Option<(&Arc<DiskFile>, u64, u64)> {
        match self.segments.front() {
            Some(Segment::File { file, at, left }) => Some((file, *at, *left)),
            _ => None,
        }
    }

    /// So many bytes of that are sent. False: something else is in front by now.
    pub(super) fn file_was_sent(&mut self, of: &Arc<DiskFile>, count: u64) -> bool {
        let Some(Segment::File { file, at, left }) = self.segments.front_mut() else { return false };
        if !Arc::ptr_eq(file, of) {
            return false;
        }
        *at += count;
        *left = left.saturating_sub(count);
        self.sent += count;
        if *left == 0 {
            self.segments.pop_front();
        }
        true
    }

    /// The outbox's own file, if it is the caller's `file` and all that was written there is sent: it still takes its room on the disk.
    pub(super) fn take_idle_file(&mut self, file: &Arc<DiskFile>) -> Option<Box<Overflow>> {
        let is_storing = || self.segments.iter().any(|segment| matches!(segment, Segment::Storing { .. }));
        let is_idle = self.overflow.as_ref().is_some_and(|overflow| overflow.is_idle(file)) && !is_storing();
        if is_idle { self.overflow.take() } else { None }
    }
}

/// For the job that writes to the outbox's own file.
impl Outbox {
    /// What is sent next is being written.
    pub(super) fn begins_with_storing(&self) -> bool {
        matches!(self.segments.front(), Some(Segment::Storing { .. }))
    }

    /// Takes out what waits in memory behind the first `keep` bytes, and behind what is on disk already. `None`: there is nothing, or a
    /// job is at that. On an error everything stays where it is.
    pub(super) fn begin_storing(&mut self, store: &Store, held: &Held, keep: usize) -> Result<Option<Storing>, Full> {
        if self.segments.iter().any(|segment| matches!(segment, Segment::Storing { .. })) {
            return Ok(None);
        }
        let from = self.first_to_store(keep);
        let count: usize = self.segments.iter().skip(from).filter_map(Segment::bytes).map(<[u8]>::len).sum();
        if count == 0 {
            return Ok(None);
        }
        let overflow = self.overflow.get_or_insert_with(|| Box::new(Overflow::new(held)));
        let reserved = overflow.reserve(count as u64, store);
        let storing = reserved.map(|at| (at, overflow.file.clone(), overflow.reserved.clone()));
        if overflow.length == 0 {
            self.overflow = None; // there was no room for anything
        }
        let (at, file, reserved) = storing?;
        let segments = self.segments.take_from(from).collect();
        self.segments.push_back(Segment::Storing { count });
        Ok(Some(Storing { segments, file, at, reserved }))
    }

    /// The first of the segments in memory at the end of the queue that lies behind `keep` bytes.
    fn first_to_store(&self, keep: usize) -> usize {
        let in_row = self.segments.iter().rev().take_while(|segment| segment.bytes().is_some());
        let first = self.segments.len() - in_row.count();
        let mut kept = 0;
        let mut is_kept = |segment: &Segment| {
            kept += segment.bytes().map_or(0, <[u8]>::len);
            first == 0 && kept <= keep
        };
        first + self.segments.iter().skip(first).position(|segment| !is_kept(segment)).unwrap_or(0)
    }

    /// They are in this file. Owners of them go to `spent`. False: the outbox was cleared meanwhile.
    pub(super) fn was_stored(
        &mut self,
        file: &Arc<DiskFile>,
        storing: &mut Storing,
        spent: &mut Vec<SharedBytes>,
    ) -> bool {
        let Some(overflow) = &mut self.overflow else { return false };
        let Some(place) = self.segments.iter().position(|it| matches!(it, Segment::Storing { .. })) else {
            return false;
        };
        overflow.file.get_or_insert_with(|| file.clone());
        let behind: Vec<Segment> = self.segments.take_from(place).collect();
        for segment in behind {
            let Segment::Storing { count } = segment else {
                self.segments.push_back(segment);
                continue;
            };
            self.in_memory -= count;
            match self.segments.back_mut() {
                Some(Segment::File { file: before, left, .. }) if Arc::ptr_eq(before, file) => *left += count as u64,
                _ => self.segments.push_back(Segment::File { file: file.clone(), at: storing.at, left: count as u64 }),
            }
        }
        spent.extend(storing.segments.drain(..).filter_map(Segment::into_shared));
        self.recount();
        true
    }

    /// They could not be written, and are where they were. False: the outbox was cleared meanwhile.
    pub(super) fn was_not_stored(&mut self, storing: &mut Storing) -> bool {
        let Some(place) = self.segments.iter().position(|it| matches!(it, Segment::Storing { .. })) else {
            return false;
        };
        let behind: Vec<Segment> = self.segments.take_from(place).collect();
        for segment in behind {
            match segment {
                Segment::Storing { count } => {
                    storing.segments.drain(..).for_each(|segment| self.segments.push_back(segment));
                    if let Some(overflow) = &mut self.overflow {
                        overflow.cut(count as u64);
                    }
                }
                segment => self.segments.push_back(segment),
            }
        }
        if self.overflow.as_ref().is_some_and(|overflow| overflow.length == 0) {
            self.overflow = None;
        }
        true
    }
}

/// Moves `at` towards `end` by at most `count`: whether it got there, and by how much it moved.
fn step(at: &mut usize, end: usize, count: usize) -> (bool, usize) {
    let used = count.min(end - *at);
    *at += used;
    (*at == end, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Pool;
    use crate::scoreboard::Scoreboard;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn pair() -> (Stream, UnixStream) {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("sockets");
        let peer = UnixStream::from(b);
        peer.set_nonblocking(false).expect("socket");
        (Stream::new(a), peer)
    }

    fn file() -> Arc<DiskFile> {
        Arc::new(DiskFile::temporary(None, &Pool::new(None).expect("a pool")).expect("disk"))
    }

    #[test]
    fn segments_arrive_in_order_whatever_they_are_made_of() {
        let (socket, mut peer) = pair();
        let mut outbox = Outbox::default();
        let mut spent = Vec::new();
        outbox.push(b"head ");
        outbox.push_shared(Box::new(b"xxshared xx".to_vec()), 2, 9);
        outbox.push(b"!");
        assert_eq!(outbox.flush(&socket, &mut spent), Flush::Empty);
        assert_eq!(spent.len(), 1);
        assert_eq!(outbox.in_memory(), 0);
        drop(socket);
        let mut got = Vec::new();
        peer.read_to_end(&mut got).expect("socket");
        assert_eq!(got, b"head shared !");
    }

    #[test]
    fn a_peer_that_does_not_read_blocks_and_what_it_reads_makes_room() {
        let (socket, mut peer) = pair();
        let mut outbox = Outbox::default();
        let mut spent = Vec::new();
        let total = 4 << 20;
        outbox.push_shared(Box::new(vec![7u8; total]), 0, total);
        assert_eq!(outbox.flush(&socket, &mut spent), Flush::Blocked);
        let mut got = 0;
        let mut piece = vec![0u8; 1 << 16];
        while got < total {
            got += peer.read(&mut piece).expect("socket");
            outbox.flush(&socket, &mut spent);
        }
        assert!(outbox.is_empty());
        assert_eq!(outbox.sent(), total as u64);
    }

    #[test]
    fn a_client_that_reads_as_fast_as_we_send_has_its_turn_and_no_more() {
        let (socket, _peer) = pair();
        let mut outbox = Outbox::default();
        let mut spent = Vec::new();
        outbox.push(b"head");
        outbox.push_shared(Box::new(vec![b'x'; 50_000]), 0, 50_000);
        assert_eq!(outbox.flush_some(&socket, &mut spent, 20_000), None, "there is more");
        assert_eq!(outbox.sent(), 20_000);
        assert_eq!(outbox.flush_some(&socket, &mut spent, 40_000), Some(Flush::Empty));
    }

    #[test]
    fn what_is_in_memory_is_sent_up_to_the_file_behind_it() {
        let (socket, mut peer) = pair();
        let mut outbox = Outbox::default();
        let mut spent = Vec::new();
        let (file, other) = (file(), file());
        outbox.push(b"head ");
        outbox.push_file(file.clone(), 5, 10);
        outbox.push(b" end");
        assert!(outbox.file_in_front().is_none());
        for _ in 0..2 {
            assert_eq!(outbox.flush(&socket, &mut spent), Flush::Disk);
            assert_eq!((outbox.sent(), outbox.file_in_front().map(|(_, at, left)| (at, left))), (5, Some((5, 10))));
        }
        assert!(outbox.file_was_sent(&file, 4) && !outbox.file_was_sent(&other, 4));
        assert_eq!(outbox.file_in_front().map(|(_, at, left)| (at, left)), Some((9, 6)));
        assert!(outbox.file_was_sent(&file, 6) && !outbox.file_was_sent(&file, 1));
        assert_eq!((outbox.flush(&socket, &mut spent), outbox.sent()), (Flush::Empty, 19));
        drop(socket);
        let mut got = String::new();
        peer.read_to_string(&mut got).expect("socket");
        assert_eq!(got, "head  end");
    }

    #[test]
    fn what_is_put_on_disk_keeps_its_place() {
        let held = Held::new(Scoreboard::private(1));
        let store = Store { token: 0, directory: None, each: 1000, total: 1000 };
        let (file, mut spent) = (file(), Vec::new());
        let mut outbox = Outbox::default();
        let mut put = |outbox: &mut Outbox, at| {
            let mut storing = outbox.begin_storing(&store, &held, 5).expect("room").expect("bytes");
            assert_eq!(storing.at, at);
            outbox.push(b"behind ");
            assert!(matches!(outbox.begin_storing(&store, &held, 5), Ok(None)), "one at a time");
            assert!(outbox.was_stored(&file, &mut storing, &mut spent));
        };
        outbox.push(b"kept ");
        outbox.push_shared(Box::new(b"first ".to_vec()), 0, 6);
        outbox.push(b"and ");
        put(&mut outbox, 0);
        assert_eq!((outbox.in_memory(), outbox.is_on_disk()), (12, true));
        put(&mut outbox, 10);
        assert_eq!(outbox.in_memory(), 12, "there is no place before what is on disk");
        let kinds: Vec<_> = outbox.segments.iter().map(|segment| segment.bytes().map(<[u8]>::len)).collect();
        assert_eq!(kinds, [Some(5), None, Some(7)]);
        assert_eq!((spent.len(), held.disk()), (1, 17));
    }

    #[test]
    fn what_finds_no_room_on_disk_stays_in_memory() {
        let held = Held::new(Scoreboard::private(1));
        let mut store = Store { token: 0, directory: None, each: 3, total: 1000 };
        let (socket, mut peer) = pair();
        let (mut outbox, mut spent) = (Outbox::default(), Vec::new());
        outbox.push(b"abcd");
        assert!(outbox.begin_storing(&store, &held, 0).is_err() && !outbox.is_on_disk());
        store.each = 1000;
        let mut storing = outbox.begin_storing(&store, &held, 0).expect("room").expect("bytes");
        assert_eq!(outbox.flush(&socket, &mut spent), Flush::Disk);
        outbox.push(b"efgh");
        assert!(outbox.was_not_stored(&mut storing));
        assert_eq!((outbox.in_memory(), outbox.is_on_disk(), held.disk()), (8, false, 0));
        assert_eq!(outbox.flush(&socket, &mut spent), Flush::Empty);
        drop((socket, outbox));
        let mut got = String::new();
        peer.read_to_string(&mut got).expect("socket");
        assert_eq!(got, "abcdefgh");
    }

    #[test]
    fn bytes_whose_outbox_was_cleared_while_they_were_written_have_no_place() {
        let held = Held::new(Scoreboard::private(1));
        let store = Store { token: 0, directory: None, each: 1000, total: 1000 };
        let mut outbox = Outbox::default();
        outbox.push(b"abcd");
        let mut storing = outbox.begin_storing(&store, &held, 0).expect("room").expect("bytes");
        outbox.clear(&mut Vec::new());
        assert!(!outbox.was_not_stored(&mut storing) && !outbox.was_stored(&file(), &mut storing, &mut Vec::new()));
        assert!(outbox.is_empty() && outbox.in_memory() == 0);
        drop(storing);
        assert_eq!(held.disk(), 0);
    }

    #[test]
    fn a_peer_that_left_is_noticed() {
        let (socket, peer) = pair();
        drop(peer);
        let mut outbox = Outbox::default();
        outbox.push(b"anybody there?");
        assert_eq!(outbox.flush(&socket, &mut Vec::new()), Flush::Gone);
    }
}
