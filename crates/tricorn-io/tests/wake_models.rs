//! Every interleaving of threads that sleep with those that wake them: no wake-up is lost, and none is rung twice.
//!
//! The words are those of the product, over loom's atomics: `waiting/watch.rs` (what the monitor is at), `until.rs` (until when a
//! thread sleeps beside others: the monitor of a hub, the sampler), `rung.rs` (whether a hub is rung for), `attention.rs` (whether the
//! monitor looks at streams with each tick), and, under its lock, `exchange/turn.rs` (whose turn it is to send). loom takes a sequentially
//! consistent access for an acquire-release one; the fences here stand for the order among such accesses that C11 promises,
//! and that its store-load pairs rest on.
//!
//! The models end: a wake-up that is lost is a deadlock, which loom reports with the interleaving that led there.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod atomics {
    use loom::sync::atomic;
    pub use loom::sync::atomic::Ordering;
    pub use loom::sync::atomic::fence;

    /// The order among sequentially consistent accesses, before one of them.
    fn keep(order: Ordering) {
        if order == Ordering::SeqCst {
            fence(Ordering::SeqCst);
        }
    }

    macro_rules! ordered {
        ($name:ident, $value:ty) => {
            #[derive(Debug)]
            pub struct $name(atomic::$name);

            #[allow(dead_code, reason = "each word uses some of them")]
            impl $name {
                pub fn new(value: $value) -> $name {
                    $name(atomic::$name::new(value))
                }

                pub fn load(&self, order: Ordering) -> $value {
                    keep(order);
                    self.0.load(order)
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    keep(order);
                    self.0.store(value, order);
                }

                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    keep(order);
                    self.0.swap(value, order)
                }

                pub fn compare_exchange(
                    &self,
                    from: $value,
                    to: $value,
                    good: Ordering,
                    bad: Ordering,
                ) -> Result<$value, $value> {
                    keep(good);
                    self.0.compare_exchange(from, to, good, bad)
                }

                /// Never fails for no reason: that would be one more turn of a loop.
                pub fn compare_exchange_weak(
                    &self,
                    from: $value,
                    to: $value,
                    good: Ordering,
                    bad: Ordering,
                ) -> Result<$value, $value> {
                    keep(good);
                    self.0.compare_exchange(from, to, good, bad)
                }
            }
        };
    }

    macro_rules! counting {
        ($name:ident, $value:ty) => {
            #[allow(dead_code, reason = "each word uses some of them")]
            impl $name {
                pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                    keep(order);
                    self.0.fetch_or(value, order)
                }

                pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                    keep(order);
                    self.0.fetch_and(value, order)
                }

                pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    keep(order);
                    self.0.fetch_add(value, order)
                }
            }
        };
    }

    ordered!(AtomicBool, bool);
    ordered!(AtomicU8, u8);
    ordered!(AtomicU32, u32);
    ordered!(AtomicU64, u64);
    counting!(AtomicU8, u8);
    counting!(AtomicU32, u32);
}

#[allow(dead_code, reason = "a model uses a part of the word")]
#[path = "../src/waiting/watch.rs"]
mod watch;

#[allow(dead_code, reason = "a model uses a part of the word")]
#[path = "../src/waiting/until.rs"]
mod until;

#[path = "../src/waiting/rung.rs"]
mod rung;

#[path = "../src/waiting/attention.rs"]
mod attention;

#[allow(dead_code, reason = "a model uses a part of the state")]
#[path = "../src/exchange/turn.rs"]
mod turn;

use atomics::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use attention::Attention;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use rung::Rung;
use tricorn_proto::message::{Method, Version};
use turn::{Asked, Looked, Turn};
use until::Until;
use watch::Watch;

/// An alarm: a ring stays until it is waited for, as in an eventfd.
struct Alarm {
    rung: Mutex<bool>,
    changed: Condvar,
    rings: AtomicU32,
}

impl Alarm {
    fn new() -> Alarm {
        Alarm { rung: Mutex::new(false), changed: Condvar::new(), rings: AtomicU32::new(0) }
    }

    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        *self.rung.lock().expect("no panic") = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().expect("no panic");
        while !*rung {
            rung = self.changed.wait(rung).expect("no panic");
        }
        *rung = false;
    }
}

struct Worker {
    watch: Watch,
    alarm: Alarm,
    /// Calls under way, as the slots tell them.
    calls: AtomicU32,
    /// Streams that were listed, and whether the monitor looks at them.
    streams: AtomicU32,
    attention: Attention,
    /// An app thread waits for events. Under the baton.
    polls: AtomicBool,
    baton: Mutex<()>,
}

impl Worker {
    fn new() -> Arc<Worker> {
        Arc::new(Worker {
            watch: Watch::new(),
            alarm: Alarm::new(),
            calls: AtomicU32::new(0),
            streams: AtomicU32::new(0),
            attention: Attention::new(),
            polls: AtomicBool::new(false),
            baton: Mutex::new(()),
        })
    }

    fn begin_call(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.watch.wake() {
            self.alarm.ring();
        }
    }

    fn begin_stream(&self) {
        self.streams.fetch_add(1, Ordering::SeqCst);
        if self.attention.note() && self.watch.stream_began() {
            self.alarm.ring();
        }
    }

    /// A look of the monitor that finds nothing left to send. How many streams it knows of.
    fn look_at_streams(&self) -> u32 {
        let had_news = self.attention.begin_look();
        let known = self.streams.load(Ordering::SeqCst);
        self.attention.end_look(had_news);
        known
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

#[test]
fn a_call_that_begins_while_the_monitor_lies_down_is_seen() {
    loom::model(|| {
        let worker = Worker::new();
        let app = thread::spawn({
            let worker = worker.clone();
            move || worker.begin_call()
        });
        while worker.calls() == 0 {
            worker.watch.lie_down();
            if worker.calls() == 0 {
                worker.alarm.wait();
            }
            worker.watch.get_up();
        }
        app.join().expect("a thread that ends");
    });
}

#[test]
fn of_two_calls_that_wake_the_monitor_one_rings() {
    loom::model(|| {
        let worker = Worker::new();
        worker.watch.lie_down();
        let apps = [(); 2].map(|()| {
            let worker = worker.clone();
            thread::spawn(move || worker.begin_call())
        });
        worker.alarm.wait();
        worker.watch.get_up();
        for app in apps {
            app.join().expect("a thread that ends");
        }
        assert_eq!(worker.alarm.rings.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_stream_that_begins_in_a_long_tick_ends_it() {
    loom::model(|| {
        let worker = Worker::new();
        let app = thread::spawn({
            let worker = worker.clone();
            move || worker.begin_stream()
        });
        worker.watch.rest();
        // A long tick ends by itself in the product; here it must be ended.
        if !worker.attention.is_drawn() {
            worker.alarm.wait();
        }
        worker.watch.get_up();
        assert_eq!(worker.streams.load(Ordering::SeqCst), 1);
        app.join().expect("a thread that ends");
    });
}

#[test]
fn a_stream_that_begins_while_the_monitor_looks_for_the_last_time_is_seen() {
    loom::model(|| {
        let worker = Worker::new();
        worker.begin_stream();
        assert_eq!(worker.look_at_streams(), 1);
        assert!(worker.attention.is_drawn(), "for one tick more");
        let app = thread::spawn({
            let worker = worker.clone();
            move || worker.begin_stream()
        });
        // Ticks end by themselves, and long ticks here do not.
        while worker.look_at_streams() < 2 {
            worker.watch.rest();
            if !worker.attention.is_drawn() {
                worker.alarm.wait();
            }
            worker.watch.get_up();
        }
        app.join().expect("a thread that ends");
    });
}

#[test]
fn responses_that_follow_one_another_ring_once() {
    loom::model(|| {
        let worker = Worker::new();
        worker.watch.rest();
        worker.begin_stream();
        worker.watch.get_up();
        let app = thread::spawn({
            let worker = worker.clone();
            move || worker.begin_stream()
        });
        worker.look_at_streams();
        worker.watch.rest();
        app.join().expect("a thread that ends");
        assert!(worker.attention.is_drawn());
        assert_eq!(worker.alarm.rings.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn an_app_thread_that_comes_back_ends_the_covering() {
    loom::model(|| {
        let worker = Worker::new();
        worker.watch.app_thread_comes();
        let app = thread::spawn({
            let worker = worker.clone();
            move || {
                let guard = worker.baton.lock().expect("no panic");
                if worker.watch.app_thread_came() {
                    worker.alarm.ring();
                }
                drop(guard);
                worker.begin_call();
            }
        });
        let guard = worker.baton.lock().expect("no panic");
        let covers = worker.watch.is_app_thread_coming();
        if covers {
            worker.watch.cover();
        }
        drop(guard);
        if covers {
            while worker.watch.is_covering() {
                worker.alarm.wait();
            }
        }
        app.join().expect("a thread that ends");
        assert!(!worker.watch.is_covering() && !worker.watch.is_app_thread_coming());
    });
}

#[test]
fn an_app_thread_that_leaves_the_wait_for_events_wakes_a_monitor_that_sleeps_beside_calls() {
    loom::model(|| {
        let worker = Worker::new();
        worker.begin_call();
        worker.polls.store(true, Ordering::SeqCst);
        let app = thread::spawn({
            let worker = worker.clone();
            move || {
                let guard = worker.baton.lock().expect("no panic");
                worker.polls.store(false, Ordering::SeqCst);
                if worker.watch.wake() {
                    worker.alarm.ring();
                }
                drop(guard);
            }
        });
        // Until it is its turn to see to what waits.
        loop {
            worker.watch.lie_down();
            let guard = worker.baton.lock().expect("no panic");
            let may_sleep = worker.polls.load(Ordering::SeqCst);
            drop(guard);
            if may_sleep {
                worker.alarm.wait();
            }
            worker.watch.get_up();
            if !may_sleep {
                break;
            }
        }
        app.join().expect("a thread that ends");
    });
}

#[test]
fn a_request_to_cover_is_taken_once_and_survives_every_change_of_mode() {
    loom::model(|| {
        let worker = Worker::new();
        let app = thread::spawn({
            let worker = worker.clone();
            move || {
                worker.watch.ask_to_cover();
                worker.alarm.ring();
            }
        });
        worker.watch.rest();
        worker.watch.get_up();
        worker.watch.lie_down();
        worker.alarm.wait();
        worker.watch.get_up();
        assert!(worker.watch.take_cover_request());
        assert!(!worker.watch.take_cover_request());
        app.join().expect("a thread that ends");
    });
}

/// A thread that sleeps until the earliest deadline, and what has to be done at some time.
struct Sleeper {
    until: Until,
    alarm: Alarm,
    /// 0: nothing is due.
    due: AtomicU64,
}

impl Sleeper {
    fn new() -> Arc<Sleeper> {
        Arc::new(Sleeper { until: Until::new(), alarm: Alarm::new(), due: AtomicU64::new(0) })
    }

    /// As a call that begins does.
    fn set(&self, due: u64) {
        self.due.store(due, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.until.wake_by(due) {
            self.alarm.ring();
        }
    }

    /// Sleeps until the first deadline was seen.
    fn sleep(&self) {
        while self.due.load(Ordering::Relaxed) == 0 {
            self.until.lie_down();
            if self.due.load(Ordering::Relaxed) == 0 {
                self.until.sleep_until(None);
                self.alarm.wait();
            }
            self.until.get_up();
        }
    }
}

#[test]
fn a_deadline_that_is_set_while_the_sleeper_lies_down_is_seen() {
    loom::model(|| {
        let sleeper = Sleeper::new();
        let call = thread::spawn({
            let sleeper = sleeper.clone();
            move || sleeper.set(5)
        });
        sleeper.sleep();
        call.join().expect("a thread that ends");
    });
}

#[test]
fn of_two_threads_with_one_deadline_one_rings() {
    loom::model(|| {
        let sleeper = Sleeper::new();
        sleeper.until.lie_down();
        sleeper.until.sleep_until(None);
        let calls = [(); 2].map(|()| {
            let sleeper = sleeper.clone();
            thread::spawn(move || sleeper.set(5))
        });
        sleeper.alarm.wait();
        for call in calls {
            call.join().expect("a thread that ends");
        }
        assert_eq!(sleeper.alarm.rings.load(Ordering::SeqCst), 1);
    });
}

/// A hub, its wake-up, and an order for it (`waiting/tails`: which frames it is to tell).
struct Hub {
    rung: Rung,
    wakeup: Alarm,
    order: AtomicBool,
}

impl Hub {
    fn ring(&self) {
        if self.rung.ring() {
            self.wakeup.ring();
        }
    }

    fn answer(&self) {
        if self.rung.is_set() {
            *self.wakeup.rung.lock().expect("no panic") = false;
            self.rung.answer();
        }
    }
}

#[test]
fn an_order_whose_ring_found_the_hub_rung_for_is_taken() {
    loom::model(|| {
        let hub = Arc::new(Hub { rung: Rung::new(), wakeup: Alarm::new(), order: AtomicBool::new(false) });
        hub.ring(); // for something else
        let sampler = thread::spawn({
            let hub = hub.clone();
            move || {
                hub.order.store(true, Ordering::Relaxed);
                hub.ring();
            }
        });
        loop {
            hub.answer();
            if hub.order.load(Ordering::Relaxed) {
                break;
            }
            hub.wakeup.wait();
        }
        sampler.join().expect("a thread that ends");
    });
}

/// The output of a connection, with so many pieces waiting.
struct Output {
    worker: Arc<Worker>,
    turn: Mutex<(Turn, u32)>,
}

impl Output {
    fn new(turn: Turn) -> Arc<Output> {
        Arc::new(Output { worker: Worker::new(), turn: Mutex::new((turn, 0)) })
    }

    /// Leaves one more piece to the monitor.
    fn leave(&self) {
        let mut guard = self.turn.lock().expect("no panic");
        guard.1 += 1;
        let is_news = guard.0.leave();
        drop(guard);
        if is_news {
            self.worker.begin_stream();
        }
    }

    /// What the monitor sends when it looks. Whether it looks again.
    fn look(&self) -> (u32, bool) {
        let mut guard = self.turn.lock().expect("no panic");
        if !guard.0.is_left() {
            return (0, false);
        }
        (std::mem::take(&mut guard.1), guard.0.looked(Looked::AllSent))
    }
}

#[test]
fn pieces_that_are_left_are_sent_and_a_silent_stream_is_forgotten() {
    // Two words, a lock and an alarm: all interleavings take minutes, those with so many preemptions a second.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let output = Output::new(Turn::default());
        let app = thread::spawn({
            let output = output.clone();
            move || (0..2).for_each(|_| output.leave())
        });
        let Worker { watch, alarm, streams, attention, .. } = &*output.worker;
        let mut sent = 0;
        while sent < 2 || attention.is_drawn() {
            watch.rest();
            // A long tick ends by itself in the product; here it must be ended.
            if !attention.is_drawn() {
                alarm.wait();
            }
            watch.get_up();
            let mut goes_on = attention.begin_look();
            if streams.swap(0, Ordering::SeqCst) > 0 {
                let (count, again) = output.look();
                sent += count;
                streams.fetch_add(u32::from(again), Ordering::SeqCst);
                goes_on |= again;
            }
            attention.end_look(goes_on);
        }
        app.join().expect("a thread that ends");
        assert!(sent == 2 && output.turn.lock().expect("no panic").0 == Turn::Owner);
    });
}

#[test]
fn either_the_application_answers_or_the_monitor() {
    loom::model(|| {
        let asked = Asked { method: Method::Get, version: Version::Http11, request_id: Box::default() };
        let output = Output::new(Turn::Unanswered(asked));
        let app = thread::spawn({
            let output = output.clone();
            move || output.turn.lock().expect("no panic").0.begin()
        });
        let monitor = output.turn.try_lock().is_ok_and(|mut guard| {
            let is_unanswered = matches!(guard.0, Turn::Unanswered(_));
            if is_unanswered {
                guard.0 = Turn::Answered;
            }
            is_unanswered
        });
        assert_ne!(app.join().expect("a thread that ends"), monitor);
    });
}
