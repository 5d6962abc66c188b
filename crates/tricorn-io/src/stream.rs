//! The door: a connection to a client, and every system call that moves its bytes.
//!
//! Nothing else reads from a client's socket or writes to it. The socket itself is for pollers, and for what only looks.
//! A connection speaks TLS if it came in by such a door: then `secured.rs` does what is done here, and all that its callers
//! see is plaintext. A plain one asks for that once per call.
//!
//! Who sends is decided above this: a client's stream belongs to an output, whose lock puts the bytes in order
//! (`exchange/output.rs`).
#![allow(clippy::disallowed_methods, reason = "the door of clients")]

use crate::secured::{HandshakeOutcome, Secured, Sessions};
use crate::sys::fds::{self, retry, send, unacknowledged};
use crate::sys::poll::ready;
use crate::tls::Facts;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno, IoSlice};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown, sockopt};
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

/// A connection to a client. Nothing here blocks.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
    /// The session, from the first byte of a handshake on.
    secured: OnceLock<Box<Secured>>,
}

impl Stream {
    /// `socket` does not block.
    #[inline]
    pub fn new(socket: OwnedFd) -> Stream {
        Stream { socket, secured: OnceLock::new() }
    }

    /// For pollers, and for what only looks.
    #[inline]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What is known of its session, once that is open; `None`: it is a plain one.
    #[inline]
    pub fn facts(&self) -> Option<&Arc<Facts>> {
        self.secured.get().and_then(|secured| secured.facts())
    }

    /// Whether there is something of the session's own that the socket has not taken.
    pub fn owes(&self) -> bool {
        self.secured.get().is_some_and(|secured| secured.owes())
    }

    /// Whether a session has begun.
    #[inline]
    pub fn is_secured(&self) -> bool {
        self.secured.get().is_some()
    }

    /// Bytes that its session holds for the socket, if there is one.
    pub fn session_memory(&self) -> usize {
        self.secured.get().map_or(0, |secured| secured.memory())
    }

    /// Goes on with the handshake of a door with TLS. `first`: bytes that were read before. Takes its time: not under the baton.
    pub fn handshake(&self, first: &[u8], sessions: &Sessions) -> HandshakeOutcome {
        Secured::handshake(&self.secured, self.socket.as_fd(), first, sessions)
    }

    /// The application had the socket, and may have made it a blocking one.
    pub fn unblock(&self) {
        let _ = io::ioctl_fionbio(&self.socket, true);
    }
}

/// Sending. EPIPE is an error, and no signal (MSG_NOSIGNAL; writev(2) is safe since SIGPIPE is ignored).
impl Stream {
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(secured) = self.secured.get() {
            return secured.send(self.socket.as_fd(), &[IoSlice::new(bytes)]);
        }
        retry(|| send(self.socket.as_fd(), bytes))
    }

    #[inline]
    pub fn send_slices(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if let Some(secured) = self.secured.get() {
            return secured.send(self.socket.as_fd(), slices);
        }
        match slices {
            [one] => self.send(one),
            many => retry(|| io::writev(&self.socket, many)),
        }
    }

    /// Sends what fits, for bytes that may be left out: what is not sent is not presented again. How many.
    pub fn send_once(&self, bytes: &[u8]) -> usize {
        match self.secured.get() {
            Some(secured) => secured.send_once(self.socket.as_fd(), bytes),
            None => self.send(bytes).unwrap_or(0),
        }
    }

    /// Sends a piece of a file; 0: it has ended, or cannot be read.
    pub fn send_file(&self, file: BorrowedFd<'_>, offset: &mut u64, left: &mut u64, most: u64) -> io::Result<usize> {
        let most = (*left).min(most);
        let socket = self.socket.as_fd();
        if let Some(secured) = self.secured.get() {
            let count = copy_file(file, offset, most, |piece| secured.send(socket, &[IoSlice::new(piece)]))?;
            *left -= count as u64;
            return Ok(count);
        }
        let count = match rustix::fs::sendfile(socket, file, Some(offset), most as usize) {
            Err(error) if !matches!(error, Errno::AGAIN | Errno::INTR) => {
                copy_file(file, offset, most, |piece| send(socket, piece))?
            }
            result => result?,
        };
        *left -= count as u64;
        Ok(count)
    }

    /// Holds back what is sent from now on until [`Stream::end_sending`]: its last bytes and the end are one segment. Of no effect
    /// on a unix socket.
    pub fn hold_until_end(&self) {
        let _ = sockopt::set_tcp_cork(&self.socket, true);
    }

    /// Nothing more is sent; the client sees the end.
    pub fn end_sending(&self) -> io::Result<()> {
        self.farewell();
        shutdown(&self.socket, Shutdown::Write)
    }

    /// Before the socket is closed: a client that speaks TLS is told that what it got is all (RFC 8446 section 6.1).
    pub fn farewell(&self) {
        if let Some(secured) = self.secured.get() {
            secured.farewell(self.socket.as_fd());
        }
    }

    /// Bytes sent that the client has not acknowledged (0 where the system does not tell).
    pub fn unacknowledged(&self) -> u64 {
        let on_the_way = unacknowledged(self.socket.as_fd()).unwrap_or(0);
        match self.secured.get() {
            Some(secured) => on_the_way.saturating_sub(secured.ahead()),
            None => on_the_way,
        }
    }
}

/// Receiving.
impl Stream {
    /// Reads up to `most` bytes to the end of a vector that has room for them.
    #[inline]
    pub fn read(&self, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        if let Some(secured) = self.secured.get() {
            let most = most.min(bytes.capacity() - bytes.len());
            return secured.read(self.socket.as_fd(), most, &mut |plain| bytes.extend_from_slice(plain));
        }
        fds::recv_into(self.socket.as_fd(), bytes, most)
    }

    /// Reads into memory that holds nothing yet; as many bytes of it as are returned are initialised.
    #[inline]
    pub fn read_into(&self, room: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        if let Some(secured) = self.secured.get() {
            let (most, mut at) = (room.len(), 0);
            return secured.read(self.socket.as_fd(), most, &mut |plain| {
                room.iter_mut().skip(at).zip(plain).for_each(|(place, byte)| {
                    place.write(*byte);
                });
                at += plain.len();
            });
        }
        fds::receive(self.socket.as_fd(), room)
    }

    /// Reads into scratch memory, for bytes that are thrown away, whatever they mean.
    pub fn discard(&self, scratch: &mut [u8]) -> io::Result<usize> {
        retry(|| recv(&self.socket, &mut *scratch, RecvFlags::empty()).map(|(count, _)| count))
    }

    /// Whether a read would return something: bytes, the end or an error.
    pub fn is_readable(&self) -> bool {
        self.holds() || !ready(self.socket.as_fd(), PollFlags::IN, 0).is_empty()
    }

    /// Whether a read would return something that makes no event: it lies with the session.
    #[inline]
    pub fn holds(&self) -> bool {
        self.secured.get().is_some_and(|secured| secured.holds())
    }

    /// To move so many bytes took as long as to move this many plain ones: they were encrypted or decrypted, and perhaps in small records.
    #[inline]
    pub fn effort(&self, bytes: usize) -> usize {
        match self.secured.get() {
            Some(secured) => 2 * bytes + secured.take_opened() as usize * RECORD_EFFORT,
            None => bytes,
        }
    }

    /// Bytes that have come and were not read.
    pub fn unread(&self) -> u64 {
        if let Some(secured) = self.secured.get() {
            return secured.unread(self.socket.as_fd()) as u64;
        }
        io::ioctl_fionread(&self.socket).unwrap_or(0)
    }
}

/// To open a record of TLS takes as long as to move so many bytes, however little is in it.
const RECORD_EFFORT: usize = 512;
/// Bytes of a file that are read at a time.
const COPY: usize = 64 * 1024;

/// Sends a piece of a file by reading it. Some file systems have no sendfile(2) (EINVAL, ENOSYS), and its error does not tell whether the
/// file or the socket has failed: pread(2) and send(2) do. What is sealed has to be read.
#[cold]
fn copy_file(
    file: BorrowedFd<'_>,
    offset: &mut u64,
    left: u64,
    send: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut piece = vec![0; COPY.min(usize::try_from(left).unwrap_or(COPY))];
    let Ok(count) = io::retry_on_intr(|| io::pread(file, &mut piece, *offset)) else { return Ok(0) };
    if count == 0 {
        return Ok(0);
    }
    let sent = send(&piece[..count])?;
    *offset += sent as u64;
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn where_sendfile_does_not_work_a_file_is_read() {
        let (socket, peer) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("sockets");
        let mut peer = UnixStream::from(peer);
        peer.set_nonblocking(false).expect("socket");
        let bytes: Vec<u8> = (0..1_000_000u32).map(|nr| (nr % 251) as u8).collect();
        let pool = crate::disk::Pool::new(None).expect("a pool");
        let file = crate::disk::DiskFile::temporary(None, &pool).expect("disk");
        file.write(&mut [IoSlice::new(&bytes)], 0).expect("disk");
        let (mut offset, mut got) = (3, Vec::new());
        let end = bytes.len() as u64 - 5;
        let mut is_full = false;
        while offset < end {
            let left = end - offset;
            match copy_file(file.as_fd(), &mut offset, left, |piece| send(socket.as_fd(), piece)) {
                Ok(count) => assert!(count > 0),
                Err(error) => {
                    assert_eq!(error, Errno::AGAIN);
                    is_full = true;
                    let mut piece = vec![0; 1 << 16];
                    let count = peer.read(&mut piece).expect("socket");
                    got.extend_from_slice(&piece[..count]);
                }
            }
        }
        drop(socket);
        peer.read_to_end(&mut got).expect("socket");
        assert!(is_full && got == bytes[3..bytes.len() - 5]);
    }
}
