//! What error responses of the server itself say: gunicorn's HTML page, byte for byte.
use crate::message::status::reason;

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
    fn markup_in_the_message_is_escaped() {
        assert!(text(400, "<a href=\"x\">&'").contains("&lt;a href=&quot;x&quot;&gt;&amp;&#x27;"));
        assert!(text(400, "\u{e9}\u{20ac}").contains("\u{e9}?"));
    }
}
