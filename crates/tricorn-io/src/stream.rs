//! The door: a way to a client, and every system call that moves its bytes.
//!
//! ```text
//!   Stream ──┬── socket                          a connection
//!            ├── socket, and its session         the same by TLS (`secured.rs`)
//!            ├── one end of a pair               a connection that another worker has (`borrowed.rs`)
//!            └── Channel ──▶ trunk ──▶ Stream    one stream of a connection of HTTP/2 (`http2.rs`)
//! ```
//!
//! Nothing else reads from a client's socket or writes to it. The socket itself is for pollers, and for what only looks.
//! All that callers see of TLS is plaintext; of a channel, what it takes are parts of a response, and what it gives is content.
//!
//! Who sends is decided above this: a client's stream belongs to an output, whose lock puts the bytes in order
//! (`exchange/output.rs`).
#![allow(clippy::disallowed_methods, reason = "the door of clients")]

use crate::borrowed::Borrowed;
use crate::peer::Peer;
use crate::secured::{HandshakeOutcome, Secured, Sessions};
use crate::sys::fds::{self, retry, send, unacknowledged};
use crate::sys::poll::ready;
use crate::sys::wake::Alarm;
use crate::tls::Facts;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno, IoSlice};
use rustix::net::{RecvFlags, Shutdown, SocketAddrUnix, getpeername, getsockname, recv, shutdown, sockopt};
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// A way to a client. Nothing here blocks.
#[derive(Debug)]
pub struct Stream(Way);

#[derive(Debug)]
enum Way {
    Socket(Socket),
    Channel(Box<dyn Channel>),
}

/// One stream of a connection that has several. It takes the parts of a response, and gives the content of a request. Calls are those
/// of [`Stream`] unless they say something else.
pub trait Channel: Debug + Send + Sync {
    /// The connection that others use as well.
    fn connection(&self) -> &Stream;

    fn look(&self) -> Found;

    fn send(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// The same, and what comes of it waits for others: the reactor sends it.
    fn hold(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Reads up to `most` bytes of content; 0: the request is complete.
    fn read(&self, most: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<usize>;

    /// Whether all of the request was read.
    fn is_at_end(&self) -> bool;

    fn unread(&self) -> u64;

    fn unacknowledged(&self) -> u64;

    /// Readable while there is something to be read.
    ///
    /// # Errors
    /// The system has no descriptor.
    fn readable(&self) -> io::Result<Arc<Alarm>>;

    /// Readable once there is room for content, or none is wanted.
    ///
    /// # Errors
    /// The system has no descriptor.
    fn room(&self) -> io::Result<Arc<Alarm>>;

    /// What the reactor is to do when there is room.
    fn on_room(&self, work: Box<dyn FnOnce() + Send>);
}

/// How a channel stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// There is something to be read, the end of the request included.
    pub readable: bool,
    /// Content may be sent, or none ever will.
    pub room: bool,
    /// The client has reset it, or its connection is no more.
    pub gone: bool,
}

impl Found {
    /// Of a stream whose connection is no more.
    pub const GONE: Found = Found { readable: true, room: true, gone: true };
}

#[derive(Debug)]
struct Socket {
    socket: OwnedFd,
    /// The session, from the first byte of a handshake on.
    secured: OnceLock<Box<Secured>>,
    /// It is one end of a pair; of the client's connection, which another worker has, this is known.
    borrowed: Option<Box<Borrowed>>,
}

/// What is waited for until more can be sent.
#[derive(Debug)]
pub enum Room<'s> {
    /// The socket is writable.
    Socket(BorrowedFd<'s>),
    /// The alarm is readable.
    Alarm(Arc<Alarm>),
}

impl Stream {
    /// `socket` does not block.
    #[inline]
    pub fn new(socket: OwnedFd) -> Stream {
        Stream(Way::Socket(Socket { socket, secured: OnceLock::new(), borrowed: None }))
    }

    /// One end of a pair, whose other end the worker has that has the connection.
    pub fn to_lender(socket: OwnedFd, borrowed: Borrowed) -> Stream {
        Stream(Way::Socket(Socket { socket, secured: OnceLock::new(), borrowed: Some(Box::new(borrowed)) }))
    }

    /// What is known of the client's connection, if another worker has it.
    pub fn borrowed(&self) -> Option<&Borrowed> {
        match &self.0 {
            Way::Socket(own) => own.borrowed.as_deref(),
            Way::Channel(_) => None,
        }
    }

    /// What a worker is told that answers in this one's place.
    pub fn describe(&self) -> Borrowed {
        match self.borrowed() {
            Some(borrowed) => borrowed.clone(),
            None => Borrowed { local: self.local_address(), path: self.local_path(), facts: self.facts().cloned() },
        }
    }

    /// Who has connected, as accept(2) has said it.
    ///
    /// # Errors
    /// The connection is gone (ENOTCONN).
    pub fn peer(&self) -> io::Result<Peer> {
        let address = getpeername(self.socket())?.and_then(|name| SocketAddr::try_from(name).ok());
        Ok(address.map_or(Peer::Unix, Peer::Internet))
    }

    /// The address that the client has connected to.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self.borrowed() {
            Some(borrowed) => borrowed.local,
            None => SocketAddr::try_from(getsockname(self.socket()).ok()?).ok(),
        }
    }

    /// The path that the client has connected to, if it is that of a unix socket.
    pub fn local_path(&self) -> Option<Vec<u8>> {
        if let Some(borrowed) = self.borrowed() {
            return borrowed.path.clone();
        }
        let address = SocketAddrUnix::try_from(getsockname(self.socket()).ok()?).ok()?;
        address.path_bytes().map(<[u8]>::to_vec)
    }

    /// One stream of a trunk.
    pub fn of(channel: impl Channel + 'static) -> Stream {
        Stream(Way::Channel(Box::new(channel)))
    }

    /// For pollers, and for what only looks. That of a channel is its trunk's.
    #[inline]
    pub fn socket(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Way::Socket(own) => own.socket.as_fd(),
            Way::Channel(channel) => channel.connection().socket(),
        }
    }

    /// `None`: it is a connection of its own.
    #[inline]
    pub fn channel(&self) -> Option<&dyn Channel> {
        match &self.0 {
            Way::Socket(_) => None,
            Way::Channel(channel) => Some(&**channel),
        }
    }

    #[inline]
    fn secured(&self) -> Option<&Secured> {
        match &self.0 {
            Way::Socket(own) => own.secured.get().map(|secured| &**secured),
            Way::Channel(_) => None,
        }
    }

    /// What is known of its session, once that is open; `None`: it is a plain one.
    #[inline]
    pub fn facts(&self) -> Option<&Arc<Facts>> {
        match &self.0 {
            Way::Socket(own) => match &own.borrowed {
                Some(borrowed) => borrowed.facts.as_ref(),
                None => self.secured().and_then(Secured::facts),
            },
            Way::Channel(channel) => channel.connection().facts(),
        }
    }

    /// Whether there is something of the session's own that the socket has not taken.
    pub fn owes(&self) -> bool {
        self.secured().is_some_and(Secured::owes)
    }

    /// Whether a session has begun.
    #[inline]
    pub fn is_secured(&self) -> bool {
        self.secured().is_some()
    }

    /// Bytes that its session holds for the socket, if there is one.
    pub fn session_memory(&self) -> usize {
        self.secured().map_or(0, Secured::memory)
    }

    /// Goes on with the handshake of a door with TLS. `first`: bytes that were read before. Takes its time: not under the baton.
    pub fn handshake(&self, first: &[u8], sessions: &Sessions) -> HandshakeOutcome {
        match &self.0 {
            Way::Socket(own) => Secured::handshake(&own.secured, own.socket.as_fd(), first, sessions),
            Way::Channel(_) => HandshakeOutcome::Over,
        }
    }

    /// The application had the socket, and may have made it a blocking one.
    pub fn unblock(&self) {
        let _ = io::ioctl_fionbio(self.socket(), true);
    }
}

/// Sending. EPIPE is an error, and no signal (MSG_NOSIGNAL; writev(2) is safe since SIGPIPE is ignored).
impl Stream {
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Way::Socket(own) => match own.secured.get() {
                Some(secured) => secured.send(own.socket.as_fd(), &[IoSlice::new(bytes)]),
                None => retry(|| send(own.socket.as_fd(), bytes)),
            },
            Way::Channel(channel) => channel.send(&[IoSlice::new(bytes)]),
        }
    }

    /// Sends bytes that have more behind them, which is sent next: the kernel need not make a packet of what is shorter than one.
    pub fn send_before_more(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Way::Socket(own) if own.secured.get().is_none() => {
                retry(|| fds::send_before_more(own.socket.as_fd(), bytes))
            }
            _ => self.send(bytes),
        }
    }

    #[inline]
    pub fn send_slices(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.0 {
            Way::Socket(own) => match (own.secured.get(), slices) {
                (Some(secured), _) => secured.send(own.socket.as_fd(), slices),
                (None, [one]) => self.send(one),
                (None, many) => retry(|| io::writev(&own.socket, many)),
            },
            Way::Channel(channel) => channel.send(slices),
        }
    }

    /// Sends what fits, for bytes that may be left out: what is not sent is not presented again. How many.
    pub fn send_once(&self, bytes: &[u8]) -> usize {
        match self.secured() {
            Some(secured) => secured.send_once(self.socket(), bytes),
            None => self.send(bytes).unwrap_or(0),
        }
    }

    /// Sends a piece of a file; 0: it has ended, or cannot be read.
    pub fn send_file(&self, file: BorrowedFd<'_>, offset: &mut u64, left: &mut u64, most: u64) -> io::Result<usize> {
        let most = (*left).min(most);
        let own = match &self.0 {
            Way::Socket(own) if own.secured.get().is_none() => own,
            _ => {
                let count = copy_file(file, offset, most, |piece| self.send(piece))?;
                *left -= count as u64;
                return Ok(count);
            }
        };
        let socket = own.socket.as_fd();
        let count = match rustix::fs::sendfile(socket, file, Some(offset), most as usize) {
            Err(error) if !matches!(error, Errno::AGAIN | Errno::INTR) => {
                copy_file(file, offset, most, |piece| send(socket, piece))?
            }
            result => result?,
        };
        *left -= count as u64;
        Ok(count)
    }

    /// Whether [`Stream::send_file`] leaves the bytes in the kernel.
    pub fn sends_files(&self) -> bool {
        matches!(&self.0, Way::Socket(own) if own.secured.get().is_none())
    }

    /// Whether more could be sent now.
    pub fn has_room(&self) -> bool {
        match &self.0 {
            Way::Socket(own) => !ready(own.socket.as_fd(), PollFlags::OUT, 0).is_empty(),
            Way::Channel(channel) => channel.look().room,
        }
    }

    /// What is to be waited for until there is room.
    ///
    /// # Errors
    /// The system has no descriptor.
    pub fn room(&self) -> io::Result<Room<'_>> {
        match &self.0 {
            Way::Socket(own) => Ok(Room::Socket(own.socket.as_fd())),
            Way::Channel(channel) => channel.room().map(Room::Alarm),
        }
    }

    /// Holds back what is sent from now on until [`Stream::end_sending`]: its last bytes and the end are one segment. Of no effect
    /// on a unix socket.
    pub fn hold_until_end(&self) {
        if let Way::Socket(own) = &self.0 {
            let _ = sockopt::set_tcp_cork(&own.socket, true);
        }
    }

    /// Nothing more is sent; the client sees the end. The end of a channel is a part of its response.
    pub fn end_sending(&self) -> io::Result<()> {
        self.send_close_notify();
        match &self.0 {
            Way::Socket(own) => shutdown(&own.socket, Shutdown::Write),
            Way::Channel(_) => Ok(()),
        }
    }

    /// Before the socket is closed: a client that speaks TLS is told that what it got is all (RFC 8446 section 6.1).
    pub fn send_close_notify(&self) {
        if let Some(secured) = self.secured() {
            secured.send_close_notify(self.socket());
        }
    }

    /// Bytes sent that the client has not acknowledged (0 where the system does not tell).
    pub fn unacknowledged(&self) -> u64 {
        let own = match &self.0 {
            Way::Socket(own) => own,
            Way::Channel(channel) => return channel.unacknowledged(),
        };
        let on_the_way = unacknowledged(own.socket.as_fd()).unwrap_or(0);
        match own.secured.get() {
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
        let own = match &self.0 {
            Way::Socket(own) => own,
            Way::Channel(channel) => return channel.read(most, &mut |content| bytes.extend_from_slice(content)),
        };
        if let Some(secured) = own.secured.get() {
            let most = most.min(bytes.capacity() - bytes.len());
            return secured.read(own.socket.as_fd(), most, &mut |plain| bytes.extend_from_slice(plain));
        }
        fds::recv_into(own.socket.as_fd(), bytes, most)
    }

    /// Reads into memory that holds nothing yet; as many bytes of it as are returned are initialised.
    #[inline]
    pub fn read_into(&self, room: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        let (most, mut at) = (room.len(), 0);
        let mut fill = |bytes: &[u8]| {
            room.iter_mut().skip(at).zip(bytes).for_each(|(place, byte)| {
                place.write(*byte);
            });
            at += bytes.len();
        };
        match &self.0 {
            Way::Channel(channel) => channel.read(most, &mut fill),
            Way::Socket(own) => match own.secured.get() {
                Some(secured) => secured.read(own.socket.as_fd(), most, &mut fill),
                None => fds::receive(own.socket.as_fd(), room),
            },
        }
    }

    /// Reads into scratch memory, for bytes that are thrown away, whatever they mean.
    pub fn discard(&self, scratch: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Way::Socket(own) => retry(|| recv(&own.socket, &mut *scratch, RecvFlags::empty()).map(|(count, _)| count)),
            Way::Channel(channel) => channel.read(scratch.len(), &mut |_| {}),
        }
    }

    /// Whether a read would return something: bytes, the end or an error.
    pub fn is_readable(&self) -> bool {
        match &self.0 {
            Way::Socket(own) => self.holds() || !ready(own.socket.as_fd(), PollFlags::IN, 0).is_empty(),
            Way::Channel(channel) => channel.look().readable,
        }
    }

    /// A descriptor that is readable while [`Stream::is_readable`] is true.
    ///
    /// # Errors
    /// The system has none.
    pub fn readable(&self) -> io::Result<OwnedFd> {
        match &self.0 {
            Way::Socket(own) => io::fcntl_dupfd_cloexec(&own.socket, 3),
            Way::Channel(channel) => io::fcntl_dupfd_cloexec(channel.readable()?.as_fd(), 3),
        }
    }

    /// Whether a read would return something that makes no event: it lies with the session.
    #[inline]
    pub fn holds(&self) -> bool {
        self.secured().is_some_and(Secured::holds)
    }

    /// To move so many bytes took as long as to move this many plain ones: they were encrypted or decrypted, and perhaps in small records.
    #[inline]
    pub fn effort(&self, bytes: usize) -> usize {
        match self.secured() {
            Some(secured) => 2 * bytes + secured.take_opened() as usize * RECORD_EFFORT,
            None => bytes,
        }
    }

    /// Bytes that have come and were not read.
    pub fn unread(&self) -> u64 {
        match &self.0 {
            Way::Socket(own) => match own.secured.get() {
                Some(secured) => secured.unread(own.socket.as_fd()) as u64,
                None => io::ioctl_fionread(&own.socket).unwrap_or(0),
            },
            Way::Channel(channel) => channel.unread(),
        }
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
