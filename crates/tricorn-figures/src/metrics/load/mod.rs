//! The load report: how much of what the workers can do is used, how fast they are, and how much is asked of them.
//!
//! ```text
//!   pages, ledger ──▶ sample, once a second ──▶ memory.rs (the group's page) ──▶ figures.rs ──▶ Report ──▶ texts.rs
//!                     by the worker that          the last ones                   three seconds    │
//!                     is asked first                                              weight.rs ◀──────┘
//! ```
//!
//! No timer takes samples: the first question of a second does. All workers answer from the same samples. The figures are those of
//! the last three seconds; without a question in the time before, those of the time since the last question.
mod figures;
mod memory;
mod texts;
mod weight;

pub use figures::Report;
pub use texts::{Asked, Balance, agent, json, orca};

use super::totals::Totals;
use crate::scoreboard::group::Group;
use crate::scoreboard::ledger::Ledger;
use crate::scoreboard::{APP_TIME, Scoreboard, State, Word};
use figures::Figures;
use memory::{Memory, Sample};
use tricorn_sys::clock::SECOND;
use tricorn_sys::processor;
use weight::Pace;

/// What the report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The pages that workers use or have used.
    pub pages: &'a [Scoreboard],
    pub ledger: Option<Ledger>,
    pub group: Group,
    /// Monotonic nanoseconds.
    pub now: u64,
}

/// What the settings say of it.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// A worker is one event loop, however many calls are under way in it.
    pub hub: bool,
    /// As `Config` has it.
    pub queue_limit: usize,
    pub queue_timeout: u64,
}

/// A queue is one to be told of after this time.
const STANDING: u64 = SECOND;
/// Without a question for so long, what was seen of the queue says nothing of now.
const STALE: u64 = 5 * SECOND;

/// The report of this moment. A sample is taken if the last one is a second old.
pub fn look(scene: &Scene<'_>, rules: Rules) -> Report {
    let totals = Totals::read(scene.pages, scene.ledger, &[]);
    let memory = Memory(scene.group);
    let present = Present::of(scene, rules, &totals);
    let arrived = memory.arrived(arrived(&totals));
    let gap = memory.takes_turn(scene.now);
    if gap.is_some_and(|gap| gap > STALE) {
        memory.note_queue(false, scene.now);
    }
    let overloaded = memory.note_queue(present.is_over, scene.now) >= STANDING;
    if let Some(gap) = gap {
        memory.add(take(scene, rules, arrived, totals.word(Word::Requests), present.capacity));
        let figures = Figures::of(&memory.samples(), memory.recent());
        let pace = Pace { figures, overloaded, gap, now: scene.now };
        pace.keep(&memory);
    }
    Report {
        capacity: present.capacity,
        concurrency: present.concurrency,
        running: totals.word(Word::InFlight),
        waiting: totals.word(Word::Queued),
        figures: Figures::of(&memory.samples(), memory.recent())
            .or_at_once(totals.word(Word::InFlight), present.capacity),
        weight: memory.weight(),
        overloaded,
        arrived,
        busy: memory.busy(),
    }
}

/// What there is at this moment.
struct Present {
    capacity: u64,
    concurrency: u64,
    is_over: bool,
}

impl Present {
    fn of(scene: &Scene<'_>, rules: Rules, totals: &Totals) -> Present {
        let workers = totals.states[State::Serving as usize];
        let most = scene.group.limit().unwrap_or(u64::MAX);
        let concurrency = totals.capacity.min(most);
        let waits = totals.oldest_wait(scene.now);
        let is_long = totals.word(Word::Queued).saturating_mul(2) > (rules.queue_limit as u64).saturating_mul(workers);
        let is_old = waits.saturating_mul(2) > rules.queue_timeout;
        Present {
            capacity: if rules.hub { workers } else { concurrency },
            concurrency,
            is_over: (rules.queue_limit > 0 && is_long) || (rules.queue_timeout > 0 && is_old),
        }
    }
}

/// All requests that ever came to be answered by the application, those too that were turned away or left before.
fn arrived(totals: &Totals) -> u64 {
    let words = [
        Word::Requests,
        Word::InFlight,
        Word::Queued,
        Word::QueueFull,
        Word::QueueLate,
        Word::LeftQueue,
        Word::Leaving,
    ];
    words.into_iter().fold(0u64, |sum, word| sum.wrapping_add(totals.word(word)))
}

/// What the workers have come to. It is for the worker that has the turn: it notes on each page how far that was seen.
fn take(scene: &Scene<'_>, rules: Rules, arrived: u64, calls: u64, capacity: u64) -> Sample {
    let memory = Memory(scene.group);
    let before = memory.samples().last().copied();
    let gap = before.map_or(0, |before| scene.now.saturating_sub(before.time));
    let mut busy = 0u64;
    for page in scene.pages.iter().filter(|page| lives(page)) {
        let slots = if rules.hub { 1 } else { page.threads() };
        // A page of the first sample has its time from before.
        let more = if rules.hub { loop_was_busy(*page) } else { calls_were_busy(*page, scene.now) };
        busy = busy.saturating_add(more.min(slots.saturating_mul(gap)));
    }
    let room = capacity.saturating_mul(gap);
    let before = before.unwrap_or_default();
    Sample {
        time: scene.now,
        arrived,
        calls,
        busy: before.busy.saturating_add(busy),
        room: before.room.saturating_add(room),
    }
}

fn lives(page: &Scoreboard) -> bool {
    [State::Booting, State::Serving, State::Draining].iter().any(|state| *state as u64 == page.get(Word::State))
}

/// For how long calls on threads were under way since this was asked last: those that are over, and what there is of the others.
fn calls_were_busy(page: Scoreboard, now: u64) -> u64 {
    let running = page.starts().fold(0u64, |sum, (_, started)| sum.saturating_add(now.saturating_sub(started)));
    since(page, Word::LoadSeen, page.exported(APP_TIME).1.wrapping_add(running))
}

/// For how long an event loop was not free for others since this was asked last.
///
/// A loop whose time is kept tells what it worked. Otherwise it is what the process computed, and what the loop was blocked.
fn loop_was_busy(page: Scoreboard) -> u64 {
    let computed = processor::time_of_process(page.pid()).unwrap_or_else(|| page.get(Word::Cpu));
    let used = since(page, Word::LoadSeen, computed.saturating_add(page.get(Word::LoopBlocked)));
    used.max(since(page, Word::LoadSeenLoop, page.get(Word::LoopWorked)))
}

/// How much more it is than it was. It is less for a moment when a call has ended and is not counted yet; a worker's page begins
/// at nothing.
fn since(page: Scoreboard, word: Word, value: u64) -> u64 {
    let before = page.get(word);
    page.set(word, value.max(before));
    value.saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::group::GroupWord;
    use tricorn_sys::clock::MILLI;

    /// A server of threads in virtual time.
    struct Model {
        pages: Vec<Scoreboard>,
        group: Group,
        now: u64,
        rules: Rules,
    }

    impl Model {
        fn new(workers: usize, threads: usize) -> Model {
            let pages = (0..workers).map(|_| Scoreboard::private(threads)).collect::<Vec<_>>();
            for page in &pages {
                page.begin(threads);
                page.state(State::Serving);
            }
            let rules = Rules { hub: false, queue_limit: 10, queue_timeout: 20 * SECOND };
            let model = Model { pages, group: Group::private(), now: 1000 * SECOND, rules };
            model.look();
            model
        }

        fn look(&self) -> Report {
            let Model { group, now, .. } = *self;
            look(&Scene { pages: &self.pages, ledger: None, group, now }, self.rules)
        }

        /// So many calls of this length ended on this worker.
        fn end(&self, worker: usize, calls: u64, length: u64) {
            for _ in 0..calls {
                self.pages[worker].observe(APP_TIME, length);
                self.pages[worker].add(Word::Requests, 1);
            }
        }

        /// Seconds in which a worker ends so many calls each; the report of the last one.
        fn run(&mut self, seconds: u64, calls: u64, length: u64) -> Report {
            let mut report = self.look();
            for _ in 0..seconds {
                self.now += SECOND;
                self.end(0, calls, length);
                report = self.look();
            }
            report
        }
    }

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 0.001 * expected.abs().max(1.0)
    }

    #[test]
    fn a_known_load_is_told_as_it_is() {
        let mut model = Model::new(1, 4);
        let report = model.run(5, 40, 50 * MILLI);
        let Figures { utilisation, rps, speed, demand, window, .. } = report.figures;
        assert!(near(utilisation, 0.5) && near(rps, 40.0) && near(speed, 80.0), "{report:?}");
        assert!(near(demand, 0.5) && near(window, 3.0), "{report:?}");
        assert_eq!((report.capacity, report.concurrency, report.weight, report.arrived), (4, 4, 100, 200));
        assert_eq!(report.busy, 200 * 50 * MILLI);
    }

    #[test]
    fn what_is_turned_away_is_asked_for_too() {
        let mut model = Model::new(1, 4);
        for _ in 0..4 {
            model.pages[0].add(Word::QueueFull, 60);
            model.pages[0].add(Word::QueueLate, 10);
            model.pages[0].add(Word::LeftQueue, 10);
            model.run(1, 80, 50 * MILLI);
        }
        let report = model.look();
        assert!(near(report.figures.utilisation, 1.0) && near(report.figures.demand, 2.0), "{report:?}");
    }

    #[test]
    fn a_long_call_is_busy_from_its_beginning_and_no_more_at_its_end() {
        let mut model = Model::new(1, 2);
        model.pages[0].call_begins(0, model.now, [b"GET /", b"", b""]);
        model.pages[0].set(Word::InFlight, 1);
        for second in 1..=10 {
            let report = model.run(1, 0, 0);
            assert!(near(report.figures.utilisation, 0.5), "{second}: {report:?}");
        }
        model.pages[0].call_ends(0);
        model.pages[0].set(Word::InFlight, 0);
        model.end(0, 1, 10 * SECOND);
        let report = model.look();
        assert_eq!((report.busy, report.arrived), (10 * SECOND, 1));
        let report = model.run(3, 0, 0);
        assert!(near(report.figures.utilisation, 0.0) && report.busy == 10 * SECOND, "{report:?}");
    }

    #[test]
    fn a_worker_that_is_gone_takes_nothing_back() {
        let mut model = Model::new(2, 2);
        model.pages[1].call_begins(0, model.now, [b"GET /", b"", b""]);
        model.run(4, 20, 50 * MILLI);
        let before = model.look();
        // What it had under way is lost; another has the page.
        model.pages[1].begin(2);
        model.pages[1].state(State::Serving);
        let report = model.run(1, 20, 50 * MILLI);
        assert_eq!(report.busy - before.busy, SECOND);
        let report = model.run(4, 20, 50 * MILLI);
        assert!(near(report.figures.utilisation, 0.25) && report.arrived == 180, "{report:?}");
    }

    #[test]
    fn questions_of_one_second_have_one_answer() {
        let mut model = Model::new(1, 4);
        let first = model.run(4, 40, 50 * MILLI);
        model.end(0, 70, 50 * MILLI);
        model.now += SECOND - 1;
        let second = model.look();
        assert_eq!((second.figures, second.weight, second.busy), (first.figures, first.weight, first.busy));
        assert_eq!(second.arrived, first.arrived + 70, "what is counted is counted");
        model.now += 1;
        assert_ne!(model.look().figures, first.figures);
    }

    #[test]
    fn before_two_samples_it_is_what_runs_now() {
        let model = Model::new(1, 4);
        model.pages[0].set(Word::InFlight, 3);
        let report = model.look();
        assert!(near(report.figures.utilisation, 0.75) && near(report.figures.demand, 0.75), "{report:?}");
        assert_eq!((report.figures.rps, report.figures.window, report.weight), (0.0, 0.0, 100));
    }

    #[test]
    fn after_a_silence_it_is_the_time_since_the_last_question() {
        let mut model = Model::new(1, 4);
        model.run(5, 40, 50 * MILLI);
        model.now += 30 * SECOND;
        model.end(0, 600, 50 * MILLI);
        let report = model.look();
        assert!(near(report.figures.window, 30.0) && near(report.figures.utilisation, 0.25), "{report:?}");
    }

    #[test]
    fn a_queue_that_stands_for_a_second_is_an_overload_and_halves_the_weight() {
        let mut model = Model::new(1, 4);
        assert_eq!(model.run(4, 80, 50 * MILLI).weight, 100);
        model.pages[0].set(Word::Queued, 5);
        assert!(!model.run(2, 80, 50 * MILLI).overloaded, "half of the limit is none");
        model.pages[0].set(Word::Queued, 6);
        assert!(!model.look().overloaded);
        let reports: Vec<_> = (0..7).map(|_| model.run(1, 80, 50 * MILLI)).collect();
        assert!(reports[0].overloaded, "{reports:?}");
        assert!(reports.iter().map(|report| report.weight).eq([90, 80, 70, 60, 50, 50, 50]), "{reports:?}");
        model.pages[0].set(Word::Queued, 0);
        let report = model.run(2, 80, 50 * MILLI);
        assert_eq!((report.overloaded, report.weight), (false, 70));
    }

    #[test]
    fn a_request_that_waits_for_half_of_its_time_is_an_overload_too() {
        let mut model = Model::new(1, 4);
        model.pages[0].set(Word::Oldest, model.now - 11 * SECOND);
        model.look();
        assert!(model.run(1, 0, 0).overloaded);
        model.now += STALE + 1;
        model.look();
        assert!(!model.look().overloaded, "what was seen before is too old");
        model.rules.queue_timeout = 0;
        assert!(!model.run(2, 0, 0).overloaded);
    }

    #[test]
    fn a_host_that_becomes_slow_is_told_ten_points_a_second() {
        let mut model = Model::new(1, 4);
        assert_eq!(model.run(10, 40, 50 * MILLI).weight, 100);
        let weights: Vec<_> = (0..12).map(|_| model.run(1, 16, 200 * MILLI).weight).collect();
        assert!(weights.windows(2).all(|pair| pair[0] - pair[1] <= 10 && pair[1] <= pair[0]), "{weights:?}");
        assert_eq!(weights[11], 25);
        let weights: Vec<_> = (0..12).map(|_| model.run(1, 40, 50 * MILLI).weight).collect();
        assert_eq!((weights[1] <= 45, weights[11]), (true, 100), "{weights:?}");
    }

    #[test]
    fn a_long_queue_alone_lowers_no_weight() {
        let mut model = Model::new(1, 4);
        model.run(10, 80, 50 * MILLI);
        model.pages[0].set(Word::Queued, 5);
        let report = model.run(20, 80, 50 * MILLI);
        assert_eq!((report.weight, report.waiting), (100, 5));
    }

    #[test]
    fn an_event_loop_has_one_call_s_worth_of_time() {
        let mut model = Model::new(2, 100);
        model.rules.hub = true;
        // Pid 0 has no clock: what the page says counts.
        model.pages.iter().for_each(|page| page.set(Word::Pid, 0));
        for _ in 0..4 {
            model.pages[0].add(Word::LoopWorked, 600 * MILLI);
            model.pages[0].add(Word::Cpu, 100 * MILLI);
            model.pages[1].add(Word::Cpu, 300 * MILLI);
            model.pages[1].add(Word::LoopBlocked, 100 * MILLI);
            model.run(1, 100, 5 * SECOND);
        }
        let report = model.look();
        assert_eq!((report.capacity, report.concurrency), (2, 200));
        assert!(near(report.figures.utilisation, 0.5) && near(report.figures.demand, 0.5), "{report:?}");
        model.pages[0].add(Word::LoopWorked, 60 * SECOND);
        model.run(1, 0, 0);
        assert!(model.look().figures.utilisation <= 1.0);
    }

    #[test]
    fn a_limit_of_concurrency_is_the_capacity() {
        let mut model = Model::new(1, 8);
        model.group.set(GroupWord::Limit, 4);
        let report = model.run(4, 40, 50 * MILLI);
        assert_eq!((report.capacity, report.concurrency), (4, 4));
        assert!(near(report.figures.utilisation, 0.5), "{report:?}");
    }

    #[test]
    fn what_came_is_never_fewer() {
        let model = Model::new(1, 4);
        model.pages[0].set(Word::InFlight, 3);
        assert_eq!(model.look().arrived, 3);
        model.pages[0].set(Word::InFlight, 0);
        assert_eq!(model.look().arrived, 3);
    }

    #[test]
    fn nonsense_on_the_pages_makes_numbers() {
        let page = Scoreboard::filled(u64::MAX);
        let scene = Scene { pages: &[page], ledger: None, group: Group::private(), now: 5 * SECOND };
        look(&scene, Rules { hub: false, queue_limit: 1, queue_timeout: 1 });
        page.set(Word::State, State::Serving as u64);
        let report = look(&Scene { now: 7 * SECOND, ..scene }, Rules { hub: true, queue_limit: 1, queue_timeout: 1 });
        assert!(report.figures.utilisation.is_finite() && report.figures.demand.is_finite(), "{report:?}");
    }
}
