//! What each route of the application costs: pages of their own, which the workers of all generations share.
//!
//! ```text
//!   header   magic, how many routes have a name, which copy counts (`flip.rs`), how many slots were ever used
//!   names    of each route: hash, length, text. A route has the same place in all workers
//!   counts   of the workers that are gone, twice; then of each worker, by its slot. Place 0: all other requests
//! ```
//!
//! A name is entered by any worker, without a lock: the first free place is taken by writing the hash, and a worker that finds a hash
//! without a text writes that, too. So a worker that is killed in between leaves nothing undone, and no name has two places.
//! Names come from the application's table of routes. A path that a client has sent never becomes one.
use super::buckets::{COARSE, bucket, coarse};
use super::flip::{Copy, Flip};
use super::{MAGIC, PAGE_WORDS};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use tricorn_proto::access_log::CallTime;
use tricorn_sys::fds;

/// Routes that can have a name, at most.
pub const MOST_ROUTES: usize = 1024;
/// Bytes of a name. What is longer is cut, at the end of a character.
pub const NAME: usize = (NAME_WORDS - 2) * 8;
const NAME_WORDS: usize = 16;
/// What requests count for that have no route of their own.
pub const OTHER: &str = "other";

/// Words of the header.
const NAMED: usize = 1;
const SEQUENCE: usize = 2;
const SLOTS: usize = 3;

/// Words of a route's counts.
const ERRORS: usize = 0;
const TIME: usize = 1;
const TOLD: usize = 2;
const COMPUTED: usize = 3;
const BLOCKED: usize = 4;
const DELAYED: usize = 5;
const BUCKETS: usize = 8;
const ENTRY: usize = 32;
const _: () = assert!(BUCKETS + COARSE <= ENTRY);

/// The pages of all workers.
#[derive(Debug, Clone, Copy)]
pub struct Routes {
    words: &'static [AtomicU64],
    named: usize,
}

/// What one request adds to its route, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    pub failed: bool,
    /// From the call of the application to the last piece of its response.
    pub time: u64,
    /// What it was used for, if that is known.
    pub split: Option<Split>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    pub computed: u64,
    pub blocked: u64,
    pub delayed: u64,
}

impl Split {
    /// As the log has it, of a call of this length. The rest is time in which it gave way to others.
    pub fn of_call(self, length: u64) -> CallTime {
        let micros = |nanos: u64| u32::try_from(nanos / 1000).unwrap_or(u32::MAX);
        let Split { computed, blocked, delayed } = self;
        let used = computed.saturating_add(blocked).saturating_add(delayed);
        CallTime {
            computed: micros(computed),
            blocked: micros(blocked),
            delayed: micros(delayed),
            yielded: micros(length.saturating_sub(used)),
        }
    }

    pub fn add(&mut self, part: Split) {
        self.computed = self.computed.saturating_add(part.computed);
        self.blocked = self.blocked.saturating_add(part.blocked);
        self.delayed = self.delayed.saturating_add(part.delayed);
    }
}

impl From<CallTime> for Split {
    fn from(time: CallTime) -> Split {
        let nanos = |micros: u32| u64::from(micros) * 1000;
        Split { computed: nanos(time.computed), blocked: nanos(time.blocked), delayed: nanos(time.delayed) }
    }
}

/// What all requests of a route have cost; times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteCounts {
    pub name: String,
    pub requests: u64,
    /// Answered with a status from 500 on.
    pub errors: u64,
    pub time: u64,
    /// Of those requests of which it is known what their time was used for: all of it, and its parts.
    pub told: u64,
    pub computed: u64,
    pub blocked: u64,
    pub delayed: u64,
    /// Requests by duration, in the exported buckets.
    pub buckets: [u64; COARSE],
}

impl RouteCounts {
    /// Time in which the request gave way to others.
    pub fn yielded(&self) -> u64 {
        self.told.saturating_sub(self.computed.saturating_add(self.blocked).saturating_add(self.delayed))
    }
}

/// Where the counts of a worker begin behind those of another.
const fn stride(named: usize) -> usize {
    ((named + 1) * ENTRY).next_multiple_of(PAGE_WORDS)
}

/// Where the counts begin.
const fn first(named: usize) -> usize {
    PAGE_WORDS + (named * NAME_WORDS).next_multiple_of(PAGE_WORDS)
}

/// The length in bytes of pages for so many routes with a name, and so many workers at a time.
pub const fn routes_bytes(named: usize, workers: usize) -> usize {
    (first(named) + (2 + workers) * stride(named)) * 8
}

impl Routes {
    /// `None` if these are no such pages, or too few.
    ///
    /// # Safety
    /// `address` is aligned to 8 bytes, and `bytes` bytes from it stay mapped and readable as long as a copy of the value is
    /// used; writable, if anything but [`Routes::read`] is called.
    pub unsafe fn over(address: *mut u8, bytes: usize) -> Option<Routes> {
        if bytes / 8 < PAGE_WORDS {
            return None;
        }
        // SAFETY: promised by the caller; no more words than there are bytes.
        Routes::of(unsafe { fds::shared_words(address, bytes / 8) })
    }

    fn of(words: &'static [AtomicU64]) -> Option<Routes> {
        let named = words[NAMED].load(Relaxed);
        let named = usize::try_from(named).ok().filter(|named| (1..=MOST_ROUTES).contains(named))?;
        let has_room = words.len() * 8 >= routes_bytes(named, 0);
        (words[0].load(Acquire) == MAGIC && has_room).then_some(Routes { words, named })
    }

    /// Empty memory becomes such pages. `None` if it is too short for so many routes, or those are none or too many.
    ///
    /// # Safety
    /// As for [`Routes::over`], writable.
    pub unsafe fn begin(address: *mut u8, bytes: usize, named: usize) -> Option<Routes> {
        if !(1..=MOST_ROUTES).contains(&named) || bytes < routes_bytes(named, 0) {
            return None;
        }
        // SAFETY: promised by the caller; no more words than there are bytes.
        Routes::prepare(unsafe { fds::shared_words(address, bytes / 8) }, named)
    }

    fn prepare(words: &'static [AtomicU64], named: usize) -> Option<Routes> {
        words[NAMED].store(named as u64, Relaxed);
        words[0].store(MAGIC, Release);
        Routes::of(words)
    }

    /// Pages of this process's own, for tests and embedders.
    pub fn private(named: usize, workers: usize) -> Option<Routes> {
        let words: Vec<AtomicU64> = (0..routes_bytes(named, workers) / 8).map(|_| AtomicU64::new(0)).collect();
        Routes::prepare(Vec::leak(words), named)
    }

    /// The place of a route, which it gets if there is one left; else 0.
    pub fn place(&self, name: &str) -> u16 {
        let name = cut(name).as_bytes();
        let hash = hash(name);
        for place in 1..=self.named {
            let entry = self.entry(place);
            let found = match entry[0].compare_exchange(0, hash, AcqRel, Acquire) {
                Ok(_) => hash,
                Err(found) => found,
            };
            if found != hash {
                continue;
            }
            if entry[1].load(Acquire) == 0 {
                let words = name.chunks(8).map(|chunk| {
                    let mut bytes = [0; 8];
                    bytes[..chunk.len()].copy_from_slice(chunk);
                    u64::from_ne_bytes(bytes)
                });
                entry[2..].iter().zip(words).for_each(|(word, text)| word.store(text, Relaxed));
                entry[1].store(name.len() as u64 + 1, Release);
            }
            return place as u16;
        }
        0
    }

    /// The name at a place; `None`: it has none.
    pub fn name(&self, place: usize) -> Option<String> {
        if place == 0 {
            return Some(OTHER.to_owned());
        }
        if place > self.named {
            return None;
        }
        let entry = self.entry(place);
        let length = usize::try_from(entry[1].load(Acquire).checked_sub(1)?).ok()?;
        let mut text: Vec<u8> = entry[2..].iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
        text.truncate(length);
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// The hash of the name at a place.
    pub fn hash(&self, place: u16) -> u64 {
        if place == 0 || usize::from(place) > self.named { 0 } else { self.entry(usize::from(place))[0].load(Relaxed) }
    }

    /// The counts of the worker that has this slot, from 1 on. `None`: there are not so many.
    pub fn of_worker(&self, slot: u64) -> Option<WorkerRoutes> {
        let slot = usize::try_from(slot).ok().filter(|slot| (1..=self.slots()).contains(slot))?;
        self.words[SLOTS].fetch_max(slot as u64, Relaxed);
        Some(WorkerRoutes { counts: self.counts_of(slot + 1) })
    }

    /// The worker that had this slot is gone: what it has counted becomes that of all that are gone.
    pub fn bury(&self, slot: u64) {
        let Some(gone) = self.of_worker(slot).map(|worker| worker.counts) else { return };
        let fill = |which: Copy| {
            let (active, other) = (self.copy(which), self.copy(which.other()));
            for ((to, from), more) in other.iter().zip(active).zip(gone) {
                to.store(from.load(Relaxed).wrapping_add(more.load(Relaxed)), Relaxed);
            }
        };
        let used = self.used_places() * ENTRY;
        self.flip().bury(slot, fill, || gone[..used].iter().for_each(|word| word.store(0, Relaxed)));
    }

    /// What all workers have counted that ever were: no count ever falls. The routes that have one, and then all others.
    pub fn read(&self) -> Vec<RouteCounts> {
        let mut all = self.flip().read(|which, buried| {
            let workers = (self.words[SLOTS].load(Relaxed) as usize).min(self.slots());
            let others = (1..=workers).filter(|slot| *slot as u64 != buried).map(|slot| self.counts_of(slot + 1));
            let pages: Vec<_> = others.chain([self.copy(which)]).collect();
            (0..self.used_places()).filter_map(|place| self.sum(&pages, place)).collect::<Vec<_>>()
        });
        let others = all.len().min(1);
        all.rotate_left(others);
        all
    }

    fn sum(&self, pages: &[&[AtomicU64]], place: usize) -> Option<RouteCounts> {
        let mut sums = [0u64; ENTRY];
        for page in pages {
            let entry = &page[place * ENTRY..];
            sums.iter_mut().zip(entry).for_each(|(sum, word)| *sum = sum.wrapping_add(word.load(Relaxed)));
        }
        let mut buckets = [0; COARSE];
        buckets.copy_from_slice(&sums[BUCKETS..BUCKETS + COARSE]);
        Some(RouteCounts {
            name: self.name(place)?,
            requests: buckets.iter().fold(0, |sum: u64, count| sum.wrapping_add(*count)),
            errors: sums[ERRORS],
            time: sums[TIME],
            told: sums[TOLD],
            computed: sums[COMPUTED],
            blocked: sums[BLOCKED],
            delayed: sums[DELAYED],
            buckets,
        })
    }

    /// Names are entered from the first place on.
    fn used_places(&self) -> usize {
        1 + (1..=self.named).take_while(|place| self.entry(*place)[0].load(Relaxed) != 0).count()
    }

    fn entry(&self, place: usize) -> &'static [AtomicU64] {
        let start = PAGE_WORDS + (place - 1) * NAME_WORDS;
        &self.words[start..start + NAME_WORDS]
    }

    fn flip(&self) -> Flip<'_> {
        Flip(&self.words[SEQUENCE])
    }

    fn copy(&self, which: Copy) -> &'static [AtomicU64] {
        self.counts_of(usize::from(which == Copy::Second))
    }

    /// The two copies, then the workers.
    fn counts_of(&self, index: usize) -> &'static [AtomicU64] {
        let start = first(self.named) + index * stride(self.named);
        &self.words[start..start + (self.named + 1) * ENTRY]
    }

    fn slots(&self) -> usize {
        (self.words.len() - first(self.named)) / stride(self.named) - 2
    }
}

/// The counts of one worker, written by it under the baton.
#[derive(Debug, Clone, Copy)]
pub struct WorkerRoutes {
    counts: &'static [AtomicU64],
}

impl WorkerRoutes {
    /// A request of this route is over.
    #[inline]
    pub fn count(&self, place: u16, cost: Cost) {
        let Some(entry) = self.counts.get(usize::from(place) * ENTRY..).and_then(|rest| rest.first_chunk::<ENTRY>())
        else {
            return;
        };
        let add = |word: usize, count: u64| entry[word].store(entry[word].load(Relaxed).wrapping_add(count), Relaxed);
        add(BUCKETS + coarse(bucket(cost.time)), 1);
        add(TIME, cost.time);
        if cost.failed {
            add(ERRORS, 1);
        }
        if let Some(split) = cost.split {
            add(TOLD, cost.time);
            add(COMPUTED, split.computed);
            add(BLOCKED, split.blocked);
            add(DELAYED, split.delayed);
        }
    }
}

/// As much of a name as there is room for.
fn cut(name: &str) -> &str {
    let end = (0..=name.len().min(NAME)).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// FNV-1a. Never 0.
fn hash(name: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    name.iter().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tricorn_sys::clock::MILLI;

    fn routes(named: usize) -> Routes {
        Routes::private(named, 3).expect("pages")
    }

    fn cost(time: u64) -> Cost {
        Cost { time, ..Cost::default() }
    }

    #[test]
    fn a_route_has_one_place_in_all_workers_and_what_has_none_is_other() {
        let routes = routes(2);
        assert_eq!([routes.place("/a"), routes.place("/b"), routes.place("/a"), routes.place("/c")], [1, 2, 1, 0]);
        let names: Vec<_> = (0..4).map(|place| routes.name(place)).collect();
        assert_eq!(names, [Some("other".into()), Some("/a".into()), Some("/b".into()), None]);
        let (long, longer) = ("é".repeat(NAME), "é".repeat(NAME + 1));
        let other = Routes::private(3, 1).expect("pages");
        assert_eq!((other.place(&long), other.place(&longer), other.place("")), (1, 1, 2), "what is cut alike is one");
        assert_eq!(other.name(1), Some("é".repeat(NAME / 2)));
        assert_eq!(other.name(2), Some(String::new()));
    }

    #[test]
    fn a_name_that_a_killed_worker_began_to_enter_is_finished_by_the_next() {
        let routes = routes(2);
        routes.entry(1)[0].store(hash(b"/a"), Relaxed);
        assert_eq!(routes.name(1), None);
        assert_eq!(routes.read().len(), 1, "a route without a name is not told");
        assert_eq!(routes.place("/a"), 1);
        assert_eq!(routes.name(1), Some("/a".into()));
    }

    #[test]
    fn requests_are_counted_by_route_over_all_workers_and_those_that_are_gone() {
        let routes = routes(4);
        let workers: Vec<_> = (1..=3).filter_map(|slot| routes.of_worker(slot)).collect();
        let place = routes.place("/a");
        for (index, worker) in workers.iter().enumerate() {
            worker.count(place, cost(5 * MILLI));
            worker.count(0, cost(MILLI));
            let split = Split { computed: MILLI, blocked: 7 * MILLI, delayed: 2 * MILLI };
            worker.count(place, Cost { failed: index == 0, time: 12 * MILLI, split: Some(split) });
        }
        let before = routes.read();
        for slot in [2, 3, 3, 9] {
            routes.bury(slot);
            assert_eq!(routes.read(), before, "{slot}");
        }
        let [named, other] = before.as_slice() else { panic!("{before:?}") };
        assert_eq!((named.name.as_str(), named.requests, named.errors), ("/a", 6, 1));
        assert_eq!((named.time, named.told, named.yielded()), (51 * MILLI, 36 * MILLI, 6 * MILLI));
        assert_eq!((named.computed, named.blocked, named.delayed), (3 * MILLI, 21 * MILLI, 6 * MILLI));
        assert_eq!(named.buckets.iter().sum::<u64>(), 6);
        assert_eq!((named.buckets[3], named.buckets[5]), (3, 3), "an edge is in the bucket below it");
        assert_eq!((other.name.as_str(), other.requests, other.time), ("other", 3, 3 * MILLI));
        workers[1].count(place, cost(1));
        assert_eq!(routes.read()[0].requests, 7, "the next worker of the slot goes on");
    }

    #[test]
    fn a_route_that_is_none_is_not_counted_and_a_slot_that_is_none_has_no_counts() {
        let routes = routes(2);
        assert!(routes.of_worker(0).is_none() && routes.of_worker(4).is_none());
        let worker = routes.of_worker(3).expect("a worker");
        worker.count(3, cost(1));
        worker.count(u16::MAX, cost(1));
        assert!(routes.read().iter().all(|route| route.requests == 0));
    }

    #[test]
    fn pages_of_any_content_are_read_to_the_end_or_are_none() {
        for nonsense in [u64::MAX, 1 << 63, 1, 0x5555_5555_5555_5555] {
            let routes = routes(2);
            routes.words[SEQUENCE..].iter().for_each(|word| word.store(nonsense, Relaxed));
            routes.read();
            routes.bury(1);
            routes.place("/a");
            routes.words[NAMED].store(nonsense, Relaxed);
            let again = Routes::of(routes.words);
            assert!(again.is_none() || nonsense == 1);
            again.iter().for_each(|routes| drop(routes.read()));
        }
        assert!(Routes::private(0, 1).is_none());
    }

    /// Workers end all the time, each in the midst of what is read.
    #[test]
    fn a_reader_never_sees_a_count_that_falls() {
        let (routes, is_over) = (routes(1), std::sync::atomic::AtomicBool::new(false));
        let (worker, rounds) = (routes.of_worker(2).expect("a worker"), if cfg!(miri) { 5 } else { 3_000 });
        let work = || {
            for _ in 0..rounds {
                (0..8).for_each(|_| worker.count(0, cost(MILLI)));
                routes.bury(2);
                (0..2_000).for_each(|_| std::hint::spin_loop());
            }
            is_over.store(true, Relaxed);
        };
        let read = || {
            let (mut before, mut fallen) = (0, 0);
            while !is_over.load(Relaxed) {
                let now = routes.read()[0].requests;
                fallen += u64::from(now < before);
                before = now;
            }
            fallen
        };
        let fallen = std::thread::scope(|scope| {
            scope.spawn(work);
            read()
        });
        assert_eq!((fallen, routes.read()[0].requests), (0, 8 * rounds));
    }
}
