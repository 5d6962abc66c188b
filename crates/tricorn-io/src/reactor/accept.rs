//! New connections: whether they may be taken, and what they meet.
use super::Reactor;
use super::accepting::Taken;
use super::connections::{Newcomer, Runner};
use crate::clock;
use crate::exchange::id::RequestId;
use crate::one_queue::company::Company;
use crate::sys::poll::Token;

impl Reactor {
    /// The end of a pause opens the gate again; the end of a drain's last call closes it for good.
    pub(super) fn end_pause(&mut self, now: u64) {
        let ended = self.accepting.ended(now);
        if ended.last_call && !self.close_listeners() {
            self.accepting.goes_on(now);
        }
        if ended.pause {
            // With siblings an app thread opens it when it has nothing to do: only then may this worker accept.
            self.set_gate(self.accepting.company().is_alone());
        }
        if ended.retry {
            self.watch_listeners();
        }
    }

    /// Takes no more connections: those in the queue now are the last. False if the baton must be let go of before all are taken.
    fn close_listeners(&mut self) -> bool {
        self.set_gate(false);
        for index in 0..self.accepting.listeners().len() {
            while self.take_for_later(index as u16) {
                if !self.connections.work_mut().takes_step() {
                    return false;
                }
            }
        }
        self.accepting.close();
        true
    }

    /// Takes no more connections: those in the queue now are for the others that listen there.
    pub(super) fn leave_listeners(&mut self) {
        self.set_gate(false);
        self.take_missed();
        self.accepting.close();
    }

    /// Takes the connections for which no other worker was woken.
    pub(crate) fn take_missed(&mut self) {
        for index in self.accepting.missed() {
            self.take_for_later(index);
        }
    }

    /// Whether a listener has a connection that was meant for a sibling, and that is taken here.
    pub fn look_at_listeners(&mut self) -> bool {
        self.accepting.look_at_listeners()
    }

    /// Takes one connection, to be read from at the next turn of the reactor. Whether there was any.
    fn take_for_later(&mut self, listener: u16) -> bool {
        if !self.has_room_for(listener) {
            return false;
        }
        let Some(newcomer) = self.take_connection(listener) else { return false };
        let token = self.welcome(newcomer);
        self.connections.later(token);
        true
    }

    /// Whether a connection is left to a sibling: no thread here could begin its request at once.
    fn leaves_to_sibling(&self) -> bool {
        let is_app_thread = self.connections.work().runner() == Runner::AppThread;
        let admission = self.dispatch.admission();
        // In no call, the one that runs this included; the monitor knows of none.
        let free = if is_app_thread { admission.capacity().free() } else { 0 };
        match self.accepting.company() {
            Company::Alone => false,
            Company::Siblings => admission.waiting() >= free,
            // What can be handed over may be taken: the sleeping sibling was not woken for it.
            Company::OneQueue => is_app_thread && self.may_start() && admission.waiting() >= free,
        }
    }

    /// Takes one connection and reads from it at once: with `TCP_DEFER_ACCEPT` its request is there already.
    pub(super) fn accept_one(&mut self, listener: u16) -> Option<RequestId> {
        let full = self.dispatch.admission().is_full();
        if full || self.leaves_to_sibling() || !self.has_room_for(listener) {
            self.accepting.end_round();
            if full {
                self.set_gate(false);
            }
            return None;
        }
        let Some(newcomer) = self.take_connection(listener) else {
            self.accepting.end_round();
            return None;
        };
        let token = self.welcome(newcomer);
        let outcome = self.connections.read(token)?;
        self.act(outcome)
    }

    /// Whether a connection may be taken. Room is made for one that is there, not for one that may have gone to a sibling.
    #[inline]
    fn has_room_for(&mut self, listener: u16) -> bool {
        if self.accepting.is_crowded_at(listener) && (!self.accepting.has_some(listener) || !self.hangs_up_on_silent())
        {
            return false;
        }
        !self.connections.is_crowded() || self.accepting.has_some(listener) && self.has_room()
    }

    /// There are as many handshakes as may be under way: closes the oldest of them whose client has said nothing. False: there is none, and
    /// listeners with TLS are left alone until a handshake is over.
    #[cold]
    fn hangs_up_on_silent(&mut self) -> bool {
        let connections = &mut self.connections;
        let has_closed = self.accepting.close_silent(|token| connections.close_if_silent(token));
        self.act_on_updates();
        if !has_closed && self.accepting.shut_tls() {
            self.watch_listeners();
        }
        has_closed
    }

    fn take_connection(&mut self, listener: u16) -> Option<Newcomer> {
        match self.accepting.take(listener) {
            Taken::Connection(newcomer) => Some(newcomer),
            Taken::Nothing => None,
            Taken::NoDescriptor => {
                self.out_of_descriptors();
                None
            }
        }
    }

    fn welcome(&mut self, newcomer: Newcomer) -> Token {
        let listener = newcomer.listener;
        let token = self.connections.welcome(newcomer, clock::now());
        self.accepting.welcomed(token, listener);
        token
    }
}
