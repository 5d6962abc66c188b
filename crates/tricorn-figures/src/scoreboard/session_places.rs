//! A few places for sessions, which threads of several processes read and write at once (`sessions.rs`).
//!
//! ```text
//!   a place:   hash of a session's name · its entry (minute of the last use, mailbox, pid)
//!   written:   entry := busy   if it is what was seen ── hash := name ── entry := the new one
//!   read:      entry, hash, and the entry again: the same, or somebody wrote meanwhile
//! ```
//!
//! So a name never has another one's entry. A process may be killed while a place is busy: others take it after a minute.
use super::atomics::AtomicU64;
use super::atomics::Ordering::{AcqRel, Acquire, Relaxed, Release};

pub type Place = [AtomicU64; 2];

/// Who has a session, as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Of its last use.
    pub minute: u16,
    pub mailbox: u16,
    /// Of the worker; 0: there is no entry.
    pub pid: u32,
}

/// What learning a session has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    New,
    Known,
    /// Another one was forgotten for it.
    InPlace,
    /// Others wrote all the time: it is not in the table.
    Not,
}

/// The mailbox of a place that somebody writes.
const BUSY: u16 = u16::MAX;
/// Whoever is still writing after so many minutes was killed.
const PATIENCE: u16 = 2;
const TRIES: usize = 8;

impl Entry {
    pub fn of(word: u64) -> Entry {
        Entry { minute: (word >> 48) as u16, mailbox: (word >> 32) as u16, pid: word as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.minute) << 48 | u64::from(self.mailbox) << 32 | u64::from(self.pid)
    }

    fn is_busy(self, minute: u16) -> bool {
        self.mailbox == BUSY && minute.wrapping_sub(self.minute) < PATIENCE
    }
}

/// The entry of a session. It is used now. `is_valid`: whether an entry's worker is there.
pub fn find(places: &[Place], name: u64, minute: u16, is_valid: impl Fn(Entry) -> bool) -> Option<Entry> {
    let (word, place) = places.iter().find_map(|place| Some((read(place, name)?, place)))?;
    let found = Entry::of(word);
    if found.mailbox == BUSY || !is_valid(found) {
        return None;
    }
    if found.minute != minute {
        let used = Entry { minute, ..found }.word();
        let _ = place[1].compare_exchange(word, used, AcqRel, Relaxed);
    }
    Some(found)
}

/// The entry of a place, if it is this name's.
fn read([hash, entry]: &Place, name: u64) -> Option<u64> {
    for _ in 0..TRIES {
        let word = entry.load(Acquire);
        if hash.load(Acquire) != name {
            break;
        }
        if entry.load(Acquire) == word {
            return Some(word);
        }
    }
    None
}

/// A session has this entry from now on. In a full bucket the one that was used least recently gives way.
pub fn learn(places: &[Place], name: u64, new: Entry, is_valid: impl Fn(Entry) -> bool) -> Learned {
    for _ in 0..TRIES {
        let known = places.iter().find_map(|place| Some((read(place, name)?, place)));
        if let Some((word, [_, entry])) = known {
            let before = Entry::of(word);
            if (before.mailbox, before.pid) == (new.mailbox, new.pid) {
                let _ = entry.compare_exchange(word, new.word(), AcqRel, Relaxed);
                return Learned::Known;
            }
            if before.is_busy(new.minute) {
                continue;
            }
        }
        let Some((word, [hash, entry])) = known.or_else(|| to_spare(places, new.minute, &is_valid)) else { continue };
        let busy = Entry { mailbox: BUSY, ..new }.word();
        if entry.compare_exchange(word, busy, AcqRel, Relaxed).is_err() {
            continue;
        }
        if known.is_some() && hash.load(Relaxed) != name {
            // It was another's, and had the same entry.
            entry.store(word, Release);
            continue;
        }
        hash.store(name, Release);
        entry.store(new.word(), Release);
        return match known {
            Some(_) => Learned::Known,
            None if is_valid(Entry::of(word)) => Learned::InPlace,
            None => Learned::New,
        };
    }
    Learned::Not
}

/// The place of a worker that is gone or of nobody, or else the one that was used least recently.
fn to_spare(places: &[Place], minute: u16, is_valid: impl Fn(Entry) -> bool) -> Option<(u64, &Place)> {
    let age = |entry: Entry| if is_valid(entry) { minute.wrapping_sub(entry.minute).into() } else { u32::MAX };
    let all = places.iter().map(|place| (place[1].load(Acquire), place));
    all.filter(|(word, _)| !Entry::of(*word).is_busy(minute)).max_by_key(|(word, _)| age(Entry::of(*word)))
}
