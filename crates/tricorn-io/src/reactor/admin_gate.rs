//! The listeners of admin connections: in the poller whatever becomes of the gate, with descriptors of their own in reserve.
use super::listener::Listener;
use super::load_desk::LoadDesk;
use super::scrapes::Scrapes;
use super::spare::SpareDescriptors;
use super::tokens::{FIRST, admin_token};
use crate::clock;
use crate::config;
use crate::metrics::load::Report;
use crate::one_queue::siblings::Pages;
use crate::scoreboard::Scoreboard;
use crate::sys::poll::Poller;
use crate::waiting::entrance::Entrance;
use rustix::io::Errno;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct AdminGate {
    entrance: Entrance,
    /// Their indices begin at `FIRST`.
    listeners: Vec<Listener>,
    /// Until then they are not in the poller: there is no descriptor left, not even a reserved one. 0: they are there.
    paused: u64,
    spare: SpareDescriptors,
    /// Where the table of connections was last searched for one that may be dropped.
    position: usize,
    /// Those of all workers, for the metrics; `None`: the worker is alone.
    pages: Option<Pages>,
    /// Apart from what each request touches.
    pub scrapes: Box<Scrapes>,
    /// What is told of the load, here and in responses.
    pub load: Box<LoadDesk>,
}

impl AdminGate {
    pub fn new(poller: Arc<Poller>, load: LoadDesk) -> AdminGate {
        let entrance = Entrance::of_threads(poller.clone());
        AdminGate {
            entrance,
            listeners: Vec::new(),
            paused: 0,
            spare: SpareDescriptors::default(),
            position: 0,
            pages: None,
            scrapes: Box::new(Scrapes::new(poller)),
            load: Box::new(load),
        }
    }

    /// There are other workers, with these pages.
    pub fn join(&mut self, pages: Pages, own: Scoreboard) {
        self.pages = Some(pages);
        // Who asks first is told of the time since then.
        self.report(own, clock::now());
    }

    /// The load of all workers; of this one if it is alone.
    pub fn report(&self, own: Scoreboard, now: u64) -> Report {
        self.load.report(self.pages.as_ref(), own, now)
    }

    /// What responses tell of it is made anew once a second.
    #[inline]
    pub fn refresh_load(&mut self, own: Scoreboard, now: u64) {
        if self.load.is_stale(now) {
            let report = self.report(own, now);
            self.load.tell(&report, now);
        }
    }

    pub fn pages(&self) -> Option<&Pages> {
        self.pages.as_ref()
    }

    /// Takes these listeners, and watches them from now on.
    pub fn open(&mut self, mut listeners: Vec<Listener>) -> Result<(), Errno> {
        for (index, listener) in listeners.iter_mut().enumerate() {
            listener.watch(&self.entrance, admin_token(index), true)?;
        }
        if !listeners.is_empty() {
            self.spare.keep();
        }
        self.listeners = listeners;
        Ok(())
    }

    /// Takes them out of the poller; their indices, for what they have still to bring.
    pub fn leave(&mut self) -> std::ops::Range<u16> {
        self.unwatch();
        FIRST..FIRST + self.listeners.len() as u16
    }

    pub fn close(&mut self) {
        self.listeners.clear();
        self.paused = 0;
        self.spare.let_go();
    }

    pub fn has_any(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// `None` for an index that is no admin listener's.
    pub fn listener(&self, index: u16) -> Option<&Listener> {
        self.listeners.get(usize::from(index.checked_sub(FIRST)?))
    }

    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// The position after the last one in a table of so many, going round.
    pub fn next_position(&mut self, positions: usize) -> usize {
        self.position = (self.position + 1) % positions.max(1);
        self.position
    }

    /// A level-triggered listener that cannot be served would spin: all leave the poller until a reserved descriptor is back,
    /// or a moment has passed. Until when.
    #[cold]
    pub fn pause(&mut self, now: u64) -> u64 {
        self.unwatch();
        self.paused = now + config::ACCEPT_PAUSE;
        self.paused
    }

    fn unwatch(&mut self) {
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            let _ = listener.watch(&self.entrance, admin_token(index), false);
        }
    }

    /// Ends the pause. The listener that the poller does not take is tried again: why, and when.
    pub fn end_pause(&mut self, now: u64) -> Result<(), (Errno, u64)> {
        self.spare.refill();
        self.paused = 0;
        let mut result = Ok(());
        for (index, listener) in self.listeners.iter_mut().enumerate() {
            if let Err(error) = listener.watch(&self.entrance, admin_token(index), true) {
                self.paused = now + config::ACCEPT_PAUSE;
                result = Err((error, self.paused));
            }
        }
        result
    }

    /// Until when they are not watched; 0: they are.
    #[inline]
    pub fn paused_until(&self) -> u64 {
        self.paused
    }

    /// Frees a descriptor of those in reserve; whether there was one.
    pub fn lend_descriptor(&mut self) -> bool {
        self.spare.free_one()
    }

    #[inline]
    pub fn lacks_descriptors(&self) -> bool {
        self.spare.is_short()
    }

    /// Keeps descriptors in reserve again, of those that became free. Whether that ends a pause.
    #[cold]
    pub fn keep_descriptors(&mut self) -> bool {
        self.spare.refill();
        self.paused != 0 && !self.spare.is_empty()
    }
}
