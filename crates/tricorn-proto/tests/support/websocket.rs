//! What the WebSocket tests have in common: frames by hand, and what came out of a stream however it was split.
#![allow(dead_code, clippy::unwrap_used)] // A test may panic, and need not use all of this.
use tricorn_proto::websocket::deflate::{Agreed, Offer, Policy};
use tricorn_proto::websocket::receiver::Settings;
use tricorn_proto::websocket::{ContextPool, Delivery, Event, Kind, Receiver, Role, Violation};

/// What came, on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
    Failed(Violation),
}
pub use Seen::*;

pub const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
pub const MAX: u64 = 1 << 20;

/// A masked frame with any first byte; the length is written in the shortest form.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        length @ 0..=125 => out.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&KEY);
    out.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
    out
}

pub fn frames(parts: &[(u8, &[u8])]) -> Vec<u8> {
    parts.iter().flat_map(|(first, payload)| frame(*first, payload)).collect()
}

pub fn server(max_message_size: u64, deflate: Option<&Agreed>) -> Settings<'_> {
    Settings { role: Role::Server, delivery: Delivery::Whole, max_message_size, deflate }
}

/// What the default policy and the plainest offer come to.
pub fn plain_deflate() -> Agreed {
    Policy::default().choose([Offer::default()]).unwrap()
}

/// Everything that came out of the pieces, presented one after the other as a connection does.
pub fn feed<'p>(settings: &Settings<'_>, pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<Seen> {
    let (mut receiver, mut spare) = (Receiver::new(settings), ContextPool::default());
    let (mut buffer, mut seen) = (Vec::new(), Vec::new());
    let mut message = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let given = buffer.len();
            let progress = match receiver.advance(&mut buffer, &mut spare) {
                Ok(progress) => progress,
                Err(violation) => {
                    assert_eq!(receiver.advance(&mut buffer, &mut spare), Err(violation), "nothing is read after it");
                    seen.push(Failed(violation));
                    return seen;
                }
            };
            assert!(progress.consumed <= given);
            let consumed = progress.consumed;
            let mut done = false;
            match progress.event {
                Event::NeedMore => done = true,
                Event::Dropped => {
                    assert_eq!(consumed, given);
                    done = true;
                }
                Event::Message { kind, data } => seen.push(whole(kind, data)),
                Event::Piece { kind, data, last } => {
                    assert!(last || !data.is_empty());
                    message.extend_from_slice(data);
                    if last {
                        seen.push(whole(kind, &std::mem::take(&mut message)));
                    }
                }
                Event::Ping(payload) => seen.push(Ping(payload.to_vec())),
                Event::Pong(payload) => seen.push(Pong(payload.to_vec())),
                Event::Close(close) => seen.push(Close(close.code, close.reason.into())),
            }
            buffer.drain(..consumed);
            if done {
                break;
            }
        }
    }
    assert!(buffer.len() < 14 + 125, "only heads and control frames wait: {}", buffer.len());
    seen
}

fn whole(kind: Kind, data: &[u8]) -> Seen {
    match kind {
        Kind::Text => Text(String::from_utf8(data.to_vec()).unwrap()),
        Kind::Binary => Binary(data.to_vec()),
    }
}

/// Whole, byte by byte, cut at every place and in pieces of several sizes, whole messages and streamed ones: all must
/// come to the same. Miri takes minutes for one long stream byte by byte: it has some of these, and short streams.
pub fn read_with(settings: &Settings<'_>, stream: &[u8]) -> Vec<Seen> {
    let (sizes, cuts): (&[usize], _) = match stream.len() {
        0..300 if cfg!(miri) => (&[1, 7], 3),
        _ if cfg!(miri) => (&[1000], 1),
        _ => (&[1, 2, 3, 5, 7, 11, 64, 1000], 600),
    };
    let expected = feed(settings, [stream]);
    for delivery in [Delivery::Whole, Delivery::Pieces] {
        let settings = Settings { delivery, ..*settings };
        for size in sizes {
            assert_eq!(feed(&settings, stream.chunks(*size)), expected, "in pieces of {size}, {delivery:?}");
        }
        for cut in (0..=stream.len()).step_by(stream.len() / cuts + 1) {
            let (before, after) = stream.split_at(cut);
            assert_eq!(feed(&settings, [before, after]), expected, "cut at {cut}, {delivery:?}");
        }
    }
    expected
}

pub fn read(stream: &[u8]) -> Vec<Seen> {
    read_with(&server(MAX, None), stream)
}

pub fn text(text: &str) -> Seen {
    Text(text.into())
}

pub fn failed(violation: Violation) -> Vec<Seen> {
    vec![Failed(violation)]
}
