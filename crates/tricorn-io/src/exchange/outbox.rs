//! What could not be sent at once: segments that keep their owner's bytes, sent as the client takes them.
use super::overflow::{Held, Overflow, Store, Unstored};
pub use super::segments::SharedBytes;
use super::segments::{Segment, Segments};
use crate::scoreboard::Share;
use crate::stream::Stream;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{self, Errno};
use std::io::IoSlice;
use std::sync::Arc;

/// What became of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Everything is with the kernel.
    Empty,
    /// The kernel takes no more for now.
    Blocked,
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
    /// Holds the bytes of the `Stored` segments, in their order.
    overflow: Option<Box<Overflow>>,
    /// Counts `in_memory`, once the outbox has one.
    share: Option<Share>,
    /// A file is where `flush` ends: the sender has the rest.
    leaves_files: bool,
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
        self.overflow.is_some() || self.segments.iter().any(|segment| matches!(segment, Segment::File { .. }))
    }

    /// Bytes waiting in memory.
    pub fn in_memory(&self) -> usize {
        self.in_memory
    }

    /// Bytes waiting in the outbox's own file.
    pub fn in_file(&self) -> u64 {
        self.overflow.as_ref().map_or(0, |overflow| overflow.waiting())
    }

    /// From now on what waits in memory is counted among what all responses hold.
    pub fn share(&mut self, held: &Arc<Held>) {
        self.share.get_or_insert_with(|| held.share()).set(self.in_memory);
    }

    /// Moves to the file what waits in memory behind the first `keep` bytes, and behind what the file holds already. On an
    /// error everything stays where it is.
    pub fn store(&mut self, store: &Store<'_>, keep: usize, spent: &mut Vec<SharedBytes>) -> Result<(), Unstored> {
        let from = self.first_to_store(keep);
        let mut slices: Vec<IoSlice<'_>> =
            self.segments.iter().skip(from).filter_map(|segment| segment.bytes().map(IoSlice::new)).collect();
        let count: usize = slices.iter().map(|slice| slice.len()).sum();
        if count == 0 {
            return Ok(());
        }
        let overflow = match &mut self.overflow {
            Some(overflow) => overflow,
            none => none.insert(Box::new(Overflow::new(store).map_err(Unstored::Failed)?)),
        };
        overflow.append(store, &mut slices, count as u64)?;
        for segment in self.segments.take_from(from) {
            if let Segment::Shared { bytes, .. } = segment {
                spent.push(bytes);
            }
        }
        self.in_memory -= count;
        match self.segments.back_mut() {
            Some(Segment::Stored { left }) => *left += count as u64,
            _ => self.segments.push_back(Segment::Stored { left: count as u64 }),
        }
        self.recount();
        Ok(())
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

    fn recount(&mut self) {
        if let Some(share) = &mut self.share {
            share.set(self.in_memory);
        }
    }

    /// All of the file is sent; it still takes its room on the disk.
    #[inline]
    pub fn has_idle_file(&self) -> bool {
        self.overflow.as_ref().is_some_and(|overflow| overflow.waiting() == 0)
    }

    /// The file, sent or not. Closing a long one takes its time, which a thread that holds the baton has not.
    pub fn take_overflow(&mut self) -> Option<Box<Overflow>> {
        self.overflow.take()
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

    pub fn push_file(&mut self, file: OwnedFd, offset: u64, left: u64) {
        if left > 0 {
            self.segments.push_back(Segment::File { file, offset, left });
        }
    }

    /// From now on `flush` sends only what is in memory.
    pub fn leave_files(&mut self) {
        self.leaves_files = true;
    }

    /// Sends as much as the kernel takes. Owners of shared bytes that are done with go to `spent`.
    pub fn flush(&mut self, stream: &Stream, spent: &mut Vec<SharedBytes>) -> Flush {
        if self.leaves_files {
            return self.flush_memory(stream, spent, usize::MAX).unwrap_or(Flush::Blocked);
        }
        loop {
            if let Some(flush) = self.flush_some(stream, spent, FILE_PIECE as usize) {
                return flush;
            }
        }
    }

    /// The same until about `most` bytes were sent, which is `None`: more can be sent. A client that reads as fast as we send
    /// would otherwise keep the thread for as long as there is something.
    pub fn flush_some(&mut self, stream: &Stream, spent: &mut Vec<SharedBytes>, most: usize) -> Option<Flush> {
        let flush = self.send_some(stream, spent, most);
        self.recount();
        flush
    }

    /// What is sent next lies in a file.
    #[inline]
    pub fn begins_with_file(&self) -> bool {
        self.segments.front().is_some_and(|first| first.bytes().is_none())
    }

    /// As [`Outbox::flush_some`] until a file is next, which is `None` as well.
    pub fn flush_memory(&mut self, stream: &Stream, spent: &mut Vec<SharedBytes>, most: usize) -> Option<Flush> {
        let end = self.sent.saturating_add(most as u64);
        loop {
            let room = end.saturating_sub(self.sent);
            if self.begins_with_file() || room == 0 {
                return None;
            }
            let before = self.segments.len();
            let in_row = self.segments.iter().take_while(|segment| segment.bytes().is_some());
            let in_memory: usize = in_row.filter_map(Segment::bytes).map(<[u8]>::len).sum();
            let flush = self.flush_some(stream, spent, in_memory.min(room as usize));
            if flush.is_some() || before == 0 {
                return flush;
            }
        }
    }

    fn send_some(&mut self, stream: &Stream, spent: &mut Vec<SharedBytes>, most: usize) -> Option<Flush> {
        let end = self.sent.saturating_add(most as u64);
        while !self.segments.is_empty() {
            let room = end.saturating_sub(self.sent);
            if room == 0 {
                return None;
            }
            let room = room.min(FILE_PIECE);
            let step = match (self.segments.front_mut(), &mut self.overflow) {
                (Some(Segment::File { file, offset, left }), _) => stream.send_file(file.as_fd(), offset, left, room),
                (Some(Segment::Stored { left }), Some(overflow)) => send_stored(stream, overflow, left, room),
                _ => self.send_memory(stream, room as usize),
            };
            match step {
                Ok(0) => return Some(Flush::Truncated),
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
        for segment in self.segments.take_from(0) {
            if let Segment::Shared { bytes, .. } = segment {
                spent.push(bytes);
            }
        }
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
            let Some(front) = self.segments.front_mut() else { return };
            let (done, used) = match front {
                Segment::Owned { bytes, at } => step(at, bytes.len(), count),
                Segment::Shared { at, end, .. } => step(at, *end, count),
                Segment::File { left, .. } | Segment::Stored { left } => (*left == 0, count),
            };
            if matches!(front, Segment::Owned { .. } | Segment::Shared { .. }) {
                self.in_memory -= used;
            }
            count -= used;
            if !done {
                return;
            }
            if let Some(Segment::Shared { bytes, .. }) = self.segments.pop_front() {
                spent.push(bytes);
            }
        }
    }
}

/// Moves `at` towards `end` by at most `count`: whether it got there, and by how much it moved.
fn step(at: &mut usize, end: usize, count: usize) -> (bool, usize) {
    let used = count.min(end - *at);
    *at += used;
    (*at == end, used)
}

/// Most bytes per `sendfile`, so that one client cannot hold a thread in the kernel.
const FILE_PIECE: u64 = 1 << 20;

fn send_stored(stream: &Stream, overflow: &mut Overflow, left: &mut u64, most: u64) -> io::Result<usize> {
    let (file, sent) = overflow.unsent();
    stream.send_file(file, sent, left, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn pair() -> (Stream, UnixStream) {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("sockets");
        let peer = UnixStream::from(b);
        peer.set_nonblocking(false).expect("socket");
        (Stream::new(a), peer)
    }

    fn file_of(bytes: &[u8]) -> OwnedFd {
        let mut file = crate::exchange::body::new_file(None).expect("disk");
        file.write_all(bytes).expect("disk");
        OwnedFd::from(file)
    }

    #[test]
    fn segments_arrive_in_order_whatever_they_are_made_of() {
        let (socket, mut peer) = pair();
        let file = file_of(b"from a file");
        let mut outbox = Outbox::default();
        let mut spent = Vec::new();
        outbox.push(b"head ");
        outbox.push_shared(Box::new(b"xxshared xx".to_vec()), 2, 9);
        outbox.push_file(file, 5, 6);
        outbox.push(b"!");
        assert_eq!(outbox.flush(&socket, &mut spent), Flush::Empty);
        assert_eq!(spent.len(), 1);
        assert_eq!(outbox.in_memory(), 0);
        drop(socket);
        let mut got = Vec::new();
        peer.read_to_end(&mut got).expect("socket");
        assert_eq!(got, b"head shared a file!");
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
        outbox.push_file(file_of(&[b'x'; 50_000]), 0, 50_000);
        assert_eq!(outbox.flush_some(&socket, &mut spent, 20_000), None, "there is more");
        assert_eq!(outbox.sent(), 20_000);
        assert_eq!(outbox.flush_some(&socket, &mut spent, 40_000), Some(Flush::Empty));
    }

    #[test]
    fn what_is_in_memory_is_sent_without_the_file_behind_it() {
        let (socket, mut peer) = pair();
        let mut outbox = Outbox::default();
        let mut spent = Vec::new();
        outbox.push(b"head ");
        outbox.push_shared(Box::new(b"and more ".to_vec()), 0, 9);
        outbox.push_file(file_of(b"file"), 0, 4);
        outbox.push(b" end");
        assert!(!outbox.begins_with_file());
        assert_eq!(outbox.flush_memory(&socket, &mut spent, 1 << 20), None);
        assert!(outbox.begins_with_file() && outbox.sent() == 14);
        assert_eq!(outbox.flush_memory(&socket, &mut spent, 1 << 20), None, "it stays");
        assert_eq!(outbox.flush_some(&socket, &mut spent, 4), None);
        assert_eq!(outbox.flush_memory(&socket, &mut spent, 2), None);
        assert_eq!(outbox.sent(), 20, "no more than was asked for");
        assert_eq!(outbox.flush_memory(&socket, &mut spent, 1 << 20), Some(Flush::Empty));
        drop(socket);
        let mut got = String::new();
        peer.read_to_string(&mut got).expect("socket");
        assert_eq!(got, "head and more file end");
    }

    #[test]
    fn what_is_put_on_disk_keeps_its_place() {
        let held = Arc::new(Held::new(crate::scoreboard::Scoreboard::private(1)));
        let store = Store { held: &held, directory: None, each: 1000, total: 1000 };
        let (socket, mut peer) = pair();
        let (mut outbox, mut spent) = (Outbox::default(), Vec::new());
        outbox.push(b"kept ");
        outbox.push_shared(Box::new(b"first ".to_vec()), 0, 6);
        outbox.push(b"and ");
        assert!(outbox.store(&store, 5, &mut spent).is_ok());
        assert_eq!((outbox.in_memory(), outbox.in_file(), spent.len()), (5, 10, 1));
        outbox.push(b"second ");
        assert!(outbox.store(&store, 5, &mut spent).is_ok(), "there is no place before what is on disk");
        assert_eq!((outbox.in_memory(), outbox.in_file()), (5, 17));
        let file = file_of(b"third ");
        outbox.push_file(file, 0, 6);
        outbox.push(b"fourth");
        assert!(outbox.store(&store, 5, &mut spent).is_ok());
        assert_eq!((outbox.in_memory(), outbox.in_file()), (5, 23));
        assert_eq!(outbox.flush(&socket, &mut spent), Flush::Empty);
        drop((socket, outbox));
        let mut got = String::new();
        peer.read_to_string(&mut got).expect("socket");
        assert_eq!(got, "kept first and second third fourth");
    }

    #[test]
    fn what_finds_no_room_on_disk_stays_in_memory() {
        let held = Arc::new(Held::new(crate::scoreboard::Scoreboard::private(1)));
        let missing = std::path::Path::new("/nonexistent/files");
        for (directory, each) in [(None, 3), (Some(missing), 1000)] {
            let store = Store { held: &held, directory, each, total: 1000 };
            let (socket, mut peer) = pair();
            let (mut outbox, mut spent) = (Outbox::default(), Vec::new());
            outbox.push(b"abcd");
            let outcome = outbox.store(&store, 0, &mut spent);
            assert!(matches!(outcome, Err(Unstored::Full)) == directory.is_none() && outcome.is_err());
            assert_eq!((outbox.in_memory(), outbox.in_file()), (4, 0));
            assert_eq!(outbox.flush(&socket, &mut spent), Flush::Empty);
            drop((socket, outbox));
            let mut got = String::new();
            peer.read_to_string(&mut got).expect("socket");
            assert_eq!(got, "abcd");
        }
    }

    #[test]
    fn a_peer_that_left_is_noticed() {
        let (socket, peer) = pair();
        drop(peer);
        let mut outbox = Outbox::default();
        outbox.push(b"anybody there?");
        assert_eq!(outbox.flush(&socket, &mut Vec::new()), Flush::Gone);
    }

    #[test]
    fn a_file_of_a_file_system_without_sendfile_is_sent() {
        let (socket, mut peer) = pair();
        // procfs: EINVAL for sendfile(2), which is told of the file and not of the client.
        let name = "/proc/self/cmdline";
        let bytes = std::fs::read(name).expect("procfs");
        let mut outbox = Outbox::default();
        outbox.push_file(OwnedFd::from(std::fs::File::open(name).expect("procfs")), 1, bytes.len() as u64 - 1);
        assert_eq!(outbox.flush(&socket, &mut Vec::new()), Flush::Empty);
        drop(socket);
        let mut got = Vec::new();
        peer.read_to_end(&mut got).expect("socket");
        assert_eq!(got, bytes[1..]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_taken_for_a_client_that_left() {
        let (socket, _peer) = pair();
        // sendfile(2) of a directory is EINVAL, pread(2) of it EISDIR.
        let directory = std::fs::File::open(std::env::temp_dir()).expect("a directory");
        let mut outbox = Outbox::default();
        outbox.push_file(OwnedFd::from(directory), 0, 10);
        assert_eq!(outbox.flush(&socket, &mut Vec::new()), Flush::Truncated);
    }

    #[test]
    fn a_client_that_left_is_not_taken_for_a_file_that_ended() {
        let (socket, peer) = pair();
        drop(peer);
        let file = file_of(b"abc");
        let mut outbox = Outbox::default();
        outbox.push_file(file, 0, 3);
        assert_eq!(outbox.flush(&socket, &mut Vec::new()), Flush::Gone);
    }

    #[test]
    fn a_file_that_is_shorter_than_promised_is_told() {
        let (socket, _peer) = pair();
        let file = file_of(b"abc");
        let mut outbox = Outbox::default();
        outbox.push_file(file, 0, 10);
        assert_eq!(outbox.flush(&socket, &mut Vec::new()), Flush::Truncated);
    }
}
