//! What an exchange has of its connection: today all of it.
//!
//! Bytes go by [`Lane::output_mut`]. Whatever needs a descriptor (a poller, a thread that waits, an application that takes the
//! connection) asks [`Lane::descriptor`].
use super::counted::Counted;
use super::id::RequestId;
use super::link::Link;
use super::lost::{Lease, Lost};
use super::output::Output;
use crate::stream::Stream;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io;
use rustix::net::{SocketAddrUnix, getsockname};
use std::net::SocketAddr;
use std::sync::Arc;

/// The way of one exchange to its client.
///
/// Its module sees the output, to take an exchange apart in place.
pub struct Lane {
    pub(super) output: Output,
    /// Which request it is. Dropped behind the output, so that the socket is closed when the reactor is told.
    lease: Lease,
}

/// What of a lane is the operating system's.
#[derive(Debug, Clone, Copy)]
pub enum Descriptor<'l> {
    /// The socket: all that happens to it happens to this exchange.
    Own(BorrowedFd<'l>),
}

impl Descriptor<'_> {
    /// A second one, for others than the server.
    pub fn duplicate(self) -> io::Result<OwnedFd> {
        match self {
            Descriptor::Own(socket) => io::fcntl_dupfd_cloexec(socket, 3),
        }
    }
}

impl Lane {
    #[inline]
    pub fn new(id: RequestId, stream: Stream) -> Lane {
        Lane { output: Output::new(stream), lease: Lease::of(id) }
    }

    /// The request that is answered here.
    #[inline]
    pub fn id(&self) -> RequestId {
        self.lease.request()
    }

    /// The call in this slot begins: what it has of the reactor's goes back there, whatever becomes of the exchange.
    #[inline]
    pub fn begin_lease(&mut self, slot: usize, counted: &Counted, lost: Arc<Lost>) {
        self.lease.begin(slot, counted, lost);
    }

    /// The exchange is given back; with what [`Lane::begin_lease`] was given.
    #[inline]
    pub fn end_lease(&mut self) -> Option<Arc<Lost>> {
        self.lease.end()
    }

    #[inline]
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    #[inline]
    pub(crate) fn output_mut(&mut self) -> &mut Output {
        &mut self.output
    }

    #[inline]
    pub fn descriptor(&self) -> Descriptor<'_> {
        Descriptor::Own(self.output.socket())
    }

    /// Our end's address.
    pub fn local_address(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(getsockname(self.output.socket()).ok()?).ok()
    }

    /// The path of our end, if it is a unix socket that has one.
    pub fn local_path(&self) -> Option<Vec<u8>> {
        let address = SocketAddrUnix::try_from(getsockname(self.output.socket()).ok()?).ok()?;
        address.path_bytes().map(<[u8]>::to_vec)
    }

    /// It speaks another protocol since the reply (101).
    #[inline]
    pub fn has_switched(&self) -> bool {
        self.output.link() == Link::Switched
    }

    /// From now on it speaks another protocol.
    pub fn switch(&mut self) {
        self.output.link_mut().switch();
    }

    /// The application has it for itself.
    pub fn is_taken(&self) -> bool {
        self.output.link().is_taken()
    }

    /// The application takes it. False: it has it already.
    pub fn take(&mut self) -> bool {
        self.output.link_mut().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_lane_of_its_own_connection_has_its_socket_until_the_end() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let number = ours.as_raw_fd();
        let id = RequestId::new(7, 3);
        let mut lane = Lane::new(id, Stream::new(ours.into()));
        assert_eq!(lane.id(), id);
        assert!(lane.take() && !lane.take() && lane.is_taken());
        lane.switch();
        assert!(!lane.has_switched(), "it is the application's");
        let Descriptor::Own(socket) = lane.descriptor();
        assert_eq!(socket.as_raw_fd(), number);
        assert_ne!(lane.descriptor().duplicate().expect("a descriptor").as_raw_fd(), number);
        assert_eq!((lane.local_address(), lane.local_path()), (None, None), "a pair has no names");
    }
}
