//! WebSocket frames: however a stream is split it means the same, messages keep the limit, and text is text.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::{Choices, agreed, masked};
use tricorn_proto::websocket::receiver::Settings;
use tricorn_proto::websocket::{Delivery, Event, Kind, Receiver, Role, ContextPool, Violation};

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Message(Kind, Vec<u8>),
    Control(&'static str, Vec<u8>),
    Close(Option<u16>, String),
    Failed(Violation),
}

fn feed<'p>(settings: &Settings<'_>, pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<Seen> {
    let (mut receiver, mut spare) = (Receiver::new(settings), ContextPool::default());
    let (mut buffer, mut message, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let progress = match receiver.advance(&mut buffer, &mut spare) {
                Ok(progress) => progress,
                Err(violation) => {
                    seen.push(Seen::Failed(alike(violation)));
                    return seen;
                }
            };
            let consumed = progress.consumed;
            match progress.event {
                Event::NeedMore | Event::Dropped => {
                    buffer.drain(..consumed);
                    break;
                }
                Event::Message { kind, data } => seen.push(whole(settings, kind, data.to_vec())),
                Event::Piece { kind, data, last } => {
                    assert!(last || !data.is_empty());
                    message.extend_from_slice(data);
                    if last {
                        seen.push(whole(settings, kind, std::mem::take(&mut message)));
                    }
                }
                Event::Ping(payload) => seen.push(Seen::Control("ping", payload.to_vec())),
                Event::Pong(payload) => seen.push(Seen::Control("pong", payload.to_vec())),
                Event::Close(close) => seen.push(Seen::Close(close.code, close.reason.into())),
            }
            buffer.drain(..consumed);
        }
        assert!(buffer.len() < 14 + 125, "only heads and control frames wait");
    }
    seen
}

fn whole(settings: &Settings<'_>, kind: Kind, data: Vec<u8>) -> Seen {
    assert!(data.len() as u64 <= settings.max_message_size);
    assert!(kind == Kind::Binary || std::str::from_utf8(&data).is_ok());
    Seen::Message(kind, data)
}

/// Several things can be wrong with what was inflated at once; which is seen first depends on how much came.
fn alike(violation: Violation) -> Violation {
    match violation {
        Violation::NotUtf8 | Violation::MessageTooBig => Violation::NotDeflate,
        other => other,
    }
}

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let agreed = agreed(&mut choices);
    let flags = choices.byte();
    let settings = Settings {
        role: if flags & 1 == 0 { Role::Server } else { Role::Client },
        delivery: Delivery::Whole,
        max_message_size: u64::from(choices.byte()) * 20,
        deflate: agreed.as_ref(),
    };
    let step = usize::from(choices.byte()) + 1;
    let stream = match flags & 2 {
        0 if settings.role == Role::Server => masked(choices.0),
        _ => choices.0.to_vec(),
    };
    let expected = feed(&settings, [&stream[..]]);
    assert_eq!(feed(&settings, stream.chunks(1)), expected, "byte by byte");
    let pieces = Settings { delivery: Delivery::Pieces, ..settings };
    assert_eq!(feed(&pieces, stream.chunks(step)), expected, "streamed, in pieces of {step}");
});
