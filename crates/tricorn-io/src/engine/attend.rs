//! What calls wait for that are under way: events of their connections, timers, bytes of the body.
use super::Engine;
use crate::clock;
use crate::exchange::incoming::{Awaited, Incoming};
use crate::exchange::patience::Patience;
use crate::exchange::room::Room;
use crate::exchange::timers::{Due, Timer};
use crate::exchange::{Exchange, Sent};
use crate::sys::poll::ready;
use rustix::event::PollFlags;
use rustix::fd::BorrowedFd;
use tricorn_proto::message::Refusal;

impl Engine {
    /// From now on [`crate::Wake::Ready`] tells what happens to the exchange's connection, until it is given back. Bytes and
    /// room are edges: told when there are some again after the socket said that there were none.
    pub fn attend(&self, exchange: &Exchange) {
        self.shared.baton.take().reactor.attend(exchange);
    }

    /// The next thing that happens to an attended connection is told, since it may be that there is room for output. To be
    /// called before the socket is tried once more.
    pub(crate) fn await_room(&self, exchange: &Exchange) {
        self.shared.baton.take().reactor.await_room(exchange.lane.id());
    }

    /// How a wait for room has ended; `None`: it goes on, or begins (with a patience of its own), and something is told when the
    /// socket takes bytes or the client has had its time. For exchanges that are attended.
    pub fn wait_for_room(&self, exchange: &mut Exchange, patience: &mut Option<Patience>) -> Option<Sent> {
        let config = self.config();
        let left = patience.get_or_insert_with(|| exchange.patience(config));
        self.await_room(exchange);
        let room = exchange.room(config, left).or_away(&mut exchange.lane, &self.shared.responses.disks);
        self.tell_of_rest(exchange);
        match room {
            Room::Wanted(nanos) | Room::Away(nanos) => {
                self.set_timer(exchange, Timer::Room, clock::now().saturating_add(nanos));
                None
            }
            Room::Over(sent) => {
                *patience = None;
                exchange.stop_timer(Timer::Room);
                Some(sent)
            }
        }
    }

    /// Sets a timer of an exchange that is attended, or moves it (monotonic nanoseconds). [`crate::What::expired`] tells, to about
    /// 70 ms, that one may have come.
    pub fn set_timer(&self, exchange: &mut Exchange, timer: Timer, at: u64) {
        if let Some(at) = exchange.timers.set(timer, at) {
            self.arm(exchange, at);
        }
    }

    /// Takes the timers that have come; to be called for each [`crate::What::expired`].
    pub fn take_due(&self, exchange: &mut Exchange) -> Due {
        let (due, next) = exchange.timers.expire(clock::now());
        if let Some(at) = next {
            self.arm(exchange, at);
        }
        due
    }

    /// [`crate::Readiness::readable`] is told once others had their turn: the exchange has read for long enough, and there is more. For
    /// exchanges that are attended.
    pub(crate) fn read_later(&self, exchange: &Exchange) {
        let mut core = self.shared.baton.take();
        core.reactor.read_later(exchange.lane.id());
        let is_away = core.hub_rests;
        drop(core);
        if is_away {
            self.shared.waiting.ring_hub(); // it makes no event
        }
    }

    fn arm(&self, exchange: &Exchange, at: u64) {
        self.shared.baton.take().reactor.remind_at(exchange.lane.id(), at);
    }

    /// Reads what has come of the body. What has not is waited for from now on, at most until it is late. For exchanges that are attended.
    pub fn read_body(&self, exchange: &mut Exchange, out: &mut Vec<u8>) -> Incoming {
        let before = out.len();
        let incoming = exchange.receive(self.config(), out);
        let now = clock::now();
        if exchange.awaits_body() && !matches!(incoming, Incoming::Wait) {
            self.note_wait(exchange, false);
        }
        match incoming {
            Incoming::Bytes { .. } => exchange.body_came(out.len() - before, now),
            Incoming::Wait => match exchange.await_body(self.config(), now) {
                Awaited::Until { is_new: false, .. } => {}
                Awaited::Until { due, is_new: true } => {
                    self.note_wait(exchange, true);
                    self.set_timer(exchange, Timer::Body, due);
                }
                Awaited::Late(refusal) => return Incoming::Refused(refusal),
            },
            Incoming::Gone | Incoming::Refused(_) => {}
        }
        incoming
    }

    /// Refuses a body that came while its request was under way: counted, told to the log, and answered if that can be.
    pub fn refuse(&self, exchange: &mut Exchange, refusal: &Refusal) {
        self.count_refused(exchange, refusal);
        exchange.give_up(refusal.status(), &refusal.message());
    }

    /// A body that came while its request was under way was refused: counted, and told to the log.
    pub fn count_refused(&self, exchange: &Exchange, refusal: &Refusal) {
        self.shared.baton.take().reactor.count_refused(exchange.client.peer, refusal);
    }

    /// What the client sent behind the request that is with this exchange, for a protocol that follows it.
    pub fn take_unread(&self, exchange: &Exchange) -> Vec<u8> {
        self.shared.baton.take().reactor.take_unread(exchange.lane.id())
    }

    /// Blocks until there are bytes for the call in this slot, or its client has left, for so long at most. `socket` is a
    /// duplicate of the exchange's. The time is the client's: `timeout` does not count it. Without the GIL.
    pub fn wait_for_bytes(&self, slot: usize, socket: BorrowedFd<'_>, nanos: u64) {
        let slot = &self.shared.waiting.slots[slot];
        slot.progress.waits_for_client(slot.calls());
        ready(socket, PollFlags::IN, nanos);
        slot.progress.client_is_back(clock::now());
    }
}
