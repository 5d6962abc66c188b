//! Responses to front ends that do not speak HTTP to us: the head of CGI, and the records of FastCGI.
//!
//! SCGI has the first alone, FastCGI both. uwsgi has the head of HTTP/1.
use super::records::{COMPLETE, STDOUT, end_request, header};
use crate::message::status::reason;
use crate::response::{Portion, ResponseHead};

/// Appends the head of a response (RFC 3875 section 6.2). What it says of its connection is for HTTP.
pub fn head(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    let (count, size) = head.size();
    out.reserve(size + count * 4 + HEAD_TEXT);
    out.extend_from_slice(b"Status: ");
    out.extend_from_slice(itoa::Buffer::new().format(head.status).as_bytes());
    out.push(b' ');
    // nginx says the text to its client as it is, and a status line of HTTP/1 does not end with the code (RFC 9112 section 4).
    out.extend_from_slice(if head.reason.is_empty() { reason(head.status).as_bytes() } else { head.reason });
    out.extend_from_slice(b"\r\n");
    let mut line = |name: &[u8], value: &[u8]| {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    };
    let own: [(&[u8], &[u8]); 3] = [(b"Server", head.server), (b"Date", head.date), (b"X-Request-ID", head.request_id)];
    own.into_iter().filter(|(_, value)| !value.is_empty()).for_each(|(name, value)| line(name, value));
    if let Some(length) = head.length {
        line(b"Content-Length", itoa::Buffer::new().format(length).as_bytes());
    }
    head.standing().chain(head.fields()).for_each(|(name, value)| line(name, value));
    out.extend_from_slice(b"\r\n");
}

/// Room for all that a head says besides its fields.
const HEAD_TEXT: usize = 192;

/// The same in records.
pub fn head_in_records(out: &mut Vec<u8>, id: u16, response: &ResponseHead<'_>) {
    let mut text = Vec::new();
    head(&mut text, response);
    for part in text.chunks(MOST) {
        header(out, STDOUT, id, part.len() as u16);
        out.extend_from_slice(part);
    }
}

/// Appends what precedes a piece of the body, of up to [`MOST`] bytes. Nothing follows it.
pub fn before(out: &mut Vec<u8>, id: u16, portion: Portion) {
    if portion.length > 0 {
        debug_assert!(portion.length <= MOST as u64);
        header(out, STDOUT, id, portion.length as u16);
    }
}

/// Appends the end of a response that is complete.
pub fn end(out: &mut Vec<u8>, id: u16) {
    header(out, STDOUT, id, 0);
    out.extend_from_slice(&end_request(id, COMPLETE));
}

/// Most bytes of a record's content: a multiple of eight, so that no padding is wanted.
pub const MOST: usize = 65_528;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{FieldList, Version};
    use crate::response::{Connection, Framing};

    fn response(list: &FieldList) -> ResponseHead<'_> {
        static NOTHING: FieldList = FieldList::new();
        ResponseHead {
            version: Version::Scgi,
            status: 200,
            reason: b"OK",
            server: b"tricorn",
            date: b"now",
            request_id: b"abc",
            standing: &NOTHING,
            length: Some(5),
            framing: Framing::Length(5),
            connection: Connection { reuse: false, upgrade: false },
            list,
            without: None,
        }
    }

    #[test]
    fn a_head_has_a_status_and_nothing_of_the_connection() {
        let list = FieldList::from_iter([(&b"A"[..], &b"1"[..])]);
        let mut out = Vec::new();
        head(&mut out, &response(&list));
        let text =
            "Status: 200 OK\r\nServer: tricorn\r\nDate: now\r\nX-Request-ID: abc\r\nContent-Length: 5\r\nA: 1\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&out), text);
        let mut records = Vec::new();
        head_in_records(&mut records, 258, &response(&list));
        assert_eq!(records[..8], [1, 6, 1, 2, 0, out.len() as u8, 0, 0]);
        assert_eq!(records[8..], out);
    }

    #[test]
    fn a_status_has_a_phrase() {
        let list = FieldList::new();
        for (status, phrase, line) in [
            (204, "", "Status: 204 No Content\r\n"),
            (299, "", "Status: 299 Unknown\r\n"),
            (204, "No", "Status: 204 No\r\n"),
        ] {
            let mut out = Vec::new();
            head(&mut out, &ResponseHead { status, reason: phrase.as_bytes(), ..response(&list) });
            assert!(out.starts_with(line.as_bytes()), "{}", String::from_utf8_lossy(&out));
        }
    }

    #[test]
    fn a_long_head_is_several_records() {
        let value = vec![b'v'; 70_000];
        let list = FieldList::from_iter([(&b"A"[..], &value[..])]);
        let (mut text, mut out) = (Vec::new(), Vec::new());
        head(&mut text, &response(&list));
        head_in_records(&mut out, 1, &response(&list));
        assert_eq!(out.len(), text.len() + 16);
        assert_eq!(out[4..6], [0xff, 0xf8]);
    }

    #[test]
    fn the_end_is_told_by_two_records() {
        let mut out = Vec::new();
        before(&mut out, 1, Portion { length: 0, delimited: true });
        assert!(out.is_empty(), "an empty record would be the end");
        before(&mut out, 1, Portion { length: MOST as u64, delimited: true });
        assert_eq!(out, [1, 6, 0, 1, 0xff, 0xf8, 0, 0]);
        out.clear();
        end(&mut out, 1);
        assert_eq!(out, [1, 6, 0, 1, 0, 0, 0, 0, 1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
