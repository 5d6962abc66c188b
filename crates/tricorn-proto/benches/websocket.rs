//! What does a WebSocket message cost, both ways:
//! `cargo bench --profile release -p tricorn-proto --bench websocket`.
//!
//! Plain timing, the best of many runs, as in `proto`.
#![allow(clippy::disallowed_methods)] // A bench may look at the clock.
use std::hint::black_box;
use std::time::Instant;
use tricorn_proto::websocket::deflate::{Agreed, Offer, Policy};
use tricorn_proto::websocket::{ContextPool, Delivery, Event, Kind, Receiver, Role, Sender, mask, receiver, sender};

const SIZES: [usize; 4] = [125, 1000, 16_384, 65_536];

fn main() {
    for (bytes, start) in [(125, 0), (125, 6), (4096, 0), (4096, 6), (65_536, 6), (1 << 20, 6)] {
        let mut data = vec![7u8; bytes + start];
        let name = format!("unmask {bytes} bytes from +{start}");
        measure(&name, bytes, || mask::apply(black_box(&mut data[start..]), black_box([1, 2, 3, 4]), 0));
    }
    for kind in [Kind::Binary, Kind::Text] {
        for size in SIZES {
            echo(kind, size, None, "plain", usize::MAX);
        }
    }
    echo(Kind::Binary, 65_536, None, "plain, 16 KiB at once", 16_384);
    for takeover in [true, false] {
        for level in [1, 2, 3, 4, 6] {
            let policy = Policy {
                server_context_takeover: takeover,
                client_context_takeover: takeover,
                level,
                ..Policy::default()
            };
            let agreed = policy.choose([Offer::default()]);
            let what = if takeover { "takeover" } else { "no takeover" };
            for size in [125, 1000, 65_536] {
                echo(Kind::Text, size, agreed.as_ref(), &format!("deflate {level}, {what}"), usize::MAX);
            }
        }
    }
}

/// JSON that differs from line to line, as applications send it.
fn sample(size: usize) -> Vec<u8> {
    let line = |number: usize| {
        let (price, stock) = (number * 7919 % 10_000, number * 31 % 977);
        format!(
            "{{\"id\":{number},\"name\":\"item {number}\",\"price\":{price},\"stock\":{stock},\"tags\":[\"red\",\"new\"]}},"
        )
    };
    (1..).flat_map(|number| line(number).into_bytes()).take(size).collect()
}

/// What the server does for a message that is sent back: receive and send. The client's part is made before.
fn echo(kind: Kind, size: usize, agreed: Option<&Agreed>, name: &str, read: usize) {
    let (mut spare, message) = (ContextPool::default(), sample(size));
    let client = sender::Settings { role: Role::Client, fragment: 0, deflate: agreed, seed: 1 };
    let mut sender = Sender::new(&client);
    let server = sender::Settings { role: Role::Server, ..client };
    let mut answers = Sender::new(&server);
    let reading = receiver::Settings {
        role: Role::Server,
        delivery: Delivery::Whole,
        max_message_size: 1 << 24,
        deflate: agreed,
    };
    let mut receiver = Receiver::new(&reading);
    let (mut stream, mut out) = (Vec::new(), Vec::new());
    // A repeated message is no measure for a context that has seen it: the first one is sent again and again.
    let _ = sender.message(&mut stream, kind, &message, &mut spare);
    let mut input = stream.clone();
    let mut sent = 0;
    measure_named(
        size,
        || {
            input.copy_from_slice(&stream);
            out.clear();
            for piece in input.chunks_mut(read) {
                let mut at = 0;
                while at < piece.len() {
                    let Ok(progress) = receiver.advance(black_box(&mut piece[at..]), &mut spare) else { return };
                    at += progress.consumed;
                    if let Event::Message { kind, data } = progress.event {
                        let _ = answers.message(&mut out, kind, data, &mut spare);
                    }
                }
            }
            sent = out.len();
            black_box(&out);
        },
        |line| format!("{line} {kind:?}, {size} bytes, {name}"),
    );
    println!("{:>44} bytes sent", sent);
}

fn measure(name: &str, bytes: usize, once: impl FnMut()) {
    measure_named(bytes, once, |line| format!("{line} {name}"));
}

fn measure_named(bytes: usize, mut once: impl FnMut(), name: impl Fn(String) -> String) {
    const RUNS: usize = 15;
    let rounds = (4_000_000 / bytes).clamp(8, 20_000) as u32;
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..rounds {
            once();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(rounds));
    }
    println!("{}", name(format!("{best:10.1} ns {:7.2} GB/s ", bytes as f64 / best)));
}
