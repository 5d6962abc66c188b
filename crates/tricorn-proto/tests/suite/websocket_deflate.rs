//! permessage-deflate: RFC 7692 sections 6 to 8.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::peer as support;
use support::*;
use tricorn_proto::websocket::Violation::*;
use tricorn_proto::websocket::deflate::{Agreed, Offer, Policy};
use tricorn_proto::websocket::receiver::Settings as Reading;
use tricorn_proto::websocket::sender::Settings as Writing;
use tricorn_proto::websocket::{ContextPool, Delivery, Kind, Role, Sender};

const COMPRESSED: u8 = 0xc1;
const COMPRESSED_MORE: u8 = 0x41;

type Case = (&'static str, &'static [(u8, &'static [u8])], Vec<Seen>);

fn inflated(max: u64, parts: &[(u8, &[u8])]) -> Vec<Seen> {
    read_with(&server(max, Some(&plain_deflate())), &frames(parts))
}

/// A message as a client with this agreement sends it.
fn compressed(agreed: &Agreed, fragment: usize, message: &[u8]) -> Vec<u8> {
    let (mut out, mut spare) = (Vec::new(), ContextPool::default());
    let settings = Writing { role: Role::Client, fragment, deflate: Some(agreed), seed: 1 };
    Sender::new(&settings).message(&mut out, Kind::Binary, message, &mut spare).unwrap();
    out
}

fn every_agreement() -> Vec<Agreed> {
    let mut all = Vec::new();
    for (server, client) in [(true, true), (true, false), (false, true), (false, false)] {
        for bits in [9, 12, 15] {
            for level in [1, 6] {
                let policy = Policy {
                    server_context_takeover: server,
                    client_context_takeover: client,
                    server_max_window_bits: bits,
                    client_max_window_bits: 24 - bits,
                    level,
                    threshold: 16,
                    ..Policy::default()
                };
                let offer = Offer { client_max_window_bits: Some(None), ..Offer::default() };
                all.push(policy.choose([offer]).unwrap());
            }
        }
    }
    all
}

#[test]
fn the_examples_of_section_7_2_3() {
    let hello = || text("Hello");
    const ONE_BLOCK: &[u8] = b"\xf2\x48\xcd\xc9\xc9\x07\x00";
    let cases: [Case; 9] = [
        ("7_2_3_1 one block", &[(COMPRESSED, ONE_BLOCK)], vec![hello()]),
        ("7_2_3_1 in fragments", &[(COMPRESSED_MORE, b"\xf2\x48\xcd"), (0x80, b"\xc9\xc9\x07\x00")], vec![hello()]),
        (
            "7_2_3_2 sharing the window",
            &[(COMPRESSED, ONE_BLOCK), (COMPRESSED, b"\xf2\x00\x11\x00\x00")],
            vec![hello(), hello()],
        ),
        (
            "7_2_3_3 a block without compression",
            &[(COMPRESSED, b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00")],
            vec![hello()],
        ),
        ("7_2_3_4 a last block", &[(COMPRESSED, b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00")], vec![hello()]),
        (
            "7_2_3_4 and another message",
            &[(COMPRESSED, b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00"), (COMPRESSED, ONE_BLOCK)],
            vec![hello(), hello()],
        ),
        ("7_2_3_5 two blocks", &[(COMPRESSED, b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00")], vec![hello()]),
        ("7_2_3_6 the empty message", &[(COMPRESSED, b"\x00")], vec![text("")]),
        ("not compressed, though it might be", &[(0x81, b"Hello")], vec![hello()]),
    ];
    for (name, parts, expected) in cases {
        assert_eq!(inflated(MAX, parts), expected, "{name}");
    }
}

#[test]
fn section_6_the_bit() {
    let hello = b"\xf2\x48\xcd\xc9\xc9\x07\x00";
    assert_eq!(inflated(MAX, &[(COMPRESSED_MORE, hello), (0xc0, b"")]), failed(CompressedContinuation));
    assert_eq!(inflated(MAX, &[(0xc9, b"")]), failed(CompressedControl));
    assert_eq!(inflated(MAX, &[(0xc8, b"")]), failed(CompressedControl));
    assert_eq!(inflated(MAX, &[(0xa1, b"")]), failed(ReservedBits));
    assert_eq!(read(&frames(&[(COMPRESSED, hello)])), failed(ReservedBits), "not negotiated");
}

#[test]
fn a_ping_between_compressed_fragments() {
    let parts: &[(u8, &[u8])] =
        &[(COMPRESSED_MORE, b"\xf2\x48\xcd"), (0x89, b"x"), (0x00, b""), (0x80, b"\xc9\xc9\x07\x00")];
    assert_eq!(inflated(MAX, parts), [Ping(b"x".into()), text("Hello")]);
}

#[test]
fn what_the_tail_says_belongs_to_the_message_wherever_a_piece_ends() {
    // A stored block that announces four bytes and has none: they are the tail. Around the length of a piece.
    for length in 4090..=4097u16 {
        let start = [&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes()].concat();
        let payload = [&start[..], &vec![7; length.into()], b"\x00\x04\x00\xfb\xff"].concat();
        let expected = Binary([&vec![7; length.into()][..], b"\x00\x00\xff\xff"].concat());
        assert!(inflated(MAX, &[(0xc2, &payload)]) == [expected]);
    }
}

#[test]
fn broken_data_and_text_that_is_none() {
    for broken in [&b"\xff\xff\xff\xff"[..], b"\x00\x05\x00\xfa\xfe", b"\xf2\x00\x11\x00\x00", b"\x06"] {
        assert_eq!(inflated(MAX, &[(COMPRESSED, broken)]), failed(NotDeflate), "{broken:x?}");
    }
    let stored = [&b"\x00\x05\x00\xfa\xff"[..], b"\xce\xba\xed\xa0\x80\x00"].concat();
    assert_eq!(inflated(MAX, &[(COMPRESSED, &stored)]), failed(NotUtf8));
    // A peer without context may not refer to what went before.
    let policy = Policy { client_context_takeover: false, ..Policy::default() };
    let agreed = policy.choose([Offer::default()]).unwrap();
    let stream = frames(&[(COMPRESSED, b"\xf2\x48\xcd\xc9\xc9\x07\x00"), (COMPRESSED, b"\xf2\x00\x11\x00\x00")]);
    assert_eq!(read_with(&server(MAX, Some(&agreed)), &stream), [text("Hello"), Failed(NotDeflate)]);
}

#[test]
fn endless_last_blocks_are_refused() {
    let many = b"\x03\x00".repeat(5000);
    assert_eq!(feed(&server(MAX, Some(&plain_deflate())), [&frame(COMPRESSED, &many)[..]]), failed(NotDeflate));
    let some = [b"\x03\x00".repeat(1000), vec![0]].concat();
    assert_eq!(feed(&server(MAX, Some(&plain_deflate())), [&frame(COMPRESSED, &some)[..]]), [text("")]);
}

#[test]
fn size_is_counted_after_inflation() {
    let agreed = plain_deflate();
    let lengths = [999, 1000, 4096, 4097, 100_000];
    for &length in &lengths[..if cfg!(miri) { 2 } else { 5 }] {
        for fragment in [0, 7] {
            let stream = compressed(&agreed, fragment, &vec![7; length]);
            let max = length as u64;
            assert!(read_with(&server(max, Some(&agreed)), &stream) == [Binary(vec![7; length])]);
            assert_eq!(read_with(&server(max - 1, Some(&agreed)), &stream), failed(MessageTooBig));
        }
    }
}

fn sample(number: usize) -> Vec<u8> {
    let line = format!(
        "{{\"id\": {number}, \"name\": \"item {number}\", \"tags\": [\"red\", \"blue\", \"green\"], \"visible\": true}}\n"
    );
    match number % 6 {
        0 => vec![],
        1 => b"short".to_vec(),
        2 => line.into_bytes(),
        3 => line.repeat(200).into_bytes(),
        // Nothing in it comes twice, so that it does not get smaller.
        4 => (1..3000u64).map(|index| (index.pow(3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect(),
        _ => line.repeat(3000).into_bytes(),
    }
}

#[test]
#[cfg_attr(miri, ignore = "many bytes: Miri takes minutes")]
fn every_agreement_carries_messages_both_ways() {
    for agreed in every_agreement() {
        for (from, to) in [(Role::Client, Role::Server), (Role::Server, Role::Client)] {
            for fragment in [0, 1000] {
                let (mut stream, mut spare) = (Vec::new(), ContextPool::default());
                let mut sender = Sender::new(&Writing { role: from, fragment, deflate: Some(&agreed), seed: 7 });
                for number in 0..12 {
                    sender.message(&mut stream, Kind::Binary, &sample(number), &mut spare).unwrap();
                    if number % 5 == 4 {
                        sender.rest(&mut spare);
                    }
                }
                let expected: Vec<Seen> = (0..12).map(|number| Binary(sample(number))).collect();
                for delivery in [Delivery::Whole, Delivery::Pieces] {
                    let reading = Reading { role: to, delivery, max_message_size: MAX, deflate: Some(&agreed) };
                    assert!(feed(&reading, [&stream[..]]) == expected, "{agreed} {from:?} {fragment}");
                    assert!(feed(&reading, stream.chunks(1013)) == expected, "{agreed} {from:?} {fragment}, in pieces");
                }
            }
        }
    }
}

#[test]
fn context_takeover_makes_similar_messages_small() {
    let sizes = |takeover: bool, rest: bool| {
        let policy = Policy { server_context_takeover: takeover, ..Policy::default() };
        let agreed = policy.choose([Offer::default()]).unwrap();
        let (mut out, mut spare) = (Vec::new(), ContextPool::default());
        let mut sender = Sender::new(&Writing { role: Role::Server, fragment: 0, deflate: Some(&agreed), seed: 0 });
        let mut sizes = Vec::new();
        for number in [2, 8, 14] {
            out.clear();
            sender.message(&mut out, Kind::Text, &sample(number), &mut spare).unwrap();
            sizes.push(out.len());
            if rest {
                sender.rest(&mut spare);
            }
        }
        sizes
    };
    let (kept, rested, forgotten) = (sizes(true, false), sizes(true, true), sizes(false, false));
    assert!(kept[1] < kept[0] / 2 && kept[2] < kept[0] / 2, "{kept:?}");
    assert!(rested[1] > kept[1] * 2 && forgotten[1] > kept[1] * 2, "{rested:?} {forgotten:?}");
}

#[test]
fn small_messages_and_those_that_grow_are_sent_as_they_are() {
    let send = |takeover, message: &[u8]| {
        let policy = Policy { server_context_takeover: takeover, ..Policy::default() };
        let agreed = policy.choose([Offer::default()]).unwrap();
        let (mut out, mut spare) = (Vec::new(), ContextPool::default());
        let mut sender = Sender::new(&Writing { role: Role::Server, fragment: 0, deflate: Some(&agreed), seed: 0 });
        sender.message(&mut out, Kind::Binary, message, &mut spare).unwrap();
        out
    };
    assert_eq!(send(true, &[b'a'; 63])[0], 0x82);
    assert_eq!(send(true, &[b'a'; 64])[0], 0xc2);
    assert_eq!(send(false, &sample(4))[0], 0x82, "it does not get smaller");
    assert_eq!(send(true, &sample(4))[0], 0x82, "and the context is forgotten");
    assert_eq!(send(false, &sample(4)[..100])[0], 0x82);
    assert_eq!(send(true, &sample(4)[..100])[0], 0xc2, "short, so that the context is kept: the peer must see it");
}

#[test]
fn contexts_are_given_back_and_used_again() {
    let policy = Policy { server_context_takeover: false, client_context_takeover: false, ..Policy::default() };
    let agreed = policy.choose([Offer::default()]).unwrap();
    let mut spare = ContextPool::new(2, 1);
    let stream = compressed(&agreed, 0, &sample(3));
    for _ in 0..5 {
        let mut receiver = tricorn_proto::websocket::Receiver::new(&server(MAX, Some(&agreed)));
        assert!(receiver.advance(&mut stream.clone(), &mut spare).is_ok());
        let mut sender = Sender::new(&Writing { role: Role::Server, fragment: 0, deflate: Some(&agreed), seed: 0 });
        sender.message(&mut Vec::new(), Kind::Binary, &sample(3), &mut spare).unwrap();
        assert_eq!(spare.kept(), (1, 1));
    }
}

#[test]
fn no_more_connections_remember_than_are_allowed_to() {
    let agreed = plain_deflate();
    let mut spare = ContextPool::new(1, 2);
    let settings = Writing { role: Role::Client, fragment: 0, deflate: Some(&agreed), seed: 0 };
    let mut senders: Vec<Sender> = (0..5).map(|_| Sender::new(&settings)).collect();
    let mut streams = vec![Vec::new(); 5];
    for number in [2, 8, 3, 14] {
        for (sender, stream) in senders.iter_mut().zip(&mut streams) {
            sender.message(stream, Kind::Binary, &sample(number), &mut spare).unwrap();
        }
        assert_eq!((spare.remembering(), spare.kept().0), (2, 1));
    }
    assert!(streams[0].len() < streams[4].len());
    for stream in streams {
        let expected = [2, 8, 3, 14].map(|number| Binary(sample(number)));
        assert!(feed(&server(MAX, Some(&agreed)), [&stream[..]]) == expected);
    }
    senders[0].rest(&mut spare);
    assert_eq!(spare.remembering(), 1);
    drop(senders);
    assert_eq!(spare.remembering(), 0, "a connection that ends needs no goodbye");
}
