//! The trace of which a request is a part: the field `traceparent` (W3C Trace Context, section 3.2).
//!
//! ```text
//!   traceparent = version "-" trace-id "-" parent-id "-" trace-flags     lower-case hexadecimal
//!                 00      -  32 digits -  16 digits -  2 digits
//! ```
use crate::message::RequestHead;

/// Both as they came, in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext<'a> {
    pub trace_id: &'a [u8],
    /// Section 3.2.2.4: "the ID of this request as known by the caller".
    pub span_id: &'a [u8],
}

/// That of a request; `None` if it has none, or more than one field, or one that is wrong.
pub fn of<'a>(head: &RequestHead, bytes: &'a [u8]) -> Option<TraceContext<'a>> {
    let mut values = head.fields.iter().filter(|field| field.name.of(bytes).eq_ignore_ascii_case(b"traceparent"));
    let value = values.next()?.value.of(bytes);
    if values.next().is_some() { None } else { parse(value) }
}

fn parse(value: &[u8]) -> Option<TraceContext<'_>> {
    let (fixed, rest) = value.split_at_checked(LENGTH)?;
    let (version, trace_id, span_id, flags) = (&fixed[..2], &fixed[3..35], &fixed[36..52], &fixed[53..]);
    let hyphens = [2, 35, 52].iter().all(|at| fixed[*at] == b'-');
    let digits = [version, trace_id, span_id, flags].iter().all(|part| part.iter().all(|byte| is_hex(*byte)));
    let zeros = [trace_id, span_id].iter().any(|part| part.iter().all(|byte| *byte == b'0'));
    // Section 3.2.2: "Version ff is invalid". Section 4.3: a higher version may say more, behind a dash.
    let known = match version {
        b"ff" => false,
        b"00" => rest.is_empty(),
        _ => rest.is_empty() || rest[0] == b'-',
    };
    (hyphens && digits && !zeros && known).then_some(TraceContext { trace_id, span_id })
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Of version 00.
const LENGTH: usize = 55;

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn what_the_specification_shows_is_read() {
        for more in ["00-{}-01", "01-{}-01", "cc-{}-00-what the future brings"] {
            let value = more.replace("{}", &format!("{TRACE}-{SPAN}"));
            let expected = TraceContext { trace_id: TRACE.as_bytes(), span_id: SPAN.as_bytes() };
            assert_eq!(parse(value.as_bytes()), Some(expected), "{value}");
        }
    }

    #[test]
    fn everything_else_is_none() {
        let (zeros, good) = ("0".repeat(32), format!("00-{TRACE}-{SPAN}-01"));
        let wrong = [
            String::new(),
            good[..54].to_string(),
            format!("{good}-more"),
            format!("{good}0"),
            format!("cc{}x", &good[2..]),
            format!("ff{}", &good[2..]),
            format!("0g{}", &good[2..]),
            good.to_uppercase(),
            good.replace('-', "_"),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            good.replace("01", "0x"),
        ];
        for value in wrong {
            assert_eq!(parse(value.as_bytes()), None, "{value}");
        }
    }
}
