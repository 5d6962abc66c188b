//! Responses that the server gives without the application: refusals, the early 504, what is asked on admin listeners.
//!
//! All of them are made here, by the reply machine that applications have: so framing, HEAD, Date, Connection and X-Request-ID
//! are decided where they always are. `reactor/connections/respond.rs` sends them, or the exchange does; the monitor sends those that an
//! exchange is too late for (`Watched::answer_late`).
use super::encoding;
use tricorn_proto::message::status::reason;
use tricorn_proto::message::{Method, Version};
use tricorn_proto::response::{End, Fault, HeadInputs, Reply, error_page};

/// What a response depends on besides its status, fields and body.
#[derive(Debug, Clone, Copy)]
pub struct Responder<'a> {
    /// IMF-fixdate. RFC 9110 section 6.6.1: a server with a clock "MUST generate a Date header field in all 2xx …, 3xx …,
    /// and 4xx … responses, and MAY generate" it in others.
    pub date: &'a [u8],
    /// Value of the Server field; empty: none is sent. gunicorn's error pages have none.
    pub server: &'a [u8],
    /// RFC 9110 section 9.3.2: "the server MUST NOT send content in the response" to HEAD. Its Content-Length is that of GET.
    pub method: Method,
    pub version: Version,
    /// The connection may be used again.
    pub keep: bool,
    /// Value of the X-Request-ID field; empty: none is sent.
    pub request_id: &'a [u8],
}

/// A response that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub end: End,
    /// Bytes of its body.
    pub body: u64,
}

/// Name and value.
pub type Field<'a> = (&'a [u8], &'a [u8]);

impl<'a> Responder<'a> {
    /// For an error page behind which the connection is closed.
    pub fn of_errors(date: &'a [u8], method: Method, version: Version) -> Responder<'a> {
        Responder { date, server: b"", method, version, keep: false, request_id: b"" }
    }

    /// Appends a response to `out`: a head, and the body if there may be one.
    pub fn write(&self, out: &mut Vec<u8>, status: u16, fields: &[Field<'_>], body: &[u8]) -> Written {
        let mut reply = Reply::default();
        reply.begin(self.method, self.version, self.keep);
        reply.set_request_id(self.request_id);
        let length = body.len() as u64;
        if set(&mut reply, status, fields).is_err() {
            return Written { end: End::Close, body: 0 }; // a defect of ours: nothing in them is a client's
        }
        let inputs = HeadInputs {
            date: self.date,
            server: self.server,
            body_length: Some(length),
            close: !self.keep,
            ..HeadInputs::default()
        };
        out.reserve(HEAD + body.len());
        encoding::head(&mut reply, out, &inputs);
        let (count, after) = encoding::piece(&mut reply, out, length);
        out.extend_from_slice(&body[..count as usize]);
        out.extend_from_slice(after);
        Written { end: encoding::end(&mut reply, out), body: count }
    }

    /// Appends gunicorn's error page to `out`, with more fields.
    pub fn write_page(&self, out: &mut Vec<u8>, status: u16, message: &str, fields: &[Field<'_>]) -> Written {
        let html = error_page::html(status, message);
        let length = html.len().to_string();
        let mut all = fields.to_vec();
        all.extend([(b"Content-Type".as_slice(), b"text/html".as_slice()), (b"Content-Length", length.as_bytes())]);
        self.write(out, status, &all, &html)
    }
}

fn set(reply: &mut Reply, status: u16, fields: &[Field<'_>]) -> Result<(), Fault> {
    reply.status(format!("{status} {}", reason(status)).as_bytes())?;
    fields.iter().try_for_each(|(name, value)| reply.field(name, value))
}

/// Room for a usual head.
const HEAD: usize = 256;

/// The answer to a request that took too long. Its length does not depend on the date.
pub fn late_page(date: &[u8], method: Method, version: Version, request_id: &[u8]) -> Vec<u8> {
    let mut page = Vec::new();
    Responder { request_id, ..Responder::of_errors(date, method, version) }.write_page(&mut page, 504, "", &[]);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Field<'_> = (b"Retry-After", b"1");
    const DATE: &[u8] = b"Sat, 21 Nov 2026 01:02:32 GMT";

    fn page(responder: Responder<'_>, status: u16, message: &str, fields: &[Field<'_>]) -> String {
        let mut out = Vec::new();
        responder.write_page(&mut out, status, message, fields);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_page_is_gunicorns_byte_for_byte_behind_a_date() {
        let expected = "HTTP/1.1 400 Bad Request\r\nDate: Sat, 21 Nov 2026 01:02:32 GMT\r\nConnection: close\r\n\
            Content-Type: text/html\r\nContent-Length: 157\r\n\r\n\
            <html>\n  <head>\n    <title>Bad Request</title>\n  </head>\n  <body>\n    <h1><p>Bad Request</p></h1>\n    \
            Invalid HTTP Header: &#x27;FOO&#x27;\n  </body>\n</html>\n";
        let responder = Responder::of_errors(DATE, Method::Get, Version::Http11);
        assert_eq!(page(responder, 400, "Invalid HTTP Header: 'FOO'", &[]), expected);
    }

    #[test]
    fn head_gets_the_head_that_get_would_have() {
        let get = page(Responder::of_errors(DATE, Method::Get, Version::Http11), 503, "later", &[RETRY]);
        let head = page(Responder::of_errors(DATE, Method::Head, Version::Http11), 503, "later", &[RETRY]);
        let body = error_page::html(503, "later").len();
        assert_eq!(head, get[..get.len() - body]);
        assert!(body > 0 && head.contains(&format!("\r\nContent-Length: {body}\r\n")), "{head}");
    }

    #[test]
    fn the_connection_and_the_id_are_said() {
        for keep in [false, true] {
            let responder =
                Responder { keep, request_id: b"abc", ..Responder::of_errors(DATE, Method::Get, Version::Http11) };
            let text = page(responder, 503, "", &[RETRY]);
            let connection = if keep { "keep-alive" } else { "close" };
            assert!(text.contains(&format!("\r\nConnection: {connection}\r\n")), "{text}");
            assert!(text.contains("\r\nX-Request-ID: abc\r\n") && text.contains("\r\nRetry-After: 1\r\n"), "{text}");
        }
    }

    #[test]
    fn the_end_is_the_reply_machines() {
        let mut out = Vec::new();
        let kept = Responder { keep: true, ..Responder::of_errors(DATE, Method::Get, Version::Http11) };
        let field = (b"Content-Type".as_slice(), b"text/plain".as_slice());
        assert_eq!(kept.write(&mut out, 200, &[field], b"ok\n"), Written { end: End::Reuse, body: 3 });
        assert!(out.ends_with(b"\r\n\r\nok\n"));
        let closed = Responder { keep: false, ..kept };
        assert_eq!(closed.write(&mut out, 200, &[field], b"ok\n"), Written { end: End::Close, body: 3 });
    }
}
