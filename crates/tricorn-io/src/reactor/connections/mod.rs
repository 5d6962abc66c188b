//! The connections of clients: their table, their deadlines, and the memory and files of what they bring.
//!
//! ```text
//!   events ──┬──▶ read ── look, fill ── begin_body ──▶ store
//!            │      │                       │
//!   expiry ──┤      ▼                       ▼
//!   relay ───┤     evict
//!   exchanges┘      ▼
//!                reject ──▶ respond ──▶ flush ──▶ finish_reply ──▶ linger ──▶ watch ──▶ close ──▶ requests
//! ```
//!
//! Each file calls those below it only (`scripts/check_circles.py`). Nothing here knows a listener, a queue or an app thread: what
//! concerns those is an [`Outcome`] or one of the [`Updates`], and the reactor acts on it.
mod adopt;
mod attend;
mod attended;
mod begin_body;
mod bridge;
mod buffers;
mod close;
mod closing;
mod conn;
mod deadlines;
mod events;
mod evict;
mod exchanges;
mod expiry;
mod fill;
mod finish_reply;
mod flush;
mod handshake;
mod head_memory;
mod held;
mod lend;
mod lifetime;
mod linger;
mod loan;
mod log;
mod look;
mod notices;
mod opening;
mod outcome;
mod phase;
mod proxied;
mod read;
mod reject;
mod relay;
mod requests;
mod respond;
mod session_limit;
#[cfg(test)]
mod simulation;
mod stage;
mod store;
mod streams;
mod timeouts;
mod trunk_reader;
mod trunks;
mod updates;
mod vars;
mod watch;
mod welcome;
mod work;

pub use attended::{Readiness, SlotReadiness};
pub(super) use conn::has_left;
pub(super) use outcome::Outcome;
pub(super) use reject::{After, Rejection, Unbegun};
pub use requests::Waits;
pub(super) use welcome::Newcomer;
pub use work::Runner;

use crate::clock::{self, WallText};
use crate::config::Config;
use crate::exchange::Exchange;
use crate::exchange::coder::NamedFile;
use crate::exchange::id::RequestId;
use crate::exchange::output::Disks;
use crate::logs::Logs;
use crate::one_queue::affinity::{Affinity, Whose};
use crate::one_queue::siblings::Pages;
use crate::reactor::bodies::Bodies;
use crate::reactor::chores::Chores;
use crate::reactor::extra_descriptors::ExtraDescriptors;
use crate::scoreboard::Scoreboard;
use crate::sys::poll::{Poller, Token};
use crate::waiting::sleeper::Sleeper;
use buffers::Buffers;
use conn::Conns;
use deadlines::Deadlines;
use head_memory::HeadMemory;
use lifetime::Lifetime;
use log::Log;
use rustix::fd::RawFd;
use rustix::io::Errno;
use session_limit::SessionLimit;
use std::path::Path;
use std::sync::Arc;
use timeouts::Timeouts;
use tricorn_proto::peer::session::Naming;
use trunk_reader::Frames;
use updates::Updates;
use work::Work;

pub(super) struct Connections {
    config: Arc<Config>,
    board: Scoreboard,
    conns: Conns,
    deadlines: Deadlines,
    buffers: Buffers,
    bodies: Bodies,
    extra: ExtraDescriptors,
    sessions: SessionLimit,
    work: Work,
    log: Log,
    chores: Chores,
    wall: WallText,
    updates: Updates,
    frames: Frames,
    /// With sessions that stay with their workers.
    affinity: Option<Arc<Affinity>>,
}

impl Connections {
    pub fn new(
        config: Arc<Config>,
        board: Scoreboard,
        poller: Arc<Poller>,
        sleeper: Arc<Sleeper>,
        logs: Arc<Logs>,
        extra: ExtraDescriptors,
    ) -> Connections {
        let now = clock::now();
        let pool = extra.disks.pool().clone();
        Connections {
            board,
            conns: Conns::new(poller),
            deadlines: Deadlines::new(Timeouts::new(&config), Lifetime::new(&config), now, sleeper),
            buffers: Buffers::new(HeadMemory::new(config.head_buffer_total, board)),
            bodies: Bodies::new(config.clone(), board, pool),
            extra,
            sessions: SessionLimit::new(&config, board),
            work: Work::new(),
            log: Log::new(config.clone(), logs),
            chores: Chores::default(),
            wall: WallText::at(now),
            updates: Updates::default(),
            frames: Frames::default(),
            affinity: None,
            config,
        }
    }

    /// There are other workers, with these pages.
    pub fn join(&mut self, pages: Pages) {
        self.bodies.join(pages);
    }

    /// There is a table of sessions.
    pub fn know_sessions(&mut self, affinity: Arc<Affinity>) {
        self.affinity = Some(affinity);
    }

    /// From now on sessions that have these names stay with their workers.
    pub fn follow_sessions(&mut self, namings: Vec<Naming>) {
        if let Some(affinity) = &self.affinity {
            affinity.follow(namings);
        }
    }

    /// This worker has no sessions any more.
    pub fn give_up_sessions(&self) {
        if let Some(affinity) = &self.affinity {
            affinity.give_up();
        }
    }

    pub fn affinity(&self) -> Option<&Arc<Affinity>> {
        self.affinity.as_ref().filter(|affinity| affinity.is_in_use())
    }

    /// Whose session a complete request belongs to. One of ours goes to no other worker. `at_last`: a new one's is ours.
    pub fn whose(&mut self, id: RequestId, at_last: bool) -> Whose {
        let Some(affinity) = self.affinity.as_ref().filter(|affinity| affinity.is_in_use()) else {
            return Whose::Nobodys;
        };
        let Some(conn) = self.conns.get_mut(id.connection()) else { return Whose::Nobodys };
        let peer = conn.origin.peer;
        let Some(request) = conn.serial.request_mut(id) else { return Whose::Nobodys };
        let (head, bytes, address) = (&request.head, request.head_bytes(), || request.client_address(peer));
        let whose =
            if at_last { affinity.whose_at_last(head, bytes, address) } else { affinity.whose(head, bytes, address) };
        request.travel.is_bound = whose == Whose::Ours;
        whose
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.conns.len()
    }

    /// The worker is leaving.
    #[inline]
    pub fn is_draining(&self) -> bool {
        self.deadlines.timeouts().is_draining()
    }

    /// What is to be done before the next look at the events, and how much may be.
    #[inline]
    pub fn work(&self) -> &Work {
        &self.work
    }

    #[inline]
    pub fn work_mut(&mut self) -> &mut Work {
        &mut self.work
    }

    /// What a thread that holds the GIL is to drop or to log.
    #[inline]
    pub fn chores(&self) -> &Chores {
        &self.chores
    }

    /// The texts of the clock.
    #[inline]
    pub fn wall(&self) -> &WallText {
        &self.wall
    }

    #[inline]
    pub fn wall_mut(&mut self) -> &mut WallText {
        &mut self.wall
    }

    /// What concerns those who take new connections, and was not acted on.
    #[inline]
    pub fn updates(&mut self) -> &mut Updates {
        &mut self.updates
    }

    /// How long the poller may sleep (nanoseconds); `None`: no deadline is near.
    pub fn until_next_deadline(&self, now: u64) -> Option<u64> {
        self.deadlines.until_next(now)
    }

    /// For something else than a connection: the thread that waits for events comes by then.
    pub fn wake_by(&self, at: u64) {
        self.deadlines.wake_by(at);
    }

    /// The numbers of all sockets, those that exchanges and jobs have included.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.conns.descriptors()
    }

    /// Jobs of outputs.
    pub fn disks(&self) -> &Disks {
        &self.extra.disks
    }

    /// Tells the logs of a request that was answered with a file of the server's.
    pub fn log_served(&self, exchange: &Exchange, now: u64) {
        self.log.served(exchange, now);
    }

    /// Tells the log of a file that the application has named, and why it is not sent. `below`: where files may be named.
    pub fn tell_of_named(&mut self, named: &NamedFile, why: &str, below: &str) {
        self.log.tell_of_named(named, (why, below), clock::now(), &mut self.chores);
    }

    /// Tells the log of a file that could not be opened.
    pub fn tell_of_unreadable(&mut self, path: &Path, error: Errno, now: u64) {
        self.log.tell_of_unreadable(path, error, now, &mut self.chores);
    }

    /// Descriptors that clients hold beside those of their connections.
    pub(super) fn descriptors_beside(&self) -> usize {
        self.extra.count()
    }

    /// The connection has more to do, and others come first: those that are listed already, or whatever has happened meanwhile.
    pub fn later(&mut self, token: Token) {
        if let Some(conn) = self.conns.get_mut(token)
            && conn.edges.list()
        {
            self.work.add_again(token, clock::now());
        }
    }

    #[inline]
    pub(super) fn set_deadline(&mut self, token: Token, at: u64) {
        if let Some(conn) = self.conns.get_mut(token) {
            self.deadlines.set(token, &mut conn.phase, at);
        }
    }
}
