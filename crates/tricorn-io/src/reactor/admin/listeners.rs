//! The listeners of admin connections: in the poller whatever becomes of the gate, with descriptors of their own in reserve.
use super::super::listener::{Accepted, Listener};
use super::super::tokens::of_admin_listener;
use super::spare::SpareDescriptors;
use crate::config;
use crate::sys::poll::Poller;
use crate::waiting::entrance::Entrance;
use rustix::fd::{AsRawFd, RawFd};
use rustix::io::Errno;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct AdminListeners {
    entrance: Entrance,
    listeners: Vec<Listener>,
    /// Until then they are not in the poller: there is no descriptor left, not even a reserved one. 0: they are there.
    paused: u64,
    spare: SpareDescriptors,
}

impl AdminListeners {
    pub fn new(poller: Arc<Poller>) -> AdminListeners {
        let entrance = Entrance::of_threads(poller);
        AdminListeners { entrance, listeners: Vec::new(), paused: 0, spare: SpareDescriptors::default() }
    }

    /// Takes these listeners, and watches them from now on.
    pub fn open(&mut self, mut listeners: Vec<Listener>) -> Result<(), Errno> {
        watch(&mut listeners, &self.entrance, true)?;
        if !listeners.is_empty() {
            self.spare.keep();
        }
        self.listeners = listeners;
        Ok(())
    }

    /// Takes them out of the poller; their indices, for what they have still to bring.
    pub fn leave(&mut self) -> std::ops::Range<u16> {
        self.unwatch();
        0..self.listeners.len() as u16
    }

    pub fn close(&mut self) {
        self.listeners.clear();
        self.paused = 0;
        self.spare.let_go();
    }

    pub fn has_any(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Takes a connection that waits at one of them.
    pub fn accept(&self, index: u16) -> Accepted {
        self.listeners.get(usize::from(index)).map_or(Accepted::Nothing, Listener::accept)
    }

    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.listeners.iter().map(|listener| listener.socket.as_raw_fd())
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
        let _ = watch(&mut self.listeners, &self.entrance, false); // what cannot be taken out was not there
    }

    /// Ends the pause. Listeners that the poller does not take are tried again: why, and when.
    pub fn end_pause(&mut self, now: u64) -> Result<(), (Errno, u64)> {
        self.spare.refill();
        self.paused = 0;
        watch(&mut self.listeners, &self.entrance, true).map_err(|error| {
            self.paused = now + config::ACCEPT_PAUSE;
            (error, self.paused)
        })
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

/// Puts all that can be put into the poller, or takes them out.
fn watch(listeners: &mut [Listener], entrance: &Entrance, watch: bool) -> Result<(), Errno> {
    let mut result = Ok(());
    for (listener, index) in listeners.iter_mut().zip(0..) {
        result = result.and(listener.watch(entrance, of_admin_listener(index), watch));
    }
    result
}
