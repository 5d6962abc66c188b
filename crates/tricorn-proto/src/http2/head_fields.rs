//! A request's head as fields once more, for another worker: the one that received it keeps the connection.
//!
//! What was decoded and checked by one [`Connection`](super::Connection) is read again by the same rules, without the limits that it has
//! passed already: cookies were joined since.
use super::encode::{Fields, field};
use super::request::{Flawed, HeadReader, Request, Rules};
use super::violation::Violation;
use crate::http1::HeadPolicy;
use crate::message::{Field, Framing, Refusal, RefusalKind, RequestHead, Scheme};

/// Appends a head whose spans point into `bytes`, and the fields that were taken out of it since it was read.
pub fn write(out: &mut Vec<u8>, head: &RequestHead, bytes: &[u8], taken_out: &[Field]) {
    out.push(u8::from(head.framing == Framing::None));
    let scheme: &[u8] = if head.scheme == Scheme::Https { b"https" } else { b"http" };
    field(out, b":method", head.method.of(bytes));
    field(out, b":scheme", scheme);
    field(out, b":path", head.target.of(bytes));
    for each in head.fields.iter().chain(taken_out) {
        let (name, value) = (each.name.of(bytes), each.value.of(bytes));
        if name == b"cookie" {
            crumbs(value).for_each(|crumb| field(out, name, crumb));
        } else {
            field(out, name, value);
        }
    }
}

/// Reads what [`write`] has written.
///
/// # Errors
/// It is no request by these rules.
pub fn read(request: &mut Request, payload: &[u8], policy: &HeadPolicy, trusted: bool) -> Result<(), Box<Refusal>> {
    let (end, payload) = payload.split_at_checked(1).unwrap_or_default();
    let rules = Rules { policy, trusted, max_list: usize::MAX, connect_protocol: false };
    let mut reader = HeadReader::new(request, rules);
    let mut count = 0;
    for (name, value) in Fields::of(payload) {
        reader.take(name, value);
        count += name.len() + value.len() + FIELD_MARKS;
    }
    let finished =
        if count == payload.len() { reader.finish(end == [1]) } else { Err(Violation::PseudoMissing.into()) };
    finished.map_err(|flawed| match flawed {
        Flawed::Refused(refusal) => refusal,
        Flawed::Malformed(violation) => Box::new(Refusal::new(RefusalKind::InternalError, violation.to_string())),
    })
}

/// The pieces of a cookie field, each shorter than the whole: RFC 9113 section 8.2.3.
fn crumbs(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.windows(2).position(|pair| pair == b"; ");
        rest = end.map(|end| &text[end + 2..]);
        Some(end.map_or(text, |end| &text[..end]))
    })
}

/// The two lengths of a field (`encode`).
const FIELD_MARKS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Version;

    fn decoded(fields: &[(&str, &str)], whole: bool) -> Result<Request, Box<Refusal>> {
        let mut payload = vec![u8::from(whole)];
        fields.iter().for_each(|(name, value)| field(&mut payload, name.as_bytes(), value.as_bytes()));
        let mut request = Request::default();
        read(&mut request, &payload, &HeadPolicy::default(), false).map(|()| request)
    }

    fn seen(request: &Request) -> Vec<(String, String)> {
        let text = |span: crate::message::Span| String::from_utf8_lossy(span.of(&request.bytes)).into_owned();
        request.head.fields.iter().map(|field| (text(field.name), text(field.value))).collect()
    }

    #[test]
    fn a_head_that_is_written_is_read_as_the_same() {
        let fields = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", "example.com:8443"),
            (":path", "/a%20b?c=d"),
            ("cookie", "a=b"),
            ("x-one", "1"),
            ("cookie", "c=d; e=f"),
            ("content-length", "5"),
            ("priority", "u=1"),
        ];
        let first = decoded(&fields, false).expect("it is good");
        let mut payload = Vec::new();
        write(&mut payload, &first.head, &first.bytes, &[]);
        let mut again = Request::default();
        read(&mut again, &payload, &HeadPolicy::default(), false).expect("it was good");
        assert_eq!(seen(&first), seen(&again));
        let spans = |head: &RequestHead| [head.method, head.target, head.query, head.protocol];
        let texts = |request: &Request| spans(&request.head).map(|span| span.of(&request.bytes).to_vec());
        assert_eq!(texts(&first), texts(&again));
        let facts = |head: &RequestHead| (head.kind, head.version, head.framing, head.keep_alive);
        assert_eq!(facts(&first.head), facts(&again.head));
        assert_eq!((again.head.version, again.head.framing), (Version::Http2, Framing::Length(5)));
    }

    #[test]
    fn cookies_that_are_long_together_are_let_pass() {
        let crumb = format!("a={}", "b".repeat(4000));
        let start = [(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "a")];
        let cookies = [("cookie", crumb.as_str()); 4];
        let first = decoded(&[&start[..], &cookies].concat(), true).expect("each is short");
        let mut payload = Vec::new();
        write(&mut payload, &first.head, &first.bytes, &[]);
        let mut again = Request::default();
        assert!(read(&mut again, &payload, &HeadPolicy::default(), false).is_ok());
        assert_eq!(seen(&first), seen(&again));
    }

    #[test]
    fn fields_that_were_taken_out_come_along() {
        let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "a"), ("forwarded", "for=::1")];
        let mut first = decoded(&fields, true).expect("it is good");
        let taken_out = first.head.fields.split_off(1);
        let mut payload = Vec::new();
        write(&mut payload, &first.head, &first.bytes, &taken_out);
        let mut again = Request::default();
        read(&mut again, &payload, &HeadPolicy::default(), false).expect("it was good");
        let all = [("host", "a"), ("forwarded", "for=::1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(seen(&again), all);
    }

    #[test]
    fn what_was_not_written_is_not_read() {
        for payload in [&b""[..], b"\x01\0\0\0\0\0\0\0", &[255; 64]] {
            let mut request = Request::default();
            assert!(read(&mut request, payload, &HeadPolicy::default(), false).is_err(), "{payload:?}");
        }
    }
}
