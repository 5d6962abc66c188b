//! A handshake before the run: what would make every request fail is said at once, with what to do.
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::time::{Duration, Instant};

use crate::failure::{Broken, Failure};
use crate::tls::{Session, Tls};

/// Over a socket that blocks. `url`: how the server is called in the sentence.
///
/// # Errors
/// A sentence: the certificate is refused, the server refuses or has no HTTP/2, or what it speaks is no TLS. A server that says nothing may
/// be slow, so that the run shows it.
pub fn try_out(tls: &Tls, socket: &OwnedFd, url: &str, patience: Duration) -> Result<(), String> {
    let end = Instant::now() + patience;
    let mut session = Session::new(&tls.apart()).map_err(|_| format!("{url}: no session of TLS can be made"))?;
    let mut buffer = vec![0; ROOM];
    loop {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let limited = set_socket_timeout(socket, Timeout::Recv, Some(left));
        limited.map_err(|error| format!("SO_RCVTIMEO: {error}"))?;
        let moved = session.flush(socket.as_fd()).and_then(|()| session.recv(socket.as_fd(), &mut buffer));
        match moved {
            Err(Broken::Tls(failure)) => {
                return Err(sentence(failure, session.take_reason().unwrap_or_default(), url));
            }
            _ if session.is_open() => break,
            Ok(0) => return Err(format!("{url}: the server closed the connection during the handshake of TLS")),
            Err(Broken::System(Errno::AGAIN | Errno::INTR)) if Instant::now() >= end => return Ok(()),
            Ok(_) | Err(Broken::System(Errno::AGAIN | Errno::INTR)) => {}
            Err(Broken::System(error)) => return Err(format!("{url}: the handshake of TLS broke off: {error}")),
        }
    }
    session.leave(socket.as_fd());
    if session.has_agreed() {
        return Ok(());
    }
    let selected = session.protocol().map_or_else(|| "no protocol".into(), |name| format!("{name:?}"));
    Err(format!("{url}: the server does not agree to HTTP/2: it selected {selected} by ALPN. {HTTP1}"))
}

fn sentence(failure: Failure, reason: String, url: &str) -> String {
    match failure {
        Failure::Certificate => {
            let reason = match reason.as_str() {
                "UnknownIssuer" => "no authority that is trusted here has signed it",
                other if OTHER_KEY.iter().any(|beginning| other.starts_with(beginning)) => {
                    "its authority has the name of a trusted one, and another key"
                }
                other => other,
            };
            format!("{url}: the certificate of the server is refused: {reason}. {CERTIFICATE}")
        }
        Failure::Alert if reason.contains("NoApplicationProtocol") => {
            format!("{url}: the server does not agree to HTTP/2: it refused the handshake with {reason}. {HTTP1}")
        }
        Failure::Alert => format!("{url}: the server refused the handshake with {reason}. {ALERT}"),
        _ => format!("{url}: what the server answers is {reason}. {PLAIN}"),
    }
}

/// What webpki says of a signature by another key, of the same kind or not.
const OTHER_KEY: [&str; 2] = ["BadSignature", "UnsupportedSignatureAlgorithmForPublicKey"];
const CERTIFICATE: &str = "Name the file of its authority (--cacert FILE), or of itself; -k takes any certificate. --host NAME asks for another name";
const ALERT: &str = "Versions are given by --tls-min and --tls-max, the certificate of a client by --cert and --key";
const HTTP1: &str = "Enable HTTP/2 there, or omit --http2";
const PLAIN: &str = "Does it speak plain HTTP there (http://)?";
const ROOM: usize = 64 * 1024;
