//! The preface and SETTINGS before the run: whether the server speaks HTTP/2 without TLS.
//!
//! With prior knowledge nothing is agreed on first (RFC 9113 section 3.3), so each request would fail.
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::time::{Duration, Instant};
use tricorn_proto::http2::frame::{FrameHeader, HEADER_BYTES, Kind};

use crate::http2::connection::Connection;

/// Over a socket that blocks. `name`: how the server is called in the sentence.
///
/// # Errors
/// A sentence: the server answers something else, or closes. One that says nothing may be slow, so that the run shows it.
pub fn try_out(socket: &OwnedFd, name: &str, patience: Duration) -> Result<(), String> {
    let end = Instant::now() + patience;
    let mut connection = Connection::new();
    let preface = connection.output().len();
    if send(socket, connection.output(), SendFlags::NOSIGNAL) != Ok(preface) {
        return Err(sentence(name, "it closed the connection"));
    }
    connection.sent(preface);
    let mut answer = Vec::with_capacity(ROOM);
    while answer.len() < HEADER_BYTES {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let limited = set_socket_timeout(socket, Timeout::Recv, Some(left));
        limited.map_err(|error| format!("SO_RCVTIMEO: {error}"))?;
        let mut buffer = [0; ROOM];
        match recv(socket, &mut buffer, RecvFlags::empty()) {
            Ok((0, _)) => return Err(sentence(name, "it closed the connection")),
            Ok((length, _)) => answer.extend_from_slice(&buffer[..length]),
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() >= end => return Ok(()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(sentence(name, &error.to_string())),
        }
    }
    let is_settings =
        |header| matches!(FrameHeader::parse(header), FrameHeader { kind: Kind::Settings, stream: 0, .. });
    if answer.first_chunk().is_some_and(is_settings) {
        return Ok(());
    }
    let line = answer.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    Err(sentence(name, &format!("it answered {:?}", String::from_utf8_lossy(&line[..line.len().min(SHOWN)]))))
}

fn sentence(name: &str, what: &str) -> String {
    format!("{name} does not speak HTTP/2 without TLS (prior knowledge): {what}. {REMEDY}")
}

const REMEDY: &str = "Enable it there, use https:// if the server offers HTTP/2 over TLS only, or omit --http2";
const ROOM: usize = 4096;
const SHOWN: usize = 80;
