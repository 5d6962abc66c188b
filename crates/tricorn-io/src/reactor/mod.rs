//! Everything under the baton: connections, listeners, events, ready requests, deadlines.
//!
//! Nothing here blocks, takes a lock, or knows Python. The thread that holds the baton calls [`Reactor::pump`]; waiting for
//! events happens outside (see `engine/mod.rs`), and their batch is handed in.

mod accept;
mod admin;
mod admin_duties;
mod admission;
mod attend;
mod attended;
mod bodies;
mod bridge;
mod buffers;
mod carry;
mod channel_watch;
mod chores;
mod conn;
mod deadlines;
mod descriptors;
mod disk_thread;
mod edges;
mod enqueue;
mod evict;
mod expiry;
mod extra_descriptors;
mod gate;
mod hand_over;
mod head_memory;
mod held;
mod jobs;
mod lifetime;
mod listener;
mod log;
mod notices;
mod opening;
mod outgoing;
mod phase;
mod proxied;
mod queue;
mod read;
mod reject;
mod respond;
pub mod sender;
mod shake;
mod shed_heads;
mod shed_sessions;
#[cfg(test)]
mod simulation;
mod slab;
mod spooler;
mod stage;
mod store;
mod timeouts;
mod tokens;
mod warnings;
mod wheel;
mod wire;
mod work;
mod write;

pub use crate::config::AdminPaths;
pub use crate::sys::poll::Token;
pub use attended::{Readiness, SlotReadiness};
pub use chores::{Chores, Notice};
pub use hand_over::{Front, Handed};
pub use jobs::Job;
pub use listener::Listener;
pub use tokens::WAKE;
pub use wire::Protocol;
pub use work::Runner;

use crate::clock::{self, WallText};
use crate::config::{self, Config};
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::exchange::lane::Lane;
use crate::exchange::responses::ToldLoad;
use crate::exchange::{Client, Exchange};
use crate::logs::Logs;
use crate::one_queue::siblings::Pages;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::poll::{Event, Events, Poller};
use crate::waiting::capacity::Callers;
use crate::waiting::entrance::Entrance;
use crate::waiting::sleeper::Sleeper;
use admin::Admin;
use admission::{Admission, Limits};
use bodies::Bodies;
use buffers::Buffers;
use channel_watch::ChannelWatch;
use conn::{Conns, Origin};
use deadlines::Deadlines;
use extra_descriptors::ExtraDescriptors;
use gate::Gate;
use head_memory::HeadMemory;
use lifetime::Lifetime;
use log::Log;
use phase::{Change, Phase};
use queue::Queue;
use rustix::fd::AsRawFd;
use sender::Sender;
use std::sync::Arc;
use timeouts::Timeouts;
use tokens::Source;
use wire::Wire;
use work::Work;

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
}

pub struct Reactor {
    config: Arc<Config>,
    board: Scoreboard,
    conns: Conns,
    work: Work,
    gate: Gate,
    /// Apart from what each request touches.
    admin: Box<Admin>,
    channel: ChannelWatch,
    admission: Admission,
    deadlines: Deadlines,
    buffers: Buffers,
    bodies: Bodies,
    extra: ExtraDescriptors,
    log: Log,
    pub(crate) wall: WallText,
    pub(crate) chores: Chores,
}

impl Reactor {
    pub fn new(given: Surroundings) -> Reactor {
        let Surroundings { config, board, poller, entrance, logs, listeners, sleeper, callers, load } = given;
        let now = clock::now();
        Reactor {
            board,
            conns: Conns::new(poller.clone()),
            work: Work::new(),
            gate: Gate::new(listeners, entrance.clone()).speaks_tls(&config, board),
            admin: Box::new(Admin::new(config.clone(), board, poller.clone(), sleeper.clone(), load)),
            channel: ChannelWatch::new(poller.clone(), entrance),
            admission: Admission::new(Queue::new(config.queue_order), callers, Limits::new(&config)),
            deadlines: Deadlines::new(Timeouts::new(&config), Lifetime::new(&config), now, sleeper),
            buffers: Buffers::new(HeadMemory::new(config.head_buffer_total, board)),
            bodies: Bodies::new(config.clone(), board, poller.clone()),
            extra: ExtraDescriptors::new(Sender::new(&config, poller.clone())),
            log: Log::new(config.clone(), logs),
            wall: WallText::at(now),
            chores: Chores::default(),
            config,
        }
    }

    /// Does what can be done without waiting and returns the next request to be answered, if the runner may start one.
    ///
    /// Order: requests that wait already, then connections to be looked at again, then new connections, then events, one
    /// at a time, so that a request is answered while its bytes are still warm. Connections that have more bytes than fit
    /// the turn wait in `again` for the next look at the events ([`Reactor::has_leftovers`]). What is more work than the baton
    /// may be held for is left to the next holder ([`Reactor::has_work`]).
    pub fn pump(&mut self, runner: Runner) -> Option<Box<Exchange>> {
        self.work.begin(runner);
        let starts = runner == Runner::AppThread && self.may_start();
        loop {
            if !self.work.takes_step() {
                return None;
            }
            if starts && let Some(id) = self.next_ready() {
                if let Some(exchange) = self.begin_waiting(id) {
                    return Some(exchange);
                }
                continue;
            }
            let complete = if let Some(token) = self.work.next_again() {
                self.look_again(token)
            } else if self.work.has_written() {
                self.take_written()
            } else if let Some(listener) = self.next_accept() {
                self.accept_one(listener)
            } else if let Some(event) = self.work.next_event() {
                self.on_event(event)
            } else if let Some(token) = self.admin.next_in_turn() {
                self.admin_has_turn(token);
                continue;
            } else if self.work.has_held() {
                self.send_held();
                continue;
            } else {
                return None;
            };
            let Some(id) = complete else { continue };
            if starts && !self.admission.has_waiting() {
                let complete = self.conns.request(id).map_or(0, |request| request.times.complete);
                if let Some(exchange) = self.begin(id, complete) {
                    return Some(exchange);
                }
                continue;
            }
            self.enqueue(id);
        }
    }

    /// A request that has waited becomes an exchange, unless it has waited too long.
    pub fn begin_waiting(&mut self, id: RequestId) -> Option<Box<Exchange>> {
        let now = clock::now();
        self.wall.refresh(now);
        let mut exchange = self.begin(id, now)?;
        exchange.timing.started = now;
        Some(exchange)
    }

    /// Whether `pump` has something to do before the next look at the events.
    pub fn has_work(&self) -> bool {
        let has_request = self.admission.has_waiting() || self.channel.is_offered();
        has_request && self.may_start() || self.has_more()
    }

    /// The baton was taken: so much work may be done until it is let go of.
    #[inline]
    pub fn begin_hold(&mut self) {
        self.work.begin_hold();
    }

    /// The baton is to be let go of, and there is more to do.
    pub fn is_cut_short(&self) -> bool {
        self.work.is_hold_over() && self.has_more()
    }

    fn has_more(&self) -> bool {
        self.work.has_any() || self.gate.has_round() || self.admin.has_turn()
    }

    /// Whether there is something to be read that makes no event.
    pub fn has_leftovers(&self) -> bool {
        self.work.has_again() || self.admin.has_leftovers()
    }

    /// Whether requests wait or are about to be read.
    pub fn is_pressed(&self) -> bool {
        self.admission.has_waiting() || self.work.has_again() || !self.work.events().is_empty()
    }

    /// The last events of a wait that are not dealt with.
    pub fn events(&self) -> &Events {
        self.work.events()
    }

    /// The wake pipe had something.
    #[inline]
    pub fn is_woken(&self) -> bool {
        self.work.is_woken()
    }

    /// The same, once.
    #[inline]
    pub fn take_woken(&mut self) -> bool {
        self.work.take_woken()
    }

    /// Complete requests that wait for an app thread.
    pub fn queued(&self) -> usize {
        self.admission.waiting()
    }

    /// When the events were last looked at.
    pub fn polled(&self) -> u64 {
        self.work.looked_at()
    }

    pub fn connections(&self) -> usize {
        self.conns.len()
    }

    /// Nothing is left that a draining worker should wait for.
    pub fn is_drained(&self) -> bool {
        self.is_draining() && self.gate.is_gone() && self.connections() == 0
    }

    /// The worker is leaving.
    #[inline]
    fn is_draining(&self) -> bool {
        self.deadlines.timeouts().is_draining()
    }

    /// How long the poller may sleep.
    pub fn timeout(&self, now: u64) -> Option<u64> {
        if self.has_leftovers() {
            return Some(0);
        }
        let times = self.gate.times().into_iter().chain(self.admin.next_due());
        let next = times.filter(|time| *time != 0).min().map(|time| time.saturating_sub(now));
        [self.deadlines.until_next(now), next].into_iter().flatten().min()
    }

    /// Takes over the events of a wait and does what time has brought.
    pub fn arrived(&mut self, batch: &mut Events, now: u64) {
        self.work.arrived(batch, now);
        self.admin.begin_turn();
        self.tick(now);
    }

    /// What time alone brings: texts of the clock, deadlines, the end of a pause.
    pub fn tick(&mut self, now: u64) {
        self.work.looked(now);
        self.wall.refresh(now);
        self.admin.refresh_load(now);
        self.expire(now);
        self.tend_admin(now);
        self.hurry_idle(now);
        self.tell_overload(now);
        self.tell_shortage(now);
    }

    fn on_event(&mut self, event: Event) -> Option<RequestId> {
        match Source::of(event.token) {
            Source::Connection(_) => return self.connection_event(event),
            Source::Listener(index) => {
                // A hub takes the next one when the call before it has ended or waits: no sibling was quicker.
                let leaves_others = self.config.siblings && !self.config.hub;
                self.gate.begin_round(index, if leaves_others { 1 } else { config::ACCEPT_BURST });
                let listener = self.next_accept()?;
                return self.accept_one(listener);
            }
            Source::Bridge(token) => self.near_event(token, event),
            Source::AdminConnection(token) => self.admin_event(token, event),
            Source::AdminListener(index) => self.accept_admins(index),
            Source::Wake => self.work.wake(),
            Source::Channel => self.channel.came(),
            Source::GroupWakeup => {}
            Source::Spooled => self.work.pieces_are_written(true),
            Source::Scraped => self.answer_scrapes(),
        }
        None
    }

    fn connection_event(&mut self, event: Event) -> Option<RequestId> {
        let conn = self.conns.get_mut(event.token)?;
        let half = conn.edges.came(event);
        match conn.phase.get() {
            // The turn's bytes are used up. A head is read all the same: it is short.
            Phase::Body | Phase::Flushing(_) | Phase::Bridged(_) if self.work.is_turn_over() && !event.error => {
                self.later(event.token);
                None
            }
            Phase::Idle | Phase::Head | Phase::Body if event.readable || event.hangup || event.error => {
                self.read(event.token)
            }
            Phase::Flushing(_) => {
                self.flush(event.token, event.error, clock::now());
                None
            }
            Phase::Bridged(_) => {
                self.carry(event.token);
                None
            }
            Phase::Lingering => {
                self.discard(event.token);
                None
            }
            Phase::Queued => {
                let Wire::Http1(http1) = &conn.wire;
                let id = http1.current(event.token);
                self.client_acted(id, half);
                None
            }
            Phase::Busy(_) => {
                self.busy_event(event);
                None
            }
            Phase::Shaking => {
                self.shaking_event(event);
                None
            }
            Phase::Idle | Phase::Head | Phase::Body | Phase::Storing => None,
        }
    }

    fn look_again(&mut self, token: Token) -> Option<RequestId> {
        let conn = self.conns.get_mut(token)?;
        conn.edges.unlist();
        match conn.phase.get() {
            Phase::Idle | Phase::Shaking | Phase::Head | Phase::Body => self.read(token),
            Phase::Lingering => {
                self.discard(token);
                None
            }
            Phase::Flushing(_) => {
                self.flush(token, false, clock::now());
                None
            }
            Phase::Bridged(_) => {
                self.carry(token);
                None
            }
            Phase::Busy(_) => {
                self.may_be_readable(token);
                None
            }
            Phase::Queued | Phase::Storing => None,
        }
    }

    /// The connection has more to do, and others come first: those that are listed already, or whatever has happened meanwhile.
    fn later(&mut self, token: Token) {
        if let Some(conn) = self.conns.get_mut(token)
            && conn.edges.list()
        {
            self.work.add_again(token, clock::now());
        }
    }

    /// A complete request becomes an exchange, with the output of its connection.
    fn start(&mut self, id: RequestId) -> Option<Box<Exchange>> {
        let conn = self.conns.get_mut(id.connection())?;
        let Wire::Http1(http1) = &mut conn.wire;
        let (mut request, receiver) = http1.begin(id)?;
        let is_last = self.deadlines.lifetime().is_last(id.stream(), http1.last_from(), request.times.complete);
        self.extra.opened(request.takes_file());
        let output = conn.output.take()?;
        conn.phase.enter(Change::Begun(output.socket().as_raw_fd()));
        self.admission.capacity_mut().began();
        self.board.set(Word::InFlight, self.admission.capacity().busy() as u64);
        let (Origin { peer, listener, trusted }, attachment) = (conn.origin, conn.attachment.take());
        self.publish_free();
        let client = Client { peer, listener, trusted, attachment };
        let lane = Lane::new(id, output, self.config.response_buffer_size);
        let mut exchange = Exchange::new(lane, request, receiver, client, self.wall.clone());
        if is_last {
            exchange.request.reply.close();
        }
        self.keep_excess(id, &mut exchange.request);
        if exchange.request.counted.disk > 0 {
            self.bodies.lend_out(&mut exchange.request);
        }
        if self.admission.capacity().has_many() {
            exchange.request.trim();
        }
        Some(exchange)
    }

    /// Bytes after the request (pipelined ones) stay with the connection.
    fn keep_excess(&mut self, id: RequestId, request: &mut Request) {
        if request.partial || request.unread().is_empty() {
            return;
        }
        let mut next = self.buffers.take();
        next.input.extend_from_slice(request.unread());
        next.times.first_byte = request.times.complete;
        request.input.truncate(request.start);
        if let Some(conn) = self.conns.get_mut(id.connection()) {
            let Wire::Http1(http1) = &mut conn.wire;
            http1.keep_excess(next);
        }
    }

    /// There are other workers, with these pages.
    pub fn join_group(&mut self, pages: Pages) {
        self.gate.join(pages.clone());
        self.admin.join(pages.clone());
        self.bodies.join(pages);
    }
}
