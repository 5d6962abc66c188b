//! A reply as bytes: the reply machine decides, and the encoder of what the connection speaks says it.
//!
//! Rule: no other file of the crate knows an encoder.
use tricorn_proto::message::Version;
use tricorn_proto::response::{End, Fault, HeadInputs, Portion, Reply};
use tricorn_proto::{cgi, http1, http2};

/// The interim response to a client that waits with its body.
pub fn allowance(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 | Version::Http11 => http1::encode::CONTINUE,
        Version::Http2 => http2::encode::CONTINUE,
        // A front end has told its client itself.
        Version::Uwsgi | Version::Scgi | Version::FastCgi(_) => b"",
    }
}

/// Appends the head, if it is due.
pub fn head(reply: &mut Reply, out: &mut Vec<u8>, inputs: &HeadInputs<'_>) {
    if let Some(head) = reply.head(inputs) {
        match head.version {
            Version::Http10 | Version::Http11 | Version::Uwsgi => http1::encode::head(out, &head),
            Version::Http2 => http2::encode::head(out, &head),
            Version::Scgi => cgi::encode::head(out, &head),
            Version::FastCgi(id) => cgi::encode::head_in_records(out, id, &head),
        }
    }
}

/// Most bytes that are one piece; longer ones are given to [`piece`] in parts.
#[inline]
pub fn most_of_piece(reply: &Reply) -> usize {
    if matches!(reply.version(), Version::FastCgi(_)) { cgi::encode::MOST } else { usize::MAX }
}

/// So many bytes of the body are offered: how many are sent, and what follows them. Appends what precedes them.
#[inline]
pub fn piece(reply: &mut Reply, out: &mut Vec<u8>, len: u64) -> (u64, &'static [u8]) {
    let portion = reply.body(len);
    match reply.version() {
        Version::Http10 | Version::Http11 => {
            http1::encode::before(out, portion);
            return (portion.length, http1::encode::after(portion));
        }
        Version::Http2 => http2::encode::before(out, portion),
        Version::FastCgi(id) => cgi::encode::before(out, id, portion),
        Version::Uwsgi | Version::Scgi => {}
    }
    (portion.length, b"")
}

/// Ends the reply. Appends what follows the body.
#[inline]
pub fn end(reply: &mut Reply, out: &mut Vec<u8>) -> End {
    let version = reply.version();
    let ending = reply.end();
    match version {
        Version::Http10 | Version::Http11 => http1::encode::end(out, ending.mark),
        Version::Http2 if ending.whole => http2::encode::end(out, ending.mark),
        Version::FastCgi(id) if ending.whole => cgi::encode::end(out, id),
        // The stream is reset when its request is over, or the connection closed.
        Version::Http2 | Version::FastCgi(_) => {}
        // The end of the connection is that of the response.
        Version::Uwsgi | Version::Scgi => {}
    }
    ending.end
}

/// Puts before bytes of another protocol, so many in all, what a stream of HTTP/2 has before content.
#[cold]
pub fn enclose(out: &mut Vec<u8>, length: usize) {
    let mut mark = Vec::new();
    http2::encode::before(&mut mark, Portion { length: length as u64, delimited: false });
    out.splice(..0, mark);
}

/// The end of what is sent on a stream of HTTP/2.
pub fn end_of_stream() -> Vec<u8> {
    let mut end = Vec::new();
    http2::encode::end(&mut end, None);
    end
}

/// Appends an interim response, where the reply has a place for it.
pub fn interim<'f>(
    reply: &Reply,
    out: &mut Vec<u8>,
    status: u16,
    fields: &mut dyn Iterator<Item = (&'f [u8], &'f [u8])>,
) -> Result<(), Fault> {
    if let Some(interim) = reply.interim(status, fields)? {
        match reply.version() {
            Version::Http10 | Version::Http11 => http1::encode::interim(out, &interim),
            Version::Http2 => http2::encode::interim(out, &interim),
            // The reply machine gives none to what has less than HTTP/1.1.
            Version::Uwsgi | Version::Scgi | Version::FastCgi(_) => {}
        }
    }
    Ok(())
}
