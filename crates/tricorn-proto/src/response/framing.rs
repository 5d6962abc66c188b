//! What a response may carry, and how its end is told (RFC 9110 section 6.4.1, RFC 9112 section 6.3).
//!
//! Rule: no other file decides HEAD, 1xx, 204, 205, 304 or CONNECT.
use crate::message::{Method, Version};

/// How the end of a response's body is told to the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is none, whatever the application sends.
    #[default]
    None,
    /// By its length; this many bytes are still to come.
    Length(u64),
    /// By a mark behind its last piece: the last chunk of HTTP/1.1, END_STREAM of HTTP/2, END_REQUEST of FastCGI.
    Delimited,
    /// By the end of the connection.
    UntilClose,
}

/// The framing of one response and the length to announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decision {
    pub framing: Framing,
    /// Whether the application's own Content-Length may be sent.
    pub keep_length: bool,
    /// A Content-Length to send where the application gave none, or its own may not be sent.
    pub add_length: Option<u64>,
}

/// What the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub method: Method,
    pub version: Version,
    pub status: u16,
    /// The Content-Length the application set.
    pub announced: Option<u64>,
    /// The length of the whole body, where the gateway knows it.
    pub known: Option<u64>,
}

#[inline]
pub(super) fn decide(facts: Facts) -> Decision {
    let Facts { method, version, status, announced, known } = facts;
    match (method, status) {
        // RFC 9110 section 8.6: "A server MUST NOT send a Content-Length header field in any response with a status
        // code of 1xx (Informational) or 204 (No Content)."
        (_, ..200 | 204) => Decision::no_body(false, None),
        // "… in any 2xx (Successful) response to a CONNECT request": what follows is the tunnel, until it closes.
        (Method::Connect | Method::Tunnel, 200..300) => Decision::of(Framing::UntilClose, false, None),
        // RFC 9110 section 15.3.6: "a server MUST NOT generate content in a 205 response". RFC 9112 section 6.3 has no
        // rule by which a client knows that, so it is told.
        (_, 205) => Decision::no_body(false, Some(0)),
        // "A server MAY send a Content-Length header field in a 304 (Not Modified) response", in a response to HEAD
        // likewise: what a GET would have had. An application that sends no body to HEAD has not told that length, so
        // a known length of 0 claims nothing.
        (_, 304) => Decision::no_body(true, None),
        (Method::Head, _) => Decision::no_body(true, known.filter(|&length| length > 0)),
        _ => match (announced, known) {
            (Some(length), _) => Decision::of(Framing::Length(length), true, None),
            (None, Some(length)) => Decision::of(Framing::Length(length), true, Some(length)),
            (None, None) if version >= Version::Http11 || matches!(version, Version::FastCgi(_)) => {
                Decision::of(Framing::Delimited, true, None)
            }
            (None, None) => Decision::of(Framing::UntilClose, true, None),
        },
    }
}

impl Decision {
    fn of(framing: Framing, keep_length: bool, add_length: Option<u64>) -> Decision {
        Decision { framing, keep_length, add_length }
    }

    fn no_body(keep_length: bool, add_length: Option<u64>) -> Decision {
        Decision::of(Framing::None, keep_length, add_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: Method, version: Version, status: u16) -> Decision {
        decide(Facts { method, version, status, announced: Some(5), known: Some(3) })
    }

    #[test]
    fn responses_without_a_body_are_those_of_rfc_9110() {
        let no_body = |keep| Decision::no_body(keep, None);
        for status in [100, 101, 199, 204] {
            assert_eq!(of(Method::Get, Version::Http11, status), no_body(false));
        }
        assert_eq!(of(Method::Get, Version::Http11, 304), no_body(true));
        for method in [Method::Get, Method::Head] {
            assert_eq!(of(method, Version::Http10, 205), Decision::no_body(false, Some(0)));
        }
        assert_eq!(of(Method::Head, Version::Http11, 200).framing, Framing::None);
        for status in [200, 206, 404, 500, 999] {
            assert_eq!(of(Method::Get, Version::Http11, status).framing, Framing::Length(5));
        }
    }

    #[test]
    fn a_tunnel_has_no_length() {
        let tunnel = Decision::of(Framing::UntilClose, false, None);
        assert_eq!(of(Method::Connect, Version::Http11, 200), tunnel);
        assert_eq!(of(Method::Connect, Version::Http11, 403).framing, Framing::Length(5));
    }

    #[test]
    fn head_claims_no_length_that_was_not_told() {
        let facts =
            |known| Facts { method: Method::Head, version: Version::Http11, status: 200, announced: None, known };
        assert_eq!(decide(facts(Some(0))), Decision::no_body(true, None));
        assert_eq!(decide(facts(Some(9))), Decision::no_body(true, Some(9)));
        assert_eq!(decide(facts(None)), Decision::no_body(true, None));
    }
}
