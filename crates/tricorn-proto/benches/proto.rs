//! What does a request cost before and after the application: `cargo bench --profile release -p tricorn-proto`. A word
//! behind `--` chooses the cases that have it in their name.
//!
//! Plain timing, the best of many runs: on a shared machine the least disturbed run is the one that repeats.
#![allow(clippy::disallowed_methods)] // A bench may look at the clock.
use std::hint::black_box;
use std::time::Instant;
use tricorn_proto::access_log::{DEFAULT, Format, Outcome, Record};
use tricorn_proto::http1::{HeadPolicy, Receiver, encode};
use tricorn_proto::message::{FieldList, Method, RequestHead, Version};
use tricorn_proto::peer::Trust;
use tricorn_proto::response::{HeadInputs, Reply};

const WRK: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n";
const PROXIED: &[u8] = b"GET /api/items/42?full=1 HTTP/1.1\r\nHost: example.com\r\nX-Forwarded-For: 10.0.0.1\r\n\
    X-Forwarded-Proto: https\r\nX-Real-IP: 10.0.0.1\r\nAccept: */*\r\nUser-Agent: curl/8.5.0\r\n\
    Content-Type: application/json\r\nConnection: close\r\n\r\n";
const BROWSER: &[u8] = b"GET /static/css/site.css?v=20261121 HTTP/1.1\r\nHost: www.example.com\r\n\
    Connection: keep-alive\r\nsec-ch-ua: \"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\nsec-ch-ua-mobile: ?0\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n\
    sec-ch-ua-platform: \"Linux\"\r\nAccept: text/css,*/*;q=0.1\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\n\
    Sec-Fetch-Dest: style\r\nReferer: https://www.example.com/index.html\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Accept-Language: en-GB,en-US;q=0.9,en;q=0.8\r\nCookie: session_id=0123456789abcdef0123456789abcdef; csrf_token=abcdefgh\r\n\r\n";
const FIELDS: [(&[u8], &[u8]); 12] = [
    (b"Content-Type", b"text/plain; charset=utf-8"),
    (b"X-Frame-Options", b"DENY"),
    (b"Vary", b"Accept-Encoding"),
    (b"Cache-Control", b"max-age=0, no-cache, no-store, must-revalidate, private"),
    (b"Expires", b"Sat, 21 Nov 2026 01:02:32 GMT"),
    (b"ETag", b"\"0123456789abcdef0123456789abcdef\""),
    (b"Content-Language", b"en-gb"),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"Referrer-Policy", b"same-origin"),
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (
        b"Set-Cookie",
        b"csrftoken=0123456789abcdefghijklmnopqrstuv; expires=Sat, 20 Nov 2027 01:02:32 GMT; Max-Age=31449600; Path=/",
    ),
    (b"Set-Cookie", b"sessionid=0123456789abcdefghijklmnopqrstuv; HttpOnly; Max-Age=1209600; Path=/; SameSite=Lax"),
];
const DATE: &[u8] = b"Sat, 21 Nov 2026 01:02:32 GMT";

fn main() {
    for (name, head) in [("wrk, 1 field", WRK), ("proxied, 8 fields", PROXIED), ("browser, 14 fields", BROWSER)] {
        parse(&format!("head, {name}"), head, HeadPolicy::default());
        let trust = Trust::parse("127.0.0.1").unwrap_or_default();
        parse(&format!("head, {name}, trusted peer"), head, HeadPolicy { trust, ..HeadPolicy::default() });
    }
    chunked_body();
    reply();
    access_line();
}

fn parse(name: &str, request: &[u8], policy: HeadPolicy) {
    let mut receiver = Receiver::default();
    let mut head = RequestHead::default();
    let mut input = request.to_vec();
    let trusted = policy.trust.allows(Some(std::net::Ipv4Addr::LOCALHOST.into()));
    measure(name, || {
        let step = receiver.advance(black_box(&mut input), &policy, trusted, &mut head);
        black_box(step.is_ok_and(|progress| progress.consumed == request.len()));
        let _ = black_box(receiver.advance(&mut [], &policy, trusted, &mut head));
        receiver.next_request();
    });
}

fn chunked_body() {
    let policy = HeadPolicy::default();
    let mut trailers = Vec::new();
    let body = [b"400\r\n".as_slice(), &[b'x'; 1024], b"\r\n0\r\n\r\n"].concat();
    measure("chunked body, one chunk of 1 KiB", || {
        let mut decoder = tricorn_proto::http1::chunked::Decoder::default();
        let mut at = 0;
        while at < body.len() {
            match decoder.advance(black_box(&body[at..]), &policy, &mut trailers) {
                Ok(progress) => at += progress.consumed,
                Err(_) => break,
            }
        }
    });
}

fn reply() {
    let mut reply = Reply::default();
    let mut out = Vec::new();
    let (three, twelve) = (&FIELDS[..3], &FIELDS[..]);
    for (name, fields, known) in [
        ("reply, 3 fields, length known", three, Some(13)),
        ("reply, 3 fields, chunked", three, None),
        ("reply, 12 fields, length known", twelve, Some(13)),
    ] {
        let inputs =
            HeadInputs { date: DATE, server: b"tricorn", body_length: known, close: false, ..HeadInputs::default() };
        measure(name, || {
            out.clear();
            reply.begin(Method::Get, Version::Http11, true);
            let _ = reply.status(black_box(b"200 OK"));
            for (name, value) in black_box(fields) {
                let _ = reply.field(name, value);
            }
            if let Some(head) = reply.head(&inputs) {
                encode::head(&mut out, &head);
            }
            let portion = reply.body(13);
            encode::before(&mut out, portion);
            black_box(encode::after(portion));
            let ending = reply.end();
            encode::end(&mut out, ending.mark);
            black_box(ending.end);
            black_box(&out);
        });
    }
}

fn access_line() {
    let mut input = BROWSER.to_vec();
    let mut head = RequestHead::default();
    let _ = Receiver::default().advance(&mut input, &HeadPolicy::default(), false, &mut head);
    let Ok(format) = Format::parse(DEFAULT) else {
        return;
    };
    let fields = FieldList::from_iter([(&b"Content-Type"[..], &b"text/css"[..])]);
    let record = Record {
        head: &head,
        bytes: &input,
        remote: b"127.0.0.1",
        status: 200,
        fields: &fields,
        sent: 4321,
        micros: 512,
        time: b"[21/Nov/2026:01:02:32 +0000]",
        millis: 7,
        pid: 42,
        request_id: b"0af7651916cd43dd",
        queue_micros: Some(77),
        call_time: None,
        outcome: Some(Outcome::Ok),
        environ: &|_| None,
    };
    let mut out = Vec::new();
    measure("access line, default format, browser", || {
        out.clear();
        format.render(black_box(&record), &mut out);
        black_box(&out);
    });
}

fn measure(name: &str, mut once: impl FnMut()) {
    if std::env::args().nth(1).is_some_and(|part| !part.starts_with('-') && !name.contains(&part)) {
        return;
    }
    const RUNS: usize = 40;
    const ROUNDS: u32 = 20_000;
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            once();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
    }
    println!("{best:8.1} ns  {name}");
}
