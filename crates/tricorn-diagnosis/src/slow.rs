//! Requests on threads that run for longer than `doctor_slow_request`: what each is at, once, and how long it took.
//!
//! ```text
//!   no progress for the limit ──▶ the examiner looks ──▶ record: it goes on ──▶ it ends ──▶ record: how long it took
//! ```
use super::examiner::{Examiner, Finding};
use super::stall_record::{Held, Shares, record, seconds, shortened};
use serde_json::{Map, Value};
use tricorn_sys::clock::{MILLI, SECOND};
use tricorn_sys::signals::ThreadId;

/// Requests that are followed at a time; of others that are slow meanwhile nothing is told.
const MOST: usize = 8;
/// Between two looks at threads: each takes 20 ms of a thread of its own.
const REST: u64 = SECOND;

/// A call that makes no progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silent {
    pub slot: usize,
    pub call: u32,
    pub started: u64,
    pub thread: ThreadId,
}

/// What can be asked when it matters.
pub trait Clerk {
    /// The request's line.
    fn text(&self, slot: usize) -> String;
    /// Whether this call still runs.
    fn runs(&self, slot: usize, call: u32) -> bool;
    /// Requests that wait for a thread.
    fn queued(&self) -> u64;
}

#[derive(Debug)]
pub struct Slow {
    /// 0: nothing is looked for.
    limit: u64,
    next: u64,
    number: u64,
    looked: u64,
    followed: Vec<Followed>,
}

#[derive(Debug)]
struct Followed {
    number: u64,
    silent: Silent,
    text: String,
    /// When it was last seen to run.
    runs: u64,
    finding: Option<Finding>,
    end: Option<u64>,
    /// How much of it was told while it went on.
    told: u64,
    waiting: u64,
}

impl Slow {
    pub fn new(limit: u64) -> Slow {
        Slow { limit, next: 0, number: 0, looked: 0, followed: Vec::new() }
    }

    fn step(&self) -> u64 {
        (self.limit / 10).clamp(5 * MILLI, SECOND / 4)
    }

    /// `silent` tells the calls that have made no progress for so long. A line for the arbiter, if there is one.
    pub fn look(
        &mut self,
        now: u64,
        silent: impl FnOnce(u64) -> Vec<Silent>,
        clerk: &impl Clerk,
        examiner: &mut Examiner,
    ) -> Option<Vec<u8>> {
        if self.limit == 0 {
            return None;
        }
        for each in self.followed.iter_mut().filter(|each| each.end.is_none()) {
            if clerk.runs(each.silent.slot, each.silent.call) {
                each.runs = now;
            } else {
                each.end = Some(now);
            }
        }
        if now >= self.next {
            self.next = now + self.step();
            let found = silent(self.limit);
            self.follow(now, found, clerk, examiner);
        }
        self.tell(now, clerk)
    }

    fn follow(&mut self, now: u64, found: Vec<Silent>, clerk: &impl Clerk, examiner: &mut Examiner) {
        if self.looked > 0 && now < self.looked + REST {
            return;
        }
        let mut wanted = Vec::new();
        for silent in found {
            if self.followed.len() >= MOST || self.follows(&silent) {
                continue;
            }
            self.number += 1;
            wanted.push((self.number, silent.thread));
            let text = clerk.text(silent.slot);
            let (number, finding, end, told, waiting) = (self.number, None, None, 0, clerk.queued());
            self.followed.push(Followed { number, silent, text, runs: now, finding, end, told, waiting });
        }
        if !wanted.is_empty() {
            self.looked = now;
            examiner.ask(wanted);
        }
    }

    fn follows(&self, silent: &Silent) -> bool {
        self.followed.iter().any(|each| (each.silent.slot, each.silent.call) == (silent.slot, silent.call))
    }

    pub fn found(&mut self, finding: Finding) {
        if let Some(each) = self.followed.iter_mut().find(|each| each.number == finding.number) {
            each.finding = Some(finding);
        }
    }

    fn tell(&mut self, now: u64, clerk: &impl Clerk) -> Option<Vec<u8>> {
        self.followed.retain(|each| each.end.is_none() || each.is_known());
        if let Some(index) = self.followed.iter().position(|each| each.end.is_some()) {
            let over = self.followed.swap_remove(index);
            return Some(over.line(now));
        }
        let is_new = |each: &&mut Followed| each.told == 0 && each.is_known();
        let each = self.followed.iter_mut().find(is_new)?;
        each.waiting = each.waiting.max(clerk.queued());
        let line = each.line(now);
        each.told = now.saturating_sub(each.silent.started);
        Some(line)
    }

    /// In how many nanoseconds there may be something to do. `calls` are those under way, with the times of their last progress. A
    /// monitor that sleeps is woken for the end of each.
    pub fn due(&self, now: u64, calls: impl FnOnce() -> Vec<(Silent, u64)>) -> Option<u64> {
        if self.limit == 0 {
            return None;
        }
        // What the examiner has found makes no event.
        if self.followed.iter().any(|each| each.told == 0 || each.end.is_some()) {
            return Some(self.step());
        }
        if self.followed.len() >= MOST {
            return None;
        }
        let rested = if self.looked > 0 { self.looked + REST } else { 0 };
        let unknown = calls().into_iter().filter(|(silent, _)| !self.follows(silent));
        let due = unknown.map(|(_, since)| since.saturating_add(self.limit).max(rested).max(self.next)).min()?;
        Some(due.saturating_sub(now).max(MILLI))
    }
}

impl Followed {
    /// It was looked at while it ran.
    fn is_known(&self) -> bool {
        self.finding.as_ref().is_some_and(|finding| finding.at <= self.runs)
    }

    fn line(&self, now: u64) -> Vec<u8> {
        let Some(finding) = &self.finding else { return Vec::new() };
        let length = self.end.unwrap_or(now).saturating_sub(self.silent.started);
        shortened(|most| {
            let shares = Shares::of_look(&finding.thread);
            let (told, ongoing) = (self.told, self.end.is_none());
            let request = (self.text.as_str(), true);
            let held = Held { length, told, ongoing, request, delayed: self.waiting, shares };
            let mut record: Map<String, Value> = record(held, finding, most);
            let seen = record.insert("verdict".into(), SLOW_REQUEST.into());
            record.insert("seen".into(), seen.unwrap_or_default());
            // It has waited itself, and those that wait for a thread wait for it, among others.
            record.insert("cost".into(), seconds(length).into());
            record.insert("cost_added".into(), seconds(length.saturating_sub(told)).into());
            record
        })
    }
}

const SLOW_REQUEST: &str = "SLOW_REQUEST";

#[cfg(test)]
mod tests {
    use super::super::stall_record::tests::thread;
    use super::*;

    struct Desk {
        over: bool,
    }

    impl Clerk for Desk {
        fn text(&self, _: usize) -> String {
            "GET /report".into()
        }

        fn runs(&self, _: usize, _: u32) -> bool {
            !self.over
        }

        fn queued(&self) -> u64 {
            3
        }
    }

    struct Made {
        slow: Slow,
        examiner: Examiner,
        told: Vec<Value>,
    }

    impl Made {
        fn at(&mut self, now: u64, slots: &[usize], over: bool) {
            let found = |limit| match now >= SECOND + limit {
                true => slots.iter().map(|slot| silent(*slot)).collect(),
                false => Vec::new(),
            };
            let desk = Desk { over };
            let mut line = self.slow.look(now, found, &desk, &mut self.examiner);
            while let Some(told) = line {
                let json = told.strip_prefix(b"stall ").expect("a record");
                self.told.push(serde_json::from_slice(json).expect("JSON"));
                line = self.slow.tell(now, &desk);
            }
        }

        fn finds(&mut self, number: u64, at: u64) {
            self.slow.found(Finding { source: "query()".into(), ..Finding::new(number, thread(), at) });
        }
    }

    fn silent(slot: usize) -> Silent {
        Silent { slot, call: 1, started: SECOND, thread: 7 }
    }

    fn made() -> Made {
        Made { slow: Slow::new(2 * SECOND), examiner: Examiner::idle(), told: Vec::new() }
    }

    #[test]
    fn a_slow_request_is_told_while_it_runs_and_with_its_length_when_it_ends() {
        let mut it = made();
        it.at(2 * SECOND, &[4], false);
        assert_eq!(it.slow.number, 0, "it is younger than the limit");
        it.at(3 * SECOND, &[4], false);
        it.finds(1, 3 * SECOND + 20 * MILLI);
        it.at(4 * SECOND, &[4], false);
        it.at(9 * SECOND, &[], true);
        let [first, end] = it.told.as_slice() else { panic!("two are told: {:?}", it.told) };
        assert_eq!((&first["verdict"], &first["seen"]), (&"SLOW_REQUEST".into(), &"BLOCKED_SYSCALL".into()));
        assert_eq!((&first["duration"], &first["ongoing"]), (&3.0.into(), &true.into()));
        assert_eq!(
            (&first["request"], &first["line"], &first["delayed"]),
            (&"GET /report".into(), &3.into(), &3.into())
        );
        assert_eq!((&end["duration"], &end["added"], &end["again"]), (&8.0.into(), &5.0.into(), &true.into()));
        assert!(it.slow.followed.is_empty());
    }

    #[test]
    fn what_was_over_before_the_look_is_not_told() {
        let mut it = made();
        it.at(3 * SECOND, &[4], false);
        it.at(4 * SECOND, &[], true);
        it.finds(1, 4 * SECOND);
        it.at(5 * SECOND, &[], true);
        assert!(it.told.is_empty() && it.slow.followed.is_empty());
    }

    #[test]
    fn many_slow_requests_have_one_look_and_a_bound() {
        let mut it = made();
        let all: Vec<usize> = (0..40).collect();
        for now in 30..90 {
            it.at(now * SECOND / 10, &all, false);
        }
        assert_eq!((it.slow.number, it.slow.followed.len()), (MOST as u64, MOST));
        assert_eq!(it.slow.looked, 3 * SECOND);
    }

    #[test]
    fn it_can_be_switched_off() {
        let mut it = Made { slow: Slow::new(0), ..made() };
        it.at(90 * SECOND, &[4], false);
        assert_eq!((it.slow.number, it.slow.due(SECOND, || vec![(silent(4), SECOND)])), (0, None));
    }

    #[test]
    fn between_the_limit_and_the_end_nothing_is_due() {
        let mut it = made();
        let due = |slow: &Slow, now, slots: &[usize]| {
            slow.due(now, || slots.iter().map(|slot| (silent(*slot), SECOND)).collect())
        };
        assert_eq!(due(&it.slow, SECOND, &[]), None);
        assert_eq!(due(&it.slow, SECOND, &[4]), Some(2 * SECOND));
        it.at(3 * SECOND, &[4], false);
        assert_eq!(due(&it.slow, 3 * SECOND, &[4]), Some(it.slow.step()), "its finding is waited for");
        it.finds(1, 3 * SECOND + 20 * MILLI);
        it.at(3 * SECOND + it.slow.step(), &[4], false);
        assert_eq!((it.told.len(), due(&it.slow, 4 * SECOND, &[4])), (1, None));
        assert_eq!(due(&it.slow, 3 * SECOND + 300 * MILLI, &[4, 5]), Some(700 * MILLI), "after a rest");
        it.at(9 * SECOND, &[], true);
        assert_eq!((it.told.len(), due(&it.slow, 9 * SECOND, &[])), (2, None), "its end is told at once");
    }
}
