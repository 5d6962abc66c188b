//! What a field must look like in HTTP/2 (RFC 9113 section 8.2).
use super::violation::Violation;
use crate::message::grammar::{is_field_value, is_token};

/// Checks a regular field of a head or of trailers.
pub(super) fn check_field(name: &[u8], value: &[u8]) -> Result<(), Violation> {
    // Section 8.2.1: "A field name MUST NOT contain characters in the ranges 0x00-0x20, 0x41-0x5a, or 0x7f-0xff"; a
    // name that is no token could not be passed on.
    if !is_token(name) || name.iter().any(u8::is_ascii_uppercase) {
        return Err(Violation::FieldName);
    }
    // "A field value MUST NOT start or end with an ASCII whitespace character".
    let has_blanks = matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    if has_blanks || !is_field_value(value) {
        return Err(Violation::FieldValue);
    }
    match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err(Violation::ConnectionField)
        }
        // Section 8.2.2: "when it is, it MUST NOT contain any value other than "trailers"."
        b"te" if !value.eq_ignore_ascii_case(b"trailers") => Err(Violation::TeField),
        _ => Ok(()),
    }
}

/// RFC 3986 section 3.1: scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )
pub(super) fn is_scheme(text: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    text.first().is_some_and(u8::is_ascii_alphabetic) && text.iter().all(letter)
}
