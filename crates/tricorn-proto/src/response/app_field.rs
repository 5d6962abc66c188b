//! Which of the application's fields are ours to send, and what they tell us.
use crate::message::grammar::{is_named, list};

/// What becomes of a field of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Sent as it is.
    Send,
    ContentLength,
    /// Sent; ours is not.
    Server,
    /// Sent; ours is not.
    Date,
    /// Sent; ours is not.
    RequestId,
    /// RFC 9110 section 7.6.1: it speaks of this connection, which is ours. Not sent.
    Connection,
    /// Names protocols to switch to. Sent if the status allows it.
    Upgrade,
    /// Not sent: the framing is ours.
    TransferEncoding,
    /// Not sent.
    Drop,
}

/// By length first: nearly every name is told apart by it without being read.
#[inline]
pub(super) fn classify(name: &[u8]) -> Use {
    let dropped = |hit: bool| if hit { Use::Drop } else { Use::Send };
    match name.len() {
        2 => dropped(is_named(name, b"te")),
        4 if is_named(name, b"date") => Use::Date,
        6 if is_named(name, b"server") => Use::Server,
        7 if is_named(name, b"upgrade") => Use::Upgrade,
        7 => dropped(is_named(name, b"trailer")),
        8 => dropped(is_named(name, b"trailers")),
        10 if is_named(name, b"connection") => Use::Connection,
        10 => dropped(is_named(name, b"keep-alive")),
        12 if is_named(name, b"x-request-id") => Use::RequestId,
        14 if is_named(name, b"content-length") => Use::ContentLength,
        16 => dropped(is_named(name, b"proxy-connection")),
        17 if is_named(name, b"transfer-encoding") => Use::TransferEncoding,
        18 => dropped(is_named(name, b"proxy-authenticate")),
        19 => dropped(is_named(name, b"proxy-authorization")),
        25 => dropped(is_named(name, b"proxy-authentication-info")),
        _ => Use::Send,
    }
}

/// Whether a Connection value asks for the connection to be closed.
pub(super) fn asks_to_close(value: &[u8]) -> bool {
    list(value).any(|option| option.eq_ignore_ascii_case(b"close"))
}
