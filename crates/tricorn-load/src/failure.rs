//! Why there is no answer.
use rustix::io::Errno;

/// Why a request got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No connection could be made.
    Connect,
    /// The answer was not complete in time.
    Timeout,
    /// The server closed the connection before its answer was complete.
    Closed,
    /// What came is no HTTP response.
    Malformed,
    /// The server ended the stream of the request with RST_STREAM.
    Reset,
    /// The server refused the request twice, by RST_STREAM or GOAWAY, without having processed it.
    Refused,
    /// More redirects than are followed.
    Redirects,
    /// There are no local ports left for connections.
    Ports,
    /// A WebSocket broke a rule, or echoed another message.
    Echo,
    /// The certificate of the server is refused.
    Certificate,
    /// The server sent an alert of TLS: it refuses us.
    Alert,
    /// The handshake of TLS was not complete in time.
    Handshake,
    /// What came is no TLS.
    Tls,
    /// The server did not agree to HTTP/2.
    Alpn,
}

impl Failure {
    /// The server took no request, so that it gets a moment before the next one.
    pub fn is_of_connection(self) -> bool {
        use Failure::{Alert, Alpn, Certificate, Connect, Handshake, Tls};
        matches!(self, Connect | Certificate | Alert | Handshake | Tls | Alpn)
    }

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub const ALL: [(Failure, &str); 14] = [
        (Failure::Connect, "connect"),
        (Failure::Timeout, "timeout"),
        (Failure::Closed, "closed"),
        (Failure::Malformed, "malformed"),
        (Failure::Reset, "reset"),
        (Failure::Refused, "refused"),
        (Failure::Redirects, "redirects"),
        (Failure::Ports, "ports"),
        (Failure::Echo, "echo"),
        (Failure::Certificate, "certificate"),
        (Failure::Alert, "alert"),
        (Failure::Handshake, "handshake"),
        (Failure::Tls, "tls"),
        (Failure::Alpn, "alpn"),
    ];
}

/// Why a connection has moved nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    System(Errno),
    /// `Wire::take_reason` has words for it.
    Tls(Failure),
}
