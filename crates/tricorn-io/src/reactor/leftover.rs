//! What lies in the channel when no worker is left to take it.
use crate::clock::{self, WallText};
use crate::exchange::responder::Responder;
use crate::one_queue::message::HandOverMessage;
use tricorn_proto::message::{Method, Version};

/// The response to a request in the channel that nobody will begin: 503 without content, since its method is not read, and HEAD is
/// answered without (RFC 9110 section 9.3.2). `message`: its first bytes. It is said as the client's connection says it, or whoever has
/// that connection.
pub fn unavailable(message: &[u8]) -> Vec<u8> {
    let way = HandOverMessage::decode(message).map(|message| message.way).unwrap_or_default();
    let version = way.front_end.unwrap_or(if way.http2 { Version::Http2 } else { Version::Http11 });
    let wall = WallText::at(clock::now());
    let mut response = Vec::new();
    Responder::of_errors(wall.date(), Method::Get, version).write(&mut response, 503, &[(b"Retry-After", b"1")], b"");
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_queue::message::{Age, Parts, Way};
    use crate::peer::Peer;

    fn message(http2: bool, front_end: Option<Version>) -> Vec<u8> {
        let header = HandOverMessage {
            peer: Peer::Unix,
            listener: None,
            hops: 0,
            age: Age { number: 1, last_from: 0 },
            readable: false,
            hangup: false,
            apart: false,
            spooled: None,
            way: Way { lent: http2, http2, secured: false, front_end },
            first_byte: 1,
            head_complete: 2,
            complete: 3,
            waits_since: 4,
            parts: Parts { borrowed: 0, announced: 0, head: 0, body: 0, next: 0 },
        };
        header.encode().to_vec()
    }

    #[test]
    fn it_is_said_as_the_client_is_spoken_to() {
        for message in [b"".as_slice(), b"no message", &message(false, None)] {
            let text = String::from_utf8(unavailable(message)).expect("text");
            assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\nDate: "), "{text}");
            assert!(text.ends_with("Connection: close\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n"), "{text}");
        }
        let parts = unavailable(&message(true, None));
        assert!(parts.starts_with(b"H") && parts.ends_with(b"E\0\0\0\0\0\0\0\0"), "{parts:?}");
        let said = |version| String::from_utf8_lossy(&unavailable(&message(false, Some(version)))).into_owned();
        assert!(said(Version::Uwsgi).starts_with("HTTP/1.1 503 "));
        assert!(said(Version::Scgi).starts_with("Status: 503 Service Unavailable\r\n"));
        assert!(said(Version::FastCgi(2)).starts_with("\u{1}\u{6}\0\u{2}"));
    }
}
