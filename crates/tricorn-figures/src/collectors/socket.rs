//! A socket to a collector that may be away: no call waits, and a lost connection is made again, ever less often.
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{self, Errno, fcntl_dupfd_cloexec, pread, pwrite};
use rustix::net::sockopt::socket_type;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with};
use std::net::SocketAddr;
use std::path::PathBuf;
use tricorn_sys::clock::{MILLI, SECOND};
use tricorn_sys::poll::ready;

/// Time until a connection is tried again: doubled from the first to the last.
const RETRY: std::ops::RangeInclusive<u64> = 10 * MILLI..=5 * SECOND;

/// Most bytes of an address and a port as text.
const PLACE: usize = 64;

/// Where a collector listens. Python resolves names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Udp(SocketAddr),
    Tcp(SocketAddr),
    /// Without a type: datagrams, and where the socket takes none, a stream.
    Unix {
        path: PathBuf,
        kind: Option<SocketType>,
    },
    /// A name without an address so far.
    Unresolved(SocketType),
}

#[derive(Debug)]
pub struct Socket {
    address: Address,
    fd: Option<OwnedFd>,
    is_stream: bool,
    /// The datagram before the last one found no receiver.
    was_refused: bool,
    /// A file in which another process writes where the collector's name leads, as `ADDRESS:PORT` and a newline.
    told: Option<OwnedFd>,
    /// Not to be connected before (monotonic nanoseconds), and the time between the last two tries.
    retry_at: u64,
    delay: u64,
}

impl Socket {
    /// `made`: one that another process has connected, which reaches what this one may not.
    pub fn new(address: Address, made: Option<OwnedFd>) -> Socket {
        let is_stream = match &made {
            Some(fd) => socket_type(fd).is_ok_and(|kind| kind == SocketType::STREAM),
            None => matches!(address, Address::Tcp(_)),
        };
        Socket { address, fd: made, is_stream, was_refused: false, told: None, retry_at: 0, delay: 0 }
    }

    /// Each connection from now on goes where this file says. It may say nothing.
    pub fn following(self, told: OwnedFd) -> Socket {
        Socket { told: Some(told), ..self }
    }

    /// Makes the file that copies of this socket follow, in forked processes too. Without memory for it none does.
    pub fn followed(self) -> Socket {
        let socket = Socket { told: memfd_create("tricorn-collector", MemfdFlags::CLOEXEC).ok(), ..self };
        if let Address::Tcp(address) = socket.address {
            socket.tell(address);
        }
        socket
    }

    /// Copies the socket for another user of this process. Datagrams share the connection; each stream has its own.
    pub fn copy(&self) -> io::Result<Socket> {
        let duplicate = |fd: &OwnedFd| fcntl_dupfd_cloexec(fd, 3);
        let made = self.fd.as_ref().filter(|_| !self.is_stream).map(duplicate).transpose()?;
        let told = self.told.as_ref().map(duplicate).transpose()?;
        Ok(Socket { told, ..Socket::new(self.address.clone(), made) })
    }

    /// Connects at once, whenever that was tried last.
    pub fn open(&mut self) -> io::Result<()> {
        self.retry_at = 0;
        self.connect(0)
    }

    /// Closes the connection. The next message opens another one.
    pub fn disconnect(&mut self) {
        self.fd = None;
    }

    /// Follows the collector's name to another address; all copies of a datagram socket follow with it (`connect(2)`), streams when
    /// they are connected next. Whether it is another one.
    pub fn move_to(&mut self, to: SocketAddr) -> bool {
        let address = match self.address {
            Address::Udp(_) | Address::Unresolved(SocketType::DGRAM) => Address::Udp(to),
            Address::Tcp(_) | Address::Unresolved(_) => Address::Tcp(to),
            Address::Unix { .. } => return false,
        };
        if self.address == address {
            return false;
        }
        self.tell(to);
        self.address = address;
        (self.delay, self.retry_at) = (0, 0);
        match &self.fd {
            // A refusal changes nothing: the next lookup may know another address.
            Some(fd) if self.is_connectionless() => drop(connect(fd, &to)),
            _ => self.fd = None,
        }
        true
    }

    /// Gives a forked process a stream of its own. Where it may not connect (another user), the parent's serves still.
    pub fn after_fork(&mut self) {
        (self.delay, self.retry_at) = (0, 0);
        if self.is_stream
            && self.fd.is_some()
            && let Ok((fd, is_stream)) = connected(&self.address)
        {
            (self.fd, self.is_stream) = (Some(fd), is_stream);
        }
    }

    /// A piece may be taken in part.
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Messages that were sent tell nothing of who reads them.
    pub fn is_connectionless(&self) -> bool {
        matches!(self.address, Address::Udp(_) | Address::Unresolved(SocketType::DGRAM))
    }

    /// Whether it has turned out with the last piece that the one before it is lost.
    pub fn was_refused(&self) -> bool {
        self.was_refused
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// When a connection is tried again, if there is none.
    pub fn retry_at(&self) -> u64 {
        self.retry_at
    }

    /// A copy of the descriptor, to wait for while another thread may close this one.
    pub fn copy_fd(&self) -> Option<OwnedFd> {
        fcntl_dupfd_cloexec(self.fd()?, 3).ok()
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Sends a piece, or some of what a stream has not taken of it: `written` bytes it has. AGAIN: the socket is full. After any
    /// other error but MSGSIZE the connection is gone. Another connection gets the piece whole, so that no message is torn.
    pub fn send(&mut self, piece: &[u8], written: &mut usize, now: u64) -> io::Result<usize> {
        match self.try_send(&piece[*written..]) {
            // Full, perhaps for ever: its collector may have left this address.
            Some(Err(Errno::AGAIN)) if self.is_elsewhere() => self.fd = None,
            Some(result) => return result,
            None => {}
        }
        // None, or one whose collector has gone: another may be there already.
        *written = 0;
        self.connect(now)?;
        self.try_send(piece).unwrap_or(Err(Errno::NOTCONN)).inspect_err(|error| {
            if *error != Errno::AGAIN && *error != Errno::MSGSIZE {
                self.put_off(now);
            }
        })
    }

    /// `None`: there is no connection, or none any more.
    fn try_send(&mut self, bytes: &[u8]) -> Option<io::Result<usize>> {
        let fd = self.fd.as_ref()?;
        self.was_refused = false;
        loop {
            match send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                // An ICMP message to a datagram before this one. This one was not sent (udp(7)).
                Err(Errno::CONNREFUSED) if self.is_connectionless() && !self.was_refused => self.was_refused = true,
                Err(Errno::NOBUFS) => return Some(Err(Errno::AGAIN)),
                Ok(sent) => {
                    self.delay = 0;
                    return Some(Ok(sent));
                }
                Err(error @ (Errno::AGAIN | Errno::MSGSIZE)) => return Some(Err(error)),
                Err(error) if self.is_connectionless() => return Some(Err(error)),
                Err(_) => {
                    self.fd = None;
                    return None;
                }
            }
        }
    }

    fn connect(&mut self, now: u64) -> io::Result<()> {
        if now < self.retry_at {
            return Err(Errno::NOTCONN);
        }
        if let Some(told) = self.told() {
            self.address = Address::Tcp(told);
        }
        match connected(&self.address) {
            Ok((fd, is_stream)) => {
                (self.fd, self.is_stream) = (Some(fd), is_stream);
                Ok(())
            }
            Err(error) => {
                self.put_off(now);
                // A full backlog of a unix socket is AGAIN too, and that word is for a connection that is full.
                Err(if error == Errno::AGAIN { Errno::CONNREFUSED } else { error })
            }
        }
    }

    fn is_elsewhere(&self) -> bool {
        self.told().is_some_and(|told| self.address != Address::Tcp(told))
    }

    /// Writes the address into the file that copies follow, in one piece.
    fn tell(&self, address: SocketAddr) {
        if let Some(told) = &self.told {
            let line = format!("{:PLACE$}", format!("{address}\n"));
            let _ = pwrite(told, line.as_bytes(), 0); // memory of this process: it has room for a line
        }
    }

    /// Where the collector is by now, if that is told.
    fn told(&self) -> Option<SocketAddr> {
        let mut bytes = [0; PLACE];
        let read = pread(self.told.as_ref()?, &mut bytes, 0).ok()?;
        let (line, _) = bytes[..read].split_at_checked(bytes[..read].iter().position(|byte| *byte == b'\n')?)?;
        std::str::from_utf8(line).ok()?.parse().ok()
    }

    fn put_off(&mut self, now: u64) {
        self.fd = None;
        self.delay = (self.delay * 2).clamp(*RETRY.start(), *RETRY.end());
        self.retry_at = now.saturating_add(self.delay);
    }
}

/// Waits until a socket takes something, or has failed.
pub fn wait_for_room(fd: BorrowedFd<'_>, nanos: u64) {
    ready(fd, PollFlags::OUT, nanos);
}

/// Whether it is a stream, too.
fn connected(address: &Address) -> io::Result<(OwnedFd, bool)> {
    match address {
        Address::Udp(address) => inet(address, SocketType::DGRAM).map(|fd| (fd, false)),
        Address::Tcp(address) => inet(address, SocketType::STREAM).map(|fd| (fd, true)),
        Address::Unix { path, kind: Some(kind) } => unix(path, *kind).map(|fd| (fd, *kind == SocketType::STREAM)),
        Address::Unix { path, kind: None } => unix(path, SocketType::DGRAM)
            .map(|fd| (fd, false))
            .or_else(|_| unix(path, SocketType::STREAM).map(|fd| (fd, true))),
        Address::Unresolved(_) => Err(Errno::ADDRNOTAVAIL),
    }
}

fn inet(address: &SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    match connect(&fd, address) {
        // Until the handshake is done, send(2) says AGAIN; if it fails, that says why.
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error),
    }
}

fn unix(path: &PathBuf, kind: SocketType) -> io::Result<OwnedFd> {
    let fd = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    connect(&fd, &SocketAddrUnix::new(path)?)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn a_piece_that_was_taken_in_part_is_sent_whole_on_the_next_connection() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let mut socket = Socket::new(Address::Tcp(listener.local_addr().expect("an address")), None);
        let mut written = 0;
        let is = |socket: &Socket, flag| !ready(socket.fd().expect("a socket"), flag, 10 * SECOND).is_empty();
        let send = |socket: &mut Socket, piece: &[u8], written: &mut usize| {
            let mut result = socket.send(piece, written, 0);
            if result == Err(Errno::AGAIN) {
                assert!(is(socket, PollFlags::OUT), "the handshake ends");
                result = socket.send(piece, written, 0);
            }
            *written += result.expect("a connection");
        };
        // Two halves of one message, as if the socket had been full between them.
        send(&mut socket, b"a mess", &mut written);
        let (first, _) = listener.accept().expect("a connection");
        assert_eq!(written, 6);
        drop(first);
        assert!(is(&socket, PollFlags::HUP), "it had bytes that were not read, so that the connection is reset");
        send(&mut socket, b"a message\n", &mut written);
        let (mut second, _) = listener.accept().expect("another connection");
        let mut taken = [0; 10];
        second.read_exact(&mut taken).expect("the message");
        assert_eq!((&taken, written), (b"a message\n", 10));
    }

    #[test]
    fn a_collector_that_is_away_is_tried_ever_less_often() {
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("an address");
        let mut socket = Socket::new(Address::Unix { path: "/nonexistent/socket".into(), kind: None }, None);
        let mut pauses = Vec::new();
        let mut now = 0;
        for _ in 0..12 {
            assert_eq!(socket.send(b"message", &mut 0, now), Err(Errno::NOENT));
            assert_eq!(socket.send(b"message", &mut 0, socket.retry_at() - 1), Err(Errno::NOTCONN), "too soon");
            pauses.push(socket.retry_at() - now);
            now = socket.retry_at();
        }
        assert_eq!((pauses[0], pauses[1], pauses[11]), (*RETRY.start(), 2 * RETRY.start(), *RETRY.end()));
        // Another address is tried at once.
        let mut socket = Socket::new(Address::Unresolved(SocketType::DGRAM), None);
        assert_eq!(socket.send(b"message", &mut 0, 1), Err(Errno::ADDRNOTAVAIL));
        assert!(socket.move_to(free) && !socket.move_to(free));
        assert_eq!(socket.send(b"message", &mut 0, 1), Ok(7));
    }
}
