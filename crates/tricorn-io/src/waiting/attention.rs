//! Whether the monitor looks at streams with each tick: one word.
//!
//! ```text
//!            note                      begin_look
//!   None ──────────▶ News ───────────────────────────────▶ Seen
//!    ▲                 ▲ ─────────────note─────────────────  │
//!    └─────────────────┼──────────end_look: nothing is left──┘
//! ```
//!
//! It goes on for one tick after the last news. Responses that follow one another closely are therefore no news to each other: a
//! worker that streams has a monitor that ticks, and none that is rung for with each response.
//!
//! Lost wake-ups: bytes are listed, then noted. A note that finds *None* reads the monitor's mode (`watch.rs`), and the monitor reads
//! this word after it has said its mode. All are sequentially consistent. `tests/wake_models.rs` tries every interleaving.
use super::atomics::{AtomicU8, Ordering};

const NONE: u8 = 0;
/// Bytes were left since the monitor began its last look.
const NEWS: u8 = 1;
/// The monitor has seen what was news, and looks again at the next tick.
const SEEN: u8 = 2;

#[derive(Debug)]
pub struct Attention(AtomicU8);

impl Attention {
    pub fn new() -> Attention {
        Attention(AtomicU8::new(NONE))
    }

    /// Bytes were listed. Whether the monitor does not look with each tick yet, and is to be told.
    #[must_use]
    pub fn note(&self) -> bool {
        self.0.swap(NEWS, Ordering::SeqCst) == NONE
    }

    /// Whether the monitor is to look at the next tick.
    #[inline]
    pub fn is_drawn(&self) -> bool {
        self.0.load(Ordering::SeqCst) != NONE
    }

    /// The monitor looks: what was listed before a note is on the list that it takes from now on. Whether there was news.
    pub fn begin_look(&self) -> bool {
        self.0.compare_exchange(NEWS, SEEN, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The monitor has looked. `goes_on`: there was news, or there is more to send at the next tick.
    pub fn end_look(&self, goes_on: bool) {
        let (from, to) = if goes_on { (NONE, SEEN) } else { (SEEN, NONE) };
        let _ = self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    }
}
