//! What holds up an event loop for longer than `doctor_threshold`: one record for each time.
//!
//! ```text
//!   at the same for the threshold ──▶ the examiner looks ──▶ the loop goes on ──▶ record: how long, what, where, what waited
//! ```
//!
//! The arbiter makes a line of the log of it, sums up what comes again, and keeps it (`python/tricorn/stalls`).
use super::examiner::{Examiner, Finding};
use super::stall_record::{self, Held, Shares};
use tricorn_sys::clock::{MILLI, SECOND};
use tricorn_sys::signals::ThreadId;

/// A stall that lasts for so long is told before it is over, and once more at its end.
const LASTING: u64 = 700 * MILLI;
/// How long a report waits for the look that was asked for.
const PATIENCE: u64 = SECOND;
/// A monitor that is so late has been without a processor.
const LATE: u64 = 20 * MILLI;
/// For so long a call that held up the loop explains why requests take long.
const MOMENT: u64 = SECOND;
/// The shares of an episode are told where it was seen for so long; else those of the look.
const SEEN: u64 = 20 * MILLI;

/// What the monitor sees at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    pub now: u64,
    /// Since when the loop is at the same, and its thread. `None`: it is not at anything.
    pub held_up: Option<(u64, ThreadId)>,
    /// Requests that are under way, or wait.
    pub requests: u64,
    /// How much later than it meant to the monitor looks. The process may have been stopped, and all of its threads with it.
    pub late: u64,
}

/// What the monitor can ask when it matters.
pub trait Witness {
    /// When what the loop was at at a moment was over.
    fn end_of(&self, moment: u64) -> Option<u64>;
    /// The request that began last, and whether it is the only one.
    fn request(&self) -> (String, bool);
    /// Nanoseconds that a thread has had a processor, and waited for one.
    fn used(&self, thread: ThreadId) -> Option<(u64, u64)>;
}

#[derive(Debug)]
pub struct Stalls {
    /// 0: nothing is looked for.
    threshold: u64,
    number: u64,
    /// Since when the loop was at the same, and how much of that time the monitor was late in.
    paused: (u64, u64),
    /// When one call was last found to hold up the loop.
    named: Option<u64>,
    episode: Option<Episode>,
    /// Over, and not told yet.
    waiting: Option<Episode>,
}

/// One time that the loop was held up.
#[derive(Debug)]
struct Episode {
    number: u64,
    since: u64,
    /// `None`: it goes on.
    end: Option<u64>,
    /// Most requests that were there besides the one that held up the loop.
    delayed: u64,
    /// The request that had begun last, and whether it is the one that holds up the loop.
    request: (String, bool),
    finding: Option<Finding>,
    /// How much of it was told while it went on.
    told: u64,
    /// What the thread had used when it was first seen, and when it was last.
    used: [Option<Used>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Used {
    at: u64,
    computed: u64,
    queued: u64,
}

impl Episode {
    fn shares(&self, finding: &Finding) -> Shares {
        let [Some(first), Some(last)] = self.used else { return Shares::of_look(&finding.thread) };
        let length = last.at.saturating_sub(first.at);
        if length < SEEN {
            return Shares::of_look(&finding.thread);
        }
        let part = |now: u64, then: u64| now.saturating_sub(then) as f64 / length as f64;
        Shares::new(part(last.computed, first.computed), part(last.queued, first.queued))
    }

    fn line(&self, finding: &Finding, now: u64) -> Vec<u8> {
        let held = Held {
            length: self.end.unwrap_or(now).saturating_sub(self.since),
            told: self.told,
            ongoing: self.end.is_none(),
            request: (&self.request.0, self.request.1),
            delayed: self.delayed,
            shares: self.shares(finding),
        };
        stall_record::line(held, finding)
    }

    fn see(&mut self, now: u64, used: Option<(u64, u64)>) {
        let used = used.map(|(computed, queued)| Used { at: now, computed, queued });
        self.used = [self.used[0].or(used), used.or(self.used[1])];
    }
}

impl Stalls {
    pub fn new(threshold: u64) -> Stalls {
        Stalls { threshold, number: 0, paused: (0, 0), named: None, episode: None, waiting: None }
    }

    /// Looks at the loop: a line for the arbiter.
    pub fn look(&mut self, scene: Scene, witness: &impl Witness, examiner: &mut Examiner) -> Option<Vec<u8>> {
        if self.threshold == 0 {
            return None;
        }
        self.follow(scene, witness, examiner);
        self.tell(scene.now)
    }

    /// The loop is held up by one call, or was a moment ago.
    pub fn is_on(&self, now: u64) -> bool {
        let is_one = |episode: &Episode| episode.finding.as_ref().is_some_and(Finding::is_one_call);
        self.episode.as_ref().is_some_and(is_one) || self.named.is_some_and(|named| now < named + MOMENT)
    }

    pub fn found(&mut self, finding: Finding) {
        // What was seen when the loop had gone on says nothing of what had held it up.
        let is_of = |episode: &&mut Episode| {
            episode.number == finding.number && episode.end.is_none_or(|end| finding.at <= end)
        };
        if let Some(episode) = self.episode.iter_mut().chain(self.waiting.iter_mut()).find(is_of) {
            if finding.is_one_call() {
                self.named = Some(finding.at);
            }
            episode.finding = Some(finding);
        }
    }

    fn follow(&mut self, scene: Scene, witness: &impl Witness, examiner: &mut Examiner) {
        let Scene { now, held_up, requests, .. } = scene;
        let delayed = requests.saturating_sub(1);
        if let Some(mut episode) = self.episode.take() {
            if let Some((since, thread)) = held_up
                && since == episode.since
            {
                episode.see(now, witness.used(thread));
                episode.delayed = episode.delayed.max(delayed);
                self.episode = Some(episode);
                return;
            }
            episode.end = Some(witness.end_of(episode.since).unwrap_or(now));
            if episode.finding.as_ref().is_some_and(|finding| episode.end < Some(finding.at)) {
                episode.finding = None;
            }
            self.waiting = Some(episode);
        }
        self.note_pause(scene);
        if let Some((since, thread)) = held_up
            && now.saturating_sub(since) >= self.threshold + self.paused_since(since)
        {
            self.number += 1;
            examiner.ask(vec![(self.number, thread)]);
            let mut episode = Episode {
                number: self.number,
                since,
                end: None,
                delayed,
                request: witness.request(),
                finding: None,
                told: 0,
                used: [None; 2],
            };
            episode.see(now, witness.used(thread));
            self.episode = Some(episode);
        }
    }

    /// A loop that was stopped together with its monitor is not held up by what it was at.
    fn note_pause(&mut self, scene: Scene) {
        let Some((since, _)) = scene.held_up else { return };
        let before = self.paused_since(since);
        let late = if scene.late >= LATE { scene.late.min(scene.now.saturating_sub(since)) } else { 0 };
        self.paused = (since, before + late);
    }

    fn paused_since(&self, since: u64) -> u64 {
        if self.paused.0 == since { self.paused.1 } else { 0 }
    }

    fn tell(&mut self, now: u64) -> Option<Vec<u8>> {
        if let Some(episode) = self.waiting.take() {
            let late = episode.end.is_some_and(|end| now.saturating_sub(end) >= PATIENCE);
            match &episode.finding {
                // Many short things, one after another: no call of them is to be named.
                Some(finding) if finding.turns => {}
                Some(finding) => return Some(episode.line(finding, now)),
                None if late => {} // it was over before it could be looked at
                None => self.waiting = Some(episode),
            }
        }
        let episode = self.episode.as_mut().filter(|episode| episode.told == 0)?;
        let length = now.saturating_sub(episode.since);
        let finding = episode.finding.as_ref().filter(|finding| length >= LASTING && !finding.turns)?;
        let line = episode.line(finding, now);
        episode.told = length;
        Some(line)
    }

    /// In how many nanoseconds there may be something to do.
    pub fn due(&self, scene: Scene) -> Option<u64> {
        if self.threshold == 0 {
            return None;
        }
        if self.episode.is_some() || self.waiting.is_some() {
            return Some((self.threshold / 2).max(MILLI));
        }
        let (since, _) = scene.held_up?;
        let limit = self.threshold + self.paused_since(since);
        Some(since.saturating_add(limit).saturating_sub(scene.now).max(MILLI))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tricorn_doctor::{PyFrame, Thread, Verdict};

    const THREAD: ThreadId = 7;

    /// A loop, and what is told of it, in virtual time.
    struct Watched {
        stalls: Stalls,
        examiner: Examiner,
        /// What is found goes from callback to callback.
        turns: bool,
        /// The share of the look in which its thread waited for a CPU.
        queued: f64,
        told: Vec<Value>,
        /// By how many milliseconds the next look is late.
        late: u64,
    }

    /// A thread that computes for a tenth of the time.
    struct Virtual {
        now: u64,
        end: Option<u64>,
    }

    impl Witness for Virtual {
        fn end_of(&self, _: u64) -> Option<u64> {
            self.end
        }

        fn request(&self) -> (String, bool) {
            ("GET /pay".into(), false)
        }

        fn used(&self, _: ThreadId) -> Option<(u64, u64)> {
            Some((self.now / 10, 0))
        }
    }

    fn record_of(line: &[u8]) -> Value {
        let json = line.strip_prefix(b"stall ").and_then(|rest| rest.strip_suffix(b"\n")).expect("a line");
        serde_json::from_slice(json).expect("JSON")
    }

    impl Watched {
        fn new() -> Watched {
            let (stalls, examiner) = (Stalls::new(100 * MILLI), Examiner::idle());
            Watched { stalls, examiner, turns: false, queued: 0.0, told: Vec::new(), late: 0 }
        }

        /// The monitor looks, at a millisecond.
        fn at(&mut self, now: u64, held_up: Option<u64>, requests: u64, end: Option<u64>) {
            let held_up = held_up.map(|since| (since * MILLI, THREAD));
            let scene = Scene { now: now * MILLI, held_up, requests, late: std::mem::take(&mut self.late) * MILLI };
            let witness = Virtual { now: now * MILLI, end: end.map(|end| end * MILLI) };
            let line = self.stalls.look(scene, &witness, &mut self.examiner);
            self.told.extend(line.map(|line| record_of(&line)));
        }

        fn finds(&mut self, line: i32, at: u64) {
            let number = self.stalls.number;
            let thread = Thread { queued: self.queued, ..thread(line) };
            let finding = Finding::new(number, thread, at * MILLI);
            self.stalls.found(Finding { source: "p.flush()".into(), turns: self.turns, ..finding });
        }

        /// From this millisecond on for a fifth of a second, with one other request.
        fn stall(&mut self, since: u64, line: i32) {
            self.at(since + 150, Some(since), 2, None);
            self.finds(line, since + 170);
            self.at(since + 200, None, 0, None);
        }
    }

    fn thread(line: i32) -> Thread {
        let thread = stall_record::tests::thread();
        Thread {
            tid: THREAD as u32,
            verdict: Verdict::BlockedSyscall,
            sentence: format!("Blocked at app.py:{line} in pay."),
            application: thread.application.map(|frame| PyFrame { line, ..frame }),
            ..thread
        }
    }

    #[test]
    fn what_is_over_before_the_threshold_is_not_looked_at() {
        let mut it = Watched::new();
        it.at(10, Some(1), 1, None);
        let scene = Scene { now: 10 * MILLI, held_up: Some((MILLI, THREAD)), requests: 1, late: 0 };
        assert_eq!(it.stalls.due(scene), Some(91 * MILLI));
        it.at(90, Some(1), 1, None);
        it.at(101, Some(95), 1, None);
        it.at(190, None, 0, None);
        assert_eq!((it.stalls.number, it.told.len()), (0, 0));
    }

    #[test]
    fn a_pause_of_the_whole_process_is_no_stall() {
        let mut it = Watched::new();
        it.at(5, Some(1), 1, None);
        it.late = 600;
        it.at(606, Some(1), 1, None);
        assert_eq!(it.stalls.number, 0, "all of it was stopped meanwhile");
        let scene = Scene { now: 606 * MILLI, held_up: Some((MILLI, THREAD)), requests: 1, late: 0 };
        assert_eq!(it.stalls.due(scene), Some(95 * MILLI));
        it.at(660, Some(650), 1, None);
        it.at(702, Some(650), 1, None);
        assert_eq!(it.stalls.number, 0, "what it is at next begins with the next");
        it.at(751, Some(650), 1, None);
        assert_eq!(it.stalls.number, 1);
        it.at(760, None, 0, None);
        it.late = 500;
        it.at(1400, Some(880), 1, None);
        it.at(1500, Some(880), 1, None);
        assert_eq!(it.stalls.number, 2, "it is at it for 120 ms besides");
    }

    #[test]
    fn a_stall_is_told_when_it_is_over_with_its_own_length() {
        let mut it = Watched::new();
        it.at(101, Some(1), 3, None);
        it.finds(14, 140);
        it.at(151, Some(1), 10, None);
        it.at(320, None, 0, Some(301));
        it.at(330, None, 0, None);
        let [record] = it.told.as_slice() else { panic!("one is told: {:?}", it.told) };
        let told = |name: &str| &record[name];
        assert_eq!((told("duration"), told("added"), told("ongoing")), (&0.3.into(), &0.3.into(), &false.into()));
        assert_eq!(
            (told("verdict"), told("line"), told("source")),
            (&"BLOCKED_SYSCALL".into(), &14.into(), &"p.flush()".into())
        );
        assert_eq!((told("delayed"), told("request"), told("sure")), (&9.into(), &"GET /pay".into(), &false.into()));
        assert_eq!((told("computed"), told("queued")), (&0.1.into(), &0.0.into()), "of the time that was seen");
    }

    #[test]
    fn what_was_seen_afterwards_says_nothing() {
        for (found, over) in [(121, 130), (115, 112)] {
            let mut it = Watched::new();
            it.at(101, Some(1), 1, None);
            if found < over {
                it.at(112, Some(111), 1, Some(108));
                it.finds(14, found);
            } else {
                it.finds(14, found);
                it.at(120, Some(111), 1, Some(108));
            }
            it.at(130, None, 0, None);
            it.at(1200, None, 0, None);
            assert!(it.told.is_empty() && it.stalls.waiting.is_none());
        }
    }

    #[test]
    fn many_short_things_one_after_another_are_no_stall() {
        let mut it = Watched::new();
        it.turns = true;
        it.stall(1000, 14);
        it.at(2101, Some(2000), 2, None);
        it.finds(14, 2140);
        assert!(!it.stalls.is_on(2140 * MILLI));
        it.at(2900, Some(2000), 2, None);
        it.at(2950, None, 0, None);
        assert!(it.told.is_empty() && it.stalls.waiting.is_none());
        it.turns = false;
        it.stall(4000, 14);
        assert!(it.stalls.is_on(4300 * MILLI) && !it.stalls.is_on(5300 * MILLI), "for a moment after its end");
        assert_eq!(it.told.len(), 1);
    }

    #[test]
    fn a_thread_that_got_no_processor_is_told_and_no_reason_why_requests_take_long() {
        let mut it = Watched::new();
        it.queued = 0.8;
        it.stall(1000, 14);
        assert_eq!(it.told.len(), 1);
        assert!(!it.stalls.is_on(1200 * MILLI), "a short callback may have been all that it was at");
        it.queued = 0.2;
        it.stall(4000, 14);
        assert!(it.stalls.is_on(4200 * MILLI));
    }

    #[test]
    fn each_time_is_told() {
        let mut it = Watched::new();
        it.stall(1000, 14);
        it.stall(2000, 14);
        assert_eq!(it.told.len(), 2, "{:?}", it.told);
    }

    #[test]
    fn what_lasts_is_told_meanwhile_and_at_its_end() {
        let mut it = Watched::new();
        it.at(101, Some(1), 1, None);
        it.finds(14, 140);
        it.at(650, Some(1), 1, None);
        assert!(it.told.is_empty());
        it.at(701, Some(1), 1, None);
        it.at(9000, Some(1), 1, None);
        it.at(9501, None, 0, None);
        let told: Vec<_> = it.told.iter().map(|told| (&told["duration"], &told["added"], &told["ongoing"])).collect();
        let expected = [(&0.7.into(), &0.7.into(), &true.into()), (&9.5.into(), &8.8.into(), &false.into())];
        assert_eq!(told, expected);
    }
}
