//! One field line, `field-name ":" OWS field-value OWS` (RFC 9112 section 5), of a head or a trailer section.
use crate::message::grammar::{is_field_value, is_token, trim_ows};
use crate::message::{Refusal, RefusalKind};

/// Splits a line (without its CRLF) into name and value, or says what is wrong with it.
pub(super) fn split(line: &[u8]) -> Result<(&[u8], &[u8]), Box<Refusal>> {
    let colon = memchr::memchr(b':', line).filter(|&at| at > 0);
    let Some(colon) = colon else {
        return Err(Refusal::from_bytes(RefusalKind::Header, line));
    };
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    // RFC 9112 section 5.1: "No whitespace is allowed between the field name and colon. … A server MUST reject, with
    // a response status code of 400 (Bad Request), any received request message that contains whitespace between a
    // header field name and colon."
    if !is_token(name) {
        return Err(Refusal::from_bytes(RefusalKind::HeaderName, name));
    }
    // RFC 9110 section 5.5: "Field values containing CR, LF, or NUL characters are invalid and dangerous".
    if !is_field_value(value) {
        return Err(Refusal::from_bytes(RefusalKind::Header, &name.to_ascii_uppercase()));
    }
    Ok((name, trim_ows(value)))
}
