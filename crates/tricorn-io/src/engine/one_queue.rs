//! What the engine does for the one queue: requests go to siblings, come from them, or are turned away.
use super::baton::Core;
use super::shared::Shared;
use crate::clock::{self, MILLI};
use crate::config::SHARE_TICK;
use crate::exchange::Exchange;
use crate::exchange::id::RequestId;
use crate::one_queue::company::Company;
use crate::one_queue::rules::{RECENT, is_our_turn, may_send, nudge, ring};
use crate::one_queue::siblings::{LoadSnapshot, Siblings};
use crate::reactor::{Front, Handed};
use crate::scoreboard::group::GroupWord;
use crate::sys::channel::Channel;
use rustix::fd::AsFd;
use rustix::io::IoSlice;

/// How often a worker looks which part of the concurrency limit is its own.
const SHARE_AGE: u64 = 20 * MILLI;

impl Shared {
    pub fn channel(&self) -> Option<(&Siblings, &Channel)> {
        let siblings = self.siblings.get()?;
        Some((siblings, siblings.channel.as_ref()?))
    }

    /// Who else serves what comes by the listeners.
    pub fn company(&self) -> Company {
        Company::of(self.config.siblings, self.channel().is_some())
    }

    /// Calls take long, and no thread waits for events now: a parked app thread does it, or the monitor, at once.
    pub fn leave_watch(&self, core: &mut Core) {
        if !core.followers.is_empty() {
            self.wake_followers(core, 1);
        } else if self.has_company() && !self.waiting.watch.is_covering() {
            self.waiting.watch.ask_to_cover();
            self.waiting.alarm.ring();
        }
    }

    #[inline]
    pub fn hands_over(&self) -> bool {
        self.channel().is_some()
    }

    /// There are others to hand requests over to, or there were.
    fn has_company(&self) -> bool {
        self.channel().is_some_and(|(siblings, _)| siblings.pages().len() > 1)
    }

    /// Does for the requests that wait what can be done without an app thread: passes them on, or turns them away.
    pub fn look_after_queue(&self, core: &mut Core) {
        let now = clock::now();
        if let Some((siblings, channel)) = self.channel() {
            self.pass_on(core, siblings, channel, now);
        }
        core.reactor.trim_queue(now);
        self.note_queued(core);
    }

    fn pass_on(&self, core: &mut Core, siblings: &Siblings, channel: &Channel, now: u64) {
        let load = self.send_front(core, siblings, channel, now);
        if core.reactor.waits_in_vain() {
            siblings.group.set(GroupWord::Waiting, now);
            core.reactor.watch_group_wakeup(channel.wakeup.as_fd(), true);
        }
        if load.idle > 0 {
            nudge(siblings, channel, now);
        } else {
            self.look_after_front(core, siblings, channel, now);
        }
    }

    /// Sends what the channel should hold of those that wait here.
    fn send_front(&self, core: &mut Core, siblings: &Siblings, channel: &Channel, now: u64) -> LoadSnapshot {
        let mut load = self.load_of(siblings);
        while core.reactor.waits_in_vain() {
            if !may_send(siblings, channel, &load, core.reactor.oldest(), now) {
                break;
            }
            // Once round the workers is enough for any request.
            let sent = || siblings.count(GroupWord::Sent);
            if core.reactor.hand_over(channel, load.serving + 1, sent) != Handed::Over {
                break;
            }
            load = self.load_of(siblings);
        }
        load
    }

    /// No worker comes for what lies in the channel: this one sees whether it waits for too long.
    fn look_after_front(&self, core: &mut Core, siblings: &Siblings, channel: &Channel, now: u64) {
        if !siblings.is_something_sent() || self.leaves_channel(siblings) || !is_our_turn(siblings, now) {
            return;
        }
        loop {
            let front = core.reactor.front(channel, now);
            if front == Front::Waits {
                return;
            }
            while let Some(id) = self.take_one(core, siblings, channel) {
                core.reactor.enqueue(id);
                if front == Front::Over {
                    break;
                }
            }
            if front == Front::Nudge {
                // All of them, and in again: taken alone, the first would come back behind the others.
                self.send_front(core, siblings, channel, now);
                return;
            }
        }
    }

    /// The front of the queue, for an app thread that is free.
    #[inline]
    pub fn take_front(&self, core: &mut Core) -> Option<Box<Exchange>> {
        let (siblings, channel) = self.channel()?;
        let offered = core.reactor.take_offered();
        if !offered && !siblings.is_something_sent() {
            return None;
        }
        self.take_from(core, siblings, channel)
    }

    #[cold]
    fn take_from(&self, core: &mut Core, siblings: &Siblings, channel: &Channel) -> Option<Box<Exchange>> {
        if !core.reactor.may_start() || core.reactor.pauses() || self.leaves_channel(siblings) {
            return None;
        }
        if core.reactor.comes_before(channel) {
            return None;
        }
        loop {
            let id = self.take_one(core, siblings, channel)?;
            if let Some(exchange) = core.reactor.begin_waiting(id) {
                return Some(exchange);
            }
        }
    }

    fn take_one(&self, core: &mut Core, siblings: &Siblings, channel: &Channel) -> Option<RequestId> {
        let sent = siblings.group.get(GroupWord::Sent);
        let taken = || siblings.count(GroupWord::Taken);
        let id = core.reactor.take_over(channel, taken);
        match id {
            Some(_) => ring(siblings, channel, clock::now()),
            None => siblings.is_empty_after(channel, sent),
        }
        id
    }

    /// The siblings. A newer generation may have its scoreboards elsewhere: that it serves is what the arbiter says.
    fn load_of(&self, siblings: &Siblings) -> LoadSnapshot {
        let mut load = siblings.load();
        if load.serving == 0 && self.is_draining() && self.board.orders_replaced() {
            load.serving = 1;
        }
        load
    }

    /// What comes by the channel is for those that stay, if there are any.
    fn leaves_channel(&self, siblings: &Siblings) -> bool {
        self.is_draining() && self.load_of(siblings).serving > 0
    }

    /// A worker that drains takes nothing more. For each message one of those that sleep is woken: if that was this worker, an
    /// empty one wakes another.
    pub fn quit_channel(&self, core: &mut Core) {
        if let Some((siblings, channel)) = self.channel()
            && self.leaves_channel(siblings)
        {
            core.reactor.watch_channel(channel.receive.as_fd(), false);
            if channel.holds_any() {
                let _ = channel.post(&[IoSlice::new(b"!")], &[]);
            }
        }
    }

    /// The monitor was shown a message in place of an app thread that does not come: it takes it and passes it on, for the
    /// siblings that sleep were not woken for it.
    pub fn take_in_place(&self, core: &mut Core) {
        if !core.reactor.take_offered() {
            return;
        }
        if let Some((siblings, channel)) = self.channel()
            && !self.leaves_channel(siblings)
            && let Some(id) = self.take_one(core, siblings, channel)
        {
            core.reactor.enqueue(id);
        }
    }

    /// An app thread is about to look for events: it can serve who comes by the listeners and by the channel, unless
    /// enough calls are under way.
    pub fn open_gate(&self, core: &mut Core) {
        let may_start = core.reactor.may_start();
        let open = may_start || self.company().is_alone() || self.accepts_for_all(core);
        if core.reactor.set_gate(open) && !open && (core.polling.is_some() || self.waiting.hub().is_some()) {
            core.reactor.take_missed();
        }
        if let Some((siblings, channel)) = self.channel() {
            core.reactor.watch_channel(channel.receive.as_fd(), may_start && !self.leaves_channel(siblings));
        }
    }

    /// Looks at the events, if another request of an HTTP/2 connection is to begin and the last look was a turn ago. Else a client with many
    /// streams would be served until the caller has to wait.
    #[inline]
    pub fn look_before_stream(&self, core: &mut Core) {
        if core.reactor.awaits_look() && core.polling.is_none() {
            self.open_gate(core);
            if self.see_events(core).is_err() {
                self.end_now();
            }
        }
    }

    /// An app thread is about to wait: workers that have requests waiting are told. Where some wait here, because enough calls
    /// are under way, they are passed on; returns when to look at them again.
    pub fn before_wait(&self, core: &mut Core, now: u64) -> Option<u64> {
        if core.reactor.queued() > 0 {
            self.look_after_queue(core);
            let due = core.reactor.queue_due().map_or(SHARE_TICK, |due| due.saturating_sub(now).min(SHARE_TICK));
            return Some(due);
        }
        if let Some((siblings, channel)) = self.channel() {
            core.reactor.watch_group_wakeup(channel.wakeup.as_fd(), false);
            ring(siblings, channel, now);
        }
        None
    }

    /// Looks after this worker's share, if that is old or the limit is another one.
    pub fn keep_share(&self, core: &mut Core) {
        let now = core.reactor.polled();
        let limit = self.siblings.get().and_then(|siblings| siblings.group.limit());
        if core.share_due <= now || core.share_of != limit {
            (core.share_due, core.share_of) = (now + SHARE_AGE, limit);
            self.update_share(core);
        }
    }

    /// This worker's part of the calls that all workers together may have under way.
    fn update_share(&self, core: &mut Core) {
        let Some(siblings) = self.siblings.get() else { return };
        let Some(limit) = siblings.group.limit() else {
            core.reactor.set_share(usize::MAX);
            return;
        };
        let load = siblings.load();
        let workers = load.serving + 1;
        let share = limit / workers + u64::from(load.rank < limit % workers);
        // Where nothing can be handed over, a worker that may start nothing would keep its clients waiting for ever.
        let least = u64::from(siblings.channel.is_none());
        core.reactor.set_share(share.max(least) as usize);
    }

    /// No app thread is there: what comes by the channel is for others.
    pub fn leave_channel(&self, core: &mut Core) {
        if let Some((_, channel)) = self.channel() {
            core.reactor.watch_channel(channel.receive.as_fd(), false);
        }
    }

    /// The last of all workers is done: what is left in the channel is its own. Whether there was any.
    pub fn takes_leftovers(&self, core: &mut Core) -> bool {
        let Some((siblings, channel)) = self.channel() else { return false };
        if !siblings.is_something_sent() || self.load_of(siblings).serving > 0 {
            return false;
        }
        let mut any = false;
        while let Some(id) = self.take_one(core, siblings, channel) {
            core.reactor.enqueue(id);
            any = true;
        }
        if any {
            self.wake_all(core);
        }
        any
    }

    /// No app thread is there: the listeners are for others, if those can do better.
    pub fn tend_gate(&self, core: &mut Core) {
        if !self.company().is_alone() {
            let open = self.accepts_for_all(core);
            if core.reactor.set_gate(open) && !open && self.waiting.hub().is_some() {
                core.reactor.take_missed();
            }
        }
    }

    /// While no app thread is there, the monitor takes connections that no other worker could serve at once either: their
    /// requests can be passed on, or turned away in time. Siblings that call themselves idle, and do not come for what has
    /// waited here for long, are stopped or starved of their processor: they will not come for a connection either.
    fn accepts_for_all(&self, core: &Core) -> bool {
        let oldest = core.reactor.oldest();
        let waits_long = oldest > 0 && clock::now().saturating_sub(oldest) > RECENT;
        self.channel().is_some_and(|(siblings, _)| waits_long || siblings.load().idle == 0)
    }
}
