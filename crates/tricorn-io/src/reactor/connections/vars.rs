//! What a front end sends before each request: vars (`proto/cgi`), in place of which the request gets a head as HTTP/1 has it.
//!
//! The front end says who its client is, and is believed since it may come (`uwsgi_allow_ips`). That client is trusted as it would be
//! if it had come itself.
use super::Connections;
use super::conn::Conn;
use super::stage::Stage;
use crate::config::Config;
use crate::exchange::id::RequestId;
use crate::exchange::output::Output;
use crate::peer::Peer;
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use tricorn_proto::cgi::{self, Opening};
use tricorn_proto::message::{Refusal, RefusalKind};

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
                    let told = request.vars().and_then(|vars| vars.client());
                    if let Some(client) = told.filter(|client| conn.origin.peer != Peer::Internet(*client)) {
                        conn.origin.peer = Peer::Internet(client);
                        conn.origin.trusted = self.config.policy.trust.allows(Some(client.ip()));
                        // A gateway keeps the names of the client before.
                        self.chores.attachments.extend(conn.attachment.take());
                    }
                    return Some(Found::Vars);
                }
                Err(refusal) => return Some(Found::Refused(id, refusal)),
            }
        }
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
