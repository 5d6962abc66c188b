//! A chunked body: what is decoded, encoded again, is decoded to the same; how it was split does not matter.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_proto::http1::chunked::{Decoder, Trailers};
use tricorn_proto::http1::{HeadPolicy, Step};
use tricorn_proto::message::RefusalKind;

#[derive(Debug, PartialEq, Eq)]
enum End {
    Complete(Trailers),
    Refused(RefusalKind),
    Waiting,
}

fn decode(policy: &HeadPolicy, stream: &[u8], piece: usize) -> (Vec<u8>, End) {
    let (mut decoder, mut trailers) = (Decoder::default(), Trailers::new());
    let (mut body, mut at, mut end) = (Vec::new(), 0, 0);
    loop {
        let progress = match decoder.advance(&stream[at..end], policy, &mut trailers) {
            Ok(progress) => progress,
            Err(refusal) => return (body, End::Refused(refusal.kind)),
        };
        if let Step::Body(range) = &progress.step {
            body.extend_from_slice(&stream[at..][range.clone()]);
        }
        at += progress.consumed;
        match progress.step {
            Step::End => return (body, End::Complete(trailers)),
            Step::NeedMore if end == stream.len() => return (body, End::Waiting),
            Step::NeedMore => end = (end + piece).min(stream.len()),
            _ => {}
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let policy = HeadPolicy::default();
    let [piece, stream @ ..] = data else { return };
    let (body, end) = decode(&policy, stream, stream.len().max(1));
    assert_eq!(decode(&policy, stream, 1), (body.clone(), reborrow(&end)));
    assert_eq!(
        decode(&policy, stream, usize::from(*piece) + 1),
        (body.clone(), reborrow(&end))
    );
    if end != End::Waiting && !matches!(end, End::Refused(_)) {
        let mut again = Vec::new();
        for chunk in body.chunks(7) {
            again.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
            again.extend_from_slice(chunk);
            again.extend_from_slice(b"\r\n");
        }
        again.extend_from_slice(b"0\r\n\r\n");
        assert_eq!(
            decode(&policy, &again, 3),
            (body, End::Complete(Trailers::new()))
        );
    }
});

fn reborrow(end: &End) -> End {
    match end {
        End::Complete(trailers) => End::Complete(trailers.clone()),
        End::Refused(kind) => End::Refused(*kind),
        End::Waiting => End::Waiting,
    }
}
