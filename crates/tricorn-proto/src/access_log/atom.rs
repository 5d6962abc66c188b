//! The atoms of gunicorn's access log format, one row each.
use super::{Record, basic_auth, escape};
use crate::message::FieldList;
use crate::message::grammar::trim_ows;
use crate::message::target::{needs_decoding, percent_decode};
use crate::peer::trace_context;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Atom {
    Remote,
    Nothing,
    User,
    Time,
    /// The time of day in it.
    Clock,
    RequestLine,
    Status,
    Method,
    Path,
    Query,
    Protocol,
    BytesSent,
    Referer,
    UserAgent,
    Seconds,
    Millis,
    Micros,
    DecimalSeconds,
    Pid,
    RequestId,
    QueueMicros,
    Computed,
    Blocked,
    Delayed,
    Yielded,
    Outcome,
    TraceId,
    SpanId,
    /// A request header, by its lower-case name.
    Request(String),
    /// A response header, by its lower-case name.
    Response(String),
    /// An environ key as written.
    Environ(String),
}

impl Atom {
    /// Not inlined: LLVM 22 takes minutes over this one's caller otherwise (constraint elimination).
    #[inline(never)]
    pub(super) fn parse(name: &str) -> Option<Atom> {
        if let Some((key, kind)) = name.strip_prefix('{').and_then(|name| name.rsplit_once('}')) {
            match kind {
                "i" => return Some(Atom::Request(key.to_ascii_lowercase())),
                "o" => return Some(Atom::Response(key.to_ascii_lowercase())),
                "e" => return Some(Atom::Environ(key.to_string())),
                _ => {}
            }
        }
        ATOMS.iter().find(|(known, ..)| *known == name).map(|(_, atom, _)| atom.clone())
    }

    /// All there are, in words.
    pub(super) fn known() -> String {
        let known: Vec<_> = ATOMS.iter().map(|(known, _, meaning)| format!("{known} ({meaning})")).collect();
        format!("{}, {{Header}}i, {{Header}}o, {{VARIABLE}}e", known.join(", "))
    }

    #[inline]
    pub(super) fn render(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        let Record { head, bytes, .. } = record;
        match self {
            Atom::Remote => or_dash(out, record.remote),
            Atom::Nothing => out.push(b'-'),
            Atom::User => user(record, out),
            Atom::Time => out.extend_from_slice(record.time),
            Atom::Clock => out.extend_from_slice(record.time.get(CLOCK).unwrap_or(b"-")),
            Atom::RequestLine => request_line(record, out),
            Atom::Status => number(out, record.status),
            Atom::Method => or_dash(out, head.method.of(bytes)),
            Atom::Path => path(head.path.of(bytes), out),
            // gunicorn's QUERY_STRING is never missing, it is empty.
            Atom::Query => escape::push(out, head.query.of(bytes)),
            Atom::Protocol => or_dash(out, head.protocol.of(bytes)),
            Atom::BytesSent => number(out, record.sent),
            Atom::Referer => request_field(record, b"referer", out),
            Atom::UserAgent => request_field(record, b"user-agent", out),
            Atom::Seconds => number(out, record.micros / 1_000_000),
            Atom::Millis => number(out, record.micros / 1000),
            Atom::Micros => number(out, record.micros),
            Atom::DecimalSeconds => decimal_seconds(record.micros, out),
            Atom::Pid => {
                out.push(b'<');
                number(out, record.pid);
                out.push(b'>');
            }
            Atom::RequestId => or_dash(out, record.request_id),
            Atom::QueueMicros => match record.queue_micros {
                Some(micros) => number(out, micros),
                None => out.push(b'-'),
            },
            Atom::Computed => micros(record.call_time.map(|time| time.computed), out),
            Atom::Blocked => micros(record.call_time.map(|time| time.blocked), out),
            Atom::Delayed => micros(record.call_time.map(|time| time.delayed), out),
            Atom::Yielded => micros(record.call_time.map(|time| time.yielded), out),
            Atom::Outcome => match record.outcome {
                Some(outcome) => outcome.render(out),
                None => out.push(b'-'),
            },
            Atom::TraceId => or_dash(out, trace_context::of(head, bytes).map_or(b"", |trace| trace.trace_id)),
            Atom::SpanId => or_dash(out, trace_context::of(head, bytes).map_or(b"", |trace| trace.span_id)),
            Atom::Request(name) => request_field(record, name.as_bytes(), out),
            Atom::Response(name) => response_field(record.fields, name.as_bytes(), out),
            Atom::Environ(key) => environ(record, key, out),
        }
    }
}

pub(super) fn number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn micros(micros: Option<u32>, out: &mut Vec<u8>) {
    match micros {
        Some(micros) => number(out, micros),
        None => out.push(b'-'),
    }
}

fn or_dash(out: &mut Vec<u8>, text: &[u8]) {
    escape::push(out, if text.is_empty() { b"-" } else { text });
}

/// `GET /path?query HTTP/1.1`; of a request whose line could not be read nothing is known.
fn request_line(record: &Record<'_>, out: &mut Vec<u8>) {
    let (head, bytes) = (record.head, record.bytes);
    let parts = [head.method.of(bytes), head.target.of(bytes), head.protocol.of(bytes)];
    if parts.iter().all(|part| part.is_empty()) {
        return out.push(b'-');
    }
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        escape::push(out, part);
    }
}

/// As PATH_INFO: percent-decoded, and then escaped for the log.
fn path(path: &[u8], out: &mut Vec<u8>) {
    if !needs_decoding(path) {
        return or_dash(out, path);
    }
    let mut decoded = Vec::new();
    percent_decode(path, &mut decoded);
    escape::push(out, &decoded);
}

fn user(record: &Record<'_>, out: &mut Vec<u8>) {
    let value = record.head.find(record.bytes, b"authorization");
    match value.and_then(basic_auth::user) {
        Some(user) => escape::push(out, &user),
        None => out.push(b'-'),
    }
}

/// Of a repeated field the last one, as gunicorn logs it.
fn request_field(record: &Record<'_>, name: &[u8], out: &mut Vec<u8>) {
    match find_field(record, name) {
        Some(value) => escape::push(out, value),
        None => out.push(b'-'),
    }
}

/// The value of the last field with this lower-case name.
pub(super) fn find_field<'a>(record: &Record<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let bytes = record.bytes;
    let named = |field: &&crate::message::Field| {
        let found = field.name.of(bytes);
        found.len() == name.len() && found.eq_ignore_ascii_case(name)
    };
    record.head.fields.iter().rev().find(named).map(|field| field.value.of(bytes))
}

/// Likewise.
fn response_field(fields: &FieldList, name: &[u8], out: &mut Vec<u8>) {
    match fields.last(name) {
        Some(value) => escape::push(out, trim_ows(value)),
        None => out.push(b'-'),
    }
}

/// Names of atoms are case-insensitive in gunicorn; environ keys are upper case, or lower case with a dot (`wsgi.…`).
fn environ(record: &Record<'_>, key: &str, out: &mut Vec<u8>) {
    let value = (record.environ)(key).or_else(|| (record.environ)(&key.to_ascii_uppercase()));
    match value {
        Some(value) => escape::push(out, &value),
        None => out.push(b'-'),
    }
}

/// `%d.%06d`
fn decimal_seconds(micros: u64, out: &mut Vec<u8>) {
    number(out, micros / 1_000_000);
    out.push(b'.');
    let mut digits = *b"000000";
    let mut rest = micros % 1_000_000;
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits);
}

/// Where `01:02:32` stands in `[21/Nov/2026:01:02:32 +0000]`.
const CLOCK: std::ops::Range<usize> = 13..21;

#[rustfmt::skip]
static ATOMS: [(&str, Atom, &str); 29] = [
    ("h", Atom::Remote, "remote address"),
    ("l", Atom::Nothing, "always -"),
    ("u", Atom::User, "user name of Basic authentication"),
    ("t", Atom::Time, "time of the request"),
    ("clock", Atom::Clock, "time of day of the request"),
    ("r", Atom::RequestLine, "request line"),
    ("s", Atom::Status, "status"),
    ("m", Atom::Method, "method"),
    ("U", Atom::Path, "path"),
    ("q", Atom::Query, "query"),
    ("H", Atom::Protocol, "protocol"),
    ("b", Atom::BytesSent, "body bytes sent"),
    ("B", Atom::BytesSent, "body bytes sent"),
    ("f", Atom::Referer, "referer"),
    ("a", Atom::UserAgent, "user agent"),
    ("T", Atom::Seconds, "duration in seconds"),
    ("M", Atom::Millis, "duration in milliseconds"),
    ("D", Atom::Micros, "duration in microseconds"),
    ("L", Atom::DecimalSeconds, "duration in seconds with decimals"),
    ("p", Atom::Pid, "process id"),
    ("request_id", Atom::RequestId, "request id"),
    ("queue_time", Atom::QueueMicros, "wait before the application in microseconds"),
    ("cpu_time", Atom::Computed, "what its thread computed in microseconds"),
    ("blocked_time", Atom::Blocked, "what its thread waited in microseconds"),
    ("delayed_time", Atom::Delayed, "what its thread was kept from a processor in microseconds"),
    ("yielded_time", Atom::Yielded, "what it gave way to others in microseconds"),
    ("outcome", Atom::Outcome, "what became of the request"),
    ("trace_id", Atom::TraceId, "trace of its traceparent"),
    ("span_id", Atom::SpanId, "span of its traceparent"),
];
