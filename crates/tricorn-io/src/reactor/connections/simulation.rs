//! The life of connections in virtual time, without sockets: phases, deadlines and admission, as the reactor uses them.

use super::bridge::Bridge;
use super::deadlines::{Deadlines, TimedPhase};
use super::lifetime::Lifetime;
use super::loan::Loan;
use super::phase::{Change, Phase};
use super::requests::Waits;
use super::timeouts::{BodyVerdict, Timeouts, note_progress};
use crate::clock::{MILLI, SECOND};
use crate::config::{self, BodyRate, QueueOrder};
use crate::exchange::body::{Body, Pending, Spool};
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::exchange::times::Times;
use crate::reactor::admission::{Admission, Limits};
use crate::reactor::outgoing::Outgoing;
use crate::reactor::queue::Queue;
use crate::reactor::wheel::{Tick, tick_at, time_of};
use crate::stream::Stream;
use crate::sys::poll::Token;
use crate::sys::wake::Alarm;
use crate::waiting::capacity::Callers;
use crate::waiting::sleeper::Sleeper;
use std::collections::BTreeMap;
use std::sync::Arc;

const TIMES: Timeouts = Timeouts::of_seconds(10, 60, BodyRate { timeout: 30 * SECOND, bytes_per_second: 100 }, 20);
/// What a client has to acknowledge within the 20 seconds of `TIMES`.
const PROGRESS: u64 = 2_000;
/// What a connection has that is given an age, within a tenth.
const AGE: u64 = 600 * SECOND;
const LIMITS: Limits = Limits { waiting: 2, wait: 5 * SECOND, held: 100 };
/// A deadline is acted upon at the end of its tick: so much later at most.
const LATE: u64 = 2 * (1 << 26);

/// A worker with `threads` app threads, connections, and a clock that the test advances.
struct Worker {
    now: u64,
    deadlines: Deadlines,
    admission: Admission,
    phases: BTreeMap<Token, TimedPhase>,
}

/// A deadline has passed: when, of which connection, in which phase.
type Due = (u64, Token, &'static str);

impl Worker {
    fn new(threads: usize) -> Worker {
        let start = 1_000 * SECOND;
        let sleeper = Arc::new(Sleeper::new(Arc::new(Alarm::new().expect("an eventfd"))));
        let queue = Queue::new(QueueOrder::Fifo);
        let mut admission = Admission::new(queue, Callers::Threads, LIMITS);
        admission.capacity_mut().staff(threads);
        let deadlines = Deadlines::new(TIMES, Lifetime::of(0, AGE, 7), start, sleeper);
        Worker { now: start, deadlines, admission, phases: BTreeMap::new() }
    }

    fn accept(&mut self, token: Token) {
        self.phases.insert(token, TimedPhase::default());
        self.change(token, Change::Accepted);
    }

    fn change(&mut self, token: Token, change: Change) {
        let phase = self.phases.get_mut(&token).expect("it is connected");
        self.deadlines.enter(token, phase, change, self.now);
    }

    fn set(&mut self, token: Token, at: u64) {
        let phase = self.phases.get_mut(&token).expect("it is connected");
        self.deadlines.set(token, phase, at);
    }

    fn name(&self, token: Token) -> &'static str {
        name(self.phases[&token].get())
    }

    /// A request came with one read.
    fn ask(&mut self, token: Token) {
        self.change(token, Change::Head);
        self.change(token, Change::Complete);
        let waits = Waits { trunk: None, complete: self.now, since: self.now };
        self.admission.insert(RequestId::new(token, 0), &waits, self.now);
    }

    /// A thread takes the request that is served next.
    fn begin(&mut self) -> Option<Token> {
        let has_thread = self.admission.capacity().ready() > 0;
        let token = if has_thread { self.admission.next(self.now) } else { None }?.connection();
        self.change(token, Change::Begun(9));
        self.admission.capacity_mut().began();
        Some(token)
    }

    /// Its call is over.
    fn end(&mut self, token: Token, change: Change) {
        self.admission.capacity_mut().ended();
        self.change(token, change);
    }

    /// The same, with all of the reply sent, on a connection that has an age.
    fn keep(&mut self, token: Token, last_from: Tick) {
        self.admission.capacity_mut().ended();
        let phase = self.phases.get_mut(&token).expect("it is connected");
        self.deadlines.keep(token, phase, last_from, self.now);
    }

    /// Lets time pass, as a thread does that sleeps until something fires. What became due.
    fn pass(&mut self, nanos: u64) -> Vec<Due> {
        let (end, mut due) = (self.now + nanos, Vec::new());
        loop {
            let next = self.deadlines.until_next(self.now).map_or(end, |wait| self.now + wait);
            self.now = next.min(end);
            self.deadlines.advance(self.now);
            while let Some((tick, token)) = self.deadlines.next_fired() {
                if let Some(phase) = self.phases.get_mut(&token)
                    && self.deadlines.is_due(token, phase, tick)
                {
                    due.push((self.now, token, name(phase.get())));
                }
            }
            if self.now == end {
                return due;
            }
        }
    }

    /// Lets time pass, in which one connection becomes due, at that time.
    fn pass_until_due(&mut self, nanos: u64, token: Token, phase: &str, at: u64) {
        let due = self.pass(nanos);
        let [(time, who, what)] = due[..] else { panic!("{due:?}") };
        assert_eq!((who, what), (token, phase));
        assert!(
            (at..at + LATE).contains(&time),
            "{} ms after its time",
            time as i64 / 1_000_000 - at as i64 / 1_000_000
        );
    }
}

fn name(phase: &Phase) -> &'static str {
    match phase {
        Phase::Idle => "idle",
        Phase::Handshaking => "handshaking",
        Phase::Multiplexed => "multiplexed",
        Phase::Head => "head",
        Phase::Body => "body",
        Phase::Storing => "storing",
        Phase::Queued => "queued",
        Phase::Opening => "opening",
        Phase::Busy(_) => "busy",
        Phase::Bridged(_) => "bridged",
        Phase::OnLoan(_) => "on loan",
        Phase::Flushing(_) => "flushing",
        Phase::Lingering => "lingering",
    }
}

fn outgoing() -> Change {
    Change::Left(Outgoing::default())
}

#[test]
fn a_silent_client_has_header_timeout() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    let at = worker.now + 10 * SECOND;
    worker.pass_until_due(60 * SECOND, 1, "idle", at);
    assert_eq!(worker.pass(600 * SECOND), [], "a deadline is due once");
}

#[test]
fn a_handshake_has_its_time_and_the_request_behind_it_header_timeout() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    worker.change(1, Change::HandshakeBegun);
    assert_eq!(worker.pass(9 * SECOND), []);
    worker.change(1, Change::HandshakeOver);
    let at = worker.now + 10 * SECOND;
    worker.pass_until_due(60 * SECOND, 1, "idle", at);
    worker.accept(2);
    worker.change(2, Change::HandshakeBegun);
    let at = worker.now + 10 * SECOND;
    worker.pass_until_due(60 * SECOND, 2, "handshaking", at);
}

#[test]
fn a_head_has_header_timeout_from_its_first_byte_and_drops_do_not_move_it() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    assert_eq!(worker.pass(9 * SECOND), []);
    let first = worker.now;
    worker.change(1, Change::Bytes { first });
    worker.pass_until_due(60 * SECOND, 1, "head", first + 10 * SECOND);
}

#[test]
fn a_request_that_waits_or_runs_has_no_deadline_of_its_connection() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    worker.ask(1);
    assert_eq!(worker.pass(3_600 * SECOND), [], "it waits");
    assert_eq!(worker.begin(), Some(1));
    assert_eq!(worker.pass(3_600 * SECOND), [], "it runs");
    worker.end(1, Change::Kept);
    let at = worker.now + 60 * SECOND;
    worker.pass_until_due(100 * SECOND, 1, "idle", at);
}

#[test]
fn a_timer_of_an_exchange_is_due_while_it_runs() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    worker.ask(1);
    worker.begin();
    let at = worker.now + 3 * SECOND;
    let phase = worker.phases.get_mut(&1).expect("it is connected");
    phase.get_mut().attended().expect("it is busy").reminded = true;
    worker.set(1, at);
    worker.pass_until_due(9 * SECOND, 1, "busy", at);
}

#[test]
fn a_reply_goes_on_while_the_client_takes_the_minimum_rate() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    worker.ask(1);
    worker.begin();
    worker.end(1, outgoing());
    let mut acknowledged = 0;
    for taken in [PROGRESS, 5 * PROGRESS, PROGRESS, PROGRESS - 1] {
        let at = worker.phases[&1].deadline();
        worker.pass_until_due(21 * SECOND, 1, "flushing", time_of(at) - (1 << 26));
        acknowledged += taken;
        let outgoing = worker.phases.get_mut(&1).and_then(|phase| phase.get_mut().outgoing()).expect("it is sent");
        let verdict = worker.deadlines.timeouts().judge_reply(outgoing, acknowledged, worker.now);
        assert_eq!(verdict, (taken >= PROGRESS).then_some(worker.now + 20 * SECOND));
        if let Some(until) = verdict {
            worker.set(1, until);
        }
    }
}

#[test]
fn a_reply_that_is_taken_leaves_an_idle_connection() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    worker.ask(1);
    worker.begin();
    worker.end(1, outgoing());
    assert_eq!(worker.pass(19 * SECOND), []);
    worker.change(1, Change::Kept);
    let at = worker.now + 60 * SECOND;
    worker.pass_until_due(90 * SECOND, 1, "idle", at);
}

#[test]
fn requests_wait_for_threads_within_their_limits_and_their_connections_live_on() {
    let mut worker = Worker::new(1);
    for token in 1..=5 {
        worker.accept(token);
        worker.ask(token);
        worker.pass(SECOND / 2);
    }
    assert_eq!(worker.begin(), Some(1));
    assert_eq!(worker.begin(), None, "the thread is busy");
    // Two may wait, and the last to come is one too many.
    while let Some(id) = worker.admission.take_excess(worker.now, || worker.now) {
        worker.change(id.connection(), Change::Kept);
    }
    assert_eq!([2, 3, 4, 5].map(|token| worker.name(token)), ["queued", "queued", "idle", "idle"]);
    let first = worker.admission.due().expect("they wait");
    assert_eq!(worker.pass(first - worker.now), []);
    assert_eq!(worker.admission.take_late(worker.now, 9), [], "the first has begun");
    let due = worker.admission.due().expect("they wait");
    assert_eq!(due, first + SECOND / 2);
    assert_eq!(worker.pass(due - worker.now), []);
    assert_eq!(worker.admission.take_late(worker.now, 9), [RequestId::new(2, 0)]);
    worker.change(2, Change::Shut);
    worker.end(1, Change::Kept);
    assert_eq!((worker.begin(), worker.admission.due()), (Some(3), None), "nothing waits");
    let lingers_until = worker.now + config::LINGER;
    worker.pass_until_due(10 * SECOND, 2, "lingering", lingers_until);
}

#[test]
fn a_drain_shortens_what_clients_may_wait() {
    let mut worker = Worker::new(2);
    (1..=4).for_each(|token| worker.accept(token));
    (1..=2).for_each(|token| worker.ask(token));
    assert_eq!((worker.begin(), worker.begin()), (Some(1), Some(2)));
    worker.end(1, Change::Kept);
    let first = worker.now;
    worker.change(3, Change::Bytes { first });
    worker.deadlines.drain();
    assert_eq!(worker.deadlines.take_to_shorten(0), 0..0, "there is no table");
    let last = worker.deadlines.timeouts().last_of_idle(worker.now);
    assert_eq!(last, worker.now + config::LINGER);
    [1, 4].into_iter().for_each(|token| worker.set(token, last));
    worker.accept(5);
    let due: Vec<_> = worker.pass(3 * SECOND).into_iter().map(|(_, token, phase)| (token, phase)).collect();
    assert_eq!(due, [(1, "idle"), (4, "idle"), (5, "idle")], "the head that has begun has its time");
    worker.end(2, Change::Kept);
    let at = worker.now + config::LINGER;
    worker.pass_until_due(4 * SECOND, 2, "idle", at);
}

#[test]
fn where_idle_connections_are_closed_in_a_drain_only_newcomers_have_a_moment() {
    let mut timeouts = TIMES.closes_idle();
    assert!(!timeouts.ends_idle(), "the worker serves");
    assert_eq!(timeouts.after(&Change::Kept, SECOND), Some(61 * SECOND));
    timeouts.drain();
    assert!(timeouts.ends_idle());
    assert_eq!(timeouts.after(&Change::Accepted, SECOND), Some(SECOND + config::LAST_CALL));
    assert_eq!(timeouts.last_of_idle(SECOND), SECOND + config::LAST_CALL);
}

#[test]
fn where_nothing_is_kept_alive_a_newcomer_has_its_moment_in_a_drain() {
    let mut timeouts = Timeouts::of_seconds(10, 0, BodyRate { timeout: SECOND, bytes_per_second: 1 }, 20);
    timeouts.drain();
    assert_eq!(timeouts.last_of_idle(SECOND), SECOND + config::LINGER);
    assert_eq!(timeouts.after(&Change::Kept, SECOND), Some(SECOND));
}

#[test]
fn a_connection_that_has_its_age_answers_once_more_or_is_closed_when_it_is_idle() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    let last_from = worker.deadlines.lifetime().draw(worker.now);
    let began = worker.now;
    let is_last = |worker: &mut Worker| worker.deadlines.lifetime().is_last(0, last_from, worker.now);
    // It asks every 50 seconds, within the minute that idle connections have.
    while worker.now < began + 500 * SECOND {
        worker.ask(1);
        assert_eq!(worker.begin(), Some(1));
        assert!(!is_last(&mut worker));
        worker.keep(1, last_from);
        assert_eq!(worker.pass(50 * SECOND), []);
    }
    worker.ask(1);
    assert_eq!(worker.begin(), Some(1));
    assert_eq!(worker.pass(200 * SECOND), [], "a call is not ended");
    assert!(time_of(last_from) < worker.now && is_last(&mut worker));
    // It was promised to stay when it began: it has the time of a request that is on its way.
    worker.keep(1, last_from);
    let at = worker.now + config::LINGER;
    worker.pass_until_due(4 * SECOND, 1, "idle", at);
}

#[test]
fn the_end_of_its_age_comes_before_that_of_its_idle_time_or_behind_it() {
    let mut worker = Worker::new(1);
    for age in [20, 58, 90, 1] {
        worker.accept(1);
        worker.ask(1);
        worker.begin();
        let (kept, last_from) = (worker.now, tick_at(worker.now + age * SECOND));
        worker.keep(1, last_from);
        let at = time_of(last_from).clamp(kept + config::LINGER, kept + 60 * SECOND);
        worker.pass_until_due(100 * SECOND, 1, "idle", at);
        worker.phases.remove(&1);
    }
}

/// A request whose head was complete at `now`, with so many bytes of its body.
fn upload(now: u64, bytes: usize) -> Request {
    let mut request = Request { times: Times { head_complete: now, ..Times::default() }, ..Request::default() };
    grow(&mut request, bytes, now);
    request
}

fn grow(request: &mut Request, bytes: usize, now: u64) {
    request.body = Body::Memory(vec![0; request.body.len() as usize + bytes]);
    note_progress(request, now);
}

#[test]
fn a_body_keeps_to_the_minimum_rate_as_a_whole() {
    let mut worker = Worker::new(1);
    worker.accept(1);
    worker.change(1, Change::Head);
    let began = worker.now;
    let mut request = upload(began, 100);
    worker.set(1, worker.deadlines.timeouts().body(&request));
    // 50 bytes a second, where 100 are asked for.
    for _ in 0..58 {
        assert_eq!(worker.pass(SECOND), []);
        grow(&mut request, 50, worker.now);
        worker.set(1, worker.deadlines.timeouts().body(&request));
    }
    // It has 30 seconds, and the 30 that 3000 bytes have earned.
    worker.pass_until_due(5 * SECOND, 1, "body", began + 60 * SECOND);
    let judge = |has_unread| worker.deadlines.timeouts().judge_body(&request, worker.now, || has_unread);
    assert_eq!(judge(false), BodyVerdict::Late { is_slow: true });
    assert_eq!(judge(true), BodyVerdict::Until(worker.now + 100 * MILLI), "the worker is late, not the client");
}

#[test]
fn bytes_that_came_at_once_pay_for_no_silence() {
    let now = 1_000 * SECOND;
    let request = upload(now, 1 << 20);
    assert_eq!(TIMES.body(&request), now + 30 * SECOND);
    let judge = |now| TIMES.judge_body(&request, now, || false);
    assert_eq!(judge(now + 29 * SECOND), BodyVerdict::Until(now + 30 * SECOND));
    assert_eq!(judge(now + 30 * SECOND), BodyVerdict::Late { is_slow: false });
}

#[test]
fn time_in_which_a_body_waits_for_the_disk_is_not_its_clients() {
    let now = 1_000 * SECOND;
    let mut request = upload(now, 0);
    let mut spool = Spool::begin(Pending::None);
    spool.wait(now + SECOND);
    request.body = Body::Spooled(spool);
    assert_eq!(TIMES.disk(&request), Some(now + 31 * SECOND));
    assert_eq!(TIMES.judge_body(&request, now + 30 * SECOND, || false), BodyVerdict::Until(now + 31 * SECOND));
    assert_eq!(TIMES.judge_body(&request, now + 31 * SECOND, || false), BodyVerdict::DiskHangs);
    let Body::Spooled(spool) = &mut request.body else { unreachable!("it was put there") };
    spool.go_on(now + 21 * SECOND);
    request.times.body_mark.1 = now + 21 * SECOND;
    assert_eq!(TIMES.disk(&request), None);
    assert_eq!(TIMES.body(&request), now + 50 * SECOND, "30 s, and 20 for the disk");
}

fn loan() -> Box<Loan> {
    let (near, _) = std::os::unix::net::UnixStream::pair().expect("sockets");
    Box::new(Loan::new(Stream::new(near.into()), None, 0, false))
}

/// Changes that may follow in this phase.
fn next_change(phase: &Phase, roll: u64, now: u64) -> Change {
    match phase {
        Phase::Idle if roll.is_multiple_of(7) => Change::HandshakeBegun,
        Phase::Handshaking => Change::HandshakeOver,
        Phase::Idle if roll.is_multiple_of(13) => Change::Multiplexed,
        Phase::Multiplexed => Change::Shut,
        Phase::Idle if roll.is_multiple_of(2) => Change::Bytes { first: now },
        Phase::Idle | Phase::Head => Change::Head,
        Phase::Body if roll.is_multiple_of(3) => Change::Unwritten,
        Phase::Body | Phase::Storing => Change::Complete,
        Phase::Queued if roll.is_multiple_of(8) => Change::Kept,
        Phase::Queued if roll.is_multiple_of(5) => Change::Opening,
        Phase::Opening if roll.is_multiple_of(3) => Change::Complete,
        Phase::Opening if roll.is_multiple_of(5) => Change::Kept,
        Phase::Opening => Change::Begun(9),
        Phase::Queued if roll.is_multiple_of(7) => Change::Lent(loan()),
        Phase::OnLoan(_) => outgoing(),
        Phase::Queued => Change::Begun(9),
        Phase::Busy(_) if roll.is_multiple_of(5) => Change::Bridged(Box::new(Bridge::parted())),
        Phase::Bridged(_) if roll.is_multiple_of(3) => Change::Shut,
        Phase::Bridged(_) => outgoing(),
        Phase::Busy(_) if roll.is_multiple_of(2) => outgoing(),
        Phase::Busy(_) | Phase::Flushing(_) if roll.is_multiple_of(16) => Change::Shut,
        Phase::Busy(_) | Phase::Flushing(_) | Phase::Lingering => Change::Kept,
    }
}

/// Whatever happens to a thousand connections, a deadline is due neither too early nor too late, and each only once.
#[test]
fn no_deadline_is_missed() {
    let mut worker = Worker::new(1);
    let mut random = 7_u64;
    let mut roll = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let (mut connected, mut ended) = (0, 0);
    while connected < 1_000 || !worker.phases.is_empty() {
        for (time, token, phase) in worker.pass(roll() % (300 * MILLI)) {
            let timed = worker.phases.remove(&token).expect("a deadline is due once");
            assert!(tick_at(time) > timed.deadline(), "{phase} ended too early");
            ended += 1;
        }
        for (token, timed) in &worker.phases {
            let is_late = timed.get().has_deadline() && time_of(timed.deadline()) + LATE < worker.now;
            assert!(!is_late, "{token} is overdue in {}", name(timed.get()));
        }
        if connected < 1_000 {
            connected += 1;
            worker.accept(connected);
        }
        // A change in three steps: the others run into their deadlines. What waits for the application goes on.
        let waiting: Vec<_> = worker.phases.iter().filter(|(_, timed)| !timed.get().has_deadline()).collect();
        let waiting: Vec<_> = waiting.into_iter().map(|(token, _)| *token).collect();
        let one = worker.phases.keys().nth(roll() as usize % worker.phases.len().max(1)).copied();
        for token in waiting.into_iter().chain(one.filter(|_| connected < 1_000)) {
            let phase = worker.phases[&token].get();
            if !matches!(phase, Phase::Lingering) && (!phase.has_deadline() || roll().is_multiple_of(3)) {
                let change = next_change(phase, roll(), worker.now);
                worker.change(token, change);
            }
        }
    }
    assert_eq!(ended, 1_000);
}
