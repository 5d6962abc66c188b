//! A worker that has more to do than it can: it is busy all the time, requests wait for it, and no single call is why.
//!
//! ```text
//!   hub:     its loop works, or its thread computes or wants to, 95 % of the time; requests take longer than the threshold on average
//!   threads: each is at a request, and another one has waited for five thresholds
//!                          ──▶ for fifty thresholds in a row ──▶ record: begins … ends
//! ```
use super::stall_record::{rounded, seconds, shortened};
use serde_json::{Map, Value};
use tricorn_sys::clock::SECOND;

/// In thresholds (`doctor_threshold`): between two looks, how long requests wait at least, and for how long it is so.
const STEP: u64 = 5;
const WAIT: u64 = 5;
const SPAN: u64 = 50;
/// The share of its time in which a loop works.
const BUSY: f64 = 0.95;
/// Looks in a row that find something else, after which it is over.
const QUIET: u32 = 3;
/// How often what goes on is told again, for the sums.
const AGAIN: u64 = 10 * SECOND;

/// What is known at a look. Times are nanoseconds, and all but the last two sums.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    pub hub: bool,
    /// How long the loop has worked, if it tells.
    pub worked: Option<u64>,
    /// What the threads of requests, or the hub's, have computed, and wanted a processor in vain.
    pub computed: u64,
    pub queued: u64,
    /// What all threads of the process have computed.
    pub process: u64,
    /// Requests that have ended.
    pub requests: u64,
    pub in_flight: u64,
    /// Requests that wait for a thread; for how long the first of them has.
    pub waiting: u64,
    pub oldest: u64,
    /// App threads that have nothing to do.
    pub free: u64,
    /// One call holds up the loop, or a pool has no room.
    pub explained: bool,
}

#[derive(Debug)]
pub struct Saturation {
    threshold: u64,
    next: u64,
    /// What was seen last may become an episode.
    is_pressed: bool,
    before: Option<(u64, Sample)>,
    episode: Option<Episode>,
    over: Option<Episode>,
}

#[derive(Debug)]
struct Episode {
    since: u64,
    first: Sample,
    last: (u64, Sample),
    quiet: u32,
    /// Nanoseconds that requests have waited.
    cost: u64,
    told_cost: u64,
    told: u64,
    told_at: u64,
    most: u64,
}

impl Saturation {
    pub fn new(threshold: u64) -> Saturation {
        Saturation { threshold, next: 0, is_pressed: false, before: None, episode: None, over: None }
    }

    pub fn is_due(&self, now: u64) -> bool {
        self.threshold > 0 && now >= self.next
    }

    /// To be called when it is due.
    pub fn look(&mut self, now: u64, sample: Sample) -> Option<Vec<u8>> {
        let step = STEP * self.threshold;
        self.next = now + step;
        let before = self.before.replace((now, sample));
        // After a pause nothing is known of the time between.
        self.is_pressed = before.is_some_and(|(then, before)| is_pressed(now.saturating_sub(then), before, sample));
        let full = before.is_some_and(|(then, before)| {
            now.saturating_sub(then) <= 4 * step && self.is_full(now.saturating_sub(then), before, sample)
        });
        self.follow(now, before, sample, full);
        self.tell(now)
    }

    fn is_full(&self, length: u64, before: Sample, now: Sample) -> bool {
        if now.explained || before.explained {
            return false;
        }
        if !now.hub {
            return now.free == 0 && now.waiting > 0 && now.oldest >= WAIT * self.threshold;
        }
        let since = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let used = since(now.computed, before.computed) + since(now.queued, before.queued);
        let worked = match (now.worked, before.worked) {
            (Some(now), Some(then)) => since(now, then),
            _ => used,
        };
        let ended = now.requests.saturating_sub(before.requests).max(1);
        // Little's law: requests take so long on average.
        let latency = length.saturating_mul(now.in_flight.min(before.in_flight)) / ended;
        worked >= BUSY * length as f64 && now.in_flight > 1 && latency >= self.threshold
    }

    fn follow(&mut self, now: u64, before: Option<(u64, Sample)>, sample: Sample, full: bool) {
        match &mut self.episode {
            Some(episode) if full => {
                let waiting = episode.waiting(sample);
                episode.cost += now.saturating_sub(episode.last.0) * waiting;
                episode.most = episode.most.max(waiting);
                (episode.last, episode.quiet) = ((now, sample), 0);
            }
            Some(episode) => {
                episode.quiet += 1;
                // Before it is told, each look has to find it.
                if episode.quiet >= QUIET || episode.told_at == 0 {
                    let episode = self.episode.take();
                    self.over = episode.filter(|episode| episode.told_at > 0);
                }
            }
            None => {
                if let Some((since, first)) = before.filter(|_| full) {
                    let mut episode = Episode {
                        since,
                        first,
                        last: (now, sample),
                        quiet: 0,
                        cost: 0,
                        told_cost: 0,
                        told: 0,
                        told_at: 0,
                        most: 0,
                    };
                    let waiting = episode.waiting(sample);
                    (episode.most, episode.cost) = (waiting, now.saturating_sub(since) * waiting);
                    self.episode = Some(episode);
                }
            }
        }
    }

    fn tell(&mut self, now: u64) -> Option<Vec<u8>> {
        if let Some(mut over) = self.over.take() {
            return Some(over.line(now, false));
        }
        let span = SPAN * self.threshold;
        let episode = self.episode.as_mut().filter(|episode| now.saturating_sub(episode.since) >= span)?;
        let is_due = episode.told_at == 0 || now.saturating_sub(episode.told_at) >= AGAIN;
        is_due.then(|| episode.line(now, true))
    }

    /// In how many nanoseconds there may be something to do. Calls that merely wait saturate nothing: of a worker that has begun to
    /// be busy the next look finds that, which comes with its events.
    pub fn due(&self, now: u64) -> Option<u64> {
        let works = self.is_pressed || self.episode.is_some() || self.over.is_some();
        (self.threshold > 0 && works).then(|| self.next.saturating_sub(now).max(self.threshold / 10))
    }
}

/// Whether a loop has worked for half of this time, or requests wait for threads.
fn is_pressed(length: u64, before: Sample, now: Sample) -> bool {
    if !now.hub {
        return now.waiting > 0;
    }
    let used = now.computed.saturating_sub(before.computed) + now.queued.saturating_sub(before.queued);
    let worked = now.worked.zip(before.worked).map_or(used, |(now, then)| now.saturating_sub(then));
    worked >= length / 2
}

impl Episode {
    /// Requests that are held up.
    fn waiting(&self, sample: Sample) -> u64 {
        if sample.hub { sample.in_flight.saturating_sub(1) } else { sample.waiting }
    }

    fn line(&mut self, now: u64, ongoing: bool) -> Vec<u8> {
        let length = self.last.0.saturating_sub(self.since);
        let line = shortened(|_| self.record(length, ongoing));
        (self.told_at, self.told, self.told_cost) = (now, length, self.cost);
        line
    }

    fn record(&self, length: u64, ongoing: bool) -> Map<String, Value> {
        let (first, last) = (self.first, self.last.1);
        let share = |now: u64, then: u64| rounded(now.saturating_sub(then) as f64 / length.max(1) as f64);
        let fields = [
            ("duration", seconds(length).into()),
            ("added", seconds(length.saturating_sub(self.told)).into()),
            ("again", (self.told_at > 0).into()),
            ("ongoing", ongoing.into()),
            ("verdict", "SATURATED".into()),
            ("computed", share(last.computed, first.computed).into()),
            ("queued", share(last.queued, first.queued).into()),
            ("process", share(last.process, first.process).into()),
            ("delayed", self.most.into()),
            ("waiting", self.most.into()),
            ("in_flight", last.in_flight.into()),
            ("oldest", seconds(if last.hub { 0 } else { last.oldest }).into()),
            ("requests", last.requests.saturating_sub(first.requests).into()),
            ("cost", seconds(self.cost).into()),
            ("cost_added", seconds(self.cost.saturating_sub(self.told_cost)).into()),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tricorn_sys::clock::MILLI;

    struct Made {
        saturation: Saturation,
        now: u64,
        sample: Sample,
        told: Vec<Value>,
    }

    fn made(hub: bool) -> Made {
        let sample = Sample { hub, worked: hub.then_some(0), ..Sample::default() };
        Made { saturation: Saturation::new(100 * MILLI), now: SECOND, sample, told: Vec::new() }
    }

    impl Made {
        /// So many looks, between which that changes.
        fn look(&mut self, times: u64, change: impl Fn(&mut Sample)) {
            for _ in 0..times {
                change(&mut self.sample);
                assert!(self.saturation.is_due(self.now));
                if let Some(line) = self.saturation.look(self.now, self.sample) {
                    let json = line.strip_prefix(b"stall ").expect("a record");
                    self.told.push(serde_json::from_slice(json).expect("JSON"));
                }
                self.now += 500 * MILLI;
            }
        }
    }

    /// A loop that works for so many milliseconds of 500, with so many requests under way and begun.
    fn works(milliseconds: u64, in_flight: u64, begun: u64) -> impl Fn(&mut Sample) {
        move |sample| {
            sample.worked = sample.worked.map(|worked| worked + milliseconds * MILLI);
            sample.computed += milliseconds * MILLI;
            (sample.in_flight, sample.requests) = (in_flight, sample.requests + begun);
        }
    }

    #[test]
    fn a_loop_that_works_all_the_time_while_requests_wait_is_told_once_and_at_its_end() {
        let mut it = made(true);
        it.look(10, works(495, 30, 50));
        assert!(it.told.is_empty(), "it is not long enough");
        it.look(4, works(495, 30, 50));
        it.look(3, works(100, 3, 50));
        let [first, end] = it.told.as_slice() else { panic!("two are told: {:?}", it.told) };
        assert_eq!((&first["verdict"], &first["ongoing"]), (&"SATURATED".into(), &true.into()));
        assert_eq!((&first["computed"], &first["delayed"]), (&0.99.into(), &29.into()));
        assert_eq!((&end["ongoing"], &end["duration"]), (&false.into(), &6.5.into()));
        assert!(it.saturation.episode.is_none() && it.saturation.over.is_none());
    }

    #[test]
    fn a_loop_that_tells_nothing_is_judged_by_what_its_thread_computes_or_wants_to() {
        let mut it = made(true);
        it.sample.worked = None;
        it.look(12, |sample| {
            works(300, 30, 50)(sample);
            sample.queued += 190 * MILLI;
        });
        assert_eq!(it.told.len(), 1);
        assert_eq!(it.told[0]["queued"], 0.38);
    }

    #[test]
    fn a_busy_loop_with_fast_requests_and_one_that_waits_are_healthy() {
        for (milliseconds, in_flight, begun) in [(499, 64, 10_000), (400, 500, 50), (499, 1, 1)] {
            let mut it = made(true);
            it.look(40, works(milliseconds, in_flight, begun));
            assert!(it.told.is_empty(), "{milliseconds} {in_flight} {begun}");
        }
    }

    #[test]
    fn one_call_that_holds_up_the_loop_is_no_saturation() {
        let mut it = made(true);
        it.look(40, |sample| {
            works(499, 30, 50)(sample);
            sample.explained = sample.requests.is_multiple_of(250);
        });
        assert!(it.told.is_empty());
    }

    #[test]
    fn threads_that_are_all_busy_while_requests_wait_for_long_are_told() {
        let waits = |sample: &mut Sample| (sample.waiting, sample.oldest) = (3, 600 * MILLI);
        let mut it = made(false);
        it.look(40, |sample| (sample.waiting, sample.oldest) = (3, 400 * MILLI));
        it.look(40, |sample| {
            waits(sample);
            sample.free = 1;
        });
        assert!(it.told.is_empty());
        let mut it = made(false);
        it.look(12, waits);
        let [record] = it.told.as_slice() else { panic!("one is told: {:?}", it.told) };
        assert_eq!((&record["waiting"], &record["oldest"], &record["cost"]), (&3.into(), &0.6.into(), &15.0.into()));
    }

    #[test]
    fn a_look_is_due_while_there_is_much_to_do_and_at_no_other_time() {
        let mut it = made(true);
        it.look(3, works(1, 1000, 0));
        assert_eq!(it.saturation.due(it.now), None, "of calls that wait");
        it.look(1, works(300, 1000, 5));
        assert!(it.saturation.due(it.now).is_some());
        let mut it = made(false);
        it.look(3, |sample| sample.in_flight = 30);
        assert_eq!(it.saturation.due(it.now), None);
        it.look(1, |sample| sample.waiting = 1);
        assert!(it.saturation.due(it.now).is_some());
    }

    #[test]
    fn of_a_time_without_a_look_nothing_is_known() {
        let mut it = made(true);
        it.look(8, works(499, 30, 50));
        it.now += 10 * SECOND;
        it.look(8, works(499, 30, 50));
        assert!(it.told.is_empty());
    }
}
