//! What could not be sent at once: segments that keep their owner's bytes, sent as the client takes them.
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::{SendFlags, send};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes that belong to somebody else (a Python `bytes` object) and must be given back to be freed.
pub type SharedBytes = Box<dyn AsRef<[u8]> + Send + Sync>;

enum Segment {
    Owned { bytes: Vec<u8>, at: usize },
    Shared { bytes: SharedBytes, at: usize, end: usize },
    File { file: OwnedFd, offset: u64, left: u64 },
}

/// What became of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Everything is with the kernel.
    Empty,
    /// The kernel takes no more for now.
    Blocked,
    /// The peer is gone.
    Gone,
    /// A file to be sent ended early: the response cannot be completed.
    Truncated,
}

/// An ordered queue of output. Bounded by its users: see `HIGH_WATER`.
#[derive(Default)]
pub struct Outbox {
    segments: VecDeque<Segment>,
    /// Bytes waiting, those of files not counted (they are not in memory).
    in_memory: usize,
    sent: u64,
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

    /// Bytes waiting in memory.
    pub fn in_memory(&self) -> usize {
        self.in_memory
    }

    /// Bytes handed to the kernel through this outbox.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.in_memory += bytes.len();
        if let Some(Segment::Owned { bytes: last, .. }) = self.segments.back_mut()
            && last.len() + bytes.len() <= GATHER
        {
            last.extend_from_slice(bytes);
            return;
        }
        self.segments.push_back(Segment::Owned { bytes: bytes.to_vec(), at: 0 });
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

    /// Sends as much as the kernel takes. Owners of shared bytes that are done with go to `spent`.
    pub fn flush(&mut self, socket: BorrowedFd<'_>, spent: &mut Vec<SharedBytes>) -> Flush {
        while !self.segments.is_empty() {
            let step = match self.segments.front_mut() {
                Some(Segment::File { file, offset, left }) => send_file(socket, file.as_fd(), offset, left),
                _ => self.send_memory(socket),
            };
            match step {
                Ok(0) => return Flush::Truncated,
                Ok(count) => self.advance(count, spent),
                Err(Errno::AGAIN) => return Flush::Blocked,
                Err(Errno::INTR) => {}
                Err(_) => return Flush::Gone,
            }
        }
        Flush::Empty
    }

    /// Gives every owner back, sent or not.
    pub fn clear(&mut self, spent: &mut Vec<SharedBytes>) {
        self.in_memory = 0;
        for segment in self.segments.drain(..) {
            if let Segment::Shared { bytes, .. } = segment {
                spent.push(bytes);
            }
        }
    }

    /// One system call for all leading segments in memory (as many as fit one call).
    fn send_memory(&self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        const MOST: usize = 16;
        let mut slices = [IoSlice::new(&[]); MOST];
        let mut count = 0;
        for segment in self.segments.iter().take(MOST) {
            slices[count] = match segment {
                Segment::Owned { bytes, at } => IoSlice::new(&bytes[*at..]),
                Segment::Shared { bytes, at, end } => IoSlice::new(&(**bytes).as_ref()[*at..*end]),
                Segment::File { .. } => break,
            };
            count += 1;
        }
        match &slices[..count] {
            [one] => send(socket, one, SendFlags::NOSIGNAL | SendFlags::DONTWAIT),
            many => io::writev(socket, many),
        }
    }

    fn advance(&mut self, mut count: usize, spent: &mut Vec<SharedBytes>) {
        self.sent += count as u64;
        while count > 0 {
            let Some(front) = self.segments.front_mut() else { return };
            let (done, used) = match front {
                Segment::Owned { bytes, at } => step(at, bytes.len(), count),
                Segment::Shared { at, end, .. } => step(at, *end, count),
                Segment::File { left, .. } => (*left == 0, count),
            };
            if !matches!(front, Segment::File { .. }) {
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

fn send_file(socket: BorrowedFd<'_>, file: BorrowedFd<'_>, offset: &mut u64, left: &mut u64) -> io::Result<usize> {
    let count = rustix::fs::sendfile(socket, file, Some(offset), (*left).min(FILE_PIECE) as usize)?;
    *left -= count as u64;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn pair() -> (OwnedFd, UnixStream) {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("sockets");
        let peer = UnixStream::from(b);
        peer.set_nonblocking(false).expect("socket");
        (a, peer)
    }

    #[test]
    fn segments_arrive_in_order_whatever_they_are_made_of() {
        let (socket, mut peer) = pair();
        let mut file = crate::body::Spool::begin(b"from a file", None).expect("disk").into_file().expect("disk");
        file.flush().expect("disk");
        let mut outbox = Outbox::default();
        let mut spent = Vec::new();
        outbox.push(b"head ");
        outbox.push_shared(Box::new(b"xxshared xx".to_vec()), 2, 9);
        outbox.push_file(OwnedFd::from(file), 5, 6);
        outbox.push(b"!");
        assert_eq!(outbox.flush(socket.as_fd(), &mut spent), Flush::Empty);
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
        assert_eq!(outbox.flush(socket.as_fd(), &mut spent), Flush::Blocked);
        let mut got = 0;
        let mut piece = vec![0u8; 1 << 16];
        while got < total {
            got += peer.read(&mut piece).expect("socket");
            outbox.flush(socket.as_fd(), &mut spent);
        }
        assert!(outbox.is_empty());
        assert_eq!(outbox.sent(), total as u64);
    }

    #[test]
    fn a_peer_that_left_is_noticed() {
        let (socket, peer) = pair();
        drop(peer);
        let mut outbox = Outbox::default();
        outbox.push(b"anybody there?");
        assert_eq!(outbox.flush(socket.as_fd(), &mut Vec::new()), Flush::Gone);
    }

    #[test]
    fn a_file_that_is_shorter_than_promised_is_told() {
        let (socket, _peer) = pair();
        let file = crate::body::Spool::begin(b"abc", None).expect("disk").into_file().expect("disk");
        let mut outbox = Outbox::default();
        outbox.push_file(OwnedFd::from(file), 0, 10);
        assert_eq!(outbox.flush(socket.as_fd(), &mut Vec::new()), Flush::Truncated);
    }
}
