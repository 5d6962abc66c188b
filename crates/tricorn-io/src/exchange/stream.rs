//! The connection to a client, and the system calls that move its bytes.
//!
//! A [`Stream`] is what an exchange has. The functions are for an outbox, which the reactor and a cork send as well.
use crate::sys::fds::recv_into;
use crate::sys::poll::ready;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno, IoSlice};
use rustix::net::{SendFlags, Shutdown, shutdown};

/// A connection as the exchange reads and writes it. Nothing here blocks.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
}

impl Stream {
    pub fn new(socket: OwnedFd) -> Stream {
        Stream { socket }
    }

    /// For pollers, and for what may only look.
    #[inline]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    #[inline]
    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }

    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        retry(|| send(self.socket.as_fd(), bytes))
    }

    #[inline]
    pub fn send_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        retry(|| send_slices(self.socket.as_fd(), slices))
    }

    /// Reads up to `most` bytes to the end of a vector.
    ///
    /// It must have room for them.
    #[inline]
    pub fn read(&mut self, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        recv_into(self.socket.as_fd(), bytes, most)
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

/// Sends without waiting. EPIPE is an error, and no signal (MSG_NOSIGNAL).
#[inline]
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

#[inline]
pub fn send_slices(socket: BorrowedFd<'_>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    io::writev(socket, slices)
}

/// Nothing more is sent; the client sees the end.
pub fn end(socket: BorrowedFd<'_>) -> io::Result<()> {
    shutdown(socket, Shutdown::Write)
}

/// Sends a piece of a file; 0: it has ended, or cannot be read.
pub fn send_file(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: &mut u64,
    left: &mut u64,
    most: u64,
) -> io::Result<usize> {
    let most = (*left).min(most);
    let count = match rustix::fs::sendfile(socket, file, Some(offset), most as usize) {
        Err(error) if !matches!(error, Errno::AGAIN | Errno::INTR) => copy_file(socket, file, offset, most)?,
        result => result?,
    };
    *left -= count as u64;
    Ok(count)
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
