//! HPACK: whatever blocks come, what is decoded stays within its bounds; and our encoder's blocks say what was put in.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::Choices;
use tricorn_proto::http2::hpack::{Decoder, Encoder};

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    if choices.flag() { decode(choices) } else { round_trip(choices) }
});

/// Several blocks, one after the other, until one is refused.
fn decode(mut choices: Choices<'_>) {
    let mut decoder = Decoder::default();
    while !choices.0.is_empty() {
        let block = choices.bytes();
        let mut longest = 0;
        let decoded = decoder.decode(block, |name, value| longest = longest.max(name.len().max(value.len())));
        // The table's longest field, or a string of the block, in a code whose shortest symbol has five bits.
        assert!(longest <= 4096.max(block.len() * 8 / 5));
        if decoded.is_err() {
            return;
        }
    }
}

fn round_trip(mut choices: Choices<'_>) {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    while !choices.0.is_empty() {
        if choices.flag() {
            encoder.resize(u32::from(choices.byte()) * 32);
        }
        let (mut block, mut expected) = (Vec::new(), Vec::new());
        encoder.begin(&mut block);
        for _ in 0..choices.byte() % 8 {
            let (name, value) = match choices.byte() {
                0..128 => (choices.bytes(), choices.bytes()),
                128..192 => (&b"Content-Type"[..], choices.bytes()),
                _ => (&b"set-cookie"[..], &b"a=b"[..]),
            };
            encoder.field(name, value, &mut block);
            expected.push((name.to_ascii_lowercase(), value.to_vec()));
        }
        let mut decoded = Vec::new();
        let result = decoder.decode(&block, |name, value| decoded.push((name.to_vec(), value.to_vec())));
        assert_eq!((result, decoded), (Ok(()), expected));
    }
}
