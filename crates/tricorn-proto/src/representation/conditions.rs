//! What a request says of the representation that it wants: preconditions (RFC 9110 section 13.1) and Range (section 14.2).
use super::entity_tag::EntityTag;
use crate::message::grammar::{is_named, trim_ows, trim_ows_start};

/// The fields that decide, as they came. Nothing is allocated for a request without If-Match and If-None-Match.
#[derive(Debug, Default)]
pub struct Conditions<'a> {
    /// Lines of If-Match and If-None-Match; empty: there is none.
    pub(super) if_match: Vec<&'a [u8]>,
    pub(super) if_none_match: Vec<&'a [u8]>,
    pub(super) if_modified_since: Single<'a>,
    pub(super) if_unmodified_since: Single<'a>,
    pub(super) if_range: Single<'a>,
    pub(super) range: Single<'a>,
}

/// A field that has one value.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Single<'a> {
    #[default]
    Absent,
    Given(&'a [u8]),
    /// It came twice: which of them counts is not defined.
    Repeated,
}

impl<'a> Single<'a> {
    fn add(&mut self, value: &'a [u8]) {
        *self = if *self == Single::Absent { Single::Given(trim_ows(value)) } else { Single::Repeated };
    }

    pub fn value(self) -> Option<&'a [u8]> {
        if let Single::Given(value) = self { Some(value) } else { None }
    }
}

impl<'a> Conditions<'a> {
    /// Out of all fields of a request: names in any case, and values.
    pub fn of(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Conditions<'a> {
        let mut conditions = Conditions::default();
        fields.for_each(|(name, value)| conditions.add(name, value));
        conditions
    }

    /// By length first: nearly every name of a request is told apart by it without being read.
    fn add(&mut self, name: &[u8], value: &'a [u8]) {
        match name.len() {
            5 if is_named(name, b"range") => self.range.add(value),
            8 if is_named(name, b"if-match") => self.if_match.push(value),
            8 if is_named(name, b"if-range") => self.if_range.add(value),
            13 if is_named(name, b"if-none-match") => self.if_none_match.push(value),
            17 if is_named(name, b"if-modified-since") => self.if_modified_since.add(value),
            19 if is_named(name, b"if-unmodified-since") => self.if_unmodified_since.add(value),
            _ => {}
        }
    }
}

/// Whether any of the lists names `current`: by `*`, or by a tag that `matches`. What stands behind something that is no tag is not
/// looked at.
pub(super) fn names<'a>(lines: &[&'a [u8]], matches: impl Fn(&EntityTag<'a>) -> bool) -> bool {
    if let [line] = lines
        && trim_ows(line) == b"*"
    {
        return true;
    }
    lines.iter().any(|line| {
        let mut rest = *line;
        loop {
            rest = trim_ows_start(rest);
            // Recipients "MUST parse and ignore a reasonable number of empty list elements" (section 5.6.1.2).
            if let Some(behind) = rest.strip_prefix(b",") {
                rest = behind;
                continue;
            }
            let Some((tag, behind)) = EntityTag::split(rest) else { return false };
            let behind = trim_ows_start(behind);
            if !(behind.is_empty() || behind.starts_with(b",")) {
                return false;
            }
            if matches(&tag) {
                return true;
            }
            rest = behind;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(lines: &[&str], tag: &str) -> bool {
        let wanted = EntityTag::parse(tag.as_bytes()).expect("a tag");
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        names(&lines, |tag| tag.is_alike(&wanted))
    }

    #[test]
    fn a_list_is_what_all_lines_say() {
        assert!(has(&["\"a\""], "\"a\"") && has(&["\"b\", W/\"a\""], "\"a\"") && has(&["\"b\"", "\"a\""], "\"a\""));
        assert!(has(&[", ,\"b\",,\t\"a\" ,"], "\"a\""), "empty elements");
        assert!(has(&["\"x,y\""], "\"x,y\"") && !has(&["\"x,y\""], "\"x\""), "a comma may stand in a tag");
        assert!(has(&["*"], "\"a\"") && has(&[" * "], "\"a\""));
    }

    #[test]
    fn what_is_no_list_names_nothing() {
        for line in ["", ",", "a", "\"b", "\"b\" \"a\"", "\"b\"\"a\"", "* , \"b\"", "'a'", "a, \"a\""] {
            assert!(!has(&[line], "\"a\""), "{line}");
        }
        assert!(!has(&["*", "\"b\""], "\"a\""), "the star stands alone");
    }

    #[test]
    fn fields_are_found_in_any_case_and_a_second_value_is_no_value() {
        let fields: [(&[u8], &[u8]); 7] = [
            (b"RANGE", b" bytes=0-1 "),
            (b"If-Match", b"\"a\""),
            (b"if-match", b"\"b\""),
            (b"If-Range", b"\"a\""),
            (b"If-Range", b"\"a\""),
            (b"If-None-Matched", b"\"a\""),
            (b"Accept", b"*/*"),
        ];
        let conditions = Conditions::of(fields.into_iter());
        assert_eq!(conditions.range.value(), Some(&b"bytes=0-1"[..]));
        assert_eq!(conditions.if_match.len(), 2);
        assert_eq!((conditions.if_range, conditions.if_range.value()), (Single::Repeated, None));
        assert!(conditions.if_none_match.is_empty() && conditions.if_modified_since == Single::Absent);
    }
}
