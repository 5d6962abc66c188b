//! Responses as parts, which wait and are cut anywhere, and the frames that they become.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::h2::*;
use tricorn_proto::http2::frame::Kind;
use tricorn_proto::http2::{Unsendable, encode};
use tricorn_proto::message::{FieldList, Method, Version};
use tricorn_proto::response::{HeadInputs, Interim, Reply};

/// A whole response: 103, a head, two pieces of content, trailers if there are some.
fn parts(pieces: [&[u8]; 2], trailers: &FieldList) -> Vec<u8> {
    let mut out = encode::CONTINUE.to_vec();
    let fields = FieldList::from_iter([(&b"Link"[..], &b"</a>"[..])]);
    encode::interim(&mut out, &Interim { status: 103, fields });
    let mut reply = Reply::default();
    reply.begin(Method::Get, Version::Http2, true);
    reply.status(b"200 OK").unwrap();
    reply.field(b"X-Name", b"value").unwrap();
    encode::head(&mut out, &reply.head(&HeadInputs { server: b"tricorn", ..HeadInputs::default() }).unwrap());
    for piece in pieces {
        encode::before(&mut out, reply.body(piece.len() as u64));
        out.extend_from_slice(piece);
    }
    encode::end(&mut out, Some(trailers));
    out
}

fn frames_of(parts: &[u8], cuts: impl Iterator<Item = usize>) -> Vec<(Kind, u8, Vec<u8>)> {
    let mut server = Server::new();
    server.receive(&get(1));
    let mut at = 0;
    for cut in cuts.chain([parts.len()]) {
        assert_eq!(server.connection.write(1, &parts[at..cut]), Ok(cut - at), "all of it fits");
        at = cut;
    }
    server.frames().into_iter().map(|frame| (frame.kind, frame.flags, frame.payload)).collect()
}

#[test]
fn a_response_written_at_once_ends_with_its_last_data() {
    let frames = frames_of(&parts([b"one", b"two"], &FieldList::new()), [].into_iter());
    let kinds: Vec<_> = frames.iter().map(|(kind, flags, _)| (*kind, flags & END_STREAM)).collect();
    let interim = (Kind::Headers, 0);
    assert_eq!(kinds, [interim, interim, (Kind::Headers, 0), (Kind::Data, 0), (Kind::Data, END_STREAM)]);
    assert_eq!((&frames[3].2[..], &frames[4].2[..]), (&b"one"[..], &b"two"[..]));
}

#[test]
fn a_response_says_the_same_wherever_it_is_cut() {
    let trailers = FieldList::from_iter([(&b"grpc-status"[..], &b"0"[..])]);
    let parts = parts([b"one", b"two"], &trailers);
    let heads = |frames: &[(Kind, u8, Vec<u8>)]| {
        let mut heads = frames.to_vec();
        heads.retain(|(kind, ..)| *kind == Kind::Headers);
        heads
    };
    let content = |frames: &[(Kind, u8, Vec<u8>)]| {
        frames.iter().filter(|(kind, ..)| *kind == Kind::Data).flat_map(|(.., bytes)| bytes.clone()).collect::<Vec<_>>()
    };
    let whole = frames_of(&parts, [].into_iter());
    assert_eq!(heads(&whole).len(), 4);
    assert_eq!(content(&whole), b"onetwo");
    for cut in 1..parts.len() {
        let frames = frames_of(&parts, [cut].into_iter());
        assert_eq!((heads(&frames), content(&frames)), (heads(&whole), content(&whole)), "cut at {cut}");
    }
    let singly = frames_of(&parts, 1..parts.len());
    assert_eq!((heads(&singly), content(&singly)), (heads(&whole), content(&whole)));
}

#[test]
fn content_beyond_the_window_waits_and_its_stream_is_named_when_there_is_room() {
    let mut server = Server::new();
    server.receive(&get(1));
    let parts = parts([&[b'a'; 60_000], &[b'b'; 60_000]], &FieldList::new());
    let mut at = server.connection.write(1, &parts).unwrap();
    server.frames();
    at += server.connection.write(1, &parts[at..]).unwrap();
    assert!(at < parts.len() && !server.connection.has_room(1), "the window is 65,535 bytes");
    server.connection.offer(1);
    assert_eq!(server.connection.take_next_to_send(), None);
    server.frames();
    server.receive(&[window_update(0, 100_000), window_update(1, 100_000)].concat());
    assert!(server.connection.has_room(1));
    assert_eq!((server.connection.take_next_to_send(), server.connection.take_next_to_send()), (Some(1), None));
    at += server.connection.write(1, &parts[at..]).unwrap();
    assert_eq!(at, parts.len());
    let frames = server.frames();
    assert_eq!(frames.last().map(|frame| frame.flags & END_STREAM), Some(END_STREAM));
}

#[test]
fn nothing_is_written_on_a_stream_that_was_reset() {
    let mut server = Server::new();
    server.receive(&get(1));
    let parts = parts([b"one", b"two"], &FieldList::new());
    server.receive(&rst_stream(1, 8));
    assert_eq!(server.connection.write(1, &parts), Err(Unsendable::Closed));
    assert!(server.connection.has_room(1), "nobody is to wait for it");
}

/// Several write the rest of a response, one after another: each is told, also behind the one that was told first.
#[test]
fn a_reset_within_content_is_told_to_all_who_write() {
    let mut server = Server::new();
    server.receive(&get(1));
    let parts = parts([&[b'x'; 70_000], b"two"], &FieldList::new());
    let taken = server.connection.write(1, &parts).unwrap();
    assert!(taken < 70_000, "the window is shut within the content");
    server.receive(&rst_stream(1, 8));
    for _ in 0..3 {
        assert_eq!(server.connection.write(1, &parts[taken..]), Err(Unsendable::Closed));
    }
}

#[test]
fn parts_in_no_good_order_are_an_error() {
    let mut server = Server::new();
    server.receive(&get(1));
    assert_eq!(server.connection.write(1, &parts([b"", b""], &FieldList::new())[12..13]), Ok(1), "a kind alone");
    let mut server = Server::new();
    server.receive(&get(1));
    let mut end = Vec::new();
    encode::end(&mut end, None);
    assert_eq!(server.connection.write(1, &end), Err(Unsendable::Order), "an end without a head");
}
