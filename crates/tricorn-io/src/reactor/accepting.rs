//! How connections come in: the listeners and the channel in the poller, and the handshakes that new connections wait for.
//!
//! It says what may be taken, and knows no connection but by its token. What went wrong is the caller's to tell.
use super::channel_watch::ChannelWatch;
use super::connections::Newcomer;
use super::gate::{Ended, Gate};
use super::jobs::{Handshakes, Job};
use super::listener::{Accepted, Listener};
use crate::config::{self, Config};
use crate::exchange::output::Output;
use crate::one_queue::company::Company;
use crate::one_queue::siblings::Pages;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::poll::{Poller, Token};
use crate::waiting::entrance::Entrance;
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::io::Errno;
use std::sync::Arc;

/// Newcomers that are looked at for one that has said nothing.
const SEARCH: usize = 64;

pub(super) struct Accepting {
    config: Arc<Config>,
    board: Scoreboard,
    company: Company,
    gate: Gate,
    channel: ChannelWatch,
    handshakes: Handshakes,
}

/// What a listener has brought.
pub(super) enum Taken {
    Connection(Newcomer),
    Nothing,
    /// Somebody waits, and there is no descriptor.
    NoDescriptor,
}

impl Accepting {
    pub fn new(
        config: Arc<Config>,
        board: Scoreboard,
        poller: Arc<Poller>,
        entrance: Arc<Entrance>,
        listeners: Vec<Listener>,
    ) -> Accepting {
        Accepting {
            company: Company::of(config.siblings, false),
            gate: Gate::new(listeners, entrance.clone()).speaks_tls(&config),
            channel: ChannelWatch::new(poller, entrance),
            handshakes: Handshakes::new(&config, board),
            config,
            board,
        }
    }

    /// The workers with these pages have the same listeners.
    pub fn join(&mut self, pages: Pages) {
        self.gate.join(pages);
    }

    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let listeners = self.gate.listeners().iter().map(|listener| listener.socket.as_raw_fd());
        listeners.chain(self.handshakes.descriptor())
    }
}

/// The listeners.
impl Accepting {
    pub fn listeners(&self) -> &[Listener] {
        self.gate.listeners()
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.gate.is_open()
    }

    #[inline]
    pub fn is_paused(&self) -> bool {
        self.gate.is_paused()
    }

    /// The listeners are closed.
    pub fn is_gone(&self) -> bool {
        self.gate.is_gone()
    }

    /// When time brings something; 0 stands for never.
    pub fn times(&self) -> [u64; 3] {
        self.gate.times()
    }

    /// What time has brought.
    pub fn ended(&mut self, now: u64) -> Ended {
        self.gate.ended(now)
    }

    /// Opens or shuts the gate; whether that changes anything. To be followed by [`Accepting::watch`].
    #[inline]
    pub fn set_open(&mut self, open: bool) -> bool {
        self.gate.set(open && !self.gate.is_paused())
    }

    /// Has the poller watch the listeners as the gate says. What it does not take is to be tried again: why, and when.
    pub fn watch(&mut self, now: impl FnOnce() -> u64) -> Result<(), (Errno, u64)> {
        self.gate.watch(now)
    }

    /// Takes nothing for a moment; until when.
    pub fn pause(&mut self, now: u64) -> u64 {
        self.gate.pause(now)
    }

    /// Closes the listeners a moment later.
    pub fn call_last(&mut self, now: u64) {
        self.gate.call_last(now);
    }

    /// There are more connections than could be taken at once.
    pub fn goes_on(&mut self, now: u64) {
        self.gate.goes_on(now);
    }

    pub fn close(&mut self) {
        self.gate.close();
    }

    /// Whether the event loop is to be found in which the hub waits.
    pub fn is_unsettled(&self) -> bool {
        self.gate.entrance().is_unsettled(self.gate.watched())
    }

    /// Changes where listeners are watched. To be followed by [`Accepting::watch`]. The channel must not be watched meanwhile.
    pub fn change_entrance(&mut self, now: impl Fn() -> u64, change: impl FnOnce(&Entrance)) {
        self.gate.step_back();
        change(self.gate.entrance());
        if self.gate.watch(&now).is_err() && self.gate.entrance().is_direct() {
            // The epoll is not the loop's alone: a process that was forked with it has the same listeners there (EEXIST).
            self.gate.step_back();
            self.gate.entrance().detach();
        }
    }

    /// A connection came to stay: other workers come first for the next ones, if they have fewer. Whether that takes the listeners
    /// out, to be followed by [`Accepting::watch`].
    pub fn requeue_if_ahead(&mut self, connections: u64) -> bool {
        let is_ahead = self.gate.is_ahead(connections);
        if is_ahead {
            self.gate.step_back();
        }
        is_ahead
    }

    /// The listeners at which a connection may wait that was meant for this worker, and of which no other one hears.
    ///
    /// For each connection the kernel wakes one of the threads that wait for its listener (EPOLLEXCLUSIVE). If that is one of this
    /// worker, which finds the gate closed when it looks, the others sleep on. There is one such connection at most: a thread
    /// that was woken is not woken again before it has looked.
    pub fn missed(&self) -> std::ops::Range<u16> {
        if self.gate.entrance().wakes_one() { 0..self.gate.listeners().len() as u16 } else { 0..0 }
    }

    /// Whether a listener has a connection that was meant for a sibling. It is taken here: the event loop would call for it again
    /// and again until the sibling comes, which may wait for this very processor.
    pub fn look_at_listeners(&mut self) -> bool {
        if self.company.is_alone() || !self.gate.entrance().is_direct() {
            return false;
        }
        let waits = |listener: &Listener| listener.watched().is_some() && listener.has_some();
        let Some(index) = self.gate.listeners().iter().position(waits) else { return false };
        self.gate.begin_round(index as u16, 1);
        true
    }

    /// Connections wait at this listener.
    pub fn begin_round(&mut self, listener: u16) {
        // A hub takes the next one when the call before it has ended or waits: no sibling was quicker.
        let leaves_others = !self.company.is_alone() && !self.config.hub;
        self.gate.begin_round(listener, if leaves_others { 1 } else { config::ACCEPT_BURST });
    }

    #[inline]
    pub fn has_round(&self) -> bool {
        self.gate.has_round()
    }

    /// Nothing more is to be taken in this round.
    pub fn end_round(&mut self) {
        self.gate.end_round();
    }

    /// The listener from which one more connection may be taken in this round.
    #[inline]
    pub fn next_in_round(&mut self) -> Option<u16> {
        self.gate.next_in_round()
    }

    /// Whether somebody waits at this listener.
    pub fn has_some(&self, listener: u16) -> bool {
        self.gate.listener(listener).is_some_and(Listener::has_some)
    }

    /// Takes one connection.
    pub fn take(&mut self, listener: u16) -> Taken {
        let Some(found) = self.gate.listener(listener) else { return Taken::Nothing };
        match found.accept() {
            Accepted::Connection(socket, peer) => Taken::Connection(Newcomer { socket, peer, listener }),
            Accepted::Nothing => Taken::Nothing,
            Accepted::NoDescriptor => Taken::NoDescriptor,
        }
    }
}

/// The channel.
impl Accepting {
    /// Watches the channel, or leaves it to workers that can serve what comes.
    pub fn watch_channel(&mut self, receive: BorrowedFd<'_>, watch: bool) -> Result<(), Errno> {
        self.channel.set(receive, watch && !self.gate.is_paused())
    }

    /// Has the poller watch the worker's own mailbox from now on.
    pub fn watch_mailbox(&mut self, receive: BorrowedFd<'_>) -> Result<(), Errno> {
        self.channel.watch_mailbox(receive)
    }

    /// Listens for the group's wake-up, or no longer.
    pub fn watch_group_wakeup(&mut self, wakeup: BorrowedFd<'_>, watch: bool) {
        self.channel.listen(wakeup, watch);
    }

    /// There is a channel to the siblings.
    pub fn open_channel(&mut self) {
        self.company = Company::of(self.config.siblings, true);
    }

    /// Who else serves what comes by the listeners.
    #[inline]
    pub fn company(&self) -> Company {
        self.company
    }

    /// There is a message in the channel.
    pub fn message_came(&mut self) {
        self.channel.came();
    }

    #[inline]
    pub fn is_offered(&self) -> bool {
        self.channel.is_offered()
    }

    /// Whether there was a message in the channel since this was asked last.
    #[inline]
    pub fn take_offered(&mut self) -> bool {
        self.channel.take_offered()
    }
}

/// Handshakes of TLS.
impl Accepting {
    /// As many handshakes as may be are under way, and this listener would bring one more.
    #[inline]
    pub fn is_crowded_at(&self, listener: u16) -> bool {
        self.handshakes.are_too_many() && self.config.is_tls_at(listener)
    }

    /// A connection was taken. Where clients speak TLS its handshake is under way.
    pub fn welcomed(&mut self, token: Token, listener: u16) {
        if self.config.is_tls_at(listener) {
            self.handshakes.begins(token);
            self.publish_handshakes();
        }
    }

    /// A handshake is under way no more. Whether listeners with TLS are to be watched again, by [`Accepting::watch`].
    pub fn handshake_is_over(&mut self, token: Token) -> bool {
        let has_room = self.handshakes.ends(token);
        self.publish_handshakes();
        has_room && self.gate.shut_tls(false)
    }

    fn publish_handshakes(&self) {
        self.board.set(Word::TlsHandshakes, self.handshakes.under_way() as u64);
    }

    /// Asks `close` to close the oldest connection whose client has said nothing. Whether it has.
    pub fn close_silent(&mut self, mut close: impl FnMut(Token) -> bool) -> bool {
        (0..SEARCH).map_while(|_| self.handshakes.next_newcomer()).any(&mut close)
    }

    /// Leaves listeners with TLS alone until a handshake is over; whether that changes anything. To be followed by
    /// [`Accepting::watch`].
    pub fn shut_tls(&mut self) -> bool {
        self.gate.shut_tls(true)
    }

    /// Something of a handshake has come.
    pub fn queue_handshake(&mut self, token: Token) {
        self.handshakes.queue(token);
    }

    /// Whether there is work for a thread that has let the baton go.
    #[inline]
    pub fn has_job(&self) -> bool {
        self.handshakes.has_job()
    }

    /// Whether the next job is likely to be done within so many nanoseconds.
    pub fn are_jobs_short(&self, most: u64) -> bool {
        self.handshakes.are_short(most)
    }

    /// For how many nanoseconds jobs have waited; 0: there are none.
    pub fn job_waited(&self, now: u64) -> u64 {
        self.handshakes.waited(now)
    }

    /// The next job. `check_out` gives what it needs of a connection, if that is still there.
    pub fn next_job(&mut self, mut check_out: impl FnMut(Token) -> Option<(Output, Vec<u8>)>) -> Option<Job> {
        loop {
            let (token, sessions) = self.handshakes.next()?;
            if let Some((output, first)) = check_out(token) {
                self.handshakes.check_out(output.stream());
                return Some(Job::new(token, output, first, sessions));
            }
        }
    }

    /// A job is back, which took so many nanoseconds.
    pub fn job_is_back(&mut self, took: u64) {
        self.handshakes.check_in(took);
    }
}
