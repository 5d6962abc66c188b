//! Handshakes that are refused, and how.

/// One variant per rule; `row` says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrong {
    Method,
    Body,
    Connection,
    Version,
    VersionTwice,
    KeyMissing,
    KeyTwice,
    Key,
    Protocol,
    ProtocolTwice,
    Protocols,
    Extensions,
}

impl Wrong {
    pub fn status(self) -> u16 {
        row(self).0
    }

    /// The sentence for the error page and the log.
    pub fn message(self) -> &'static str {
        row(self).2
    }

    /// What the response has to tell besides.
    pub fn fields(self) -> Fields {
        row(self).1
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message(), self.status())
    }
}

impl std::error::Error for Wrong {}

#[rustfmt::skip]
fn row(wrong: Wrong) -> (u16, Fields, &'static str) {
    use Wrong::*;
    match wrong {
        Method        => (405, ALLOW, "WebSocket handshake: the method must be GET"),
        Body          => (400, &[], "WebSocket handshake: a request with a body"),
        Connection    => (400, &[], "WebSocket handshake: no 'upgrade' in Connection"),
        Version       => (426, UPGRADE, "WebSocket handshake: Sec-WebSocket-Version must be 13"),
        VersionTwice  => (400, &[], "WebSocket handshake: more than one Sec-WebSocket-Version"),
        KeyMissing    => (400, &[], "WebSocket handshake: no Sec-WebSocket-Key"),
        KeyTwice      => (400, &[], "WebSocket handshake: more than one Sec-WebSocket-Key"),
        Key           => (400, &[], "WebSocket handshake: Sec-WebSocket-Key is not 16 bytes in base64"),
        Protocol      => (400, &[], "WebSocket handshake: Sec-WebSocket-Protocol is not a list of tokens"),
        ProtocolTwice => (400, &[], "WebSocket handshake: a subprotocol is offered twice"),
        Protocols     => (400, &[], "WebSocket handshake: more than 100 subprotocols"),
        Extensions    => (400, &[], "WebSocket handshake: Sec-WebSocket-Extensions is malformed"),
    }
}

/// Name and value of each.
type Fields = &'static [(&'static [u8], &'static [u8])];

const ALLOW: Fields = &[(b"Allow", b"GET")];
/// RFC 6455 section 4.4 asks for the version, RFC 9110 section 15.5.22 for the protocol.
const UPGRADE: Fields = &[(b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13")];
