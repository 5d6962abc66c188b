//! Admin connections: questions about this worker, answered by the thread that runs the reactor, while every app thread may be busy.
//!
//! They have a table of their own, and limits of their own. They never meet the application, are never queued, and count for no limit
//! and no statistics of the others.
//!
//! ```text
//!   accept.rs ──▶ serve.rs ──▶ questions.rs ──▶ telemetry.rs (scrapes.rs, load_desk.rs)
//!   listeners.rs, spare.rs     conn.rs: one connection
//! ```
mod accept;
mod conn;
mod listeners;
mod load_desk;
mod questions;
mod scrapes;
mod serve;
mod spare;
mod telemetry;

use super::listener::Listener;
use super::slab::Slab;
use super::tokens::of_admin;
use super::warnings::Incident;
use crate::clock;
use crate::config::Config;
use crate::disk;
use crate::exchange::buffers::Pool;
use crate::exchange::responses::ToldLoad;
use crate::one_queue::siblings::Pages;
use crate::scoreboard::Scoreboard;
use crate::sys::poll::{Poller, Token};
use crate::waiting::sleeper::Sleeper;
use conn::AdminConn;
use listeners::AdminListeners;
use load_desk::LoadDesk;
use rustix::fd::{AsRawFd, RawFd};
use scrapes::Scrapes;
use std::collections::VecDeque;
use std::sync::Arc;
use telemetry::Telemetry;

/// What the rest of the worker knows that answers tell.
pub(super) struct View<'a> {
    /// Those of clients.
    pub listeners: &'a [Listener],
    pub is_draining: bool,
    /// For the Date field.
    pub date: &'a [u8],
}

pub(super) struct Admin {
    config: Arc<Config>,
    poller: Arc<Poller>,
    /// Waits for the earliest deadline.
    sleeper: Arc<Sleeper>,
    gate: AdminListeners,
    conns: Slab<AdminConn>,
    /// Where the table was last searched for a connection that may be dropped.
    position: usize,
    pool: Pool,
    telemetry: Telemetry,
    /// No connection has an earlier deadline; `u64::MAX`: none has one.
    due: u64,
    /// Connections with more to do, once the events were looked at.
    again: VecDeque<Token>,
    /// Of those, the ones whose turn it is.
    turn: VecDeque<Token>,
    /// The last thing that went wrong, if it was not told yet.
    incident: Option<Incident>,
}

impl Admin {
    pub fn new(
        config: Arc<Config>,
        board: Scoreboard,
        poller: Arc<Poller>,
        sleeper: Arc<Sleeper>,
        load: Arc<ToldLoad>,
        disks: disk::Pool,
    ) -> Admin {
        Admin {
            gate: AdminListeners::new(poller.clone()),
            conns: Slab::new(),
            position: 0,
            pool: Pool::default(),
            telemetry: Telemetry::new(board, Scrapes::new(disks), LoadDesk::new(&config, load)),
            due: u64::MAX,
            again: VecDeque::new(),
            turn: VecDeque::new(),
            incident: None,
            config,
            poller,
            sleeper,
        }
    }

    /// Takes these listeners. They are watched from now on, whatever becomes of those of clients.
    pub fn open(&mut self, listeners: Vec<Listener>) -> rustix::io::Result<()> {
        self.gate.open(listeners)
    }

    /// There are other workers, with these pages.
    pub fn join(&mut self, pages: Pages) {
        self.telemetry.join(pages, clock::now());
    }

    /// Whether anybody can ask.
    pub fn is_open(&self) -> bool {
        self.gate.has_any()
    }

    /// Makes anew what responses of the application tell of the load.
    #[inline]
    pub fn refresh_load(&mut self, now: u64) {
        self.telemetry.refresh_load(now);
    }

    /// What went wrong since this was asked last.
    #[inline]
    pub fn take_incident(&mut self) -> Option<Incident> {
        self.incident.take()
    }

    /// The events have been looked at: connections with more to do have their turn.
    #[inline]
    pub fn begin_turn(&mut self) {
        self.turn.append(&mut self.again);
    }

    #[inline]
    pub fn next_in_turn(&mut self) -> Option<Token> {
        self.turn.pop_front()
    }

    /// A connection has its turn.
    #[inline]
    pub fn has_turn(&self) -> bool {
        !self.turn.is_empty()
    }

    /// A connection has more to do that makes no event.
    #[inline]
    pub fn has_leftovers(&self) -> bool {
        !(self.turn.is_empty() && self.again.is_empty())
    }

    /// When time brings something (monotonic nanoseconds); `None`: never.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        let paused = self.gate.paused_until();
        let due = if paused == 0 { self.due } else { self.due.min(paused) };
        (due != u64::MAX).then_some(due)
    }

    /// Descriptors became free, of connections that clients had.
    #[inline]
    pub fn descriptors_are_free(&mut self) {
        if self.gate.lacks_descriptors() {
            self.keep_spare();
        }
    }

    /// Keeps a descriptor in reserve again, of those that became free. Then connections can be taken again.
    #[cold]
    fn keep_spare(&mut self) {
        if self.gate.keep_descriptors() {
            self.end_pause(clock::now());
        }
    }

    fn end_pause(&mut self, now: u64) {
        if let Err((error, again)) = self.gate.end_pause(now) {
            self.incident = Some(Incident::Unwatched(error));
            self.sleeper.wake_by(again);
        }
    }

    fn list(&mut self, token: Token) {
        if self.conns.get_mut(token).is_some_and(|conn| conn.edges.list()) {
            self.again.push_back(token);
        }
    }

    fn set_deadline(&mut self, token: Token, at: u64) {
        if let Some(conn) = self.conns.get_mut(token) {
            conn.deadline = at;
            self.due = self.due.min(at);
            self.sleeper.wake_by(at);
        }
    }

    /// Has the poller watch a connection. An edge that came before is reported by the first wait.
    fn watch(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        if conn.edges.register() && self.poller.add_connection(conn.stream().socket(), of_admin(token)).is_err() {
            self.close(token);
        }
    }

    fn close(&mut self, token: Token) {
        let Some(mut conn) = self.conns.remove(token) else { return };
        if let Some(request) = conn.take_buffers() {
            self.pool.give(request);
        }
        self.telemetry.scrapes.leave(token);
        drop(conn);
        self.descriptors_are_free();
    }

    /// Ends all: the worker does.
    pub fn close_all(&mut self) {
        self.gate.close();
        self.conns = Slab::new();
    }

    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let sockets = self.conns.iter().map(|(_, conn)| conn.stream().socket().as_raw_fd());
        self.gate.descriptors().chain(sockets)
    }
}
