//! Which worker has which session: a bounded table that all workers read and write.
//!
//! ```text
//!   keys (2 words) · owners (a word for each mailbox: the pid of the worker that reads it; 0: none)
//!   buckets of eight places, each: hash of a session's name · minute of its last use, mailbox, pid of its worker
//! ```
//!
//! An entry is a hint. It is followed only while the mailbox has the same owner, so that nothing has to be taken out when a worker ends. In
//! a full bucket the entry that was used least recently gives way. Names are secrets of clients, and only their keyed hashes are here
//! (SipHash-1-3): nobody can choose names that meet in one bucket.
use super::atomics::AtomicU64;
use super::atomics::Ordering::{Acquire, Relaxed, Release};
use super::session_places::{self as places, Entry, Place};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use tricorn_sys::fds;

pub use super::session_places::Learned;

/// Mailboxes there may be.
pub const MAILBOXES: usize = 64;
const OWNERS: usize = 2;
const PLACES: usize = OWNERS + MAILBOXES;
/// Places of a bucket.
const BUCKET: usize = 8;
const BUCKETS: usize = 8192;
/// Minutes for which a session is taken for alive that is not used.
const RECENT: u16 = 10;
const WORDS: usize = PLACES + 2 * BUCKET * BUCKETS;
/// Length of the table in bytes.
pub const SESSION_BYTES: usize = WORDS * 8;

/// The name of a session, hashed; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionName(u64);

#[derive(Debug, Clone, Copy)]
pub struct Sessions {
    words: &'static [AtomicU64],
}

impl Sessions {
    /// `None` if the memory is too short.
    ///
    /// # Safety
    /// `address` is aligned to 8 bytes, and `bytes` bytes from it stay mapped and writable for the rest of the process, accessed by
    /// everybody as atomic words.
    pub unsafe fn over(address: *mut u8, bytes: usize) -> Option<Sessions> {
        if bytes < SESSION_BYTES {
            return None;
        }
        // SAFETY: promised by the caller; there are as many bytes from there on.
        Some(Sessions { words: unsafe { fds::shared_words(address, WORDS) } })
    }

    /// A table of this process's own, for tests.
    pub fn private() -> Sessions {
        Sessions { words: Vec::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect()) }
    }

    /// Gives the table its keys, before it is shared.
    pub fn begin(&self, keys: [u64; 2]) {
        self.words.iter().zip(keys).for_each(|(word, key)| word.store(key, Release));
    }

    /// The worker with this pid reads the mailbox from now on; 0: nobody does.
    pub fn own(&self, mailbox: u16, pid: u32) {
        if let Some(word) = self.owner(mailbox) {
            word.store(pid.into(), Release);
        }
    }

    fn owner(&self, mailbox: u16) -> Option<&AtomicU64> {
        self.words[OWNERS..PLACES].get(usize::from(mailbox))
    }

    /// `kind` keeps names apart that mean something else.
    pub fn name(&self, kind: u8, name: &[u8]) -> SessionName {
        let mut hasher = SipHasher13::new_with_keys(self.words[0].load(Relaxed), self.words[1].load(Relaxed));
        hasher.write_u8(kind);
        hasher.write(name);
        SessionName(hasher.finish().max(1))
    }

    fn bucket(&self, name: SessionName) -> &[Place] {
        let first = PLACES + (name.0 % BUCKETS as u64) as usize * 2 * BUCKET;
        self.words[first..first + 2 * BUCKET].as_chunks().0
    }

    /// The mailbox of the worker that has this session; `None`: no worker is known to have it. It is used now.
    pub fn find(&self, name: SessionName, minute: u16) -> Option<u16> {
        places::find(self.bucket(name), name.0, minute, |entry| self.is_valid(entry)).map(|entry| entry.mailbox)
    }

    fn is_valid(&self, entry: Entry) -> bool {
        entry.pid != 0 && self.owner(entry.mailbox).is_some_and(|owner| owner.load(Acquire) == u64::from(entry.pid))
    }

    /// The worker with this mailbox and pid has the session.
    pub fn learn(&self, name: SessionName, mailbox: u16, pid: u32, minute: u16) -> Learned {
        places::learn(self.bucket(name), name.0, Entry { minute, mailbox, pid }, |entry| self.is_valid(entry))
    }

    /// Mailbox, pid of its owner and the number of its sessions, of each that has an owner.
    pub fn counts(&self) -> Vec<(u16, u32, usize)> {
        self.count(|_| true)
    }

    /// The same of sessions that were used lately. That one is over is told to nobody.
    pub fn recent_counts(&self, minute: u16) -> Vec<(u16, u32, usize)> {
        self.count(|entry| minute.wrapping_sub(entry.minute) < RECENT)
    }

    fn count(&self, counts_as_one: impl Fn(Entry) -> bool) -> Vec<(u16, u32, usize)> {
        let mut counts = vec![0; MAILBOXES];
        let places: &[Place] = self.words[PLACES..].as_chunks().0;
        for [_, entry] in places {
            let entry = Entry::of(entry.load(Relaxed));
            if self.is_valid(entry)
                && counts_as_one(entry)
                && let Some(count) = counts.get_mut(usize::from(entry.mailbox))
            {
                *count += 1;
            }
        }
        self.owners().map(|(mailbox, pid)| (mailbox, pid, counts[usize::from(mailbox)])).collect()
    }

    /// Mailbox and pid of each worker that reads one.
    pub fn owners(&self) -> impl Iterator<Item = (u16, u32)> + Clone + use<> {
        let words = self.words;
        let owners = (0..).zip(&words[OWNERS..PLACES]).map(|(mailbox, word)| (mailbox, word.load(Acquire) as u32));
        owners.filter(|(_, pid)| *pid != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Sessions {
        let sessions = Sessions::private();
        sessions.begin([1, 2]);
        sessions.own(3, 333);
        sessions.own(4, 444);
        sessions
    }

    #[test]
    fn a_session_is_found_while_its_worker_is_there() {
        let sessions = table();
        let name = sessions.name(1, b"one");
        assert_eq!(sessions.find(name, 0), None);
        assert_eq!(sessions.learn(name, 3, 333, 0), Learned::New);
        assert_eq!((sessions.find(name, 5), sessions.learn(name, 3, 333, 6)), (Some(3), Learned::Known));
        assert_eq!(sessions.find(sessions.name(2, b"one"), 0), None, "another kind of name");
        sessions.own(3, 334);
        assert_eq!(sessions.find(name, 7), None, "its worker is gone, and has a successor");
        sessions.own(3, 0);
        assert_eq!(sessions.find(name, 7), None);
        assert_eq!(sessions.learn(name, 4, 444, 8), Learned::Known, "it has begun anew, elsewhere");
        assert_eq!(sessions.find(name, 8), Some(4));
    }

    #[test]
    fn keys_decide_where_a_name_is() {
        let (one, other) = (table(), table());
        other.begin([3, 4]);
        assert_ne!(one.name(1, b"name"), other.name(1, b"name"));
    }

    #[test]
    fn the_one_that_was_used_least_recently_gives_way() {
        let sessions = table();
        // Names that meet in one bucket.
        let names: Vec<SessionName> = (0..=BUCKET as u64).map(|nr| SessionName(7 + nr * BUCKETS as u64)).collect();
        for (minute, name) in names[..BUCKET].iter().enumerate() {
            assert_eq!(sessions.learn(*name, 3, 333, minute as u16), Learned::New);
        }
        assert_eq!(sessions.find(names[0], 20), Some(3), "it is used again");
        assert_eq!(sessions.learn(names[BUCKET], 4, 444, 21), Learned::InPlace);
        let found: Vec<_> = names.iter().map(|name| sessions.find(*name, 22).is_some()).collect();
        assert_eq!(found.iter().filter(|found| !**found).count(), 1);
        assert!(!found[1], "{found:?}");
        // Those of a worker that is gone come first, however new they are.
        sessions.own(4, 0);
        assert_eq!(sessions.learn(names[1], 3, 333, 23), Learned::New);
        assert_eq!(sessions.find(names[2], 24), Some(3));
    }

    #[test]
    fn minutes_go_round() {
        let sessions = table();
        let names: Vec<SessionName> = (0..=BUCKET as u64).map(|nr| SessionName(7 + nr * BUCKETS as u64)).collect();
        for (at, name) in names[..BUCKET].iter().enumerate() {
            sessions.learn(*name, 3, 333, u16::MAX.wrapping_add(at as u16));
        }
        sessions.learn(names[BUCKET], 3, 333, 20);
        assert_eq!(sessions.find(names[0], 20), None, "it was used before the minutes went round");
        assert_eq!(sessions.find(names[1], 20), Some(3));
    }

    #[test]
    fn workers_are_told_apart_in_the_counts() {
        let sessions = table();
        for nr in 0..100_u32 {
            sessions.learn(sessions.name(1, &nr.to_le_bytes()), 3, 333, 0);
        }
        sessions.learn(sessions.name(1, b"other"), 4, 444, 0);
        assert_eq!(sessions.counts(), [(3, 333, 100), (4, 444, 1)]);
        assert_eq!(sessions.recent_counts(RECENT - 1), [(3, 333, 100), (4, 444, 1)]);
        assert_eq!(sessions.find(sessions.name(1, b"other"), RECENT), Some(4));
        assert_eq!(sessions.recent_counts(RECENT), [(3, 333, 0), (4, 444, 1)], "one is used again");
        sessions.own(3, 0);
        assert_eq!(sessions.counts(), [(4, 444, 1)]);
    }

    #[test]
    fn threads_that_learn_at_once_leave_good_entries() {
        let sessions = table();
        std::thread::scope(|scope| {
            for (mailbox, pid) in [(3, 333), (4, 444)] {
                scope.spawn(move || {
                    for nr in 0..20_000_u32 {
                        let name = SessionName(u64::from(nr % 64) * BUCKETS as u64 + 7);
                        sessions.learn(name, mailbox, pid, (nr / 100) as u16);
                        if let Some(found) = sessions.find(name, 0) {
                            assert!([3, 4].contains(&found));
                        }
                    }
                });
            }
        });
    }
}
