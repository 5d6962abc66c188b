//! What a hand-over costs; run by hand, alone and in release mode, for its numbers:
//! `cargo test --release -p tricorn-io --test hand_over_cost -- --ignored --nocapture`
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::group::*;
use harness::http2::Client2;
use harness::lending::{connect_by_tls, secured, speaking_http2};
use harness::tls::World;
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

/// The same for requests that come one after another on a connection that stays: `ask` gives the worker that has answered.
fn measure_kept(workers: &Workers, busy: bool, mut ask: impl FnMut() -> Option<usize>) -> Duration {
    if busy {
        workers.block(0);
        workers.servers[0].until(Word::Free, 0);
    }
    let before = processor_time();
    let elsewhere = (0..REQUESTS).filter(|_| ask() != Some(usize::from(busy))).count();
    let used = processor_time() - before;
    workers.unblock_all();
    assert!(elsewhere < REQUESTS / 100, "the machine is too busy for a measurement: {elsewhere}");
    used
}

fn tell(what: &str, own: Duration, lent: Duration) {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / REQUESTS as f64;
    let cost = each(lent) - each(own);
    println!(
        "{what}: {:.1} µs of processor time per request, {:.1} lent: a loan costs {cost:.1} µs",
        each(own),
        each(lent)
    );
}

#[test]
#[ignore = "a measurement"]
fn a_loan_in_microseconds() {
    for (size, length) in [("no body", 0), ("10 KB", 10_000)] {
        let body = noise(length);
        let world = World::new();
        let workers = Workers::echo(secured(&world, 2));
        let mut client = connect_by_tls(&workers, &world, 0);
        let mut ask = || {
            client.post("/", &body);
            client.response().answer().worker
        };
        let [own, lent] = [false, true].map(|busy| measure_kept(&workers, busy, &mut ask));
        tell(&format!("TLS, {size}"), own, lent);
        assert!(workers.get(0, Word::Lent) >= REQUESTS as u64 / 2);

        let workers = Workers::echo(speaking_http2(2));
        let mut client = Client2::connect(workers.servers[0].address, 65_535);
        let mut ask = || {
            let stream = client.ask("POST", "/", &[], body.is_empty());
            if !body.is_empty() {
                client.data(stream, &body, true);
            }
            let response = client.response(stream);
            client.streams.remove(&stream);
            response.body.first().map(|digit| usize::from(digit - b'0'))
        };
        let [own, lent] = [false, true].map(|busy| measure_kept(&workers, busy, &mut ask));
        tell(&format!("HTTP/2, {size}"), own, lent);
        assert!(workers.get(0, Word::Lent) >= REQUESTS as u64 / 2);
    }
}
