//! One JSON object per request (RFC 8259): what a log collector reads without a pattern.
use super::atom::{find_field, number};
use super::{Record, escape};
use crate::peer::trace_context;

/// Appends the object. Names and order are documented in `docs/reference/log-formats.md`; what is not known is null.
pub(super) fn render(record: &Record<'_>, request_id: bool, out: &mut Vec<u8>) {
    let Record { head, bytes, .. } = record;
    out.extend_from_slice(b"{\"time\":\"");
    time(record, out);
    out.extend_from_slice(b"\",\"level\":\"INFO\",\"logger\":\"gunicorn.access\",\"remote\":");
    known(out, record.remote);
    out.extend_from_slice(b",\"method\":");
    known(out, head.method.of(bytes));
    out.extend_from_slice(b",\"path\":");
    known(out, head.path.of(bytes));
    out.extend_from_slice(b",\"query\":");
    string(out, head.query.of(bytes));
    out.extend_from_slice(b",\"protocol\":");
    known(out, head.protocol.of(bytes));
    out.extend_from_slice(b",\"status\":");
    number(out, record.status);
    out.extend_from_slice(b",\"bytes\":");
    number(out, record.sent);
    out.extend_from_slice(b",\"duration_us\":");
    number(out, record.micros);
    out.extend_from_slice(b",\"queue_us\":");
    match record.queue_micros {
        Some(micros) => number(out, micros),
        None => out.extend_from_slice(b"null"),
    }
    if let Some(time) = record.call_time {
        let parts = [
            (&b",\"cpu_us\":"[..], time.computed),
            (b",\"blocked_us\":", time.blocked),
            (b",\"delayed_us\":", time.delayed),
            (b",\"yielded_us\":", time.yielded),
        ];
        for (label, micros) in parts {
            out.extend_from_slice(label);
            number(out, micros);
        }
    }
    for (label, name) in FIELDS {
        out.extend_from_slice(label);
        match find_field(record, name) {
            Some(value) => string(out, value),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.extend_from_slice(b",\"outcome\":");
    match record.outcome {
        Some(outcome) => {
            out.push(b'"');
            outcome.render(out);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    if let Some(trace) = trace_context::of(head, bytes) {
        // Nothing in them is to be escaped.
        for (label, id) in [(&b",\"trace_id\":\""[..], trace.trace_id), (b",\"span_id\":\"", trace.span_id)] {
            out.extend_from_slice(label);
            out.extend_from_slice(id);
            out.push(b'"');
        }
    }
    if request_id {
        out.extend_from_slice(b",\"request_id\":");
        known(out, record.request_id);
    }
    out.extend_from_slice(b",\"pid\":");
    number(out, record.pid);
    out.push(b'}');
}

/// Renders `[21/Nov/2026:01:02:32 +0000]` and 7 ms as `2026-11-21T01:02:32.007+00:00`, which lines of the error log have.
fn time(record: &Record<'_>, out: &mut Vec<u8>) {
    let Some(time) = record.time.first_chunk::<LOG_TIME>() else { return };
    let month = MONTHS.iter().position(|month| time[4..7] == **month).unwrap_or_default() as u8 + 1;
    out.extend_from_slice(&time[8..12]);
    out.extend_from_slice(&[b'-', b'0' + month / 10, b'0' + month % 10, b'-']);
    out.extend_from_slice(&time[1..3]);
    out.push(b'T');
    out.extend_from_slice(&time[13..21]);
    let millis = record.millis.min(999);
    out.extend_from_slice(&[b'.', digit(millis / 100), digit(millis / 10), digit(millis)]);
    out.extend_from_slice(&time[22..25]);
    out.push(b':');
    out.extend_from_slice(&time[25..27]);
}

/// Returns the last decimal digit.
fn digit(number: u16) -> u8 {
    b'0' + (number % 10) as u8
}

fn known(out: &mut Vec<u8>, text: &[u8]) {
    if text.is_empty() { out.extend_from_slice(b"null") } else { string(out, text) }
}

/// A string, whatever the bytes are.
fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    if text.iter().fold(true, |plain, &byte| plain & escape::is_plain(byte)) {
        out.extend_from_slice(text);
    } else {
        escaped(out, text);
    }
    out.push(b'"');
}

/// UTF-8 stays, other bytes become replacement characters; control characters, those of a terminal (C1) too, the two line
/// ends of Unicode and what changes the direction of a text are escaped.
#[cold]
fn escaped(out: &mut Vec<u8>, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    unicode(out, letter);
                }
                letter if letter.is_control() => unicode(out, letter),
                letter => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// `\u00e9`, for letters of the basic plane.
fn unicode(out: &mut Vec<u8>, letter: char) {
    let code = letter as u32;
    let digit = |shift: u32| b"0123456789abcdef"[(code >> shift & 15) as usize];
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

/// Length of the access log's time.
const LOG_TIME: usize = 28;

static MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// What stands before the value, and the field it comes from.
static FIELDS: [(&[u8], &[u8]); 3] =
    [(b",\"referer\":", b"referer"), (b",\"user_agent\":", b"user-agent"), (b",\"host\":", b"host")];
