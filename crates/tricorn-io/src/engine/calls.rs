//! Where threads come and go, where a call begins and ends, as everybody else sees it; and what the arbiter's orders do.
use super::Engine;
use super::baton::Core;
use super::lifecycle::Stage;
use super::shared::Shared;
use crate::clock;
use crate::config::{Failpoint, TICK};
use crate::exchange::Exchange;
use crate::reactor::WAKE;
use crate::scoreboard::Phase;
use crate::scoreboard::routes::{Cost, Split};
use crate::sys::fork::is_child;
use crate::waiting::sampling::Ended;
use std::sync::atomic::Ordering;
use tricorn_proto::access_log::Record;

impl Engine {
    /// The calling thread comes to serve; `None` if all slots are taken. The main thread also watches for signals.
    pub fn join(&self, main_thread: bool) -> Option<usize> {
        let mut core = self.shared.baton.take();
        let slot = self.shared.waiting.slots.iter().position(|slot| !slot.is_taken())?;
        if main_thread {
            self.shared.watch_signals(&mut core);
            self.shared.waiting.set_main_slot(Some(slot));
        }
        self.shared.waiting.slots[slot].occupy();
        core.joined += 1;
        let joined = core.joined;
        core.reactor.set_threads(joined);
        if self.shared.config.fault == Some(Failpoint::LongHold) {
            let end = clock::now() + 20 * clock::MILLI;
            while clock::now() < end {
                std::hint::spin_loop();
            }
        }
        Some(slot)
    }

    /// Gives back an exchange that is done, without asking for another. Whether there are chores now
    /// (`Engine::take_chores`).
    pub fn give_back(&self, done: Box<Exchange>) -> bool {
        if is_child() {
            return false;
        }
        let shared = &*self.shared;
        let mut core = shared.baton.take();
        shared.take_back(&mut core, done, clock::now());
        // No event tells a hub of a request that was read behind this one, or that this was the last connection.
        if core.reactor.has_work() || core.reactor.is_drained() {
            shared.waiting.ring_hub();
        }
        core.reactor.chores_weight() > 0
    }

    /// Tells the logs of a request. The line may come long before the call is over: either a monitor that is about to wait sees
    /// it, or this sees that it waits.
    #[inline]
    pub fn tell(&self, record: &Record<'_>) {
        let shared = &*self.shared;
        if shared.logs.tell(record) {
            shared.waiting.line_waits();
        }
    }

    /// The call is over, on the thread that made it: what its time was used for, if the monitor has looked at it.
    #[inline]
    pub fn split_call(&self, exchange: &mut Exchange) {
        let timing = &exchange.timing;
        let length = timing.answered.saturating_sub(timing.started);
        if length < TICK {
            return;
        }
        exchange.request.times.call = match self.shared.waiting.hub() {
            Some(hub) => hub.slices.take(exchange.slot, timing.started).map(|split| split.of_call(length)),
            None => {
                let slot = &self.shared.waiting.slots[exchange.slot];
                slot.mark.split(slot.calls(), slot.thread(), timing.started)
            }
        };
    }

    /// The place of a route among those that are counted, for [`crate::exchange::Timing::route`]; 0: there is none left.
    pub fn place_of_route(&self, name: &str) -> u16 {
        self.shared.siblings.get().and_then(|siblings| siblings.routes).map_or(0, |(routes, _)| routes.place(name))
    }

    /// Whether routes are counted.
    pub fn counts_routes(&self) -> bool {
        self.shared.siblings.get().is_some_and(|siblings| siblings.routes.is_some())
    }

    /// The call waits for more of the body, or (false) does so no longer.
    pub fn note_wait(&self, exchange: &Exchange, waits: bool) {
        let phase = match waits {
            true => Phase::Body,
            false if exchange.request.reply.head_sent() => Phase::Sending,
            false => Phase::Call,
        };
        self.note_phase(exchange, phase);
    }

    /// The app thread leaves, giving back the exchange it was at.
    pub fn leave(&self, slot: usize, done: Option<Box<Exchange>>) {
        if is_child() {
            return;
        }
        let shared = &*self.shared;
        let mut core = shared.baton.take();
        shared.reclaim(&mut core);
        if let Some(exchange) = done {
            shared.take_back(&mut core, exchange, clock::now());
        }
        core.reactor.send_held();
        core.joined = core.joined.saturating_sub(1);
        let joined = core.joined;
        core.reactor.set_threads(joined);
        shared.waiting.slots[slot].vacate();
        if shared.waiting.main_slot() == Some(slot) {
            shared.waiting.set_main_slot(None);
        }
        // A parked thread may have to take over.
        shared.wake_followers(&mut core, 1);
    }
}

impl Shared {
    /// The exchange goes to the application, with its id, and it is noted how long it has waited.
    #[inline]
    pub fn begin_call(&self, core: &mut Core, slot: usize, exchange: &mut Exchange) {
        exchange.slot = slot;
        exchange.lane.begin_lease(slot, &exchange.request.counted, core.leases.take());
        self.waiting.slots[slot].lateness.reset();
        if let Some(ids) = &mut core.ids {
            exchange.request.identify(ids);
        }
        if self.config.request_timeout > 0 {
            exchange.expect_late_answer();
            self.waiting.slots[slot].set_output(exchange.lane.watched());
        }
        exchange.timing.queue = exchange.timing.started.saturating_sub(exchange.request.times.waits_since);
        self.waiting.slots[slot].enter();
        core.calls.begun = core.calls.begun.wrapping_add(1);
        core.calls.running += 1;
        self.note_running(core);
    }

    /// Lets others know what the thread is at; not under the baton, for only this thread's entry is written.
    #[inline]
    pub fn publish_call(&self, exchange: &Exchange) {
        let head = &exchange.request.head;
        let bytes = exchange.request.head_bytes();
        let text = [head.method.of(bytes), b" ".as_slice(), head.target.of(bytes)];
        self.board.call_begins(exchange.slot, exchange.timing.started, text);
    }

    /// The calling thread handles signals: they end the wait for events.
    pub fn watch_signals(&self, core: &mut Core) {
        // Failing that, signals are handled whenever something else wakes the thread.
        let _ = self.poller.add_wake(self.waiting.signals.reader(), WAKE);
        core.watches_signals = true;
    }

    /// The application is done with an exchange: its call is over, and its connection the reactor's again.
    #[inline]
    pub fn take_back(&self, core: &mut Core, mut exchange: Box<Exchange>, now: u64) {
        self.end_call(core, exchange.slot, self.count_route(&exchange));
        core.leases.give_back(exchange.lane.end_lease());
        core.reactor.finish(exchange, now);
    }

    /// The same on the thread that made the call, whose length is remembered.
    #[inline]
    pub fn end_and_observe(&self, core: &mut Core, exchange: Box<Exchange>) {
        let now = clock::now();
        core.observe_call(exchange.timing.answered.saturating_sub(exchange.timing.started), now);
        self.take_back(core, exchange, now);
    }

    /// Takes back what exchanges had that were dropped.
    #[inline]
    pub fn reclaim(&self, core: &mut Core) {
        if self.lost.any() {
            self.reclaim_all(core);
        }
    }

    #[cold]
    fn reclaim_all(&self, core: &mut Core) {
        for lent in self.lost.take() {
            self.end_call(core, lent.slot, None);
            core.reactor.lose(lent);
        }
        self.note_queued(core);
        self.waiting.ring_hub();
    }

    /// What the call adds to its route; that route, if it has one of its own. Under the baton.
    #[inline]
    fn count_route(&self, exchange: &Exchange) -> Option<Ended> {
        let (routes, own) = self.siblings.get()?.routes?;
        let timing = &exchange.timing;
        let length = timing.answered.saturating_sub(timing.started);
        let reply = &exchange.request.reply;
        let failed = reply.has_status() && reply.status_code() >= 500;
        own.count(timing.route, Cost { failed, time: length, split: exchange.request.times.call.map(Split::from) });
        (timing.route != 0).then_some(Ended { routes, route: timing.route, length })
    }

    /// Calls that block do not wait for the GIL: they are no reason to let others have it.
    #[inline]
    fn note_running(&self, core: &Core) {
        let running = if core.is_blocking() { 0 } else { core.calls.running };
        self.running.store(running, Ordering::Relaxed);
    }

    #[inline]
    fn end_call(&self, core: &mut Core, slot: usize, route: Option<Ended>) {
        self.waiting.sampling.ends(self.board, slot, route);
        self.board.call_ends(slot);
        core.calls.running = core.calls.running.saturating_sub(1);
        self.note_running(core);
        self.waiting.call_ended(&mut core.free_slots, slot, core.reactor.is_shut());
    }

    /// Does what the arbiter ordered by way of the scoreboard.
    pub fn obey(&self, core: &mut Core) {
        if self.board.orders_drain() {
            self.drain(core);
        }
    }

    /// Accepts nothing more.
    pub fn drain(&self, core: &mut Core) {
        if !self.life.reach(Stage::Draining) {
            return;
        }
        core.reactor.drain(clock::now());
        self.quit_channel(core);
        self.wake_all(core);
        if self.config.closes_idle {
            self.waiting.wake_monitor(); // which tells the arbiter
        }
    }
}
