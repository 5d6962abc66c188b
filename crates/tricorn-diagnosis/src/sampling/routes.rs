//! What was seen of requests that are over: for each route which stacks took how long, by how long the requests took.
//!
//! Everything is bounded, and halves every ten minutes, so that it tells of the last ones.
use super::Frames;
use super::counts::Counts;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tricorn_doctor::PyFrame;
use tricorn_figures::scoreboard::{COARSE, bucket, coarse};
use tricorn_sys::clock::{MILLI, SECOND};

pub const MOST_ROUTES: usize = 64;
/// Stacks of a route.
pub const MOST_STACKS: usize = 100;
/// Stacks of all routes, and of requests that are followed.
pub const MOST_KNOWN: usize = 1000;
/// Innermost frames of a stack.
pub const MOST_FRAMES: usize = 40;
/// After so long what is known counts half.
const HALF: u64 = 600 * SECOND;
/// Bytes of the report.
const MOST_BYTES: usize = 192 << 10;

/// By bucket of the duration: how many requests, or nanoseconds.
type ByLength = [u64; COARSE];

#[derive(Default)]
struct Route {
    name: String,
    requests: ByLength,
    stacks: HashMap<Arc<[PyFrame]>, ByLength>,
    /// Nanoseconds of samples that had no room.
    lost: u64,
    /// Requests that ended early before what is known was halved.
    early: u64,
}

#[derive(Default)]
pub struct Routes {
    routes: HashMap<u64, Route>,
    known: HashSet<Arc<[PyFrame]>>,
    halved: u64,
}

impl Routes {
    /// A stack, of which there is one however many requests have it. `None`: there is no room for another.
    pub fn kept(&mut self, mut frames: Frames) -> Option<Arc<[PyFrame]>> {
        frames.truncate(MOST_FRAMES);
        if let Some(known) = self.known.get(frames.as_slice()) {
            return Some(known.clone());
        }
        let is_full = |routes: &Routes| routes.known.len() >= MOST_KNOWN;
        if is_full(self) {
            self.forget_unused();
        }
        if is_full(self) {
            return None;
        }
        let kept: Arc<[PyFrame]> = frames.into();
        self.known.insert(kept.clone());
        Some(kept)
    }

    /// A request that took so long is over.
    pub fn add(&mut self, route: (u64, &str), length: u64, samples: &[(Arc<[PyFrame]>, u64)]) {
        let is_full = self.routes.len() >= MOST_ROUTES;
        let place = match self.routes.contains_key(&route.0) {
            false if is_full => (0, "(other routes)"),
            _ => route,
        };
        let bucket = coarse(bucket(length));
        let route = self.routes.entry(place.0).or_default();
        if route.name.is_empty() {
            route.name = place.1.to_owned();
        }
        route.requests[bucket] += 1;
        for (stack, weight) in samples {
            if route.stacks.len() >= MOST_STACKS && !route.stacks.contains_key(stack) {
                route.lost += weight;
                continue;
            }
            route.stacks.entry(stack.clone()).or_insert([0; COARSE])[bucket] += weight;
        }
    }

    /// Forgets what is old, and stacks that no route has any more.
    pub fn fade(&mut self, now: u64, counts: &Counts) {
        if self.halved == 0 {
            self.halved = now;
        }
        if now.saturating_sub(self.halved) < HALF {
            return;
        }
        self.halved = now;
        for (hash, route) in &mut self.routes {
            route.requests.iter_mut().for_each(|count| *count /= 2);
            // The counts go on: as many of them are left out as count half from now on.
            route.early += counts.of(*hash).saturating_sub(route.early) / 2;
            route.stacks.values_mut().flatten().for_each(|weight| *weight /= 2);
            route.stacks.retain(|_, weights| weights.iter().any(|weight| *weight > MILLI));
        }
        self.routes.retain(|_, route| route.requests.iter().any(|count| *count > 0));
        self.forget_unused();
    }

    fn forget_unused(&mut self) {
        self.known.retain(|stack| Arc::strong_count(stack) > 1);
    }

    /// `after`: what ended earlier is `early`, and nothing else is known of it.
    pub fn report(&self, counts: &Counts, after: u64, late: u64) -> Vec<u8> {
        let mut most = MOST_STACKS;
        loop {
            let routes: Vec<Value> = self.routes.iter().map(|(hash, route)| route.told(*hash, counts, most)).collect();
            let text =
                json!({"schema": "tricorn-slow/1", "after": after / MILLI, "late": late, "routes": routes}).to_string();
            if text.len() <= MOST_BYTES || most == 0 {
                return text.into_bytes();
            }
            most /= 2;
        }
    }
}

impl Route {
    /// At most so many stacks, the heaviest of them.
    fn told(&self, hash: u64, counts: &Counts, most: usize) -> Value {
        let mut stacks: Vec<_> = self.stacks.iter().collect();
        stacks.sort_by_key(|(_, weights)| std::cmp::Reverse(weights.iter().sum::<u64>()));
        let left: u64 = stacks.iter().skip(most).flat_map(|(_, weights)| *weights).sum();
        stacks.truncate(most);
        let stacks: Vec<Value> = stacks
            .into_iter()
            .map(|(stack, weights)| {
                let frames: Vec<Value> =
                    stack.iter().map(|frame| json!([frame.file, frame.line, frame.function])).collect();
                let milliseconds: Vec<u64> = weights.iter().map(|weight| weight / MILLI).collect();
                json!({"frames": frames, "milliseconds": milliseconds})
            })
            .collect();
        json!({
            "route": self.name,
            "early": counts.of(hash).saturating_sub(self.early),
            "requests": self.requests,
            "stacks": stacks,
            "lost_milliseconds": (self.lost + left) / MILLI,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(line: i32) -> Frames {
        vec![PyFrame { file: "a.py".into(), function: "f".into(), line }]
    }

    fn report(routes: &Routes, counts: &Counts) -> Value {
        serde_json::from_slice(&routes.report(counts, 50 * MILLI, 0)).expect("JSON")
    }

    #[test]
    fn routes_and_stacks_have_a_bound_and_what_has_no_room_is_counted() {
        let (mut routes, counts) = (Routes::default(), Counts::default());
        for line in 0..2 * MOST_STACKS as i32 {
            let stack = routes.kept(frames(line)).expect("room");
            routes.add((1, "GET /"), 300 * MILLI, &[(stack, 10 * MILLI)]);
        }
        for hash in 2..1000 {
            routes.add((hash, "GET /many"), 60 * MILLI, &[]);
        }
        assert!(routes.routes.len() <= MOST_ROUTES + 1);
        assert_eq!(routes.routes[&1].stacks.len(), MOST_STACKS, "in memory, too");
        let first = routes.routes[&1].told(1, &counts, MOST_STACKS);
        assert_eq!(first["stacks"].as_array().map(Vec::len), Some(MOST_STACKS));
        assert_eq!(first["lost_milliseconds"], 10 * MOST_STACKS as u64);
        assert!(routes.report(&counts, 50 * MILLI, 0).len() <= MOST_BYTES);
    }

    #[test]
    fn what_is_old_counts_half_and_is_gone_at_last() {
        let (mut routes, counts) = (Routes::default(), Counts::default());
        counts.add(1);
        let stack = routes.kept(frames(3)).expect("room");
        for _ in 0..4 {
            routes.add((1, "GET /"), 300 * MILLI, &[(stack.clone(), 10 * MILLI)]);
        }
        drop(stack);
        routes.fade(1, &counts);
        let sum = |value: &Value| value.as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>();
        for (turn, left) in [(0, 4), (1, 2), (2, 1)] {
            routes.fade(1 + turn * HALF, &counts);
            let told = &report(&routes, &counts)["routes"][0];
            assert_eq!((sum(&told["requests"]), sum(&told["stacks"][0]["milliseconds"])), (left, 10 * left));
        }
        assert!(report(&routes, &counts)["routes"][0]["early"].as_u64() < Some(13));
        routes.fade(1 + 3 * HALF, &counts);
        assert!(routes.routes.is_empty());
        assert!(routes.known.is_empty());
    }

    #[test]
    fn stacks_that_nobody_has_make_room_and_those_in_use_do_not() {
        let mut routes = Routes::default();
        for line in 0..2 * MOST_KNOWN as i32 {
            assert!(routes.kept(frames(line)).is_some());
        }
        assert!(routes.known.len() <= MOST_KNOWN);
        let used: Vec<_> = (0..MOST_KNOWN as i32).map(|line| routes.kept(frames(-line))).collect();
        assert!(used.iter().all(Option::is_some));
        assert!(routes.kept(frames(i32::MAX)).is_none());
        assert!(routes.kept(frames(-5)).is_some(), "that is known");
    }

    #[test]
    fn a_report_that_would_be_too_long_has_the_heaviest_stacks_and_the_rest_in_sum() {
        let (mut routes, counts) = (Routes::default(), Counts::default());
        for line in 0..MOST_STACKS as i32 {
            let stack = routes.kept(frames(line).into_iter().cycle().take(2 * MOST_FRAMES).collect()).expect("room");
            assert_eq!(stack.len(), MOST_FRAMES);
            for hash in 1..=16 {
                routes.add((hash, "GET /"), 300 * MILLI, &[(stack.clone(), (1 + line as u64) * MILLI)]);
            }
        }
        assert!(routes.report(&counts, 50 * MILLI, 0).len() <= MOST_BYTES);
        let sum = |value: &Value| value.as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>();
        let whole = (1..=MOST_STACKS as u64).sum::<u64>();
        for route in report(&routes, &counts)["routes"].as_array().into_iter().flatten() {
            let stacks: Vec<&Value> = route["stacks"].as_array().into_iter().flatten().collect();
            assert!((1..MOST_STACKS).contains(&stacks.len()));
            assert_eq!(sum(&stacks[0]["milliseconds"]), MOST_STACKS as u64, "the heaviest");
            let told: u64 = stacks.iter().map(|stack| sum(&stack["milliseconds"])).sum();
            assert_eq!(Some(whole - told), route["lost_milliseconds"].as_u64());
        }
    }
}
