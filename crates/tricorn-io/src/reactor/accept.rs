//! The gate before the listeners, the place of this worker in their wait queue, and what a new connection meets.
use super::conn::{Conn, Origin};
use super::listener::{Accepted, Listener};
use super::phase::Change;
use super::stage::Stage;
use super::warnings::Incident;
use super::wire::{Protocol, Wire};
use super::{Reactor, Runner};
use crate::clock;
use crate::config;
use crate::exchange::id::RequestId;
use crate::peer::Peer;
use crate::scoreboard::Word;
use crate::stream::Stream;
use crate::sys::poll::Token;
use crate::waiting::entrance::Entrance;
use rustix::fd::{BorrowedFd, OwnedFd};

/// A connection that was accepted.
struct Newcomer {
    socket: OwnedFd,
    peer: Peer,
    /// The listener that it came by, and what is spoken there.
    listener: u16,
    protocol: Protocol,
}

impl Reactor {
    /// Opens or closes the gate: puts the listeners into the poller or takes them out.
    ///
    /// Open means "this worker could serve a new connection at once". A worker whose threads are all inside the
    /// application leaves new connections to its siblings, and to the kernel's queue if all are busy. Whether that
    /// changes anything.
    pub fn set_gate(&mut self, open: bool) -> bool {
        let open = open && !self.gate.is_paused() && !self.admission.is_full();
        if !self.gate.set(open) {
            return false;
        }
        self.watch_listeners();
        true
    }

    pub(super) fn watch_listeners(&mut self) {
        if let Err((error, again)) = self.gate.watch(clock::now) {
            self.log.warn(Incident::Unwatched(error));
            self.deadlines.wake_by(again);
            self.tell_shortage(clock::now());
        }
    }

    /// Whether the event loop is to be found in which the hub waits.
    pub fn is_unsettled(&self) -> bool {
        self.gate.entrance().is_unsettled(self.gate.watched())
    }

    /// Changes where listeners are watched. The channel must not be watched meanwhile.
    pub fn move_listeners(&mut self, change: impl FnOnce(&Entrance)) {
        self.gate.step_back();
        change(self.gate.entrance());
        if self.gate.watch(clock::now).is_err() && self.gate.entrance().is_direct() {
            // The epoll is not the loop's alone: a process that was forked with it has the same listeners there (EEXIST).
            self.gate.step_back();
            self.gate.entrance().detach();
        }
        self.watch_listeners();
    }

    /// A request of a connection waits. Whether other workers come first for the next one is seen when the connection is kept, or
    /// has waited for longer than a short request does: workers that took turns at these would each find their memory gone from
    /// the processor's caches.
    pub(super) fn connection_may_stay(&mut self) {
        self.gate.note_newcomer(clock::now());
    }

    /// The hub comes: whether such a connection is there for long.
    pub fn sort_newcomer(&mut self) {
        if self.gate.take_newcomer(clock::now) {
            self.connection_stays();
        }
    }

    /// A connection that was waited for already is kept.
    pub(super) fn connection_is_kept(&mut self) {
        if self.gate.forget_newcomer() {
            self.connection_stays();
        }
    }

    /// A connection is waited for, and may stay for long: other workers come first for the next ones, if they have fewer.
    pub(super) fn connection_stays(&mut self) {
        if self.gate.is_ahead(self.connections() as u64) {
            self.gate.step_back();
            self.watch_listeners();
        }
    }

    /// Watches the channel, or leaves it to workers that can serve what comes.
    pub fn set_door(&mut self, receive: BorrowedFd<'_>, open: bool) {
        // What fails is tried again by the next thread that is about to wait.
        if let Err(error) = self.channel.set(receive, open && !self.gate.is_paused()) {
            self.log.warn(Incident::Unwatched(error));
            self.tell_shortage(clock::now());
        }
    }

    /// Listens for the group's wake-up, or no longer.
    pub fn watch_group_wakeup(&mut self, wakeup: BorrowedFd<'_>, watch: bool) {
        self.channel.listen(wakeup, watch);
    }

    /// Waiting requests can be handed over, so that the monitor takes whatever comes.
    pub fn may_hand_over(&mut self) {
        self.channel.open_way_out();
    }

    /// Whether there was a message in the channel since this was asked last.
    pub fn take_offered(&mut self) -> bool {
        self.channel.take_offered()
    }

    /// App threads that are in no call, the one that runs this included; the monitor knows of none.
    fn free_threads_here(&self) -> usize {
        if self.work.runner() == Runner::AppThread { self.admission.capacity().free() } else { 0 }
    }

    /// There are no descriptors or places left: nothing is taken for a moment.
    pub fn pauses(&self) -> bool {
        self.gate.is_paused()
    }

    /// There was no room for newcomers.
    pub fn is_shut(&self) -> bool {
        (!self.gate.is_open() || !self.may_start()) && !self.is_draining()
    }

    /// The end of a pause opens the gate again; the end of a drain's last call closes it for good.
    pub(super) fn end_pause(&mut self, now: u64) {
        let ended = self.gate.ended(now);
        if ended.last_call && !self.close_listeners() {
            self.gate.goes_on(now);
        }
        if ended.pause {
            // With siblings an app thread opens it when it has nothing to do: only then may this worker accept.
            self.set_gate(!self.config.siblings);
        }
        if ended.retry {
            self.watch_listeners();
        }
    }

    /// Takes no more connections: those in the queue now are the last. False if the baton must be let go of before all are taken.
    fn close_listeners(&mut self) -> bool {
        self.set_gate(false);
        for index in 0..self.gate.listeners().len() {
            while self.take_for_later(index as u16) {
                if !self.work.takes_step() {
                    return false;
                }
            }
        }
        self.gate.close();
        true
    }

    /// Takes no more connections: those in the queue now are for the others that listen there.
    pub(super) fn leave_listeners(&mut self) {
        self.set_gate(false);
        self.take_missed();
        self.gate.close();
    }

    /// Takes the connections for which no other worker was woken.
    ///
    /// For each connection the kernel wakes one of the threads that wait for its listener (EPOLLEXCLUSIVE). If that is one of this
    /// worker, which finds the gate closed when it looks, the others sleep on. There is one such connection at most: a thread
    /// that was woken is not woken again before it has looked.
    pub(crate) fn take_missed(&mut self) {
        if !self.gate.entrance().wakes_one() {
            return;
        }
        for index in 0..self.gate.listeners().len() {
            self.take_for_later(index as u16);
        }
    }

    /// Whether a listener has a connection that was meant for a sibling. It is taken here: the event loop would call for it again
    /// and again until the sibling comes, which may wait for this very processor.
    pub fn look_at_listeners(&mut self) -> bool {
        if !self.config.siblings || !self.gate.entrance().is_direct() {
            return false;
        }
        let waits = |listener: &Listener| listener.watched().is_some() && listener.has_some();
        let Some(index) = self.gate.listeners().iter().position(waits) else { return false };
        self.gate.begin_round(index as u16, 1);
        true
    }

    /// Takes one connection, to be read from at the next turn of the reactor. Whether there was any.
    fn take_for_later(&mut self, listener: u16) -> bool {
        if !self.has_room_for(listener) {
            return false;
        }
        let Some(newcomer) = self.take_connection(listener) else { return false };
        let token = self.welcome(newcomer, clock::now());
        self.later(token);
        true
    }

    /// The listener from which one more connection may be taken in this round.
    pub(super) fn next_accept(&mut self) -> Option<u16> {
        self.gate.next_in_round()
    }

    /// Takes one connection and reads from it at once: with `TCP_DEFER_ACCEPT` its request is there already.
    pub(super) fn accept_one(&mut self, listener: u16) -> Option<RequestId> {
        let full = self.admission.is_full();
        // What can be handed over may be taken: the sleeping sibling was not woken for it.
        let passes_on = self.channel.is_way_out() && (self.work.runner() == Runner::Monitor || !self.may_start());
        let for_sibling = self.config.siblings && !passes_on && self.admission.waiting() >= self.free_threads_here();
        if full || for_sibling || !self.has_room_for(listener) {
            self.gate.end_round();
            if full {
                self.set_gate(false);
            }
            return None;
        }
        let Some(newcomer) = self.take_connection(listener) else {
            self.gate.end_round();
            return None;
        };
        let token = self.welcome(newcomer, clock::now());
        self.read(token)
    }

    /// Whether a connection may be taken. Room is made for one that is there, not for one that may have gone to a sibling.
    #[inline]
    fn has_room_for(&mut self, listener: u16) -> bool {
        if self.gate.handshakes.are_too_many() && self.config.is_tls_at(listener) {
            let is_there = self.gate.listener(listener).is_some_and(Listener::has_some);
            if !is_there || !self.hangs_up_on_silent() {
                return false;
            }
        }
        let listener = self.gate.listener(listener);
        !self.is_crowded() || listener.is_some_and(Listener::has_some) && self.has_room()
    }

    fn take_connection(&mut self, listener: u16) -> Option<Newcomer> {
        let door = self.gate.listener(listener)?;
        let protocol = door.protocol();
        match door.accept() {
            Accepted::Connection(socket, peer) => Some(Newcomer { socket, peer, listener, protocol }),
            Accepted::Nothing => None,
            Accepted::NoDescriptor => {
                self.out_of_descriptors();
                None
            }
        }
    }

    /// Makes room; where none can be made looks away for a moment, for a level-triggered listener that cannot be served
    /// would spin.
    #[cold]
    pub(super) fn out_of_descriptors(&mut self) {
        self.log.warn(Incident::NoDescriptor);
        let now = clock::now();
        if self.evict(config::RELIEF) == 0 {
            self.pause(now);
        }
        self.tell_shortage(now);
    }

    /// Takes nothing for a moment.
    pub(super) fn pause(&mut self, now: u64) {
        self.set_gate(false);
        let end = self.gate.pause(now);
        self.deadlines.wake_by(end);
    }

    fn welcome(&mut self, newcomer: Newcomer, now: u64) -> Token {
        let Newcomer { socket, peer, listener, protocol } = newcomer;
        let origin = Origin { peer, listener, trusted: self.config.policy.trust.allows(peer.ip()) };
        let mut conn = Conn::new(Stream::new(socket), origin, Wire::new(protocol));
        conn.stage = Stage::first(listener, &self.config);
        let token = self.conns.insert(conn);
        self.board.add(Word::Accepted, 1);
        self.board.set(Word::Connections, self.connections() as u64);
        if let Some(conn) = self.conns.get_mut(token) {
            let Wire::Http1(http1) = &mut conn.wire;
            http1.goes_on_at(0, self.deadlines.lifetime().draw(now));
            self.deadlines.enter(token, &mut conn.phase, Change::Accepted, now);
            if self.config.is_tls_at(listener) {
                self.deadlines.enter(token, &mut conn.phase, Change::Shakes, now);
                self.gate.handshakes.begins(token);
                self.board.set(Word::TlsHandshakes, self.gate.handshakes.under_way() as u64);
            }
        }
        token
    }
}
