//! Everything under the baton: connections, listeners, events, ready requests, deadlines.
//!
//! Nothing here blocks, takes a lock, or knows Python. The thread that holds the baton calls [`Reactor::pump`]; waiting for
//! events happens outside (see `engine/mod.rs`), and their batch is handed in.
//!
//! Four owners have private fields, and know nothing of one another:
//!
//! ```text
//!   pump, accept, begin, serve_file, hand_over, handshake, listen, leave, stranded, admin_duties     the reactor: what one owner has for another
//!     │          │            │             │
//!   Dispatch   Accepting   Connections    Admin
//!   queue,     gate,       table,         a table, listeners
//!   capacity,  channel,    deadlines,     and limits of its own
//!   events     handshakes  buffers,
//!                          bodies
//! ```
mod accept;
mod accepting;
mod admin;
mod admin_duties;
mod admission;
mod affinity;
mod begin;
mod bodies;
mod channel_watch;
mod chores;
mod connections;
mod dispatch;
mod edges;
mod extra_descriptors;
mod files;
mod finish;
mod gate;
mod hand_over;
mod handshake;
mod jobs;
mod leave;
mod leftover;
mod lines;
mod listen;
mod listener;
mod mailbox;
mod outgoing;
mod pump;
mod queue;
mod serial;
mod serve_file;
mod slab;
mod spooler;
mod stranded;
mod tokens;
mod warnings;
mod wheel;

pub use crate::config::AdminPaths;
pub use crate::sys::poll::Token;
pub use chores::{Chores, Notice};
pub use connections::{Readiness, Runner, SlotReadiness};
pub use hand_over::{Front, Handed};
pub use jobs::Job;
pub use leftover::unavailable;
pub use listener::Listener;
pub use tokens::{DISK_NEWS, WAKE};

use crate::clock::{self, WallText};
use crate::config::Config;
use crate::exchange::Exchange;
use crate::exchange::id::RequestId;
use crate::exchange::outbox::Outbox;
use crate::exchange::output::{DiskOutcome, Disks, Output};
use crate::exchange::responses::ToldLoad;
use crate::logs::Logs;
use crate::one_queue::siblings::Pages;
use crate::peer::Peer;
use crate::scoreboard::Scoreboard;
use crate::stream::Stream;
use crate::sys::poll::{Events, Poller};
use crate::sys::random_seed;
use crate::waiting::capacity::Callers;
use crate::waiting::entrance::Entrance;
use crate::waiting::sleeper::Sleeper;
use accepting::Accepting;
use admin::Admin;
use admission::{Admission, Limits};
use connections::Connections;
use dispatch::Dispatch;
use extra_descriptors::ExtraDescriptors;
use files::Files;
use mailbox::Mailbox;
use queue::Queue;
use rustix::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use tricorn_proto::message::Refusal;
use tricorn_proto::peer::request_id;

/// What a reactor is given by the engine.
pub struct Surroundings {
    pub config: Arc<Config>,
    pub board: Scoreboard,
    pub poller: Arc<Poller>,
    pub entrance: Arc<Entrance>,
    pub logs: Arc<Logs>,
    pub listeners: Vec<Listener>,
    pub sleeper: Arc<Sleeper>,
    pub callers: Callers,
    pub load: Arc<ToldLoad>,
    pub disks: Arc<Disks>,
    pub returned: Receiver<DiskOutcome>,
}

pub struct Reactor {
    config: Arc<Config>,
    board: Scoreboard,
    accepting: Accepting,
    connections: Connections,
    dispatch: Dispatch,
    /// With sessions that stay with their workers.
    mailbox: Option<Box<Mailbox>>,
    /// Apart from what each request touches.
    admin: Box<Admin>,
    /// With files that the server sends itself.
    files: Option<Box<Files>>,
    load: Arc<ToldLoad>,
}

impl Reactor {
    pub fn new(given: Surroundings) -> Reactor {
        let Surroundings { config, board, poller, entrance, logs, listeners, sleeper, callers, load, disks, returned } =
            given;
        let pool = disks.pool().clone();
        let ids = config.request_id.then(|| request_id::Maker::new(random_seed()));
        let admission = Admission::new(Queue::new(config.queue_order), callers, Limits::new(&config));
        Reactor {
            board,
            accepting: Accepting::new(config.clone(), board, poller.clone(), entrance, listeners),
            connections: Connections::new(
                config.clone(),
                board,
                poller.clone(),
                sleeper.clone(),
                logs,
                ExtraDescriptors::new(disks, returned),
            ),
            dispatch: Dispatch::new(board, admission),
            mailbox: None,
            files: Files::new(&config, pool.clone(), ids),
            admin: Box::new(Admin::new(config.clone(), board, poller, sleeper, load.clone(), pool)),
            load,
            config,
        }
    }

    /// There are other workers, with these pages.
    pub fn join_group(&mut self, pages: Pages) {
        if let Some(mailbox) = &mut self.mailbox {
            mailbox.births.join(pages.clone());
        }
        self.accepting.join(pages.clone());
        self.admin.join(pages.clone());
        self.connections.join(pages);
    }

    /// The descriptors that the reactor holds, or has lent to an exchange.
    pub fn own_descriptors(&self, each: impl FnMut(RawFd)) {
        let listeners_and_admin = self.accepting.descriptors().chain(self.admin.descriptors());
        listeners_and_admin.chain(self.connections.descriptors()).for_each(each);
    }
}

/// What is to be done.
impl Reactor {
    /// Whether `pump` has something to do before the next look at the events.
    pub fn has_work(&self) -> bool {
        let has_request = self.dispatch.admission().has_waiting() || self.accepting.is_offered();
        has_request && self.may_start() || self.has_more()
    }

    /// Whether the events are to be looked at before the next request begins ([`Dispatch::awaits_look`]).
    #[inline]
    pub fn awaits_look(&self) -> bool {
        self.dispatch.awaits_look() && self.may_start()
    }

    fn has_more(&self) -> bool {
        self.connections.work().has_any()
            || self.dispatch.has_any()
            || self.accepting.has_round()
            || self.mailbox.as_ref().is_some_and(|mailbox| mailbox.has_mail())
            || self.admin.has_turn()
    }

    /// The baton was taken: so much work may be done until it is let go of.
    #[inline]
    pub fn begin_hold(&mut self) {
        self.connections.work_mut().begin_hold();
    }

    /// The baton is to be let go of, and there is more to do.
    pub fn is_cut_short(&self) -> bool {
        self.connections.work().is_hold_over() && self.has_more()
    }

    /// Whether there is something to be read that makes no event.
    pub fn has_leftovers(&self) -> bool {
        self.connections.work().has_again() || self.admin.has_leftovers()
    }

    /// Whether requests wait or are about to be read.
    pub fn is_pressed(&self) -> bool {
        self.dispatch.admission().has_waiting()
            || self.connections.work().has_again()
            || !self.dispatch.events().is_empty()
    }

    /// The last events of a wait that are not dealt with.
    pub fn events(&self) -> &Events {
        self.dispatch.events()
    }

    /// The wake pipe had something.
    #[inline]
    pub fn is_woken(&self) -> bool {
        self.dispatch.is_woken()
    }

    /// The same, once.
    #[inline]
    pub fn take_woken(&mut self) -> bool {
        self.dispatch.take_woken()
    }

    /// When the events were last looked at.
    pub fn polled(&self) -> u64 {
        self.dispatch.looked_at()
    }

    /// Nothing is left that a draining worker should wait for. From then on it has no sessions, so that nothing comes for it.
    pub fn is_drained(&self) -> bool {
        if !(self.connections.is_draining() && self.accepting.is_gone() && self.connections.len() == 0) {
            return false;
        }
        self.connections.give_up_sessions();
        !self.mailbox.as_ref().is_some_and(|mailbox| mailbox.holds_any())
    }

    /// How long the poller may sleep.
    pub fn timeout(&self, now: u64) -> Option<u64> {
        if self.has_leftovers() {
            return Some(0);
        }
        let files = self.files.as_ref().and_then(|files| files.next_due());
        let times = self.accepting.times().into_iter().chain(self.admin.next_due()).chain(files);
        let next = times.filter(|time| *time != 0).min().map(|time| time.saturating_sub(now));
        [self.connections.until_next_deadline(now), next].into_iter().flatten().min()
    }
}

/// Requests that wait, and those who could begin them.
impl Reactor {
    /// Complete requests that wait for an app thread.
    pub fn queued(&self) -> usize {
        self.dispatch.admission().waiting()
    }

    /// When the longest waiting request was complete; 0: nothing waits.
    pub fn oldest(&self) -> u64 {
        self.dispatch.admission().oldest()
    }

    /// More requests wait than app threads here could begin.
    pub fn waits_in_vain(&self) -> bool {
        self.dispatch.admission().waits_in_vain()
    }

    #[inline]
    pub fn may_start(&self) -> bool {
        self.dispatch.admission().capacity().may_start()
    }

    /// Calls under way.
    pub fn busy(&self) -> usize {
        self.dispatch.admission().capacity().busy()
    }

    #[inline]
    pub fn is_over_limit(&self) -> bool {
        self.dispatch.admission().is_over_limit(clock::now)
    }

    /// When the next waiting request has waited too long, or is one too many; `None`: never.
    pub fn queue_due(&self) -> Option<u64> {
        self.dispatch.admission().due()
    }

    /// So many app threads serve.
    pub fn set_threads(&mut self, threads: usize) {
        self.dispatch.set_threads(threads);
    }

    /// How many calls this worker may have under way.
    pub fn set_share(&mut self, share: usize) {
        self.dispatch.set_share(share);
    }

    /// No app thread is there, whatever their count says; or one is back.
    pub fn set_stuck(&mut self, stuck: bool) {
        self.dispatch.set_stuck(stuck, clock::now());
    }
}

/// Requests under way, and what a thread that holds the GIL is to do.
impl Reactor {
    /// From now on the exchange is told what happens to its connection. Bytes and room are edges.
    pub(crate) fn attend(&mut self, exchange: &Exchange) {
        if let Some(id) = self.connections.attend(exchange) {
            self.dispatch.add_ready(id);
        }
    }

    /// The next thing that happens to the connection is told, whatever it is.
    pub(crate) fn await_room(&mut self, id: RequestId) {
        self.connections.await_room(id);
    }

    /// The exchange is told that there are bytes once others had their turn, since it leaves some unread that make no event.
    pub(crate) fn read_later(&mut self, id: RequestId) {
        self.connections.read_later(id);
    }

    /// The exchange's earliest timer comes then.
    pub(crate) fn remind_at(&mut self, id: RequestId, at: u64) {
        self.connections.remind_at(id, at);
    }

    /// A body that came while its request was under way was refused: counted, and told to the log.
    pub(crate) fn count_refused(&mut self, peer: Peer, refusal: &Refusal) {
        self.connections.count_refused(peer, refusal);
    }

    /// What was read of the next request, which a protocol that follows gets instead.
    pub(crate) fn take_unread(&mut self, id: RequestId) -> Vec<u8> {
        self.connections.take_unread(id)
    }

    /// The application has taken this socket: nothing is waited for there any more. Returns what was read already.
    pub fn let_go(&mut self, id: RequestId, socket: BorrowedFd<'_>) -> Vec<u8> {
        self.connections.let_go(id, socket)
    }

    /// The application takes the socket of an exchange whose client speaks TLS: from now on the bytes of `client` are carried to and from
    /// `near`, our end of a pair, of which the exchange has the other one, with the number `far`. `unsent`: what was written before.
    pub fn begin_bridge(&mut self, id: RequestId, client: Output, (near, far): (Stream, RawFd), unsent: Outbox) {
        self.connections.begin_bridge(id, client, (near, far), unsent);
    }

    /// Sends the answers that were held back, one after another.
    pub fn send_held(&mut self) {
        self.connections.send_held();
    }

    /// Keeps a line for the error log.
    pub fn notice(&mut self, warning: bool, text: impl FnOnce() -> String) {
        self.connections.notice(warning, text);
    }

    /// How much there is to drop or to log.
    #[inline]
    pub fn chores_weight(&self) -> usize {
        self.connections.chores().weight()
    }

    /// The texts of the clock.
    pub(crate) fn wall_mut(&mut self) -> &mut WallText {
        self.connections.wall_mut()
    }
}
