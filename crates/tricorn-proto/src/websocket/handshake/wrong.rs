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

    /// What the response has to tell besides, each field with its line end.
    pub fn fields(self) -> &'static [u8] {
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
fn row(wrong: Wrong) -> (u16, &'static [u8], &'static str) {
    use Wrong::*;
    match wrong {
        Method        => (405, b"Allow: GET\r\n", "WebSocket handshake: the method must be GET"),
        Body          => (400, b"", "WebSocket handshake: a request with a body"),
        Connection    => (400, b"", "WebSocket handshake: no 'upgrade' in Connection"),
        Version       => (426, UPGRADE, "WebSocket handshake: Sec-WebSocket-Version must be 13"),
        VersionTwice  => (400, b"", "WebSocket handshake: more than one Sec-WebSocket-Version"),
        KeyMissing    => (400, b"", "WebSocket handshake: no Sec-WebSocket-Key"),
        KeyTwice      => (400, b"", "WebSocket handshake: more than one Sec-WebSocket-Key"),
        Key           => (400, b"", "WebSocket handshake: Sec-WebSocket-Key is not 16 bytes in base64"),
        Protocol      => (400, b"", "WebSocket handshake: Sec-WebSocket-Protocol is not a list of tokens"),
        ProtocolTwice => (400, b"", "WebSocket handshake: a subprotocol is offered twice"),
        Protocols     => (400, b"", "WebSocket handshake: more than 100 subprotocols"),
        Extensions    => (400, b"", "WebSocket handshake: Sec-WebSocket-Extensions is malformed"),
    }
}

/// RFC 6455 section 4.4 asks for the version, RFC 9110 section 15.5.22 for the rest.
const UPGRADE: &[u8] = b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
