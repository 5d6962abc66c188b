//! What was seen while a profile was taken: for each route, the event loop and other threads, which stacks for how long.
//!
//! Each sample stands for the time since the one before. Stacks are numbers of frames, of which each is kept once; everything is bounded.
use serde_json::{Value, json};
use std::collections::HashMap;
use tricorn_doctor::PyFrame;
use tricorn_sys::clock::MILLI;

pub const MOST_OWNERS: usize = 128;
pub const MOST_STACKS: usize = 4096;
/// Innermost frames of a stack.
pub const MOST_FRAMES: usize = 64;
const MOST_KNOWN: usize = 4096;

/// Whose time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// A route's requests.
    Request,
    /// The thread of an event loop or hub, at no request that is known.
    Loop,
    /// A thread that is at no request.
    Thread,
}

impl Of {
    fn name(self) -> &'static str {
        match self {
            Of::Request => "request",
            Of::Loop => "loop",
            Of::Thread => "thread",
        }
    }
}

struct Owner {
    of: Of,
    name: String,
    /// Requests that were seen.
    requests: u64,
    /// Nanoseconds in which they were under way, seen or not.
    time: u64,
}

#[derive(Default)]
struct Weight {
    samples: u64,
    time: u64,
}

/// What is said of a profile beside its stacks.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// How long it has been taken, and the time between two looks that was wanted; nanoseconds.
    pub length: u64,
    pub interval: u64,
    /// Processor time that it has cost, with that of the hub.
    pub cost: u64,
    pub ended: bool,
}

#[derive(Default)]
pub struct Profile {
    owners: Vec<Owner>,
    numbers: HashMap<(Of, String), usize>,
    frames: Vec<PyFrame>,
    known: HashMap<PyFrame, u32>,
    stacks: HashMap<(usize, Box<[u32]>), Weight>,
    looks: u64,
    /// Looks that would have been due while there was none.
    late: u64,
    /// Samples of which nothing could be told.
    missed: u64,
    /// Nanoseconds of samples that had no room.
    lost: u64,
}

impl Profile {
    /// A look was taken, so long after the last one.
    pub fn looked(&mut self, elapsed: u64, interval: u64) {
        self.looks += 1;
        self.late += (elapsed / interval.max(1)).saturating_sub(1);
    }

    /// The number of an owner. Beyond a limit all others are one.
    pub fn owner(&mut self, of: Of, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(&(of, name.to_owned())) {
            return number;
        }
        let name = if self.owners.len() >= MOST_OWNERS { "(others)" } else { name };
        let next = self.owners.len();
        *self.numbers.entry((of, name.to_owned())).or_insert_with(|| {
            self.owners.push(Owner { of, name: name.to_owned(), requests: 0, time: 0 });
            next
        })
    }

    /// A request that was not seen before.
    pub fn met(&mut self, owner: usize) {
        self.owners[owner].requests += 1;
    }

    pub fn name(&self, owner: usize) -> &str {
        &self.owners[owner].name
    }

    /// Where it was, for so long. No frames: that could not be told.
    pub fn add(&mut self, owner: usize, frames: &[PyFrame], weight: u64) {
        self.owners[owner].time += weight;
        if frames.is_empty() {
            self.missed += 1;
            return;
        }
        let stack: Option<Box<[u32]>> = frames.iter().take(MOST_FRAMES).map(|frame| self.number(frame)).collect();
        let Some(stack) = stack else {
            self.lost += weight;
            return;
        };
        let is_full = self.stacks.len() >= MOST_STACKS;
        let key = (owner, stack);
        if is_full && !self.stacks.contains_key(&key) {
            self.lost += weight;
            return;
        }
        let sum = self.stacks.entry(key).or_default();
        sum.samples += 1;
        sum.time += weight;
    }

    fn number(&mut self, frame: &PyFrame) -> Option<u32> {
        if let Some(&number) = self.known.get(frame) {
            return Some(number);
        }
        if self.frames.len() >= MOST_KNOWN {
            return None;
        }
        let number = self.frames.len() as u32;
        self.frames.push(frame.clone());
        self.known.insert(frame.clone(), number);
        Some(number)
    }

    /// At most so many bytes: the heaviest stacks, and the time of the others in sum.
    pub fn report(&self, span: Span, most: usize) -> Vec<u8> {
        let mut stacks: Vec<_> = self.stacks.iter().collect();
        stacks.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.time));
        let mut count = stacks.len();
        loop {
            let text = self.told(span, &stacks[..count], &stacks[count..]).to_string();
            if text.len() <= most || count == 0 {
                return text.into_bytes();
            }
            count /= 2;
        }
    }

    fn told(&self, span: Span, stacks: &[Entry<'_>], left: &[Entry<'_>]) -> Value {
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        let mut frames: Vec<Value> = Vec::new();
        let mut by_owner: Vec<Vec<Value>> = self.owners.iter().map(|_| Vec::new()).collect();
        for ((owner, stack), weight) in stacks {
            let mut row: Vec<usize> = Vec::new();
            for number in stack {
                row.push(*numbers.entry(*number).or_insert_with(|| {
                    let frame = &self.frames[*number as usize];
                    frames.push(json!([frame.file, frame.line, frame.function]));
                    frames.len() - 1
                }));
            }
            by_owner[*owner].push(json!([row, weight.samples, weight.time / 1000]));
        }
        let owners = self.owners.iter().zip(by_owner).map(|(owner, stacks)| {
            let (of, time) = (owner.of.name(), owner.time / 1000);
            json!({"of": of, "name": owner.name, "requests": owner.requests, "microseconds": time, "stacks": stacks})
        });
        let left: u64 = left.iter().map(|(_, weight)| weight.time).sum();
        json!({
            "schema": "tricorn-profile/1",
            "ended": span.ended,
            "milliseconds": span.length / MILLI,
            "interval_microseconds": span.interval / 1000,
            "cost_microseconds": span.cost / 1000,
            "looks": self.looks,
            "late": self.late,
            "missed": self.missed,
            "lost_microseconds": (self.lost + left) / 1000,
            "owners": owners.collect::<Vec<Value>>(),
            "frames": frames,
        })
    }
}

type Entry<'p> = (&'p (usize, Box<[u32]>), &'p Weight);

#[cfg(test)]
mod tests {
    use super::*;
    use tricorn_sys::clock::SECOND;

    fn frames(line: i32) -> Vec<PyFrame> {
        let frame = |function: &str, line| PyFrame { file: "a.py".into(), function: function.into(), line };
        vec![frame("inner", line), frame("outer", 1)]
    }

    fn report(profile: &Profile, most: usize) -> Value {
        let span = Span { length: SECOND, interval: 10 * MILLI, cost: 5 * MILLI, ended: true };
        serde_json::from_slice(&profile.report(span, most)).expect("JSON")
    }

    fn sum(told: &Value) -> u64 {
        let owners = told["owners"].as_array().into_iter().flatten();
        let stacks = owners.flat_map(|owner| owner["stacks"].as_array().into_iter().flatten());
        stacks.filter_map(|stack| stack[2].as_u64()).sum()
    }

    #[test]
    fn the_same_stack_of_the_same_owner_is_one() {
        let mut profile = Profile::default();
        let (first, second) = (profile.owner(Of::Request, "GET /"), profile.owner(Of::Loop, "event loop"));
        assert_eq!((profile.owner(Of::Request, "GET /"), profile.name(first)), (first, "GET /"));
        profile.met(first);
        for owner in [first, first, second] {
            profile.looked(10 * MILLI, 10 * MILLI);
            profile.add(owner, &frames(3), 10 * MILLI);
        }
        profile.add(first, &[], 10 * MILLI);
        let told = report(&profile, usize::MAX);
        assert_eq!(told["owners"][0]["stacks"], json!([[[0, 1], 2, 20_000]]));
        assert_eq!((&told["owners"][0]["microseconds"], &told["owners"][0]["requests"]), (&json!(30_000), &json!(1)));
        assert_eq!(told["owners"][1]["of"], "loop");
        assert_eq!((&told["looks"], &told["missed"], &told["late"]), (&json!(3), &json!(1), &json!(0)));
        assert_eq!(told["frames"], json!([["a.py", 3, "inner"], ["a.py", 1, "outer"]]));
    }

    #[test]
    fn looks_that_did_not_come_in_time_are_counted() {
        let mut profile = Profile::default();
        for (elapsed, late) in [(10, 0), (19, 0), (20, 1), (55, 5)] {
            profile.looked(elapsed * MILLI, 10 * MILLI);
            assert_eq!(report(&profile, usize::MAX)["late"], late);
        }
    }

    #[test]
    fn everything_has_a_bound_and_what_has_no_room_is_counted() {
        let mut profile = Profile::default();
        for number in 0..2 * MOST_OWNERS {
            profile.owner(Of::Request, &format!("GET /{number}"));
        }
        assert!(profile.owners.len() <= MOST_OWNERS + 1);
        for line in 0..2 * MOST_STACKS as i32 {
            profile.add(0, &frames(line), MILLI);
        }
        assert!(profile.stacks.len() <= MOST_STACKS && profile.frames.len() <= MOST_KNOWN);
        let long: Vec<PyFrame> = frames(0).into_iter().cycle().take(2 * MOST_FRAMES).collect();
        profile.add(0, &long, MILLI);
        for most in [usize::MAX, 64 << 10, 16 << 10] {
            let told = report(&profile, most);
            let whole = sum(&told) + told["lost_microseconds"].as_u64().unwrap_or(0);
            assert_eq!(whole, (2 * MOST_STACKS as u64 + 1) * 1000);
            assert!(told.to_string().len() <= most);
        }
    }

    #[test]
    fn stacks_of_few_frames_have_a_bound_too() {
        let mut profile = Profile::default();
        let owner = profile.owner(Of::Request, "GET /");
        let frame = |line| frames(line)[..1].to_vec();
        for (inner, outer) in (0..100).flat_map(|inner| (0..100).map(move |outer| (inner, outer))) {
            profile.add(owner, &[frame(inner), frame(outer)].concat(), MILLI);
        }
        assert_eq!((profile.stacks.len(), profile.lost), (MOST_STACKS, (10_000 - MOST_STACKS as u64) * MILLI));
    }

    #[test]
    fn a_report_that_would_be_too_long_keeps_the_heaviest() {
        let mut profile = Profile::default();
        let owner = profile.owner(Of::Request, "GET /");
        for line in 1..=1000 {
            profile.add(owner, &frames(line), line as u64 * MILLI);
        }
        let told = report(&profile, 4096);
        assert_eq!(told["owners"][0]["stacks"][0][2], 1_000_000);
        assert!(told["lost_microseconds"].as_u64() > Some(0));
    }
}
