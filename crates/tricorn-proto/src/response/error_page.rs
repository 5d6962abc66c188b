//! The complete error responses the server itself gives: gunicorn's HTML page, behind a head with a Date.
use super::app_field::{Use, classify};
use super::framing::Framing;
use super::head::{Connection, ResponseHead};
use crate::message::status::reason;
use crate::message::{FieldList, Method, Version};

/// An error response and what it depends on.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    pub status: u16,
    /// Shown escaped.
    pub message: &'a str,
    /// More fields.
    pub fields: &'a [(&'a [u8], &'a [u8])],
    /// Value of X-Request-ID; empty: none is sent.
    pub request_id: &'a [u8],
    /// IMF-fixdate. RFC 9110 section 6.6.1: a server with a clock "MUST generate a Date header field in all 2xx …, 3xx …,
    /// and 4xx … responses, and MAY generate" it in others.
    pub date: &'a [u8],
    /// RFC 9110 section 9.3.2: "the server MUST NOT send content in the response" to HEAD. Its Content-Length is that of GET.
    pub method: Method,
    /// The connection may be used again.
    pub keep: bool,
}

/// An error response, to be encoded.
#[derive(Debug, Clone)]
pub struct ErrorResponse<'a> {
    page: Page<'a>,
    fields: FieldList,
    html: Vec<u8>,
}

impl<'a> Page<'a> {
    /// Decides what head and body say.
    pub fn compose(self) -> ErrorResponse<'a> {
        let html = html(self.status, self.message);
        let mut fields = FieldList::default();
        self.fields.iter().for_each(|(name, value)| fields.push(name, value));
        if !self.request_id.is_empty() {
            fields.push(b"X-Request-ID", self.request_id);
        }
        fields.push(b"Content-Type", b"text/html");
        fields.push(b"Content-Length", itoa::Buffer::new().format(html.len()).as_bytes());
        ErrorResponse { page: self, fields, html }
    }
}

impl ErrorResponse<'_> {
    pub fn head(&self) -> ResponseHead<'_> {
        let upgrade = self.page.fields.iter().any(|(name, _)| classify(name) == Use::Upgrade);
        ResponseHead {
            version: Version::Http11,
            status: self.page.status,
            reason: reason(self.page.status).as_bytes(),
            server: b"",
            date: self.page.date,
            request_id: b"",
            length: None,
            framing: if self.has_body() { Framing::Length(self.html.len() as u64) } else { Framing::None },
            connection: Connection { reuse: self.page.keep, upgrade },
            list: &self.fields,
            without: None,
        }
    }

    /// Empty where there is none.
    pub fn body(&self) -> &[u8] {
        if self.has_body() { &self.html } else { b"" }
    }

    fn has_body(&self) -> bool {
        self.page.method != Method::Head
    }
}

/// The page for a status and a message, which is shown escaped.
pub fn html(status: u16, message: &str) -> Vec<u8> {
    let reason = reason(status);
    let mut page = Vec::with_capacity(PAGE_BYTES + message.len());
    page.extend_from_slice(b"<html>\n  <head>\n    <title>");
    page.extend_from_slice(reason.as_bytes());
    page.extend_from_slice(b"</title>\n  </head>\n  <body>\n    <h1><p>");
    page.extend_from_slice(reason.as_bytes());
    page.extend_from_slice(b"</p></h1>\n    ");
    escape(message, &mut page);
    page.extend_from_slice(b"\n  </body>\n</html>\n");
    page
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page<'_> = Page {
        status: 400,
        message: "",
        fields: &[],
        request_id: b"",
        date: b"Sat, 21 Nov 2026 01:02:32 GMT",
        method: Method::Get,
        keep: false,
    };

    fn text(status: u16, message: &str) -> String {
        html(status, message).into_iter().map(char::from).collect()
    }

    #[test]
    fn the_page_is_gunicorns_byte_for_byte() {
        let expected = "<html>\n  <head>\n    <title>Bad Request</title>\n  </head>\n  <body>\n    <h1><p>Bad Request</p></h1>\n    \
            Invalid HTTP Header: &#x27;FOO&#x27;\n  </body>\n</html>\n";
        assert_eq!(text(400, "Invalid HTTP Header: 'FOO'"), expected);
    }

    #[test]
    fn an_application_error_has_a_page_of_141_bytes() {
        let page = Page { status: 500, ..PAGE }.compose();
        assert_eq!((page.body().len(), page.head().framing), (141, Framing::Length(141)));
    }

    #[test]
    fn the_head_says_how_long_the_page_is_and_whether_the_connection_is_kept() {
        let retry: [(&[u8], &[u8]); 1] = [(b"Retry-After", b"1")];
        for keep in [false, true] {
            let page = Page { status: 503, fields: &retry, request_id: b"abc", keep, ..PAGE }.compose();
            let length = page.body().len().to_string();
            let fields: [(&[u8], &[u8]); 4] = [
                retry[0],
                (b"X-Request-ID", b"abc"),
                (b"Content-Type", b"text/html"),
                (b"Content-Length", length.as_bytes()),
            ];
            let head = page.head();
            assert!(head.fields().eq(fields));
            assert_eq!((head.status, head.reason), (503, &b"Service Unavailable"[..]));
            assert_eq!(head.connection, Connection { reuse: keep, upgrade: false });
        }
    }

    #[test]
    fn head_gets_the_fields_that_get_would_have() {
        let (get, head) = (PAGE.compose(), Page { method: Method::Head, ..PAGE }.compose());
        assert!(head.head().fields().eq(get.head().fields()));
        assert_eq!((head.head().framing, head.body()), (Framing::None, &b""[..]));
        assert!(!get.body().is_empty());
    }

    #[test]
    fn a_page_that_names_a_protocol_offers_to_upgrade() {
        let page = Page { status: 426, fields: &[(b"Upgrade", b"websocket")], ..PAGE }.compose();
        assert_eq!(page.head().connection, Connection { reuse: false, upgrade: true });
    }

    #[test]
    fn markup_in_the_message_is_escaped() {
        assert!(text(400, "<a href=\"x\">&'").contains("&lt;a href=&quot;x&quot;&gt;&amp;&#x27;"));
        assert!(text(400, "\u{e9}\u{20ac}").contains("\u{e9}?"));
    }
}
