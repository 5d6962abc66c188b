//! An access line: one line, printable, and its quotes are the format's.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::Choices;
use tricorn_proto::access_log::{DEFAULT, Format, Record};
use tricorn_proto::http1::Receiver;
use tricorn_proto::message::{FieldList, RequestHead};

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let policy = choices.policy();
    let own = String::from_utf8_lossy(choices.bytes()).into_owned();
    let (fields, environ) = (choices.bytes(), choices.bytes());
    let mut bytes = choices.0.to_vec();
    let mut head = RequestHead::default();
    let _ = Receiver::default().advance(&mut bytes, &policy, true, &mut head);
    let micros = environ
        .iter()
        .fold(0u64, |micros, &byte| micros << 8 | u64::from(byte));
    let lookup = |_: &str| Some(environ.to_vec());
    let mut list = FieldList::default();
    list.push(b"a", fields);
    let record = Record {
        head: &head,
        bytes: &bytes,
        remote: b"127.0.0.1",
        status: 200,
        fields: &list,
        sent: micros,
        micros,
        time: b"[21/Nov/2026:01:02:32 +0000]",
        pid: 42,
        request_id: b"0af7651916cd43dd",
        queue_micros: Some(77),
        call_time: None,
        environ: &lookup,
    };
    let mut out = Vec::new();
    if let Ok(format) = Format::parse(&own) {
        format.render(&record, &mut out);
    }
    out.clear();
    Format::json(true).render(&record, &mut out);
    let line = out.strip_suffix(b"\n").expect("a newline");
    let line = std::str::from_utf8(line).expect("UTF-8");
    assert!(line.starts_with("{\"time\":\"") && line.ends_with(",\"pid\":42}"));
    assert!(!line.chars().any(char::is_control));
    out.clear();
    let everything =
        format!("{DEFAULT} \"%({{a}}i)s\" \"%({{a}}o)s\" \"%({{a}}e)s\" \"%(U)s?%(q)s\" %(L)s");
    let format = Format::parse(&everything).expect("a valid format");
    out.clear();
    format.render(&record, &mut out);
    let line = out.strip_suffix(b"\n").expect("a newline");
    assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)));
    let (mut quotes, mut escaped) = (0, false);
    for &byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quotes += 1,
            _ => {}
        }
    }
    assert_eq!(quotes, everything.matches('"').count());
});
