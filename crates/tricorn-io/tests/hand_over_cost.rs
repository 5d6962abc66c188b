//! What a hand-over costs; run by hand, alone and in release mode, for its numbers:
//! `cargo test --release -p tricorn-io --test hand_over_cost -- --ignored --nocapture`
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::group::*;
use harness::*;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

const REQUESTS: usize = 10_000;
const BATCH: usize = 200;

/// Processor time and waiting time of one request after another, each on a connection of its own that has been made before.
fn measure(workers: &Workers, body: &[u8], busy: bool) -> (Duration, Vec<Duration>) {
    let (mut used, mut times, mut elsewhere) = (Duration::ZERO, Vec::with_capacity(REQUESTS), 0);
    while times.len() < REQUESTS {
        let mut clients: Vec<Client> = (0..BATCH).map(|_| workers.connect(0)).collect();
        if busy {
            workers.block(0);
            workers.servers[0].until(Word::Free, 0);
        }
        let before = processor_time();
        for client in &mut clients {
            let begin = Instant::now();
            client.post("/", body);
            let answer = client.response().answer();
            times.push(begin.elapsed());
            elsewhere += usize::from(answer.worker != Some(usize::from(busy)));
        }
        used += processor_time() - before;
        workers.unblock_all();
    }
    // Those that went the other way because a thread got no processor.
    assert!(elsewhere < REQUESTS / 100, "the machine is too busy for a measurement: {elsewhere}");
    times.sort();
    (used, times)
}

/// Of all threads: the clients', the monitors', the app threads'.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
#[ignore = "a measurement"]
fn a_hand_over_in_microseconds() {
    let workers = Workers::echo(plan(2));
    for (what, length) in [("no body", 0), ("10 KB", 10_000), ("100 KB, in a file of memory", 100_000)] {
        let body = noise(length);
        let (plain, own) = measure(&workers, &body, false);
        let (handed, others) = measure(&workers, &body, true);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / REQUESTS as f64;
        let at = |times: &[Duration], part: f64| times[(times.len() as f64 * part) as usize].as_micros();
        println!(
            "{what}: {:.1} µs of processor time per request, {:.1} handed over: a hand-over costs {:.1} µs; \
             median and 99th percentile {} and {} µs, handed over {} and {} µs",
            each(plain),
            each(handed),
            each(handed) - each(plain),
            at(&own, 0.5),
            at(&own, 0.99),
            at(&others, 0.5),
            at(&others, 0.99),
        );
    }
    assert!(workers.sum(Word::HandedOver) >= 3 * REQUESTS as u64);
}
