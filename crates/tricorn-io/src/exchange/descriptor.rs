//! The descriptor of a lane: its own socket, one end of a pair, or none.
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};

/// What of a lane is the operating system's.
#[derive(Debug, Clone, Copy)]
pub enum Descriptor<'l> {
    /// The socket: all that happens to it happens to this exchange.
    Own(BorrowedFd<'l>),
    /// One end of a pair: another worker has the connection.
    Borrowed(BorrowedFd<'l>),
    /// The socket of a trunk, which others use as well.
    Shared,
}

impl Descriptor<'_> {
    /// A second one, for others than the server.
    ///
    /// # Errors
    /// EOPNOTSUPP: a stream of HTTP/2 has no socket of its own, and a request that was lent left it behind. Else the system's.
    pub fn duplicate(self) -> io::Result<OwnedFd> {
        match self {
            Descriptor::Own(socket) => io::fcntl_dupfd_cloexec(socket, 3),
            Descriptor::Borrowed(_) | Descriptor::Shared => Err(Errno::OPNOTSUPP),
        }
    }
}
