//! A request that another worker answers while its connection stays here: where a session of TLS is, or other streams of HTTP/2 are.
//!
//! ```text
//!   client ◀── stream ── held ◀── near end ═══ pair ═══ far end ◀── response ── borrower
//! ```
//!
//! The borrower says the response as this connection says its own: bytes of HTTP/1, or parts for a stream of HTTP/2
//! (`proto/http2/encode.rs`). They are passed on as they are. What the client does not take is held, and until it is taken nothing more
//! is read: the borrower waits as it would for the client.
use super::bridge::MARK;
use crate::exchange::outbox::{Flush, Outbox, SharedBytes};
use crate::reactor::edges::Edges;
use crate::reactor::outgoing::Then;
use crate::stream::Stream;
use rustix::io::Errno;
use tricorn_proto::http1::{Left, Part, ResponseParser};
use tricorn_proto::message::Method;

#[derive(Debug)]
pub(super) struct Loan {
    near: Stream,
    /// What the poller has told of it.
    pub edges: Edges,
    held: Outbox,
    /// Of HTTP/1: it finds the end of the response. A stream has its own.
    parser: Option<ResponseParser>,
    /// The response is complete, or nothing more of it comes: what the connection does then.
    then: Option<Then>,
    /// When the request was complete.
    pub complete: u64,
    /// The client had closed its sending side before.
    pub half: bool,
}

/// What came of carrying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    /// So many bytes; there may be more.
    Bytes(usize),
    /// An event will tell when there is more to do.
    All,
    /// The response is complete, or whoever said it has left.
    Over(Then),
    /// The borrower has left in the midst of it.
    Cut,
    ClientGone,
}

impl Loan {
    /// `near`: our end of the pair. `method`: of a request of HTTP/1.
    pub fn new(near: Stream, method: Option<Method>, complete: u64, half: bool) -> Loan {
        let parser = method.map(|method| {
            let mut parser = ResponseParser::default();
            parser.begin(method);
            parser
        });
        Loan { near, edges: Edges::known(false, false), held: Outbox::default(), parser, then: None, complete, half }
    }

    pub fn near(&self) -> &Stream {
        &self.near
    }

    /// Passes on what is there, at most [`MARK`] bytes.
    pub fn carry(&mut self, client: &Stream, scratch: &mut Vec<u8>, spent: &mut Vec<SharedBytes>) -> Carried {
        if !self.held.is_empty() {
            let before = self.held.sent();
            match self.held.flush_some(client, spent, MARK) {
                None => return Carried::Bytes((self.held.sent() - before) as usize),
                Some(Flush::Empty) => {}
                // The borrower has said all: it is not to hold its end for a slow client.
                Some(Flush::Blocked) if self.edges.is_hangup() => {}
                Some(Flush::Blocked) => return Carried::All,
                Some(Flush::Gone | Flush::Truncated | Flush::Disk) => return Carried::ClientGone,
            }
        }
        if let Some(then) = self.then {
            return Carried::Over(then);
        }
        if !self.edges.is_readable() {
            return Carried::All;
        }
        self.read(client, scratch)
    }

    fn read(&mut self, client: &Stream, scratch: &mut Vec<u8>) -> Carried {
        scratch.clear();
        scratch.reserve(MARK);
        let count = match self.near.read(scratch, MARK) {
            Ok(0) => return self.end(),
            Ok(count) => count,
            Err(Errno::AGAIN) => {
                self.edges.is_drained();
                return Carried::All;
            }
            Err(Errno::INTR) => return Carried::Bytes(0),
            Err(_) => return self.end(),
        };
        self.edges.was_read(count == MARK);
        self.look_for_end(scratch);
        let sent = if self.held.is_empty() { client.send(scratch) } else { Ok(0) };
        match sent {
            Ok(sent) => self.held.push(&scratch[sent..]),
            Err(Errno::AGAIN) => self.held.push(scratch),
            Err(_) => return Carried::ClientGone,
        }
        Carried::Bytes(count)
    }

    /// The borrower says nothing more. A stream knows itself whether its response is complete.
    fn end(&mut self) -> Carried {
        let is_complete = self.parser.as_mut().is_none_or(|parser| parser.close() == Left::Complete);
        if is_complete { Carried::Over(Then::End) } else { Carried::Cut }
    }

    fn look_for_end(&mut self, bytes: &[u8]) {
        let Some(parser) = &mut self.parser else { return };
        let mut rest = bytes;
        while self.then.is_none() {
            match parser.advance(rest) {
                Ok((_, Part::More)) => return,
                Ok((_, Part::End)) => self.then = Some(Then::of(parser.persists())),
                Ok((count, _)) => rest = rest.get(count..).unwrap_or_default(),
                // No worker says that: the client gets it, and sees for itself.
                Err(_) => self.then = Some(Then::End),
            }
        }
    }

    /// What the client has not taken.
    pub fn take_held(&mut self) -> Outbox {
        std::mem::take(&mut self.held)
    }

    /// Nothing more is passed on.
    pub fn clear(&mut self, spent: &mut Vec<SharedBytes>) {
        self.held.clear(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;

    struct World {
        loan: Loan,
        client: Stream,
        /// The client's own end.
        peer: UnixStream,
        /// The borrower's; `None`: it is gone.
        far: Option<UnixStream>,
    }

    impl World {
        fn new(method: Option<Method>) -> World {
            let pair = || UnixStream::pair().expect("sockets");
            let ((client, peer), (near, far)) = (pair(), pair());
            for socket in [&client, &near, &peer, &far] {
                socket.set_nonblocking(true).expect("a socket");
            }
            let loan = Loan::new(Stream::new(near.into()), method, 0, false);
            World { loan, client: Stream::new(client.into()), peer, far: Some(far) }
        }

        /// The borrower says this, as far as its end takes it.
        fn say(&mut self, bytes: &[u8]) -> usize {
            match self.far.as_mut().expect("it is there").write(bytes) {
                Ok(count) => count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    0
                }
            }
        }

        /// As after an event, until there is nothing more to do.
        fn carry(&mut self) -> Carried {
            self.loan.edges.came(crate::sys::poll::Event {
                token: 0,
                readable: true,
                hangup: self.far.is_none(),
                error: false,
            });
            let (mut scratch, mut spent) = (Vec::new(), Vec::new());
            loop {
                match self.loan.carry(&self.client, &mut scratch, &mut spent) {
                    Carried::Bytes(_) => {}
                    carried => return carried,
                }
            }
        }

        fn got(&mut self) -> Vec<u8> {
            let mut got = Vec::new();
            let error = self.peer.read_to_end(&mut got).expect_err("the connection stays");
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            got
        }
    }

    #[test]
    fn a_response_is_passed_on_as_it_is_and_its_end_is_found() {
        for (head, body, then) in [
            ("Content-Length: 5\r\nConnection: keep-alive", "12345", Then::Next),
            ("Content-Length: 5\r\nConnection: close", "12345", Then::End),
            ("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n", Then::Next),
        ] {
            let text = format!("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
            let mut world = World::new(Some(Method::Get));
            for piece in text.as_bytes().chunks(7) {
                assert_eq!(world.loan.then, None, "{head}");
                world.say(piece);
                world.carry();
            }
            assert_eq!((world.carry(), world.got()), (Carried::Over(then), text.into_bytes()), "{head}");
        }
    }

    #[test]
    fn the_end_of_a_head_alone_is_that_of_its_response() {
        let mut world = World::new(Some(Method::Head));
        world.say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(world.carry(), Carried::Over(Then::Next));
    }

    #[test]
    fn a_borrower_that_dies_in_the_midst_cuts_the_response_off() {
        for (text, carried) in [
            ("", Carried::Cut),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n123", Carried::Cut),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Carried::Cut),
            ("HTTP/1.0 200 OK\r\n\r\nuntil the end", Carried::Over(Then::End)),
        ] {
            let mut world = World::new(Some(Method::Get));
            world.say(text.as_bytes());
            world.far = None;
            assert_eq!((world.carry(), world.got()), (carried, text.as_bytes().to_vec()), "{text}");
        }
    }

    #[test]
    fn parts_end_with_the_borrower() {
        let mut world = World::new(None);
        world.say(b"parts");
        assert_eq!(world.carry(), Carried::All);
        world.far = None;
        assert_eq!((world.carry(), world.got()), (Carried::Over(Then::End), b"parts".to_vec()));
    }

    #[test]
    fn a_client_that_does_not_read_stops_the_borrower_but_not_its_end() {
        let mut world = World::new(None);
        let mut said = 0;
        loop {
            let count = world.say(&[b'x'; 50_000]);
            assert_eq!(world.carry(), Carried::All);
            said += count;
            if count == 0 {
                break;
            }
        }
        assert!(world.loan.held.in_memory() <= MARK);
        world.far = None;
        assert_eq!(world.carry(), Carried::Over(Then::End));
        let mut got = 0;
        let (mut rest, mut spent) = (world.loan.take_held(), Vec::new());
        while got < said {
            let bytes = world.got().len();
            assert!(bytes > 0, "{got} of {said} bytes");
            got += bytes;
            let _ = rest.flush_some(&world.client, &mut spent, usize::MAX);
        }
        assert_eq!(got, said);
    }

    #[test]
    fn a_client_that_has_left_is_noticed() {
        let mut world = World::new(None);
        world.peer = UnixStream::pair().expect("sockets").0;
        world.say(b"anybody there?");
        assert_eq!(world.carry(), Carried::ClientGone);
    }
}
