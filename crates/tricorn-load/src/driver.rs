//! A thread of the generator: its clients, one epoll, and what is due when.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::client::{Moved, Step, Task};
use crate::clock::{Clock, MILLISECOND, SECOND, Usage, nanoseconds};
use crate::closed::Closed;
use crate::failure::Failure;
use crate::open::{Arrival, Open};
use crate::plan::{Model, Plan};
use crate::poller::{Events, Poller};
use crate::pool::{Means, Pool};
use crate::request::{Redirects, Requests, share};
use crate::samples::{Recorder, Samples};
use crate::tally::{Count, Tally};

/// What a thread and the one that started it tell each other.
pub struct Shared {
    /// Set: the thread ends as soon as it can.
    pub stop: AtomicBool,
    /// Set by the thread: it counts nothing more.
    pub ended: AtomicBool,
    /// Answers are counted from here on, nanoseconds.
    pub tally: Mutex<Tally>,
    /// A gauge: connections that are open.
    pub connections: AtomicUsize,
}

/// What a thread came to.
pub struct Done {
    pub usage: Usage,
    /// When its last answer came, or when it gave up waiting for more.
    pub ended: u64,
    pub samples: Option<Samples>,
}

pub struct Driver<'a> {
    plan: &'a Plan,
    requests: &'a Requests,
    shared: &'a Shared,
    clock: Clock,
    /// Which of how many.
    threads: (usize, usize),
    span: Span,
    poller: Poller,
    pool: Pool,
    model: Kind,
    /// When a client is to be woken: to send its next request, or to try a connection again.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    redirects: Redirects,
    left: Left,
    tally: Tally,
    recorder: Option<Recorder>,
}

/// Nanoseconds from the start of the run.
struct Span {
    /// From when on requests count.
    counted: u64,
    /// From when on none is begun.
    until: u64,
    /// How much longer those under way are waited for.
    drain: u64,
    timeout: u64,
}

/// What is left to do.
struct Left {
    /// Requests that may be begun.
    to_begin: u64,
    under_way: u64,
    last_answer: u64,
}

enum Kind {
    Closed(Closed),
    Open(Open),
}

impl<'a> Driver<'a> {
    /// # Errors
    /// A sentence: the system has no epoll for us.
    pub fn new(
        plan: &'a Plan,
        requests: &'a Requests,
        shared: &'a Shared,
        (thread, threads): (usize, usize),
    ) -> Result<Driver<'a>, String> {
        let bounds = &plan.bounds;
        let to_begin = bounds.requests.map_or(u64::MAX, |count| share(count as usize, thread, threads) as u64);
        let streams = plan.streams();
        let model = match &plan.model {
            Model::Closed(closed) => {
                let clients = share(closed.connections, thread, threads) * streams;
                Kind::Closed(Closed::new(closed, (clients, streams), thread))
            }
            Model::Open(open) => Kind::Open(Open::new(open, requests, (thread, threads), streams)),
        };
        let timeout = plan.connection.timeout;
        let warmup = nanoseconds(bounds.warmup);
        let mut driver = Driver {
            plan,
            requests,
            shared,
            clock: Clock::starting_in(Duration::ZERO),
            threads: (thread, threads),
            span: Span {
                counted: warmup,
                until: bounds.seconds.map_or(u64::MAX, |seconds| warmup + nanoseconds(seconds)),
                drain: nanoseconds(bounds.drain),
                timeout: if timeout > 0.0 { nanoseconds(timeout) } else { u64::MAX },
            },
            poller: Poller::new()?,
            pool: Pool::new(plan, requests, (thread, threads)),
            model,
            timers: BinaryHeap::new(),
            redirects: Redirects::default(),
            left: Left { to_begin, under_way: 0, last_answer: 0 },
            tally: Tally::new(plan.has_tls())?,
            recorder: (plan.samples > 0).then(|| Recorder::new(warmup, share(plan.samples, thread, threads))),
        };
        if let Model::Closed(closed) = &plan.model {
            // Each connection has a client before one has two.
            for number in (0..streams).flat_map(|_| (thread..closed.connections).step_by(threads)) {
                let home = requests.homes[number % requests.homes.len()];
                let hatched = Closed::hatched(closed, number);
                driver.timers.extend(driver.pool.add(home, number).map(|client| Reverse((hatched, client))));
            }
        }
        Ok(driver)
    }

    /// Sends what is to be sent from the start of the clock on, and returns when all is answered or the time is over.
    ///
    /// # Errors
    /// A sentence: epoll failed.
    pub fn run(mut self, clock: Clock) -> Result<Done, String> {
        self.clock = clock;
        clock.wait_for_start();
        let mut events = Events::default();
        let (mut next_sweep, mut next_report) = (SWEEP, REPORT);
        let mut before = Usage::now();
        let mut is_counting = self.span.counted == 0;
        let mut now = self.clock.now();
        loop {
            if !is_counting && now >= self.span.counted {
                is_counting = true;
                before = Usage::now();
                self.forget();
            }
            let has_more = self.begin_due(now);
            if now >= next_sweep {
                next_sweep = now + SWEEP;
                self.sweep(now);
            }
            self.flush();
            if now >= next_report {
                next_report = now + REPORT;
                self.report();
            }
            if !has_more && self.is_over(now) {
                break;
            }
            let pause = if has_more { 0 } else { self.next_moment(now).min(next_sweep).min(next_report) };
            let pause = pause.saturating_sub(self.clock.now());
            self.poller.wait(&mut events, Some(Duration::from_nanos(pause)))?;
            let woken = self.clock.now();
            now = woken;
            for token in events.tokens() {
                self.tally.lags.record(now - woken);
                now = self.look(token as u32);
            }
        }
        let ended = self.conclude();
        Ok(Done {
            usage: Usage::now().since(before),
            ended: ended.saturating_sub(self.span.counted),
            samples: self.recorder.map(Recorder::into_samples),
        })
    }

    fn is_over(&mut self, now: u64) -> bool {
        if self.shared.stop.load(Ordering::Relaxed) {
            return true;
        }
        if self.may_begin(now) {
            return false;
        }
        let is_idle = self.left.under_way == 0 && self.held() == 0;
        is_idle || now >= self.span.until.saturating_add(self.span.drain)
    }

    /// Whether a request may still be begun, now or later.
    fn may_begin(&mut self, now: u64) -> bool {
        self.left.to_begin > 0
            && match &mut self.model {
                Kind::Closed(_) => now < self.span.until,
                Kind::Open(open) => open.next_due().is_some_and(|due| due < self.span.until),
            }
    }

    /// When there is something to do without an event.
    fn next_moment(&mut self, now: u64) -> u64 {
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((due, _))| *due);
        let end = if now < self.span.until { self.span.until } else { self.span.until.saturating_add(self.span.drain) };
        let due = match &mut self.model {
            Kind::Open(open) if self.left.to_begin > 0 => open.next_due().filter(|due| *due < self.span.until),
            _ => None,
        };
        timer.min(end).min(due.unwrap_or(u64::MAX))
    }

    fn held(&self) -> usize {
        match &self.model {
            Kind::Closed(_) => 0,
            Kind::Open(open) => open.count_held(),
        }
    }

    /// Begins what is due, some at a time: events are looked at in between. Whether more is due.
    fn begin_due(&mut self, now: u64) -> bool {
        for _ in 0..AT_ONCE {
            match self.timers.peek() {
                Some(Reverse((due, _))) if *due <= now => {}
                _ => break,
            }
            if let Some(Reverse((due, client))) = self.timers.pop() {
                self.wake(client, due, self.clock.now());
            }
        }
        let has_timers = self.timers.peek().is_some_and(|Reverse((due, _))| *due <= now);
        has_timers | self.begin_arrivals(now)
    }

    /// A client whose time was over while it was postponed has two timers: the second one finds it busy.
    fn wake(&mut self, client: u32, due: u64, now: u64) {
        if self.pool.is_postponed(client) {
            self.ask(client, self.pool.task(client), now);
        } else if !self.pool.is_busy(client)
            && self.may_begin(now)
            && let Kind::Closed(closed) = &mut self.model
        {
            let origin = self.pool.origins[client as usize] as usize;
            let request = closed.request(client as usize, &self.requests.cycles[origin]);
            if due > 0 {
                self.tally.lags.record(now - due);
            }
            self.left.to_begin -= u64::from(now >= self.span.counted);
            self.begin(client, Arrival { due: now, request, is_held: false }, now);
        }
    }

    /// Sends what is due in the open model, or holds it until a client is free.
    fn begin_arrivals(&mut self, now: u64) -> bool {
        let last = now.min(self.span.until - 1);
        for _ in 0..AT_ONCE {
            let Kind::Open(open) = &mut self.model else { return false };
            let Some(arrival) = open.due(last).filter(|_| self.left.to_begin > 0) else {
                return self.begin_held();
            };
            self.left.to_begin -= u64::from(arrival.due >= self.span.counted);
            let origin = self.pool.prepared[arrival.request as usize].origin;
            let count = self.pool.len();
            let number = count * self.threads.1 + self.threads.0;
            let client = match open.take(origin, count) {
                None if open.may_add_client(count) => self.pool.add(origin, number),
                client => client,
            };
            let Some(client) = client else {
                open.hold(origin, arrival);
                continue;
            };
            let now = self.clock.now();
            if arrival.due >= self.span.counted {
                self.tally.lags.record(now - arrival.due);
            }
            self.begin(client, arrival, now);
        }
        true
    }

    /// Clients whose connection failed rest, and take what is held from here on. Whether there are more.
    fn begin_held(&mut self) -> bool {
        for _ in 0..AT_ONCE {
            let Kind::Open(open) = &mut self.model else { return false };
            let Some((client, arrival)) = open.match_held() else { return false };
            let now = self.clock.now();
            self.begin(client, arrival, now);
        }
        true
    }

    /// Sends a request now that was due then.
    #[inline]
    fn begin(&mut self, client: u32, Arrival { due, request, is_held }: Arrival, now: u64) {
        if due >= self.span.counted {
            self.tally.count(Count::Sent, 1);
            self.tally.count(Count::Late, u64::from(now - due > MILLISECOND));
        }
        self.left.under_way += 1;
        self.ask(client, Task { request, due, begun: now, redirects: 0, is_retried: false, is_held }, now);
    }

    #[inline]
    fn ask(&mut self, client: u32, task: Task, now: u64) {
        let means = Means { poller: &self.poller, clock: &self.clock, requests: self.requests };
        let step = self.pool.ask(client, task, means);
        self.settle(client, step, now);
    }

    /// Something happened to a connection. When that was dealt with.
    #[inline]
    fn look(&mut self, token: u32) -> u64 {
        let means = Means { poller: &self.poller, clock: &self.clock, requests: self.requests };
        let step = self.pool.look(token, means);
        let now = self.clock.now();
        self.settle(token, step, now);
        self.settle_streams(now);
        self.flush();
        now
    }

    fn settle_streams(&mut self, now: u64) {
        while let Some((client, step)) = self.pool.next_step() {
            self.settle(client, step, now);
        }
    }

    /// Sends what streams have to send. A connection that breaks has requests that are sent again, which go out, too.
    #[inline]
    fn flush(&mut self) {
        loop {
            let means = Means { poller: &self.poller, clock: &self.clock, requests: self.requests };
            if !self.pool.flush(means) {
                return;
            }
            self.settle_streams(self.clock.now());
        }
    }

    /// What a step came to is dealt with; the clock was read behind it.
    fn settle(&mut self, client: u32, step: Step, now: u64) {
        match step {
            Step::Pending => {}
            Step::Answered(status) => self.answered(client, status, now),
            Step::Failed(failure) => self.failed(client, failure, now),
            Step::Postponed => self.timers.push(Reverse((now + MILLISECOND, client))),
            Step::Stale | Step::Unprocessed => {
                let task = self.pool.task(client);
                let is_repeatable = self.pool.prepared[task.request as usize].is_idempotent;
                if !task.is_retried && (is_repeatable || step == Step::Unprocessed) {
                    self.tally.count(Count::Retried, u64::from(task.due >= self.span.counted));
                    return self.ask(client, Task { is_retried: true, ..task }, now);
                }
                let failure = if step == Step::Unprocessed { Failure::Refused } else { Failure::Closed };
                self.failed(client, failure, now);
            }
        }
    }

    #[inline]
    fn answered(&mut self, client: u32, status: u16, now: u64) {
        let task = self.pool.task(client);
        if matches!(status, 301 | 302 | 303 | 307 | 308) && self.plan.connection.follows_redirects {
            let location = self.pool.location(client);
            let next = self.redirects.follow(self.requests, &mut self.pool.prepared, task.request, status, location);
            if let Some(request) = next {
                return self.redirect(
                    client,
                    Task { request, redirects: task.redirects + 1, is_retried: false, ..task },
                    now,
                );
            }
        }
        if task.due >= self.span.counted {
            self.tally.answer(status, now - task.due);
            self.record(client, Ok(status), now);
        }
        self.left.last_answer = now;
        self.left.under_way -= 1;
        match &mut self.model {
            Kind::Closed(closed) => {
                let next = closed.next(task.begun, now);
                if next > now {
                    self.timers.push(Reverse((next, client)));
                } else if self.may_begin(now) {
                    self.wake(client, 0, now);
                }
            }
            Kind::Open(open) => {
                let origin = self.pool.origins[client as usize];
                match open.held(origin) {
                    Some(arrival) => self.begin(client, arrival, now),
                    None => open.rest(origin, client),
                }
            }
        }
    }

    fn record(&mut self, client: u32, ended: Result<u16, Failure>, now: u64) {
        if let (Some(recorder), Some(notes)) = (&mut self.recorder, self.pool.notes(client)) {
            recorder.record(self.pool.task(client), notes, ended, now);
        }
    }

    fn redirect(&mut self, client: u32, task: Task, now: u64) {
        if task.redirects > MOST_REDIRECTS {
            return self.failed(client, Failure::Redirects, now);
        }
        self.tally.count(Count::Redirected, u64::from(task.due >= self.span.counted));
        self.ask(client, task, now);
    }

    /// The client tries its next request in a while, so that a server that is down gets a moment.
    fn failed(&mut self, client: u32, failure: Failure, now: u64) {
        let task = self.pool.task(client);
        if task.due >= self.span.counted {
            self.tally.fail(failure);
            self.record(client, Err(failure), now);
        }
        self.left.last_answer = now;
        self.left.under_way -= 1;
        match &mut self.model {
            Kind::Closed(closed) => {
                let pause = if failure.is_of_connection() { BACK_OFF } else { 0 };
                self.timers.push(Reverse((closed.next(task.begun, now) + pause, client)));
            }
            Kind::Open(open) => open.rest(self.pool.origins[client as usize], client),
        }
    }

    /// Gives up requests whose time is over.
    fn sweep(&mut self, now: u64) {
        let moment = now.saturating_sub(self.span.timeout);
        for client in 0..self.pool.len() as u32 {
            if let Some(step) = self.pool.give_up(client, moment) {
                self.settle(client, step, now);
            }
        }
    }

    /// What was counted so far is not: it was the warm-up.
    fn forget(&mut self) {
        self.pool.moved = Moved::default();
        self.tally.clear();
        if let Ok(mut tally) = self.shared.tally.lock() {
            tally.clear();
        }
    }

    /// Tells what was counted since the last time.
    fn report(&mut self) {
        let moved = std::mem::take(&mut self.pool.moved);
        self.tally.count_moved(moved);
        if let Ok(mut tally) = self.shared.tally.lock() {
            tally.add(&self.tally);
        }
        self.tally.clear();
        self.shared.connections.store(self.pool.count_connected(), Ordering::Relaxed);
    }

    /// Counts what is left over. When the run ended.
    fn conclude(&mut self) -> u64 {
        let now = self.clock.now();
        self.tally.count(Count::Unanswered, self.left.under_way);
        self.tally.count(Count::Unsent, self.held() as u64);
        self.report();
        if self.left.under_way > 0 || self.shared.stop.load(Ordering::Relaxed) {
            return now;
        }
        // A run that is bounded by time lasted that long, even if nothing happened at its end.
        let has_more = match &mut self.model {
            Kind::Closed(_) => true,
            Kind::Open(open) => open.next_due().is_some(),
        };
        let is_timed = has_more && self.left.to_begin > 0 && self.span.until < u64::MAX;
        match (is_timed, self.left.last_answer) {
            (true, last) => last.max(self.span.until),
            (false, 0) => now,
            (false, last) => last,
        }
    }
}

/// How often requests are looked at whose time may be over.
const SWEEP: u64 = SECOND / 10;
const REPORT: u64 = SECOND / 4;
/// Requests that are begun between two looks at the events.
const AT_ONCE: usize = 64;
/// As many as Go's client follows, which hey is built on.
const MOST_REDIRECTS: u8 = 10;
const BACK_OFF: u64 = 10 * MILLISECOND;
