//! The slots whose corks hold bytes, or did so at the last tick: the monitor sends them, at its next tick or when there is room.
use super::slots::Slots;
use crate::exchange::cork::Left;
use crate::sys::poll::{Events, Poller};
use rustix::fd::BorrowedFd;
use rustix::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Streams {
    /// To be looked at at the next tick.
    listed: Mutex<Vec<usize>>,
    /// How many they are. With `Engine::tell_of_cork` and the monitor's modes a store-load pair on both sides: all SeqCst.
    count: AtomicUsize,
    /// Those that the monitor is at.
    at_work: Mutex<Vec<usize>>,
    /// Readable when a socket that was full has room.
    room: Poller,
}

impl Streams {
    pub fn new() -> io::Result<Streams> {
        Ok(Streams {
            listed: Mutex::default(),
            count: AtomicUsize::new(0),
            at_work: Mutex::default(),
            room: Poller::new()?,
        })
    }

    fn listed(&self) -> MutexGuard<'_, Vec<usize>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at_work(&self) -> MutexGuard<'_, Vec<usize>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a fork: no cork is locked by the monitor, and no list.
    pub fn hold_still(&self) -> [MutexGuard<'_, Vec<usize>>; 2] {
        [self.at_work(), self.listed()]
    }

    /// Readable when there is something to do that no tick is waited for.
    pub fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    /// Bytes were put into the cork of this slot.
    pub fn add(&self, slot: usize) {
        let mut listed = self.listed();
        listed.push(slot);
        self.count.store(listed.len(), Ordering::SeqCst);
    }

    /// Whether any is to be looked at at the next tick.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Sends what the kernel takes. `has_room`: [`Streams::room`] was readable.
    pub fn send_some(&self, slots: &Slots, has_room: bool) {
        if !has_room && !self.any() {
            return;
        }
        let mut at_work = self.at_work();
        at_work.append(&mut self.listed());
        if has_room {
            let mut events = Events::default();
            // Failing that, it is readable at the next look, too.
            let _ = self.room.add_events(&mut events);
            while let Some(event) = events.pop() {
                at_work.push(event.token as usize);
            }
        }
        at_work.retain(|slot| {
            let Some(cork) = slots.get(*slot).map(|slot| &slot.cork) else { return false };
            cork.send_some(|socket| self.room.await_room(socket, *slot as u64)) == Left::Again
        });
        let mut listed = self.listed();
        listed.append(&mut at_work);
        self.count.store(listed.len(), Ordering::SeqCst);
    }
}
