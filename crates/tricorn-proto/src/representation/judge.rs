//! The verdict on a request for a representation: what it is sent, in the order of RFC 9110 section 13.2.2.
//!
//! ```text
//!   If-Match ──────────────── no match ──▶ 412
//!   else If-Unmodified-Since ─ modified ──▶ 412
//!   If-None-Match ─────────── a match ───▶ 304
//!   else If-Modified-Since ── not since ──▶ 304
//!   If-Range ───────────────── no match ──▶ Range is ignored
//!   Range ────────────────────────────────▶ 206, 416, or 200 if it is ignored
//! ```
use super::conditions::{Conditions, Single, names};
use super::date::parse_http_date;
use super::entity_tag::EntityTag;
use super::range::{Part, Ranges, ranges};
use crate::message::Method;

/// The representation that would be sent with 200.
#[derive(Debug, Clone, Copy)]
pub struct Selected<'a> {
    pub etag: Option<EntityTag<'a>>,
    /// Last-Modified, in seconds since 1970.
    pub modified: Option<i64>,
    pub length: u64,
}

/// What is sent of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// 200
    Whole,
    /// 206
    Range(Part),
    /// 206 with multipart/byteranges
    Ranges(Vec<Part>),
    /// 304
    NotModified,
    /// 412
    PreconditionFailed,
    /// 416
    Unsatisfiable,
}

/// `now`: the time, in seconds since 1970. Methods other than GET and HEAD get the whole: what their preconditions protect is the
/// application's.
pub fn judge(method: Method, conditions: &Conditions<'_>, selected: &Selected<'_>, now: i64) -> Verdict {
    if !matches!(method, Method::Get | Method::Head) {
        return Verdict::Whole;
    }
    if let Some(verdict) = precondition(conditions, selected, now) {
        return verdict;
    }
    // RFC 9110 section 14.2: "A server MUST ignore a Range header field received with a request method that is unrecognized or for
    // which range handling is not defined", which it is for GET alone.
    let Some(range) = conditions.range.value().filter(|_| method == Method::Get) else { return Verdict::Whole };
    if !may_range(conditions.if_range, selected, now) {
        return Verdict::Whole;
    }
    match ranges(range, selected.length) {
        Ranges::Ignored => Verdict::Whole,
        Ranges::Unsatisfiable => Verdict::Unsatisfiable,
        Ranges::Parts(parts) => match parts[..] {
            [part] => Verdict::Range(part),
            _ => Verdict::Ranges(parts),
        },
    }
}

fn precondition(conditions: &Conditions<'_>, selected: &Selected<'_>, now: i64) -> Option<Verdict> {
    let matches = |lines, compare: fn(&EntityTag<'_>, &EntityTag<'_>) -> bool| {
        names(lines, |tag| selected.etag.is_some_and(|etag| compare(tag, &etag)))
    };
    // A date that cannot be read, and a field that came twice, are ignored (sections 13.1.3 and 13.1.4), as they are without a
    // modification date to be compared.
    let compare = |since: Single<'_>| Some((selected.modified?, parse_http_date(since.value()?, now)?));
    if !conditions.if_match.is_empty() {
        if !matches(&conditions.if_match, |tag, etag| tag.is_same(etag)) {
            return Some(Verdict::PreconditionFailed);
        }
    } else if compare(conditions.if_unmodified_since).is_some_and(|(modified, since)| modified > since) {
        return Some(Verdict::PreconditionFailed);
    }
    if !conditions.if_none_match.is_empty() {
        return matches(&conditions.if_none_match, |tag, etag| tag.is_alike(etag)).then_some(Verdict::NotModified);
    }
    compare(conditions.if_modified_since)
        .is_some_and(|(modified, since)| modified <= since)
        .then_some(Verdict::NotModified)
}

/// If-Range (section 13.1.5): a tag is compared strongly, a date exactly; and a date counts only if it is a strong validator, which it
/// is once a second has passed since (section 8.8.2.2).
fn may_range(if_range: Single<'_>, selected: &Selected<'_>, now: i64) -> bool {
    let value = match if_range {
        Single::Absent => return true,
        Single::Repeated => return false,
        Single::Given(value) => value,
    };
    match EntityTag::parse(value) {
        Some(tag) => selected.etag.is_some_and(|etag| tag.is_same(&etag)),
        None => {
            let date = parse_http_date(value, now);
            date.is_some() && date == selected.modified && selected.modified.is_some_and(|modified| modified < now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{NotModified, PreconditionFailed, Range, Ranges, Unsatisfiable, Whole};

    const MODIFIED: i64 = 784_111_777;
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const NOW: i64 = 1_795_910_400;

    fn selected(etag: &str) -> Selected<'_> {
        let etag = EntityTag::parse(etag.as_bytes());
        Selected { etag, modified: Some(MODIFIED), length: 10 }
    }

    fn ask(method: Method, selected: &Selected<'_>, fields: &[(&str, &str)]) -> Verdict {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        judge(method, &Conditions::of(fields), selected, NOW)
    }

    fn get(fields: &[(&str, &str)]) -> Verdict {
        ask(Method::Get, &selected("\"a\""), fields)
    }

    const PART: Verdict = Range(Part { start: 0, length: 2 });
    const RANGE: (&str, &str) = ("Range", "bytes=0-1");

    /// Each row of RFC 9110 section 13.2.2, and of the fields it names.
    #[test]
    fn preconditions_are_evaluated_in_their_order() {
        for (fields, expected) in [
            (&[][..], Whole),
            // 1. If-Match, compared strongly
            (&[("If-Match", "\"a\"")], Whole),
            (&[("If-Match", "\"b\", \"a\"")], Whole),
            (&[("If-Match", "*")], Whole),
            (&[("If-Match", "\"b\"")], PreconditionFailed),
            (&[("If-Match", "W/\"a\"")], PreconditionFailed),
            (&[("If-Match", "a")], PreconditionFailed),
            (&[("If-Match", "")], PreconditionFailed),
            // … which is the reason that If-Unmodified-Since is ignored
            (&[("If-Match", "\"a\""), ("If-Unmodified-Since", BEFORE)], Whole),
            (&[("If-Match", "\"b\""), ("If-Unmodified-Since", AFTER)], PreconditionFailed),
            // 2. If-Unmodified-Since
            (&[("If-Unmodified-Since", SAME)], Whole),
            (&[("If-Unmodified-Since", AFTER)], Whole),
            (&[("If-Unmodified-Since", BEFORE)], PreconditionFailed),
            (&[("If-Unmodified-Since", "yesterday")], Whole),
            (&[("If-Unmodified-Since", BEFORE), ("If-Unmodified-Since", BEFORE)], Whole),
            // 3. If-None-Match, compared weakly
            (&[("If-None-Match", "\"a\"")], NotModified),
            (&[("If-None-Match", "W/\"a\"")], NotModified),
            (&[("If-None-Match", "\"b\",\"a\"")], NotModified),
            (&[("If-None-Match", "*")], NotModified),
            (&[("If-None-Match", "\"b\"")], Whole),
            (&[("If-None-Match", "a")], Whole),
            // … which is the reason that If-Modified-Since is ignored
            (&[("If-None-Match", "\"b\""), ("If-Modified-Since", AFTER)], Whole),
            (&[("If-None-Match", "\"a\""), ("If-Modified-Since", BEFORE)], NotModified),
            // 4. If-Modified-Since
            (&[("If-Modified-Since", SAME)], NotModified),
            (&[("If-Modified-Since", AFTER)], NotModified),
            (&[("If-Modified-Since", BEFORE)], Whole),
            (&[("If-Modified-Since", "yesterday")], Whole),
            (&[("If-Modified-Since", SAME), ("If-Modified-Since", SAME)], Whole),
            // 1 and 2 come before 3 and 4
            (&[("If-Match", "\"b\""), ("If-None-Match", "\"a\"")], PreconditionFailed),
            (&[("If-Match", "\"a\""), ("If-None-Match", "\"a\"")], NotModified),
            (&[("If-Unmodified-Since", SAME), ("If-Modified-Since", SAME)], NotModified),
            (&[("If-Unmodified-Since", BEFORE), ("If-None-Match", "\"a\"")], PreconditionFailed),
            // 5. If-Range and Range come last
            (&[RANGE], PART),
            (&[("If-None-Match", "\"a\""), RANGE], NotModified),
            (&[("If-Match", "\"b\""), RANGE], PreconditionFailed),
            (&[("If-None-Match", "\"b\""), ("If-Range", "\"a\""), RANGE], PART),
        ] {
            assert_eq!(get(fields), expected, "{fields:?}");
            let head = if expected == PART { Whole } else { expected };
            assert_eq!(ask(Method::Head, &selected("\"a\""), fields), head, "HEAD {fields:?}");
        }
    }

    #[test]
    fn a_range_depends_on_a_strong_validator() {
        for (value, expected) in [
            ("\"a\"", PART),
            ("W/\"a\"", Whole),
            ("\"b\"", Whole),
            ("*", Whole),
            (SAME, PART),
            (BEFORE, Whole),
            (AFTER, Whole),
            ("yesterday", Whole),
            ("", Whole),
        ] {
            assert_eq!(get(&[("If-Range", value), RANGE]), expected, "{value}");
        }
        assert_eq!(get(&[("If-Range", "\"a\""), ("If-Range", "\"a\""), RANGE]), Whole);
        assert_eq!(get(&[("If-Range", "\"a\"")]), Whole, "nothing is asked for");
        assert_eq!(ask(Method::Get, &selected("W/\"a\""), &[("If-Range", "W/\"a\""), RANGE]), Whole, "ours is weak");
        assert_eq!(ask(Method::Get, &selected("W/\"a\""), &[RANGE]), PART);
        let fresh = Selected { modified: Some(NOW), ..selected("") };
        let now = "Sun, 29 Nov 2026 00:00:00 GMT";
        assert_eq!(parse_http_date(now.as_bytes(), NOW), Some(NOW));
        assert_eq!(ask(Method::Get, &fresh, &[("If-Range", now), RANGE]), Whole, "it may be modified again");
    }

    #[test]
    fn ranges_that_lie_behind_the_end_or_are_nonsense() {
        assert_eq!(get(&[("Range", "bytes=10-")]), Unsatisfiable);
        assert_eq!(get(&[("Range", "bytes=10-"), ("If-Range", "\"b\"")]), Whole);
        assert_eq!(get(&[("Range", "bytes=x")]), Whole);
        assert_eq!(get(&[("Range", "bytes=0-1"), ("Range", "bytes=0-1")]), Whole);
        let parts = vec![Part { start: 0, length: 1 }, Part { start: 9, length: 1 }];
        assert_eq!(get(&[("Range", "bytes=0-0,-1")]), Ranges(parts));
    }

    #[test]
    fn without_validators_nothing_is_the_same() {
        let plain = Selected { etag: None, modified: None, length: 10 };
        for (fields, expected) in [
            (&[("If-Match", "\"a\"")][..], PreconditionFailed),
            (&[("If-None-Match", "\"a\"")], Whole),
            (&[("If-Match", "*")], Whole),
            (&[("If-None-Match", "*")], NotModified),
            (&[("If-Modified-Since", AFTER)], Whole),
            (&[("If-Unmodified-Since", BEFORE)], Whole),
            (&[("If-Range", SAME), RANGE], Whole),
            (&[("If-Range", "\"a\""), RANGE], Whole),
        ] {
            assert_eq!(ask(Method::Get, &plain, fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn other_methods_are_the_applications() {
        for method in [Method::Other, Method::Options, Method::Connect] {
            assert_eq!(ask(method, &selected("\"a\""), &[("If-Match", "\"b\""), RANGE]), Whole);
        }
    }
}
