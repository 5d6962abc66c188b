//! A process that is out of descriptors rests. (Alone in its process: the limit is the process's.)
#![allow(clippy::expect_used, reason = "a test may panic")]
mod harness;
use harness::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Processor time of all threads so far.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("nanoseconds"))
}

fn limit(soft: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum }).expect("a limit");
}

#[test]
fn a_connection_that_cannot_be_taken_is_tried_again_now_and_then() {
    let server = Server::start(config(), |engine, exchange| {
        answer(engine, exchange, b"done");
    });
    // One descriptor is left: the client's own. No connection is idle, so none can make room.
    let spare = std::fs::File::open("/dev/null").expect("a file");
    let lowest = std::os::fd::AsRawFd::as_raw_fd(&spare).unsigned_abs();
    drop(spare);
    let before = getrlimit(Resource::Nofile).current.expect("a limit");
    limit(u64::from(lowest) + 1);
    let mut client = server.connect();
    client.ask("/");
    until("it is told", || server.notices().iter().any(|notice| notice.text.starts_with("Out of file descriptors")));

    let (begin, start) = (Instant::now(), used());
    std::thread::sleep(Duration::from_millis(500)); // the period that is measured
    let (wall, cpu) = (begin.elapsed(), used() - start);
    limit(before);
    assert!(cpu < wall / 10, "{cpu:?} of {wall:?}: it spins");
    assert_eq!(client.response().body, b"done", "it was not forgotten");
}
