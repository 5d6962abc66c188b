//! What connections hold, and what a peer can make them hold: counted by the allocator, in a process of its own.
#![allow(clippy::unwrap_used)] // A test may panic.
#[path = "support/websocket.rs"]
mod support;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::*;
use tricorn_proto::websocket::deflate::{Agreed, BLOCK, DEFLATE_BYTES, INFLATE_BYTES, Offer, Policy};
use tricorn_proto::websocket::sender::Settings;
use tricorn_proto::websocket::{
    ContextPool, Delivery, Event, Keepalive, Kind, Receiver, Role, Sender, Violation, receiver,
};

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: everything is left to the system's allocator; only numbers are kept, which allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promised us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promised us.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Large blocks are moved by the system without a copy: old and new are not held at once.
        count(size as isize - layout.size() as isize);
        // SAFETY: as the caller promised us.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes held after `action`, and most held meanwhile, besides those held before.
fn weigh<T>(action: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let value = action();
    (value, (HELD.get() - before).max(0) as usize, (PEAK.get() - before).max(0) as usize)
}

fn bomb(length: usize) -> Vec<u8> {
    let (mut out, mut spare) = (Vec::new(), ContextPool::default());
    let policy = Policy { level: 9, ..Policy::default() };
    let agreed = policy.choose([Offer::default()]).unwrap();
    let settings = Settings { role: Role::Client, fragment: 0, deflate: Some(&agreed), seed: 1 };
    Sender::new(&settings).message(&mut out, Kind::Binary, &vec![0; length], &mut spare).unwrap();
    out
}

#[test]
fn a_bomb_holds_no_more_than_the_limit_and_a_block() {
    let mut stream = bomb(64 << 20);
    assert!(stream.len() < 100_000, "a thousand times smaller");
    let agreed = plain_deflate();
    for limit in [1000, 100_000, 1 << 20, 3_000_001] {
        let mut stream = stream.clone();
        let (result, _, peak) = weigh(|| {
            let mut receiver = Receiver::new(&server(limit, Some(&agreed)));
            receiver.advance(&mut stream, &mut ContextPool::new(0, 1)).map(|_| ())
        });
        assert_eq!(result, Err(Violation::MessageTooBig));
        assert!(peak <= limit as usize + BLOCK + INFLATE_BYTES, "{peak} for a limit of {limit}");
    }
    // Streamed, it never holds more than a piece, and is refused when it exceeds the limit all the same.
    let (pieces, _, peak) = weigh(|| {
        let settings = receiver::Settings { delivery: Delivery::Pieces, ..server(10 << 20, Some(&agreed)) };
        let (mut receiver, mut spare) = (Receiver::new(&settings), ContextPool::new(0, 1));
        let (mut at, mut pieces) = (0, 0);
        loop {
            match receiver.advance(&mut stream[at..], &mut spare) {
                Ok(progress) => {
                    pieces += usize::from(matches!(progress.event, Event::Piece { .. }));
                    at += progress.consumed;
                }
                Err(violation) => {
                    assert_eq!(violation, Violation::MessageTooBig);
                    return pieces;
                }
            }
        }
    });
    assert!(pieces >= (10 << 20) / BLOCK && peak <= 2 * BLOCK + INFLATE_BYTES, "{pieces} pieces, {peak} bytes");
}

#[test]
fn what_is_only_announced_takes_little() {
    let head = b"\x82\xff\0\0\0\0\x3f\xff\xff\xff\0\0\0\0Q";
    let (_, held, peak) = weigh(|| {
        let mut receiver = Receiver::new(&server(u64::MAX, None));
        assert_eq!(receiver.advance(&mut head.clone(), &mut ContextPool::new(0, 1)).unwrap().event, Event::NeedMore);
        receiver
    });
    assert!(held <= 66_000 && peak <= 66_000, "{held} {peak}");
}

#[test]
fn a_message_in_pieces_holds_no_more_than_the_limit() {
    let limit = 1_000_001;
    for fragment in [0, 1, 1000, 400_000] {
        let mut stream = Vec::new();
        let client = Settings { role: Role::Client, fragment, deflate: None, seed: 1 };
        let message = vec![b'x'; limit];
        Sender::new(&client).message(&mut stream, Kind::Text, &message, &mut ContextPool::default()).unwrap();
        let mut spare = ContextPool::new(0, 0);
        let (length, _, peak) = weigh(|| {
            let mut receiver = Receiver::new(&server(limit as u64, None));
            let (mut start, mut end) = (0, 0);
            loop {
                let progress = receiver.advance(&mut stream[start..end], &mut spare).unwrap();
                start += progress.consumed;
                match progress.event {
                    Event::NeedMore => end = (end + 4000).min(stream.len()),
                    Event::Message { data, .. } => return data.len(),
                    other => panic!("{other:?}"),
                }
            }
        });
        assert_eq!(length, limit);
        assert!(peak <= limit, "{peak} in fragments of {fragment}");
    }
}

#[test]
fn a_context_takes_no_more_than_is_said() {
    for bits in 9..=15 {
        let policy = Policy { client_max_window_bits: bits, server_max_window_bits: bits, ..Policy::default() };
        let agreed = policy.choose([Offer { client_max_window_bits: Some(None), ..Offer::default() }]).unwrap();
        let (mut stream, mut spare) = (Vec::new(), ContextPool::new(0, 1));
        let message = b"a message that is long enough to be compressed ".repeat(100);
        let settings = Settings { role: Role::Client, fragment: 0, deflate: Some(&agreed), seed: 1 };
        Sender::new(&settings).message(&mut stream, Kind::Text, &message, &mut spare).unwrap();
        let (mut receiver, inflate, _) = weigh(|| {
            let mut receiver = Receiver::new(&server(MAX, Some(&agreed)));
            receiver.advance(&mut stream, &mut spare).unwrap();
            receiver.rest(&mut spare);
            receiver
        });
        let (mut sender, deflate, _) = weigh(|| {
            let mut sender = Sender::new(&Settings { role: Role::Server, ..settings });
            sender.message(&mut Vec::new(), Kind::Text, &message, &mut spare).unwrap();
            sender
        });
        println!("window bits {bits}: inflate {inflate}, deflate {deflate} bytes");
        assert!(inflate <= INFLATE_BYTES, "{inflate}");
        assert!(deflate <= DEFLATE_BYTES, "{deflate}");
        let (_, _, after) = weigh(|| sender.rest(&mut spare));
        assert_eq!(after, 0);
        receiver.rest(&mut spare);
    }
}

/// A connection that received and sent some messages, and rests.
fn used(delivery: Delivery, agreed: &Agreed, streams: &[Vec<u8>], spare: &mut ContextPool) -> (Receiver, Sender) {
    let settings = receiver::Settings { delivery, ..server(MAX, Some(agreed)) };
    let mut receiver = Receiver::new(&settings);
    let mut sender = Sender::new(&Settings { role: Role::Server, fragment: 0, deflate: Some(agreed), seed: 0 });
    let mut out = Vec::new();
    for stream in streams {
        let mut input = stream.clone();
        let (mut start, mut end) = (0, 0);
        while start < input.len() {
            end = (end + 5000).min(input.len());
            loop {
                let progress = receiver.advance(&mut input[start..end], spare).unwrap();
                start += progress.consumed;
                match progress.event {
                    Event::Message { kind, data } => sender.message(&mut out, kind, data, spare).unwrap(),
                    Event::NeedMore => break,
                    _ => {}
                }
            }
        }
    }
    receiver.rest(spare);
    sender.rest(spare);
    (receiver, sender)
}

#[test]
fn an_idle_connection_holds_nothing() {
    let policy = Policy { client_context_takeover: false, ..Policy::default() };
    let agreed = policy.choose([Offer::default()]).unwrap();
    let mut spare = ContextPool::default();
    let message = b"some text that may be compressed, ".repeat(5000);
    let streams = [Some(&agreed), None].map(|deflate| {
        let mut stream = Vec::new();
        let client = Settings { role: Role::Client, fragment: 999, deflate, seed: 1 };
        Sender::new(&client).message(&mut stream, Kind::Text, &message, &mut ContextPool::default()).unwrap();
        stream
    });
    for delivery in [Delivery::Whole, Delivery::Pieces] {
        // The first ones fill the spare room.
        let first: Vec<_> = (0..6).map(|_| used(delivery, &agreed, &streams, &mut spare)).collect();
        let (connection, held, _) = weigh(|| used(delivery, &agreed, &streams, &mut spare));
        assert_eq!(held, 0, "{delivery:?}");
        assert!(first.iter().all(|(receiver, _)| receiver.held() == 0) && connection.0.held() == 0);
    }
    let size = size_of::<Receiver>() + size_of::<Sender>() + size_of::<Keepalive>();
    assert!(size <= 512, "{size}");
}
