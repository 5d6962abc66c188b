//! A head: whatever is accepted satisfies what the rest of the server relies upon, and httparse agrees with it.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::Choices;
use tricorn_proto::http1::{Receiver, Step};
use tricorn_proto::message::{Framing, Method, RequestHead, Version};

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let policy = choices.policy();
    let mut input = choices.0.to_vec();
    let mut head = RequestHead::default();
    let trusted = policy.trust.allows(Some([10, 0, 0, 1].into()));
    let progress = match Receiver::default().advance(&mut input, &policy, trusted, &mut head) {
        Ok(progress) => progress,
        Err(refusal) => {
            assert!(
                (400..=501).contains(&refusal.status()) && refusal.status() != 500,
                "{refusal}"
            );
            return;
        }
    };
    if progress.step != Step::Head {
        assert_eq!(progress.step, Step::NeedMore);
        return;
    }
    let bytes = &input[..progress.consumed];
    assert!(bytes.ends_with(b"\r\n\r\n"));
    // Every LF follows a CR, every CR is followed by an LF.
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => assert_eq!(bytes[at - 1], b'\r'),
            b'\r' => assert_eq!(bytes[at + 1], b'\n'),
            0 => panic!("a NUL was let through"),
            _ => {}
        }
    }
    let line = [head.method, head.target, head.protocol]
        .map(|span| span.of(bytes))
        .join(&b' ');
    let start = if bytes.starts_with(b"\r\n") { 2 } else { 0 };
    assert!(bytes[start..].starts_with(&[&line[..], b"\r\n"].concat()));
    let lower = |name: &[u8]| name.to_ascii_lowercase();
    let count = |name: &[u8]| {
        head.fields
            .iter()
            .filter(|field| lower(field.name.of(bytes)) == name)
            .count()
    };
    let (length, coding) = (count(b"content-length"), count(b"transfer-encoding"));
    assert!(count(b"host") <= 1 && length <= 1 && (length == 0 || coding == 0));
    assert!(head.version == Version::Http10 || count(b"host") == 1);
    match head.framing {
        Framing::Chunked => assert!(coding == 1 && head.version == Version::Http11),
        Framing::Length(_) => assert_eq!((length, coding), (1, 0)),
        Framing::None => assert_eq!((length, coding), (0, 0)),
    }
    // A path is never empty but for CONNECT (RFC 9110 section 4.2.3).
    let path = head.path.of(bytes);
    assert!(head.kind == Method::Connect || path.starts_with(b"/") || path == b"*");
    // Another parser sees the same lines.
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let from = start + line.len() + 2;
    match httparse::parse_headers(&bytes[from..], &mut fields) {
        Ok(httparse::Status::Complete((end, seen))) => {
            assert_eq!(from + end, bytes.len());
            assert!(seen.len() >= head.fields.len());
        }
        other => panic!("httparse disagrees: {other:?}"),
    }
});
