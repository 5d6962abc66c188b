//! The first bytes of a connection: however they are cut, the same header is found, and nothing is taken that is not one.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_proto::peer::proxy_protocol::{Accepts, Opening, open};

fuzz_target!(|data: &[u8]| {
    for accepts in [Accepts::V1, Accepts::V2, Accepts::Both] {
        let whole = open(data, accepts);
        let decided = (0..=data.len()).find(|length| open(&data[..*length], accepts) != Ok(Opening::NeedMore));
        let Some(length) = decided else {
            assert_eq!(whole, Ok(Opening::NeedMore));
            continue;
        };
        assert_eq!(open(&data[..length], accepts), whole, "more bytes change nothing");
        if let Ok(Opening::Header(announced, end)) = whole {
            assert!(end == length && *announced.bytes == data[..end] && end <= 16 + 4096);
            assert_eq!(open(&announced.bytes, Accepts::Both), Ok(Opening::Header(announced.clone(), end)));
            if let Some(name) = &announced.values.authority {
                assert!(!name.contains(['\r', '\n', '\0']));
            }
        }
    }
});
