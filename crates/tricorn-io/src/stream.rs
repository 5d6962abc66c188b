//! The door: a connection to a client, and every system call that moves its bytes.
//!
//! Nothing else reads from a client's socket or writes to it. The socket itself is for pollers, and for what only looks.
//! A [`Stream`] has one owner. Two others may send, each in a case of its own:
//!
//! * A cork has a second handle ([`Stream::second`]): its lock puts the bytes in order (`exchange/cork.rs`).
//! * The monitor has a [`Lent`] number, from which it makes a handle while the claim keeps the owner from closing
//!   (`exchange/claim.rs`).
use crate::sys::fds::{self, duplicate, unacknowledged};
use crate::sys::poll::ready;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::{self, Errno, IoSlice};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, shutdown};
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::{Acquire, Release};

/// A connection to a client. Nothing here blocks.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
}

impl Stream {
    /// `socket` does not block.
    #[inline]
    pub fn new(socket: OwnedFd) -> Stream {
        Stream { socket }
    }

    /// For pollers, and for what only looks.
    #[inline]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Another handle for the same connection.
    pub fn second(&self) -> io::Result<Stream> {
        Ok(Stream { socket: io::fcntl_dupfd_cloexec(&self.socket, 3)? })
    }

    /// The application had the socket, and may have made it a blocking one.
    pub fn unblock(&self) {
        let _ = io::ioctl_fionbio(&self.socket, true);
    }
}

/// Sending. EPIPE is an error, and no signal (MSG_NOSIGNAL; writev(2) is safe since SIGPIPE is ignored).
impl Stream {
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        retry(|| send(self.socket.as_fd(), bytes))
    }

    #[inline]
    pub fn send_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [one] => self.send(one),
            many => retry(|| io::writev(&self.socket, many)),
        }
    }

    /// Sends a piece of a file; 0: it has ended, or cannot be read.
    pub fn send_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        left: &mut u64,
        most: u64,
    ) -> io::Result<usize> {
        let most = (*left).min(most);
        let socket = self.socket.as_fd();
        let count = match rustix::fs::sendfile(socket, file, Some(offset), most as usize) {
            Err(error) if !matches!(error, Errno::AGAIN | Errno::INTR) => copy_file(socket, file, offset, most)?,
            result => result?,
        };
        *left -= count as u64;
        Ok(count)
    }

    /// Nothing more is sent; the client sees the end.
    pub fn end_sending(&mut self) -> io::Result<()> {
        shutdown(&self.socket, Shutdown::Write)
    }

    /// Bytes sent that the client has not acknowledged (0 where the system does not tell).
    pub fn unacknowledged(&self) -> u64 {
        unacknowledged(self.socket.as_fd()).unwrap_or(0)
    }
}

/// Receiving.
impl Stream {
    /// Reads up to `most` bytes to the end of a vector that has room for them.
    #[inline]
    pub fn read(&mut self, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        fds::recv_into(self.socket.as_fd(), bytes, most)
    }

    /// Reads into memory that holds nothing yet; as many bytes of it as are returned are initialised.
    #[inline]
    pub fn read_into(&mut self, room: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        fds::receive(self.socket.as_fd(), room)
    }

    /// Reads into scratch memory, for bytes that are thrown away.
    pub fn discard(&mut self, scratch: &mut [u8]) -> io::Result<usize> {
        retry(|| recv(&self.socket, &mut *scratch, RecvFlags::empty()).map(|(count, _)| count))
    }

    /// Whether a read would return something: bytes, the end or an error.
    pub fn is_readable(&self) -> bool {
        !ready(self.socket.as_fd(), PollFlags::IN, 0).is_empty()
    }

    /// Bytes that have come and were not read.
    pub fn unread(&self) -> u64 {
        io::ioctl_fionread(&self.socket).unwrap_or(0)
    }
}

/// The number of a stream's socket, for a thread that does not own it.
#[derive(Debug, Default)]
pub struct Lent(AtomicI32);

impl Lent {
    pub fn lend(&self, stream: &Stream) {
        self.0.store(stream.socket.as_raw_fd(), Release);
    }

    /// A handle of its own. The caller makes sure that the owner has not closed the socket.
    pub fn handle(&self) -> io::Result<Stream> {
        let number: RawFd = self.0.load(Acquire);
        duplicate(number).map(Stream::new)
    }
}

#[inline]
fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

/// Bytes that are read at a time where sendfile(2) does not work.
const COPY: usize = 64 * 1024;

/// Some file systems have no sendfile(2) (EINVAL, ENOSYS), and its error does not tell whether the file or the socket has failed:
/// pread(2) and send(2) do.
#[cold]
fn copy_file(socket: BorrowedFd<'_>, file: BorrowedFd<'_>, offset: &mut u64, left: u64) -> io::Result<usize> {
    let mut piece = vec![0; COPY.min(usize::try_from(left).unwrap_or(COPY))];
    let Ok(count) = io::retry_on_intr(|| io::pread(file, &mut piece, *offset)) else { return Ok(0) };
    if count == 0 {
        return Ok(0);
    }
    let sent = send(socket, &piece[..count])?;
    *offset += sent as u64;
    Ok(sent)
}

#[inline]
fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn where_sendfile_does_not_work_a_file_is_read() {
        let (socket, peer) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("sockets");
        let mut peer = UnixStream::from(peer);
        peer.set_nonblocking(false).expect("socket");
        let bytes: Vec<u8> = (0..1_000_000u32).map(|nr| (nr % 251) as u8).collect();
        let mut file = crate::exchange::body::new_file(None).expect("disk");
        file.write_all(&bytes).expect("disk");
        let (mut offset, mut got) = (3, Vec::new());
        let end = bytes.len() as u64 - 5;
        let mut is_full = false;
        while offset < end {
            let left = end - offset;
            match copy_file(socket.as_fd(), file.as_fd(), &mut offset, left) {
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
