//! RFC 6455 sections 5 to 8, as cases in the manner of the Autobahn test suite, whose numbers they carry.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::peer as support;
use support::*;
use tricorn_proto::websocket::Violation::*;

const GREEK: &str = "\u{3ba}\u{1f79}\u{3c3}\u{3bc}\u{3b5}";
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// The same without FIN, and continuations.
const TEXT_MORE: u8 = 0x01;
const BINARY_MORE: u8 = 0x02;
const MORE: u8 = 0x00;
const LAST: u8 = 0x80;

type Case = (&'static str, Vec<u8>, Vec<Seen>);

fn case(name: &'static str, parts: &[(u8, &[u8])], seen: Vec<Seen>) -> Case {
    (name, frames(parts), seen)
}

fn check(cases: Vec<Case>) {
    for (name, stream, expected) in cases {
        let seen = std::panic::catch_unwind(|| read(&stream)).unwrap_or_else(|_| panic!("{name}"));
        assert!(seen == expected, "{name}: {}", short(&seen));
    }
}

fn short(seen: &[Seen]) -> String {
    format!("{seen:?}").chars().take(500).collect()
}

fn binary(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + index / 255) as u8).collect()
}

#[test]
fn section_1_messages_of_every_length() {
    let mut cases = vec![
        case("1_1_1 empty text", &[(TEXT, b"")], vec![text("")]),
        case("1_2_1 empty binary", &[(BINARY, b"")], vec![Binary(vec![])]),
    ];
    for length in [1, 124, 125, 126, 127, 128, 65_535, 65_536] {
        let payload = vec![b'*'; length];
        cases.push(case("1_1 text", &[(TEXT, &payload)], vec![text(&"*".repeat(length))]));
        cases.push(case("1_2 binary", &[(BINARY, &binary(length))], vec![Binary(binary(length))]));
    }
    check(cases);
}

#[test]
fn section_2_pings_and_pongs() {
    let full = vec![0xfe; 125];
    let ten: Vec<(u8, &[u8])> = (0..10).map(|_| (PING, &b"payload"[..])).collect();
    check(vec![
        case("2_1 ping without payload", &[(PING, b"")], vec![Ping(vec![])]),
        case("2_2 ping with text", &[(PING, b"Hello")], vec![Ping(b"Hello".into())]),
        case("2_3 ping with bytes that are no text", &[(PING, b"\0\xff\xfe")], vec![Ping(b"\0\xff\xfe".into())]),
        case("2_4 ping of 125 bytes", &[(PING, &full)], vec![Ping(full.clone())]),
        case("2_5 ping of 126 bytes", &[(PING, &[0; 126])], failed(LongControl)),
        case("2_7 pong that was not asked for", &[(PONG, b"")], vec![Pong(vec![])]),
        case("2_8 with payload", &[(PONG, b"unsolicited")], vec![Pong(b"unsolicited".into())]),
        case("2_9 and a ping after it", &[(PONG, b"a"), (PING, b"b")], vec![Pong(b"a".into()), Ping(b"b".into())]),
        case("2_10 ten pings", &ten, vec![Ping(b"payload".into()); 10]),
    ]);
}

#[test]
fn section_3_reserved_bits() {
    let hello = || text("Hello");
    check(vec![
        case("3_1 RSV3", &[(TEXT | 0x10, b"x")], failed(ReservedBits)),
        case(
            "3_2 RSV2 after a message",
            &[(TEXT, b"Hello"), (TEXT | 0x20, b"x"), (PING, b"")],
            vec![hello(), Failed(ReservedBits)],
        ),
        case("3_3 RSV2 and RSV3", &[(TEXT, b"Hello"), (TEXT | 0x30, b"x")], vec![hello(), Failed(ReservedBits)]),
        case("3_4 RSV1 without an extension", &[(TEXT | 0x40, b"x")], failed(ReservedBits)),
        case("3_5 RSV1 and RSV3, binary", &[(BINARY | 0x50, b"x")], failed(ReservedBits)),
        case("3_6 RSV1 and RSV2, ping", &[(PING | 0x60, b"x")], failed(ReservedBits)),
        case("3_7 all, close", &[(CLOSE | 0x70, b"")], failed(ReservedBits)),
    ]);
}

#[test]
fn section_4_opcodes() {
    for opcode in [3, 4, 5, 6, 7, 0xb, 0xc, 0xd, 0xe, 0xf] {
        check(vec![
            case("4_1 reserved opcode", &[(0x80 | opcode, b"")], failed(UnknownOpcode)),
            case(
                "4_2 after a message",
                &[(TEXT, b"a"), (0x80 | opcode, b"x"), (PING, b"")],
                vec![text("a"), Failed(UnknownOpcode)],
            ),
        ]);
    }
}

#[test]
fn section_5_fragments() {
    let (ping, a, b, c): (&[u8], &[u8], &[u8], &[u8]) = (b"ping payload", b"fragment1", b"fragment2", b"fragment3");
    let two = || text("fragment1fragment2");
    let pinged = || Ping(ping.into());
    check(vec![
        case("5_1 fragmented ping", &[(0x09, a), (LAST, b)], failed(FragmentedControl)),
        case("5_2 fragmented pong", &[(0x0a, a), (LAST, b)], failed(FragmentedControl)),
        case("5_3 text in two fragments", &[(TEXT_MORE, a), (LAST, b)], vec![two()]),
        case("5_6 with a ping in between", &[(TEXT_MORE, a), (PING, ping), (LAST, b)], vec![pinged(), two()]),
        case("5_9 continuation of nothing", &[(LAST, a), (TEXT, b)], failed(NothingToContinue)),
        case("5_12 not the last one either", &[(MORE, a), (TEXT, b)], failed(NothingToContinue)),
        case(
            "5_15 after a message",
            &[(TEXT_MORE, a), (LAST, b), (MORE, c), (TEXT, a)],
            vec![two(), Failed(NothingToContinue)],
        ),
        case("5_18 text in a text", &[(TEXT_MORE, a), (TEXT, b)], failed(MessageInMessage)),
        case("5_18 binary in a text", &[(TEXT_MORE, a), (BINARY_MORE, b)], failed(MessageInMessage)),
        case(
            "5_19 five fragments, pings in between",
            &[(TEXT_MORE, a), (MORE, b), (PING, ping), (MORE, b"f3"), (MORE, b"f4"), (PING, ping), (LAST, b"f5")],
            vec![pinged(), pinged(), text("fragment1fragment2f3f4f5")],
        ),
        case("6_1 empty fragments", &[(TEXT_MORE, b""), (MORE, b""), (LAST, b"")], vec![text("")]),
        case("6_1 empty but the middle one", &[(TEXT_MORE, b""), (MORE, b"middle"), (LAST, b"")], vec![text("middle")]),
        case(
            "binary in fragments and text after it",
            &[(BINARY_MORE, b"\xff"), (LAST, b"\xfe"), (TEXT, b"x")],
            vec![Binary(vec![0xff, 0xfe]), text("x")],
        ),
        case(
            "a close between fragments ends all",
            &[(TEXT_MORE, a), (CLOSE, b"\x03\xe8"), (LAST, b)],
            vec![Close(Some(1000), "".into())],
        ),
    ]);
}

#[test]
fn section_6_utf_8() {
    let greek = GREEK.as_bytes();
    let bytewise: Vec<(u8, &[u8])> = greek
        .chunks(1)
        .enumerate()
        .map(|(index, byte)| {
            (
                if index == 0 {
                    TEXT_MORE
                } else if index + 1 == greek.len() {
                    LAST
                } else {
                    MORE
                },
                byte,
            )
        })
        .collect();
    let bad = |bytes: &[u8]| [greek, bytes, b"edited"].concat();
    let mut cases = vec![
        case("6_2_1 in one frame", &[(TEXT, greek)], vec![text(GREEK)]),
        case("6_2_3 every byte a fragment", &bytewise, vec![text(GREEK)]),
        case("6_3_1 a surrogate", &[(TEXT, &bad(b"\xed\xa0\x80"))], failed(NotUtf8)),
        case(
            "6_4_1 beyond the last code point, in the second fragment",
            &[(TEXT_MORE, greek), (MORE, b"\xf4\x90\x80\x80"), (LAST, b"x")],
            failed(NotUtf8),
        ),
        case("6_4 a message that stays open", &[(TEXT_MORE, b"\xf4\x90")], failed(NotUtf8)),
        case("6_6 cut off", &[(TEXT, b"\xce")], failed(NotUtf8)),
        case("6_6 cut off by the last fragment", &[(TEXT_MORE, b"\xce"), (LAST, b"")], failed(NotUtf8)),
        case(
            "6_6 cut off, and a ping does not heal it",
            &[(TEXT_MORE, b"\xce"), (PING, b"\xba"), (LAST, b"\xba")],
            vec![Ping(vec![0xba]), text("\u{3ba}")],
        ),
        case(
            "6_22 non-characters are characters",
            &[(TEXT, "\u{fffe}\u{ffff}\u{10ffff}".as_bytes())],
            vec![text("\u{fffe}\u{ffff}\u{10ffff}")],
        ),
    ];
    for bad in [
        &b"\xfe"[..],
        b"\xff",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xf8\x80\x80\x80\xaf",
        b"\xed\xad\xbf",
        b"\xed\xbe\x80",
        b"\x80",
        b"\xbf\x80",
    ] {
        cases.push(case("6_7 to 6_21 impossible, overlong, surrogates", &[(TEXT, bad)], failed(NotUtf8)));
        cases.push(case("in binary anything goes", &[(BINARY, bad)], vec![Binary(bad.into())]));
    }
    check(cases);
}

#[test]
fn section_6_4_wrong_at_the_first_impossible_byte() {
    // The frame says that more is to come, and it never does.
    let stream = frame(TEXT, &[GREEK.as_bytes(), b"\xf4\x90\x80\x80 and more"].concat());
    let shown = 6 + GREEK.len() + 2;
    assert_eq!(feed(&server(MAX, None), stream[..shown].chunks(1)), failed(NotUtf8));
    assert_eq!(feed(&server(MAX, None), stream[..shown - 1].chunks(1)), []);
}

#[test]
fn section_7_closing() {
    let closed = |code, reason: &str| vec![Close(code, reason.into())];
    let long = [&b"\x03\xe8"[..], &[b'*'; 123]].concat();
    let too_long = [&b"\x03\xe8"[..], &[b'*'; 124]].concat();
    let mut cases = vec![
        case("7_1_2 two closes", &[(CLOSE, b""), (CLOSE, b"")], closed(None, "")),
        case("7_1_3 a ping after close", &[(CLOSE, b""), (PING, b"x")], closed(None, "")),
        case("7_1_4 a message after close", &[(CLOSE, b"\x03\xe8bye"), (TEXT, b"x")], closed(Some(1000), "bye")),
        case("7_1_5 rubbish after close", &[(CLOSE, b""), (0xff, b"rubbish")], closed(None, "")),
        case("7_3_1 without payload", &[(CLOSE, b"")], closed(None, "")),
        case("7_3_2 one byte", &[(CLOSE, b"a")], failed(ShortClose)),
        case("7_3_3 a code", &[(CLOSE, b"\x03\xe8")], closed(Some(1000), "")),
        case("7_3_5 the longest reason", &[(CLOSE, &long)], closed(Some(1000), &"*".repeat(123))),
        case("7_3_6 a longer one", &[(CLOSE, &too_long)], failed(LongControl)),
        case("7_5_1 a reason that is not UTF-8", &[(CLOSE, b"\x03\xe8\xce\xba\xed\xa0\x80")], failed(CloseReason)),
        case("7_5 a reason that is cut off", &[(CLOSE, b"\x03\xe8\xce")], failed(CloseReason)),
        case("fragmented close", &[(0x08, b"\x03\xe8")], failed(FragmentedControl)),
    ];
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999u16] {
        cases.push(case("7_7 codes that may be sent", &[(CLOSE, &code.to_be_bytes())], closed(Some(code), "")));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535u16] {
        cases.push(case("7_9 codes that may not", &[(CLOSE, &code.to_be_bytes())], failed(CloseCode)));
    }
    check(cases);
}

#[test]
fn lengths_and_masks() {
    let raw = |bytes: &[u8]| bytes.to_vec();
    check(vec![
        ("16 bits for 125", raw(b"\x82\xfe\x00\x7d"), failed(LengthNotMinimal)),
        ("16 bits for 126", [b"\x82\xfe\x00\x7e\0\0\0\0".to_vec(), vec![7; 126]].concat(), vec![Binary(vec![7; 126])]),
        ("64 bits for 65535", raw(b"\x82\xff\0\0\0\0\0\0\xff\xff"), failed(LengthNotMinimal)),
        ("64 bits for 0", raw(b"\x82\xff\0\0\0\0\0\0\0\0"), failed(LengthNotMinimal)),
        ("the 64th bit", raw(b"\x82\xff\x80"), failed(LengthTooLarge)),
        (
            "63 bits are too big, but a length",
            raw(b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"),
            failed(MessageTooBig),
        ),
        ("control frame with 16 bits", raw(b"\x89\xfe"), failed(LongControl)),
        ("control frame with 64 bits", raw(b"\x88\xff"), failed(LongControl)),
        ("no mask", raw(b"\x81\x05Hello"), failed(NotMasked)),
        ("no mask, known by two bytes", raw(b"\x81\x05"), failed(NotMasked)),
        ("no mask on a ping", raw(b"\x89\x00"), failed(NotMasked)),
    ]);
}

#[test]
fn section_9_size_is_known_from_the_head_and_from_the_sum() {
    let settings = server(1000, None);
    let cases: [(&str, Vec<u8>, Vec<Seen>); 6] = [
        ("as large as allowed", frame(BINARY, &[1; 1000]), vec![Binary(vec![1; 1000])]),
        ("a byte more, by its head alone", frame(BINARY, &[1; 1001])[..8].to_vec(), failed(MessageTooBig)),
        ("in fragments", frames(&[(TEXT_MORE, &[b'a'; 500]), (LAST, &[b'a'; 500])]), vec![text(&"a".repeat(1000))]),
        (
            "in fragments, a byte more",
            frames(&[(TEXT_MORE, &[b'a'; 500]), (LAST, &[b'a'; 501])]),
            failed(MessageTooBig),
        ),
        (
            "two messages are not one",
            frames(&[(BINARY, &[1; 600]), (BINARY, &[1; 600])]),
            vec![Binary(vec![1; 600]), Binary(vec![1; 600])],
        ),
        (
            "control frames do not count",
            frames(&[(BINARY_MORE, &[1; 950]), (PING, &[1; 100]), (LAST, &[1; 50])]),
            vec![Ping(vec![1; 100]), Binary(vec![1; 1000])],
        ),
    ];
    for (name, stream, expected) in cases {
        assert!(read_with(&settings, &stream) == expected, "{name}");
    }
}

#[test]
fn the_examples_of_section_5_7() {
    use tricorn_proto::websocket::{Delivery, Role, receiver::Settings};
    let client = Settings { role: Role::Client, delivery: Delivery::Whole, max_message_size: MAX, deflate: None };
    let (long, longer) = (binary(256), binary(65_536));
    let cases: [(bool, Vec<u8>, Vec<Seen>); 7] = [
        (false, b"\x81\x05\x48\x65\x6c\x6c\x6f".into(), vec![text("Hello")]),
        (true, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58".into(), vec![text("Hello")]),
        (false, b"\x01\x03\x48\x65\x6c\x80\x02\x6c\x6f".into(), vec![text("Hello")]),
        (false, b"\x89\x05\x48\x65\x6c\x6c\x6f".into(), vec![Ping(b"Hello".into())]),
        (true, b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58".into(), vec![Pong(b"Hello".into())]),
        (false, [b"\x82\x7e\x01\x00".to_vec(), long.clone()].concat(), vec![Binary(long)]),
        (false, [b"\x82\x7f\0\0\0\0\0\x01\0\0".to_vec(), longer.clone()].concat(), vec![Binary(longer)]),
    ];
    for (to_server, stream, expected) in cases {
        let (right, wrong) = if to_server { (server(MAX, None), client) } else { (client, server(MAX, None)) };
        assert!(read_with(&right, &stream) == expected);
        assert_eq!(read_with(&wrong, &stream), failed(if to_server { Masked } else { NotMasked }));
    }
}
