//! The listeners, and whether they are watched.
//!
//! ```text
//!              set(true)                     no descriptor, no place
//!   shut ◀──────────────▶ open      either ───────────────────────▶ paused ──a moment later──▶ shut
//!                                   either ──drain──▶ last call ──a moment later──▶ gone
//! ```
//!
//! Open means "this worker could serve a new connection at once".
use super::listener::{Listener, watch_all};
use crate::config::{self, Config};
use crate::one_queue::siblings::Pages;
use crate::scoreboard::Word;
use crate::waiting::entrance::Entrance;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Gate {
    entrance: Arc<Entrance>,
    /// Of all workers that have the same listeners.
    pages: Option<Pages>,
    listeners: Vec<Listener>,
    open: bool,
    /// Until when nothing is taken; 0: it does not pause.
    paused: u64,
    /// When listeners are tried again that could not be watched; 0: there are none.
    watch_again: u64,
    /// When the listeners are closed; 0: they stay.
    last_call: u64,
    /// A listener with more connections in its queue, and how many may still be taken in this round.
    round: Option<(u16, u32)>,
}

/// What has come to its end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub last_call: bool,
    pub pause: bool,
    /// Listeners that could not be watched are to be tried again.
    pub retry: bool,
}

impl Gate {
    pub fn new(listeners: Vec<Listener>, entrance: Arc<Entrance>) -> Gate {
        Gate { entrance, pages: None, listeners, open: false, paused: 0, watch_again: 0, last_call: 0, round: None }
    }

    /// Clients of some of them speak TLS.
    pub fn speaks_tls(mut self, config: &Config) -> Gate {
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            listener.is_tls = config.is_tls_at(index as u16);
        }
        self
    }

    /// The workers with these pages have the same listeners.
    pub fn join(&mut self, pages: Pages) {
        self.pages = Some(pages);
    }

    pub fn entrance(&self) -> &Entrance {
        &self.entrance
    }

    /// A listener that is watched.
    pub fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.listeners.iter().find_map(Listener::watched)
    }

    pub fn listener(&self, index: u16) -> Option<&Listener> {
        self.listeners.get(usize::from(index))
    }

    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.open
    }

    #[inline]
    pub fn is_paused(&self) -> bool {
        self.paused != 0
    }

    /// The listeners are closed.
    pub fn is_gone(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Opens or shuts it; whether that changes anything. To be followed by `watch`.
    #[inline]
    pub fn set(&mut self, open: bool) -> bool {
        if open == self.open {
            return false;
        }
        self.open = open;
        self.round = None;
        true
    }

    /// Watches every listener, or none. Those that the kernel does not take (ENOMEM, ENOSPC: epoll_ctl(2)) are to be tried
    /// again, or a worker without siblings would never hear of them: why, and when.
    pub fn watch(&mut self, now: impl FnOnce() -> u64) -> Result<(), (Errno, u64)> {
        self.watch_again = 0;
        watch_all(&mut self.listeners, &self.entrance, self.open).map_err(|error| {
            self.watch_again = now() + config::ACCEPT_PAUSE;
            (error, self.watch_again)
        })
    }

    /// Whether this worker has more connections than its siblings on average.
    ///
    /// The kernel wakes the first in the wait queue that waits, and a hub waits again soon, however many connections it has.
    pub fn is_ahead(&self, connections: u64) -> bool {
        let Some(pages) = self.pages.as_ref().filter(|_| self.open && self.entrance.is_direct()) else { return false };
        let (sum, workers) = pages.serving(Word::Connections);
        connections * workers > sum
    }

    /// Shuts the doors with TLS, or lets the gate decide about them again; whether that changes anything. To be followed by `watch`.
    pub fn shut_tls(&mut self, shut: bool) -> bool {
        let mut changes = false;
        for listener in self.listeners.iter_mut().filter(|listener| listener.is_tls) {
            changes |= std::mem::replace(&mut listener.is_shut, shut) != shut;
        }
        changes
    }

    /// Takes the listeners out. To be followed by `watch`, which puts this worker at the end of their wait queue.
    pub fn step_back(&mut self) {
        let _ = watch_all(&mut self.listeners, &self.entrance, false); // what cannot be taken out was not there
    }

    /// Takes nothing for a moment; until when. To be followed by `watch` if it was open.
    pub fn pause(&mut self, now: u64) -> u64 {
        self.paused = now + config::ACCEPT_PAUSE;
        self.paused
    }

    /// Closes the listeners a moment later.
    pub fn call_last(&mut self, now: u64) {
        self.last_call = now + config::LAST_CALL;
    }

    /// There are more connections than could be taken at once.
    pub fn goes_on(&mut self, now: u64) {
        self.last_call = now.max(1);
    }

    pub fn close(&mut self) {
        self.listeners.clear();
    }

    /// When time brings something; 0 stands for never.
    pub fn times(&self) -> [u64; 3] {
        [self.paused, self.watch_again, self.last_call]
    }

    /// What time has brought.
    pub fn ended(&mut self, now: u64) -> Ended {
        let is_over = |time: u64| time != 0 && now >= time;
        let ended =
            Ended { last_call: is_over(self.last_call), pause: is_over(self.paused), retry: is_over(self.watch_again) };
        if ended.last_call {
            self.last_call = 0;
        }
        if ended.pause {
            self.paused = 0;
        }
        ended
    }

    /// Connections wait at this listener; so many may be taken before others are looked at.
    pub fn begin_round(&mut self, listener: u16, most: u32) {
        self.round = Some((listener, most));
    }

    #[inline]
    pub fn has_round(&self) -> bool {
        self.round.is_some()
    }

    /// Nothing more is to be taken in this round.
    pub fn end_round(&mut self) {
        self.round = None;
    }

    /// The listener from which one more connection may be taken in this round.
    #[inline]
    pub fn next_in_round(&mut self) -> Option<u16> {
        let (listener, left) = self.round?;
        self.round = (self.open && left > 0).then(|| (listener, left - 1));
        self.round.map(|(listener, _)| listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::poll::Poller;

    fn gate() -> Gate {
        let poller = Arc::new(Poller::new().expect("a poller"));
        Gate::new(Vec::new(), Arc::new(Entrance::of_threads(poller)))
    }

    #[test]
    fn a_round_ends_with_its_number_or_with_the_gate() {
        let mut gate = gate();
        assert!(gate.set(true) && !gate.set(true));
        gate.begin_round(3, 2);
        assert_eq!([(); 3].map(|()| gate.next_in_round()), [Some(3), Some(3), None]);
        gate.begin_round(3, 2);
        assert!(gate.set(false) && !gate.has_round());
        gate.begin_round(3, 2);
        assert_eq!(gate.next_in_round(), None, "it is shut");
    }

    #[test]
    fn a_pause_ends_once() {
        let mut gate = gate();
        let end = gate.pause(1_000);
        assert_eq!((end, gate.is_paused(), gate.times()), (1_000 + config::ACCEPT_PAUSE, true, [end, 0, 0]));
        assert_eq!(gate.ended(end - 1), Ended::default());
        assert_eq!(gate.ended(end), Ended { pause: true, ..Ended::default() });
        assert_eq!((gate.ended(end), gate.is_paused()), (Ended::default(), false));
    }

    #[test]
    fn the_last_call_ends_once() {
        let mut gate = gate();
        gate.call_last(1_000);
        let end = 1_000 + config::LAST_CALL;
        assert_eq!(gate.ended(end), Ended { last_call: true, ..Ended::default() });
        assert_eq!((gate.ended(end), gate.times()), (Ended::default(), [0; 3]));
    }
}
