//! How long the baton is held, and by which of the places that take it.
//!
//! Only builds with the feature `baton-tracking` measure, as quinn's do with `lock_tracking`. The limit is one of processor
//! time (CLOCK_THREAD_CPUTIME_ID): a holder that is preempted has not worked for longer, and no code of ours can help it.
//!
//! Interrupts are no work of the holder's either, but this clock counts what the kernel does in them (softirq: packets, timers,
//! RCU). With two thousand clients a close that takes 8 µs took 1.7 ms, and an accept 2.7. So a place may have a few holds that
//! are longer, and none that is far longer.
use crate::clock::{self, MILLI};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

/// Processor time for which the baton may be held.
const LIMIT: u64 = MILLI;
/// What no interrupt explains.
const INTERRUPTED: u64 = 10 * MILLI;
/// Holds of a place, of which one may be longer than the limit.
const RARE: u64 = 200;
/// Longer holds of a place that are not yet too many.
const FEW: u64 = 3;

/// A hold that is measured until it is dropped.
#[derive(Debug)]
pub struct Hold {
    place: &'static Location<'static>,
    began: Times,
}

impl Hold {
    pub fn begin(place: &'static Location<'static>) -> Hold {
        Hold { place, began: Times::now() }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let took = Times::now().since(self.began);
        let is_too_long = HOLDS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry((self.place.file(), self.place.line()))
            .or_default()
            .add(took);
        if is_too_long {
            tell(&complaint(self.place, took));
        }
    }
}

/// Writes what was measured of each place into stderr, if the environment asks for it.
pub fn tell_all() {
    if std::env::var_os("TRICORN_BATON_REPORT").is_none() {
        return;
    }
    for ((file, line), holds) in &*HOLDS.lock().unwrap_or_else(PoisonError::into_inner) {
        tell(&format!("baton taken at {file}:{line}: {holds}\n"));
    }
}

/// File and line.
type Place = (&'static str, u32);

static HOLDS: Mutex<BTreeMap<Place, Holds>> = Mutex::new(BTreeMap::new());

/// Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    processor: u64,
    wall: u64,
}

impl Times {
    fn now() -> Times {
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        Times { processor: spent.tv_sec as u64 * clock::SECOND + spent.tv_nsec as u64, wall: clock::now() }
    }

    fn since(self, began: Times) -> Times {
        // A child of fork(2) has a processor clock of its own, which begins at 0.
        Times { processor: self.processor.saturating_sub(began.processor), wall: self.wall.saturating_sub(began.wall) }
    }
}

/// The holds of one place.
#[derive(Debug, Default)]
struct Holds {
    count: u64,
    /// Those beyond the limit.
    long: u64,
    processor: u64,
    longest: Times,
}

impl Holds {
    /// Whether this one was too long.
    fn add(&mut self, took: Times) -> bool {
        self.count += 1;
        self.processor += took.processor;
        self.longest.processor = self.longest.processor.max(took.processor);
        self.longest.wall = self.longest.wall.max(took.wall);
        if took.processor <= LIMIT {
            return false;
        }
        self.long += 1;
        took.processor > INTERRUPTED || self.long > FEW && self.long * RARE > self.count
    }
}

impl std::fmt::Display for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Holds { count, long, processor, longest } = self;
        let mean = processor / (*count).max(1) / 1000;
        let (most, wall) = (longest.processor / 1000, longest.wall / 1000);
        write!(
            f,
            "{count} times, {mean} µs of processor time on average, {most} µs at most; {wall} µs in all at most; {long} beyond the limit"
        )
    }
}

/// What is said of a hold that was too long.
fn complaint(place: &Location<'_>, took: Times) -> String {
    let (processor, wall) = (took.processor / 1000, took.wall / 1000);
    let (file, line) = (place.file(), place.line());
    format!(
        "tricorn: the baton was held for {processor} µs of processor time ({wall} µs in all), taken at {file}:{line}\n"
    )
}

/// One write, so that lines of several processes do not mix.
fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(nanos: u64) -> Times {
        let began = Times::now();
        while Times::now().since(began).processor < nanos {
            std::hint::spin_loop();
        }
        Times::now().since(began)
    }

    #[test]
    fn work_counts_and_sleep_does_not() {
        let worked = spin(2 * MILLI);
        assert!(worked.processor >= 2 * MILLI && worked.wall > 0);
        let began = Times::now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let slept = Times::now().since(began);
        assert!(slept.wall >= 5 * MILLI && slept.processor < slept.wall);
    }

    #[test]
    fn a_complaint_names_the_place() {
        let place = Location::caller();
        let text = complaint(place, Times { processor: LIMIT + 1000, wall: 2 * LIMIT });
        assert!(text.contains("1001 µs of processor time (2000 µs in all)"), "{text}");
        assert!(text.contains(&format!("holds.rs:{}", place.line())), "{text}");
    }

    #[test]
    fn a_few_holds_of_a_place_may_be_lengthened_by_interrupts() {
        let of = |processor| Times { processor, wall: processor };
        let mut holds = Holds::default();
        assert!(!holds.add(Times { processor: LIMIT, wall: 900 * LIMIT }), "preempted");
        assert!(holds.add(of(INTERRUPTED + 1)), "far longer");
        assert!(!holds.add(of(LIMIT + 1)) && !holds.add(of(LIMIT + 1)));
        assert!(holds.add(of(LIMIT + 1)), "four of five");
        for _ in holds.count..5 * RARE - 1 {
            holds.add(of(LIMIT));
        }
        assert!(!holds.add(of(LIMIT + 1)), "five of a thousand");
        assert!(holds.add(of(LIMIT + 1)), "six");
    }

    #[test]
    fn a_hold_is_noted_under_its_place() {
        let place = Location::caller();
        drop([Hold::begin(place), Hold::begin(place)]);
        let count = HOLDS.lock().expect("holds").get(&(place.file(), place.line())).map(|holds| holds.count);
        assert_eq!(count, Some(2));
        tell_all();
    }

    #[test]
    fn the_holds_of_a_place_are_added_up() {
        let mut holds = Holds::default();
        for (processor, wall) in [(1_000, 9_000), (5_000, 6_000)] {
            holds.add(Times { processor, wall });
        }
        let text = "2 times, 3 µs of processor time on average, 5 µs at most; 9 µs in all at most; 0 beyond the limit";
        assert_eq!(holds.to_string(), text);
    }
}
