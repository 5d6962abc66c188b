//! The listeners and the channel in the poller, by what the rest of the worker can do.
use super::Reactor;
use super::warnings::Incident;
use crate::clock;
use crate::config;
use crate::waiting::entrance::Entrance;
use rustix::fd::BorrowedFd;

impl Reactor {
    /// Opens or closes the gate: puts the listeners into the poller or takes them out.
    ///
    /// Open means "this worker could serve a new connection at once". A worker whose threads are all inside the
    /// application leaves new connections to its siblings, and to the kernel's queue if all are busy. Whether that
    /// changes anything.
    pub fn set_gate(&mut self, open: bool) -> bool {
        let open = open && !self.dispatch.admission().is_full();
        if !self.accepting.set_open(open) {
            return false;
        }
        self.watch_listeners();
        true
    }

    pub(super) fn watch_listeners(&mut self) {
        if let Err((error, again)) = self.accepting.watch(clock::now) {
            self.connections.warn(Incident::Unwatched(error));
            self.connections.wake_by(again);
            self.connections.tell_shortage(clock::now());
        }
    }

    /// Whether the event loop is to be found in which the hub waits.
    pub fn is_unsettled(&self) -> bool {
        self.accepting.is_unsettled()
    }

    /// Changes where listeners are watched. The channel must not be watched meanwhile.
    pub fn move_listeners(&mut self, change: impl FnOnce(&Entrance)) {
        self.accepting.change_entrance(clock::now, change);
        self.watch_listeners();
    }

    /// Watches the channel, or leaves it to workers that can serve what comes.
    pub fn watch_channel(&mut self, receive: BorrowedFd<'_>, watch: bool) {
        // What fails is tried again by the next thread that is about to wait.
        if let Err(error) = self.accepting.watch_channel(receive, watch) {
            self.connections.warn(Incident::Unwatched(error));
            self.connections.tell_shortage(clock::now());
        }
    }

    /// Listens for the group's wake-up, or no longer.
    pub fn watch_group_wakeup(&mut self, wakeup: BorrowedFd<'_>, watch: bool) {
        self.accepting.watch_group_wakeup(wakeup, watch);
    }

    /// Waiting requests can be handed over, so that the monitor takes whatever comes.
    pub fn may_hand_over(&mut self) {
        self.accepting.open_channel();
    }

    /// Whether there was a message in the channel since this was asked last.
    pub fn take_offered(&mut self) -> bool {
        self.accepting.take_offered()
    }

    /// There are no descriptors or places left: nothing is taken for a moment.
    pub fn pauses(&self) -> bool {
        self.accepting.is_paused()
    }

    /// There was no room for newcomers.
    pub fn is_shut(&self) -> bool {
        (!self.accepting.is_open() || !self.may_start()) && !self.connections.is_draining()
    }

    /// A hub comes: whether a connection whose request waits is there for long.
    pub fn sort_newcomer(&mut self) {
        self.connections.updates().sort_newcomer(clock::now);
        self.act_on_updates();
    }

    /// Takes nothing for a moment.
    pub(super) fn pause(&mut self, now: u64) {
        self.set_gate(false);
        let end = self.accepting.pause(now);
        self.connections.wake_by(end);
    }

    /// Makes room for one more connection. If none can be made accepting pauses.
    #[cold]
    pub(super) fn has_room(&mut self) -> bool {
        // Until a pause is over the table is not searched again.
        if self.accepting.is_paused() {
            return false;
        }
        if self.connections.make_room() {
            return true;
        }
        let now = clock::now();
        self.pause(now);
        self.connections.tell_shortage(now);
        false
    }

    /// Makes room; where none can be made looks away for a moment, for a level-triggered listener that cannot be served
    /// would spin.
    #[cold]
    pub(super) fn out_of_descriptors(&mut self) {
        self.connections.warn(Incident::NoDescriptor);
        let now = clock::now();
        if self.connections.evict(config::RELIEF) == 0 {
            self.pause(now);
        }
        self.connections.tell_shortage(now);
    }

    /// Acts on what became of connections: handshakes that are over, descriptors that are free, a connection that stays.
    #[inline]
    pub(super) fn act_on_updates(&mut self) {
        if self.connections.updates().are_there() {
            self.act_on_these_updates();
        }
    }

    fn act_on_these_updates(&mut self) {
        let updates = self.connections.updates();
        let (over, is_freed, stays) = (updates.take_handshakes_over(), updates.take_freed(), updates.take_stays());
        for token in over {
            if self.accepting.handshake_is_over(token) {
                self.watch_listeners();
            }
        }
        if is_freed {
            self.admin.descriptors_are_free();
        }
        if stays && self.accepting.requeue_if_ahead(self.connections.len() as u64) {
            self.watch_listeners();
        }
    }
}
