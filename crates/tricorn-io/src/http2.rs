//! A trunk: a connection of HTTP/2, which carries streams. What its reader and the exchanges of its streams share, under one lock.
//!
//! ```text
//!   reactor (reads) ── receive ──▶ session ──▶ inbox of a channel ── read ──▶ exchange
//!   exchange, reactor ── send ───▶ session ──▶ output ── flush ──▶ stream (a socket, or TLS)
//! ```
//!
//! A [`TrunkChannel`] is the trunk as one of its streams sees it: `stream.rs` has it in the place of a socket, so that whoever sends and
//! reads (`exchange/output.rs`, `exchange/body_reader.rs`) knows no trunk. It takes the parts of a response (`proto/http2/encode.rs`), and
//! gives the content of a request.
//!
//! Order of locks: the baton, then that of an output, then the trunk's. Nobody waits under it, neither for the client nor for a disk.
use crate::stream::{Channel, Found, Stream};
use crate::sys::poll::Token;
use crate::sys::wake::Alarm;
use rustix::io::{self, Errno, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tricorn_proto::http2::{Connection, Context, ErrorCode, Progress, Request, Step, Violation};

pub struct Trunk {
    stream: Stream,
    state: Mutex<State>,
}

struct State {
    session: Connection,
    /// In the order of their ids.
    channels: Vec<Shared>,
    /// The socket is of no use any more.
    is_broken: bool,
    /// Bytes that the socket has taken.
    sent: u64,
}

/// A channel, as both sides have it.
struct Shared {
    id: u32,
    /// The entry of the table that has its request.
    token: Token,
    /// Content of the request that its exchange has not read.
    inbox: Vec<u8>,
    /// Bytes of the inbox that were read.
    read: usize,
    /// The request is complete.
    has_ended: bool,
    /// The stream was reset, or its connection broke.
    is_gone: bool,
    /// Rung when there is something to be read, and when there is room: for threads and hubs that wait.
    readable: Option<Arc<Alarm>>,
    room: Option<Arc<Alarm>>,
    /// What the reactor does when there is room.
    on_room: Option<Box<dyn FnOnce() + Send>>,
}

/// How a trunk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub streams: usize,
    /// Bytes wait for the client.
    pub waits: bool,
    /// Bytes that the client has acknowledged, as far as is known.
    pub acknowledged: u64,
    /// All is said: it may be closed.
    pub is_over: bool,
    /// The client has broken a rule that ends the connection.
    pub has_failed: bool,
    /// When the session wants to be looked at, in milliseconds.
    pub deadline: Option<u64>,
}

impl State {
    fn position(&self, id: u32) -> Option<usize> {
        self.channels.binary_search_by_key(&id, |channel| channel.id).ok()
    }

    fn channel(&mut self, id: u32) -> Option<&mut Shared> {
        let position = self.position(id)?;
        self.channels.get_mut(position)
    }

    /// Sends what waits, as far as the socket takes it.
    fn flush(&mut self, stream: &Stream) {
        while !self.is_broken && !self.session.output().is_empty() {
            match stream.send(self.session.output()) {
                Ok(count) => {
                    self.session.sent(count);
                    self.sent += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.is_broken = true,
            }
        }
        if !self.is_broken && stream.owes() && stream.send(b"").is_err_and(|error| error != Errno::AGAIN) {
            self.is_broken = true;
        }
    }

    /// Writes parts of a response, and sends what comes of them, unless it `is_held` for others. How many bytes were taken.
    fn write(&mut self, stream: &Stream, id: u32, slices: &[IoSlice<'_>], is_held: bool) -> io::Result<usize> {
        if self.is_broken {
            return Err(Errno::PIPE);
        }
        let (mut total, mut wanted) = (0, 0);
        'slices: for slice in slices {
            wanted += slice.len();
            let mut rest: &[u8] = slice;
            while !rest.is_empty() {
                match self.session.write(id, rest) {
                    Ok(count) => {
                        total += count;
                        rest = &rest[count..];
                    }
                    Err(_) if total > 0 => break 'slices,
                    Err(_) => return Err(Errno::PIPE),
                }
                if rest.is_empty() {
                    break;
                }
                // The windows are shut, or so much waits that the socket comes first.
                self.flush(stream);
                if !self.session.has_room(id) || self.is_broken {
                    break 'slices;
                }
            }
        }
        if !is_held || total < wanted {
            self.flush(stream);
        }
        if total < wanted {
            self.session.offer(id);
        }
        if total == 0 && wanted > 0 { Err(Errno::AGAIN) } else { Ok(total) }
    }
}

impl Shared {
    fn unread(&self) -> usize {
        self.inbox.len() - self.read
    }

    fn is_readable(&self) -> bool {
        self.unread() > 0 || self.has_ended || self.is_gone
    }

    fn tell_readable(&self) {
        self.readable.iter().for_each(|alarm| alarm.ring());
    }

    fn gone(&mut self) {
        self.is_gone = true;
        self.tell_readable();
        self.room.iter().for_each(|alarm| alarm.ring());
    }
}

impl Trunk {
    /// `stream`: of the connection.
    pub fn new(stream: Stream, session: Connection) -> Trunk {
        let state = State { session, channels: Vec::new(), is_broken: false, sent: 0 };
        Trunk { stream, state: Mutex::new(state) }
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For the reactor, which reads.
impl Trunk {
    /// Takes one step through bytes that have come.
    pub fn receive(&self, input: &[u8], context: &Context<'_>, request: &mut Request) -> Progress {
        let state = &mut *self.state();
        let progress = state.session.receive(input, context, request);
        if let Step::Reset { stream, .. } | Step::Violated { stream, .. } = progress.step
            && let Some(channel) = state.channel(stream)
        {
            channel.gone();
        }
        progress
    }

    /// A request has begun, whose entry has this token.
    pub fn open(&self, id: u32, token: Token) {
        let shared = Shared {
            id,
            token,
            inbox: Vec::new(),
            read: 0,
            has_ended: false,
            is_gone: false,
            readable: None,
            room: None,
            on_room: None,
        };
        let mut state = self.state();
        let position = state.channels.partition_point(|channel| channel.id < id);
        state.channels.insert(position, shared);
    }

    /// The entry of a stream.
    pub fn token(&self, id: u32) -> Option<Token> {
        self.state().channel(id).map(|channel| channel.token)
    }

    /// Content for an exchange has come, or the end.
    pub fn deliver(&self, id: u32, content: &[u8], end: bool) {
        if let Some(channel) = self.state().channel(id) {
            channel.inbox.extend_from_slice(content);
            channel.has_ended |= end;
            channel.tell_readable();
        }
    }

    /// Sends what waits. `visit` gets the entries of streams for which there is room again, in the order in which they are to send.
    pub fn flush(&self, mut visit: impl FnMut(Token)) {
        let state = &mut *self.state();
        state.flush(self.stream());
        while let Some(id) = state.session.take_next_to_send() {
            if let Some(channel) = state.channel(id) {
                channel.room.iter().for_each(|alarm| alarm.ring());
                visit(channel.token);
            }
        }
    }

    /// Ends a stream with a code, unless it has ended.
    pub fn reset(&self, id: u32, code: ErrorCode) {
        self.state().session.reset(id, code);
    }

    /// The call of a stream is over, or there will be none: whatever is missing, the client is told that it does not come, by the next
    /// flush.
    pub fn release(&self, id: u32) {
        let state = &mut *self.state();
        state.session.release(id);
        if let Some(position) = state.position(id) {
            state.channels.remove(position);
        }
    }

    /// Whether the socket is of no use any more.
    pub fn is_broken(&self) -> bool {
        self.state().is_broken
    }

    /// Nothing more comes or goes. `visit` gets the entries of all streams.
    pub fn break_off(&self, mut visit: impl FnMut(Token)) {
        let state = &mut *self.state();
        state.is_broken = true;
        for channel in &mut state.channels {
            channel.gone();
            visit(channel.token);
        }
    }

    /// The client is told to begin no more streams.
    pub fn drain(&self, millis: u64) {
        self.state().session.drain(millis);
    }

    /// Does what is due. A violation ends the connection.
    pub fn tick(&self, millis: u64) -> Result<(), Violation> {
        self.state().session.tick(millis)
    }

    pub fn standing(&self) -> Standing {
        let state = self.state();
        let waits = !state.session.output().is_empty();
        Standing {
            streams: state.channels.len(),
            waits,
            acknowledged: if waits { state.sent.saturating_sub(self.stream().unacknowledged()) } else { state.sent },
            is_over: state.session.is_finished() && !waits,
            has_failed: state.session.has_failed(),
            deadline: state.session.deadline(),
        }
    }
}

/// One stream of a trunk.
pub struct TrunkChannel {
    trunk: Arc<Trunk>,
    id: u32,
}

impl TrunkChannel {
    pub fn new(trunk: Arc<Trunk>, id: u32) -> TrunkChannel {
        TrunkChannel { trunk, id }
    }

    /// What the reactor is to do when there is room, once.
    pub fn take_work(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.trunk.state().channel(self.id)?.on_room.take()
    }
}

impl Channel for TrunkChannel {
    fn connection(&self) -> &Stream {
        self.trunk.stream()
    }

    fn look(&self) -> Found {
        let state = &mut *self.trunk.state();
        let room = state.session.has_room(self.id) || state.is_broken;
        match state.channel(self.id) {
            Some(channel) => Found { readable: channel.is_readable(), room, gone: channel.is_gone },
            None => Found::GONE,
        }
    }

    fn send(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.trunk.state().write(self.trunk.stream(), self.id, slices, false)
    }

    fn hold(&self, bytes: &[u8]) -> io::Result<usize> {
        self.trunk.state().write(self.trunk.stream(), self.id, &[IoSlice::new(bytes)], true)
    }

    fn read(&self, most: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let state = &mut *self.trunk.state();
        let channel = state.channel(self.id).ok_or(Errno::CONNRESET)?;
        let count = channel.unread().min(most);
        // What has come is read first, whatever became of the client.
        if count == 0 && most > 0 {
            if channel.has_ended {
                return Ok(0);
            }
            if channel.is_gone {
                return Err(Errno::CONNRESET);
            }
            channel.readable.iter().for_each(|alarm| alarm.clear());
            return Err(Errno::AGAIN);
        }
        take(&channel.inbox[channel.read..channel.read + count]);
        channel.read += count;
        if channel.unread() == 0 {
            // An idle stream holds no memory.
            channel.inbox = Vec::new();
            channel.read = 0;
        }
        state.session.took(self.id, count);
        state.flush(self.trunk.stream());
        Ok(count)
    }

    fn is_at_end(&self) -> bool {
        let mut state = self.trunk.state();
        state.channel(self.id).is_some_and(|channel| channel.has_ended && channel.unread() == 0)
    }

    fn unread(&self) -> u64 {
        self.trunk.state().channel(self.id).map_or(0, |channel| channel.unread() as u64)
    }

    fn unacknowledged(&self) -> u64 {
        let waits = self.trunk.state().session.output().len() as u64;
        waits + self.trunk.stream().unacknowledged()
    }

    fn readable(&self) -> io::Result<Arc<Alarm>> {
        let mut state = self.trunk.state();
        let channel = state.channel(self.id).ok_or(Errno::CONNRESET)?;
        let alarm = match &channel.readable {
            Some(alarm) => alarm.clone(),
            None => channel.readable.insert(Arc::new(Alarm::new()?)).clone(),
        };
        if channel.is_readable() {
            alarm.ring();
        }
        Ok(alarm)
    }

    fn room(&self) -> io::Result<Arc<Alarm>> {
        let state = &mut *self.trunk.state();
        let has_room = state.session.has_room(self.id) || state.is_broken;
        state.session.offer(self.id);
        let channel = state.channel(self.id).ok_or(Errno::PIPE)?;
        let alarm = match &channel.room {
            Some(alarm) => alarm.clone(),
            None => channel.room.insert(Arc::new(Alarm::new()?)).clone(),
        };
        if has_room || channel.is_gone {
            alarm.ring();
        } else {
            alarm.clear();
        }
        Ok(alarm)
    }

    fn on_room(&self, work: Box<dyn FnOnce() + Send>) {
        let state = &mut *self.trunk.state();
        state.session.offer(self.id);
        if let Some(channel) = state.channel(self.id) {
            channel.on_room = Some(work);
        }
    }
}

impl std::fmt::Debug for Trunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trunk({:?})", self.stream)
    }
}

impl std::fmt::Debug for TrunkChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channel({})", self.id)
    }
}
