//! Which requests are looked at, and when. It knows no clock and no thread: it is told what is under way.
//!
//! ```text
//!   under way for `after` ──▶ followed: a sample each 10 ms, later each eighth of its age ──▶ over: its route has the samples
//! ```
use super::counts::Counts;
use super::route;
use super::routes::Routes;
use super::{Frames, Named};
use std::collections::HashMap;
use std::sync::Arc;
use tricorn_doctor::PyFrame;
use tricorn_sys::clock::MILLI;

/// Between two looks at the requests that are followed.
pub const STEP: u64 = 10 * MILLI;
/// Samples of one request.
pub const MOST_SAMPLES: u32 = 64;
/// Requests that are followed at a time.
pub const MOST_FOLLOWED: usize = 64;
/// Samples that are wanted at once.
pub const MOST_AT_ONCE: usize = 16;

pub struct Plan {
    after: u64,
    followed: HashMap<usize, Followed>,
    pub routes: Routes,
    /// Samples that were taken too late, or not at all.
    pub late: u64,
    /// Something is new in the report.
    pub changed: bool,
}

struct Followed {
    started: u64,
    hash: u64,
    name: String,
    /// When it was looked at last, and is to be next.
    last: u64,
    next: u64,
    count: u32,
    samples: Vec<(Arc<[PyFrame]>, u64)>,
}

/// What is to be done at a moment.
#[derive(Debug, PartialEq, Eq)]
pub struct Due {
    /// The slots of the requests whose frames are wanted.
    pub slots: Vec<usize>,
    /// When to look again. `None`: nothing is under way.
    pub next: Option<u64>,
}

impl Plan {
    pub fn new(after: u64) -> Plan {
        Plan { after, followed: HashMap::new(), routes: Routes::default(), late: 0, changed: false }
    }

    /// `calls`: slots and starts of what is under way; `line`: of a request that is to be followed.
    pub fn look(&mut self, now: u64, calls: &[(usize, u64)], line: impl Fn(usize) -> Option<Vec<u8>>) -> Due {
        self.end_others(now, calls);
        let mut next = None::<u64>;
        for &(slot, started) in calls {
            let age = now.saturating_sub(started);
            if age < self.after {
                let begins = started + self.after;
                next = Some(next.map_or(begins, |next| next.min(begins)));
                continue;
            }
            // Also to notice when it ends. A stream that lasts for hours is no reason to wake up every moment.
            let mut again = now + pause(age);
            if let Some(each) = self.followed.get(&slot) {
                if each.count < MOST_SAMPLES && each.next > now {
                    again = again.min(each.next);
                }
                next = Some(next.map_or(again, |next| next.min(again)));
                continue;
            }
            next = Some(next.map_or(again, |next| next.min(again)));
            if self.followed.len() >= MOST_FOLLOWED {
                self.late += 1;
            } else if let Some(line) = line(slot) {
                let (hash, name) = (route::hash(&line), route::name(&line));
                // The first sample stands for all the time before it.
                let new = Followed { started, hash, name, last: started, next: now, count: 0, samples: Vec::new() };
                self.followed.insert(slot, new);
            }
        }
        Due { slots: self.due(now), next }
    }

    fn due(&mut self, now: u64) -> Vec<usize> {
        let due = self.followed.iter().filter(|(_, each)| each.count < MOST_SAMPLES && now >= each.next);
        let mut due: Vec<(u64, usize)> = due.map(|(slot, each)| (each.next, *slot)).collect();
        due.sort_unstable();
        for (next, _) in &due {
            self.late += u64::from(now.saturating_sub(*next) > 2 * STEP);
        }
        due.into_iter().take(MOST_AT_ONCE).map(|(_, slot)| slot).collect()
    }

    /// What was found where a request is that began then. No frames: nothing could be told.
    pub fn sampled(&mut self, now: u64, (slot, started): (usize, u64), frames: Frames) {
        let Some(each) = self.followed.get_mut(&slot).filter(|each| each.started == started) else { return };
        let weight = now.saturating_sub(std::mem::replace(&mut each.last, now));
        each.next = now + pause(now.saturating_sub(started));
        each.count += 1;
        if frames.is_empty() {
            return;
        }
        let Some(stack) = self.routes.kept(frames) else { return };
        match each.samples.iter_mut().find(|(known, _)| *known == stack) {
            Some((_, sum)) => *sum += weight,
            None => each.samples.push((stack, weight)),
        }
    }

    /// The application has told the route of a request.
    pub fn named(&mut self, named: Named) {
        if let Some(each) = self.followed.get_mut(&named.slot).filter(|each| each.started == named.started) {
            (each.hash, each.name) = (named.hash, named.name);
        }
    }

    /// How long a request runs before it is looked at.
    pub fn after(&self) -> u64 {
        self.after
    }

    pub fn report(&self, counts: &Counts) -> Vec<u8> {
        self.routes.report(counts, self.after, self.late)
    }

    /// When the request in this slot began, if it is followed.
    pub fn started(&self, slot: usize) -> Option<u64> {
        self.followed.get(&slot).map(|each| each.started)
    }

    fn end_others(&mut self, now: u64, calls: &[(usize, u64)]) {
        let under_way: HashMap<usize, u64> = calls.iter().copied().collect();
        let ended: Vec<usize> = self
            .followed
            .iter()
            .filter(|(slot, each)| under_way.get(slot) != Some(&each.started))
            .map(|(slot, _)| *slot)
            .collect();
        for slot in ended {
            if let Some(each) = self.followed.remove(&slot) {
                self.routes.add((each.hash, &each.name), now.saturating_sub(each.started), &each.samples);
                self.changed = true;
            }
        }
    }
}

/// Between two looks at a request of this age.
fn pause(age: u64) -> u64 {
    STEP.max(age / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tricorn_sys::clock::SECOND;

    const AFTER: u64 = 50 * MILLI;

    fn line(_: usize) -> Option<Vec<u8>> {
        Some(b"GET /a/1".to_vec())
    }

    fn frames() -> Frames {
        vec![PyFrame { file: "a.py".into(), function: "f".into(), line: 3 }]
    }

    /// Runs one request of that length; the samples it had, and the looks.
    fn run(plan: &mut Plan, begin: u64, length: u64) -> (u32, u32) {
        let (mut now, mut samples, mut looks) = (begin, 0, 0);
        while now < begin + length {
            let due = plan.look(now, &[(0, begin)], line);
            looks += 1;
            for slot in due.slots {
                plan.sampled(now, (slot, begin), frames());
                samples += 1;
            }
            now = due.next.expect("something is under way");
        }
        assert_eq!(plan.look(begin + length, &[], line), Due { slots: Vec::new(), next: None });
        (samples, looks)
    }

    #[test]
    fn a_short_request_is_looked_at_once_and_leaves_nothing() {
        let mut plan = Plan::new(AFTER);
        assert_eq!(run(&mut plan, SECOND, AFTER), (0, 1));
        assert!(!plan.changed);
    }

    #[test]
    fn a_long_request_is_sampled_less_and_less_and_not_without_end() {
        for (length, most) in [(300 * MILLI, 25), (10 * SECOND, 64), (3600 * SECOND, MOST_SAMPLES)] {
            let mut plan = Plan::new(AFTER);
            let (samples, _) = run(&mut plan, SECOND, length);
            assert!((10..=most).contains(&samples), "{samples} of {length} ns");
            assert!(plan.changed && plan.late == 0);
        }
    }

    #[test]
    fn what_the_samples_weigh_is_the_time_that_was_seen() {
        for (length, expected) in [(300 * MILLI, 260..=300), (20 * SECOND, 17_000..=20_000)] {
            let mut plan = Plan::new(AFTER);
            run(&mut plan, SECOND, length);
            let report = plan.report(&Counts::default());
            let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
            let route = &report["routes"][0];
            assert_eq!(route["route"], "GET /a/{}");
            let seen = route["stacks"][0]["milliseconds"].as_array().into_iter().flatten();
            let seen: u64 = seen.filter_map(serde_json::Value::as_u64).sum();
            assert!(expected.contains(&seen), "{seen} ms");
        }
    }

    #[test]
    fn a_request_ends_also_where_the_next_one_has_its_place() {
        let mut plan = Plan::new(AFTER);
        let (first, second) = (SECOND, 2 * SECOND);
        plan.look(first + AFTER, &[(0, first)], line);
        assert!(!plan.changed);
        plan.look(second + AFTER, &[(0, second)], line);
        assert!(plan.changed, "the first one is over");
        assert_eq!(plan.started(0), Some(second));
    }

    #[test]
    fn a_look_that_comes_late_is_counted() {
        let mut plan = Plan::new(AFTER);
        plan.look(SECOND + AFTER, &[(0, SECOND)], line);
        plan.look(SECOND + AFTER + 2 * STEP, &[(0, SECOND)], line);
        assert_eq!(plan.late, 0);
        plan.look(SECOND + AFTER + 3 * STEP, &[(0, SECOND)], line);
        assert_eq!(plan.late, 1);
    }

    #[test]
    fn many_slow_requests_are_not_all_looked_at_and_it_says_so() {
        let mut plan = Plan::new(AFTER);
        let calls: Vec<(usize, u64)> = (0..1000).map(|slot| (slot, SECOND)).collect();
        let due = plan.look(SECOND + AFTER, &calls, line);
        assert_eq!((due.slots.len(), plan.followed.len()), (MOST_AT_ONCE, MOST_FOLLOWED));
        assert_eq!(plan.late, 1000 - MOST_FOLLOWED as u64);
    }

    #[test]
    fn frames_of_another_request_at_the_same_place_are_not_taken() {
        let mut plan = Plan::new(AFTER);
        plan.look(SECOND + AFTER, &[(0, SECOND)], line);
        plan.sampled(SECOND + AFTER, (0, SECOND + 1), frames());
        assert_eq!(plan.followed[&0].count, 0);
    }

    #[test]
    fn what_lasts_is_looked_at_more_and_more_seldom() {
        let mut plan = Plan::new(AFTER);
        let (mut now, mut looks) = (SECOND, 0);
        while now < 3600 * SECOND {
            let due = plan.look(now, &[(0, SECOND)], line);
            for slot in due.slots {
                plan.sampled(now, (slot, SECOND), frames());
            }
            now = due.next.expect("it is under way");
            looks += 1;
        }
        assert!((MOST_SAMPLES..2 * MOST_SAMPLES + 40).contains(&looks), "{looks}");
        assert_eq!((plan.followed[&0].count, plan.late), (MOST_SAMPLES, 0));
    }
}
