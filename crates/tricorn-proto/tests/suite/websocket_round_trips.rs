//! What one side sends the other receives, whatever was agreed and however the stream was split; and bytes that no
//! peer would send break nothing.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::cuts::split;
use crate::peer as support;
use proptest::prelude::*;
use support::*;
use tricorn_proto::websocket::close::Close as Goodbye;
use tricorn_proto::websocket::close::Phase;
use tricorn_proto::websocket::deflate::{Agreed, Offer, Policy};
use tricorn_proto::websocket::receiver::Settings as Reading;
use tricorn_proto::websocket::sender::Settings as Writing;
use tricorn_proto::websocket::{ContextPool, Delivery, Kind, Role, Sender, Unsendable, Violation};

fn agreement() -> impl Strategy<Value = Option<Agreed>> {
    let policy = (any::<[bool; 2]>(), 9..=15u8, 8..=15u8, 1..=9u8, 0..100usize);
    let offer = (any::<[bool; 2]>(), prop::option::of(8..=15u8), prop::option::of(prop::option::of(8..=15u8)));
    prop::option::of((policy, offer)).prop_map(|both| {
        let ((keeps, server, client, level, threshold), (forgets, offered_server, offered_client)) = both?;
        let policy = Policy {
            enabled: true,
            server_context_takeover: keeps[0],
            client_context_takeover: keeps[1],
            server_max_window_bits: server,
            client_max_window_bits: client,
            level,
            threshold,
        };
        policy.choose([Offer {
            server_no_context_takeover: forgets[0],
            client_no_context_takeover: forgets[1],
            server_max_window_bits: offered_server,
            client_max_window_bits: offered_client,
        }])
    })
}

#[derive(Debug, Clone)]
enum Sent {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Rest,
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        3 => any::<String>().prop_map(Sent::Text),
        2 => ("[a-c]{0,9}", 0..300usize).prop_map(|(text, times)| Sent::Text(text.repeat(times))),
        3 => prop::collection::vec(any::<u8>(), 0..400).prop_map(Sent::Binary),
        1 => (any::<u8>(), 0..70_000usize).prop_map(|(byte, length)| Sent::Binary(vec![byte; length])),
        1 => prop::collection::vec(any::<u8>(), 0..126).prop_map(Sent::Ping),
        1 => prop::collection::vec(any::<u8>(), 0..126).prop_map(Sent::Pong),
        1 => Just(Sent::Rest),
    ]
}

const PAYLOADS: &[&[u8]] = &[
    b"\xf2\x48\xcd\xc9\xc9\x07\x00",
    b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00",
    b"\x03\xe8",
    b"abc",
    b"\xce",
    b"\xba",
    b"\x00",
    b"",
];

/// Pieces of streams that nearly make sense.
fn nonsense() -> impl Strategy<Value = Vec<u8>> {
    let first =
        prop::sample::select(&[0x00, 0x80, 0x01, 0x81, 0x02, 0x82, 0x41, 0xc1, 0xc2, 0x88, 0x89, 0x8a, 0x83, 0x91][..]);
    let payload =
        prop_oneof![prop::collection::vec(any::<u8>(), 0..20), prop::sample::select(PAYLOADS).prop_map(Vec::from),];
    let proper = (first, payload).prop_map(|(first, payload)| frame(first, &payload));
    let part = prop_oneof![6 => proper, 1 => prop::collection::vec(any::<u8>(), 0..8)];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 600 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "strings of a regular expression: Miri takes minutes to make them")]
    fn what_is_sent_is_received(
        agreed in agreement(),
        to_server in any::<bool>(),
        fragment in prop::sample::select(&[0, 1, 100, 5000][..]),
        seed in any::<u64>(),
        sent in prop::collection::vec(sent(), 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        pieces in any::<bool>(),
    ) {
        let (from, to) = if to_server { (Role::Client, Role::Server) } else { (Role::Server, Role::Client) };
        let mut sender = Sender::new(&Writing { role: from, fragment, deflate: agreed.as_ref(), seed });
        let (mut stream, mut spare, mut expected) = (Vec::new(), ContextPool::new(1, 1), Vec::new());
        for one in sent {
            match one {
                Sent::Text(text) => {
                    sender.message(&mut stream, Kind::Text, text.as_bytes(), &mut spare).unwrap();
                    expected.push(Text(text));
                }
                Sent::Binary(data) => {
                    sender.message(&mut stream, Kind::Binary, &data, &mut spare).unwrap();
                    expected.push(Binary(data));
                }
                Sent::Ping(payload) => {
                    sender.ping(&mut stream, &payload).unwrap();
                    expected.push(Ping(payload));
                }
                Sent::Pong(payload) => {
                    sender.pong(&mut stream, &payload).unwrap();
                    expected.push(Pong(payload));
                }
                Sent::Rest => sender.rest(&mut spare),
            }
        }
        sender.close(&mut stream, Some(4000), "bye").unwrap();
        expected.push(Close(Some(4000), "bye".into()));
        let delivery = if pieces { Delivery::Pieces } else { Delivery::Whole };
        let reading = Reading { role: to, delivery, max_message_size: MAX, deflate: agreed.as_ref() };
        prop_assert!(feed(&reading, split(&stream, &cuts)) == expected);
    }

    #[test]
    fn nonsense_means_the_same_in_every_split(
        stream in nonsense(),
        deflate in any::<bool>(),
        max in prop::sample::select(&[0, 4, 100][..]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let agreed = plain_deflate();
        let settings = server(max, deflate.then_some(&agreed));
        let expected = alike(feed(&settings, [&stream[..]]));
        prop_assert_eq!(&alike(feed(&settings, split(&stream, &cuts))), &expected);
        prop_assert_eq!(&alike(feed(&settings, stream.chunks(1))), &expected);
        let pieces = Reading { delivery: Delivery::Pieces, ..settings };
        prop_assert_eq!(&alike(feed(&pieces, split(&stream, &cuts))), &expected);
    }

    #[test]
    fn random_bytes_break_nothing(stream in prop::collection::vec(any::<u8>(), 0..300), deflate in any::<bool>()) {
        let agreed = plain_deflate();
        for role in [Role::Server, Role::Client] {
            let settings = Reading { role, ..server(1000, deflate.then_some(&agreed)) };
            prop_assert_eq!(alike(feed(&settings, [&stream[..]])), alike(feed(&settings, stream.chunks(1))));
        }
    }
}

/// Several things can be wrong with what was inflated at once; which is seen first depends on how much came.
fn alike(mut seen: Vec<Seen>) -> Vec<Seen> {
    if let Some(Failed(violation @ (Violation::NotUtf8 | Violation::MessageTooBig))) = seen.last_mut() {
        *violation = Violation::NotDeflate;
    }
    seen
}

#[test]
fn closing_is_said_once_and_answered_once() {
    let (mut ours, mut theirs) = [Role::Server, Role::Client]
        .map(|role| Sender::new(&Writing { role, fragment: 0, deflate: None, seed: 0 }))
        .into();
    let (mut out, mut spare) = (Vec::new(), ContextPool::default());
    assert_eq!(ours.close(&mut out, Some(1005), ""), Err(Unsendable::CloseCode(1005)));
    assert_eq!(ours.ping(&mut out, &[0; 126]), Err(Unsendable::ControlTooLong));
    assert_eq!(out, b"");
    ours.close(&mut out, Some(1001), "restart").unwrap();
    assert_eq!(out, b"\x88\x09\x03\xe9restart");
    for refused in [
        ours.close(&mut out, None, ""),
        ours.message(&mut out, Kind::Text, b"x", &mut spare),
        ours.head(&mut out, Kind::Text, 1).map(|_| ()),
        ours.ping(&mut out, b""),
        ours.pong(&mut out, b""),
    ] {
        assert_eq!(refused, Err(Unsendable::Closing));
    }
    let mut answer = Vec::new();
    theirs.answer(&mut answer, &Goodbye { code: Some(1001), reason: "restart" });
    assert_eq!(feed(&server(MAX, None), [&answer[..]]), [Close(Some(1001), String::new())]);
    let before = out.len();
    ours.answer(&mut out, &Goodbye { code: Some(1001), reason: "" });
    assert_eq!((out.len(), ours.closing().phase(), theirs.closing().phase()), (before, Phase::Done, Phase::Done));
}

#[test]
fn whoever_breaks_the_protocol_is_told_why() {
    let mut sender = Sender::new(&Writing { role: Role::Server, fragment: 0, deflate: None, seed: 0 });
    let mut out = Vec::new();
    sender.fail(&mut out, Violation::NotUtf8);
    assert_eq!(out, b"\x88\x13\x03\xeftext is not UTF-8");
    assert_eq!(
        (sender.closing().phase(), sender.closing().code(), sender.closing().sent()),
        (Phase::Lost, 1006, Some(1007))
    );
}

#[test]
fn a_head_alone_is_what_the_whole_message_begins_with() {
    let agreed = plain_deflate();
    for (role, fragment, deflate, length, alone) in [
        (Role::Server, 0, None, 70_000, true),
        (Role::Server, 0, Some(&agreed), 10, true),
        (Role::Server, 0, Some(&agreed), 70_000, false),
        (Role::Server, 100, None, 101, false),
        (Role::Client, 0, None, 10, false),
    ] {
        let settings = Writing { role, fragment, deflate, seed: 0 };
        let (mut head, mut whole) = (Vec::new(), Vec::new());
        let data = vec![b'x'; length];
        let written = Sender::new(&settings).head(&mut head, Kind::Binary, length).unwrap();
        assert_eq!(written.is_some(), alone);
        if alone {
            Sender::new(&settings).message(&mut whole, Kind::Binary, &data, &mut ContextPool::default()).unwrap();
            assert!(whole == [head, data].concat());
        } else {
            assert_eq!(head, b"");
        }
    }
}
