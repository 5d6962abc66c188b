//! Of those that sleep the kernel wakes one for each newcomer and each message. A worker that leaves must not keep that to
//! itself: no other worker comes.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::group::*;
use harness::*;
use std::sync::mpsc::channel;
use tricorn_io::{Engine, Wake, YIELD};

/// The first worker's thread is the test's; the others have one of their own.
struct Row {
    workers: Workers,
    slot: usize,
}

impl Row {
    fn new(count: usize) -> Row {
        let workers = Workers::echo(Plan { by_hand: Some(0), ..plan(count) });
        let slot = workers.servers[0].engine.join(true).expect("a place");
        Row { workers, slot }
    }

    fn engine(&self) -> &Engine {
        &self.workers.servers[0].engine
    }

    /// A client knocks while the first two sleep. Whether that woke the first, which then leaves; the client is answered anyway.
    fn leaves_when_woken(&self, knock: impl FnOnce() -> Client) -> bool {
        let (tell, thread) = channel();
        let (mut client, woken) = std::thread::scope(|scope| {
            let wait = scope.spawn(move || {
                assert!(matches!(self.engine().next(self.slot, None), Wake::Nothing));
                tell.send(rustix::thread::gettid()).expect("the test waits");
                self.engine().wait(self.slot);
            });
            until_asleep(thread.recv().expect("a thread"));
            // A worker that was busy for long comes back to the end of the row.
            self.workers.block(1);
            self.workers.servers[1].until_at_least(Word::Rescues, 1);
            self.workers.unblock(1);
            self.workers.servers[1].until(Word::Free, 1);
            let client = knock();
            until("one of them is awake", || wait.is_finished() || client.has_something());
            let woken = wait.is_finished();
            self.workers.servers[0].set(Word::Orders, YIELD);
            self.engine().drain();
            (client, woken)
        });
        self.serve();
        assert_eq!(client.response().answer().status, 200);
        woken
    }

    /// As an app thread does, until the worker has left.
    fn serve(&self) {
        let engine = self.engine();
        let mut done = None;
        loop {
            match engine.next(self.slot, done.take()) {
                Wake::Request(mut exchange) => {
                    answer(engine, &mut exchange, b"0 /\n");
                    done = Some(exchange);
                }
                Wake::Nothing => engine.wait(self.slot),
                Wake::Ended => break,
                _ => drop(engine.take_chores()),
            }
        }
        engine.leave(self.slot, None);
    }
}

fn until_asleep(thread: rustix::thread::Pid) {
    let stat = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    until("it sleeps", || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S ")));
}

/// The other may be the one that is woken, if it does not sleep yet when its scoreboard says that it is free.
#[track_caller]
fn some(mut is_woken: impl FnMut() -> bool) {
    assert!((0..200).filter(|_| is_woken()).take(3).count() == 3, "hardly ever");
}

#[test]
fn a_newcomer_for_whom_a_worker_was_woken_that_leaves_is_served() {
    some(|| {
        let row = Row::new(2);
        row.leaves_when_woken(|| {
            let mut client = row.workers.connect_to_all();
            client.ask("/");
            client
        })
    });
}

#[test]
fn a_message_for_which_a_worker_was_woken_that_leaves_is_taken() {
    some(|| {
        let row = Row::new(3);
        let mut client = row.workers.connect(2);
        row.workers.block(2);
        // As if its sender had gone: no worker is woken a second time.
        row.workers.set_shared(Shared::Nudged, u64::MAX);
        let woken = row.leaves_when_woken(|| {
            client.ask("/");
            client
        });
        row.workers.unblock_all();
        woken
    });
}
