//! However a stream is split over reads, it means the same.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::{Choices, events};

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let policy = choices.policy();
    let steps = [
        choices.byte(),
        choices.byte(),
        choices.byte(),
        choices.byte(),
    ];
    let stream = choices.0;
    let expected = events(&policy, [stream]);
    assert_eq!(events(&policy, stream.chunks(1)), expected, "byte by byte");
    let mut rest = stream;
    let pieces = steps.iter().cycle().map_while(|&step| {
        let (piece, after) = rest.split_at(usize::from(step % 32 + 1).min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    });
    assert_eq!(events(&policy, pieces), expected, "in pieces of {steps:?}");
});
