//! The outputs that streams have left bytes in (`exchange/turn.rs`): the monitor sends them, at its next tick or when there is room.
use super::attention::Attention;
use crate::exchange::output::{Disks, Watched};
use crate::sys::poll::{Events, Poller, Token};
use rustix::fd::BorrowedFd;
use rustix::io;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Streams {
    /// To be looked at at the next tick.
    listed: Mutex<Vec<Watched>>,
    attention: Attention,
    at_work: Mutex<AtWork>,
    /// Readable when a socket that was full has room.
    room: Poller,
}

/// The monitor's own.
#[derive(Default)]
struct AtWork {
    /// Those that it is at.
    outputs: Vec<Watched>,
    /// Those whose sockets were full, by their keys. The kernel forgets a socket that is closed, and does not tell: such ones are
    /// looked for once they may be as many as the others.
    full: HashMap<Token, Watched>,
    /// At so many they are looked for.
    most_full: usize,
}

/// For a fork: no output is locked by the monitor, and no list.
pub struct StreamLocks<'s>(
    #[expect(dead_code, reason = "held")] (MutexGuard<'s, AtWork>, MutexGuard<'s, Vec<Watched>>),
);

/// Full sockets below which closed ones among them do not matter.
const FEW: usize = 64;

impl AtWork {
    /// Notes that the kernel tells of this one.
    fn note_full(&mut self, output: &Watched) {
        if self.full.len() >= self.most_full.max(FEW) {
            self.full.retain(|_, output| !output.is_gone());
            self.most_full = 2 * self.full.len();
        }
        self.full.insert(output.key(), output.clone());
    }
}

impl Streams {
    pub fn new() -> io::Result<Streams> {
        Ok(Streams {
            listed: Mutex::default(),
            attention: Attention::new(),
            at_work: Mutex::default(),
            room: Poller::new()?,
        })
    }

    fn listed(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at_work(&self) -> MutexGuard<'_, AtWork> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn hold_still(&self) -> StreamLocks<'_> {
        StreamLocks((self.at_work(), self.listed()))
    }

    /// Readable when there is something to do that no tick is waited for.
    pub fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    /// Bytes were left here. Whether the monitor does not look with each tick yet, and is to be told.
    #[must_use]
    pub fn add(&self, output: Watched) -> bool {
        self.listed().push(output);
        self.attention.note()
    }

    /// Whether any is to be looked at at the next tick, or others may follow.
    #[inline]
    pub fn any(&self) -> bool {
        self.attention.is_drawn()
    }

    /// Sends what the kernel takes. `has_room`: [`Streams::room`] was readable.
    pub fn send_some(&self, disks: &Arc<Disks>, has_room: bool) {
        if !has_room && !self.any() {
            return;
        }
        let at_work = &mut *self.at_work();
        let had_news = self.attention.begin_look();
        at_work.outputs.append(&mut self.listed());
        if has_room {
            let mut events = Events::default();
            // Failing that, it is readable at the next look, too.
            let _ = self.room.add_events(&mut events);
            while let Some(event) = events.pop() {
                at_work.outputs.extend(at_work.full.remove(&event.token));
            }
        }
        let mut outputs = std::mem::take(&mut at_work.outputs);
        outputs.retain(|output| {
            output.send_left(disks, |socket| {
                self.room.await_room(socket, output.key())?;
                at_work.note_full(output);
                Ok(())
            })
        });
        let goes_on = had_news || !outputs.is_empty();
        self.listed().append(&mut outputs);
        self.attention.end_look(goes_on);
        at_work.outputs = outputs; // its memory
    }
}
