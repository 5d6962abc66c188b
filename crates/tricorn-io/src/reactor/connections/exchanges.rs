//! Requests that become exchanges, and exchanges that come back.
use super::Connections;
use super::conn::Origin;
use super::phase::Change;
use crate::exchange::buffers::Request;
use crate::exchange::encoding;
use crate::exchange::id::RequestId;
use crate::exchange::lane::Lane;
use crate::exchange::link::Link;
use crate::exchange::lost;
use crate::exchange::output::Concluded;
use crate::exchange::{AppEnd, Client, Exchange, Returned, Timing};
use crate::one_queue::affinity::Learner;
use crate::peer::Peer;
use crate::reactor::outgoing::{Outgoing, Then};
use crate::scoreboard::{self, Word};
use rustix::fd::{AsRawFd, BorrowedFd};
use tricorn_proto::message::{Refusal, RefusalKind};

impl Connections {
    /// A complete request becomes an exchange, with the output of its connection.
    pub fn check_out(&mut self, id: RequestId) -> Option<Box<Exchange>> {
        let conn = self.conns.get_mut(id.connection())?;
        let serial = &mut conn.serial;
        let (mut request, receiver) = serial.begin(id)?;
        let is_last = self.deadlines.lifetime().is_last(id.stream(), serial.last_from(), request.times.complete);
        self.extra.opened(request.takes_file());
        let output = conn.output.take()?;
        conn.phase.enter(Change::Begun(output.socket().as_raw_fd()));
        let (Origin { peer, listener, trusted }, attachment) = (conn.origin, conn.attachment.take());
        let client = Client { peer, listener, trusted, attachment };
        let lane = Lane::new(id, output, self.config.response_buffer_size);
        let mut exchange = Exchange::new(lane, request, receiver, client, self.wall.clone());
        exchange.learner = self.affinity().cloned().map(Learner::new);
        exchange.may_compress(self.config.compress.as_ref());
        let watched = self.config.static_map.watched();
        if watched.any() {
            exchange.watch(watched);
        }
        if is_last {
            exchange.request.reply.close();
        }
        self.keep_excess(id, &mut exchange.request);
        if exchange.request.counted.disk > 0 {
            self.bodies.lend_out(&mut exchange.request);
        }
        Some(exchange)
    }

    /// Takes an exchange back: its socket, its buffers, and what is left to be sent.
    pub fn check_in(&mut self, mut exchange: Box<Exchange>, now: u64) {
        exchange.lane.end_lease();
        exchange.resolve();
        let elsewhere = exchange.is_elsewhere();
        exchange.end_of_body(&self.config);
        let link = exchange.lane.link();
        let Returned { id, mut output, mut request, attachment, receiver, timing } = exchange.into_returned();
        if link == Link::Switched && output.stream().channel().is_some() {
            output.queue(&encoding::end_of_stream());
        }
        let Concluded { sent, waits, is_held } = output.conclude(&mut self.chores.spent);
        self.work.set_now(now);
        self.count(&timing, sent, &request, now);
        let partial = request.partial;
        if link.may_reuse() && !partial {
            self.keep_excess(id, &mut request);
        }
        self.recycle(request);
        let token = id.connection();
        let Some(conn) = self.conns.get_mut(token) else {
            self.chores.attachments.extend(attachment); // the worker has ended with a bridge
            self.chores.end(output);
            return;
        };
        conn.attachment = attachment;
        let serial = &mut conn.serial;
        serial.take_back(receiver);
        if link.is_taken() {
            if conn.phase.get().is_bridged() {
                self.chores.end(output);
                self.end_bridge(token, now);
                return;
            }
            if !elsewhere {
                output.stream().unblock(); // else it is closed here, and a thread of the application's may go on with it
            }
        }
        // What is still to come of a body, or of the protocol that followed, was not looked for yet; what its session has makes no edge.
        if partial || link == Link::Switched || output.stream().holds() {
            conn.edges.may_be_readable();
        }
        let output = conn.output.insert(output);
        match (link.loss(), waits) {
            _ if elsewhere => self.close(token),
            (Some(loss), _) => self.cut_off(token, loss),
            (None, false) => self.finish_reply(token, link.may_reuse(), now),
            (None, true) => {
                let outgoing = Outgoing::new(output, Then::of(link.may_reuse()));
                self.extra.opened(outgoing.holds_file());
                self.deadlines.enter(token, &mut conn.phase, Change::Left(outgoing), now);
                self.register(token);
                if is_held {
                    self.hold(token, now);
                } else {
                    // Room that came while the exchange had the socket made its edge then, and makes no other.
                    self.flush(token, false, now);
                }
            }
        }
    }

    /// An exchange was dropped, and its socket with it. Nothing can be said to the client but that.
    #[cold]
    pub fn lose(&mut self, lent: lost::Lent) {
        self.bodies.lose(lent.counted, lent.spooled);
        self.extra.closed(lent.filed);
        self.board.add(Word::Requests, 1);
        self.board.add(Word::AppErrors, 1);
        self.close(lent.request.connection());
    }

    /// The application has taken this socket: nothing is waited for there any more. Returns what was read already.
    pub fn let_go(&mut self, id: RequestId, socket: BorrowedFd<'_>) -> Vec<u8> {
        self.conns.unwatch(id.connection(), Some(socket));
        self.take_unread(id)
    }

    /// `sent`: bytes that the exchange has sent.
    fn count(&mut self, timing: &Timing, sent: u64, request: &Request, now: u64) {
        let board = &self.board;
        if request.reply.has_status() {
            board.status(request.reply.status_code());
        }
        board.add(Word::BytesOut, sent);
        board.add(Word::BytesIn, request.received);
        match timing.end {
            AppEnd::Well | AppEnd::Uncalled => {}
            AppEnd::Failed | AppEnd::Late => board.add(Word::AppErrors, 1),
            AppEnd::Leaving => board.add(Word::StreamsClosed, 1),
        }
        if timing.end == AppEnd::Uncalled {
            board.add(Word::StaticFiles, 1);
        } else {
            board.add(Word::Requests, 1);
            board.observe(scoreboard::QUEUE_TIME, timing.started.saturating_sub(request.times.complete));
            board.observe(scoreboard::APP_TIME, timing.answered.saturating_sub(timing.started));
        }
        board.observe(scoreboard::TOTAL_TIME, now.saturating_sub(request.times.first_byte));
        if let Some(split) = request.times.call {
            board.add(Word::CallBlocked, u64::from(split.blocked) * 1000);
            board.add(Word::CallDelayed, u64::from(split.delayed) * 1000);
        }
        if let Some(nanos) = timing.gil() {
            board.observe_gil(nanos);
        }
    }

    /// A body that came while its request was under way was refused: counted, and told to the log.
    pub fn count_refused(&mut self, peer: Peer, refusal: &Refusal) {
        let counter = if refusal.kind == RefusalKind::BodyTimeout { Word::BodyTimeouts } else { Word::Refused };
        self.board.add(counter, 1);
        self.board.refused(refusal.kind);
        self.notice(true, || format!("Invalid request from ip={peer}: {}", refusal.log_text()));
    }
}
