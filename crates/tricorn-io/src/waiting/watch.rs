//! What the monitor is at, and what wakes it: one word.
//!
//! ```text
//!    Asleep ◀─────lie_down────── Ticking ──────rest─────▶ Resting
//!      │    ──get_up, wake──▶      ▲ │     ◀──get_up, ──    │
//!      └── a call began or ended,  │ │      stream_began    └── a stream began
//!          a stream, a line        │ └──cover──▶ Covering
//!                                  └─app_thread_came──┘
//! ```
//!
//! Rules:
//! * The monitor makes every transition but three: `wake` and `stream_began` end its sleep, and an app thread that comes back
//!   ends its covering.
//! * The thread whose transition ends a sleep rings the alarm. It is one of several, so that a sleep costs one ring.
//! * `cover` and `app_thread_came` are called under the baton.
//! * Lost wake-ups: the monitor says that it sleeps, then looks whether it may (`lie_down`, then the slots, the streams, the
//!   log). A call is entered in its slot, then the word is read (`wake`). Both are store-load pairs of sequentially consistent
//!   operations: one of the two sides sees the other. So it is of the app thread that waits for events, under the baton: while
//!   calls are under way the monitor sleeps only if there is one, and this wakes it when it comes back.
//!   `tests/wake_models.rs` tries every interleaving.
use super::atomics::{AtomicU8, Ordering, fence};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Looks around at each tick.
    Ticking,
    /// Looks around at the next long tick.
    Resting,
    /// Waits until it is rung for, or for a deadline.
    Asleep,
    /// Watches the events, because no app thread can.
    Covering,
}

const MODE: u8 = 0b0011;
/// An app thread has come back from the wait for events and has not yet looked at them.
const COMING: u8 = 0b0100;
/// The last free app thread has begun a call that will take long: the monitor need not wait for a tick.
const COVER_NOW: u8 = 0b1000;

#[derive(Debug)]
pub struct Watch(AtomicU8);

impl Watch {
    pub fn new() -> Watch {
        Watch(AtomicU8::new(Mode::Ticking as u8))
    }

    #[inline]
    fn mode(word: u8) -> Mode {
        match word & MODE {
            0 => Mode::Ticking,
            1 => Mode::Resting,
            2 => Mode::Asleep,
            _ => Mode::Covering,
        }
    }

    /// Changes the mode from one to another, and no demand. Whether it was that one.
    fn change(&self, from: Mode, to: Mode) -> bool {
        let mut word = self.0.load(Ordering::SeqCst);
        while Watch::mode(word) == from {
            let next = word & !MODE | to as u8;
            match self.0.compare_exchange_weak(word, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// The monitor is about to sleep. To be called before it looks whether it may. A full barrier, as `Until::lie_down` is.
    pub fn lie_down(&self) {
        self.change(Mode::Ticking, Mode::Asleep);
        fence(Ordering::SeqCst);
    }

    /// The next tick is a long one. To be called before the monitor looks whether it may be.
    pub fn rest(&self) {
        self.change(Mode::Ticking, Mode::Resting);
    }

    /// The monitor ticks again.
    pub fn get_up(&self) {
        let _ = self.change(Mode::Asleep, Mode::Ticking) || self.change(Mode::Resting, Mode::Ticking);
    }

    /// Something is to be looked at from now on. Whether the alarm is to be rung for a monitor that sleeps.
    #[inline]
    #[must_use]
    pub fn wake(&self) -> bool {
        Watch::mode(self.0.load(Ordering::SeqCst)) == Mode::Asleep && self.change(Mode::Asleep, Mode::Ticking)
    }

    /// A stream is to be sent at each tick from now on. Whether the alarm is to be rung: a monitor that covers waits for
    /// events only.
    #[must_use]
    pub fn stream_began(&self) -> bool {
        match Watch::mode(self.0.load(Ordering::SeqCst)) {
            Mode::Ticking => false,
            Mode::Covering => true,
            mode => self.change(mode, Mode::Ticking),
        }
    }

    pub fn is_asleep(&self) -> bool {
        Watch::mode(self.0.load(Ordering::SeqCst)) == Mode::Asleep
    }

    /// The monitor watches the events from now on.
    pub fn cover(&self) {
        self.change(Mode::Ticking, Mode::Covering);
    }

    #[inline]
    pub fn is_covering(&self) -> bool {
        Watch::mode(self.0.load(Ordering::SeqCst)) == Mode::Covering
    }

    /// An app thread is back. Whether the monitor covered until now, and is to be rung for.
    #[inline]
    #[must_use]
    pub fn app_thread_came(&self) -> bool {
        let word = self.0.load(Ordering::SeqCst);
        if word & COMING == 0 && Watch::mode(word) != Mode::Covering {
            return false;
        }
        self.0.fetch_and(!COMING, Ordering::SeqCst);
        self.change(Mode::Covering, Mode::Ticking)
    }

    /// An app thread has events in hand. If it does not get on, for want of the GIL, the monitor has to.
    pub fn app_thread_comes(&self) {
        self.0.fetch_or(COMING, Ordering::SeqCst);
    }

    pub fn is_app_thread_coming(&self) -> bool {
        self.0.load(Ordering::SeqCst) & COMING != 0
    }

    /// The monitor is to cover at once; the alarm is to be rung.
    pub fn ask_to_cover(&self) {
        self.0.fetch_or(COVER_NOW, Ordering::SeqCst);
    }

    /// Whether it was asked to cover.
    pub fn take_cover_request(&self) -> bool {
        self.0.load(Ordering::Relaxed) & COVER_NOW != 0
            && self.0.fetch_and(!COVER_NOW, Ordering::SeqCst) & COVER_NOW != 0
    }
}
