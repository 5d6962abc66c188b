//! Requests in flight that wait for room in a pool: nothing blocks, and nothing moves. It knows no clock: it is told what is under way.
//!
//! ```text
//!   two calls are older than the limit ──▶ where are all of them? ──▶ two were at the same pool twice ──▶ record: begins … ends
//!            ▲                                    │ elsewhere
//!            └──────── a longer pause ◀───────────┘
//! ```
use super::stall_record::{POOL_WAIT, cut, pool_fields, rounded, seconds, shortened};
use crate::stack_samples::StackSample;
use crate::wait_sites::PoolWait;
use serde_json::{Map, Value};
use std::collections::HashMap;
use tricorn_sys::clock::SECOND;

/// So many thresholds (`doctor_threshold`) make the limit: a second, if nothing else is set.
const LIMIT: u64 = 10;
/// Calls that are asked about at once, the oldest first.
const MOST: usize = 256;
/// As many limits is the longest pause after which calls are asked about again that wait for something else.
const LONGEST: u64 = 5;
/// So many calls that wait for the same pool are told.
const SEVERAL: usize = 2;
/// How long it takes an answer to be missed: the hub is held up, which is told elsewhere.
const PATIENCE: u64 = 10 * SECOND;
/// How often what goes on is told again, for the sums.
const AGAIN: u64 = 10 * SECOND;

#[derive(Debug)]
pub struct Census {
    /// 0: nothing is looked for.
    limit: u64,
    next: u64,
    pause: u64,
    /// How many calls were under way at the last look at them, and how many of those may come to wait for a pool.
    counted: (u64, usize),
    asked: Option<u64>,
    /// Who was at a pool when it was asked last, by slot.
    known: HashMap<usize, Known>,
    episodes: Vec<Episode>,
}

#[derive(Debug)]
struct Known {
    started: u64,
    pool: String,
    /// When it was first seen there.
    since: u64,
}

/// One time that a pool had no room.
#[derive(Debug)]
struct Episode {
    wait: PoolWait,
    since: u64,
    seen: u64,
    waiting: usize,
    in_flight: usize,
    /// When the oldest of the calls began.
    oldest: u64,
    /// Nanoseconds that requests have waited, and those of them that were told.
    cost: u64,
    told_cost: u64,
    told_at: u64,
    told: u64,
}

impl Census {
    pub fn new(threshold: u64) -> Census {
        let limit = threshold.saturating_mul(LIMIT);
        Census { limit, next: 0, pause: 0, counted: (0, 0), asked: None, known: HashMap::new(), episodes: Vec::new() }
    }

    /// Requests wait for a pool.
    pub fn is_on(&self) -> bool {
        !self.episodes.is_empty()
    }

    /// The calls to be asked about, by slot and start; empty: none. `calls` are those under way, `in_flight` their count.
    pub fn look(&mut self, now: u64, in_flight: u64, calls: impl FnOnce() -> Vec<(usize, u64)>) -> Vec<(usize, u64)> {
        if self.limit == 0 || now < self.next {
            return Vec::new();
        }
        if self.asked.is_some_and(|asked| now < asked + PATIENCE) {
            self.next = now + self.limit / 8;
            return Vec::new();
        }
        self.asked = None;
        self.next = now + self.limit / 2;
        if in_flight < SEVERAL as u64 && self.episodes.is_empty() {
            self.rest();
            return Vec::new();
        }
        let mut calls = calls();
        self.counted = (in_flight, calls.len());
        calls.sort_unstable_by_key(|(_, started)| *started);
        let old = calls.iter().filter(|(_, started)| now.saturating_sub(*started) >= self.limit).count();
        if old < SEVERAL && self.episodes.is_empty() {
            self.rest();
            if let Some((_, started)) = calls.get(SEVERAL - 1) {
                self.next = self.next.max(started + self.limit);
            }
            return Vec::new();
        }
        calls.truncate(MOST);
        if calls.is_empty() {
            self.known.clear();
            return Vec::new();
        }
        self.asked = Some(now);
        self.next = now + self.limit / 8;
        calls
    }

    fn rest(&mut self) {
        self.pause = 0;
        self.known.clear();
    }

    /// What was found out of those calls. `in_flight` is how many there are by now.
    pub fn told(&mut self, now: u64, in_flight: u64, found: Vec<StackSample>) {
        let Some(asked) = self.asked.take() else { return };
        let mut before = std::mem::take(&mut self.known);
        let mut groups: HashMap<String, Vec<(StackSample, u64)>> = HashMap::new();
        let looked = found.len();
        for sample in found {
            let Some(wait) = &sample.pool else { continue };
            let pool = format!("{} {}", wait.pool, wait.size);
            let was = before.remove(&sample.slot).filter(|was| was.started == sample.started && was.pool == pool);
            let since = was.map_or(asked, |was| was.since);
            self.known.insert(sample.slot, Known { started: sample.started, pool: pool.clone(), since });
            groups.entry(pool).or_default().push((sample, since));
        }
        let in_flight = (in_flight as usize).max(looked);
        self.pause = if groups.is_empty() { (self.pause * 2).clamp(self.limit / 2, LONGEST * self.limit) } else { 0 };
        self.next = now + self.pause.max(if self.episodes.is_empty() { self.limit / 2 } else { self.limit });
        for group in groups.into_values() {
            self.note(now, in_flight, &group);
        }
    }

    fn note(&mut self, now: u64, in_flight: usize, group: &[(StackSample, u64)]) {
        let stays = |since: u64| now.saturating_sub(since) >= self.limit / 2;
        let stay = group.iter().filter(|(_, since)| stays(*since)).count();
        let since = group.iter().map(|(_, since)| *since).min().unwrap_or(now);
        let Some(wait) = most_frequent(group) else { return };
        let is_same = |each: &&mut Episode| (&each.wait.pool, &each.wait.size) == (&wait.pool, &wait.size);
        if let Some(known) = self.episodes.iter_mut().find(is_same) {
            known.cost += now.saturating_sub(known.seen) * group.len() as u64;
            known.seen = now;
            if group.len() >= known.waiting {
                (known.waiting, known.in_flight, known.wait) = (group.len(), in_flight, wait);
            }
        } else if stay >= SEVERAL {
            let cost = group.iter().map(|(_, since)| now.saturating_sub(*since)).sum();
            let oldest = group.iter().map(|(sample, _)| sample.started).min().unwrap_or(now);
            let (waiting, told_at) = (group.len(), 0);
            let (told, told_cost, seen) = (0, 0, now);
            self.episodes.push(Episode {
                wait,
                since,
                seen,
                waiting,
                in_flight,
                oldest,
                cost,
                told_cost,
                told_at,
                told,
            });
        }
    }

    /// A line for the arbiter, if there is something new.
    pub fn tell(&mut self, now: u64) -> Option<Vec<u8>> {
        // What was not seen at the last answer is over.
        let is_over = |each: &Episode| now.saturating_sub(each.seen) > 2 * self.limit && self.asked.is_none();
        if let Some(index) = self.episodes.iter().position(is_over) {
            let mut over = self.episodes.swap_remove(index);
            return Some(over.line(over.seen, false));
        }
        let is_due = |each: &&mut Episode| each.told_at == 0 || now.saturating_sub(each.told_at) >= AGAIN;
        let episode = self.episodes.iter_mut().find(is_due)?;
        Some(episode.line(now, true))
    }

    /// In how many nanoseconds there may be something to do, while calls are under way.
    pub fn due(&self, now: u64, in_flight: u64) -> Option<u64> {
        let (then, several) = self.counted;
        let may_wait = in_flight >= SEVERAL as u64 && (in_flight != then || several >= SEVERAL);
        let works = may_wait || !self.episodes.is_empty() || self.asked.is_some();
        (self.limit > 0 && works).then(|| self.next.saturating_sub(now).max(self.limit / 100))
    }
}

/// The wait that most of them have in common.
fn most_frequent(group: &[(StackSample, u64)]) -> Option<PoolWait> {
    let mut counts: HashMap<&PoolWait, usize> = HashMap::new();
    for wait in group.iter().filter_map(|(sample, _)| sample.pool.as_ref()) {
        *counts.entry(wait).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(wait, count)| (*count, wait.site.line)).map(|(wait, _)| wait.clone())
}

impl Episode {
    fn line(&mut self, now: u64, ongoing: bool) -> Vec<u8> {
        let length = now.saturating_sub(self.since);
        let line = shortened(|most| self.record(now, length, ongoing, most));
        (self.told_at, self.told, self.told_cost) = (now, length, self.cost);
        line
    }

    fn record(&self, now: u64, length: u64, ongoing: bool, most: usize) -> Map<String, Value> {
        let line = self.wait.line.as_ref();
        let text = |text: &str| Value::from(cut(text, most));
        let fields = [
            ("duration", seconds(length).into()),
            ("added", seconds(length.saturating_sub(self.told)).into()),
            ("again", (self.told_at > 0).into()),
            ("ongoing", ongoing.into()),
            ("verdict", POOL_WAIT.into()),
            ("computed", rounded(0.0).into()),
            ("file", text(line.map_or("", |line| &line.file))),
            ("line", line.map_or(0, |line| line.line.max(0)).into()),
            ("function", text(line.map_or("", |line| &line.function))),
            ("delayed", self.waiting.into()),
            ("waiting", self.waiting.into()),
            ("in_flight", self.in_flight.into()),
            ("oldest", seconds(now.saturating_sub(self.oldest)).into()),
            ("cost", seconds(self.cost).into()),
            ("cost_added", seconds(self.cost.saturating_sub(self.told_cost)).into()),
        ];
        let fields = fields.into_iter().chain(pool_fields(&self.wait, most));
        fields.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tricorn_doctor::PyFrame;
    use tricorn_sys::clock::MILLI;

    fn at_pool(line: i32) -> Option<PoolWait> {
        let frame = |file: &str, line| PyFrame { file: file.into(), function: "QueuePool._do_get".into(), line };
        let (site, line) = (frame("/s/pool/impl.py", 5), Some(frame("/srv/app.py", line)));
        Some(PoolWait { pool: "alchemy".into(), size: "5 + 10".into(), site, line })
    }

    /// A worker in virtual time, whose calls all began at the first second.
    struct Made {
        census: Census,
        now: u64,
        looks: u32,
        told: Vec<Value>,
    }

    impl Made {
        fn new() -> Made {
            let census = Census::new(100 * MILLI);
            Made { census, now: SECOND, looks: 0, told: Vec::new() }
        }

        /// Until that millisecond after the first second, with so many calls, of which some wait.
        fn until(&mut self, end: u64, calls: usize, waits: impl Fn(usize) -> Option<PoolWait>) {
            while self.now < SECOND + end * MILLI {
                let under_way = || (0..calls).map(|slot| (slot, SECOND)).collect();
                let asked = self.census.look(self.now, calls as u64, under_way);
                if !asked.is_empty() {
                    self.looks += 1;
                    let sample = |(slot, started)| StackSample {
                        slot,
                        started,
                        at: self.now,
                        frames: Vec::new(),
                        pool: waits(slot),
                    };
                    self.census.told(self.now + MILLI, calls as u64, asked.into_iter().map(sample).collect());
                }
                while let Some(line) = self.census.tell(self.now + MILLI) {
                    let json = line.strip_prefix(b"stall ").expect("a record");
                    self.told.push(serde_json::from_slice(json).expect("JSON"));
                }
                self.now += self.census.due(self.now, calls as u64).unwrap_or(SECOND);
            }
        }
    }

    #[test]
    fn requests_that_wait_for_a_pool_are_told_with_their_pool() {
        let mut it = Made::new();
        it.until(3000, 40, |slot| (slot < 37).then(|| at_pool(34)).flatten());
        let [record] = it.told.as_slice() else { panic!("one is told: {:?}", it.told) };
        let told = |name: &str| record[name].to_string();
        assert_eq!(
            (told("waiting"), told("in_flight"), told("verdict")),
            ("37".into(), "40".into(), "\"POOL_WAIT\"".into())
        );
        assert_eq!(
            (told("line"), told("site"), told("size")),
            ("34".into(), "\"/s/pool/impl.py:_do_get\"".into(), "\"5 + 10\"".into())
        );
        assert_eq!((told("ongoing"), told("again")), ("true".into(), "false".into()));
        it.until(8000, 40, |_| None);
        let end = it.told.last().expect("its end is told");
        assert_eq!((&end["ongoing"], &end["again"], it.told.len()), (&false.into(), &true.into(), 2));
        let duration = end["duration"].as_f64().expect("a number");
        assert!((1.0..=2.5).contains(&duration), "{duration}");
        let cost = end["cost"].as_f64().expect("a number");
        assert!((37.0..=37.0 * 2.5).contains(&cost), "{cost}");
        assert!(!it.census.is_on());
    }

    #[test]
    fn requests_that_wait_for_something_else_are_asked_about_more_and_more_seldom() {
        let mut it = Made::new();
        it.until(60_000, 40, |_| None);
        assert!(it.told.is_empty());
        assert!((8..=18).contains(&it.looks), "{}", it.looks);
    }

    #[test]
    fn one_that_waits_is_not_several_and_one_look_is_not_two() {
        let mut it = Made::new();
        it.until(5000, 40, |slot| (slot == 3).then(|| at_pool(34)).flatten());
        assert!(it.told.is_empty());
        let mut it = Made::new();
        it.until(1200, 40, |_| at_pool(34));
        it.until(5000, 40, |_| None);
        assert!(it.told.is_empty(), "{:?}", it.told);
    }

    #[test]
    fn short_requests_are_not_asked_about() {
        let mut census = Census::new(100 * MILLI);
        for now in (SECOND..20 * SECOND).step_by(50 * MILLI as usize) {
            let calls = vec![(0, now - 900 * MILLI), (1, now - 500 * MILLI), (2, 0)];
            assert_eq!(census.look(now, 3, || calls), Vec::new());
        }
        assert_eq!(Census::new(0).look(SECOND, 9, || vec![(0, 0), (1, 0)]), Vec::new(), "it is switched off");
        assert_eq!(census.due(SECOND, 1), None, "one alone wakes nothing");
    }

    #[test]
    fn what_goes_on_is_told_again_for_the_sums() {
        let mut it = Made::new();
        it.until(25_000, 3, |_| at_pool(34));
        assert_eq!(it.told.len(), 3);
        let sum: f64 = it.told.iter().filter_map(|record| record["cost_added"].as_f64()).sum();
        let last = it.told.last().expect("the last")["cost"].as_f64().expect("a number");
        assert!((sum - last).abs() < 0.01, "{sum} {last}");
    }
}
