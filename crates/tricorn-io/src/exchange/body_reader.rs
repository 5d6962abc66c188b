//! Reads the body of a request that has begun before it came: where the framing stands, and how fast the client sends.
use super::buffers::Request;
use super::pace::Pace;
use crate::config::BodyRate;
use crate::stream::{Channel, Stream};
use tricorn_proto::http1::{HeadPolicy, Receiver, Step};
use tricorn_proto::message::Refusal;

/// Most bytes of a body handed over at a time: what asyncio reads from a socket at once (`_SelectorTransport.max_size`), so an
/// application gets pieces as large as from servers that are built on it. One buffer of this size serves all requests of an event
/// loop; a request in a thread has its own while it streams.
pub const PIECE: usize = 256 * 1024;
/// Most framed bytes read at a time. They stay in the cache until their framing is removed, and what they hold of the next request
/// is no more than this.
const FRAMED: usize = 64 * 1024;

/// What one read came to.
pub struct Filled {
    pub result: rustix::io::Result<usize>,
    /// How many bytes there was room for.
    pub wanted: usize,
}

pub struct BodyReader {
    framing: Framing,
    pace: Pace,
}

/// How the end of the body is told.
enum Framing {
    /// By a length, by chunks, or by records of FastCGI.
    Http1(Receiver),
    /// By the stream, whose frames have no mark in the bytes: so many bytes came, and perhaps the last.
    Frames { count: u64, is_at_end: bool },
}

impl BodyReader {
    /// `receiver` has read the head of the request.
    #[inline]
    pub fn new(receiver: Receiver) -> BodyReader {
        BodyReader { framing: Framing::Http1(receiver), pace: Pace::default() }
    }

    /// Of a stream of HTTP/2, of whose body so many bytes were read before.
    pub fn of_stream(count: u64) -> BodyReader {
        BodyReader { framing: Framing::Frames { count, is_at_end: false }, pace: Pace::default() }
    }

    /// A new one, for a connection that reads no more bodies by this one.
    #[inline]
    pub fn into_receiver(self) -> Receiver {
        match self.framing {
            Framing::Http1(receiver) => receiver,
            Framing::Frames { .. } => Receiver::default(),
        }
    }

    /// All of the body was read.
    pub fn is_at_end(&self) -> bool {
        match &self.framing {
            Framing::Http1(receiver) => receiver.is_at_end(),
            Framing::Frames { is_at_end, .. } => *is_at_end,
        }
    }

    /// Nothing else is to come than the mark of its end, which may come between requests as well.
    pub fn lacks_only_its_end(&self) -> bool {
        matches!(&self.framing, Framing::Http1(receiver) if receiver.lacks_only_its_end())
    }

    /// The mark of its end is not waited for.
    pub fn took_end(&mut self) {
        if let Framing::Http1(receiver) = &mut self.framing {
            receiver.took_body();
        }
    }

    /// What is answered at once to something else that came.
    #[inline]
    pub fn take_answer(&mut self) -> Option<Vec<u8>> {
        match &mut self.framing {
            Framing::Http1(receiver) => receiver.take_answer(),
            Framing::Frames { .. } => None,
        }
    }

    /// Bytes that are still to come, if their number is known.
    pub fn fixed_remaining(&self) -> Option<u64> {
        match &self.framing {
            Framing::Http1(receiver) => receiver.fixed_remaining(),
            Framing::Frames { .. } => None,
        }
    }

    /// Reads once and adds the body's bytes to `out`, up to `most` of them. How many bytes were read, framing included.
    pub fn read(
        &mut self,
        stream: &Stream,
        request: &mut Request,
        policy: &HeadPolicy,
        (out, most): (&mut Vec<u8>, usize),
    ) -> Result<Filled, Box<Refusal>> {
        let receiver = match &mut self.framing {
            Framing::Http1(receiver) => receiver,
            Framing::Frames { count, is_at_end } => {
                let result = stream.read(out, most);
                *count += result.unwrap_or(0) as u64;
                *is_at_end = stream.channel().is_some_and(Channel::is_at_end);
                policy.limits.check_body(*count)?;
                return Ok(Filled { result, wanted: most });
            }
        };
        let Some(left) = receiver.fixed_remaining() else {
            return read_framed(receiver, stream, request, policy, (out, most.min(FRAMED)));
        };
        let wanted = usize::try_from(left).map_or(most, |left| most.min(left));
        out.reserve(wanted);
        let result = stream.read(out, wanted);
        receiver.took_fixed(result.unwrap_or(0) as u64);
        Ok(Filled { result, wanted })
    }

    /// The application waits for the client from now on; until when it may have to.
    pub fn wait(&mut self, rate: &BodyRate, now: u64) -> u64 {
        self.pace.wait(rate, now)
    }

    pub fn is_waiting(&self) -> bool {
        self.pace.is_waiting()
    }

    /// So many bytes came with the head, and were not waited for.
    pub fn began_with(&mut self, count: u64) {
        self.pace.began_with(count);
    }

    /// So many bytes came, which ends the wait.
    pub fn came(&mut self, count: usize, now: u64) {
        self.pace.came(count, now);
    }

    /// Bytes that came, and whether they are slower than the minimum rate.
    pub fn progress(&self, rate: &BodyRate) -> (u64, bool) {
        (self.pace.bytes(), self.pace.is_slow(rate))
    }
}

/// Reads behind what came of a line before, and moves the payload of chunks together in place.
fn read_framed(
    receiver: &mut Receiver,
    stream: &Stream,
    request: &mut Request,
    policy: &HeadPolicy,
    (out, wanted): (&mut Vec<u8>, usize),
) -> Result<Filled, Box<Refusal>> {
    let from = out.len();
    out.extend_from_slice(request.unread());
    out.reserve(wanted);
    let result = stream.read(out, wanted);
    if let Ok(1..) = result {
        request.forget_read();
        remove_framing(receiver, request, policy, out, from)?;
    } else {
        out.truncate(from);
    }
    Ok(Filled { result, wanted })
}

/// Removes the framing of the bytes from `from` on. What belongs to no payload that is complete, or to the next request, is left
/// with the request.
fn remove_framing(
    receiver: &mut Receiver,
    request: &mut Request,
    policy: &HeadPolicy,
    out: &mut Vec<u8>,
    from: usize,
) -> Result<(), Box<Refusal>> {
    let (mut at, mut end) = (from, from);
    loop {
        let unread = out.get_mut(at..).unwrap_or_default();
        let progress = receiver.advance(unread, policy, false, &mut request.head)?;
        let Step::Body(payload) = progress.step else {
            request.input.extend_from_slice(out.get(at + progress.consumed..).unwrap_or_default());
            break;
        };
        out.copy_within(at + payload.start..at + payload.end, end);
        end += payload.len();
        at += progress.consumed;
    }
    out.truncate(end);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    /// A reader behind the head of a request, and its client.
    fn reading(head: &[u8]) -> (BodyReader, Request, Stream, UnixStream) {
        let (socket, client) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("sockets");
        let (mut request, mut receiver) = (Request::default(), Receiver::default());
        request.input = head.to_vec();
        let progress = receiver.advance(&mut request.input, &HeadPolicy::default(), false, &mut request.head);
        request.head_end = progress.expect("a good head").consumed;
        request.start = request.head_end;
        (BodyReader::new(receiver), request, Stream::new(socket), UnixStream::from(client))
    }

    #[test]
    fn lines_that_never_come_whole_do_not_add_up() {
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (mut reader, mut request, stream, mut client) = reading(head);
        let policy = HeadPolicy::default();
        let mut out = Vec::new();
        client.write_all(b"3").expect("a socket");
        for count in 0..1000 {
            let filled = reader.read(&stream, &mut request, &policy, (&mut out, PIECE)).expect("good chunks");
            assert!(filled.result.is_ok());
            assert_eq!(out.len(), 3 * count);
            assert_eq!(request.unread(), b"3");
            client.write_all(b"\r\nabc\r\n3").expect("a socket");
        }
        assert!(request.input.len() <= head.len() + 1, "{} bytes", request.input.len());
        assert!(out.chunks(3).all(|chunk| chunk == b"abc"));
    }

    #[test]
    fn what_follows_a_body_is_left_with_the_request() {
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (mut reader, mut request, stream, mut client) = reading(head);
        client.write_all(b"3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n").expect("a socket");
        let mut out = b"before ".to_vec();
        let filled = reader.read(&stream, &mut request, &HeadPolicy::default(), (&mut out, PIECE));
        assert!(filled.expect("good chunks").result.is_ok());
        assert_eq!((out.as_slice(), reader.is_at_end()), (b"before abc".as_slice(), true));
        assert_eq!(request.unread(), b"GET / HTTP/1.1\r\n");
    }
}
