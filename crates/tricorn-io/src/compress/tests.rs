#![allow(clippy::expect_used)] // A test may panic, in its helpers too.
use super::*;
use std::io::Read;
use zstd_safe::{DCtx, InBuffer, OutBuffer};

fn compressors() -> Arc<Compressors> {
    let types = vec![tricorn_proto::response::compression::MediaRange::parse("text/*").expect("one")];
    Compressors::of(Policy { codings: Coding::ALL.to_vec(), types, private: false }).expect("asked for")
}

/// Some text of this length, which a compressor can make shorter, but not to nothing.
fn text(length: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let words = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed", "do"];
    let mut out = Vec::new();
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(words[(state % 10) as usize].as_bytes());
        out.extend_from_slice((state >> 50).to_string().as_bytes());
    }
    out.truncate(length);
    out
}

/// What a receiver makes of these bytes, which need not be all; and whether they are.
fn decoded(coding: Coding, bytes: &[u8]) -> (Vec<u8>, bool) {
    match coding {
        Coding::Gzip => {
            let mut decoder = flate2::read::GzDecoder::new(bytes);
            partly(&mut decoder)
        }
        Coding::Brotli => partly(&mut brotli::Decompressor::new(bytes, 4096)),
        Coding::Zstd => {
            let (mut out, mut context, mut is_whole) = (Vec::new(), DCtx::create(), false);
            let mut input = InBuffer::around(bytes);
            loop {
                let mut room = [0; 4096];
                let mut output = OutBuffer::around(&mut room[..]);
                let left = context.decompress_stream(&mut output, &mut input).expect("a frame");
                out.extend_from_slice(output.as_slice());
                is_whole |= left == 0;
                if output.as_slice().len() < 4096 && input.pos() == bytes.len() {
                    return (out, is_whole);
                }
            }
        }
    }
}

fn partly(decoder: &mut impl Read) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let mut room = [0; 4096];
    loop {
        match decoder.read(&mut room) {
            Ok(0) => return (out, true),
            Ok(count) => out.extend_from_slice(&room[..count]),
            Err(_) => return (out, false),
        }
    }
}

#[test]
fn a_whole_body_comes_back_as_it_was() {
    let compressors = compressors();
    for coding in Coding::ALL {
        // One that is compressed thoroughly, the longest of these, and one that is compressed quickly; each twice.
        for length in [1024, THOROUGH, THOROUGH + 1, 1 << 20, 1024, THOROUGH + 1] {
            let body = text(length);
            let whole = compressors.whole(coding, &body).expect("it is shorter");
            assert!(whole.len() < body.len() * 2 / 3, "{coding:?} {length}: {}", whole.len());
            assert!(decoded(coding, &whole) == (body, true), "{coding:?} {length}");
        }
    }
}

#[test]
fn a_body_that_does_not_become_shorter_is_left_alone() {
    let compressors = compressors();
    let mut state = 1u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    let noise = noise.take(4096).collect::<Vec<_>>();
    for coding in Coding::ALL {
        assert_eq!(compressors.whole(coding, &noise), None, "{coding:?}");
        assert!(compressors.whole(coding, &text(4096)).is_some(), "{coding:?}");
    }
}

/// A receiver has each piece when it was sent, and knows only at the end that it has them all.
#[test]
fn each_piece_of_a_stream_can_be_read_at_once() {
    let compressors = compressors();
    for coding in Coding::ALL {
        for piece in [1, 100, 5000, 200_000] {
            let mut stream = compressors.stream(coding, false).expect("a place");
            let (mut sent, mut said) = (Vec::new(), Vec::new());
            for number in 0..5 {
                let piece = text(piece + number);
                sent.extend(stream.encode(&piece).expect("it compresses"));
                said.extend(piece);
                assert!(decoded(coding, &sent) == (said.clone(), false), "{coding:?} {}", said.len());
            }
            assert_eq!(stream.encode(b""), Ok(Vec::new()), "nothing is flushed twice");
            sent.extend(stream.finish(b"the last").expect("it ends"));
            said.extend(b"the last");
            assert!(decoded(coding, &sent) == (said, true), "{coding:?}");
        }
    }
}

#[test]
fn a_stream_without_a_piece_is_an_empty_body() {
    for coding in Coding::ALL {
        let sent = compressors().stream(coding, false).expect("a place").finish(b"").expect("it ends");
        assert_eq!(decoded(coding, &sent), (Vec::new(), true), "{coding:?}");
    }
}

#[test]
fn pieces_at_hand_are_not_flushed_one_by_one() {
    let compressors = compressors();
    for coding in Coding::ALL {
        let pieces: Vec<Vec<u8>> = (0..20).map(|number| text(500 + number)).collect();
        let length = |at_hand| {
            let mut stream = compressors.stream(coding, at_hand).expect("a place");
            let mut sent: Vec<u8> =
                pieces.iter().flat_map(|piece| stream.encode(piece).expect("it compresses")).collect();
            sent.extend(stream.finish(b"").expect("it ends"));
            assert!(decoded(coding, &sent) == (pieces.concat(), true), "{coding:?}");
            sent.len()
        };
        assert!(length(true) < length(false), "{coding:?}");
    }
}

#[test]
fn a_worker_has_places_for_so_many_streams() {
    let compressors = compressors();
    for _ in 0..2 {
        let codings = Coding::ALL.into_iter().cycle();
        let mut streams: Vec<Stream> =
            codings.take(STREAMS).map(|coding| compressors.stream(coding, false).expect("a place")).collect();
        for coding in Coding::ALL {
            assert!(compressors.stream(coding, false).is_none());
            assert!(compressors.whole(coding, &text(2000)).is_some(), "whole bodies need no place");
        }
        streams.pop();
        assert!(compressors.stream(Coding::Gzip, false).is_some());
    }
    assert_eq!(compressors.streams.load(Ordering::Relaxed), 0);
}

#[test]
fn few_compressors_are_kept_and_they_forget_what_they_had() {
    let compressors = compressors();
    for coding in [Coding::Gzip, Coding::Zstd] {
        let streams: Vec<Stream> = (0..5)
            .map(|_| {
                let mut stream = compressors.stream(coding, false).expect("a place");
                stream.encode(b"a secret of another response").expect("it compresses");
                stream
            })
            .collect();
        drop(streams);
        let mut again = compressors.stream(coding, false).expect("a place");
        let sent = again.finish(b"what is new").expect("it ends");
        assert_eq!(decoded(coding, &sent), (b"what is new".to_vec(), true));
    }
    assert_eq!(compressors.kept.lock().expect("a lock").len(), 2 * KEPT, "of five of each");
}

/// The documentation and the table of attacks promise it.
#[test]
fn zstd_takes_half_a_mebibyte_for_a_stream() {
    for (effort, most) in [(Effort::Quick, 544 << 10), (Effort::Thorough, 1700 << 10)] {
        let Ok(Encoder::Zstd(mut context)) = Encoder::new(Coding::Zstd, effort) else { panic!("it is one") };
        let mut out = Vec::new();
        zstd_stream(&mut context, &text(1 << 20), &mut out);
        assert!(context.sizeof() <= most, "{effort:?}: {}", context.sizeof());
    }
}

fn zstd_stream(context: &mut zstd_safe::CCtx<'_>, bytes: &[u8], out: &mut Vec<u8>) {
    let mut input = InBuffer::around(bytes);
    out.reserve(bytes.len());
    let mut output = OutBuffer::around(out);
    let flush = zstd_safe::zstd_sys::ZSTD_EndDirective::ZSTD_e_flush;
    while context.compress_stream2(&mut output, &mut input, flush).expect("it compresses") > 0 {}
}
