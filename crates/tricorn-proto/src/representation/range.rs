//! Byte ranges (RFC 9110 sections 14.1 and 14.2).
use crate::message::grammar::{is_named, list};
use std::fmt::Write;

/// Most ranges that a request may ask for; one that asks for more gets the whole. RFC 9110 section 14.2: "A server … MAY ignore or
/// coalesce any of the requested ranges" against "denial-of-service attacks using many small or overlapping ranges".
const MOST: usize = 16;

/// Some bytes of a representation: never none, and within its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub start: u64,
    pub length: u64,
}

/// What a Range field comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ranges {
    /// It says nothing: another unit, no valid ranges, or too much of it.
    Ignored,
    Unsatisfiable,
    Parts(Vec<Part>),
}

/// Resolves the ranges of a representation that has so many bytes.
pub(super) fn ranges(value: &[u8], total: u64) -> Ranges {
    let Some(at) = memchr::memchr(b'=', value) else { return Ranges::Ignored };
    let (unit, set) = (&value[..at], &value[at + 1..]);
    if !is_named(unit, b"bytes") {
        return Ranges::Ignored;
    }
    let (mut parts, mut count) = (Vec::new(), 0);
    for text in list(set).filter(|text| !text.is_empty()) {
        count += 1;
        let Some(spec) = Spec::parse(text).filter(|_| count <= MOST) else { return Ranges::Ignored };
        match spec.resolve(total) {
            Resolved::Part(part) => parts.push(part),
            Resolved::Beyond => {}
            Resolved::Empty => return Ranges::Ignored,
        }
    }
    match (count, parts.is_empty()) {
        (0, _) => Ranges::Ignored,
        (_, true) => Ranges::Unsatisfiable,
        _ if overlap(&parts) => Ranges::Ignored,
        _ => Ranges::Parts(parts),
    }
}

fn overlap(parts: &[Part]) -> bool {
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_unstable_by_key(|part| part.start);
    sorted.windows(2).any(|pair| pair[0].start + pair[0].length > pair[1].start)
}

/// One range as it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spec {
    From(u64),
    Between(u64, u64),
    Last(u64),
}

enum Resolved {
    Part(Part),
    /// It begins behind the end.
    Beyond,
    /// The last bytes of nothing: it can be satisfied, and Content-Range cannot say so.
    Empty,
}

impl Spec {
    fn parse(text: &[u8]) -> Option<Spec> {
        let at = memchr::memchr(b'-', text)?;
        let (first, last) = (&text[..at], &text[at + 1..]);
        match (first, last) {
            (b"", last) => number(last).map(Spec::Last),
            (first, b"") => number(first).map(Spec::From),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Spec::Between(first, last))
            }
        }
    }

    fn resolve(self, total: u64) -> Resolved {
        let (start, end) = match self {
            Spec::Last(0) => return Resolved::Beyond,
            Spec::Last(_) if total == 0 => return Resolved::Empty,
            Spec::Last(length) => (total.saturating_sub(length), total),
            Spec::From(first) => (first, total),
            Spec::Between(first, last) => (first, last.saturating_add(1).min(total)),
        };
        if start < end { Resolved::Part(Part { start, length: end - start }) } else { Resolved::Beyond }
    }
}

/// Digits only. A number that fits nowhere is behind every end.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value =
        text.iter().try_fold(0u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    Some(value.unwrap_or(u64::MAX))
}

/// The value of Content-Range for a part.
pub fn content_range(part: Part, total: u64) -> String {
    let mut text = String::with_capacity(48);
    let last = part.start + part.length.saturating_sub(1);
    // Writing to a string does not fail.
    let _ = write!(text, "bytes {}-{last}/{total}", part.start);
    text
}

/// The value of Content-Range behind 416.
pub fn unsatisfied_range(total: u64) -> String {
    format!("bytes */{total}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(value: &str, total: u64) -> Ranges {
        ranges(value.as_bytes(), total)
    }

    fn of(parts: &[(u64, u64)]) -> Ranges {
        Ranges::Parts(parts.iter().map(|&(start, length)| Part { start, length }).collect())
    }

    /// The examples of RFC 9110 section 14.1.2, of 10,000 bytes.
    #[test]
    fn the_examples_of_the_rfc() {
        for (value, expected) in [
            ("bytes=0-499", of(&[(0, 500)])),
            ("bytes=500-999", of(&[(500, 500)])),
            ("bytes=-500", of(&[(9500, 500)])),
            ("bytes=9500-", of(&[(9500, 500)])),
            ("bytes=0-0,-1", of(&[(0, 1), (9999, 1)])),
            ("bytes= 0-0, 4500-5499, -1000", of(&[(0, 1), (4500, 1000), (9000, 1000)])),
            ("bytes=500-600,601-999", of(&[(500, 101), (601, 399)])),
        ] {
            assert_eq!(parts(value, 10_000), expected, "{value}");
        }
        assert_eq!(parts("bytes=500-700,601-999", 10_000), Ranges::Ignored, "they overlap");
    }

    #[test]
    fn ends_behind_the_end_are_cut() {
        assert_eq!(parts("bytes=5-99", 10), of(&[(5, 5)]));
        assert_eq!(parts("bytes=9-9", 10), of(&[(9, 1)]));
        assert_eq!(parts("bytes=-99", 10), of(&[(0, 10)]));
        assert_eq!(parts("BYTES=0-99999999999999999999999999", 10), of(&[(0, 10)]));
        assert_eq!(parts("bytes=0-18446744073709551615", 10), of(&[(0, 10)]));
    }

    #[test]
    fn what_begins_behind_the_end_cannot_be_satisfied() {
        for value in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999999999-", "bytes=10-11,12-13"]
        {
            assert_eq!(parts(value, 10), Ranges::Unsatisfiable, "{value}");
        }
        assert_eq!(parts("bytes=0-", 0), Ranges::Unsatisfiable);
        assert_eq!(parts("bytes=-5", 0), Ranges::Ignored, "the last bytes of nothing are there");
        assert_eq!(parts("bytes=10-11,0-1", 10), of(&[(0, 2)]), "the other one is left out");
    }

    #[test]
    fn nonsense_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=1",
            "bytes=5-4",
            "bytes=1-2-3",
            "bytes=+1-2",
            "bytes=1 -2",
            "bytes=0x1-2",
            "bytes=--1",
            "bytes 0-1",
            "bytes =0-1",
            "lines=0-1",
            "0-1",
            "bytes=0-1;2-3",
            "bytes=0-1,x",
        ] {
            assert_eq!(parts(value, 10), Ranges::Ignored, "{value}");
        }
    }

    #[test]
    fn too_many_are_ignored() {
        let many = |count: usize| {
            let all: Vec<_> = (0..count).map(|at| format!("{}-{}", at * 2, at * 2)).collect();
            format!("bytes={}", all.join(","))
        };
        assert!(matches!(parts(&many(MOST), 1000), Ranges::Parts(parts) if parts.len() == MOST));
        assert_eq!(parts(&many(MOST + 1), 1000), Ranges::Ignored);
        assert_eq!(parts(&many(MOST + 1), 0), Ranges::Ignored);
    }

    #[test]
    fn no_range_overlaps_another_in_whatever_order() {
        assert_eq!(parts("bytes=5-9,0-4", 10), of(&[(5, 5), (0, 5)]), "in the order of the request");
        for value in ["bytes=5-9,0-5", "bytes=0-,5-6", "bytes=0-0,0-0", "bytes=-1,9-9"] {
            assert_eq!(parts(value, 10), Ranges::Ignored, "{value}");
        }
    }

    #[test]
    fn the_field_of_the_response() {
        assert_eq!(content_range(Part { start: 5, length: 5 }, 10), "bytes 5-9/10");
        assert_eq!(unsatisfied_range(10), "bytes */10");
    }
}
