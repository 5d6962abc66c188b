//! What compression costs: `cargo bench -p tricorn-io --bench compression`. docs/guides/compression.md has the figures.
#![allow(clippy::expect_used, reason = "a measurement may panic")]
use std::fmt::Write;
use std::time::Duration;
use tricorn_io::Compressors;
use tricorn_proto::message::coding::Coding;
use tricorn_proto::response::compression::{MediaRange, Policy};

/// Each figure is the least of so many: other programs disturb the rest.
const ROUNDS: u32 = 30;
const EVENTS: u32 = 1000;

/// Records as an API gives them, of this length.
fn json(length: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let names = ["Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Donald Knuth", "Radia Perlman"];
    let mut out = String::from("[");
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (id, name, day) = (state % 1_000_000, names[(state >> 20) as usize % names.len()], (state >> 13) % 28 + 1);
        let (number, price, tag) = ((state >> 8) % 100_000, (state >> 16) % 100_000, (state >> 30) % 50);
        write!(
            out,
            "{{\"id\":{id},\"name\":\"{name}\",\"email\":\"user{number}@example.com\",\"price\":{price},\"active\":{},\
             \"tags\":[\"t{tag}\"],\"created\":\"2026-03-{day:02}T{:02}:00:00Z\"}},",
            state.is_multiple_of(3),
            (state >> 15) % 24,
        )
        .expect("a string takes it");
    }
    out.truncate(length);
    out.into_bytes()
}

/// Processor time of this thread.
fn used() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn least(mut work: impl FnMut()) -> Duration {
    let times = (0..ROUNDS).map(|_| {
        let begun = used();
        work();
        used().saturating_sub(begun)
    });
    times.min().unwrap_or_default()
}

fn main() {
    let policy = Policy {
        codings: Coding::ALL.to_vec(),
        types: MediaRange::parse("text/*").into_iter().collect(),
        private: false,
    };
    let compressors = Compressors::of(policy).expect("codings and types");
    println!("{:24}{:>8}{:>12}{:>10}", "whole body of JSON", "coding", "µs", "of it");
    for length in [2 << 10, 10 << 10, 100 << 10, 1 << 20] {
        let body = json(length);
        for coding in Coding::ALL {
            let mut size = 0;
            let time = least(|| size = compressors.whole(coding, &body).map_or(body.len(), |whole| whole.len()));
            let share = 100.0 * size as f64 / body.len() as f64;
            println!("{:>19} KiB {:>8}{:>12.1}{share:>8.0} %", length >> 10, coding.name(), time.as_secs_f64() * 1e6);
        }
    }
    println!("\n{:24}{:>8}{:>12}{:>10}", "event of an event stream", "coding", "µs", "of it");
    for length in [100, 1000] {
        // No two have the same records.
        let data = json(EVENTS as usize * length);
        let events: Vec<Vec<u8>> =
            data.chunks(length - 8).map(|data| [b"data: ", data, b"\n\n"].concat()).take(EVENTS as usize).collect();
        for coding in Coding::ALL {
            let mut size = 0;
            let time = least(|| {
                let mut stream = compressors.stream(coding, false).expect("a place");
                size = events.iter().map(|event| stream.encode(event).expect("it compresses").len()).sum();
            });
            let share = 100.0 * size as f64 / events.concat().len() as f64;
            let each = time.as_secs_f64() * 1e6 / f64::from(EVENTS);
            println!("{length:>17} bytes {:>8}{each:>12.1}{share:>8.0} %", coding.name());
        }
    }
}
