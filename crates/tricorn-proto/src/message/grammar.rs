//! The character classes of RFC 9110 and RFC 3986, and the productions that every version of HTTP needs.
use super::words::{is_plain_name, is_plain_value};

/// RFC 9110 section 5.6.2: token = 1*tchar.
pub fn is_token(text: &[u8]) -> bool {
    is_plain_name(text) || !text.is_empty() && text.iter().all(|&byte| is(byte, TCHAR))
}

/// RFC 9110 section 5.5: field-vchar, SP and HTAB; no other control character, in particular no CR, LF or NUL.
pub fn is_field_value(text: &[u8]) -> bool {
    is_plain_value(text) || text.iter().all(|&byte| is(byte, FIELD_VALUE))
}

/// Whether this is the name, in whatever case. All of its bytes are compared, so that the compiler takes many at a time.
#[inline]
pub fn is_named<const N: usize>(text: &[u8], lower: &[u8; N]) -> bool {
    let Ok(text) = <&[u8; N]>::try_from(text) else { return false };
    let differences = text.iter().zip(lower).map(|(byte, lower)| byte.to_ascii_lowercase() ^ lower);
    differences.fold(0, |all, difference| all | difference) == 0
}

/// RFC 9110 section 5.6.3: OWS = *( SP / HTAB ), taken off both ends.
pub fn trim_ows(text: &[u8]) -> &[u8] {
    let mut text = trim_ows_start(text);
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The same at the beginning only.
pub fn trim_ows_start(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// The elements of a comma-separated list (RFC 9110 section 5.6.1), trimmed; empty ones are not left out.
pub fn list(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b',').map(trim_ows)
}

/// Decimal digits only, at least one, no sign; `None` also when the number does not fit.
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Value of a hexadecimal digit.
pub fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Whether `byte` belongs to (one of) the classes `class`.
#[inline]
pub fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// `"!" / "#" / "$" / "%" / "&" / "'" / "*" / "+" / "-" / "." / "^" / "_" / "`" / "|" / "~" / DIGIT / ALPHA`
pub const TCHAR: u8 = 1;
/// HTAB, SP, VCHAR, obs-text.
pub const FIELD_VALUE: u8 = 2;
/// RFC 3986: unreserved and sub-delims, of which a reg-name is made (percent-encoding is checked apart).
pub const REG_NAME: u8 = 4;
/// qdtext of RFC 9110 section 5.6.4: what stands in a quoted-string without a backslash.
pub const QDTEXT: u8 = 8;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        let mut class = 0;
        if byte.is_ascii_alphanumeric() {
            class |= TCHAR | REG_NAME;
        }
        if byte == b'\t' || (byte >= b' ' && byte != 0x7f) {
            class |= FIELD_VALUE;
            if byte != b'"' && byte != b'\\' {
                class |= QDTEXT;
            }
        }
        table[index] = class;
        index += 1;
    }
    let table = add(table, b"!#$%&'*+-.^_`|~", TCHAR);
    add(table, b"-._~!$&'()*+,;=", REG_NAME)
}

const fn add(mut table: [u8; 256], bytes: &[u8], class: u8) -> [u8; 256] {
    let mut index = 0;
    while index < bytes.len() {
        table[bytes[index] as usize] |= class;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_are_those_of_the_rfcs() {
        for byte in 0..=255u8 {
            let tchar = byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            assert_eq!(is(byte, TCHAR), tchar, "tchar {byte:#x}");
            let value = byte == b'\t' || (byte >= 0x20 && byte != 0x7f);
            assert_eq!(is(byte, FIELD_VALUE), value, "field value {byte:#x}");
            let qdtext = value && byte != b'"' && byte != b'\\';
            assert_eq!(is(byte, QDTEXT), qdtext, "qdtext {byte:#x}");
        }
    }

    #[test]
    fn a_name_is_the_same_in_any_case_and_no_other() {
        assert!(is_named(b"Content-Length", b"content-length") && is_named(b"CONTENT-LENGTH", b"content-length"));
        assert!(!is_named(b"Content-Lengt", b"content-length") && !is_named(b"Content-Length2", b"content-length"));
        for place in 0..14 {
            for byte in 0..=255u8 {
                let mut name = *b"content-length";
                name[place] = byte;
                assert_eq!(is_named(&name, b"content-length"), name.eq_ignore_ascii_case(b"content-length"));
            }
        }
    }

    #[test]
    fn decimals_are_digits_only_and_must_fit() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in [&b""[..], b"+1", b"-1", b" 1", b"1 ", b"0x1", b"1,1", b"1_0"] {
            assert_eq!(decimal(bad), None);
        }
        assert_eq!(decimal(b"18446744073709551616"), None);
    }
}
