//! A session as a connection drives it: reads of any size, an application that is slow, and every way to end.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::peer as support;
use proptest::prelude::*;
use support::{MAX, Seen, frame, frames, plain_deflate, server};
use tricorn_proto::websocket::deflate::Agreed;
use tricorn_proto::websocket::session::{Goodbye, MAX_REST, Settings};
use tricorn_proto::websocket::{ContextPool, Kind, Role, Sender, Session, StepInput, Unsendable, sender};

type Message = (Kind, Vec<u8>);

const PLAIN: Settings<'_> = Settings {
    role: Role::Server,
    max_message_size: MAX,
    deflate: None,
    inbox: 1000,
    ping_interval: 20,
    ping_timeout: 5,
    close_timeout: 10,
    seed: 0,
};

/// A session, and what a connection has besides.
struct Connection {
    session: Session<Message>,
    buffer: Vec<u8>,
    out: Vec<u8>,
    spare: ContextPool,
    now: u64,
    is_behind: bool,
}

impl Connection {
    fn new(settings: &Settings<'_>) -> Connection {
        Connection {
            session: Session::new(settings, 0),
            buffer: Vec::new(),
            out: Vec::new(),
            spare: ContextPool::default(),
            now: 0,
            is_behind: false,
        }
    }

    fn turn<T>(&mut self, step: impl FnOnce(&mut Session<Message>, &mut StepInput<'_>) -> T) -> T {
        let Connection { session, out, spare, now, is_behind, .. } = self;
        step(session, &mut StepInput { out, spare, now: *now, is_behind: *is_behind })
    }

    /// One read of a connection.
    fn read(&mut self, bytes: &[u8]) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        self.session.prefix(&mut buffer);
        assert!(buffer.len() < MAX_REST, "{}", buffer.len());
        buffer.extend_from_slice(bytes);
        self.turn(|session, turn| session.receive(&mut buffer, turn, keep));
        self.buffer = buffer;
    }

    fn take(&mut self) -> Option<Message> {
        let message = self.session.take();
        if self.session.wants_resume() {
            self.turn(|session, turn| session.resume(turn, keep));
        }
        message
    }

    fn take_all(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.take()).collect()
    }

    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

fn keep(kind: Kind, data: &[u8]) -> Message {
    (kind, data.to_vec())
}

fn text(text: &str) -> Message {
    (Kind::Text, text.into())
}

fn goodbye(code: u16, reason: &str) -> Option<Goodbye> {
    Some(Goodbye { code, reason: reason.into() })
}

fn client(deflate: Option<&Agreed>) -> Sender {
    Sender::new(&sender::Settings { role: Role::Client, fragment: 0, deflate, seed: 1 })
}

#[test]
fn messages_wait_for_the_application_and_answers_for_the_network() {
    let mut connection = Connection::new(&PLAIN);
    connection.read(&frames(&[(0x81, b"one"), (0x89, b"ping"), (0x02, b"tw"), (0x80, b"o"), (0x8a, b"pong")]));
    assert_eq!(connection.take_all(), [text("one"), (Kind::Binary, b"two".into())]);
    assert_eq!(connection.sent(), b"\x8a\x04ping");
    connection.turn(|session, turn| session.send(Kind::Text, b"one", turn)).unwrap();
    assert_eq!(connection.sent(), b"\x81\x03one");
    assert!(connection.session.is_open() && connection.session.wants_read() && connection.session.goodbye().is_none());
}

#[test]
fn whatever_is_not_complete_waits_in_little_memory() {
    let long = "x".repeat(500);
    let stream = frames(&[(0x81, long.as_bytes()), (0x89, &[7; 125]), (0x81, b"end")]);
    let mut connection = Connection::new(&PLAIN);
    for byte in &stream {
        connection.read(std::slice::from_ref(byte));
    }
    assert_eq!(connection.take_all(), [text(&long), text("end")]);
    assert_eq!(connection.session.held(), 0, "an idle session holds nothing");
}

#[test]
fn a_slow_application_stops_the_reading_and_loses_nothing() {
    let mut connection = Connection::new(&PLAIN);
    let messages: Vec<_> = (0..30).map(|number| text(&number.to_string())).collect();
    let stream: Vec<u8> = messages.iter().flat_map(|(_, data)| frame(0x81, data)).collect();
    connection.read(&stream);
    assert!(!connection.session.wants_read(), "each counts for some more than it has");
    assert!(connection.session.held() > 0 && connection.session.due_at().is_none(), "the peer cannot be heard");
    assert_eq!(connection.take(), Some(text("0")));
    assert!(!connection.session.wants_read(), "not for one message");
    let mut rest = connection.take_all();
    assert!(connection.session.wants_read());
    assert_eq!(connection.session.due_at(), Some(20));
    rest.insert(0, text("0"));
    assert_eq!(rest, messages);
    assert_eq!(connection.session.held(), 0);
}

#[test]
fn a_full_inbox_at_the_end_of_a_read_stops_too() {
    let mut connection = Connection::new(&PLAIN);
    connection.read(&frame(0x82, &[0; 2000]));
    assert!(!connection.session.wants_read() && connection.session.has_messages());
    assert_eq!(connection.take_all().len(), 1);
    assert!(connection.session.wants_read());
}

#[test]
#[cfg_attr(miri, ignore = "many bytes: Miri takes minutes")]
fn inflated_messages_count_as_what_they_became() {
    let agreed = plain_deflate();
    let settings = Settings { deflate: Some(&agreed), ..PLAIN };
    let mut connection = Connection::new(&settings);
    let (mut stream, mut spare) = (Vec::new(), ContextPool::default());
    let mut sender = client(Some(&agreed));
    for _ in 0..10 {
        sender.message(&mut stream, Kind::Binary, &[0; 100_000], &mut spare).unwrap();
    }
    assert!(stream.len() < 10_000);
    connection.read(&stream);
    assert!(connection.session.take().is_some());
    assert!(connection.session.take().is_none(), "one fills the inbox; the others are still small");
    connection.turn(|session, turn| session.resume(turn, keep));
    assert_eq!(connection.take_all().len(), 9);
}

#[test]
fn one_pong_waits_for_a_peer_that_is_behind() {
    let mut connection = Connection::new(&PLAIN);
    connection.is_behind = true;
    for number in 0..1000u32 {
        connection.read(&frame(0x89, &number.to_be_bytes()));
    }
    assert_eq!(connection.sent(), b"");
    let mut out = Vec::new();
    connection.session.caught_up(&mut out);
    assert_eq!(out, b"\x8a\x04\x00\x00\x03\xe7", "the last one is answered");
    connection.session.caught_up(&mut out);
    assert_eq!(out.len(), 6, "once");
}

#[test]
fn the_peer_says_goodbye() {
    for (payload, expected, answer) in [
        (&b"\x03\xe9bye"[..], goodbye(1001, "bye"), &b"\x88\x02\x03\xe9"[..]),
        (b"", goodbye(1005, ""), b"\x88\x00"),
        (b"\x0f\xa0\xc3\xa4", goodbye(4000, "ä"), b"\x88\x02\x0f\xa0"),
    ] {
        let mut connection = Connection::new(&PLAIN);
        connection.read(&frames(&[(0x81, b"last"), (0x88, payload), (0x81, b"never")]));
        assert_eq!(connection.sent(), answer);
        assert_eq!(connection.take_all(), [text("last")]);
        let session = &mut connection.session;
        assert_eq!(session.goodbye(), expected.as_ref());
        assert!(session.is_over() && session.is_clean() && !session.is_open() && !session.wants_read());
        assert_eq!(session.due_at(), None);
        session.lost();
        assert_eq!(session.goodbye(), expected.as_ref(), "nothing is lost any more");
        let refused = connection.turn(|session, turn| session.send(Kind::Text, b"x", turn));
        assert_eq!(refused, Err(Unsendable::Closing));
    }
}

#[test]
fn the_application_says_goodbye_and_the_peer_answers() {
    let mut connection = Connection::new(&PLAIN);
    connection.read(&frames(&[(0x81, b"unread")]));
    connection.now = 100;
    connection.turn(|session, turn| session.close(Some(1000), "done", turn)).unwrap();
    assert_eq!(connection.sent(), b"\x88\x06\x03\xe8done");
    assert_eq!(connection.take(), None, "the application wants it no more");
    assert_eq!((connection.session.due_at(), connection.session.goodbye()), (Some(110), None));
    assert!(connection.session.wants_read() && !connection.session.is_open() && !connection.session.is_over());
    connection.read(&frames(&[(0x81, &[b'x'; 3000]), (0x89, b""), (0x88, b"\x03\xe8")]));
    assert!(connection.session.is_clean());
    assert_eq!(connection.sent(), b"", "neither pong nor a second close");
    assert_eq!((connection.take(), connection.session.goodbye()), (None, goodbye(1000, "").as_ref()));
    assert_eq!(connection.session.sent_code(), Some(1000));
}

#[test]
fn a_close_frame_behind_a_full_inbox_is_found_when_we_close() {
    let mut connection = Connection::new(&PLAIN);
    let big = [0; 2000];
    connection.read(&frames(&[(0x82, &big), (0x82, &big), (0x88, b"\x03\xe8")]));
    assert!(!connection.session.wants_read());
    connection.turn(|session, turn| session.close(Some(1000), "", turn)).unwrap();
    assert!(connection.session.wants_resume());
    assert_eq!(connection.take(), None);
    assert!(connection.session.is_clean());
}

#[test]
fn who_does_not_answer_our_close_is_left() {
    let mut connection = Connection::new(&PLAIN);
    connection.turn(|session, turn| session.close(None, "", turn)).unwrap();
    for (now, over) in [(9, false), (10, true), (11, true)] {
        connection.now = now;
        connection.turn(|session, turn| session.tick(turn));
        assert_eq!(connection.session.is_over(), over, "at {now}");
    }
    assert_eq!(connection.session.goodbye(), goodbye(1006, "").as_ref());
    assert!(!connection.session.is_clean());
    assert_eq!(connection.sent(), b"\x88\x00");
}

#[test]
fn the_server_leaves_and_the_application_hears_what_had_come() {
    let mut connection = Connection::new(&PLAIN);
    connection.read(&frame(0x81, b"had come"));
    connection.turn(|session, turn| session.leave(1012, turn)).unwrap();
    connection.read(&frame(0x81, b"too late"));
    assert_eq!(connection.take_all(), [text("had come")]);
    assert_eq!(connection.session.goodbye(), goodbye(1012, "").as_ref());
    assert!(!connection.session.is_over());
    connection.read(&frame(0x88, b"\x03\xf4"));
    assert!(connection.session.is_clean());
    assert_eq!(connection.session.goodbye(), goodbye(1012, "").as_ref());
    assert_eq!(connection.turn(|session, turn| session.leave(1012, turn)), Err(Unsendable::Closing));
}

#[test]
fn a_connection_that_ends_without_a_word() {
    let mut connection = Connection::new(&PLAIN);
    connection.read(&frame(0x81, b"last")[..]);
    connection.read(&frame(0x81, b"cut off")[..5]);
    connection.session.lost();
    assert_eq!(connection.take_all(), [text("last")]);
    assert_eq!(connection.session.goodbye(), goodbye(1006, "").as_ref());
    assert!(connection.session.is_over() && !connection.session.is_clean());
    assert_eq!(connection.session.held(), 0);
}

#[test]
fn whoever_breaks_the_protocol_is_told_and_read_no_more() {
    let settings = Settings { max_message_size: 10_000, ..PLAIN };
    for (stream, code, reason) in [
        (frame(0x81, b"\xff"), 1007, "text is not UTF-8"),
        (frame(0x82, &[0; 10_001]), 1009, "message is too big"),
        (frame(0x83, b""), 1002, "unknown opcode"),
        (frame(0xc1, b""), 1002, "reserved bits are set"),
        (frame(0x88, b"\x03\xed"), 1002, "close code that may not be sent"),
        (frames(&[(0x02, &[0; 5000]), (0x01, b"")]), 1002, "new message before the end of the last one"),
    ] {
        let mut connection = Connection::new(&settings);
        connection.read(&[frame(0x81, b"fine"), stream, frame(0x81, b"never")].concat());
        assert_eq!(connection.take_all(), [text("fine")]);
        assert_eq!(connection.session.goodbye(), goodbye(code, reason).as_ref());
        let expected = [&[0x88, 2 + reason.len() as u8][..], &code.to_be_bytes(), reason.as_bytes()].concat();
        assert_eq!(connection.sent(), expected);
        assert!(connection.session.is_over() && !connection.session.is_clean());
        assert_eq!(connection.session.held(), 0);
    }
}

#[test]
fn a_silent_peer_is_pinged_and_given_up() {
    let mut connection = Connection::new(&PLAIN);
    let tick = |connection: &mut Connection, now| {
        connection.now = now;
        connection.turn(|session, turn| session.tick(turn));
        (connection.sent(), connection.session.due_at())
    };
    assert_eq!(tick(&mut connection, 19), (vec![], Some(20)));
    assert_eq!(tick(&mut connection, 20), (b"\x89\x08\0\0\0\0\0\0\0\x01".into(), Some(25)));
    connection.now = 24;
    connection.read(&frame(0x8a, &1u64.to_be_bytes()));
    assert_eq!(tick(&mut connection, 25), (vec![], Some(44)));
    assert_eq!(tick(&mut connection, 44), (b"\x89\x08\0\0\0\0\0\0\0\x02".into(), Some(49)));
    assert_eq!(tick(&mut connection, 49), (b"\x88\x18\x03\xf3keepalive ping timeout".into(), None));
    assert!(connection.session.is_over());
    assert_eq!(connection.session.goodbye(), goodbye(1006, "keepalive ping timeout").as_ref());
}

#[test]
fn who_was_silent_remembers_nothing() {
    let agreed = plain_deflate();
    let mut connection = Connection::new(&Settings { deflate: Some(&agreed), ..PLAIN });
    connection.turn(|session, turn| session.send(Kind::Binary, &[0; 1000], turn)).unwrap();
    assert_eq!(connection.spare.remembering(), 1);
    connection.now = 20;
    connection.turn(|session, turn| session.tick(turn));
    assert_eq!(connection.spare.remembering(), 0);
}

#[test]
fn a_session_is_small() {
    let size = size_of::<Session<Box<u8>>>();
    assert!(size <= 700, "{size}");
}

/// What came out of a stream, told as by a receiver.
fn seen(connection: &mut Connection, pieces: &[Vec<u8>], slow: bool) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut take = |connection: &mut Connection| {
        for (kind, data) in connection.take_all() {
            seen.push(match kind {
                Kind::Text => Seen::Text(String::from_utf8(data).unwrap()),
                Kind::Binary => Seen::Binary(data),
            });
        }
    };
    for piece in pieces {
        if !connection.session.wants_read() {
            take(connection);
        }
        if connection.session.wants_read() {
            connection.read(piece);
        }
        if !slow {
            take(connection);
        }
    }
    take(connection);
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// A session says what a receiver says, in any split and with any application.
    #[test]
    #[cfg_attr(miri, ignore = "strings of a regular expression: Miri takes minutes to make them")]
    fn a_session_loses_and_adds_nothing(
        messages in prop::collection::vec((any::<bool>(), "[a-zä€]{0,40}", 1..60usize), 0..12),
        deflate in any::<bool>(),
        slow in any::<bool>(),
        size in 1..700usize,
        cut in any::<prop::sample::Index>(),
    ) {
        let agreed = plain_deflate();
        let deflate = deflate.then_some(&agreed);
        let (mut stream, mut spare, mut sender) = (Vec::new(), ContextPool::default(), client(deflate));
        for (is_text, part, times) in &messages {
            let kind = if *is_text { Kind::Text } else { Kind::Binary };
            sender.message(&mut stream, kind, part.repeat(*times).as_bytes(), &mut spare).unwrap();
        }
        stream.truncate(cut.index(stream.len() + 1).max(stream.len() / 2));
        let expected = support::feed(&server(MAX, deflate), [&stream[..]]);
        let mut connection = Connection::new(&Settings { deflate, ..PLAIN });
        let pieces: Vec<_> = stream.chunks(size).map(Vec::from).collect();
        prop_assert_eq!(seen(&mut connection, &pieces, slow), expected);
        prop_assert!(connection.session.goodbye().is_none());
    }
}
