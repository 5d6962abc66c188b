//! By what requests name the session they belong to, and where the server tells that name.
//!
//! | | a request names it by | the server tells it by |
//! |---|---|---|
//! | `mcp` (Model Context Protocol) | field `Mcp-Session-Id`; of the older transport: query `session_id` | that field; the first event |
//! | `socketio` (Engine.IO) | query `sid` beside `EIO` | the first packet of a response: `0{"sid":"…"` |
//! | `header:NAME` | the field | the same field, or the first request |
//! | `cookie:NAME` | the cookie | `Set-Cookie`, or the first request |
//! | `query:NAME` | the parameter | the first request |
//! | `peer` | the client's address | the first request |
use crate::message::grammar::is_token;
use crate::message::{FieldList, RequestHead};
use flate2::{Decompress, FlushDecompress};
use memchr::memmem;

/// Longer names are no session's.
pub const LONGEST: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    Mcp,
    SocketIo,
    Header(Vec<u8>),
    Cookie(Vec<u8>),
    Query(Vec<u8>),
    /// By the address: whoever knows that has the name.
    Peer,
}

impl Naming {
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Naming, String> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let named = |make: fn(Vec<u8>) -> Naming| match is_token(name.as_bytes()) {
            true => Ok(make(name.as_bytes().to_vec())),
            false => Err(format!("{text:?}: {kind}: is followed by a name")),
        };
        match (kind, name) {
            ("mcp", "") => Ok(Naming::Mcp),
            ("socketio", "") => Ok(Naming::SocketIo),
            ("peer", "") => Ok(Naming::Peer),
            ("header", _) => named(Naming::Header),
            ("cookie", _) => named(Naming::Cookie),
            ("query", _) => named(Naming::Query),
            _ => Err(format!("{text:?} is none of mcp, socketio, header:NAME, cookie:NAME, query:NAME, peer")),
        }
    }

    /// Keeps equal names of several kinds apart.
    pub fn kind(&self) -> u8 {
        match self {
            Naming::Mcp => 1,
            Naming::SocketIo => 2,
            Naming::Header(_) => 3,
            Naming::Cookie(_) => 4,
            Naming::Query(_) => 5,
            Naming::Peer => 6,
        }
    }

    /// Whether the worker that first serves a name has its session. Else the application makes the names.
    pub fn is_the_clients(&self) -> bool {
        !matches!(self, Naming::Mcp | Naming::SocketIo)
    }

    /// Whether a request that names no session begins one, as far as its protocol shows that.
    ///
    /// A client of MCP accepts an event stream as the response of each request of its own (Model Context Protocol 2025-06-18, "Sending
    /// Messages to the Server"). A session of Engine.IO that begins as a WebSocket has no other request.
    pub fn begins(&self, head: &RequestHead, bytes: &[u8]) -> bool {
        match self {
            Naming::Mcp => {
                let accepted = head.find(bytes, b"accept").unwrap_or_default();
                memmem::find(accepted, b"text/event-stream").is_some()
            }
            Naming::SocketIo => {
                let query = head.query.of(bytes);
                parameter(query, b"EIO").is_some() && parameter(query, b"transport") == Some(b"polling")
            }
            // The application names it, in whatever response, or the name is there.
            Naming::Header(_) | Naming::Cookie(_) | Naming::Query(_) | Naming::Peer => false,
        }
    }

    /// What a request calls its session. `bytes`: what the head's spans point into.
    pub fn of_request<'b>(&self, head: &RequestHead, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let query = || head.query.of(bytes);
        match self {
            Naming::Mcp => head.find(bytes, MCP).or_else(|| parameter(query(), b"session_id")),
            Naming::SocketIo => parameter(query(), b"EIO").and_then(|_| parameter(query(), b"sid")),
            Naming::Header(name) => head.find(bytes, name),
            Naming::Cookie(name) => cookie(head.find(bytes, b"cookie")?, name),
            Naming::Query(name) => parameter(query(), name),
            Naming::Peer => None,
        }
        .filter(|name| is_name(name))
    }

    /// What the fields of a response call it.
    pub fn of_response<'f>(&self, fields: &'f FieldList) -> Option<&'f [u8]> {
        let (wanted, of_cookie): (&[u8], Option<&[u8]>) = match self {
            Naming::Mcp => (MCP, None),
            Naming::Header(name) => (name, None),
            Naming::Cookie(name) => (b"set-cookie", Some(name)),
            Naming::SocketIo | Naming::Query(_) | Naming::Peer => return None,
        };
        let found = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let mut named = found.filter_map(|(_, value)| match of_cookie {
            Some(name) => cookie(value.split(|byte| *byte == b';').next()?, name),
            None => Some(value),
        });
        named.find(|name| is_name(name))
    }

    /// Whether a response's content may tell it.
    pub fn is_in_content(&self) -> bool {
        matches!(self, Naming::Mcp | Naming::SocketIo)
    }

    /// What the first bytes of a response's content call it.
    pub fn of_content<'c>(&self, content: &'c [u8]) -> Option<&'c [u8]> {
        let start = &content[..content.len().min(LOOK)];
        let (mark, latest) = match self {
            Naming::Mcp if start.starts_with(ENDPOINT) => (b"session_id=".as_slice(), LOOK),
            // Version 3 of the protocol has the length of a packet before it.
            Naming::SocketIo => (b"0{\"sid\":\"".as_slice(), 8),
            _ => return None,
        };
        let at = memmem::find(start, mark).filter(|at| *at <= latest)? + mark.len();
        let rest = &start[at..];
        let length = rest.iter().position(|byte| !is_of_an_id(*byte))?;
        Some(&rest[..length]).filter(|name| is_name(name))
    }
}

/// The first bytes of what a coded content's first bytes stand for (RFC 9110 section 8.4.1.3).
pub fn gunzip(beginning: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(LOOK);
    // What is no gzip, or only a part of it, gives what it gives.
    let _ = Decompress::new_gzip(WINDOW_BITS).decompress_vec(beginning, &mut plain, FlushDecompress::Sync);
    plain
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= LONGEST
}

/// Letters of uuid4 and of base64url, in which the libraries make their ids.
fn is_of_an_id(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// The value of a parameter of a query, as it came.
fn parameter<'b>(query: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// The value of a cookie, without quotation marks that a client may put around it (RFC 6265 section 4.1.1).
fn cookie<'b>(cookies: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
    let mut pairs = cookies.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))?;
    let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    Some(bare.unwrap_or(value))
}

const MCP: &[u8] = b"mcp-session-id";
const ENDPOINT: &[u8] = b"event: endpoint";
/// Bytes of a response's content that are looked at.
pub const LOOK: usize = 512;
/// The largest window of gzip.
const WINDOW_BITS: u8 = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{HeadPolicy, Receiver};
    use flate2::{Compress, Compression, FlushCompress};

    fn read(request: &str) -> (RequestHead, Vec<u8>) {
        let (mut bytes, mut head) = (request.replace('\n', "\r\n").into_bytes(), RequestHead::default());
        Receiver::default().advance(&mut bytes, &HeadPolicy::default(), false, &mut head).expect("a request");
        (head, bytes)
    }

    fn named(naming: &str, request: &str) -> Option<String> {
        let (naming, (head, bytes)) = (Naming::parse(naming).expect("a naming"), read(request));
        naming.of_request(&head, &bytes).map(|name| String::from_utf8_lossy(name).into_owned())
    }

    #[test]
    fn a_request_names_its_session_where_its_protocol_says() {
        for (naming, request, name) in [
            ("mcp", "POST /mcp HTTP/1.1\nHost: h\nMcp-Session-Id: abc\nContent-Length: 0\n\n", Some("abc")),
            ("mcp", "POST /messages/?session_id=0af1 HTTP/1.1\nHost: h\nContent-Length: 0\n\n", Some("0af1")),
            ("mcp", "GET /mcp HTTP/1.1\nHost: h\n\n", None),
            ("socketio", "GET /socket.io/?transport=polling&EIO=4&sid=lv_X-1 HTTP/1.1\nHost: h\n\n", Some("lv_X-1")),
            ("socketio", "GET /socket.io/?transport=polling&EIO=4 HTTP/1.1\nHost: h\n\n", None),
            ("socketio", "GET /play?sid=12 HTTP/1.1\nHost: h\n\n", None),
            ("header:x-user", "GET / HTTP/1.1\nHost: h\nX-User: ada\n\n", Some("ada")),
            ("cookie:sid", "GET / HTTP/1.1\nHost: h\nCookie: other=1; sid=a=b; sid=c\n\n", Some("a=b")),
            ("cookie:sid", "GET / HTTP/1.1\nHost: h\nCookie: sid=\"a==\"\n\n", Some("a==")),
            ("cookie:sid", "GET / HTTP/1.1\nHost: h\nCookie: sid=\"\n\n", Some("\"")),
            ("cookie:sid", "GET / HTTP/1.1\nHost: h\nCookie: xsid=1; sidx=2\n\n", None),
            ("query:room", "GET /?a&room=7&room=8 HTTP/1.1\nHost: h\n\n", Some("7")),
            ("query:room", "GET /?room= HTTP/1.1\nHost: h\n\n", None),
            ("peer", "GET /?peer=1 HTTP/1.1\nHost: h\n\n", None),
        ] {
            assert_eq!(named(naming, request).as_deref(), name, "{naming} {request}");
        }
        let long = format!("GET /?room={} HTTP/1.1\nHost: h\n\n", "x".repeat(LONGEST + 1));
        assert_eq!(named("query:room", &long), None);
    }

    #[test]
    fn a_request_shows_that_it_begins_a_session() {
        for (naming, request, begins) in [
            ("mcp", "POST /mcp HTTP/1.1\nHost: h\nAccept: application/json, text/event-stream\n\n", true),
            ("mcp", "GET /sse HTTP/1.1\nHost: h\nAccept: text/event-stream\n\n", true),
            ("mcp", "POST /orders HTTP/1.1\nHost: h\nAccept: application/json\n\n", false),
            ("mcp", "GET /health HTTP/1.1\nHost: h\n\n", false),
            ("socketio", "GET /socket.io/?transport=polling&EIO=4 HTTP/1.1\nHost: h\n\n", true),
            ("socketio", "GET /socket.io/?transport=websocket&EIO=4 HTTP/1.1\nHost: h\n\n", false),
            ("socketio", "GET /?transport=polling HTTP/1.1\nHost: h\n\n", false),
            ("cookie:sid", "GET / HTTP/1.1\nHost: h\nAccept: text/html\n\n", false),
        ] {
            let (naming, (head, bytes)) = (Naming::parse(naming).expect("a naming"), read(request));
            assert_eq!(naming.begins(&head, &bytes), begins, "{naming:?} {request}");
        }
    }

    #[test]
    fn a_response_tells_it_in_its_fields() {
        let fields = [("Mcp-Session-Id", "abc"), ("Set-Cookie", "other=1"), ("set-cookie", "sid=x; Path=/; HttpOnly")];
        let fields = FieldList::from_iter(fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        for (naming, name) in [
            ("mcp", Some("abc")),
            ("header:mcp-session-id", Some("abc")),
            ("cookie:sid", Some("x")),
            ("cookie:Path", None),
            ("query:sid", None),
            ("socketio", None),
        ] {
            let naming = Naming::parse(naming).expect("a naming");
            assert_eq!(naming.of_response(&fields), name.map(str::as_bytes), "{naming:?}");
        }
    }

    #[test]
    fn or_at_the_beginning_of_its_content() {
        for (naming, content, name) in [
            ("socketio", "0{\"sid\":\"lv_X-1\",\"upgrades\":[]}", Some("lv_X-1")),
            ("socketio", "97:0{\"sid\":\"lv_X-1\",\"upgrades\":[]}", Some("lv_X-1")),
            ("socketio", "4{\"note\":\"0{\\\"sid\\\":\"}", None),
            ("socketio", "text before 0{\"sid\":\"abc\"}", None),
            ("socketio", "0{\"sid\":\"", None),
            ("mcp", "event: endpoint\r\ndata: /messages/?session_id=0af1\r\n\r\n", Some("0af1")),
            ("mcp", "data: session_id=0af1\r\n\r\n", None),
            ("peer", "0{\"sid\":\"abc\"}", None),
        ] {
            let naming = Naming::parse(naming).expect("a naming");
            assert_eq!(naming.of_content(content.as_bytes()), name.map(str::as_bytes), "{content}");
        }
    }

    #[test]
    fn a_coded_content_is_read_as_far_as_it_is_there() {
        let mut coded = vec![0; 1024];
        let mut deflate = Compress::new_gzip(Compression::default(), WINDOW_BITS);
        let text = [b"0{\"sid\":\"lv_X-1\",".as_slice(), &[b'x'; 4096]].concat();
        deflate.compress(&text, &mut coded, FlushCompress::Finish).expect("it fits");
        coded.truncate(deflate.total_out() as usize);
        let found = |count| Naming::SocketIo.of_content(&gunzip(&coded[..count])).map(<[u8]>::to_vec);
        assert_eq!(found(coded.len()), Some(b"lv_X-1".to_vec()));
        assert_eq!((found(0), found(10)), (None, None), "the header alone");
        assert_eq!(gunzip(&coded).len(), LOOK, "what it stands for may be long");
        assert!(gunzip(b"no gzip at all, but long enough to be some").is_empty());
    }

    #[test]
    fn what_is_no_naming_is_said() {
        for text in ["", "mcp:x", "cookie", "cookie:", "header:a b", "ip", "peer:1"] {
            assert!(Naming::parse(text).is_err(), "{text}");
        }
    }
}
