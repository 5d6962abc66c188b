//! The complete error responses the server itself gives: gunicorn's HTML page, byte for byte, behind a head with a Date.
use crate::message::Method;
use crate::message::status::reason;

/// An error response and what it depends on.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    pub status: u16,
    /// Shown escaped.
    pub message: &'a str,
    /// More fields, each with its line end.
    pub fields: &'a [u8],
    /// IMF-fixdate. RFC 9110 section 6.6.1: a server with a clock "MUST generate a Date header field in all 2xx …, 3xx …,
    /// and 4xx … responses, and MAY generate" it in others.
    pub date: &'a [u8],
    /// RFC 9110 section 9.3.2: "the server MUST NOT send content in the response" to HEAD. Its Content-Length is that of GET.
    pub method: Method,
    /// The connection may be used again.
    pub keep: bool,
}

impl Page<'_> {
    /// Appends the response to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let reason = reason(self.status);
        let mut page = Vec::with_capacity(PAGE_BYTES + self.message.len());
        page.extend_from_slice(b"<html>\n  <head>\n    <title>");
        page.extend_from_slice(reason.as_bytes());
        page.extend_from_slice(b"</title>\n  </head>\n  <body>\n    <h1><p>");
        page.extend_from_slice(reason.as_bytes());
        page.extend_from_slice(b"</p></h1>\n    ");
        escape(self.message, &mut page);
        page.extend_from_slice(b"\n  </body>\n</html>\n");

        out.reserve(HEAD_BYTES + self.fields.len() + page.len());
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(itoa::Buffer::new().format(self.status).as_bytes());
        out.push(b' ');
        out.extend_from_slice(reason.as_bytes());
        out.extend_from_slice(b"\r\nDate: ");
        out.extend_from_slice(self.date);
        out.extend_from_slice(if self.keep {
            b"\r\nConnection: keep-alive\r\n".as_slice()
        } else {
            b"\r\nConnection: close\r\n"
        });
        out.extend_from_slice(self.fields);
        out.extend_from_slice(b"Content-Type: text/html\r\nContent-Length: ");
        out.extend_from_slice(itoa::Buffer::new().format(page.len()).as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        if self.method != Method::Head {
            out.extend_from_slice(&page);
        }
    }
}

/// The body of a response that this module has written.
pub fn body(page: &[u8]) -> &[u8] {
    let end = page.windows(4).position(|window| window == b"\r\n\r\n");
    end.and_then(|end| page.get(end + 4..)).unwrap_or_default()
}

/// As Python's `html.escape`, in latin-1 as gunicorn encodes the page.
fn escape(message: &str, page: &mut Vec<u8>) {
    for letter in message.chars() {
        match letter {
            '&' => page.extend_from_slice(b"&amp;"),
            '<' => page.extend_from_slice(b"&lt;"),
            '>' => page.extend_from_slice(b"&gt;"),
            '"' => page.extend_from_slice(b"&quot;"),
            '\'' => page.extend_from_slice(b"&#x27;"),
            letter => page.push(u8::try_from(letter as u32).unwrap_or(b'?')),
        }
    }
}

const PAGE_BYTES: usize = 192;
const HEAD_BYTES: usize = 192;

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page<'_> = Page {
        status: 400,
        message: "",
        fields: b"",
        date: b"Sat, 21 Nov 2026 01:02:32 GMT",
        method: Method::Get,
        keep: false,
    };

    fn bytes(page: Page<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        page.write(&mut out);
        out
    }

    fn page(status: u16, message: &str) -> String {
        String::from_utf8(bytes(Page { status, message, ..PAGE })).unwrap()
    }

    #[test]
    fn the_page_is_gunicorns_byte_for_byte_behind_a_date() {
        let expected = "HTTP/1.1 400 Bad Request\r\nDate: Sat, 21 Nov 2026 01:02:32 GMT\r\nConnection: close\r\n\
            Content-Type: text/html\r\nContent-Length: 157\r\n\r\n\
            <html>\n  <head>\n    <title>Bad Request</title>\n  </head>\n  <body>\n    <h1><p>Bad Request</p></h1>\n    \
            Invalid HTTP Header: &#x27;FOO&#x27;\n  </body>\n</html>\n";
        assert_eq!(page(400, "Invalid HTTP Header: 'FOO'"), expected);
    }

    #[test]
    fn an_application_error_has_a_page_of_141_bytes() {
        assert!(page(500, "").contains("Content-Length: 141\r\n"));
    }

    #[test]
    fn the_body_is_as_long_as_it_says_and_the_connection_kept_if_it_may_be() {
        for keep in [false, true] {
            let out = bytes(Page { status: 503, message: "later", fields: b"Retry-After: 1\r\n", keep, ..PAGE });
            let text = String::from_utf8_lossy(&out).into_owned();
            assert!(text.contains(if keep { "\r\nConnection: keep-alive\r\n" } else { "\r\nConnection: close\r\n" }));
            assert!(text.contains(&format!("\r\nContent-Length: {}\r\n", body(&out).len())));
            assert!(body(&out).starts_with(b"<html>") && body(&out).ends_with(b"</html>\n"));
        }
        assert_eq!(body(b"HTTP/1.1 200 OK\r\n"), b"");
    }

    #[test]
    fn head_gets_the_head_that_get_would_have() {
        let (get, head) = (bytes(PAGE), bytes(Page { method: Method::Head, ..PAGE }));
        assert_eq!(head, get[..get.len() - body(&get).len()]);
        assert!(!body(&get).is_empty() && body(&head).is_empty());
    }

    #[test]
    fn markup_in_the_message_is_escaped() {
        assert!(page(400, "<a href=\"x\">&'").contains("&lt;a href=&quot;x&quot;&gt;&amp;&#x27;"));
        let out = bytes(Page { message: "\u{e9}\u{20ac}", ..PAGE });
        assert!(out.windows(2).any(|bytes| bytes == b"\xe9?"));
    }
}
