//! Everything under the baton: connections, listeners, events, ready requests, deadlines.
//!
//! Nothing here blocks, takes a lock, or knows Python. Whoever holds the baton calls [`Reactor::pump`]; waiting for
//! events happens outside (see `engine.rs`), and their batch is handed in.

mod accept;
mod admin;
mod attend;
mod conn;
mod deadlines;
mod hand_over;
mod queue;
mod read;
mod reject;
mod write;

pub use accept::Listener;
pub use admin::AdminPaths;
pub use attend::{Stir, What};
pub use conn::{Attachment, Conn, Phase, Token};
pub use hand_over::{Front, Handed};

use crate::access::AccessLog;
use crate::buffers::{POOLED, Pool, Request};
use crate::clock::{self, WallText};
use crate::config::{self, Config};
use crate::exchange::Exchange;
use crate::outbox::SharedBytes;
use crate::peer::Peer;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::poll::{Event, Events, Poller};
use crate::wheel::{Tick, Wheel};
use conn::Conns;
use std::collections::VecDeque;
use std::sync::Arc;
use tricorn_proto::access_log::Record;
use tricorn_proto::exchange::error_page;
use tricorn_proto::http1::Receiver;
use tricorn_proto::peer::request_id;

/// Tokens from here on are not connections: those of listeners (`SPECIAL` plus their index) and the wake pipe.
const SPECIAL: Token = 0xffff_ffff_0000_0000;
pub const WAKE: Token = Token::MAX;
/// The channel has a message.
pub const CHANNEL: Token = Token::MAX - 1;
/// The bell was rung.
pub const BELL: Token = Token::MAX - 2;

/// Something the log should tell; taken by an app thread (`Engine::take_notices`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Whether it deserves a warning (a refused request) or is for debugging only.
    pub warning: bool,
    pub text: String,
}

/// What app threads owe to the outside: objects to be dropped and lines to be logged by a thread that holds the GIL.
#[derive(Default)]
pub struct Chores {
    pub notices: Vec<Notice>,
    pub attachments: Vec<Attachment>,
    pub spent: Vec<SharedBytes>,
}

pub struct Reactor {
    pub(crate) config: Arc<Config>,
    pub(crate) board: Scoreboard,
    poller: Arc<Poller>,
    access: Option<Arc<AccessLog>>,
    conns: Conns,
    listeners: Vec<Listener>,
    /// Listeners of admin connections, always in the poller; their indices begin at `admin::FIRST`.
    admin_doors: Vec<Listener>,
    /// Admin connections, which count for nothing else.
    admins: usize,
    /// When the events were last looked at.
    polled: u64,
    /// The listeners are in the poller.
    gate_open: bool,
    /// Accepting pauses until then (out of descriptors).
    gate_pause: u64,
    /// While draining: when the listeners are closed.
    listen_until: u64,
    /// A listener with more connections in its queue, and how many may still be taken in this round.
    accepting: Option<(u16, u32)>,
    pub(crate) events: Events,
    /// Connections to be looked at again without an event: more to read, or pipelined requests.
    again: VecDeque<Token>,
    /// Complete requests in the order in which they became complete.
    ready: VecDeque<Token>,
    /// Connections under way to which something happened that their exchanges want to be told of.
    stirred: VecDeque<(Token, attend::What)>,
    /// Whole answers held back to be sent together, and since when.
    held: Vec<Token>,
    held_since: u64,
    /// Since when `ready` has not been empty.
    stands_since: u64,
    /// When the first of `ready` has waited too long; `u64::MAX`: never.
    queue_due: u64,
    overload: queue::Overload,
    /// Application calls under way, of how many at most, and by how many app threads.
    pub(crate) busy: usize,
    share: usize,
    joined: usize,
    /// No app thread is there, though not all are in calls.
    stuck: bool,
    stuck_since: u64,
    /// Waiting requests can be handed over, so that the monitor takes whatever comes.
    pub(crate) hands_over: bool,
    /// The channel is in the poller; the bell is.
    door_open: bool,
    bell_watched: bool,
    /// There was a message in the channel.
    pub(crate) offered: bool,
    wheel: Wheel,
    fired: Vec<(Tick, Token)>,
    pool: Pool,
    pub(crate) wall: WallText,
    pub(crate) draining: bool,
    pub(crate) chores: Chores,
    body_bytes: usize,
    sweep: usize,
    scratch: Vec<u8>,
    /// The wake pipe had something.
    pub(crate) woken: bool,
    runner: Runner,
}

/// Who runs the reactor decides what may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// An app thread: the first complete request is its own.
    AppThread,
    /// The monitor: requests are read and queued, none is started.
    Monitor,
}

impl Reactor {
    pub fn new(
        config: Arc<Config>,
        board: Scoreboard,
        poller: Arc<Poller>,
        access: Option<Arc<AccessLog>>,
        listeners: Vec<Listener>,
    ) -> Reactor {
        Reactor {
            config,
            board,
            poller,
            access,
            conns: Conns::default(),
            listeners,
            admin_doors: Vec::new(),
            admins: 0,
            polled: 0,
            gate_open: false,
            gate_pause: 0,
            listen_until: 0,
            accepting: None,
            events: Events::default(),
            again: VecDeque::new(),
            ready: VecDeque::new(),
            stirred: VecDeque::new(),
            held: Vec::new(),
            held_since: 0,
            stands_since: 0,
            queue_due: u64::MAX,
            overload: queue::Overload::default(),
            busy: 0,
            share: usize::MAX,
            joined: 0,
            stuck: false,
            stuck_since: 0,
            hands_over: false,
            door_open: false,
            bell_watched: false,
            offered: false,
            wheel: Wheel::new(clock::now()),
            fired: Vec::new(),
            pool: Pool::default(),
            wall: WallText::default(),
            draining: false,
            chores: Chores::default(),
            body_bytes: 0,
            sweep: 0,
            scratch: Vec::new(),
            woken: false,
            runner: Runner::Monitor,
        }
    }

    /// Does what can be done without waiting and returns the next request to be answered, if the runner may start one.
    ///
    /// Order: requests that wait already, then connections to be looked at again, then new connections, then events, one
    /// at a time, so that a request is answered while its bytes are still warm.
    pub fn pump(&mut self, runner: Runner) -> Option<Exchange> {
        self.runner = runner;
        let starts = runner == Runner::AppThread && self.may_start();
        loop {
            if starts && let Some(token) = self.next_ready() {
                if let Some(exchange) = self.begin_waiting(token) {
                    return Some(exchange);
                }
                continue;
            }
            let complete = if let Some(token) = self.again.pop_front() {
                self.look_again(token)
            } else if let Some(listener) = self.next_accept() {
                self.accept_one(listener)
            } else if let Some(event) = self.events.pop() {
                self.on_event(event)
            } else if self.held.is_empty() {
                return None;
            } else {
                self.send_held();
                continue;
            };
            let Some(token) = complete else { continue };
            if starts && self.ready.is_empty() {
                let complete =
                    self.conns.get_mut(token).and_then(|conn| conn.request.as_deref()).map_or(0, |r| r.complete);
                if let Some(exchange) = self.begin(token, complete) {
                    return Some(exchange);
                }
                continue;
            }
            self.enqueue(token);
        }
    }

    /// A request that has waited becomes an exchange, unless it has waited too long.
    pub fn begin_waiting(&mut self, token: Token) -> Option<Exchange> {
        let now = clock::now();
        self.wall.refresh(now);
        let mut exchange = self.begin(token, now)?;
        exchange.timing.started = now;
        Some(exchange)
    }

    /// How much waits for a thread with the GIL.
    pub fn chores_weight(&self) -> usize {
        self.chores.notices.len() + self.chores.attachments.len() + self.chores.spent.len()
    }

    /// Whether `pump` has something to do.
    pub fn has_work(&self) -> bool {
        (!self.ready.is_empty() && self.may_start())
            || self.offered && self.may_start()
            || !self.again.is_empty()
            || !self.events.is_empty()
            || !self.held.is_empty()
            || !self.stirred.is_empty()
            || self.accepting.is_some()
    }

    /// Whether there is something to be read that makes no event.
    pub fn has_leftovers(&self) -> bool {
        !self.again.is_empty()
    }

    /// Whether requests wait or are about to be read.
    pub fn is_pressed(&self) -> bool {
        !self.ready.is_empty() || !self.again.is_empty() || !self.events.is_empty()
    }

    /// Complete requests that wait for an app thread.
    pub fn queued(&self) -> usize {
        self.ready.len()
    }

    /// When the events were last looked at.
    pub fn polled(&self) -> u64 {
        self.polled
    }

    pub fn connections(&self) -> usize {
        self.conns.len() - self.admins
    }

    /// Nothing is left that a draining worker should wait for.
    pub fn is_drained(&self) -> bool {
        self.draining && self.listeners.is_empty() && self.connections() == 0
    }

    /// How long the poller may sleep.
    pub fn timeout(&self, now: u64) -> Option<u64> {
        let pause = (self.gate_pause != 0).then(|| self.gate_pause.saturating_sub(now));
        let last_call = (self.listen_until != 0).then(|| self.listen_until.saturating_sub(now));
        [self.wheel.until_next(now), pause, last_call].into_iter().flatten().min()
    }

    /// Takes over the events of a wait and does what time has brought. An unfinished batch is never replaced.
    pub fn arrived(&mut self, batch: &mut Events, now: u64) {
        debug_assert!(self.events.is_empty());
        std::mem::swap(&mut self.events, batch);
        self.tick(now);
    }

    /// What time alone brings: texts of the clock, deadlines, the end of a pause.
    pub fn tick(&mut self, now: u64) {
        self.polled = now;
        self.wall.refresh(now);
        self.expire(now);
        self.tell_overload(now);
    }

    fn on_event(&mut self, event: Event) -> Option<Token> {
        if event.token >= SPECIAL {
            if event.token == WAKE {
                self.woken = true;
                return None;
            }
            if event.token >= BELL {
                self.offered |= event.token == CHANNEL;
                return None;
            }
            let index = (event.token - SPECIAL) as u16;
            if admin::is_admin(index) {
                self.accept_admins(index);
                return None;
            }
            let burst = if self.config.siblings { 1 } else { config::ACCEPT_BURST };
            self.accepting = Some((index, burst));
            let listener = self.next_accept()?;
            return self.accept_one(listener);
        }
        let conn = self.conns.get_mut(event.token)?;
        let half = conn.hangup;
        conn.readable |= event.readable;
        conn.hangup |= event.hangup | event.error;
        match conn.phase {
            Phase::Idle | Phase::Head | Phase::Body if event.readable || event.hangup || event.error => {
                self.read(event.token)
            }
            Phase::Flushing { .. } => {
                self.flush(event.token, event.error);
                None
            }
            Phase::Lingering => {
                self.discard(event.token);
                None
            }
            Phase::Queued => {
                self.stir(event.token, half);
                None
            }
            Phase::Busy => {
                self.stir_busy(event);
                None
            }
            Phase::Idle | Phase::Head | Phase::Body => None,
        }
    }

    fn look_again(&mut self, token: Token) -> Option<Token> {
        let conn = self.conns.get_mut(token)?;
        conn.again = false;
        match conn.phase {
            Phase::Idle | Phase::Head | Phase::Body => self.read(token),
            Phase::Lingering => {
                self.discard(token);
                None
            }
            Phase::Queued | Phase::Busy | Phase::Flushing { .. } => None,
        }
    }

    fn later(&mut self, token: Token) {
        if let Some(conn) = self.conns.get_mut(token)
            && !conn.again
        {
            conn.again = true;
            self.again.push_back(token);
        }
    }

    /// A complete request becomes an exchange, with its socket.
    fn start(&mut self, token: Token) -> Option<Exchange> {
        let conn = self.conns.get_mut(token)?;
        let request = conn.request.take()?;
        let socket = conn.socket.take()?;
        conn.phase = Phase::Busy;
        self.busy += 1;
        self.board.set(Word::InFlight, self.busy as u64);
        let (peer, listener, attachment) = (conn.peer, conn.listener, conn.attachment.take());
        let trusted = conn.trusted;
        let receiver = if request.partial { std::mem::take(&mut conn.receiver) } else { Receiver::default() };
        self.tell_free();
        let mut exchange = Exchange::new(token, socket, request, peer, listener, attachment, self.wall.clone());
        (exchange.trusted, exchange.receiver) = (trusted, receiver);
        self.keep_excess(token, &mut exchange.request);
        if self.config.hub && self.busy > POOLED {
            exchange.request.trim(); // so many at once wait for something, and for long
        }
        Some(exchange)
    }

    /// Bytes after the request (pipelined ones) stay with the connection.
    fn keep_excess(&mut self, token: Token, request: &mut Request) {
        if request.partial || request.unread().is_empty() {
            return;
        }
        let mut next = self.pool.take();
        next.input.extend_from_slice(request.unread());
        next.first_byte = request.complete;
        request.input.truncate(request.start);
        if let Some(conn) = self.conns.get_mut(token) {
            conn.request = Some(next);
        }
    }

    pub fn notice(&mut self, warning: bool, text: impl FnOnce() -> String) {
        if self.chores.notices.len() < config::NOTICES {
            self.chores.notices.push(Notice { warning, text: text() });
        }
    }

    /// An access-log line for a request that never met the application; `page` is what it was answered with.
    fn log_refused(&mut self, peer: Peer, request: Option<&Request>, status: u16, page: &[u8], now: u64) {
        let (Some(access), Some(format)) = (&self.access, &self.config.access_format) else { return };
        let empty = Request::default();
        let request = request.unwrap_or(&empty);
        let remote = peer.ip().map(|ip| ip.to_string()).unwrap_or_default();
        let named = self.config.request_id.then(|| request_id::given(&request.head, request.head_bytes())).flatten();
        let since = |start: u64| if start > 0 { now.saturating_sub(start) / 1000 } else { 0 };
        let record = Record {
            head: &request.head,
            bytes: request.head_bytes(),
            remote: remote.as_bytes(),
            status,
            fields: &[],
            sent: error_page::body(page).len() as u64,
            micros: since(request.first_byte),
            time: self.wall.log_time(),
            pid: std::process::id(),
            request_id: named.unwrap_or_default(),
            queue_micros: (request.waits_since > 0).then(|| since(request.waits_since)),
            environ: &|_| None,
        };
        access.add(|out| format.render(&record, out));
    }
}
