//! Entity tags (RFC 9110 section 8.8.3).

/// An entity tag as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    pub is_weak: bool,
    /// With its quotes.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads a value that is one entity tag.
    pub fn parse(text: &'a [u8]) -> Option<EntityTag<'a>> {
        let (tag, rest) = EntityTag::split(text)?;
        rest.is_empty().then_some(tag)
    }

    /// Reads an entity tag off the front.
    pub(super) fn split(text: &'a [u8]) -> Option<(EntityTag<'a>, &'a [u8])> {
        let (is_weak, from) = match text.strip_prefix(b"W/") {
            Some(from) => (true, from),
            None => (false, text),
        };
        let end = memchr::memchr(b'"', from.strip_prefix(b"\"")?)? + 2;
        let (opaque, rest) = from.split_at(end);
        // etagc: VCHAR without the quote, and obs-text.
        let is_tag = opaque[1..end - 1].iter().all(|&byte| byte > b' ' && byte != 0x7f);
        is_tag.then_some((EntityTag { is_weak, opaque }, rest))
    }

    /// Strong comparison: neither is weak, and they are equal.
    pub fn is_same(&self, other: &EntityTag<'_>) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// Weak comparison: they are equal but for their weakness.
    pub fn is_alike(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(text: &str) -> EntityTag<'_> {
        EntityTag::parse(text.as_bytes()).expect("a tag")
    }

    /// The table of RFC 9110 section 8.8.3.2.
    #[test]
    fn comparison_is_that_of_the_table() {
        for (one, other, same, alike) in [
            (r#"W/"1""#, r#"W/"1""#, false, true),
            (r#"W/"1""#, r#"W/"2""#, false, false),
            (r#"W/"1""#, r#""1""#, false, true),
            (r#""1""#, r#""1""#, true, true),
        ] {
            let (one, other) = (tag(one), tag(other));
            assert_eq!((one.is_same(&other), one.is_alike(&other)), (same, alike), "{one:?} {other:?}");
            assert_eq!((other.is_same(&one), other.is_alike(&one)), (same, alike));
        }
    }

    #[test]
    fn only_a_whole_tag_is_one() {
        assert_eq!(tag("\"\"").opaque, b"\"\"");
        assert_eq!(tag("\"a,\\b\"").opaque, b"\"a,\\b\"");
        for text in
            ["", "a", "\"", "\"a", "a\"", "w/\"a\"", "W/", "W/a", "\"a b\"", "\"a\x7f\"", "\"a\"b", "\"a\" ", "*"]
        {
            assert_eq!(EntityTag::parse(text.as_bytes()), None, "{text}");
        }
    }
}
