//! Conditions and ranges, of whatever bytes: parts lie within the representation, do not overlap, and are no more than there may be;
//! a date that is read is written as the same one.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_proto::message::Method;
use tricorn_proto::representation::{
    Conditions, EntityTag, Multipart, Selected, Verdict, imf_fixdate, judge, parse_http_date,
};

const NAMES: [&[u8]; 6] =
    [b"Range", b"If-Range", b"If-Match", b"If-None-Match", b"If-Modified-Since", b"If-Unmodified-Since"];
/// 2026-11-29
const NOW: i64 = 1_795_910_400;

fuzz_target!(|data: &[u8]| {
    let Some((&[size, tag], text)) = data.split_first_chunk::<2>() else { return };
    // Each line is a field; its first byte says which.
    let lines = text.split(|&byte| byte == b'\n').filter_map(<[u8]>::split_first);
    let fields: Vec<_> = lines.map(|(name, value)| (NAMES[usize::from(*name) % NAMES.len()], value)).collect();
    for (_, value) in &fields {
        if let Some(time) = parse_http_date(value, NOW) {
            assert_eq!(parse_http_date(&imf_fixdate(time), NOW), Some(time.clamp(0, 253_402_300_799)));
        }
    }
    let etag = [Some(&b"\"a\""[..]), Some(b"W/\"a\""), None][usize::from(tag % 3)].and_then(EntityTag::parse);
    let length = if size == u8::MAX { u64::MAX } else { u64::from(size) };
    let selected = Selected { etag, modified: (tag & 8 == 0).then_some(NOW - 1), length };
    let conditions = Conditions::of(fields.iter().copied());
    let verdict = judge(Method::Get, &conditions, &selected, NOW);
    let parts = match &verdict {
        Verdict::Range(part) => std::slice::from_ref(part),
        Verdict::Ranges(parts) => parts,
        _ => return,
    };
    assert!(!parts.is_empty() && parts.len() <= 16 && fields.iter().any(|(name, _)| *name == b"Range"));
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|part| part.start);
    assert!(sorted.iter().all(|part| part.length > 0 && part.start.checked_add(part.length).is_some_and(|end| end <= length)));
    assert!(sorted.windows(2).all(|pair| pair[0].start + pair[0].length <= pair[1].start));
    let multipart = Multipart::new(7, b"text/plain", parts, length);
    let heads: u64 = multipart.parts().map(|(head, _)| head.len() as u64).sum();
    let content: u64 = parts.iter().map(|part| part.length).sum();
    assert_eq!(multipart.length(), heads.saturating_add(content).saturating_add(multipart.end().len() as u64));
    assert_eq!(judge(Method::Head, &conditions, &selected, NOW), Verdict::Whole, "HEAD has no ranges");
});
