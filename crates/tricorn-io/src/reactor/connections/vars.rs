//! What a front end sends before each request: vars (`proto/cgi`), in place of which the request gets a head as HTTP/1 has it.
//!
//! The front end says who its client is, and is believed since it may come (`uwsgi_allow_ips`). That client is trusted as it would be
//! if it had come itself. Of a request of which it does not say that, it is the client itself.
use super::Connections;
use super::conn::Conn;
use super::stage::Stage;
use crate::config::Config;
use crate::exchange::id::RequestId;
use crate::exchange::output::Output;
use crate::peer::Peer;
use crate::reactor::chores::Chores;
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use rustix::io;
use std::net::SocketAddr;
use tricorn_proto::cgi::{self, Opening, Vars};
use tricorn_proto::message::{Refusal, RefusalKind};
use tricorn_proto::peer::proxy_protocol::Ends;

/// What was found before a head.
pub(super) enum Found {
    NeedMore,
    /// The vars are there, and the head is to be read next.
    Vars,
    Refused(RequestId, Box<Refusal>),
}

impl Connections {
    /// Looks for the vars of the request that is read.
    #[cold]
    pub(super) fn look_for_vars(&mut self, token: Token, now: u64) -> Option<Found> {
        let conn = self.conns.get_mut(token)?;
        let protocol = conn.stage.front_end()?;
        let id = conn.serial.current(token);
        let Some(mut reading) = conn.serial.reading() else { return Some(Found::NeedMore) };
        if reading.request.vars().is_some() {
            return Some(Found::Vars);
        }
        reading.came(now);
        reading.request.head.version = reading.request.told.scan.version(protocol);
        if let Err(refusal) = welcome(conn, &self.config) {
            return Some(Found::Refused(id, refusal));
        }
        loop {
            let request = conn.serial.request_mut(id)?;
            if request.unread().is_empty() {
                return Some(Found::NeedMore);
            }
            let (mut scan, mut block) = (request.told.scan, Vec::new());
            let opening = cgi::open(protocol, request.unread(), &mut scan, &mut block);
            request.told.scan = scan;
            request.head.version = scan.version(protocol);
            // What was said of the request before says nothing of this one, not even in a line about it.
            let client = match &opening {
                Ok(Opening::Vars(_)) => Vars::of(&block).and_then(|vars| vars.client()),
                _ => None,
            };
            if come_from(conn, client, &self.config, &mut self.chores).is_err() {
                return Some(Found::NeedMore); // the front end is gone, which is seen when it is read from
            }
            let request = conn.serial.request_mut(id)?;
            match opening {
                Ok(Opening::NeedMore) => return Some(Found::NeedMore),
                Ok(Opening::Aside(count, answer)) => {
                    request.pass_over(count);
                    self.board.add(Word::BytesOut, answer_aside(conn.output.as_ref(), Some(answer)));
                }
                Ok(Opening::Vars(count)) => {
                    if let Err(refusal) = request.lay_out(count, &block) {
                        return Some(Found::Refused(id, refusal));
                    }
                    return Some(Found::Vars);
                }
                Err(refusal) => return Some(Found::Refused(id, refusal)),
            }
        }
    }
}

/// The request that is read comes from this client of the front end; `None`: from the front end itself.
fn come_from(conn: &mut Conn, client: Option<SocketAddr>, config: &Config, chores: &mut Chores) -> io::Result<()> {
    let peer = match client {
        Some(client) => Peer::Internet(client),
        None if conn.served => front_end(conn)?,
        None => return Ok(()), // its address is that of the connection still
    };
    if conn.origin.peer != peer {
        conn.origin.peer = peer;
        conn.origin.trusted = config.policy.trust.allows(peer.ip());
        // A gateway keeps the names of the client before.
        chores.attachments.extend(conn.attachment.take());
    }
    Ok(())
}

/// Whose connection it is, whatever its requests have said.
fn front_end(conn: &Conn) -> io::Result<Peer> {
    match (conn.announced.as_ref().map(|announced| &announced.ends), conn.stream()) {
        (Some(Ends::Internet { source, .. }), _) => Ok(Peer::Internet(*source)),
        (_, Some(stream)) => stream.peer(),
        (_, None) => Err(io::Errno::NOTCONN),
    }
}

/// Answers what is no part of a request, as far as the socket takes it. How many bytes.
pub(super) fn answer_aside(output: Option<&Output>, answer: Option<Vec<u8>>) -> u64 {
    let (Some(output), Some(answer)) = (output, answer) else { return 0 };
    output.stream().send_once(&answer) as u64
}

/// Lets a front end in that may come. Before its first request the address is its own.
fn welcome(conn: &mut Conn, config: &Config) -> Result<(), Box<Refusal>> {
    let Stage::Stranger(protocol) = conn.stage else { return Ok(()) };
    let peer = conn.origin.peer;
    match config.front_end_at(conn.origin.listener) {
        Some(front_end) if front_end.allow.allows(peer.ip()) => {
            conn.stage = Stage::FrontEnd(protocol);
            Ok(())
        }
        _ => Err(Box::new(Refusal::new(RefusalKind::Forbidden, peer.to_string()))),
    }
}
