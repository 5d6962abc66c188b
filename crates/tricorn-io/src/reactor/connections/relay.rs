//! Connections over TLS whose sockets applications have taken (`bridge.rs`), from the taking to the end of the call.
//!
//! ```text
//!   let_go ──▶ Bridged ── an event of the client, or of our end of the pair ──▶ carry
//!                 │ the client leaves: our end is closed, and the application finds that
//!                 │ the call is over, and the far end closed
//!                 ▼
//!              Flushing: what the application had sent ──▶ close_notify, closed
//! ```
//!
//! A plain socket that was taken is open until the last of its descriptors is closed. So is a bridge: libraries have threads that say
//! the last words when the call is over. Only a worker that leaves waits no longer than a moment for them.
//!
//! Carrying needs no Python: any thread that runs the reactor does it, the monitor while no app thread can.
use super::Connections;
use super::bridge::{Bridge, Carried};
use super::phase::{Change, Phase};
use crate::clock;
use crate::config;
use crate::exchange::id::RequestId;
use crate::exchange::outbox::Outbox;
use crate::exchange::output::Output;
use crate::reactor::outgoing::{Outgoing, Then};
use crate::stream::Stream;
use crate::sys::poll::{Event, Token};
use rustix::fd::RawFd;

impl Connections {
    /// The application takes the socket of an exchange whose client speaks TLS: from now on the bytes of `client` are carried to and from
    /// `near`, our end of a pair, of which the exchange has the other one, with the number `far`. `unsent`: what was written before.
    pub fn begin_bridge(&mut self, id: RequestId, client: Output, (near, far): (Stream, RawFd), unsent: Outbox) {
        let (token, unread) = (id.connection(), self.take_unread(id));
        let Some(conn) = self.conns.get_mut(token) else { return };
        let bridge = Bridge::new((near, far), unsent, &unread);
        conn.output = Some(client);
        conn.edges.may_be_readable(); // what lies with the session makes no event
        conn.phase.enter(Change::Bridged(Box::new(bridge)));
        self.extra.bridge_begins();
        if self.conns.watch_near(token).is_err() {
            self.close(token); // no memory in the kernel
            return;
        }
        self.register(token);
        self.carry(token);
    }

    /// Something happened to our end of the pair.
    pub(super) fn application_acted(&mut self, token: Token, event: Event) {
        if let Some(bridge) = self.bridge(token) {
            bridge.edges.came(event);
            if bridge.is_through() {
                self.finish_bridge(token);
            } else if self.work.is_turn_over() {
                self.later(token);
            } else {
                self.carry(token);
            }
        }
    }

    /// Carries bytes until there are none, or the turn is over.
    pub(super) fn carry(&mut self, token: Token) {
        let mut scratch = self.buffers.take_scratch(0);
        let carried = loop {
            let Some(conn) = self.conns.get_mut(token) else { break Carried::All };
            let (Phase::Bridged(bridge), Some(client)) =
                (conn.phase.get_mut(), conn.output.as_ref().map(Output::stream))
            else {
                break Carried::All;
            };
            match bridge.carry(client, &mut conn.edges, &mut scratch, &mut self.chores.spent) {
                Carried::Bytes(count) => {
                    self.work.moved(client, count);
                    if self.work.is_turn_over() || !self.work.takes_step() {
                        break Carried::Bytes(count);
                    }
                }
                carried => break carried,
            }
        };
        self.buffers.give_scratch(scratch);
        match carried {
            Carried::All if self.bridge(token).is_some_and(|bridge| bridge.is_through()) => self.finish_bridge(token),
            Carried::All => {}
            Carried::Bytes(_) => self.later(token),
            Carried::ClientGone => self.client_left_bridge(token),
        }
    }

    /// The application finds the end; its exchange is waited for.
    fn client_left_bridge(&mut self, token: Token) {
        self.conns.unwatch(token, None);
        let Some(conn) = self.conns.get_mut(token) else { return };
        conn.output = None;
        self.part_bridge(token);
        if self.bridge(token).is_some_and(|bridge| bridge.is_over()) {
            self.close(token);
        }
    }

    fn bridge(&mut self, token: Token) -> Option<&mut Bridge> {
        match self.conns.get_mut(token)?.phase.get_mut() {
            Phase::Bridged(bridge) => Some(bridge),
            _ => None,
        }
    }

    /// Our end of the pair is closed, if it is not yet.
    fn part_bridge(&mut self, token: Token) {
        if self.bridge(token).is_some_and(Bridge::part) {
            self.extra.bridge_ends();
        }
    }

    /// The call of a connection that is bridged is over, and the exchange's descriptor closed.
    pub(super) fn end_bridge(&mut self, token: Token, now: u64) {
        let Some(bridge) = self.bridge(token) else { return };
        bridge.call_ends();
        if bridge.near().is_none() {
            self.close(token); // the client had left
        } else if bridge.is_through() {
            self.finish_bridge(token);
        } else if self.is_draining() {
            self.set_deadline(token, now + config::LINGER);
        }
    }

    /// A worker that leaves has waited for a moment: the far end of a call that is over is still open.
    pub(super) fn bridge_expired(&mut self, token: Token) {
        if self.is_draining() && self.bridge(token).is_some_and(|bridge| bridge.is_over()) {
            self.finish_bridge(token);
        }
    }

    /// The call is over: what its application has sent still goes out.
    fn finish_bridge(&mut self, token: Token) {
        let mut scratch = self.buffers.take_scratch(0);
        let rest = self.bridge(token).map(|bridge| bridge.take_rest(&mut scratch));
        self.buffers.give_scratch(scratch);
        self.part_bridge(token);
        let (Some(rest), Some(conn)) = (rest, self.conns.get_mut(token)) else { return };
        let (Some(output), now) = (&mut conn.output, clock::now()) else {
            self.close(token);
            return;
        };
        if rest.is_empty() {
            self.finish_reply(token, false, now);
            return;
        }
        output.put_outbox(rest);
        let outgoing = Outgoing::new(output, Then::End);
        self.deadlines.enter(token, &mut conn.phase, Change::Left(outgoing), now);
        self.flush(token, false, now);
    }

    /// The worker ends while the call is under way: the client gets what the application has sent so far, as far as the socket takes it.
    pub(super) fn abandon_bridge(&mut self, token: Token) {
        self.carry(token);
        self.close_gracefully(token);
    }
}
