//! Connections that go to a sibling with their waiting request, and those that come from one, as messages of the channel.
use super::Connections;
use super::conn::{Conn, Origin, Role};
use super::phase::Change;
use super::stage::Stage;
use super::trunks::take_head;
use crate::borrowed::Borrowed;
use crate::config::READ_BURST;
use crate::disk::DiskFile;
use crate::exchange::body::{Body, NoMemory, Spool};
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::one_queue::message::{Age, HEADER, HandOverMessage, INLINE, Parts, Way};
use crate::reactor::bodies::no_memory;
use crate::reactor::edges::Edges;
use crate::reactor::listener::Listener;
use crate::reactor::serial::Reading;
use crate::reactor::wheel::Tick;
use crate::scoreboard::Word;
use crate::stream::Stream;
use crate::sys::channel::post;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::io::{self, IoSlice};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tricorn_proto::http1::Step;
use tricorn_proto::http2::head_fields;
use tricorn_proto::message::{Known, Method, Refusal, RefusalKind, RequestHead, Version};
use tricorn_proto::peer::proxy_protocol::{self, Accepts, Announced, Opening};

impl Connections {
    /// Memory for a message.
    pub fn take_scratch(&mut self, length: usize) -> Vec<u8> {
        self.buffers.take_scratch(length)
    }

    pub fn give_scratch(&mut self, scratch: Vec<u8>) {
        self.buffers.give_scratch(scratch);
    }

    /// Trailers are kept in no form that could be sent, the reader of a body that still comes neither, and a request that was passed from
    /// hand to hand stays. So does one for another protocol whose connection cannot go with it.
    pub fn may_move(&self, id: RequestId, most_hops: u64) -> bool {
        let Some(conn) = self.conns.get(id.connection()) else { return false };
        conn.serial.request(id).is_some_and(|request| {
            let head = &request.head;
            let may_travel = head.trailers.is_empty() && !request.partial && u64::from(request.travel.hops) < most_hops;
            may_travel && !request.travel.is_bound && (!stays_here(conn) || !wants_another_protocol(head))
        })
    }

    /// Whether a request would go without its connection.
    pub fn would_lend(&self, id: RequestId) -> bool {
        self.conns.get(id.connection()).is_some_and(stays_here)
    }

    /// Sends a request to another worker. Our end of a pair, if its connection stays here.
    pub fn post(&self, id: RequestId, to: BorrowedFd<'_>, listeners: &[Listener]) -> io::Result<Option<Stream>> {
        let conn = self.conns.get(id.connection()).ok_or(io::Errno::BADF)?;
        let (near, far) = if stays_here(conn) {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            (Some(Stream::new(near)), Some(far))
        } else {
            (None, None)
        };
        match self.post_as(id, to, listeners, far.as_ref(), false) {
            // The channel's buffer is smaller than the message, however empty it is.
            Err(io::Errno::MSGSIZE) => self.post_as(id, to, listeners, far.as_ref(), true),
            result => result,
        }
        .map(|()| near)
    }

    /// `far`: what travels in place of the connection, of which this worker has the other end. `apart`: with its payload in a file,
    /// whatever its size.
    fn post_as(
        &self,
        id: RequestId,
        to: BorrowedFd<'_>,
        listeners: &[Listener],
        far: Option<&OwnedFd>,
        apart: bool,
    ) -> io::Result<()> {
        let conn = self.conns.get(id.connection()).ok_or(io::Errno::BADF)?;
        let serial = &conn.serial;
        let request = serial.request(id).ok_or(io::Errno::BADF)?;
        let stream = conn.stream().ok_or(io::Errno::BADF)?;
        let is_last = far.is_some() && self.is_draining();
        let way = Way {
            lent: far.is_some() || stream.borrowed().is_some(),
            http2: request.head.version == Version::Http2,
            secured: conn.stage == Stage::Secured,
            front_end: request.vars().map(|vars| vars.origin.version()),
        };
        let (mut fields, mut borrowed) = (Vec::new(), Vec::new());
        let head = if way.http2 {
            head_fields::write(&mut fields, &request.head, request.head_bytes(), request.taken_out());
            fields.as_slice()
        } else if way.front_end.is_some() {
            request.vars_block()
        } else {
            request.head_as_it_came()
        };
        if way.lent {
            borrowed = stream.describe().encode();
        }
        let (body, file) = match &request.body {
            Body::Empty => (b"".as_slice(), None),
            Body::Memory(bytes) => (bytes.as_slice(), None),
            Body::Foreign(buffer) => (buffer.filled(), None),
            Body::Spooled(spool) => (b"".as_slice(), Some(spool)),
        };
        let next = if far.is_some() { b"".as_slice() } else { request.unread() };
        let announced = request.announced().map_or(b"".as_slice(), |announced| &announced.bytes);
        let apart = apart || borrowed.len() + announced.len() + head.len() + body.len() + next.len() > INLINE;
        let header = HandOverMessage {
            peer: conn.origin.peer,
            listener: listeners.get(usize::from(conn.origin.listener)).and_then(|listener| listener.address),
            hops: request.travel.hops,
            age: Age { number: id.stream(), last_from: if is_last { ALWAYS } else { serial.last_from() } },
            readable: far.is_none() && conn.edges.is_readable(),
            hangup: far.is_none() && conn.edges.is_hangup(),
            apart,
            spooled: file.map(|_| request.body.len()),
            way,
            first_byte: request.times.first_byte,
            head_complete: request.times.head_complete,
            complete: request.times.complete,
            waits_since: request.times.waits_since,
            parts: Parts {
                borrowed: borrowed.len() as u32,   // a chain of certificates is shorter (`tls`)
                announced: announced.len() as u16, // no header is longer (`proxy_protocol`)
                head: head.len() as u64,
                body: body.len() as u64,
                next: next.len() as u64,
            },
        }
        .encode();
        let payload = if apart { Some(in_memory_file(&[&borrowed, announced, head, body, next])?) } else { None };
        let mut descriptors: Vec<BorrowedFd<'_>> = vec![far.map_or(stream.socket(), AsFd::as_fd)];
        descriptors.extend(payload.as_ref().map(AsFd::as_fd));
        if let Some(spool) = file {
            descriptors.push(spool.file().ok_or(io::Errno::BADF)?.as_fd());
        }
        let parts = [header.as_slice(), &borrowed, announced, head, body, next].map(IoSlice::new);
        post(to, if apart { &parts[..1] } else { &parts }, &descriptors)
    }

    /// The request is in the channel. `near`: its connection stays here, and this is our end of what went in its place.
    pub fn depart(&mut self, id: RequestId, near: Option<Stream>) {
        match near {
            Some(near) => self.lend(id, near),
            None => {
                self.conns.unwatch(id.connection(), None);
                self.close(id.connection());
            }
        }
    }

    /// A connection out of a message, with a complete request.
    pub fn unpack(&mut self, message: &[u8], descriptors: Vec<OwnedFd>, listeners: &[Listener]) -> Option<RequestId> {
        let mut descriptors = descriptors.into_iter();
        let socket = descriptors.next()?;
        let Some((handed, payload, spool)) = open(message, descriptors, &self.most_of_message()) else {
            self.notice(true, || "tricorn: closed a connection from another worker: unreadable message".into());
            return None;
        };
        let listener = listeners.iter().position(|listener| listener.address == handed.listener).unwrap_or(0);
        let trusted = self.config.policy.trust.allows(handed.peer.ip());
        let origin = Origin { peer: handed.peer, listener: listener as u16, trusted };
        let (borrowed, payload) = payload.split_at_checked(handed.parts.borrowed as usize).unwrap_or_default();
        let mut conn = Conn::new(way_back(socket, &handed, borrowed), origin);
        conn.edges = Edges::known(handed.readable, handed.hangup);
        conn.phase.enter(Change::TakenOver);
        if handed.way.lent {
            conn.role = Role::Borrowed;
        }
        if handed.way.secured {
            conn.stage = Stage::Secured;
        }
        if let Some(protocol) = handed.way.protocol() {
            conn.stage = Stage::FrontEnd(protocol);
        }
        let stage = conn.stage;
        let serial = &mut conn.serial;
        serial.resume_at(handed.age.number, handed.age.last_from);
        let mut reading = serial.begin_reading(|| self.buffers.take());
        let (announced, payload) = payload.split_at_checked(handed.parts.announced.into()).unwrap_or_default();
        if let Ok(Opening::Header(announced, _)) = proxy_protocol::open(announced, Accepts::Both) {
            conn.announced = Some(Arc::from(announced));
        }
        let announced = conn.announced.clone();
        let pool = self.extra.disks.pool();
        let spool = spool.map(|(file, length)| Spool::adopt(DiskFile::new(file, pool), length));
        let refusal = self.fill_in(&mut reading, (trusted, stage), announced, &handed, payload, spool).err();
        let token = self.conns.insert(conn);
        let serial = &self.conns.get(token)?.serial;
        let id = serial.current(token);
        self.board.add(Word::TakenOver, 1);
        self.board.set(Word::Connections, self.len() as u64);
        if let Some(refusal) = refusal {
            self.refuse(id, &refusal);
            return None;
        }
        Some(id)
    }

    /// What a worker can have read of one request by the limits of this one. Those of another generation may be larger.
    fn most_of_message(&self) -> Most {
        let config = &self.config;
        let read = config.head_buffer_total.saturating_add(config.body_buffer_total).saturating_add(2 * READ_BURST);
        let spooled = if config.body_disk_total == 0 { u64::MAX } else { config.body_disk_total };
        Most { payload: read.max(LEAST_LIMIT), spooled }
    }

    /// The same of fields, which a stream has come with.
    fn read_fields(&mut self, request: &mut Request, fields: &[u8], trusted: bool) -> Result<(), Box<Refusal>> {
        let mut head = std::mem::take(&mut self.frames.request);
        let read = head_fields::read(&mut head, fields, &self.config.policy, trusted);
        take_head(request, &mut head, 0);
        self.frames.request = head;
        read
    }

    /// The head is read again, by this worker's rules; the body and what follows are as they were read.
    fn fill_in(
        &mut self,
        reading: &mut Reading<'_>,
        (trusted, stage): (bool, Stage),
        announced: Option<Arc<Announced>>,
        handed: &HandOverMessage,
        payload: &[u8],
        spool: Option<Spool>,
    ) -> Result<(), Box<Refusal>> {
        let (head, rest) = payload.split_at_checked(handed.parts.head as usize).unwrap_or_default();
        let (body, next) = rest.split_at_checked(handed.parts.body as usize).unwrap_or_default();
        if handed.way.http2 {
            self.read_fields(reading.request, head, trusted)?;
        } else {
            if handed.way.front_end.is_some() {
                reading.request.lay_out(0, head)?;
            } else {
                reading.request.input.extend_from_slice(head);
            }
            let (from, step) = reading.advance(&self.config.policy, trusted)?;
            if step != Step::Head || !reading.request.unread().is_empty() {
                return Err(Box::new(Refusal::new(RefusalKind::InternalError, "in a request that was handed over")));
            }
            reading.note_vars();
            reading.took_body();
            (reading.request.head_at, reading.request.head_end) = (from, reading.request.start);
        }
        let request = &mut *reading.request;
        request.times.first_byte = handed.first_byte;
        request.times.head_complete = handed.head_complete;
        request.times.complete = handed.complete;
        request.times.waits_since = handed.waits_since;
        request.travel.hops = handed.hops.saturating_add(1);
        request.note_announced(announced.as_ref());
        stage.is_misplaced(request);
        if let Some(proxy) = &self.config.policy.proxy {
            request.believe(proxy, trusted)?;
        }
        request.input.extend_from_slice(next);
        if let Some(spool) = spool {
            request.body = Body::Spooled(spool);
            self.bodies.adopt(request);
        } else if !body.is_empty() {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(body.len()).map_err(|_| no_memory(NoMemory))?;
            bytes.extend_from_slice(body);
            request.body = Body::Memory(bytes);
            self.bodies.adopt(request);
        }
        Ok(())
    }
}

/// Whether a request goes without its connection: a session of TLS is this process's alone, and a trunk has other streams.
fn stays_here(conn: &Conn) -> bool {
    conn.is_stream() || conn.stream().is_some_and(Stream::is_secured)
}

/// Whether the client asks for another protocol than HTTP.
fn wants_another_protocol(head: &RequestHead) -> bool {
    matches!(head.kind, Method::Connect | Method::Tunnel)
        || head.fields.iter().any(|field| field.known == Known::Upgrade)
}

/// Where the response goes.
fn way_back(socket: OwnedFd, handed: &HandOverMessage, borrowed: &[u8]) -> Stream {
    match handed.way.lent {
        true => Stream::to_lender(socket, Borrowed::decode(borrowed).unwrap_or_default()),
        false => Stream::new(socket),
    }
}

/// From when on the request of a worker that leaves is its connection's last: it was already.
const ALWAYS: Tick = 1;

/// The most that a message may bring, whatever it says of itself.
struct Most {
    payload: usize,
    /// Bytes of a body in a file.
    spooled: u64,
}

/// Bytes that a payload may always have: a worker of another generation may have larger limits.
const LEAST_LIMIT: usize = 64 << 20;

/// The file of a body, and its length.
type BodyFile = (OwnedFd, u64);

/// Header, payload and body file of a message; `None` if they do not fit together, or are larger than `most`.
fn open(
    message: &[u8],
    mut descriptors: impl Iterator<Item = OwnedFd>,
    most: &Most,
) -> Option<(HandOverMessage, Vec<u8>, Option<BodyFile>)> {
    let handed = HandOverMessage::decode(message)?;
    let length = handed.payload().filter(|length| *length <= most.payload)?;
    let payload = if handed.apart {
        let file = file_of(descriptors.next()?, length as u64)?;
        let mut payload = Vec::new();
        payload.try_reserve_exact(length).ok()?;
        payload.resize(length, 0);
        file.read_exact_at(&mut payload, 0).ok()?;
        payload
    } else {
        message.get(HEADER..)?.get(..length)?.to_vec()
    };
    let spool = match handed.spooled {
        Some(length) if length > most.spooled => return None,
        Some(length) => Some((file_of(descriptors.next()?, length)?.into(), length)),
        None => None,
    };
    Some((handed, payload, spool))
}

/// A regular file that has so many bytes.
fn file_of(descriptor: OwnedFd, length: u64) -> Option<File> {
    let file = File::from(descriptor);
    let found = file.metadata().ok()?;
    (found.is_file() && found.len() >= length).then_some(file)
}

/// More than a message takes, in a file that is nowhere.
fn in_memory_file(parts: &[&[u8]]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("tricorn-hand-over", MemfdFlags::CLOEXEC)?;
    let mut at = 0;
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let count = io::retry_on_intr(|| io::pwrite(&file, rest, at))?;
            (rest, at) = (rest.get(count..).unwrap_or_default(), at + count as u64);
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Peer;

    const MOST: Most = Most { payload: 1 << 20, spooled: 1 << 20 };

    fn message(body: u64, apart: bool, spooled: Option<u64>) -> [u8; HEADER] {
        HandOverMessage {
            peer: Peer::Unix,
            listener: None,
            hops: 0,
            age: Age { number: 1, last_from: 0 },
            readable: true,
            hangup: false,
            apart,
            spooled,
            first_byte: 1,
            head_complete: 2,
            complete: 3,
            waits_since: 4,
            way: Way::default(),
            parts: Parts { borrowed: 0, announced: 0, head: 0, body, next: 0 },
        }
        .encode()
    }

    fn sparse(length: u64) -> OwnedFd {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).expect("a file");
        rustix::fs::ftruncate(&file, length).expect("a length");
        file
    }

    fn opens(message: &[u8], descriptors: Vec<OwnedFd>) -> bool {
        open(message, descriptors.into_iter(), &MOST).is_some()
    }

    #[test]
    fn a_message_brings_what_it_announces_and_no_more_than_a_request_may_have() {
        assert!(opens(&message(1 << 20, true, None), vec![sparse(1 << 20)]));
        assert!(opens(&message(0, false, Some(1 << 20)), vec![sparse(1 << 20)]));
        // The file of memory has fewer bytes, too many, or is none.
        assert!(!opens(&message(1 << 20, true, None), vec![sparse((1 << 20) - 1)]));
        assert!(!opens(&message((1 << 20) + 1, true, None), vec![sparse(1 << 40)]));
        assert!(!opens(&message(u64::MAX, true, None), vec![sparse(1 << 40)]));
        assert!(!opens(&message(8, true, None), vec![rustix::pipe::pipe().expect("a pipe").0]));
        assert!(!opens(&message(8, true, None), Vec::new()));
        assert!(!opens(&message(8, false, None), Vec::new()));
        // The file of a body does.
        assert!(!opens(&message(0, false, Some(1 << 20)), vec![sparse((1 << 20) - 1)]));
        assert!(!opens(&message(0, false, Some((1 << 20) + 1)), vec![sparse(1 << 40)]));
        assert!(!opens(&message(0, false, Some(8)), vec![rustix::pipe::pipe().expect("a pipe").0]));
    }
}
