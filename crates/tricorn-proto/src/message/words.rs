//! Eight bytes at a time: whether a text is of the plain kind that nearly all are.
//!
//! "No" says nothing: a text that is shorter than a word, or not plain, is looked at byte by byte (`grammar`).

/// Letters and hyphens, as in most field names.
#[inline]
pub(super) fn is_plain_name(text: &[u8]) -> bool {
    all(text, |word| {
        // Bytes below 0x80 leave room for a carry: the top bit of `byte + (0x80 - n)` is set if `byte >= n`.
        let letters = word | each(0x20);
        let is_letter = letters.wrapping_add(each(0x80 - b'a')) & !letters.wrapping_add(each(0x80 - b'{'));
        let is_hyphen = !(word ^ each(b'-')).wrapping_add(each(0x7f));
        word & TOP == 0 && (is_letter | is_hyphen) & TOP == TOP
    })
}

/// No control characters at all: what `is_field_value` accepts, but for tabs.
#[inline]
pub(super) fn is_plain_value(text: &[u8]) -> bool {
    all(text, |word| {
        // The subtraction borrows from a byte's top bit if that was clear and the byte was too small.
        let is_below_space = word.wrapping_sub(each(b' ')) & !word;
        let deletes = word ^ each(0x7f);
        let is_delete = deletes.wrapping_sub(each(1)) & !deletes;
        (is_below_space | is_delete) & TOP == 0
    })
}

/// Whether all words are plain; the last one overlaps the one before it.
#[inline]
fn all(text: &[u8], is_plain: impl Fn(u64) -> bool) -> bool {
    let Some(last) = text.last_chunk::<8>() else { return false };
    let (words, _) = text.as_chunks::<8>();
    words.iter().all(|word| is_plain(u64::from_ne_bytes(*word))) && is_plain(u64::from_ne_bytes(*last))
}

const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The top bit of each byte.
const TOP: u64 = each(0x80);

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte at each place, among others that are plain.
    fn holds(is_plain: fn(&[u8]) -> bool, expected: impl Fn(u8) -> bool) {
        let lengths = if cfg!(miri) { 11..=11 } else { 8..=19 };
        for length in lengths {
            for place in 0..length {
                for byte in 0..=255u8 {
                    let mut text = vec![b'a'; length];
                    text[place] = byte;
                    assert_eq!(is_plain(&text), expected(byte), "{byte:#x} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn plain_names_are_letters_and_hyphens() {
        holds(is_plain_name, |byte| byte.is_ascii_alphabetic() || byte == b'-');
    }

    #[test]
    fn plain_values_have_no_control_characters() {
        holds(is_plain_value, |byte| byte >= b' ' && byte != 0x7f);
    }

    #[test]
    fn of_two_bytes_that_are_not_plain_neither_hides_the_other() {
        for first in (0..=255u8).step_by(if cfg!(miri) { 51 } else { 1 }) {
            for second in 0..=255u8 {
                let text = [b'a', first, second, b'a', b'a', b'a', b'a', b'a'];
                let (name, value) = (is_plain_name(&text), is_plain_value(&text));
                assert_eq!(name, [first, second].iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-'));
                assert_eq!(value, [first, second].iter().all(|&byte| byte >= b' ' && byte != 0x7f));
            }
        }
    }

    #[test]
    fn a_text_shorter_than_a_word_is_not_judged() {
        assert!(!is_plain_name(b"") && !is_plain_name(b"Content") && !is_plain_value(b"text/ht"));
    }
}
