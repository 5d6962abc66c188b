//! What the poller has told about a connection. It reports edges: each once, whatever is done about it (epoll(7)).
use crate::sys::poll::Event;

#[derive(Debug)]
pub(super) struct Edges {
    /// In the poller: done when a connection is first waited for, so that a connection for one request never is.
    registered: bool,
    /// There may be bytes to read (an edge came, or the last read was full).
    readable: bool,
    /// The peer will send no more.
    hangup: bool,
    /// Listed in `Work::again`.
    again: bool,
}

impl Edges {
    /// Of a connection that the poller does not know: whether there are bytes is not known either.
    pub fn unknown() -> Edges {
        Edges { registered: false, readable: true, hangup: false, again: false }
    }

    /// As another worker knows them.
    pub fn known(readable: bool, hangup: bool) -> Edges {
        Edges { readable, hangup, ..Edges::unknown() }
    }

    /// An event came. Whether the peer had closed its side before.
    #[inline]
    pub fn came(&mut self, event: Event) -> bool {
        let before = self.hangup;
        self.readable |= event.readable;
        self.hangup |= event.hangup | event.error;
        before
    }

    /// A read took less than there was room for, unless it was `full`. A short read drained the socket: more bytes will make
    /// an edge. Not so the end of the stream, whose edge may have come together with these bytes.
    #[inline]
    pub fn was_read(&mut self, full: bool) {
        self.readable = full || self.hangup;
    }

    /// There is nothing to read (EAGAIN).
    #[inline]
    pub fn is_drained(&mut self) {
        self.readable = false;
    }

    /// There may be bytes for which no edge will come.
    #[inline]
    pub fn may_be_readable(&mut self) {
        self.readable = true;
    }

    #[inline]
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    #[inline]
    pub fn is_hangup(&self) -> bool {
        self.hangup
    }

    /// The connection is in the poller from now on. Whether that is new.
    #[inline]
    pub fn register(&mut self) -> bool {
        !std::mem::replace(&mut self.registered, true)
    }

    /// The connection leaves the poller. Whether it was there.
    pub fn unregister(&mut self) -> bool {
        std::mem::take(&mut self.registered)
    }

    #[inline]
    pub fn is_registered(&self) -> bool {
        self.registered
    }

    /// The connection is listed to be looked at again. Whether that is new.
    #[inline]
    pub fn list(&mut self) -> bool {
        !std::mem::replace(&mut self.again, true)
    }

    /// It is looked at.
    #[inline]
    pub fn unlist(&mut self) {
        self.again = false;
    }

    #[inline]
    pub fn is_listed(&self) -> bool {
        self.again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Event = Event { token: 1, readable: false, hangup: false, error: false };

    #[test]
    fn a_short_read_waits_for_an_edge_unless_the_stream_has_ended() {
        let mut edges = Edges::unknown();
        edges.was_read(false);
        assert!(!edges.is_readable());
        assert!(!edges.came(Event { readable: true, ..QUIET }) && edges.is_readable());
        assert!(!edges.came(Event { hangup: true, ..QUIET }), "it had not left before");
        edges.was_read(false);
        assert!(edges.is_readable(), "the end of the stream is still to be read");
        assert!(edges.came(QUIET));
    }

    #[test]
    fn a_connection_is_registered_and_listed_once() {
        let mut edges = Edges::unknown();
        assert!(edges.register() && !edges.register() && edges.unregister() && !edges.unregister());
        assert!(edges.list() && !edges.list());
        edges.unlist();
        assert!(edges.list());
    }
}
