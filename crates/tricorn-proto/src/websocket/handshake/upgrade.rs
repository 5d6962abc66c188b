//! The handshake of HTTP/1.1: a GET that asks for an upgrade, and a 101 (RFC 6455 section 4.2, RFC 9110 section 7.8); and that of
//! HTTP/2: an extended CONNECT, and a 200 (RFC 8441 section 5).
use super::{Key, Wanted, Wrong, accept};
use crate::message::grammar::list;
use crate::message::{Known, Method, RequestHead, Version};
use crate::response::{Fault, Reply};
use crate::websocket::deflate::Agreed;

/// A handshake that may be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `None`: HTTP/2 has none, "as that is handled by the HTTP/2" framing (RFC 8441 section 5).
    pub key: Option<Key>,
    pub wanted: Wanted,
}

/// Whether a request asks for a WebSocket (`bytes` is what its spans point into). A client that names the protocol in Upgrade
/// means it, and is told what is wrong with the rest.
pub fn read(head: &RequestHead, bytes: &[u8]) -> Result<Option<Asked>, Wrong> {
    if head.version == Version::Http2 {
        return read_connect(head, bytes);
    }
    // RFC 9110 section 7.8: "A server MUST ignore an Upgrade header field that is received in an HTTP/1.0 request."
    if head.version < Version::Http11 || !names(head, bytes, Known::Upgrade, b"websocket") {
        return Ok(None);
    }
    if head.kind != Method::Get {
        return Err(Wrong::Method);
    }
    // What follows the head must be frames, and no proxy may take them for something else.
    if head.framing.has_body() {
        return Err(Wrong::Body);
    }
    if !names(head, bytes, Known::Connection, b"upgrade") {
        return Err(Wrong::Connection);
    }
    let (mut key, mut wanted) = (None, Wanted::default());
    for field in &head.fields {
        let (name, value) = (field.name.of(bytes), field.value.of(bytes));
        if field.known != Known::Other {
            continue;
        }
        if name.eq_ignore_ascii_case(b"sec-websocket-key") {
            if key.replace(value).is_some() {
                return Err(Wrong::KeyTwice);
            }
        } else {
            wanted.note(name, value)?;
        }
    }
    // The version first: the key of another one would look different.
    wanted.check()?;
    let key = Key::read(key.ok_or(Wrong::KeyMissing)?).ok_or(Wrong::Key)?;
    Ok(Some(Asked { key: Some(key), wanted }))
}

/// The same of an extended CONNECT. Its key and version are HTTP/2's.
fn read_connect(head: &RequestHead, bytes: &[u8]) -> Result<Option<Asked>, Wrong> {
    if head.kind != Method::Tunnel {
        return Ok(None);
    }
    let mut wanted = Wanted::default();
    for field in head.fields.iter().filter(|field| field.known == Known::Other) {
        wanted.note(field.name.of(bytes), field.value.of(bytes))?;
    }
    wanted.check()?;
    Ok(Some(Asked { key: None, wanted }))
}

/// What the 101 says besides the application's own fields.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub key: Option<&'a Key>,
    /// One of those offered.
    pub protocol: Option<&'a str>,
    pub deflate: Option<&'a Agreed>,
}

/// Sets status and fields of `reply`, whose head is then to be written. The application's fields are checked like those
/// of any response; those of the handshake are not its own.
pub fn answer<'f>(
    reply: &mut Reply,
    answer: &Answer<'_>,
    fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
) -> Result<(), Fault> {
    match answer.key {
        Some(key) => {
            reply.status(b"101 Switching Protocols")?;
            reply.field(b"Upgrade", b"websocket")?;
            reply.field(b"Sec-WebSocket-Accept", &accept(key))?;
        }
        None => reply.status(b"200 OK")?,
    }
    if let Some(protocol) = answer.protocol {
        reply.field(b"Sec-WebSocket-Protocol", protocol.as_bytes())?;
    }
    if let Some(agreed) = answer.deflate {
        reply.field(b"Sec-WebSocket-Extensions", agreed.to_string().as_bytes())?;
    }
    for (name, value) in fields {
        if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
            let name = String::from_utf8_lossy(name);
            return Err(Fault::FieldName(format!("'{name}' belongs to the WebSocket handshake")));
        }
        // RFC 9110 section 8.6: no Content-Length in a 1xx response, and Upgrade stands there already.
        if !NOT_IN_101.iter().any(|not| name.eq_ignore_ascii_case(not)) {
            reply.field(name, value)?;
        }
    }
    Ok(())
}

fn names(head: &RequestHead, bytes: &[u8], known: Known, token: &[u8]) -> bool {
    let mut fields = head.fields.iter().filter(|field| field.known == known);
    fields.any(|field| list(field.value.of(bytes)).any(|element| element.eq_ignore_ascii_case(token)))
}

const OURS: [&[u8]; 3] = [b"sec-websocket-accept", b"sec-websocket-protocol", b"sec-websocket-extensions"];
const NOT_IN_101: [&[u8]; 2] = [b"content-length", b"upgrade"];
